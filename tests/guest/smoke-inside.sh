#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guest of boot-smoke: finds the device by its PCI ids and says what the kernel knows about it.
set -eu
for device in /sys/bus/pci/devices/*; do
    if [ "$(cat "$device/vendor")" = "$1" ] && [ "$(cat "$device/device")" = "$2" ]; then
        echo "pci $(basename "$device") class $(cat "$device/class")"
        for bar in 0 2; do
            if [ -e "$device/resource$bar" ]; then
                echo "bar$bar bytes $(stat -c %s "$device/resource$bar")"
            fi
        done
        exit 0
    fi
done
echo "no device $1:$2"
exit 1
