#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the two guests of boot_test that share a wire: 0 waits, 1 pings it when told to.
set -eu
ip link set eth0 up
ip addr add "10.77.0.$(($1 + 1))/24" dev eth0
echo configured
read -r _
if [ "$1" = 1 ]; then
    # The first answer may have to wait for ARP and a loaded machine.
    ping -c 3 -w 60 10.77.0.1
fi
