#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The demonstration passes without privileges, leaves no process and no file, and tells when a step fails. Prints TAP.
set -u

build=${O:-build}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp" "$dir/broken" "$dir/broken/sim" "$dir/broken/host-driver"
chmod 755 "$dir"
chmod 777 "$dir/tmp"

tests=0
report() { # report STATUS NAME
    tests=$((tests + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tests - $2"
    else
        echo "not ok $tests - $2"
        sed 's/^/# /' "$dir/out"
    fi
}

# The output names both nodes, and neither process is there any more.
nodes_are_gone() {
    pids=$(sed -n 's/.*node [12], pid \([0-9]*\):.*/\1/p' "$dir/out")
    [ "$(echo "$pids" | wc -w)" -eq 2 ] || return 1
    for pid in $pids; do
        ! kill -0 "$pid" 2>/dev/null || return 1
    done
}

as_nobody=
if [ "$(id -u)" -eq 0 ]; then
    as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'
fi

TMPDIR="$dir/tmp" O="$build" timeout 100 $as_nobody sh sim/demo.sh >"$dir/out" 2>&1
status=$?
[ "$status" -eq 0 ] && [ "$(tail -n 1 "$dir/out")" = "demo: passed" ]
report $? "the demonstration passes without privileges"

nodes_are_gone
report $? "both nodes have ended"
[ -z "$(ls -A "$dir/tmp")" ]
report $? "no file is left"

printf '#!/bin/sh\necho no node today >&2\nexit 1\n' >"$dir/broken/sim/netdam-node"
chmod +x "$dir/broken/sim/netdam-node"
TMPDIR="$dir/tmp" O="$dir/broken" timeout 100 sh sim/demo.sh >"$dir/out" 2>&1
[ $? -eq 1 ] && grep -q 'demo: FAILED: node 1 does not start: no node today' "$dir/out"
report $? "a node that does not start is told"

# Nodes that work, and a tool that does nothing.
cp "$build/sim/netdam-node" "$dir/broken/sim/netdam-node"
printf '#!/bin/sh\nexit 0\n' >"$dir/broken/host-driver/netdam-mem"
chmod +x "$dir/broken/host-driver/netdam-mem"
TMPDIR="$dir/tmp" O="$dir/broken" timeout 100 sh sim/demo.sh >"$dir/out" 2>&1
[ $? -eq 1 ] && grep -q 'demo: FAILED: the file came back different' "$dir/out"
report $? "a file that does not come back is told"
nodes_are_gone
report $? "the nodes have ended after a failure, too"

echo "1..$tests"
