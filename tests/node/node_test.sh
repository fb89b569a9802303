#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# netdam-node as a script sees it: its command line, ready line, errors and end. Prints TAP.
set -u

node=${O:-build}/sim/netdam-node
mem=${O:-build}/host-driver/netdam-mem
dir=$(mktemp -d) || exit 1
pids=
trap 'for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

tests=0
report() { # report STATUS NAME
    tests=$((tests + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tests - $2"
    else
        echo "not ok $tests - $2"
        sed 's/^/# /' "$dir"/out "$dir"/err 2>/dev/null
    fi
}

# refused STATUS WORD ARGUMENT...: exits with STATUS, one line on stderr that contains WORD, nothing on stdout.
refused() {
    wanted=$1
    word=$2
    shift 2
    timeout 20 "$node" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    [ "$status" -eq "$wanted" ] && [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -qF -e "$word" "$dir/err"
    report $? "exits with $wanted and names $word: $*"
}

# start NAME ARGUMENT...: runs a node; its output goes to $dir/NAME; sets pid. Fails if no ready line comes in 20 s.
start() {
    name=$1
    shift
    : >"$dir/$name"
    "$node" "$@" >"$dir/$name" 2>"$dir/err" &
    pid=$!
    pids="$pids $pid"
    tries=0
    until grep -q ready "$dir/$name"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 400 ] || ! kill -0 "$pid" 2>/dev/null; then
            return 1
        fi
        sleep 0.05
    done
}

# ends SIGNAL STATUS: signals the node that was started last and looks at its exit status.
ends() {
    kill "-$1" "$pid"
    wait "$pid" 2>/dev/null
    [ $? -eq "$2" ]
}

refused 2 --listen --listen nowhere
refused 2 --listen --listen 127.0.0.1
refused 2 --listen --listen 127.0.0.1:65536
refused 2 --listen --listen 0.0.0.0:0
refused 2 --listen --listen 255.255.255.255:0
refused 2 --listen --listen 224.0.0.1:0
refused 2 --memif --memif "$dir/x,secret="
refused 2 --listen --listen localhost:0
refused 2 --memory --memory 0
refused 2 --memory --memory 5K
refused 2 --memory --memory 4k
refused 2 --memory --memory -4K
refused 2 --memory --memory 4KB
refused 2 --memory --memory 99999999999T
refused 2 --key --key 0
refused 2 --key --key DEADBEEF
refused 2 --key --key 0x12345678901234567
refused 2 --key --key 18446744073709551616
refused 2 --key --key 0xg
refused 2 --key --key ''
for wrong in 7 7:00:encrypt 0:00112233445566778899aabbccddeeff:encrypt 7:00112233445566778899aabbccddeeff:none \
    4294967296:00112233445566778899aabbccddeeff:encrypt x:00112233445566778899aabbccddeeff:encrypt; do
    refused 2 --tenant --tenant "$wrong"
done
refused 2 --permissions --permissions rx
refused 2 --permissions --permissions ''
refused 2 --mtu --mtu 1499
refused 2 --mtu --mtu 9001
refused 2 --forward --forward 10.0.0.0
refused 2 --forward --forward 10.0.0.0/33
refused 2 --forward --forward lan/8
refused 2 --forward --forward 10.1.0.0/16 --forward 10.2.0.0/16 --forward 10.3.0.0/16 --forward 10.4.0.0/16
refused 2 --wire --wire /tmp/end
refused 2 --wire --wire :/tmp/end
refused 1 /nowhere/end --listen 10.0.0.1:20036 --wire /nowhere/end:/nowhere/other
refused 2 --memif --memif ,role=server
refused 2 --memif --memif /tmp/end,role=master
refused 2 --memif --memif /tmp/end,id=4G
refused 2 --memif --memif /tmp/end,secret=longer-than-24-characters
refused 2 --memif --memif /tmp/end,server
refused 2 --memif --memif "/tmp/$(printf %0200d 0)"
refused 2 --memif --memif /tmp/end --wire /tmp/left:/tmp/right
refused 1 /nowhere/end --listen 10.0.0.1:20036 --memif /nowhere/end,role=server
refused 2 bogus --bogus
refused 2 memory --memory
refused 2 extra extra
refused 1 192.0.2.1:0 --listen 192.0.2.1:0
refused 2 --limit --limit lanes
refused 2 --limit --limit lanes=0
refused 2 --limit --limit lane=1
refused 2 --limit --limit lanes=4294967296
refused 1 lanes --listen 127.0.0.1:0 --limit lanes=100000000
for wrong in '' at at=1 at=x bytes=0 key=0 permissions=x load= pattern=a pattern=zz size=1 bytes=4K,; do
    refused 2 --region --region "$wrong"
done
refused 2 --region --memory 4K --region bytes=8K
refused 2 --region --memory 4K --region bytes=4K --region bytes=8
refused 2 --region --memory 4K --region at=4K
refused 2 --region --key 1 --region bytes=4K
refused 2 --nodes --nodes 0
refused 2 --nodes --nodes 4097
refused 2 --nodes --nodes many
refused 2 --nodes --nodes 2 --node a
refused 2 --listen --nodes 2 --listen 127.0.0.1:65535
refused 2 --listen --nodes 2 --step address --listen 255.255.255.255:1
refused 2 --step --step key
refused 2 --node --node ''
refused 2 --node --node 'a b'
refused 2 --node --node a --node a
refused 2 --node --node 12345678901234567890123456789012
refused 2 'b: --region' --memory 4K --node a --node b --region at=4K
refused 1 'b: --listen 192.0.2.1:0' --listen 127.0.0.1:0 --node a --node b --listen 192.0.2.1:0
refused 1 /nonexistent/status --listen 127.0.0.1:0 --status /nonexistent/status
refused 1 /nonexistent --listen 127.0.0.1:0 --load /nonexistent/file
refused 1 "$dir" --listen 127.0.0.1:0 --load "$dir"
head -c 4097 /dev/zero >"$dir/large"
refused 1 "$dir/large" --listen 127.0.0.1:0 --memory 4K --load "$dir/large"
refused 1 "$dir/large" --listen 127.0.0.1:0 --memory 8K --region "bytes=4K,load=$dir/large"

timeout 20 "$node" --help >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ] && grep -q -e '--listen' "$dir/out"
report $? "--help prints the options"
timeout 20 "$node" --version >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ] && grep -q '^netdam-node: specification' "$dir/out"
report $? "--version prints versions"

# Its port is asked for again further on: no other test is given ports of this address.
again=127.0.0.8
start first --listen $again:0 --memory 4M --key 0xDEADBEEF --mtu 9000 &&
    grep -qE '^netdam-node ready address=127\.0\.0\.8 port=[1-9][0-9]* bytes=4194304 key=0x00000000deadbeef mtu=9000$' "$dir/first"
report $? "the ready line tells address, port, bytes, key and MTU"
port=$(sed -n 's/.* port=\([0-9]*\) .*/\1/p' "$dir/first")
refused 1 "$again:$port" --listen "$again:$port"
ends TERM 0 && [ "$(wc -l <"$dir/first")" -eq 1 ]
report $? "SIGTERM ends it with status 0 and without a word"

start decimal --listen 127.0.0.1:0 --memory 4K --key 1234 && grep -q ' key=0x00000000000004d2 ' "$dir/decimal" && ends INT 0
report $? "a key without 0x is decimal"

start second --listen "$again:$port" --memory 64K
report $? "the port is free again at once"
ends INT 0
report $? "SIGINT ends it with status 0"

start unmerged --listen "$again:$port" --no-merge --no-payload-crc && ends INT 0
report $? "switches are taken"

start third --listen "$again:$port" --counters
report $? "defaults are enough"
ends HUP 0 && grep -q '^RX_FRAMES 0$' "$dir/third" && grep -q '^DATAGRAMS_TAKEN 0$' "$dir/third"
report $? "--counters prints counters at the end"

start keys --listen 127.0.0.1:0 --memory 4K && ends KILL 137
start keys2 --listen 127.0.0.1:0 --memory 4K && ends KILL 137
one=$(sed -n 's/.*key=0x\([0-9a-f]*\) .*/\1/p' "$dir/keys")
two=$(sed -n 's/.*key=0x\([0-9a-f]*\) .*/\1/p' "$dir/keys2")
[ "${#one}" -eq 16 ] && [ "${#two}" -eq 16 ] && [ "$one" != "$two" ]
report $? "keys are drawn anew"

# reach COMMAND ARGUMENT...: netdam-mem towards the node that was started as $name.
reach() {
    command=$1
    shift
    port=$(sed -n 's/.* port=\([0-9]*\) .*/\1/p' "$dir/$name")
    key=$(sed -n 's/.* key=\(0x[0-9a-f]*\) .*/\1/p' "$dir/$name")
    timeout 60 "$mem" "$command" --peer "127.0.0.1:$port" --key "$key" "$@" 2>"$dir/out"
}

head -c 300001 /dev/urandom >"$dir/file"
start load --listen 127.0.0.1:0 --memory 512K --load "$dir/file" --permissions r
report $? "a file is loaded"
reach read --length 300001 "$dir/back" && cmp "$dir/file" "$dir/back"
report $? "peers read the file"
reach compare --address 300001 --length 1000 /dev/zero
report $? "what follows it is zero"
! reach write "$dir/file" && grep -q NO_PERMISSION "$dir/out"
report $? "a write without permission is refused"
! reach fetch-add --value 1 && grep -q NO_PERMISSION "$dir/out"
report $? "an atomic without permission is refused"
! reach read --address 512K --length 1 "$dir/back" && grep -q BAD_RANGE "$dir/out"
report $? "a read beyond the memory is refused"
reach read --length 300001 "$dir/back" && cmp "$dir/file" "$dir/back" && ends TERM 0
report $? "none of that has changed the memory"

start trace --listen 127.0.0.1:0 --memory 4K --trace
reach fetch-add --value 1 >"$dir/old" && [ "$(cat "$dir/old")" = 0 ] && ends TERM 0 &&
    grep -q '^<- REQUEST  FETCH_ADD.U64 ctx ' "$dir/trace" && grep -q '^-> RESPONSE FETCH_ADD.U64 OK ctx ' "$dir/trace"
report $? "--trace prints datagrams by name"

# A region that belongs to a tenant.
tenant=7:00112233445566778899aabbccddeeff
start tenant --listen 127.0.0.1:0 --memory 4M --tenant "$tenant:encrypt" --counters
reach write --tenant "$tenant:encrypt" "$dir/file" && reach read --tenant "$tenant:encrypt" --length 300001 "$dir/back" &&
    cmp "$dir/file" "$dir/back"
report $? "a tenant's key opens its region"
! reach read --length 1 "$dir/back" && grep -q BAD_KEY "$dir/out"
report $? "without it there is no such region"
ends TERM 0 && grep -q '^TENANT_SENDERS [1-9]' "$dir/tenant"
report $? "and the node has counted its senders"

# Two nodes on one wire, with addresses that the kernel does not have.
start left --listen 10.9.0.1:20036 --key 1 --wire "$dir/left.sock:$dir/right.sock"
"$mem" fill --device "udp:10.9.0.2:20036,wire=$dir/right.sock:$dir/left.sock" --peer 10.9.0.1 --key 1 --value 90 \
    --length 4096 >"$dir/wire" 2>&1
report $? "a node on a wire of unix datagrams is reached"
refused 1 "$dir/left.sock" --listen 10.9.0.3:20036 --wire "$dir/left.sock:$dir/right.sock"
[ -e "$dir/left.sock" ] && ends KILL 137 && [ -e "$dir/left.sock" ] &&
    start left --listen 10.9.0.1:20036 --key 1 --wire "$dir/left.sock:$dir/right.sock"
report $? "a node takes the end of the wire of one that was killed"
echo text >"$dir/text"
refused 1 "$dir/text" --listen 10.9.0.3:20036 --wire "$dir/text:$dir/right.sock"
[ "$(cat "$dir/text")" = text ]
report $? "but nothing else that has the name"
ends TERM 0 && [ ! -e "$dir/left.sock" ]
report $? "the end of the wire is removed"

refused 1 'or it is no socket' --listen 10.9.0.3:20036 --wire "$dir/text:$dir/right.sock"
refused 1 'or it is no socket' --listen 10.9.0.3:20036 --memif "$dir/text,role=server"
refused 1 'or it is no socket' --listen 10.9.0.3:20036 --memif "$dir,role=server"

# And on a memif link, of which either may be the server.
for role in server client; do
    other=$([ $role = server ] && echo client || echo server)
    start memif --listen 10.9.0.1:20036 --key 1 --memif "$dir/link.sock,role=$role,id=5"
    "$mem" fill --device "udp:10.9.0.2:20036,memif=$dir/link.sock,memif-role=$other,memif-id=5" --peer 10.9.0.1 --key 1 \
        --value 90 --length 4096 >"$dir/wire" 2>&1 && ends TERM 0 && [ ! -e "$dir/link.sock" ]
    report $? "a node is reached as the $role of a memif link, whose socket is removed at the end"
done

start jumbo --listen 127.0.0.1:0 --mtu 9000 --counters
reach write --device udp:127.0.0.1:0,mtu=9000 "$dir/file" && ends TERM 0 &&
    [ "$(sed -n 's/^REQUESTS_EXECUTED //p' "$dir/jumbo")" -lt 100 ]
report $? "--mtu 9000 takes fewer packets"

start json --listen 127.0.0.1:0 --json --counters && ends TERM 0 &&
    /usr/bin/python3 -c 'import json, sys
ready, counters = [json.loads(line) for line in sys.stdin]
assert ready["event"] == "ready" and ready["bytes"] == 64 << 20 and ready["port"] > 0 and int(ready["key"], 16) > 0
assert counters["event"] == "counters" and counters["RX_FRAMES"] == 0 and counters["MAIN_MEMORY_BYTES"] == 0
' <"$dir/json" 2>"$dir/err"
report $? "--json prints the same as JSON"

echo "1..$tests"
