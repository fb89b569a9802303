#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The memory scanner counts markers wherever they lie in a sparse memfd, and allocates nothing in it (TAP)."""

import os
import random
import sys

sys.dont_write_bytecode = True
import boot

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from ndtest import all_checked, check  # noqa: E402

PAGE = 4096
CHUNK = 4 * PAGE
SIZE = 64 * PAGE
MARKER = bytes(range(1, 33))


def count(writes, marker=MARKER):
    """Markers that the scanner sees in a fresh memfd with these (offset, bytes) written into it."""
    fd = os.memfd_create("scan-test")
    try:
        os.ftruncate(fd, SIZE)
        for offset, data in writes:
            os.pwrite(fd, data, offset)
        blocks = os.fstat(fd).st_blocks
        found = boot.scan_memfd(os.getpid(), "scan-test", marker, chunk_bytes=CHUNK)
        if os.fstat(fd).st_blocks != blocks:
            check(False, "the scan itself allocated memory")
        return found
    finally:
        os.close(fd)


def raises(kind, function):
    try:
        function()
    except kind:
        return True
    return False


def main():
    check(count([]) == 0, "an empty memory holds none")
    check(count([(0, MARKER)]) == 1, "at the very beginning")
    check(count([(SIZE - len(MARKER), MARKER)]) == 1, "at the very end")
    check(count([(10 * PAGE + 123, MARKER)]) == 1, "behind a hole, unaligned")
    filled = [(0, b"\xaa" * SIZE)]
    check(count(filled) == 0, "memory without a hole holds none")
    boundary = [count(filled + [(CHUNK - shift, MARKER)]) for shift in range(len(MARKER) + 2)]
    check(boundary == [1] * len(boundary), "across the border of two reads, at every distance")
    check(count(filled + [(CHUNK - 40, MARKER * 3)]) == 3, "three in a row across a border")
    check(count(filled + [(CHUNK - 20, MARKER[:-1])]) == 0, "all but the last byte is none")
    check(count(filled + [(i * PAGE, MARKER) for i in range(64)]) == 64, "one on each page")
    check(count(filled + [(CHUNK - 12, b"abababab" * 4)], b"abababab") == 4, "a marker that overlaps itself counts once a place")

    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"# SEED={seed}")
    generator = random.Random(seed)
    good = True
    for _ in range(200):
        places = sorted(generator.sample(range(0, SIZE - 32, 64), generator.randrange(20)))
        good = good and count([(place + generator.randrange(32), MARKER) for place in places]) == len(places)
    check(good, "as many as were put at random places")

    check(raises(KeyError, lambda: boot.scan_memfd(os.getpid(), "no-such-memory", MARKER)), "an unknown memory is an error")
    check(raises(ValueError, lambda: boot.scan_memfd(os.getpid(), "scan-test", b"short")), "a short marker is an error")
    check(raises(ValueError, lambda: boot.scan_memfd(os.getpid(), "scan-test", bytes(16))), "a marker of zeros is an error")
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
