#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# In a guest of tap_test: netdamd has the card, netdam-tap makes it the kernel's, and what the runner says is done.
#   tap-inside.sh ADDRESS
cd /tmp
for card in /sys/bus/pci/devices/*; do
    if [ "$(cat "$card/vendor" "$card/device" | tr '\n' ' ')" = '0x1234 0x4e44 ' ]; then
        echo vfio-pci >"$card/driver_override"
        echo "${card##*/}" >/sys/bus/pci/drivers_probe
    fi
done
echo root:x:0:0::/root:/bin/sh >/etc/passwd
echo /bin/sh >/etc/shells
ip link set lo up

# Waits until a command succeeds; the runner ends what never does.
soon() {
    until "$@"; do
        sleep 0.1
    done
}

# WRITEs to the other card, one after the other, until told to stop; what was written, and how often, is told then.
write_on() {
    writes=0
    while [ ! -e stop ]; do
        netdam_write_bw -d pci -p "$1" -k "$2" -n 50 -s 16K >write.log 2>&1 || { echo "WRITE: $(cat write.log)"; break; }
        writes=$((writes + 1))
    done
    echo "writes $writes" >writes
}

# The content that arrives at a port, as its sum.
receive() { nc -l -p 5001 -e sh -c "sha256sum >$1"; }
listens() { netstat -tln | grep -q ":$1 "; }

netdamd 2>netdamd.log &
soon grep -q ready netdamd.log
netdam-tap -d pci -j >tap.log &
tap=$!
soon grep -q ready tap.log
ip addr add "$1/24" dev netdam0
cat tap.log
while read -r line; do
    eval "$line"
    echo "did $?"
done
