#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make demo: two nodes on loopback; moves a file, reduces two vectors, counts, shows packets. No root, no QEMU.
set -u

build=${O:-build}
node=$build/sim/netdam-node
mem=$build/host-driver/netdam-mem
vectors=$build/sim/demo-vectors
file_bytes=8388608
vector_elements=1048576

dir=$(mktemp -d "${TMPDIR:-/tmp}/netdam-demo.XXXXXX") || exit 1
pids=
finish() {
    for pid in $pids; do
        kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# forget PID: it has ended and been waited for, so its number may be somebody else's now.
forget() {
    left=
    for pid in $pids; do
        [ "$pid" = "$1" ] || left="$left $pid"
    done
    pids=$left
}

step() {
    printf '\n== %s\n' "$1"
}

failed() {
    echo "demo: FAILED: $1" >&2
    exit 1
}

# run COMMAND...: shows the command and runs it.
run() {
    printf '   $ %s\n' "$*"
    "$@" || failed "$*"
}

# start N: starts node N on a free port; sets pid_N, port_N and key_N from its ready line.
start() {
    : >"$dir/node$1"
    "$node" --listen 127.0.0.1:0 --memory 64M --counters >"$dir/node$1" 2>"$dir/node$1.err" &
    pid=$!
    pids="$pids $pid"
    tries=0
    until grep -q '^netdam-node ready' "$dir/node$1"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 100 ] || ! kill -0 "$pid" 2>/dev/null; then
            failed "node $1 does not start: $(cat "$dir/node$1.err")"
        fi
        sleep 0.1
    done
    port=$(sed -n 's/.* port=\([0-9]*\) .*/\1/p' "$dir/node$1")
    key=$(sed -n 's/.* key=\(0x[0-9a-f]*\) .*/\1/p' "$dir/node$1")
    eval "pid_$1=$pid port_$1=$port key_$1=$key"
    sed "s/^/   node $1, pid $pid: /" "$dir/node$1"
}

# stop N: ends node N by its pid and shows the counters that tell what it did.
stop() {
    eval "pid=\$pid_$1"
    kill -TERM "$pid" || failed "node $1 is gone"
    wait "$pid" || failed "node $1 ended with status $?"
    forget "$pid"
    for counter in REQUESTS_EXECUTED REQUESTS_REFUSED REQUESTS_REPEATED LANES MAIN_MEMORY_BYTES; do
        printf ' %s' "$(grep "^$counter " "$dir/node$1")"
    done | sed "s/^/   node $1:/"
    echo
}

sum_of() {
    sha256sum "$1" | cut -d ' ' -f 1
}

step "Two nodes: memory with an ALU behind a UDP port"
start 1
start 2

step "A file of $file_bytes bytes goes into node 1's memory and comes back"
head -c "$file_bytes" /dev/urandom >"$dir/file"
run "$mem" write --peer "127.0.0.1:$port_1" --key "$key_1" "$dir/file"
run "$mem" read --peer "127.0.0.1:$port_1" --key "$key_1" --length "$file_bytes" "$dir/back"
sent=$(sum_of "$dir/file")
back=$(sum_of "$dir/back")
echo "   sent  $sent"
echo "   back  $back"
[ "$sent" = "$back" ] || failed "the file came back different"

step "Two vectors of $vector_elements float32 are added in node 2's memory, by node 2"
run "$vectors" make "$vector_elements" "$dir/a" "$dir/b"
run "$mem" reduce --peer "127.0.0.1:$port_2" --key "$key_2" --type f32 --operation sum "$dir/a"
run "$mem" reduce --peer "127.0.0.1:$port_2" --key "$key_2" --type f32 --operation sum "$dir/b"
run "$mem" read --peer "127.0.0.1:$port_2" --key "$key_2" --length $((4 * vector_elements)) "$dir/sum"
printf '   '
"$vectors" check "$dir/a" "$dir/b" "$dir/sum" || failed "the sum is wrong"

step "Two processes count in one 8-byte cell of node 2 at the same moment, 10 times each"
count() {
    for turn in 1 2 3 4 5 6 7 8 9 10; do
        "$mem" fetch-add --peer "127.0.0.1:$port_2" --key "$key_2" --address 32M --value 1 >/dev/null || return 1
    done
}
count &
counter=$!
pids="$pids $counter"
count || failed "fetch-add"
wait "$counter" || failed "fetch-add of the other process"
forget "$counter"
total=$("$mem" fetch-add --peer "127.0.0.1:$port_2" --key "$key_2" --address 32M --value 0) || failed "fetch-add"
echo "   the cell holds $total"
[ "$total" = 20 ] || failed "the count is $total, not 20"

step "The packets of one more fetch-add: CONFIRM asks for the lane's generation, STALE tells it, then the cell is changed"
"$mem" fetch-add --peer "127.0.0.1:$port_2" --key "$key_2" --address 32M --value 22 --trace >"$dir/out" 2>"$dir/trace" ||
    failed "fetch-add with trace"
head -n 12 "$dir/trace" | sed 's/^/   /'
grep -q FETCH_ADD "$dir/trace" || failed "the trace does not name FETCH_ADD"

step "Both nodes end"
stop 1
stop 2

echo
echo "demo: passed"
