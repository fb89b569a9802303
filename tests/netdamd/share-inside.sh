#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs in the guest of guest_test: netdamd holds the card, processes share it, one is killed, then netdamd itself.
#   share-inside.sh vfio|sysfs
set -eu
for device in /sys/bus/pci/devices/*; do
    if [ "$(cat "$device/vendor")" = 0x1234 ] && [ "$(cat "$device/device")" = 0x4e44 ]; then
        card=$(basename "$device")
    fi
done
if [ "$1" = vfio ]; then
    echo vfio-pci >"/sys/bus/pci/devices/$card/driver_override"
    echo "$card" >/sys/bus/pci/drivers_probe
fi
cd /tmp

fail() {
    echo "failed: $*"
    tail -n 5 ./*.log
    exit 1
}

# Waits until a command succeeds; everything here ends by itself or by the runner's limit.
soon() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || fail "never: $*"
        sleep 0.1
    done
}

# At least N lines in LOG say TEXT.
says() { [ "$(grep -c "$2" "$1")" -ge "$3" ]; }
leases() { [ "$(netdam-info -d broker:/run/netdamd.sock | grep -c '^lease')" = "$1" ]; }
start_broker() {
    : >netdamd.log # here and now, and not when the new process gets to it
    netdamd 2>netdamd.log &
    broker=$!
    soon says netdamd.log ready 1
}
# Sets $pid.
start_client() {
    : >"$1.log"
    guest_client "$1" /tmp/stop >"$1.log" &
    pid=$!
    soon says "$1.log" worked 1
    grep opened "$1.log"
}

touch busy.log netdamd.log a.log b.log c.log
start_broker
start_client a
a=$pid
start_client b
b=$pid
netdam-info -d pci | grep '^lease'
leases 2 || fail "not two leases"

kill -9 "$a"
status=0
wait "$a" || status=$?
echo "a: killed $((status - 128))"
soon leases 1
grep 'took back' netdamd.log | head -n 1
seen=$(grep -c worked b.log)
soon says b.log worked $((seen + 3))
echo "b: goes on"
start_client c
c=$pid
leases 2 || fail "not two leases again"
touch stop
wait "$b" || fail "b ended badly"
wait "$c" || fail "c ended badly"
rm stop
leases 0 || fail "leases are left"
echo "b and c: done"

# A broker that is killed: its client goes on, for its rings need no broker, and keeps the next one from resetting the
# card under it. When the client has ended, the next takes over socket and card.
start_client a
a=$pid
kill -9 "$broker"
wait "$broker" || true
[ -S /run/netdamd.sock ] || fail "a killed broker cannot remove its socket"
seen=$(grep -c worked a.log)
soon says a.log worked $((seen + 3))
status=0
netdamd 2>busy.log || status=$?
[ $status = 1 ] || fail "a second broker got the card"
grep 'uses it' busy.log
touch stop
wait "$a" || fail "a ended badly"
rm stop
start_broker
start_client b
b=$pid
echo "restart: works"
touch stop
wait "$b" || fail "b ended badly"
kill -TERM "$broker"
wait "$broker" || fail "netdamd ended badly"
[ ! -e /run/netdamd.sock ] || fail "the socket is left"
echo "end: clean"
