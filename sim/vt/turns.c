/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is. */
#include "vt/turns.h"

#include "vt/switch.h"

#define LOOK_BYTES 96u /* of a frame: more than a question in ARP or neighbour discovery has */

void ndsim_turns_init(struct ndsim_turns *turns, uint64_t seed)
{
    memset(turns, 0, sizeof(*turns));
    turns->random.state = seed;
}

/*
 * Frames that share a place push each other out and begin anew by chance: had they one count, two that are always sent
 * one after the other would each have every second turn only.
 */
uint32_t ndsim_turns_take(struct ndsim_turns *turns, const uint8_t *frame, uint32_t bytes)
{
    struct ndsim_turn *turn;
    uint64_t hash;

    if (!ndsim_switch_in_turn(frame, bytes)) {
        return 0;
    }
    hash = ndsim_hash(0, frame, bytes < LOOK_BYTES ? bytes : LOOK_BYTES);
    turn = &turns->turns[hash % NDSIM_TURNS];
    if (turn->frame != (uint32_t)(hash >> 32)) {
        turn->frame = (uint32_t)(hash >> 32);
        turn->next = (uint32_t)ndsim_random_next(&turns->random);
    }
    return turn->next++;
}
