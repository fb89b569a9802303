#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs library, headers, programs and manual pages below $DESTDIR$PREFIX. Started by `make install`.
#   install.sh BUILD PROGRAM...
set -eu
here=$(dirname "$0")
build=$1
shift
: "${PREFIX:=/usr/local}" "${DESTDIR:=}"
: "${LIBDIR:=$PREFIX/lib}" "${INCLUDEDIR:=$PREFIX/include}" "${BINDIR:=$PREFIX/bin}" "${MANDIR:=$PREFIX/share/man}"
version=$(sed -n 's/^#define VERSION "\(.*\)"$/\1/p' "$here/src/device.c")
[ -n "$version" ]
lib=$DESTDIR$LIBDIR
include=$DESTDIR$INCLUDEDIR
bin=$DESTDIR$BINDIR
man=$DESTDIR$MANDIR

install -d "$lib/pkgconfig" "$include/netdam" "$bin" "$man/man1" "$man/man3" "$man/man8"

install -m 755 "$build/host-driver/libnetdam.so.0" "$lib/libnetdam.so.$version"
ln -sf "libnetdam.so.$version" "$lib/libnetdam.so.0"
ln -sf libnetdam.so.0 "$lib/libnetdam.so"
# One archive with all that a program needs.
rm -f "$lib/libnetdam.a"
${AR:-ar} -M <<MRI
CREATE $lib/libnetdam.a
ADDLIB $build/host-driver/libnetdam.a
ADDLIB $build/sim/libndsoft.a
ADDLIB $build/firmware/libndfw.a
SAVE
END
MRI
chmod 644 "$lib/libnetdam.a"

install -m 644 "$here"/include/netdam*.h "$include/"
# Not the interface between device and firmware, which is no application's business.
for header in "$here"/../firmware/include/netdam/*.h; do
    if [ "$(basename "$header")" != firmware.h ]; then
        install -m 644 "$header" "$include/netdam/"
    fi
done

# Written here, so that it names the prefix of this installation.
cat >"$lib/pkgconfig/netdam.pc" <<PC
prefix=$PREFIX
libdir=$LIBDIR
includedir=$INCLUDEDIR

Name: netdam
Description: user-space driver of the NetDAM card and of its soft device
Version: $version
Libs: -L\${libdir} -lnetdam
Libs.private: -pthread
Cflags: -I\${includedir}
PC

for program in "$@"; do
    if [ -L "$program" ]; then
        cp -P "$program" "$bin/"
    else
        install -m 755 "$program" "$bin/"
    fi
done

for page in "$here"/man/*.[18]; do
    install -m 644 "$page" "$man/man${page##*.}/"
done
"${PYTHON:-python3}" "$here/man/api.py" "$here/include" "$man/man3"
