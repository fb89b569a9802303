#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""libnetdam from Python, without a binding: writes into a node's memory, reads back, counts there.

    ctypes_example.py DEVICE PEER KEY        e.g. udp:127.0.0.1:0 127.0.0.1:20036 0x1234

LD_LIBRARY_PATH says where libnetdam.so.0 is, unless it is installed where the system looks.
"""

import ctypes
import os
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_uint, c_uint32, c_uint64, c_void_p

FOREVER = 2**64 - 1
PERMISSION_ALL = 0x1F
TYPE_U64 = 0x07


class Remote(Structure):
    _fields_ = [("peer", c_void_p), ("key", c_uint64), ("address", c_uint64)]


class Local(Structure):
    _fields_ = [("region", c_void_p), ("address", c_uint64)]


# Handles are pointers: without argument types ctypes would cut them to 32 bits.
FUNCTIONS = {
    "netdam_open": (c_int, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "netdam_close": (None, [c_void_p]),
    "netdam_alloc": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(c_uint64)]),
    "netdam_region_create": (c_int, [c_void_p, c_uint64, c_uint64, c_uint, c_uint64, POINTER(c_void_p)]),
    "netdam_region_pointer": (c_void_p, [c_void_p]),
    "netdam_queue_create": (c_int, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "netdam_peer_open": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "netdam_write": (c_int, [c_void_p, Remote, Local, c_uint64, c_uint64]),
    "netdam_read": (c_int, [c_void_p, Local, Remote, c_uint64, c_uint64]),
    "netdam_fetch_add": (c_int, [c_void_p, c_uint, Remote, c_uint64, POINTER(c_uint64), c_uint64]),
    "netdam_status_text": (c_char_p, [c_uint]),
}


def load():
    library = ctypes.CDLL("libnetdam.so.0")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    netdam = load()

    def done(result):
        """Raises what the library says; 0 is success, below it an errno value, above it a status."""
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        if result > 0:
            raise RuntimeError(netdam.netdam_status_text(result).decode())

    device, region, queue, peer = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    offset, old = c_uint64(), c_uint64()
    done(netdam.netdam_open(sys.argv[1].encode(), None, byref(device)))
    try:
        done(netdam.netdam_alloc(device, 4096, 0, byref(offset)))
        done(netdam.netdam_region_create(device, offset, 4096, PERMISSION_ALL, 0, byref(region)))
        done(netdam.netdam_queue_create(device, None, byref(queue)))
        done(netdam.netdam_peer_open(device, sys.argv[2].encode(), byref(peer)))
        # On-board memory as a bytearray would be: no copy in between.
        memory = (ctypes.c_char * 4096).from_address(netdam.netdam_region_pointer(region))
        there = Remote(peer, int(sys.argv[3], 0), 64)

        text = b"Hello from Python!"
        memory[: len(text)] = text
        done(netdam.netdam_write(queue, there, Local(region, 0), len(text), FOREVER))
        done(netdam.netdam_read(queue, Local(region, 2048), there, len(text), FOREVER))
        print(memory[2048 : 2048 + len(text)].decode())

        counter = Remote(peer, there.key, 0)
        for _ in range(3):
            done(netdam.netdam_fetch_add(queue, TYPE_U64, counter, 1, byref(old), FOREVER))
            print("the counter was", old.value)
    except (OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        netdam.netdam_close(device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
