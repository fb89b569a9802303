/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CHAIN: broadcasts that store in several places, comparisons on the way, tours that read and reduce and come home or
 * store at their end. What a tour has read nobody sees by itself: its result must be one that the words it visited could
 * give at some time between its post and its completion.
 */
#include "oracle.h"

#include "netdam/transaction.h"

#define HOPS_MAX    SITES_MAX
#define WORDS       4u         /* of the payload at most */
#define WORDS_LONG  BULK_SINKS /* of one that makes several packets */
#define LIST_AT     0u
#define PAYLOAD_AT  (HOPS_MAX * 32u)
#define PRODUCT_MAX 200000u

struct hop {
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint8_t site;
    uint8_t peer;
    uint8_t region;
    uint32_t address; /* in the shared part */
};

struct chain {
    struct hop hops[HOPS_MAX];
    uint32_t count;
    uint32_t words;
    uint32_t bad;    /* the hop that has to refuse, or NONE */
    uint32_t silent; /* hops from here on are known to have done nothing */
    bool is_long;    /* several packets, each of which makes the tour by itself */
    bool loads;      /* the payload is what the first hop reads */
    bool reads;
    bool stores;
    bool reproducible; /* asks for it */
    bool known;        /* what the comparisons found */
    bool returned;     /* the result has come back */
    uint64_t payload[WORDS_LONG];
    uint64_t result[WORDS_LONG];
    uint64_t closed;
    struct cell_transaction comparisons[HOPS_MAX][WORDS]; /* not of long ones */
    struct cell_choices *choices; /* what the last hop of a tour may have stored, or brought home */
};

enum shape {
    SHAPE_STORES,   /* one payload, to be compared and stored on the way */
    SHAPE_TOUR,     /* own values, reduced on the way, come home */
    SHAPE_TOUR_END, /* the same, stored at the last node */
    SHAPE_COPY,     /* what the first node holds */
    SHAPES
};

static bool reads(const struct hop *hop)
{
    return hop->opcode == NETDAM_OP_LOAD || hop->opcode == NETDAM_OP_LOAD_REDUCE;
}

static bool stores(const struct hop *hop)
{
    return hop->opcode == NETDAM_OP_WRITE || hop->opcode == NETDAM_OP_REDUCE;
}

static void draw_combination(struct ndtest_random *random, unsigned opcode, struct hop *hop)
{
    do {
        hop->operation = (uint8_t)(1 + draw_below(random, NETDAM_ALU_SUM_SATURATING));
        hop->type = (uint8_t)(1 + draw_below(random, NETDAM_TYPE_F64));
    } while (netdam_algebra(opcode, hop->operation, hop->type) < 0);
}

/* Words that are not of one operation. The last ones are where tours store, and are read by no tour. */
static uint32_t draw_words(const struct world *world, struct ndtest_random *random, uint32_t words, bool sink)
{
    uint32_t first = uniform_count(world);
    uint32_t end = world->hot > first + words ? world->hot : SINGLES - SINKS;

    if (words > WORDS) {
        return BULK_FIRST + 8 * (sink ? BULK - BULK_SINKS + (uint32_t)draw_below(random, BULK_SINKS - words + 1)
                                      : (uint32_t)draw_below(random, BULK - BULK_SINKS - words + 1));
    }
    if (sink) {
        return 8 * (SINGLES - SINKS + (uint32_t)draw_below(random, SINKS - words + 1));
    }
    if (draw_percent(random, 15)) {
        return object_address(SINGLES + (unsigned)draw_below(random, GROUPS));
    }
    return 8 * (first + (uint32_t)draw_below(random, end - first - words + 1));
}

static unsigned draw_opcode(enum shape shape, uint32_t index, uint32_t count, bool is_long,
                            struct ndtest_random *random)
{
    static const uint8_t stored[] = {NETDAM_OP_WRITE, NETDAM_OP_WRITE, NETDAM_OP_REDUCE, NETDAM_OP_FORWARD,
                                     NETDAM_OP_COMPARE};

    if (shape == SHAPE_STORES) {
        return stored[draw_below(random, sizeof(stored) - is_long)];
    }
    if (shape == SHAPE_COPY && index == 0) {
        return NETDAM_OP_LOAD;
    }
    if (shape != SHAPE_TOUR && index + 1 == count && count > 1) {
        return draw_percent(random, 50) ? NETDAM_OP_WRITE : NETDAM_OP_REDUCE;
    }
    return draw_percent(random, 15) ? NETDAM_OP_FORWARD : NETDAM_OP_LOAD_REDUCE;
}

static void draw_hop(const struct world *world, struct chain *chain, uint32_t index, enum shape shape, uint8_t user,
                     struct ndtest_random *random)
{
    struct hop *hop = &chain->hops[index];

    hop->opcode = (uint8_t)draw_opcode(shape, index, chain->count, chain->is_long, random);
    hop->peer = (uint8_t)draw_below(random, QUEUES);
    hop->peer = world_is_shared(world) ? user : hop->peer; /* a chain has one tenant */
    hop->region = draw_percent(random, 80) ? REGION_ALL : REGION_PART;
    if (hop->opcode == NETDAM_OP_REDUCE || hop->opcode == NETDAM_OP_LOAD_REDUCE) {
        draw_combination(random, hop->opcode, hop);
    }
    hop->address = draw_words(world, random, chain->words, stores(hop) && shape != SHAPE_STORES);
    if (hop->address < PART_OFFSET) {
        hop->region = REGION_ALL;
    }
    chain->reads |= reads(hop);
    chain->stores |= stores(hop);
}

/* Sums on the way are in the order of the list; accumulations in memory are not. */
static bool may_be_reproducible(const struct chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        const struct hop *hop = &chain->hops[i];

        if (hop->opcode == NETDAM_OP_REDUCE &&
            (netdam_algebra(hop->opcode, hop->operation, hop->type) & (int)NETDAM_ALG_ASSOCIATES) == 0) {
            return false;
        }
    }
    return true;
}

static void draw_chain(const struct world *world, const struct op *op, struct chain *chain)
{
    struct ndtest_random random = {op_random(world, op, 0x636861)};
    enum shape shape = (enum shape)draw_below(&random, SHAPES);
    uint8_t sites[SITES_MAX] = {0};

    memset(chain, 0, sizeof(*chain));
    for (uint32_t i = 0; i < world->site_count; i++) {
        sites[i] = (uint8_t)i;
    }
    chain->count = 1 + (uint32_t)draw_below(&random, world->site_count);
    chain->is_long = draw_percent(&random, 3);
    chain->words = chain->is_long          ? WORDS + 1 + (uint32_t)draw_below(&random, WORDS_LONG - WORDS)
                   : shape == SHAPE_STORES ? 1
                                           : 1 + (uint32_t)draw_below(&random, WORDS);
    for (uint32_t i = 0; i < chain->count; i++) {
        uint32_t from = i + (uint32_t)draw_below(&random, world->site_count - i);
        uint8_t site = sites[from];

        sites[from] = sites[i];
        sites[i] = site;
        chain->hops[i].site = site;
        draw_hop(world, chain, i, shape, op->peer, &random);
    }
    chain->loads = shape == SHAPE_COPY;
    chain->silent = chain->count;
    chain->bad = NONE;
    for (uint32_t i = 0; i < chain->words; i++) {
        chain->payload[i] = draw_element(&random, NETDAM_TYPE_U64);
    }
    chain->reproducible = draw_percent(&random, 20) && may_be_reproducible(chain);
    if (draw_percent(&random, world->bad_percent)) {
        chain->bad = (uint32_t)draw_below(&random, chain->count);
        if (chain->hops[chain->bad].opcode == NETDAM_OP_FORWARD) {
            chain->bad = NONE;
        }
    }
}

static bool chain_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    struct chain chain;

    op->d.opcode = NETDAM_OP_CHAIN;
    draw_route(world, op, random);
    /* Nothing of it is known to begin later than it is posted. */
    op->target = op->site;
    draw_mode(world, op, random);
    draw_chain(world, op, &chain);
    op->d.flags |= chain.reproducible ? NETDAM_DESCRIPTOR_REPRODUCIBLE : 0;
    op->d.list_count = (uint8_t)chain.count;
    op->d.length = 8 * chain.words;
    for (uint32_t i = 0; i < chain.count; i++) {
        if (chain.hops[i].opcode != NETDAM_OP_FORWARD) {
            return true;
        }
    }
    return false;
}

/* The words of a hop, in the order of the payload. Silent ones are recorded as nothing. */
unsigned chain_pieces(const struct op *op, struct piece *pieces)
{
    const struct chain *chain = op->extra;
    unsigned count = 0;

    for (uint32_t i = 0; i < chain->count; i++) {
        const struct hop *hop = &chain->hops[i];

        for (uint32_t n = 0; n < chain->words && hop->opcode != NETDAM_OP_FORWARD; n++) {
            struct piece *piece = &pieces[count++];
            bool compares = hop->opcode == NETDAM_OP_COMPARE;
            unsigned word;

            *piece = (struct piece){
                .site = hop->site,
                .object = (uint16_t)object_of(hop->address + 8 * n, &word),
                .silent = i >= chain->silent || reads(hop) || (compares && !chain->known),
                .step = {.opcode = hop->opcode, .operation = hop->operation, .type = hop->type, .bytes = 8},
            };
            piece->step.word = (uint8_t)word;
            piece->step.operand[0] = chain->payload[n];
            piece->step.transaction = compares ? &chain->comparisons[i][n] : NULL;
            piece->step.choices = chain->reads && stores(hop) ? &chain->choices[n] : NULL;
        }
    }
    return count;
}

static void put_list(const struct world *world, const struct op *op, const struct chain *chain, uint8_t *at)
{
    const struct site *site = &world->sites[op->site];

    for (uint32_t i = 0; i < chain->count; i++) {
        const struct hop *hop = &chain->hops[i];
        struct netdam_segment segment = {
            .opcode = hop->opcode,
            .operation = hop->operation,
            .type = hop->type,
            .peer = site->peers[hop->site][hop->peer],
        };

        if (hop->opcode != NETDAM_OP_FORWARD) {
            segment.key = region_key(world, hop->site, hop->peer, hop->region) ^ (i == chain->bad);
            segment.address = hop->address - (hop->region == REGION_PART ? PART_OFFSET : 0);
        }
        memcpy(at + i * sizeof(segment), &segment, sizeof(segment));
    }
}

/* What is compared with is mostly what was seen there last. */
static void choose_payload(const struct world *world, const struct op *op, struct chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        const struct hop *hop = &chain->hops[i];
        unsigned word;
        unsigned object = object_of(hop->address, &word);

        if (hop->opcode == NETDAM_OP_COMPARE && op_random(world, op, 0x6c617374) % 5 != 0) {
            chain->payload[0] = world->sites[hop->site].objects[object].last[word];
            return;
        }
    }
}

static void prepare_comparisons(struct chain *chain)
{
    for (uint32_t i = 0; i < chain->count && !chain->is_long; i++) {
        for (uint32_t n = 0; n < chain->words; n++) {
            unsigned word;

            object_of(chain->hops[i].address + 8 * n, &word);
            chain->comparisons[i][n] = (struct cell_transaction){
                .count = 1,
                .entries = {{.kind = NETDAM_TRANSACTION_COMPARE,
                             .at = (uint8_t)(8 * word),
                             .length = 8,
                             .data = (const uint8_t *)&chain->payload[n]}},
            };
        }
    }
}

static uint32_t result_at(const struct chain *chain)
{
    return PAYLOAD_AT + 8 * chain->words;
}

static bool chain_act(struct world *world, struct op *op)
{
    struct site *site = &world->sites[op->site];
    struct chain *chain = world_allocate(world, sizeof(*chain));
    uint32_t slot;
    uint8_t *at;

    draw_chain(world, op, chain);
    slot = slot_take(world, site, result_at(chain) + 8 * chain->words);
    if (slot == NONE) {
        return false;
    }
    op->extra = chain;
    chain->choices = world_allocate(world, chain->words * sizeof(*chain->choices));
    choose_payload(world, op, chain);
    prepare_comparisons(chain);
    at = site->node.memory + LOCAL_BASE + slot_offset(slot);
    put_list(world, op, chain, at + LIST_AT);
    memcpy(at + PAYLOAD_AT, chain->payload, 8u * chain->words);
    op->slot = (uint16_t)slot;
    op->d.local_region = REGION_LOCAL;
    op->d.remote_address = slot_offset(slot) + LIST_AT;
    op->d.u.buffer.local_address = chain->loads ? 0 : slot_offset(slot) + PAYLOAD_AT;
    op->d.u.buffer.result_address = chain->reads && !chain->stores ? slot_offset(slot) + result_at(chain) : 0;
    if (!effect_fits(world, op) || !post_descriptor(world, op)) {
        slot_release(world, site, slot);
        return false;
    }
    effect_pin(world, op, 1);
    return true;
}

static bool stored_before(const struct chain *chain, uint32_t hop)
{
    for (uint32_t i = 0; i < hop; i++) {
        if (stores(&chain->hops[i])) {
            return true;
        }
    }
    return false;
}

/* What it stores may come later still. */
static void settle_late(struct world *world, struct op *op, struct chain *chain)
{
    effect_late(world, op, VERDICT_MAY, 1);
    chain->closed = op->expires_ns << CELL_TICK_BITS;
}

/* A hop has refused: before it everything has happened, from there on nothing. */
static void settle_refused(struct world *world, struct op *op, struct chain *chain,
                           const struct netdam_completion *completion)
{
    bool compared = completion->status == NETDAM_STATUS_COMPARE_FAILED;
    uint32_t hop = completion->hop;
    bool partial = (completion->flags & NETDAM_COMPLETION_PARTIAL) != 0;
    bool rekeyed =
        hop < chain->count && completion->status == NETDAM_STATUS_BAD_KEY &&
        effect_rekeyed(world, op, chain->hops[hop].site, region_index(chain->hops[hop].peer, chain->hops[hop].region));

    if (hop >= chain->count ||
        (compared ? chain->hops[hop].opcode != NETDAM_OP_COMPARE : hop != chain->bad && !rekeyed) ||
        (hop > chain->bad && chain->bad != NONE)) {
        fail(world, chain->bad == NONE && !compared ? FAILURE_REFUSED : FAILURE_COMPLETION,
             "chain %u: status 0x%02x at hop %u", op->index, completion->status, hop);
        return;
    }
    if (chain->is_long) {
        /* Other packets may have gone on, or were never sent. */
        chain->known = true;
        chain->silent = chain->bad != NONE ? chain->bad : chain->count;
        if (chain->stores) {
            settle_late(world, op, chain);
        } else {
            effect_pin(world, op, -1);
        }
        return;
    }
    if (partial != stored_before(chain, hop)) {
        fail(world, FAILURE_COMPLETION, "chain %u: refused at hop %u, flags 0x%02x", op->index, hop, completion->flags);
        return;
    }
    chain->known = true;
    chain->silent = hop;
    if (compared) {
        chain->silent = hop + 1;
        chain->comparisons[hop][0].entries[0].fails = true;
        chain->comparisons[hop][0].refused = true;
    }
    effect_record(world, op, VERDICT_MUST, world_tick(world), NULL);
    effect_pin(world, op, -1);
}

static void chain_complete(struct world *world, struct op *op, const struct netdam_completion *completion)
{
    struct site *site = &world->sites[op->site];
    struct chain *chain = op->extra;
    enum netdam_status_class class_of_status = netdam_status_class_of(completion->status);

    memcpy(chain->result, site->node.memory + LOCAL_BASE + slot_offset(op->slot) + result_at(chain), 8u * chain->words);
    slot_release(world, site, op->slot);
    if (completion->status == NETDAM_STATUS_OK) {
        if (chain->bad != NONE) {
            fail(world, FAILURE_ACCEPTED, "chain %u, hop %u", op->index, chain->bad);
            return;
        }
        if (completion->length != op->d.length || completion->flags != 0 || completion->hop >= chain->count) {
            fail(world, FAILURE_COMPLETION, "chain %u of %u bytes: %u bytes, flags 0x%02x, hop %u", op->index,
                 op->d.length, completion->length, completion->flags, completion->hop);
            return;
        }
        chain->known = true;
        chain->returned = chain->reads && !chain->stores;
        chain->closed = world_tick(world);
        effect_record(world, op, VERDICT_MUST, chain->closed, NULL);
        effect_pin(world, op, -1);
    } else if (class_of_status == NETDAM_STATUS_CLASS_UNCERTAIN && op->state == OP_OPEN && chain->stores) {
        if (chain->bad != NONE) {
            chain->silent = chain->bad;
        }
        settle_late(world, op, chain);
    } else if (class_of_status == NETDAM_STATUS_CLASS_UNCERTAIN) {
        effect_pin(world, op, -1);
    } else {
        settle_refused(world, op, chain, completion);
    }
}

/* One more hop on one word, for everything that the payload may be and memory may have been. */
static bool fold(const struct hop *hop, struct cell_choices *payload, const uint64_t *values, uint32_t count)
{
    struct cell_choices result = {0};
    struct step step = {.operation = hop->operation, .type = hop->type, .bytes = 8};

    for (uint32_t p = 0; p < (hop->opcode == NETDAM_OP_LOAD ? 1 : payload->count); p++) {
        for (uint32_t v = 0; v < count; v++) {
            bool known = false;
            uint64_t value = values[v];

            if (hop->opcode == NETDAM_OP_LOAD_REDUCE) {
                step.operand[0] = values[v];
                value = cell_elements(&step, payload->values[p]);
            }
            for (uint32_t i = 0; i < result.count; i++) {
                known |= result.values[i] == value;
            }
            if (!known && result.count == CELL_CHOICES_MAX) {
                return false;
            }
            if (!known) {
                result.values[result.count++] = value;
            }
        }
    }
    *payload = result;
    return true;
}

/* What the payload of a tour may be, word by word. False if there are too many to tell. */
static bool fold_all(struct world *world, const struct op *op, struct chain *chain, uint32_t n)
{
    struct cell_choices *payload = &chain->choices[n];

    payload->count = 1;
    payload->values[0] = chain->payload[n];
    for (uint32_t i = 0; i < chain->count; i++) {
        const struct hop *hop = &chain->hops[i];
        uint64_t values[CELL_CHOICES_MAX];
        unsigned word;
        unsigned object = object_of(hop->address + 8 * n, &word);
        uint32_t count;

        if (!reads(hop)) {
            continue;
        }
        count = judge_values(world, hop->site, object, word, op->opened, chain->closed, values);
        if (count == NONE || !fold(hop, payload, values, count)) {
            payload->count = 0;
            return false;
        }
    }
    return true;
}

void chain_judge(struct world *world, struct op *op)
{
    struct chain *chain = op->extra;

    if (chain == NULL || op->state != OP_DONE || !chain->reads || chain->closed == 0) {
        return;
    }
    for (uint32_t n = 0; n < chain->words; n++) {
        bool found = false;

        world->tally->tours++;
        if (!fold_all(world, op, chain, n)) {
            world->tally->tours_open++;
            continue;
        }
        for (uint32_t i = 0; i < chain->choices[n].count; i++) {
            found |= chain->choices[n].values[i] == chain->result[n];
        }
        if (chain->returned && !found) {
            fail(world, FAILURE_LINEAR, "chain %u: word %u came back as 0x%llx, which is none of %u possible values",
                 op->index, n, (unsigned long long)chain->result[n], chain->choices[n].count);
            return;
        }
    }
}

const struct kind kind_chain = {"chain", chain_draw, chain_act, chain_complete};
