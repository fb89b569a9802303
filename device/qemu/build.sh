#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Fetches Debian's QEMU source, puts device/ into it and builds build/qemu/qemu-system-x86_64. Each step that is done
# is skipped; one that was interrupted starts over (fetch, unpack, configure) or goes on (compile).
#   build.sh            use the QEMU that is there, or fetch the revision that apt offers for this release
#   build.sh --update   ask apt for the revision even if one is there
#   build.sh 10         QEMU 10.0, which is Debian 13's, beside the other: build/qemu-10/qemu-system-x86_64
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

    if [ "$link" = qemu-10 ]; then
        version=$(apt-cache "${apt_options[@]}" showsrc --only-source qemu | awk '$1 == "Version:" { print $2; exit }')
        echo "${version:?}"
        return
    fi
    version=$(apt-cache policy qemu-system-data 2>/dev/null | awk '$1 == "Candidate:" { print $2; exit }')
    if [ -z "$version" ] || [ "$version" = "(none)" ]; then
        fail "apt knows no qemu-system-data: run .ci/setup first"
    fi
    if ! apt-cache showsrc --only-source qemu 2>/dev/null | grep -x "Version: $version" >/dev/null; then
        fail "apt has no source of qemu $version: run .ci/setup first (it adds a deb-src entry)"
    fi
    echo "$version"
}

# The source of Debian 13, and for Debian 12 a meson that is new enough. apt gets lists of its own, so that what the
# machine installs stays as it is; the archives' signatures are checked as always.
other_release() {
    local apt=$build/$link-apt suite component=main key=/usr/share/keyrings/debian-archive-keyring.gpg

    if ! /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; then
        fail "QEMU 10 is configured in a virtual environment of python: apt-get install python3-venv"
    fi
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    for suite in 'deb-src trixie' 'deb bookworm-backports'; do
        printf 'Types: %s\nURIs: http://deb.debian.org/debian\nSuites: %s\nComponents: %s\nSigned-By: %s\n\n' \
            "${suite% *}" "${suite#* }" "$component" "$key"
    done >"$apt/netdam.sources"
    apt_options=(-o "Dir::Etc::sourcelist=$apt/netdam.sources" -o Dir::Etc::sourceparts=-
                 -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt" -o Acquire::Languages=none
                 -o APT::Sandbox::User=root)
    # It takes meson as a module of the python it is told of, and has no option for it.
    mapfile -t configure_args < <(printf '%s\n' "${configure_args[@]}" | grep -v '^--meson=')
    configure_args+=(--python=/usr/bin/python3)
    if [ ! -d "$apt/meson" ]; then
        echo "qemu: fetching apt's lists and meson for QEMU 10"
        run 'apt-get update' apt-get "${apt_options[@]}" -q update
        rm -rf "$apt/meson.part"
        (cd "$apt/archives" && run 'apt-get download meson' apt-get "${apt_options[@]}" -q download meson/bookworm-backports)
        run 'unpacking meson' dpkg -x "$(ls "$apt"/archives/meson_*.deb)" "$apt/meson.part"
        mv "$apt/meson.part" "$apt/meson"
    fi
    export PYTHONPATH=$apt/meson/usr/lib/python3/dist-packages
}

# fetch_source VERSION: leaves $tree/src; the rename at the end says that it is whole.
fetch_source() {
    local version=$1 dsc

    rm -rf "$tree/src.part"
    mkdir -p "$tree/download"
    echo "qemu: fetching the source of qemu $version"
    # apt verifies hashes against the signed index, of files that are there already too.
    if ! (cd "$tree/download" && apt-get source "${apt_options[@]}" -q --download-only --only-source \
          -o APT::Sandbox::User=root "qemu=$version") >>"$log" 2>&1; then
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

link=qemu
apt_options=()
case ${1:-} in
'' | --update) ;;
10) link=qemu-10 ;;
*)
    echo "usage: build.sh [--update | 10]" >&2
    exit 2
    ;;
esac

mkdir -p "$build"
exec 9>"$build/$link.lock"
flock 9

log=$build/$link.log
if [ "$link" = qemu-10 ]; then
    : >"$log"
    other_release
fi

tree=
if [ "${1:-}" != --update ] && [ -e "$build/$link/netdam-release" ] &&
   [ "$(cat "$build/$link/netdam-release")" = "$(release)" ]; then
    tree=$(dirname "$(realpath "$build/$link")")
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
out=$(basename "$tree")/out
if [ "$(readlink "$build/$link" || true)" != "$out" ]; then
    ln -sfn "$out" "$build/$link"
fi
