/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: which operations, of which kinds, at which times. Everything in it depends on the seed alone. */
#include "oracle.h"

/* In the order of world->weights. */
const struct kind *const kinds[] = {
    &kind_read,        &kind_write, &kind_reduce, &kind_atomic,  &kind_send,       &kind_receive,
    &kind_echo,        &kind_load,  &kind_store,  &kind_restart, &kind_outage,     &kind_burst,
    &kind_transaction, &kind_chain, &kind_rekey,  &kind_reopen,  &kind_collective, &kind_stranger,
};
const unsigned kind_count = sizeof(kinds) / sizeof(kinds[0]);

uint64_t draw_below(struct ndtest_random *random, uint64_t limit)
{
    return ndtest_random_below(random, limit);
}

bool draw_percent(struct ndtest_random *random, uint32_t percent)
{
    return ndtest_random_below(random, 100) < percent;
}

static const struct kind *draw_kind(const struct world *world, struct ndtest_random *random)
{
    uint64_t total = 0;
    uint64_t draw;

    for (unsigned i = 0; i < kind_count; i++) {
        total += world->weights[i];
    }
    draw = draw_below(random, total);
    for (unsigned i = 0;; i++) {
        if (draw < world->weights[i]) {
            return kinds[i];
        }
        draw -= world->weights[i];
    }
}

/* Each operation has its own draws: leaving one out changes no other. */
void program_draw(struct world *world)
{
    uint64_t at_ns = world->net.loop.now_ns + 1000;

    for (uint32_t i = 0; i < world->op_count; i++) {
        struct ndtest_random random = {ndtest_mix(world->seed ^ ndtest_mix(i + UINT64_C(0x6f7000000000)))};
        struct op *op = &world->ops[i];

        /* Now and then a pause in which requesters fall idle; otherwise bursts. */
        at_ns += draw_below(&random, 2 * world->gap_ns);
        if (draw_below(&random, 200) == 0) {
            at_ns += draw_below(&random, 3 * world->config.confirm_idle_ns);
        }
        do {
            *op = (struct op){.index = i, .at_ns = at_ns, .expires_ns = UINT64_MAX};
            op->kind = draw_kind(world, &random);
        } while (!op->kind->draw(world, op, &random));
    }
}
