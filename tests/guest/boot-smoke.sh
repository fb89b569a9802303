#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A guest boots with the device, sees it on its PCI bus with the specification's ids, reports its exit status and powers
# off; and what can go wrong with a guest is told apart (TAP).
set -uo pipefail
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
number=0
failed=0

check() {
    local name=$1 result=ok
    shift
    number=$((number + 1))
    if ! "$@"; then
        result='not ok'
        failed=1
        sed 's/^/# /' "$log"
    fi
    echo "$result $number - $name"
}

boot() {
    "$here/boot.py" --initrd "$root/build/guest/smoke.cpio" --name smoke "$@" >"$log" 2>&1
    status=$?
}

# An id from the specification, as sysfs writes it.
id_of() {
    awk -v name="NETDAM_PCI_$1" '$1 == "#define" && $2 == name { print $3 }' "$root/firmware/include/netdam/regs.h"
}

vendor=$(id_of VENDOR_ID)
device=$(id_of DEVICE_ID)
firmware=$root/build/firmware/netdam-fw.so

echo 1..9
boot --run "smoke-inside.sh $vendor $device" --memfd mem0=64 -- \
    -device "netdam,memdev=mem0,ip=10.0.0.1/24,firmware=$firmware"
check 'the guest ends with status 0' [ "$status" = 0 ]
check 'it sees the device on its PCI bus' grep -q '^pci ' "$log"
class=$(printf '0x%04x00' "$(id_of CLASS)")
check "the device's class is the specification's" grep -q " class $class\$" "$log"
check 'BAR2 has the size of the memory backend' grep -qx 'bar2 bytes 67108864' "$log"

boot --run "smoke-inside.sh $vendor $device"
check 'a guest without the device ends with status 1' [ "$status" = 1 ]
boot --run 'kill -9 $$'
check 'a command ended by a signal is 128 + its number' [ "$status" = 137 ]
boot --run 'echo c >/proc/sysrq-trigger; sleep 1000'
check 'a guest whose kernel panics is no success' [ "$status" = 125 ]
boot --timeout 15 --run 'sleep 1000'
check 'a guest that does not end is ended' [ "$status" = 125 ]
boot --run true -- -device netdam,memdev=nothing
check 'a device that cannot be made is told with QEMU'"'"'s message' grep -q 'nothing' "$log"
exit $failed
