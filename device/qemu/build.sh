#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Fetches Debian's QEMU source, puts device/ into it and builds build/qemu/qemu-system-x86_64. Each step that is done
# is skipped; one that was interrupted starts over (fetch, unpack, configure) or goes on (compile).
#   build.sh            use the QEMU that is there, or fetch the revision that apt offers for this release
#   build.sh --update   ask apt for the revision even if one is there
set -euo pipefail

root=$(realpath "$(dirname "$0")/../..")
build=$root/build

configure_args=(
    --without-default-features
    --target-list=x86_64-softmmu
    --meson=/usr/bin/meson
    --enable-tcg
    --enable-kvm
    --enable-plugins
    --enable-slirp
    --enable-fdt=system
    --enable-vhost-kernel
    --enable-vhost-net
    --enable-vhost-user
    --firmwarepath=/usr/share/qemu:/usr/share/seabios
    --disable-install-blobs
    --disable-debug-info
    --disable-werror
    --extra-cflags=-Werror=implicit-function-declaration
)

fail() {
    echo "qemu: $*" >&2
    exit 1
}

# run WHAT COMMAND...: output goes to the log; when the command fails, what it said last is shown.
run() {
    local what=$1 start
    shift
    start=$(($(stat -c %s "$log") + 1))
    if ! "$@" >>"$log" 2>&1; then
        tail -c +"$start" "$log" | tail -n 40 >&2
        fail "$what failed (log: $log)"
    fi
}

release() {
    (. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")
}

# The revision apt would install. qemu-system-data is built from the same source and is a package for every
# architecture, so its candidate is the source's version, with the user's pins and backports settings respected.
choose_version() {
    local version

    version=$(apt-cache policy qemu-system-data 2>/dev/null | awk '$1 == "Candidate:" { print $2; exit }')
    if [ -z "$version" ] || [ "$version" = "(none)" ]; then
        fail "apt knows no qemu-system-data: run .ci/setup first"
    fi
    if ! apt-cache showsrc --only-source qemu 2>/dev/null | grep -x "Version: $version" >/dev/null; then
        fail "apt has no source of qemu $version: run .ci/setup first (it adds a deb-src entry)"
    fi
    echo "$version"
}

# fetch_source VERSION: leaves $tree/src; the rename at the end says that it is whole.
fetch_source() {
    local version=$1 dsc

    rm -rf "$tree/src.part"
    mkdir -p "$tree/download"
    echo "qemu: fetching the source of qemu $version"
    # apt verifies hashes against the signed index, of files that are there already too.
    if ! (cd "$tree/download" &&
          apt-get source -q --download-only --only-source -o APT::Sandbox::User=root "qemu=$version") >>"$log" 2>&1; then
        fail "apt-get source qemu=$version failed: $(grep -a '^E:' "$log" | tail -n 1) (no network? log: $log)"
    fi
    dsc=$(ls "$tree"/download/qemu_*.dsc)
    run "unpacking $dsc" dpkg-source --no-check --extract "$dsc" "$tree/src.part"
    mv "$tree/src.part" "$tree/src"
    # dpkg-source leaves a link to the archive beside what it unpacked.
    rm -rf "$tree/download" "$tree"/qemu_*.orig.tar.xz
}

# A build directory holds absolute paths and the options it was made with: when either differs, it is made anew.
configure() {
    local stamp

    stamp=$(printf '%s\n' "$tree" "${configure_args[@]}")
    if [ -f "$tree/out/netdam-configured" ] && [ "$(cat "$tree/out/netdam-configured")" = "$stamp" ]; then
        return
    fi
    echo "qemu: configuring"
    rm -rf "$tree/out"
    mkdir -p "$tree/out"
    cd "$tree/out"
    run configure env PYTHON=/usr/bin/python3 "$tree/src/configure" "${configure_args[@]}"
    cd "$root"
    echo "$stamp" >"$tree/out/netdam-configured"
}

compile() {
    if [ ! -x "$tree/out/qemu-system-x86_64" ]; then
        echo "qemu: compiling, some minutes (log: $log)"
    fi
    run build ninja -C "$tree/out" qemu-system-x86_64
}

# Nothing of the caller's build (make's variables, compiler flags, another python in PATH) may reach QEMU's.
unset MAKEFLAGS MFLAGS MAKELEVEL CC CXX CPP LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS O PYTHON PYTHONPATH PKG_CONFIG_PATH
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

case ${1:-} in
'' | --update) ;;
*)
    echo "usage: build.sh [--update]" >&2
    exit 2
    ;;
esac

mkdir -p "$build"
exec 9>"$build/qemu.lock"
flock 9

tree=
if [ "${1:-}" != --update ] && [ -e "$build/qemu/netdam-release" ] &&
   [ "$(cat "$build/qemu/netdam-release")" = "$(release)" ]; then
    tree=$(dirname "$(realpath "$build/qemu")")
fi
if [ -z "$tree" ]; then
    version=$(choose_version)
    tree=$build/qemu-${version#*:}
fi
mkdir -p "$tree"
log=$tree/build.log
touch "$log"
if [ ! -d "$tree/src" ]; then
    fetch_source "${version:-$(choose_version)}"
fi
run "integration of device/" bash "$root/device/qemu/integrate.sh" "$tree/src"
configure
compile
if [ ! -f "$tree/out/netdam-release" ]; then
    release >"$tree/out/netdam-release"
fi
link=$(basename "$tree")/out
if [ "$(readlink "$build/qemu" || true)" != "$link" ]; then
    ln -sfn "$link" "$build/qemu"
fi
