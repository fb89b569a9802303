#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The compiled quick tests once more, under AddressSanitizer and UndefinedBehaviorSanitizer (TAP: one line a program).
# JOBS: compilations at once, default the number of processors.
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/.." || exit 1
unset MAKEFLAGS MAKELEVEL O
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if ! programs=$(make --no-print-directory -j"${JOBS:-$(nproc)}" SAN=address,undefined programs 2>"$log"); then
    sed 's/^/# /' "$log"
    echo 'Bail out! the instrumented programs do not build'
    exit 1
fi
programs=$(sed -n 's/^program: //p' <<<"$programs")
export O=build/san CMOCKA_MESSAGE_OUTPUT=TAP UBSAN_OPTIONS=print_stacktrace=1
number=0
failed=0
for program in $programs; do
    number=$((number + 1))
    if "$program" >"$log" 2>&1 && ! grep -q '^not ok' "$log"; then
        echo "ok $number - ${program#build/san/}: $(grep -c '^ok' "$log") tests"
    else
        failed=1
        sed 's/^/# /' "$log"
        echo "not ok $number - ${program#build/san/}"
    fi
done
echo "1..$number"
exit $failed
