#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# In a guest of peers.py: two ordinary network cards, an RDMA device on each, and then what the runner says is done.
#   peers-inside.sh NUMBER
cd /tmp
ip link set lo up
for index in 0 1; do
    ip link set "eth$index" mtu 9000 up
    ip addr add "10.1.$index.$1/24" dev "eth$index"
    rdma link add "rxe$index" type rxe netdev "eth$index"
done

# Waits until a command succeeds; the runner ends what never does.
soon() {
    until "$@"; do
        sleep 0.1
    done
}

# serve PORT COMMAND...: in the background, until it listens there or has ended.
serve() {
    port=$1
    shift
    "$@" >served 2>&1 &
    until netstat -tln | grep -q ":$port "; do
        kill -0 $! || { cat served && return 1; }
        sleep 0.1
    done
}

# The table index of an address that is carried over UDP and IPv4, as perftest wants it.
gid() {
    for index in 0 1 2 3; do
        case "$(cat "/sys/class/infiniband/$1/ports/1/gids/$index" 2>/dev/null)" in
        0000:0000:0000:0000:0000:ffff:*) echo "$index" && return ;;
        esac
    done
    return 1
}
soon gid rxe0 >/dev/null
soon gid rxe1 >/dev/null
echo ready
while read -r line; do
    eval "$line"
    echo "did $?"
done
