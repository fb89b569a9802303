#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cuts the uncompressed ELF kernel out of a bzImage.

A guest under TCG spends most of its boot decompressing; with the ELF file, which has a PVH entry, QEMU starts the
kernel proper at once. Offsets are those of Linux' Documentation/x86/boot.rst ("The real-mode kernel header").
"""

import gzip
import lzma
import struct
import subprocess
import sys


def decompress(payload):
    if payload.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return gzip.decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run(["zstd", "-dc"], input=payload, stdout=subprocess.PIPE, check=True).stdout
    raise ValueError(f"unknown compression, payload starts with {payload[:6].hex()}")


def cut(image):
    if image[0x202:0x206] != b"HdrS":
        raise ValueError("no bzImage: no boot header")
    (version,) = struct.unpack_from("<H", image, 0x206)
    if version < 0x208:
        raise ValueError(f"boot protocol {version:#x} is older than 2.08 and names no payload")
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start : start + length]
    if len(payload) != length:
        raise ValueError("the file is shorter than its boot header says")
    # The build appends the size of the uncompressed kernel.
    (size,) = struct.unpack("<I", payload[-4:])
    kernel = decompress(payload[:-4])
    if len(kernel) != size:
        raise ValueError(f"decompressed to {len(kernel)} bytes instead of {size}")
    if not kernel.startswith(b"\x7fELF\x02\x01"):
        raise ValueError("the payload is no 64-bit little-endian ELF file")
    return kernel


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: cut_vmlinux.py BZIMAGE VMLINUX")
    try:
        with open(sys.argv[1], "rb") as file:
            kernel = cut(file.read())
    except (OSError, ValueError, lzma.LZMAError, subprocess.CalledProcessError) as error:
        sys.exit(f"cut_vmlinux: {sys.argv[1]}: {error}")
    with open(sys.argv[2], "wb") as file:
        file.write(kernel)


if __name__ == "__main__":
    main()
