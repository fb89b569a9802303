#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Exercises lanes, generations and fences of docs/wire-format.md, section 5, against a node. Prints TAP."""

import random
import struct

import netdam_packet as nd
from bench import add_packet, answers, ask, cell, check_answer, connect, equal, run, status, test, write_packet
from netdam_client import Unknown
from node import Node

@test
def copies_are_answered_again_and_executed_once(bench):
    client, at = bench.known(), bench.page()
    packets = [add_packet(client, 1, 0, at, 5)] * 6
    got = answers(client, *packets)
    equal(len(got), 6, "answers")
    for i, answer in enumerate(got):
        check_answer(packets[i], answer)
        status(answer, nd.OK)
        equal(bool(answer.flags & nd.AGAIN), i > 0, "AGAIN in answer %d" % i)
        equal(answer.payload, bytes(8), "old value")
        equal(answer.segment["floor"], 1, "floor")
    equal(cell(client, at), 5)


@test
def copy_of_a_write_does_not_undo_a_newer_one(bench):
    first, second, at = bench.known(), bench.client(), bench.page()
    old = write_packet(first, 1, 0, at, b"old")
    status(ask(first, old), nd.OK)
    status(second.write(at, b"new"), nd.OK)
    equal([a.status for a in answers(first, old)], [nd.OK])
    equal(second.read(at, 3).payload, b"new")
    status(ask(first, write_packet(first, 2, 0, at + 8, b"more")), nd.OK)
    equal(answers(first, old), [], "answers below the floor")
    equal(second.read(at, 3).payload, b"new")
    bench.drops("REQUESTS_BELOW_FLOOR")


@test
def numbers_above_the_floor_are_executed_in_any_order(bench):
    client, at = bench.known(), bench.page()
    order = [5, 3, 9, 4, 8, 3, 5, 6, 7, 9]
    got = answers(client, *[add_packet(client, n, n - 3, at, 1 << n) for n in order])
    equal([a.number for a in got], order)
    equal([bool(a.flags & nd.AGAIN) for a in got], [n in order[:i] for i, n in enumerate(order)])
    equal(cell(client, at), sum(1 << n for n in set(order)))


@test
def below_the_floor_is_dropped(bench):
    client, at = bench.known(), bench.page()
    early = add_packet(client, 4, 2, at, 1)
    status(ask(client, add_packet(client, 6, 1, at, 2)), nd.OK)
    equal(answers(client, early), [])
    client.next_number = 8
    equal(client.confirm().segment["floor"], 8, "floor")
    equal(answers(client, add_packet(client, 6, 1, at, 2), add_packet(client, 7, 2, at, 4)), [])
    equal(cell(client, at), 2)
    bench.drops("REQUESTS_BELOW_FLOOR", 3)


@test
def beyond_the_window_is_dropped(bench):
    client, at = bench.known(), bench.page()
    wrong = [add_packet(client, n, d, at) for n, d in ((1024, 1024), (5000, 2000), (70000, 65535), (1, 2), (0, 1))]
    equal(answers(client, *wrong), [])
    status(ask(client, add_packet(client, 1024, 1023, at)), nd.OK)
    status(ask(client, add_packet(client, 1, 0, at)), nd.OK)
    equal(cell(client, at), 2)
    bench.drops("REQUESTS_BEYOND_WINDOW", len(wrong))


@test
def a_full_window_remembers_each_number(bench):
    client, at = bench.known(), bench.page()
    for first in range(0, nd.WINDOW, 64):
        numbers = range(first + 1, first + 65)
        equal(len(answers(client, *[add_packet(client, n, n - 1, at) for n in numbers])), 64)
    for n in (1, 2, 500, 1023, 1024):
        answer = ask(client, add_packet(client, n, n - 1, at))
        assert answer.flags & nd.AGAIN
        equal(answer.payload, struct.pack("<q", n - 1), "old value of number %d" % n)
    equal(cell(client, at), nd.WINDOW)


@test
def numbers_reach_48_bits(bench):
    top = (1 << 48) - 1
    client, at = bench.known(first_number=top - 2), bench.page()
    for number in (top - 2, top - 1, top):
        got = answers(client, *[add_packet(client, number, 0, at)] * 2)
        equal([bool(a.flags & nd.AGAIN) for a in got], [False, True])
    equal(answers(client, add_packet(client, top - 1, 0, at)), [])
    equal(cell(client, at), 3)
    bench.drops("REQUESTS_BELOW_FLOOR", 1)


@test
def another_generation_is_stale_and_not_executed(bench):
    client, at = bench.known(), bench.page()
    right = client.generation
    wrong = (0, right ^ 1, right ^ 1 << 32, right ^ 1 << 63)
    for known in (False, True):
        for generation in wrong:
            answer = ask(client, add_packet(client, 2, 0, at, generation=generation))
            status(answer, nd.STALE)
            equal(answer.segment["generation"], right, "generation")
        if not known:
            equal(cell(client, at), 0)
            status(ask(client, add_packet(client, 1, 0, at)), nd.OK)
    equal(cell(client, at), 1)
    answer = ask(client, add_packet(client, 2, 0, at))
    status(answer, nd.OK)
    assert not answer.flags & nd.AGAIN, "STALE has consumed the number"


@test
def reads_need_the_epoch_and_not_the_count(bench):
    client, at = bench.client(), bench.page()
    status(client.write(at, b"12345678"), nd.OK)
    right = client.generation
    cases = ((right, nd.OK), (right ^ 1, nd.OK), (right ^ 0xFFFFFFFF, nd.OK), (0, nd.STALE), (right ^ 1 << 32, nd.STALE),
             (right ^ 1 << 63, nd.STALE), (right & 0xFFFFFFFF, nd.STALE))
    for reader in (client, bench.client()):
        for number, (generation, code) in enumerate(cases, 100):
            answer = ask(reader, reader.build(nd.READ, number, generation=generation, address=at, length=8))
            status(answer, code)
            equal(answer.payload, b"12345678" if code == nd.OK else b"")
            if code == nd.STALE:
                equal(answer.segment["generation"] >> 32, right >> 32, "epoch")


@test
def reads_and_lanes_count_apart(bench):
    client, at = bench.known(), bench.page()
    status(ask(client, add_packet(client, 7, 0, at)), nd.OK)
    for _ in range(2):
        answer = ask(client, client.build(nd.READ, 7, address=at, length=8))
        status(answer, nd.OK)
        equal(answer.payload, struct.pack("<q", 1))
        assert not answer.flags & nd.AGAIN
    status(ask(client, client.build(nd.READ, 1, address=at, length=8)), nd.OK)
    assert ask(client, add_packet(client, 7, 0, at)).flags & nd.AGAIN


@test
def confirm_raises_the_floor_and_never_lowers_it(bench):
    client, at = bench.known(), bench.page()
    status(ask(client, add_packet(client, 10, 5, at)), nd.OK)
    for floor, after in ((3, 5), (5, 5), (8, 8), (6, 8), (11, 11), (8, 11), (11, 11), (2000, 2000), (11, 2000)):
        answer = ask(client, client.build(nd.CONFIRM, floor, key=0))
        status(answer, nd.OK)
        equal(answer.segment["floor"], after, "floor after CONFIRM %d" % floor)
        equal(answer.segment["generation"], client.generation, "generation")
    for generation in (0, client.generation ^ 1, client.generation ^ 1 << 40):
        answer = ask(client, client.build(nd.CONFIRM, 3000, key=0, generation=generation))
        status(answer, nd.STALE)
        equal(answer.segment["generation"], client.generation)
    equal(ask(client, client.build(nd.CONFIRM, 11, key=0)).segment["floor"], 2000, "a STALE has moved the floor")


@test
def an_acknowledged_confirm_is_a_fence_even_where_there_was_no_lane(bench):
    client, at = bench.known(), bench.page()
    late = add_packet(client, 1, 0, at)
    answer = ask(client, client.build(nd.CONFIRM, 2, key=0))
    status(answer, nd.OK)
    equal(answer.segment["floor"], 2, "floor")
    equal(answers(client, late), [], "answers to a request below an acknowledged floor")
    equal(cell(client, at), 0, "a request below an acknowledged floor was executed")
    bench.drops("REQUESTS_BELOW_FLOOR", 1)


@test
def many_contexts_add_to_one_cell(bench):
    clients, at = [bench.client() for _ in range(8)], bench.page()
    for client in clients:
        client.confirm()
    seen = []
    for _ in range(40):
        for client in clients:
            seen.append(struct.unpack("<q", client.fetch_add(at, nd.I64, 1).payload)[0])
    equal(seen, list(range(320)))
    equal(cell(clients[0], at), 320)


@test
def counters_tell_what_was_dropped(bench):
    bench.check_drops()


# ---- full tables, forgotten lanes, restarts: nodes of their own


def learn(node):
    client = connect(node)
    client.accept_stale(client.endpoint.exchange(client.build(nd.CONFIRM, 1, key=0)))
    return client


def flood(client, packets):
    """Sends requests that may be repeated, some at a time, until each is answered; returns answers by context."""
    todo = {packet.context: packet for packet in packets}
    got = {}
    for _ in range(1000):
        if not todo:
            return got
        for answer in answers(client, *list(todo.values())[:48]):
            if answer.context in todo:
                del todo[answer.context]
                got[answer.context] = answer
    raise AssertionError("%d requests were never answered" % len(todo))


@test
def busy_when_too_many_lanes_are_unfinished_and_the_number_is_not_consumed(_):
    node = Node()
    try:
        client = learn(node)
        contexts = list(range(1000, 1300))
        add = [nd.request(nd.FETCH_ADD, c, 1, generation=client.generation, type=nd.I64, length=8, key=node.key,
                          payload=struct.pack("<q", 1)) for c in contexts]
        got = flood(client, add)
        done = [c for c in contexts if got[c].status == nd.OK]
        busy = [c for c in contexts if got[c].status == nd.BUSY]
        equal(len(done) + len(busy), len(contexts))
        assert busy, "never BUSY"
        equal(cell(client, 0), len(done))
        flood(client, [nd.request(nd.CONFIRM, c, 2, generation=client.generation) for c in done])
        got = flood(client, [add[contexts.index(c)] for c in busy])
        equal({nd.STATUS_NAMES[got[c].status] for c in busy}, {"OK"})
        equal(cell(client, 0), len(contexts))
        client.close()
        assert node.stop()["REQUESTS_BUSY"] >= len(busy)
    finally:
        node.kill()


@test
def confirmed_lanes_are_forgotten_with_a_new_count_and_requests_go_on(_):
    node = Node()
    try:
        client = learn(node)
        status(client.fetch_add(8, nd.I64, 1), nd.OK)
        client.confirm()
        before, changed, context = client.generation, False, 5000
        while not changed and context < 13000:
            batch = range(context, context + 48)
            context += 48
            got = flood(client, [nd.request(nd.WRITE, c, 1, generation=before, key=node.key) for c in batch])
            changed = any(a.status == nd.STALE for a in got.values())
            flood(client, [nd.request(nd.CONFIRM, c, 2, generation=before) for c in batch
                           if got[c].status == nd.OK])
        assert changed, "no lane was ever forgotten"
        answer = client.endpoint.exchange(add_packet(client, client.next_number, 0, 8))
        status(answer, nd.STALE)
        equal(answer.segment["generation"] >> 32, before >> 32, "epoch")
        assert answer.segment["generation"] > before, "count"
        equal(cell(client, 8), 1)
        status(client.fetch_add(8, nd.I64, 1), nd.OK)
        assert client.generation > before
        equal(cell(client, 8), 2)
        client.close()
        assert node.stop()["LANES_FORGOTTEN"] > 0
    finally:
        node.kill()


@test
def a_restarted_node_has_a_new_epoch_and_refuses_what_was_sent_before(_):
    # No other test is given ports of this address between the two.
    node = Node(address="127.0.0.7", key=77)
    try:
        client = connect(node)
        status(client.fetch_add(0, nd.I64, 1), nd.OK)
        before = client.generation
        node.stop()
        node = Node(address=node.address, port=node.port, key=77)
        try:
            client.fetch_add(0, nd.I64, 1)
            raise AssertionError("a request was executed across an epoch")
        except Unknown:
            pass
        assert client.generation >> 32 != before >> 32, "same epoch"
        equal(cell(client, 0), 0)
        status(client.fetch_add(0, nd.I64, 1), nd.OK)
        equal(cell(client, 0), 1)
        client.close()
        node.stop()
    finally:
        node.kill()


@test
def without_payload_crc_and_with_a_larger_mtu(_):
    node = Node("--no-payload-crc", "--mtu", "9000")
    try:
        client = connect(node)
        longest = nd.payload_max(9000)
        data = random.randbytes(longest)
        status(client.write(0, data), nd.OK)
        answer = client.read(0, longest)
        status(answer, nd.OK)
        equal(answer.payload, data)
        equal(answer.flags & nd.PAYLOAD_CRC, 0, "payload CRC")
        status(client.read(0, longest + 1), nd.BAD_LENGTH)
        client.close()
        node.stop()
    finally:
        node.kill()


if __name__ == "__main__":
    run()
