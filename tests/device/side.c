/* SPDX-License-Identifier: BSD-3-Clause */
/* Load from one card on another, with every request followed to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "side.h"

static uint32_t side_random(struct side *s, uint32_t below)
{
    s->seed = s->seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)s->seed * below) >> 32);
}

void side_begin(struct side *s)
{
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(card_admin_args(&s->card, NETDAM_ADMIN_REGION_CREATE, results, SIDE_DATA, SIDE_BYTES,
                                     NETDAM_PERMISSION_ALL, SIDE_KEY(s->number), 0),
                     NETDAM_ADMIN_STATUS_OK);
    s->region = (uint32_t)results[0];
    card_queue_create(&s->queue, &s->card, 0, NETDAM_VECTOR_NONE);
    s->peer = card_peer(&s->card, 3 - s->number);
}

static bool side_has_room(const struct side *s)
{
    return s->queue.sq->producer - __atomic_load_n(&s->queue.sq->consumer, __ATOMIC_ACQUIRE) < 1u << s->queue.log2;
}

static struct netdam_descriptor side_request(struct side *s, enum netdam_op opcode, uint32_t length)
{
    struct netdam_descriptor d = {
        .opcode = (uint8_t)opcode,
        .user_data = s->next,
        .peer = s->peer,
        .length = length,
        .remote_key = SIDE_KEY(3 - s->number),
        .remote_address = SIDE_TARGET,
        .local_region = s->region,
    };

    switch (opcode) {
    case NETDAM_OP_FETCH_ADD:
        d.type = NETDAM_TYPE_U64;
        d.local_region = 0;
        d.remote_address = 0;
        d.u.operand[0] = 1;
        break;
    case NETDAM_OP_READ:
        d.u.buffer.local_address = SIDE_FETCHED;
        break;
    default:
        d.u.buffer.local_address = SIDE_SOURCE;
        break;
    }
    return d;
}

static void note_posted(struct side *s)
{
    uint8_t *open = &s->open[s->next % sizeof(s->open)];

    assert_int_equal(*open, 0);
    *open = 1;
    s->next++;
    s->posted++;
}

static void side_post_one(struct side *s, const struct netdam_descriptor *d)
{
    note_posted(s);
    card_post(&s->queue, d);
}

void side_post_silently(struct side *s)
{
    struct netdam_descriptor d = side_request(s, NETDAM_OP_WRITE, 8);

    if (side_has_room(s)) {
        note_posted(s);
        card_post_silently(&s->queue, &d);
    }
}

void side_post(struct side *s, unsigned most)
{
    while (most-- > 0 && side_has_room(s)) {
        static const enum netdam_op opcodes[] = {NETDAM_OP_WRITE, NETDAM_OP_READ, NETDAM_OP_FETCH_ADD};
        enum netdam_op opcode = opcodes[side_random(s, 3)];
        struct netdam_descriptor d =
            side_request(s, opcode, opcode == NETDAM_OP_FETCH_ADD ? 8 : 1 + side_random(s, 20000));

        side_post_one(s, &d);
    }
}

void side_drain(struct side *s)
{
    const struct netdam_completion *entries = (const struct netdam_completion *)(const void *)(s->queue.cq + 1);
    uint32_t consumer = s->queue.cq->consumer;

    while (__atomic_load_n(&s->queue.cq->producer, __ATOMIC_ACQUIRE) != consumer) {
        const struct netdam_completion *completion = &entries[consumer & ((1u << s->queue.log2) - 1)];
        uint8_t *open = &s->open[completion->user_data % sizeof(s->open)];

        if (*open != 1 || completion->user_data >= s->next) {
            fail_msg("request 0x%lx of card %u is completed twice", (unsigned long)completion->user_data, s->number);
        }
        *open = 0;
        s->statuses[completion->status]++;
        s->completed++;
        consumer++;
        __atomic_store_n(&s->queue.cq->consumer, consumer, __ATOMIC_RELEASE);
    }
}

void side_step(struct side *s, uint64_t ns)
{
    machine_step(s->card.machine, ns);
    if (s->other != NULL) {
        machine_step(s->other, ns);
    }
}

void side_finish(struct side *s, unsigned seconds)
{
    unsigned i;

    for (i = 0; s->completed != s->posted; i++) {
        /* Finely at first, as long as answers flow. */
        uint64_t step = i < 2000 ? 100000 : 5000000;

        if (i >= 2000 + seconds * 200) {
            fail_msg("%lu requests of card %u never end", (unsigned long)(s->posted - s->completed), s->number);
        }
        side_step(s, step);
        side_drain(s);
    }
}

void side_after_reset(struct side *s)
{
    uint32_t taken = s->queue.sq->consumer;

    side_drain(s);
    assert_int_equal(s->queue.cq->consumer, taken);
    memset(s->open, 0, sizeof(s->open));
    s->posted = s->completed;
}

void side_check(struct side *s)
{
    uint8_t *data = s->card.onboard + SIDE_DATA;
    struct netdam_descriptor d;
    uint64_t before;
    unsigned i;

    side_finish(s, 60);
    for (i = 0; i < 5000; i++) {
        data[SIDE_SOURCE + i] = (uint8_t)(s->seed + i * 7);
    }
    before = s->statuses[NETDAM_STATUS_OK];
    d = side_request(s, NETDAM_OP_WRITE, 5000);
    side_post_one(s, &d);
    side_finish(s, 60);
    d = side_request(s, NETDAM_OP_READ, 5000);
    side_post_one(s, &d);
    side_finish(s, 60);
    assert_int_equal(s->statuses[NETDAM_STATUS_OK], before + 2);
    assert_memory_equal(data + SIDE_SOURCE, data + SIDE_FETCHED, 5000);
}
