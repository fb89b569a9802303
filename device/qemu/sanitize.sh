#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Compiles the device's files once more under AddressSanitizer and UndefinedBehaviorSanitizer and links them with the
# rest of the QEMU that is built already: build/san/qemu/qemu-system-x86_64. For firmware images of `make SAN=...`.
set -euo pipefail

root=$(realpath "$(dirname "$0")/../..")
out=$root/build/san/qemu
flags='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

mkdir -p "$out"
exec 9>"$root/build/san/qemu.lock"
flock 9
cd "$(realpath "$root/build/qemu")"
ninja -t commands qemu-system-x86_64 >"$out/commands"

# Command lines of one archive's members, and of the program.
objects=()
while IFS= read -r command; do
    object=$(sed -n 's|.* -o hw/netdam/libnetdam-device.a.p/\([^ ]*\.o\) .*|\1|p' <<<"$command")
    command=${command// hw\/netdam\/libnetdam-device.a.p\// $out/}
    eval "$command $flags"
    objects+=("$out/$object")
done < <(grep -F -- '-o hw/netdam/libnetdam-device.a.p/' "$out/commands")
if [ ${#objects[@]} -eq 0 ]; then
    echo "sanitize: the QEMU in build/qemu has no NetDAM device" >&2
    exit 1
fi
link=$(grep -F -- ' -o qemu-system-x86_64 ' "$out/commands")
link=${link/ -o qemu-system-x86_64 / -o $out/qemu-system-x86_64 }
link=${link/ hw\/netdam\/libnetdam-device.a / ${objects[*]} }
eval "$link $flags"
