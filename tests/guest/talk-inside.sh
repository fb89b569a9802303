#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guest of boot_test: answers line by line, stores a number through the BAR2 of ivshmem, keeps a line in a file.
set -eu
read -r line
echo "got $line"
for device in /sys/bus/pci/devices/*; do
    if [ "$(cat "$device/class")" = 0x050000 ]; then
        echo 1 >"$device/enable"
        bar=$(sed -n 's/ .*//; 3p' "$device/resource")
    fi
done
echo "bar2 $bar"
read -r value
devmem "$bar" 64 "$value"
echo stored
read -r line
echo "$line" >/tmp/kept
echo kept
read -r line
exit 3
