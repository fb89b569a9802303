#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An installed tree is complete: a program outside the repository builds by pkg-config alone, shared and static, and runs
# against the installed node; so do the installed tools (TAP).
# shellcheck disable=SC2317 # check calls the functions
set -uo pipefail
root=$(realpath "$(dirname "$0")/../..")
export LC_ALL=C.UTF-8
work=$(mktemp -d)
node=
cleanup() {
    if [ -n "$node" ]; then
        kill "$node" 2>/dev/null
        wait "$node" 2>/dev/null
    fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

number=0
failed=0
check() {
    local name=$1 result=ok
    shift
    number=$((number + 1))
    if ! "$@" >"$work/log" 2>&1; then
        result='not ok'
        failed=1
        sed 's/^/# /' "$work/log"
    fi
    echo "$result $number - $name"
}

stage=$work/stage
prefix=/opt/netdam
tree=$stage$prefix
outside=$work/outside
mkdir "$outside"
cp "$root/host-driver/examples/first_program.c" "$outside/"
cd "$outside" || exit 1

make_install() {
    # The make that runs this test has set these for itself.
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS nice make -C "$root" --no-print-directory O="${O:-build}" install "$@"
}
pkg() {
    PKG_CONFIG_LIBDIR=$tree/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage pkg-config "$@"
}
build_shared() {
    # shellcheck disable=SC2046
    gcc -std=c11 -D_GNU_SOURCE -Wall -Werror first_program.c -o shared $(pkg --cflags --libs netdam)
}
build_cxx() {
    printf '#include <netdam.h>\nint main() { return netdam_version() == nullptr; }\n' >cxx.cc
    # shellcheck disable=SC2046
    g++ -Wall -Werror cxx.cc -o cxx $(pkg --cflags --libs netdam) && LD_LIBRARY_PATH=$tree/lib ./cxx
}
build_static() {
    # shellcheck disable=SC2046
    gcc -std=c11 -D_GNU_SOURCE -Wall -Werror -static first_program.c -o static $(pkg --static --cflags --libs netdam)
}
needs_the_soname() {
    readelf -d shared | grep -F 'NEEDED' | grep -F '[libnetdam.so.0]'
}
resolved() {
    LD_LIBRARY_PATH=$tree/lib ldd shared | grep -F "$tree/lib/libnetdam.so.0"
}
links_lead_to_the_library() {
    [ "$(realpath "$tree/lib/libnetdam.so")" = "$(realpath "$tree/lib/libnetdam.so.0")" ] &&
        [ -f "$tree/lib/libnetdam.so.$(pkg --modversion netdam)" ]
}
pc_names_the_prefix() {
    grep -qx "prefix=$1" "$2/lib/pkgconfig/netdam.pc" && ! grep -F -e "$work" -e "$root" "$2/lib/pkgconfig/netdam.pc"
}
says_hello() {
    LD_LIBRARY_PATH=$tree/lib "$@" udp:127.0.0.1:0 "127.0.0.1:$port" 0x1234 | tee out && grep -qx 'Hello, memory!' out
}
read_back() {
    "$tree/bin/netdam-mem" read --peer "127.0.0.1:$port" --key 0x1234 --length 14 >out && cmp out <(printf 'Hello, memory!')
}
man_page() {
    [ -f "$tree/share/man/man1/$1.1" ] || [ -f "$tree/share/man/man8/$1.8" ] || { echo "no page $1"; return 1; }
}
pages() {
    local program
    [ -f "$tree/share/man/man3/netdam_post.3" ] && [ -f "$tree/share/man/man3/netdam_wait.3" ] || return 1
    for program in "$tree"/bin/*; do
        man_page "$(basename "$program")" || return 1
        "$program" --version || return 1
    done
}
only_there() {
    [ "$(ls "$stage")" = opt ] && [ "$(ls "$stage/opt")" = netdam ]
}

echo 1..15
check 'installs' make_install DESTDIR="$stage" PREFIX="$prefix"
check 'below DESTDIR and PREFIX only' only_there
check "the .pc names the prefix and nothing of where it was built" pc_names_the_prefix "$prefix" "$tree"
check 'the links lead to the library' links_lead_to_the_library
check 'a program builds with pkg-config' build_shared
check 'it asks for the library by its soname' needs_the_soname
check 'and gets the installed one' resolved
check 'a program builds statically with pkg-config --static' build_static
check 'so does one in C++' build_cxx

"$tree/bin/netdam-node" --listen 127.0.0.1:0 --memory 4M --key 0x1234 >ready &
node=$!
for _ in $(seq 600); do
    grep -q ready ready && break
    sleep 0.1
done
port=$(sed -n 's/.* port=\([0-9]*\) .*/\1/p' ready)
check 'it runs against the installed node' says_hello ./shared
check 'as does the static one' says_hello ./static
python_says_hello() {
    LD_LIBRARY_PATH=$tree/lib /usr/bin/python3 "$root/host-driver/examples/ctypes_example.py" udp:127.0.0.1:0 \
        "127.0.0.1:$port" 0x1234 | grep -x 'Hello from Python!'
}
check 'the installed netdam-mem sees what they wrote' read_back
check 'Python finds the installed library' python_says_hello
check 'each installed program has a manual page and tells its version' pages
other() {
    make_install DESTDIR="$stage/other" PREFIX=/usr && pc_names_the_prefix /usr "$stage/other/usr"
}
check 'another prefix is another .pc' other
exit $failed
