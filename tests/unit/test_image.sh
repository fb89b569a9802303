#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The firmware image is self-contained: it needs nothing beyond mem*, holds no variable, and exports its entry alone.

set -u
image=${O:-build}/firmware/netdam-fw.so
n=0
failed=0

check()
{
    n=$((n + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "# expected: $3"
        echo "# found:    $2"
        failed=1
    fi
}

if [ ! -f "$image" ]; then
    echo "Bail out! $image is not there: make $image"
    exit 1
fi
echo 1..6

# Instrumented code calls the sanitizers' runtime and keeps its records in .data.
sanitized=$(nm -u "$image" | grep -cE '__(asan|ubsan|tsan|msan)_')
undefined=$(nm -u "$image" | awk '{print $NF}' | grep -vE '^(memcpy|memset|memcmp|memmove)(@.*)?$' | tr '\n' ' ')
# Objects in sections that are neither read-only nor made so once relocated.
variables=$(objdump -t "$image" | awk '/ O / || / O\./ {print $(NF-2), $NF}' |
            grep -vE '^(\.rodata|\.data\.rel\.ro|\.dynamic|\.got|\.eh_frame)' | tr '\n' ' ')
size_of()
{
    local size
    size=$(readelf -SW "$image" | sed 's/^ *\[ *[0-9]*\] *//' | awk -v s="$1" '$1 == s {print $5}')
    echo $((16#${size:-0}))
}
data=$(size_of .data)
bss=$(size_of .bss)
if [ "$sanitized" != 0 ]; then
    echo "ok 1 - needs nothing beyond memcpy, memset, memcmp, memmove # SKIP built with sanitizers"
    echo "ok 2 - .data is empty # SKIP built with sanitizers"
    echo "ok 3 - .bss is empty # SKIP built with sanitizers"
    echo "ok 4 - no symbol lies in a writable section # SKIP built with sanitizers"
    n=4
else
    check "needs nothing beyond memcpy, memset, memcmp, memmove" "$undefined" ""
    check ".data is empty" "$data" 0
    check ".bss is empty" "$bss" 0
    check "no symbol lies in a writable section" "$variables" ""
fi
exported=$(nm -D --defined-only "$image" | awk '{print $NF}' | grep -vE '^(_?_(init|fini|bss_start|edata|end))$' |
           tr '\n' ' ')
check "exports its entry and nothing else" "$exported" "netdam_fw_entry "
soname=$(readelf -dW "$image" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
check "soname is netdam-fw.so" "$soname" "netdam-fw.so"
exit $failed
