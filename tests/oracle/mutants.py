#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Breaks the firmware in one place at a time and demands that the oracle notices. TAP.

Other faults than those that the property test and the mutation run know. A text that is no longer found in the firmware
is a failure too: the mutant has to follow the code.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import planted  # noqa: E402
from ndtest import all_checked  # noqa: E402

# From one of the seeds each must be noticed within so many operations; most need a few thousand from the first.
OPERATIONS = 600000
SEEDS = range(1, 6)

# Name, file, text to be found once, what stands there instead.
MUTANTS = [
    # lanes
    ("a floor one behind what has been forgotten", "lane.c", "set_lane_floor(lane, claim);\n}",
     "set_lane_floor(lane, claim - 1);\n}"),
    ("numbers remembered in half of their places", "lane.c", "window->bits[place / 64] |= UINT64_C(1) << place % 64;",
     "window->bits[place / 64] |= UINT64_C(1) << place % 32;"),
    ("a copy that is not executed, unless the window is full", "lane.c",
     "if ((window->bits[place / 64] >> place % 64 & 1) != 0) {",
     "if ((window->bits[place / 64] >> place % 64 & 1) != 0 && window->above - result->floor < 4) {"),
    ("a refusal that a copy overcomes", "lane.c", "if ((window->bits[place / 64] >> place % 64 & 1) != 0) {",
     "if ((window->bits[place / 64] >> place % 64 & 1) != 0 && window->statuses[place] == 0) {"),
    # cached replies
    ("the reply of another number", "lane.c", "result->value = window->values[place];",
     "result->value = window->values[(place + 1) % NETDAM_WINDOW_MAX];"),
    ("a refusal answered as success when it is asked for again", "lane.c",
     "result->status = window->statuses[place];", "result->status = 0;"),
    # generations and epochs
    ("any generation of the epoch", "lane.c",
     "if (packet->generation != (lane != NULL ? lane->generation : fw->generation)) {",
     "if (netdam_generation_epoch(packet->generation) !=\n"
     "        netdam_generation_epoch(lane != NULL ? lane->generation : fw->generation)) {"),
    ("a lane given up without a trace", "lane.c", "given_up++;", ";"),
    ("success after the node has lost its lanes", "peer.c",
     "finish_all(fw, peer, &peer->lane, NETDAM_STATUS_UNKNOWN);", "finish_all(fw, peer, &peer->lane, NETDAM_STATUS_OK);"),
    ("refused after the node has lost its lanes", "peer.c",
     "finish_all(fw, peer, &peer->lane, NETDAM_STATUS_UNKNOWN);",
     "finish_all(fw, peer, &peer->lane, NETDAM_STATUS_BAD_KEY);"),
    ("an epoch changed as if it were a count", "peer.c",
     "if (before != 0 && netdam_generation_epoch(before) != netdam_generation_epoch(peer->generation)) {",
     "if (before != 0 && netdam_generation_epoch(before) + 1 == netdam_generation_epoch(peer->generation)) {"),
    ("refused when the peer handle was closed", "peer.c",
     "finish_all(fw, peer, &peer->lane, NETDAM_STATUS_FLUSHED);", "finish_all(fw, peer, &peer->lane, NETDAM_STATUS_BAD_KEY);"),
    # regions
    ("a range that only has to begin in its region", "memory.c", "address > region->length - bytes",
     "address > region->length"),
    ("REDUCE where WRITE is permitted", "responder.c",
     "case NETDAM_OP_REDUCE:\n        return NETDAM_PERMISSION_REMOTE_ALU;",
     "case NETDAM_OP_REDUCE:\n        return NETDAM_PERMISSION_REMOTE_WRITE;"),
    # order
    ("ORDERED only among requests of one opcode", "queue.c", "} else if (peer->ordered == NDFW_NONE) {",
     "} else if (peer->ordered == NDFW_NONE ||\n"
     "               fw->operations[peer->ordered].descriptor.opcode != operation->descriptor.opcode) {"),
    ("a fence that one request passes", "queue.c",
     "((descriptor->flags & NETDAM_DESCRIPTOR_FENCE) == 0 || queue->outstanding == 0)",
     "((descriptor->flags & NETDAM_DESCRIPTOR_FENCE) == 0 || queue->outstanding <= 1)"),
    # immediates and messages
    ("an immediate that waits for all but one packet", "requester.c",
     "flight.length == left && operation->flights != 0) {", "flight.length == left && operation->flights > 1) {"),
    ("the immediate of one higher", "queue.c", "immediate ? packet->immediate : 0, packet",
     "immediate ? packet->immediate + 1 : 0, packet"),
    ("a message stored one byte short", "queue.c", "ndfw_buffer_spans(fw, &buffer, 0, packet->length,",
     "ndfw_buffer_spans(fw, &buffer, 0, packet->length - 1,"),
    # data
    ("a repetition that begins where the first packet began", "merge.c",
     "return ndfw_buffer_spans(fw, &operation->buffer, flight->offset, flight->length,",
     "return ndfw_buffer_spans(fw, &operation->buffer, flight->tries != 0 ? 0 : flight->offset, flight->length,"),
    ("a compare-and-swap that answers with what it leaves", "responder.c",
     "ndfw_element_store(memory, packet->length, operand(packet, 1));",
     "ndfw_element_store(memory, packet->length, operand(packet, 1)); *value = operand(packet, 1);"),
    ("what was read stored again by a late answer", "peer.c",
     "if (packet->number < sequence->floor || packet->number >= sequence->next ||",
     "if (packet->number + fw->config.window < sequence->floor || packet->number >= sequence->next ||"),
    # merging
    ("REDUCEs that share a packet: the last one counts", "merge.c", "if (first) {\n                memcpy(payload",
     "if (true) {\n                memcpy(payload"),
    ("WRITEs with a gap between them put side by side", "merge.c",
     ": a->remote_address + a->length == b->remote_address) {", ": a->remote_address + a->length <= b->remote_address) {"),
    ("REDUCEs of different types that share a packet", "merge.c", " && a->type == b->type;", ";"),
    ("REDUCEs of different operations that share a packet", "merge.c", "a->operation == b->operation &&", ""),
    ("any flag shares a packet", "merge.c", "(descriptor->flags & ~(uint32_t)NETDAM_DESCRIPTOR_LIST) != 0",
     "(descriptor->flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0"),
    ("success for those behind the first of a refused packet", "merge.c", "next->status = first->status;",
     "next->status = 0;"),
    # transactions
    ("a transaction that compares nothing", "transaction.c", "status = compare(fw, &list, packet->payload, value);", ";"),
    ("a transaction that fetches what it wrote", "transaction.c", "fetch(fw, &list, reply);",
     "write(fw, &list, packet->payload);\n        fetch(fw, &list, reply);"),
    ("a transaction that writes before it compares", "transaction.c", "status = check(fw, &list, packet->tenant, value);",
     "status = check(fw, &list, packet->tenant, value);\n    if (status == NETDAM_STATUS_OK) {\n"
     "        write(fw, &list, packet->payload);\n    }"),
    ("a transaction that names the entry behind the one that failed", "transaction.c",
     "payload + list->data[i], entry->length)) {\n            *failed = i;",
     "payload + list->data[i], entry->length)) {\n            *failed = i + 1;"),
    ("what a transaction fetched given away while it may be asked for", "transaction.c",
     "for (uint64_t number = from; number < to &&", "for (uint64_t number = from; number <= to &&"),
    ("writes in the order of a list turned round", "transaction.c",
     "const struct netdam_transaction_entry *entry = &list->entries[i];\n\n"
     "        if (entry->kind == NETDAM_TRANSACTION_WRITE) {\n"
     "            ndfw_store(ndfw_memory(fw, list->offsets[i], entry->length, NETDAM_FW_ACCESS_WRITE),\n"
     "                       payload + list->data[i], entry->length);",
     "uint32_t n = list->count - 1 - i;\n"
     "        const struct netdam_transaction_entry *entry = &list->entries[n];\n\n"
     "        if (entry->kind == NETDAM_TRANSACTION_WRITE) {\n"
     "            ndfw_store(ndfw_memory(fw, list->offsets[n], entry->length, NETDAM_FW_ACCESS_WRITE),\n"
     "                       payload + list->data[n], entry->length);"),
    # chains
    ("a copy of a tour that passes without reading", "hop.c",
     "((packet->opcode == NETDAM_OP_LOAD || packet->opcode == NETDAM_OP_LOAD_REDUCE) &&\n"
     "                    look(fw, packet, &memory) != NETDAM_STATUS_OK)) {",
     "(packet->opcode == NETDAM_OP_LOAD && look(fw, packet, &memory) != NETDAM_STATUS_OK)) {"),
    ("a hop that stores once more for a copy", "hop.c", "go_on(fw, packet, hop, &result, memory, NETDAM_FLAG_AGAIN | ndfw_lane_wish(fw));",
     "(void)execute_segment(fw, packet, hop, &memory);\n"
     "            go_on(fw, packet, hop, &result, memory, NETDAM_FLAG_AGAIN | ndfw_lane_wish(fw));"),
    ("a chain that compares nothing", "hop.c", "return equal ? NETDAM_STATUS_OK : NETDAM_STATUS_COMPARE_FAILED;",
     "return equal ? NETDAM_STATUS_OK : NETDAM_STATUS_OK;"),
    ("a hop that lets a copy pass where it has refused", "hop.c",
     "ndfw_lane_consume(result.window, packet->number, result.status, packet->hop);",
     "ndfw_lane_consume(result.window, packet->number, 0, packet->hop);"),
    ("chains sent again to a node of another epoch", "tour.c",
     "if (other_epoch && has_lane(tour, hop)) {", "if (false && other_epoch) {"),
    ("a chain that says it has stored nothing before the last but one", "tour.c",
     "for (uint32_t i = 0; i < hop && i < tour->count; i++) {", "for (uint32_t i = 0; i + 1 < hop && i < tour->count; i++) {"),
    # tenants
    ("a nonce that comes twice", "tenant.c", "tenant->counter++;", "tenant->counter += tenant->counter % 64 != 63;"),
    ("a salt that is the same after each reset", "tenant.c",
     "fw->platform.entropy(fw->platform.opaque, made.salt, sizeof(made.salt));",
     "memset(made.salt, 0, sizeof(made.salt)); memcpy(made.salt, fw->config.mac, 6);"),
    ("a region of another tenant", "memory.c", "return region->tenant == tenant ? region : NULL;", "return region;"),
    ("senders forgotten under the same epoch", "tenant.c", "    ndfw_lane_new_epoch(fw);\n}\n\nstatic void forget_senders_of",
     "}\n\nstatic void forget_senders_of"),
    ("a frame that is taken twice", "tenant.c", "|| (*word & bit) != 0) {", "|| false) {"),
    ("a tag that nobody looks at", "tenant.c",
     "text_bytes, extension.tag, fw->tenant_room + associated_bytes)) {\n        return false;",
     "text_bytes, extension.tag, fw->tenant_room + associated_bytes)) {\n        ;"),
    ("lanes that tenants share with strangers", "tenant.c", "packet->lanes = tenant->lanes;", "packet->lanes = 0;"),
    ("messages to queue pairs of all tenants", "queue.c", "key != 0 &&\n            fw->queues[i].tenant == tenant) {",
     "key != 0) {"),
    # fences
    ("a confirmation that moves no floor", "lane.c",
     "advance_floor(fw, lane, packet->number);\n    result->floor = lane_floor(lane);",
     "result->floor = packet->number;"),
    ("a confirmation that only counts where something is unfinished", "lane.c",
     "advance_floor(fw, lane, packet->number);\n    result->floor = lane_floor(lane);",
     "if (lane->window != 0) {\n        advance_floor(fw, lane, packet->number);\n    }\n"
     "    result->floor = lane_floor(lane);"),
    # lists and long chains
    ("a second piece that is read from where the first one was left", "buffer.c", "offset -= piece->length;", ";"),
    ("packets of a chain that all go to its first words", "tour.c", "netdam_be64_make(from->address + flight->offset);",
     "netdam_be64_make(from->address);"),
    ("accumulations that are called reproducible", "frame.c",
     "((unsigned)netdam_algebra(opcode, operation, type) & NETDAM_ALG_ASSOCIATES) == 0) {", "false) {"),
    # collectives
    ("a collective that begins before all others have", "collective.c", "} else if (all_told(fw, c, 0) && c->children == 0) {",
     "} else if (c->children == 0) {"),
    ("a collective that ends before all others have", "collective.c", "if (all_told(fw, c, 1) && c->children == 0) {",
     "if (c->children == 0) {"),
    ("tours the other way round the ring", "collective.c",
     "for (uint32_t i = 1; i < c->count; i++) {\n        uint32_t member = ndfw_member_after(c, i);\n\n        segment.peer",
     "for (uint32_t i = 1; i < c->count; i++) {\n        uint32_t member = ndfw_member_after(c, c->count - i);\n\n"
     "        segment.peer"),
    ("tours that add up outputs", "collective.c", "slot->bytes, address_of_input);", "slot->bytes, address_of_output);"),
    ("a broadcast of what was not summed up", "collective.c", "c->members[c->rank].output + slot->at, 0, slot->bytes,",
     "c->members[c->rank].input + slot->at, 0, slot->bytes,"),
    ("a member that refuses and tells nobody", "collective.c",
     "if (ndfw_member_check(fw, descriptor, c, member) == NETDAM_STATUS_OK) {", "if (false) {"),
    ("a failure by the member before", "members.c", ": ndfw_member_after(c, hop + 1u);", ": ndfw_member_after(c, hop);"),
]


def run_oracle(program, seed):
    return planted.run(r"^# (after .*)", program, "--seed", seed, "--operations", OPERATIONS, "--no-shrink", "--directory",
                       planted.OUT / "oracle")


def main():
    chosen = sys.argv[1] if len(sys.argv) > 1 else ""
    planted.try_faults("oracle", [fault for fault in MUTANTS if chosen in fault[0] or chosen == fault[1]], run_oracle, SEEDS,
                  ["tests/unit/reference.o", "sim/libndvt.a"])
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
