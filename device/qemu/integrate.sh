#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Puts device/ into an unpacked QEMU source tree: one symlink and three one-line inserts, each behind an anchor line.
# Running it again changes nothing, so no file gets a new time stamp and nothing is rebuilt.
set -euo pipefail

if [ $# -ne 1 ] || [ ! -d "$1/hw" ]; then
    echo "usage: integrate.sh QEMU-SOURCE" >&2
    exit 2
fi
src=$(realpath "$1")
device=$(realpath "$(dirname "$0")/..")

# insert FILE ANCHOR LINE: LINE goes right behind the one line that equals ANCHOR.
insert() {
    local file=$src/$1 anchor=$2 line=$3 count

    if grep -qxF -- "$line" "$file" 2>/dev/null; then
        return
    fi
    count=$(grep -cxF -- "$anchor" "$file" 2>/dev/null || true)
    if [ "${count:-0}" != 1 ]; then
        echo "integrate: $1 of this QEMU has ${count:-0} lines '$anchor' (one is needed as the anchor)" >&2
        exit 1
    fi
    awk -v anchor="$anchor" -v line="$line" '{ print } $0 == anchor { print line }' "$file" >"$file.netdam"
    mv "$file.netdam" "$file"
}

insert hw/meson.build "subdir('net')" "subdir('netdam')"
insert hw/Kconfig 'source net/Kconfig' 'source netdam/Kconfig'
insert meson.build "    'hw/net'," "    'hw/netdam',"

# A relative link survives when the whole checkout moves.
link=$(realpath --relative-to="$src/hw" "$device")
if [ "$(readlink "$src/hw/netdam" || true)" != "$link" ]; then
    ln -sfn "$link" "$src/hw/netdam"
fi
