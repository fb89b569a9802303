/* SPDX-License-Identifier: BSD-3-Clause */
/* One of two cards that load each other with requests: what it has posted, and that each ends exactly once. */
#ifndef NETDAM_TEST_SIDE_H
#define NETDAM_TEST_SIDE_H

#include "card.h"

#define SIDE_ONBOARD 0x400000u /* bytes of on-board memory */
#define SIDE_DATA    0x200000u /* where its region begins */
#define SIDE_BYTES   0x100000u /* its length */

/* Parts of the region: what is sent, what others write, what is read into. Word 0 is for atomics. */
#define SIDE_SOURCE  0x10000u
#define SIDE_TARGET  0x40000u
#define SIDE_FETCHED 0x80000u

struct side {
    struct card card;
    struct machine *other; /* where the other card is, if not in the same machine */
    unsigned number;       /* its address is 10.0.0.number; the other's is 3 - number */
    struct card_queue queue;
    uint32_t region;
    uint32_t peer;
    uint32_t seed;
    uint64_t next; /* user data of the next descriptor */
    uint8_t open[1u << 16];
    uint64_t posted;
    uint64_t completed;
    uint64_t statuses[256];
};

/* Regions have keys that a reset does not change. */
#define SIDE_KEY(number) (UINT64_C(0x5eed00000000) + (number))

/* Creates region, queue pair and peer on a card that has none. */
void side_begin(struct side *s);
/* Posts requests until the ring is full or `most` were posted. */
void side_post(struct side *s, unsigned most);
/* One request, without the doorbell: it is still in the ring when a reset comes next. */
void side_post_silently(struct side *s);
/* Lets the clock of both cards go on; each machine has had its turn when it returns. */
void side_step(struct side *s, uint64_t ns);
/* Takes what is completed; a completion that nobody waits for fails the test. */
void side_drain(struct side *s);
/* The virtual clock runs until everything has ended. More than `seconds` of it fail the test. */
void side_finish(struct side *s, unsigned seconds);
/* After a reset of the card: what it had taken has ended as FLUSHED or before; the rest is forgotten. */
void side_after_reset(struct side *s);
/* A WRITE and a READ back that have to work, within a minute of virtual time. */
void side_check(struct side *s);

#endif
