#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guest of card_test: gives the card to vfio-pci, or leaves it without a driver, and runs the program.
#   card-inside.sh vfio|sysfs CYCLES
set -eu
for device in /sys/bus/pci/devices/*; do
    if [ "$(cat "$device/vendor")" = 0x1234 ] && [ "$(cat "$device/device")" = 0x4e44 ]; then
        card=$(basename "$device")
    fi
done
# Bit 2 of the command register: may the card write to main memory?
master() {
    word=$(od -An -tu2 -j4 -N2 "/sys/bus/pci/devices/$card/config")
    echo "bus master $((word >> 2 & 1))"
}
case $1 in
vfio)
    echo vfio-pci >"/sys/bus/pci/devices/$card/driver_override"
    echo "$card" >/sys/bus/pci/drivers_probe
    echo "driver $(basename "$(readlink "/sys/bus/pci/devices/$card/driver")")"
    netdam-info -d pci | head -n 1
    guest_card interrupts "$2"
    ;;
sysfs)
    netdam-info -d pci | head -n 1
    guest_card none
    ;;
esac
master
