#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fetches Debian's kernel package (the one with SoftRoCE and VFIO, not the cloud one) and leaves build/guest/vmlinux,
# build/guest/vmlinuz and build/guest/modules. The package is unpacked, not installed: no hook runs, no root is needed.
#   kernel.sh            use the kernel that is there, or fetch the one apt offers
#   kernel.sh --update   ask apt even if one is there
set -euo pipefail
here=$(realpath "$(dirname "$0")")
guest=$(realpath "$here/../..")/build/guest
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

fail() {
    echo "guest kernel: $*" >&2
    exit 1
}

mkdir -p "$guest"
exec 9>"$guest/kernel.lock"
flock 9
if [ "${1:-}" != --update ] && [ -e "$guest/vmlinux" ] && [ -e "$guest/modules/modules.dep" ]; then
    exit 0
fi

package=$(apt-cache depends --important linux-image-amd64 2>/dev/null |
          awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')
[ -n "$package" ] || fail "apt knows no linux-image-amd64: run .ci/setup first"
version=$(apt-cache policy "$package" | awk '$1 == "Candidate:" { print $2 }')
release=${package#linux-image-}
tree=$guest/linux-$version

if [ ! -d "$tree" ]; then
    rm -rf "$tree.part" "$guest/download"
    mkdir -p "$tree.part" "$guest/download"
    echo "guest kernel: fetching $package $version"
    (cd "$guest/download" && apt-get download -q -o APT::Sandbox::User=root "$package=$version") >"$guest/kernel.log" 2>&1 ||
        fail "apt-get download $package failed: $(grep -a '^E:' "$guest/kernel.log" | tail -n 1) (no network?)"
    # Drivers for hardware that no guest of ours can have would make up most of the 400 MB.
    dpkg-deb --fsys-tarfile "$guest/download/${package}_"*.deb |
        tar -x -C "$tree.part" --exclude='*/sound' --exclude='*/drivers/gpu' --exclude='*/drivers/media' \
            --exclude='*/wireless' --exclude='*/drivers/iio' --exclude='*/drivers/staging' --exclude='*/drivers/hid' \
            --exclude='*/drivers/input' --exclude='*/drivers/scsi' --exclude='*/drivers/usb' --exclude='*/fs/xfs' \
            --exclude='*/fs/btrfs' --exclude='*/fs/ocfs2' --exclude='*/bluetooth' --exclude='*/drivers/isdn' \
            ./boot ./lib/modules ||
        fail "cannot unpack $package"
    depmod -b "$tree.part" "$release" 2>>"$guest/kernel.log" || fail "depmod failed (log: $guest/kernel.log)"
    /usr/bin/python3 "$here/cut_vmlinux.py" "$tree.part/boot/vmlinuz-$release" "$tree.part/vmlinux"
    mv "$tree.part" "$tree"
    rm -rf "$guest/download"
fi
ln -sfn "linux-$version/lib/modules/$release" "$guest/modules"
ln -sfn "linux-$version/boot/vmlinuz-$release" "$guest/vmlinuz"
ln -sfn "linux-$version/vmlinux" "$guest/vmlinux"
