#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Breaks the firmware in one place at a time and demands that the property test notices. TAP.

Each mutant leaves out a clause of the protocol. A text that is no longer found in the firmware is a failure too: the
mutant has to follow the code.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import planted  # noqa: E402
from ndtest import all_checked, check  # noqa: E402

# From one of the seeds each must be noticed within so many packets; most need a few thousand from the first.
PACKETS = 4000000
SEEDS = range(1, 11)

# Name, file, text to be found once, what stands there instead.
MUTANTS = [
    ("a floor without a bitmap", "lane.c", "window->bits[place / 64] |= UINT64_C(1) << place % 64;", ";"),
    ("an unknown lane that executes any generation", "lane.c",
     "if (packet->generation != (lane != NULL ? lane->generation : fw->generation)) {",
     "if (lane != NULL && packet->generation != lane->generation) {"),
    ("a floor that is not looked at", "lane.c", "if (packet->number < result->floor) {", "if (false) {"),
    ("lanes forgotten without a new generation", "lane.c", "fw->generation++;", ";"),
    ("cached replies that are not kept", "lane.c", "window->values[place] = value;", "window->values[place] = 0;"),
    ("modifications sent again across an epoch", "peer.c",
     "if (before != 0 && netdam_generation_epoch(before) != netdam_generation_epoch(peer->generation)) {",
     "if (false) {"),
    ("a refusal that leaves no trace", "responder.c",
     "ndfw_lane_consume(result.window, packet->number, result.status, value);",
     "if (result.status == 0) { ndfw_lane_consume(result.window, packet->number, result.status, value); }"),
    ("a local region that came back under the same index", "memory.c", "|| fw->regions[region].serial != serial", ""),
    ("a remote range one byte too long", "memory.c",
     "if (bytes > region->length || address > region->length - bytes) {",
     "if (bytes > region->length || address > region->length - bytes + 1) {"),
    ("a remote permission that is not looked at", "memory.c", "if ((region->permissions & permission) != permission) {",
     "if (permission == 0) {"),
    ("a fence that is none", "queue.c",
     "((descriptor->flags & NETDAM_DESCRIPTOR_FENCE) == 0 || queue->outstanding == 0)", "true"),
    ("a given-up lane under the same epoch", "lane.c",
     "ndfw_count(fw, NETDAM_COUNTER_LANES_GIVEN_UP, given_up);\n        ndfw_lane_new_epoch(fw);",
     "ndfw_count(fw, NETDAM_COUNTER_LANES_GIVEN_UP, given_up);\n        fw->generation++;"),
    ("a window released while something is unfinished", "lane.c", "if (window->above <= result->floor) {", "if (true) {"),
    ("a confirmation that an unknown lane does not remember", "lane.c",
     "lane = create_lane(fw, packet, packet->number, &verdict);\n        result->generation = fw->generation;\n"
     "        if (lane == NULL) {\n            return verdict;\n        }",
     "result->floor = packet->number; (void)verdict; return NDFW_LANE_EXECUTE;"),
    ("STALE believed without its echo", "peer.c", "packet->echo != before || ", ""),
    ("an answer taken for a packet that is finished", "peer.c",
     "if (packet->number < sequence->floor || packet->number >= sequence->next ||\n"
     "        flight->state == NDFW_FLIGHT_FINISHED || ",
     "if (packet->number >= sequence->next || "),
    ("a reset that flushes only the first queue pair", "firmware.c",
     "    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {\n"
     "        if (fw->queues[i].state != NETDAM_QUEUE_STATE_NONE) {\n            ndfw_queue_flush(",
     "    for (uint32_t i = 0; i < 1; i++) {\n"
     "        if (fw->queues[i].state != NETDAM_QUEUE_STATE_NONE) {\n            ndfw_queue_flush("),
    ("generations that are the same after each reset", "lane.c", "epoch = (uint32_t)ndfw_random(fw);",
     "epoch = before == 7 ? 8 : 7;"),
    ("completion places promised twice", "queue.c", "used += queue->outstanding;", ";"),
    ("an immediate that does not wait for the rest", "requester.c",
     "flight.length == left && operation->flights != 0) {", "flight.length == left && false) {"),
    ("ORDERED requests sent all at once", "queue.c", "} else if (peer->ordered == NDFW_NONE) {", "} else if (true) {"),
    ("UNRELIABLE requests that are answered", "responder.c",
     "if ((packet->flags & NETDAM_FLAG_UNRELIABLE) != 0 || (answer", "if ((answer"),
    ("requests without lane under any generation", "responder.c",
     "    struct ndfw_lane_result result = {0};\n\n"
     "    if (!ndfw_lane_proves(fw, ndfw_lane_id(packet), packet->generation, &result.generation)) {",
     "    struct ndfw_lane_result result = {0};\n\n"
     "    if (!ndfw_lane_proves(fw, ndfw_lane_id(packet), packet->generation, &result.generation) && false) {"),
    ("RELAXED requests with lane numbers at the node", "responder.c",
     "if ((packet->flags & (NETDAM_FLAG_RELAXED | NETDAM_FLAG_UNRELIABLE)) != 0) {",
     "if ((packet->flags & NETDAM_FLAG_UNRELIABLE) != 0) {"),
    ("a receive buffer that is used twice", "queue.c", "queue->rq_consumer++;", ";"),
    ("a message longer than its buffer", "queue.c", "} else if (packet->length > descriptor.length) {",
     "} else if (packet->length > descriptor.length + 1) {"),
    ("a buffer used up by a message that is too long", "queue.c",
     "        return NETDAM_STATUS_BAD_LENGTH;\n",
     "        complete_receive(fw, index, &descriptor, NETDAM_STATUS_BAD_LENGTH, NULL);\n"
     "        return NETDAM_STATUS_BAD_LENGTH;\n"),
    ("a malformed receive buffer without completion", "queue.c",
     "        complete_receive(fw, index, &descriptor, status, NULL);\n        status",
     "        release_receive_descriptor(fw, &fw->queues[index]);\n        status"),
    ("a WRITE applied though its immediate finds no buffer", "queue.c",
     "    if (status != NETDAM_STATUS_OK) {\n        return status;\n    }\n    if (memory != NULL) {\n",
     "    if (memory != NULL) {\n        ndfw_payload_store(fw, memory, packet->payload, packet->length);\n    }\n"
     "    if (status != NETDAM_STATUS_OK) {\n        return status;\n    }\n    if (memory != NULL) {\n"),
    ("a receive completion without room", "queue.c", "n > 0 && completion_room(fw, index) != 0; n--) {", "n > 0; n--) {"),
    ("immediates for a queue pair that came back", "admin.c", "if (fw->regions[i].queue == index + 1) {", "if (false) {"),
    ("a list whose lengths are not added up", "buffer.c",
     "return total == descriptor->length ? NETDAM_STATUS_OK : NETDAM_STATUS_LOCAL_DESCRIPTOR;",
     "return NETDAM_STATUS_OK + 0 * (int)total;"),
    ("a list that is read from its first entry each time", "buffer.c", "            offset -= piece->length;\n",
     "            offset = 0;\n"),
    ("a RELAXED modification refused here after it was sent", "requester.c",
     "modifies(fw, &fw->operations[flight->operation])",
     "sequence == &peer->lane"),
    ("a wrong link-layer address kept for ever", "peer.c", "if (doubtful) {", "if (false) {"),
    ("receive buffers forgotten by QUEUE_DESTROY", "queue.c", "with_ring && n < queue->rq_entries; n++",
     "with_ring && n < 0; n++"),
    ("NOT_READY where one buffer is left", "queue.c", "return producer - queue->rq_consumer;",
     "return producer - queue->rq_consumer - (producer != queue->rq_consumer);"),
    ("halves with ties away from even", "alu_baseline.c", "+ 0xfffu + (magnitude >> 13 & 1)) >> 13", "+ 0x1000u) >> 13"),
    ("bfloat16 cut off", "alu_baseline.c", "(bits + 0x7fffu + (bits >> 16 & 1)) >> 16", "bits >> 16"),
    ("a saturating sum that stays at the wrong limit", "alu_baseline.c", "(value_type)a < 0 ? (bits_type)(high)",
     "(value_type)a > 0 ? (bits_type)(high)"),
    ("a SWAP that returns what may not be read", "responder.c",
     "return NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_READ;",
     "return NETDAM_PERMISSION_REMOTE_WRITE;"),
    ("a FETCH_OP that returns the new value", "responder.c",
     "ndfw_element_store(memory, packet->length, ndfw_alu_apply(*value,",
     "*value = ndfw_alu_apply(*value, operand(packet, 0), packet->operation, packet->type);\n"
     "        ndfw_element_store(memory, packet->length, *value + 0 * ndfw_alu_apply(*value,"),
]


def run_property(program, seed, packets=PACKETS):
    return planted.run(r"^# (invariant.*)", program, "--seed", seed, "--packets", packets)


def main():
    passed, seen = run_property(planted.OUT / "tests/property/property", 1, 400000)
    check(passed, "the firmware as it is passes", [seen])
    planted.try_faults("property", MUTANTS, run_property, SEEDS)
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
