/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: what each is about is drawn from its number, so that every site of a team posts the same ones, whenever
 * it comes to that. What memory holds when one has ended is compared with the plain result: blocks combined one element
 * after the other, from their owner on round the ring.
 */
#include "oracle.h"

#define VALUES_EDGES 3u /* one in so many vectors is of edge values */

struct collective {
    uint64_t seed;
    uint32_t length;
    uint32_t root;
    uint32_t bad;    /* the member whose list is wrong, or NONE */
    uint32_t bad_of; /* whose entry that is: a key of another, or the own input */
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint32_t input[SITES_MAX]; /* from the start of the region */
    uint32_t output[SITES_MAX];
};

/* One descriptor of it. */
struct part {
    struct collective collective;
    uint32_t instance;
    uint32_t place;
};

void teams_draw(struct world *world, struct ndtest_random *random)
{
    for (unsigned user = 0; user < QUEUES; user++) {
        struct team *team = &world->teams[user];

        /* Those of the first user are all there are; those of the second any of them. */
        for (uint8_t site = 0; site < world->site_count; site++) {
            uint32_t place = (uint32_t)draw_below(random, team->count + 1);

            if (user != 0 && draw_percent(random, 30)) {
                continue;
            }
            memmove(team->sites + place + 1, team->sites + place, team->count - place);
            team->sites[place] = site;
            team->count++;
        }
    }
}

/* Those that are left of it in a smaller cluster. */
static struct team team_of(const struct world *world, unsigned user)
{
    struct team team = world->teams[user];

    team.count = 0;
    for (uint32_t i = 0; i < world->teams[user].count; i++) {
        if (world->teams[user].sites[i] < world->site_count) {
            team.sites[team.count++] = world->teams[user].sites[i];
        }
    }
    return team;
}

static uint32_t place_of(const struct team *team, uint8_t site)
{
    uint32_t place = 0;

    while (place < team->count && team->sites[place] != site) {
        place++;
    }
    return place;
}

static uint32_t draw_vector(struct ndtest_random *random, unsigned type)
{
    uint64_t draw = draw_below(random, 100);
    uint32_t element = element_bytes(type);
    uint32_t most = draw < 60 ? 200 : draw < 95 ? 1500 : draw < 99 ? 9000 : TEAM_VECTOR - 64;

    return (uint32_t)draw_below(random, most / element + 1) * element;
}

static void draw_collective(const struct world *world, unsigned user, const struct team *team, uint32_t instance,
                            struct collective *c)
{
    static const uint8_t opcodes[] = {NETDAM_OP_ALL_REDUCE, NETDAM_OP_ALL_REDUCE, NETDAM_OP_REDUCE_SCATTER,
                                      NETDAM_OP_ALL_GATHER, NETDAM_OP_BROADCAST,  NETDAM_OP_BARRIER};
    struct ndtest_random random = {
        ndtest_mix(world->seed ^ ndtest_mix(((uint64_t)team->round << 32 | instance) + ((uint64_t)user << 60)))};
    bool in_place = draw_percent(&random, 50);

    memset(c, 0, sizeof(*c));
    c->opcode = opcodes[draw_below(&random, sizeof(opcodes))];
    if (c->opcode == NETDAM_OP_ALL_REDUCE || c->opcode == NETDAM_OP_REDUCE_SCATTER) {
        do {
            c->operation = (uint8_t)(1 + draw_below(&random, NETDAM_ALU_SUM_SATURATING));
            c->type = (uint8_t)(1 + draw_below(&random, NETDAM_TYPE_F64));
        } while (netdam_algebra(NETDAM_OP_LOAD_REDUCE, c->operation, c->type) < 0);
    }
    c->length = c->opcode == NETDAM_OP_BARRIER ? 0 : draw_vector(&random, c->type);
    c->root = (uint32_t)draw_below(&random, team->count);
    c->bad = NONE;
    for (uint32_t i = 0; i < team->count; i++) {
        uint32_t room = (TEAM_VECTOR - c->length) / 8;

        c->input[i] = 8 * (uint32_t)draw_below(&random, room);
        c->output[i] = in_place ? c->input[i] : TEAM_VECTOR + 8 * (uint32_t)draw_below(&random, room);
    }
    if (team->count > 1 && draw_percent(&random, world->bad_percent)) {
        c->bad = (uint32_t)draw_below(&random, team->count);
        c->bad_of = (c->bad + (uint32_t)draw_below(&random, team->count)) % team->count;
    }
    c->seed = ndtest_random_next(&random);
}

static void fill_input(const struct collective *c, uint32_t place, uint8_t *vector)
{
    struct ndtest_random random = {ndtest_mix(c->seed + place)};
    uint32_t element = element_bytes(c->type);

    if (c->type == 0 || draw_below(&random, VALUES_EDGES) != 0) {
        ndtest_random_fill(&random, vector, c->length);
        return;
    }
    for (uint32_t at = 0; at < c->length; at += element) {
        uint64_t value = draw_element(&random, c->type);

        memcpy(vector + at, &value, element);
    }
}

/* One block, from its owner on round the ring. */
static void combine(const struct collective *c, uint32_t count, uint32_t owner, uint32_t from, uint32_t bytes,
                    uint8_t *result)
{
    static uint8_t vector[TEAM_VECTOR];
    struct step step = {.operation = c->operation, .type = c->type, .bytes = 8};

    fill_input(c, owner, vector);
    memcpy(result + from, vector + from, bytes);
    for (uint32_t i = 1; i < count; i++) {
        fill_input(c, (owner + i) % count, vector);
        for (uint32_t at = from; at < from + bytes; at += 8) {
            uint32_t part = from + bytes - at < 8 ? from + bytes - at : 8;
            uint64_t value = 0;

            step.operand[0] = 0;
            memcpy(&step.operand[0], vector + at, part);
            memcpy(&value, result + at, part);
            value = cell_elements(&step, value);
            memcpy(result + at, &value, part);
        }
    }
}

/* What a member's output has to hold, given what it held before. */
static void plain_result(const struct collective *c, uint32_t count, uint32_t place, uint8_t *output)
{
    static uint8_t vector[TEAM_VECTOR];

    for (uint32_t owner = 0; owner < count; owner++) {
        uint64_t bytes;
        uint64_t from = netdam_block(c->length, count, owner, &bytes);

        switch (c->opcode) {
        case NETDAM_OP_ALL_REDUCE:
            combine(c, count, owner, (uint32_t)from, (uint32_t)bytes, output);
            break;
        case NETDAM_OP_REDUCE_SCATTER:
            if (owner == place) {
                combine(c, count, owner, (uint32_t)from, (uint32_t)bytes, output);
            }
            break;
        case NETDAM_OP_ALL_GATHER:
            fill_input(c, owner, vector);
            memcpy(output + from, vector + from, bytes);
            break;
        default:
            break;
        }
    }
    if (c->opcode == NETDAM_OP_BROADCAST) {
        fill_input(c, c->root, output);
    }
}

static uint8_t *memory_of(const struct site *site, unsigned user)
{
    return site->node.memory + TEAM_BASE + user * TEAM_BYTES;
}

static uint8_t *image_of(const struct site *site, unsigned user)
{
    return site->outside + TEAM_BASE + user * TEAM_BYTES;
}

/* Nothing of a collective that failed can still come: software clears the control words and begins anew. */
static void begin_anew(struct world *world, unsigned user)
{
    struct team *team = &world->teams[user];

    for (unsigned i = 0; i < world->site_count; i++) {
        struct site *site = &world->sites[i];

        memset(memory_of(site, user) + TEAM_CONTROL, 0, TEAM_BYTES - TEAM_CONTROL);
        memcpy(image_of(site, user), memory_of(site, user), TEAM_BYTES);
        site->unsure[user][0] = site->unsure[user][1] = 0;
        team->posted[i] = 0;
    }
    team->round++;
    team->broken = team->wrong = false;
}

static bool is_quiet(const struct world *world, const struct team *team)
{
    for (unsigned i = 0; i < world->site_count; i++) {
        if (team->pending[i]) {
            return false;
        }
    }
    return team->ended_ns + world->lifetime_ns < world->net.loop.now_ns;
}

static void put_members(const struct world *world, const struct op *op, const struct team *team,
                        const struct part *part, uint8_t *at)
{
    const struct collective *c = &part->collective;

    for (uint32_t i = 0; i < team->count; i++) {
        struct netdam_member member = {
            .peer = i == part->place ? 0 : world->sites[op->site].peers[team->sites[i]][op->peer],
            .region = i == part->place ? region_index(op->peer, REGION_TEAM) : 0,
            .key = region_key(world, team->sites[i], op->peer, REGION_TEAM),
            .input = c->input[i],
            .output = c->output[i],
            .control = TEAM_CONTROL,
        };

        if (part->place == c->bad && i == c->bad_of) {
            member.key ^= i != part->place;
            member.input += i == part->place;
        }
        memcpy(at + i * sizeof(member), &member, sizeof(member));
    }
}

static bool collective_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    struct team team;

    draw_route(world, op, random);
    op->target = op->site;
    op->d.length = (uint32_t)draw_below(random, 2); /* whether it asks for what is the case anyway */
    team = team_of(world, op->peer);
    return place_of(&team, op->site) < team.count;
}

static bool collective_act(struct world *world, struct op *op)
{
    struct site *site = &world->sites[op->site];
    struct team *state = &world->teams[op->peer];
    struct part *part;
    struct team team;
    uint32_t slot;

    if (state->broken && is_quiet(world, state)) {
        begin_anew(world, op->peer);
    }
    slot = state->broken || state->pending[op->site] ? NONE : slot_take(world, site, SMALL_BYTES);
    if (slot == NONE) {
        return false;
    }
    team = team_of(world, op->peer);
    part = world_allocate(world, sizeof(*part));
    part->place = place_of(&team, op->site);
    part->instance = state->posted[op->site] + 1;
    draw_collective(world, op->peer, &team, part->instance, &part->collective);
    put_members(world, op, &team, part, site->node.memory + LOCAL_BASE + slot_offset(slot));
    op->extra = part;
    op->slot = (uint16_t)slot;
    state->wrong |= part->collective.bad != NONE;
    op->refused = state->wrong;
    op->d = (struct netdam_descriptor){
        .opcode = part->collective.opcode,
        .operation = part->collective.operation,
        .type = part->collective.type,
        .flags = op->d.length != 0 ? NETDAM_DESCRIPTOR_REPRODUCIBLE : 0,
        .length = part->collective.length,
        .list_count = (uint8_t)team.count,
        .peer = part->place,
        .immediate = part->instance,
        .local_region = REGION_LOCAL,
        .remote_address = slot_offset(slot),
        .remote_key = part->collective.opcode == NETDAM_OP_BROADCAST ? part->collective.root : 0,
    };
    if (part->collective.opcode != NETDAM_OP_BARRIER) {
        uint32_t at = part->collective.input[part->place];

        fill_input(&part->collective, part->place, memory_of(site, op->peer) + at);
        memcpy(image_of(site, op->peer) + at, memory_of(site, op->peer) + at, part->collective.length);
    }
    if (!post_descriptor(world, op)) {
        slot_release(world, site, slot);
        return false;
    }
    state->posted[op->site] = part->instance;
    state->pending[op->site] = true;
    return true;
}

/* Vectors are as they have to be, but for what may still change. */
static void check_vectors(struct world *world, const struct site *site, unsigned user, const char *when)
{
    const uint8_t *memory = memory_of(site, user), *image = image_of(site, user);
    const uint32_t *unsure = site->unsure[user];

    if (memcmp(memory, image, unsure[0]) != 0 ||
        memcmp(memory + unsure[1], image + unsure[1], TEAM_CONTROL - unsure[1]) != 0) {
        uint32_t at = 0;

        while (memory[at] == image[at] || (at >= unsure[0] && at < unsure[1])) {
            at++;
        }
        fail(world, FAILURE_COLLECTIVE, "site %u, user %u, %s: 0x%02x at byte %u where the plain result is 0x%02x",
             site->index, user, when, memory[at], at, image[at]);
    }
}

static void complete_ok(struct world *world, struct op *op, const struct team *team, const struct part *part)
{
    const struct collective *c = &part->collective;
    struct site *site = &world->sites[op->site];

    for (uint32_t i = 0; i < team->count; i++) {
        if (team->posted[team->sites[i]] < part->instance) {
            fail(world, FAILURE_COLLECTIVE, "op %u, collective %u of user %u: ended before site %u had begun it",
                 op->index, part->instance, op->peer, team->sites[i]);
            return;
        }
    }
    if (part->place == c->bad) {
        fail(world, FAILURE_ACCEPTED, "op %u, collective %u of user %u", op->index, part->instance, op->peer);
        return;
    }
    plain_result(c, team->count, part->place, image_of(site, op->peer) + c->output[part->place]);
    check_vectors(world, site, op->peer, "at the end of a collective");
    world->tally->collectives++;
}

/* In a world without any loss: who is at fault is named, by everybody that can have heard of it. */
static void check_blame(struct world *world, const struct op *op, const struct part *part,
                        const struct netdam_completion *completion)
{
    const struct collective *c = &part->collective;
    bool local = c->bad == c->bad_of;
    bool named = completion->status == (local ? NETDAM_STATUS_LOCAL_DESCRIPTOR : NETDAM_STATUS_BAD_KEY) &&
                 completion->hop == c->bad_of;
    /* Who has no key of a member cannot tell it, and who has not begun tells nobody. */
    bool waited = !local && part->place == c->bad_of && completion->status == NETDAM_STATUS_TIMEOUT;

    if (world->harmless && !named && !waited && (c->bad != NONE || !op->refused)) {
        fail(world, c->bad == NONE ? FAILURE_REFUSED : FAILURE_COMPLETION,
             "op %u, collective %u of user %u: status 0x%02x by member %u", op->index, part->instance, op->peer,
             completion->status, completion->hop);
    }
}

static void collective_complete(struct world *world, struct op *op, const struct netdam_completion *completion)
{
    struct site *site = &world->sites[op->site];
    const struct part *part = op->extra;
    const struct collective *c = &part->collective;
    struct team *state = &world->teams[op->peer];
    struct team team = team_of(world, op->peer);
    bool good = completion->status == NETDAM_STATUS_OK;

    slot_release(world, site, op->slot);
    state->pending[op->site] = false;
    if (completion->length != (good ? c->length : 0) ||
        (completion->flags & (good ? 0xff : ~(unsigned)NETDAM_COMPLETION_PARTIAL)) != 0 ||
        (good ? completion->hop != 0 : completion->hop != NETDAM_HOP_NONE && completion->hop >= team.count)) {
        fail(world, FAILURE_COMPLETION, "op %u, collective of %u bytes: status 0x%02x, %u bytes, flags 0x%02x, hop %u",
             op->index, c->length, completion->status, completion->length, completion->flags, completion->hop);
        return;
    }
    if (good) {
        complete_ok(world, op, &team, part);
        return;
    }
    state->broken = true;
    state->ended_ns = world->net.loop.now_ns;
    site->unsure[op->peer][0] = c->output[part->place];
    site->unsure[op->peer][1] = c->output[part->place] + c->length;
    check_vectors(world, site, op->peer, "after a collective that failed");
    check_blame(world, op, part, completion);
}

unsigned teams_finish(struct world *world)
{
    unsigned left = 0;

    for (unsigned user = 0; user < QUEUES; user++) {
        struct team team = team_of(world, user);
        uint32_t most = 0;

        for (uint32_t i = 0; i < team.count; i++) {
            most = team.posted[team.sites[i]] > most ? team.posted[team.sites[i]] : most;
        }
        for (uint32_t i = 0; i < team.count && !team.broken; i++) {
            struct op *op = &world->ops[world->op_count];

            if (team.posted[team.sites[i]] == most) {
                continue;
            }
            *op = (struct op){
                .kind = &kind_collective,
                .index = world->op_count,
                .site = team.sites[i],
                .target = team.sites[i],
                .queue = (uint8_t)user,
                .peer = (uint8_t)user,
                .expires_ns = UINT64_MAX,
            };
            world->op_count++;
            if (!collective_act(world, op)) {
                world->op_count--;
                left++;
            }
        }
    }
    return left;
}

void teams_check(struct world *world)
{
    for (unsigned i = 0; i < world->site_count; i++) {
        for (unsigned user = 0; user < QUEUES; user++) {
            check_vectors(world, &world->sites[i], user, "at the end");
        }
    }
}

const struct kind kind_collective = {"collective", collective_draw, collective_act, collective_complete};
