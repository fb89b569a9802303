#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The dissector's tables are what the specification headers say (TAP).
fresh=$(mktemp) || exit 1
trap 'rm -f "$fresh"' EXIT
echo 1..1
if "${O:-build}/docs/gen/lua" "$fresh" && cmp "$fresh" docs/wireshark/netdam_tables.lua; then
    echo "ok 1 - docs/wireshark/netdam_tables.lua is what the headers say"
else
    echo "not ok 1 - docs/wireshark/netdam_tables.lua is what the headers say"
    echo "# run make docs"
    exit 1
fi
