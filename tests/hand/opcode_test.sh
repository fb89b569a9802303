#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Applies the patch of docs/tutorial-add-an-opcode.md to a copy of the tree and follows the tutorial there (TAP).
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
copy=$(mktemp -d "${TMPDIR:-/tmp}/netdam-opcode.XXXXXX") || exit 1
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' HUP INT TERM
unset MAKEFLAGS MFLAGS MAKELEVEL O

if ! tar -C "$top" --exclude=./build --exclude=./.git -c . | tar -C "$copy" -x; then
    echo "Bail out! cannot copy the tree"
    exit 1
fi
cd "$copy" || exit 1
tests/hand/tutorial_test.py tutorial-add-an-opcode.md
