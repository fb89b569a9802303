#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sends a node what it cannot read: nothing is answered, all is counted. Prints TAP."""

import random

import netdam_packet as nd
from bench import answers, equal, run, test, write_packet
from test_golden import load, manifest, unwrap

def datagram_of(name):
    return unwrap(load(name))[0]


@test
def malformed_golden_packets_are_dropped(bench):
    client = bench.known()
    counted = ("RX_MALFORMED", "RX_HEADER_CRC", "RX_PAYLOAD_CRC", "RESPONSES_UNMATCHED")
    used = 0
    for name, kind, expected, _ in manifest():
        if kind != "malformed" or expected not in counted:
            continue
        try:
            data = datagram_of(name)
        except nd.Dropped:
            continue  # wrong below UDP, which a socket cannot send
        equal(answers(client, data), [], name)
        bench.drops(expected)
        used += 1
    assert used >= 20, "only %d golden packets" % used


@test
def every_truncation_is_dropped(bench):
    client, at = bench.known(), bench.page()
    whole = write_packet(client, 1, 0, at, b"Hello, node!").encode()
    for first in range(0, len(whole), 32):
        cut = [whole[:n] for n in range(first, min(first + 32, len(whole)))]
        equal(answers(client, *cut), [])
    equal(answers(client, whole + b"\0", whole + whole), [])
    equal(client.read(at, 12).payload, bytes(12))
    bench.drops("RX_MALFORMED", len(whole) + 2)


@test
def every_flipped_bit_is_dropped(bench):
    client, at = bench.known(), bench.page()
    whole = write_packet(client, 1, 0, at, b"Hello, node!").encode()
    flips = []
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        flips.append(bytes(data))
        try:
            nd.decode(flips[-1])
            raise AssertionError("the manual does not catch bit %d" % bit)
        except nd.Dropped as dropped:
            bench.drops(str(dropped))
    for first in range(0, len(flips), 64):
        equal(answers(client, *flips[first:first + 64]), [])
    equal(client.read(at, 12).payload, bytes(12))


@test
def random_datagrams_are_dropped(bench):
    client = bench.known()
    generator = random.Random(bench.seed)
    for _ in range(20):
        batch = [generator.randbytes(generator.randrange(0, 200)) for _ in range(20)]
        equal(answers(client, *batch), [])
        for data in batch:
            try:
                nd.decode(data)
            except nd.Dropped as dropped:
                bench.drops(str(dropped))


@test
def counters_tell_what_was_dropped(bench):
    bench.check_drops()


if __name__ == "__main__":
    run()
