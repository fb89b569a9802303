#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Packs an initramfs for a test guest: busybox, PID 1, kernel modules with what they depend on, and files of ours.
#   mkinitramfs.sh [-m MODULE[,MODULE...]]... [-p PROGRAM]... OUT FILE[:GUESTPATH]...
# A FILE goes to /bin/NAME unless GUESTPATH is given. Modules are loaded by PID 1 in the order given. A PROGRAM is one that
# is installed on this machine; it goes to /bin with the libraries that it needs.
# Needs build/guest/init, and build/guest/modules (kernel.sh) when modules are asked for.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
guest=$(realpath "$here/../..")/build/guest
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

fail() {
    echo "mkinitramfs: $*" >&2
    exit 1
}

modules=()
programs=()
while getopts m:p: option; do
    case $option in
    m) IFS=, read -ra names <<<"$OPTARG" && modules+=("${names[@]}") ;;
    p) programs+=("$OPTARG") ;;
    *) fail "usage: mkinitramfs.sh [-m MODULES] [-p PROGRAM]... OUT FILE[:GUESTPATH]..." ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || fail "usage: mkinitramfs.sh [-m MODULES] [-p PROGRAM]... OUT FILE[:GUESTPATH]..."
out=$1
shift
[ -x /bin/busybox ] || fail "no /bin/busybox: install busybox-static"
[ -x "$guest/init" ] || fail "no $guest/init: make build/guest/init"
command -v cpio >/dev/null || fail "no cpio: install cpio"

mkdir -p "$(dirname "$out")"
stage=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage"/{bin,sbin,usr/bin,usr/sbin,dev,proc,sys,tmp,run,etc,lib}
cp "$guest/init" "$stage/init"
cp /bin/busybox "$stage/bin/busybox"
while read -r applet; do
    if [ "$applet" != bin/busybox ]; then
        ln -sf /bin/busybox "$stage/$applet"
    fi
done < <(/bin/busybox --list-full)

# A program that needs a dynamic linker would fail in the guest as "not found", which names the wrong culprit.
for file in "$@"; do
    case $file in
    *:*) path=${file#*:} file=${file%%:*} ;;
    *) path=/bin/$(basename "$file") ;;
    esac
    [ -f "$file" ] || fail "no file $file"
    if readelf -lW "$file" 2>/dev/null | grep INTERP >/dev/null; then
        fail "$file is linked dynamically; the guest has no libraries"
    fi
    mkdir -p "$(dirname "$stage$path")"
    # Replacing a link to busybox must not write through it.
    rm -f "$stage$path"
    cp -p "$file" "$stage$path"
done

for program in "${programs[@]}"; do
    file=$(command -v "$program") || fail "no program $program: .ci/packages says where it comes from"
    rm -f "$stage/bin/$program"
    cp -pL "$file" "$stage/bin/$program"
    # Each library where the program looks for it; the dynamic linker has no arrow.
    while read -r library; do
        mkdir -p "$stage$(dirname "$library")"
        cp -pL "$library" "$stage$library"
    done < <(ldd "$file" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }')
done

if [ ${#modules[@]} -gt 0 ]; then
    base=$(realpath "$guest/modules") || fail "no $guest/modules: tests/guest/kernel.sh"
    # modules.dep lists what a module needs with the deepest dependency last.
    awk -v wanted="${modules[*]}" '
        { name = $1; sub(/:$/, "", name); file = name; sub(/.*\//, "", name); sub(/\.ko.*/, "", name); gsub(/-/, "_", name)
          line[name] = file; for (i = NF; i > 1; i--) { need[name] = need[name] " " $i } }
        function add(path) { if (!(path in seen)) { seen[path] = 1; print path } }
        END { n = split(wanted, list, " ")
              for (i = 1; i <= n; i++) {
                  key = list[i]; gsub(/-/, "_", key)
                  if (!(key in line)) { print "!" list[i]; continue }
                  m = split(need[key], deps, " "); for (j = 1; j <= m; j++) { add(deps[j]) }
                  add(line[key]) } }' "$base/modules.dep" >"$stage/etc/netdam-modules"
    while read -r module; do
        case $module in
        '!'*)
            name=${module#!}
            if grep -E "/${name//[-_]/[-_]}\\.ko$" "$base/modules.builtin" >/dev/null; then
                continue
            fi
            fail "the guest kernel has no module $name"
            ;;
        esac
        mkdir -p "$stage/lib/modules/$(dirname "$module")"
        cp "$base/$module" "$stage/lib/modules/$module"
    done <"$stage/etc/netdam-modules"
    sed -i '/^!/d; s|^|/lib/modules/|' "$stage/etc/netdam-modules"
fi

# Uncompressed: unpacking under TCG costs more than loading a few megabytes.
(cd "$stage" && find . -print0 | sort -z | cpio --null --create --format=newc --owner=0:0 --quiet) >"$stage.cpio"
mv "$stage.cpio" "$out"
