#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sends messages, by docs/wire-format.md, to a queue pair of a soft device that takes them and drops them. Prints TAP."""

import struct

import netdam_packet as nd
from bench import answers, ask, check_answer, connect, equal, run, status, test
from node import Target

BYTES = 65536


def message(client, number, distance, data, **fields):
    return client.build(nd.SEND, number, distance=distance, key=client.receive_key, payload=data, **fields)


def sender(target):
    client = connect(target)
    client.receive_key = target.receive_key
    client.accept_stale(client.endpoint.exchange(client.build(nd.CONFIRM, 1, key=0)))
    return client


@test
def messages_of_any_length_are_taken(target):
    client = sender(target)
    for length in (0, 1, 7, 8, 100, nd.payload_max(1500)):
        answer = client.send(client.receive_key, bytes(length))
        status(answer, nd.OK)
        equal(answer.segment["length"], length, "length")
        equal(answer.payload, b"")
    immediate = {"flags": nd.IMMEDIATE, "extensions": struct.pack(">Q", 1 << 63)}
    status(client.send(client.receive_key, b"with an immediate", **immediate), nd.OK)
    client.close()


@test
def longer_than_the_buffer_is_refused_and_hurts_nobody(target):
    client = sender(target)
    long = message(client, 1, 0, bytes(nd.payload_max(1500) + 1))
    for again in (0, nd.AGAIN):
        answer = ask(client, long)
        status(answer, nd.BAD_LENGTH)
        equal(answer.flags, again, "flags")
        equal(answer.segment["floor"], 1, "floor")
    status(ask(client, message(client, 2, 1, b"short")), nd.OK)
    status(ask(client, message(client, 1, 0, b"too late, the number is used up")), nd.BAD_LENGTH)
    client.close()


@test
def every_message_is_taken_once_in_any_order_of_numbers(target):
    client = sender(target)
    for first in range(1, 600, 50):
        numbers = list(range(first, first + 50))
        numbers = numbers[::-2] + numbers[::2]
        packets = [message(client, n, n - first, b"message %d" % n) for n in numbers]
        got = answers(client, *packets)
        equal(len(got), len(packets), "answers")
        for packet, answer in zip(packets, got):
            check_answer(packet, answer)
            # The target may have no buffer for a moment: that is an end too, and a copy hears the same.
            assert answer.status in (nd.OK, nd.NOT_READY), "status %d" % answer.status
            equal(answer.flags, 0, "flags")
        for answer, copy in zip(got, answers(client, *packets)):
            equal((copy.number, copy.status, copy.flags), (answer.number, answer.status, nd.AGAIN), "copy")
    client.close()


@test
def ordered_and_unreliable_messages(target):
    client = sender(target)
    status(client.send(client.receive_key, b"ordered", flags=nd.ORDERED), nd.OK)
    quiet = [message(client, 1, 0, b"unreliable", flags=nd.UNRELIABLE)] * 3
    equal(answers(client, *quiet), [])
    equal(answers(client, message(client, 1, 0, bytes(2000), flags=nd.UNRELIABLE)), [])
    status(ask(client, message(client, 1, 0, b"x", flags=nd.RELAXED)), nd.BAD_FLAGS)
    client.close()


@test
def keys_of_regions_and_of_queue_pairs_are_apart(target):
    client = sender(target)
    status(client.send(client.key, b"x"), nd.BAD_KEY)
    status(client.send(client.receive_key ^ 1, b"x"), nd.BAD_KEY)
    status(client.send(0, b"x"), nd.BAD_KEY)
    status(client.write(0, b"stored"), nd.OK)
    region, client.key = client.key, client.receive_key
    status(client.write(0, b"x"), nd.BAD_KEY)
    status(client.read(0, 1), nd.BAD_KEY)
    client.key = region
    equal(client.read(0, 6).payload, b"stored")
    answer = client.modify(nd.WRITE, address=0, payload=b"x", flags=nd.IMMEDIATE, extensions=bytes(8))
    status(answer, nd.NO_PERMISSION)
    client.close()


if __name__ == "__main__":
    run(lambda: Target(BYTES))
