#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of the device with its files, the firmware and the test under AddressSanitizer and UndefinedBehaviorSanitizer
# (TAP: one line a program). HOSTILE_SECONDS says how long the hostile guest goes on; JOBS, how much is compiled at once
# (by default as much as there are processors).
set -uo pipefail
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL O
log=$(mktemp)
trap 'rm -f "$log"' EXIT
names=(hostile hostile-memif load memif migrate peers settings)
programs=("${names[@]/#/build/san/tests/device/test_}")

if ! bash device/qemu/sanitize.sh >"$log" 2>&1 ||
   ! make --no-print-directory -j"${JOBS:-$(nproc)}" SAN=address,undefined build/san/firmware/netdam-fw.so "${programs[@]}" >"$log" 2>&1; then
    sed 's/^/# /' "$log"
    echo 'Bail out! the instrumented programs do not build'
    exit 1
fi
# QEMU's own allocations are not looked after to their end.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export NETDAM_QEMU=build/san/qemu/qemu-system-x86_64 CMOCKA_MESSAGE_OUTPUT=TAP
number=0
failed=0
for program in "${programs[@]}"; do
    number=$((number + 1))
    if "$program" >"$log" 2>&1 && ! grep -q -e '^not ok' -e 'runtime error:' -e 'ERROR: AddressSanitizer' "$log"; then
        echo "ok $number - ${program#build/san/}: $(grep -c '^ok' "$log") tests"
    else
        failed=1
        sed 's/^/# /' "$log"
        echo "not ok $number - ${program#build/san/}"
    fi
done
echo "1..$number"
exit $failed
