#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Virtual time knows no other time and no other randomness than its own: what it takes from the C library is memory.
lib="${O:-build}/sim/libndvt.a"
foreign=$(nm -u "$lib" | awk '$1 == "U" { print $2 }' | sort -u |
    grep -Ev '^(ndsim_.*|malloc|calloc|realloc|free|abort|mem(cpy|cmp|set|move)|__stack_chk_fail|__(asan|ubsan)_.*|_GLOBAL_OFFSET_TABLE_|__udivti3|__popcountdi2)$')
echo 1..2
if [ -s "$lib" ] && [ -n "$(nm "$lib" | grep -w ndsim_loop_run)" ]; then echo "ok 1 - the library is there"; else
    echo "not ok 1 - the library is there"; exit 1; fi
if [ -z "$foreign" ]; then echo "ok 2 - it needs memory and nothing else"; else
    echo "not ok 2 - it needs memory and nothing else"; echo "# $foreign"; exit 1; fi
