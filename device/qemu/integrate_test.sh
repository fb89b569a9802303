#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The integration script on a miniature source tree: what it inserts, that it changes nothing the second time, and
# that it names an anchor which is missing or not unique (TAP).
set -uo pipefail
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

check() {
    local name=$1 result=ok
    shift
    number=$((number + 1))
    if ! "$@"; then
        result='not ok'
        failed=1
    fi
    echo "$result $number - $name"
}

tree() {
    rm -rf "$work/src"
    mkdir -p "$work/src/hw"
    printf "subdir('mem')\nsubdir('net')\nsubdir('nvme')\n" >"$work/src/hw/meson.build"
    printf 'source mem/Kconfig\nsource net/Kconfig\nsource nvme/Kconfig\n' >"$work/src/hw/Kconfig"
    printf "trace_events_subdirs = [\n    'hw/mem',\n    'hw/net',\n    'hw/net/can',\n]\n" >"$work/src/meson.build"
}

integrate() {
    bash "$here/integrate.sh" "$work/src" >"$work/out" 2>&1
}

all_lines_in() {
    grep -qxF "subdir('netdam')" "$work/src/hw/meson.build" && grep -qxF 'source netdam/Kconfig' "$work/src/hw/Kconfig" &&
        grep -qxF "    'hw/netdam'," "$work/src/meson.build"
}

state() {
    find "$work/src" -printf '%p %T@ %i %l\n' | sort
}

fails_naming() {
    ! integrate && grep -qF -- "$1" "$work/out"
}

echo 1..7
tree
check 'an untouched tree is integrated' integrate
check 'all three lines are in' all_lines_in
check 'hw/netdam leads to the device' test "$work/src/hw/netdam/meson.build" -ef "$here/../meson.build"
before=$(state)
integrate
check 'the second run changes no file' [ "$before" = "$(state)" ]
tree
sed -i '/net.Kconfig/d' "$work/src/hw/Kconfig"
check 'a missing anchor is named' fails_naming "hw/Kconfig of this QEMU has 0 lines 'source net/Kconfig'"
tree
echo "subdir('net')" >>"$work/src/hw/meson.build"
check 'an anchor that is there twice is named' fails_naming "hw/meson.build of this QEMU has 2 lines 'subdir('net')'"
tree
rm "$work/src/meson.build"
check 'a missing file is named' fails_naming 'meson.build of this QEMU has 0 lines'
exit $failed
