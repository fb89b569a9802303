/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives over a wire in virtual time: every member's memory and completion. */
#include "fleet.h"

#define CONTROL 0x100u
#define INPUT   0x1000u
#define OUTPUT  0x8000u

struct job {
    uint8_t opcode, operation, type;
    unsigned members;
    uint32_t length;
    bool in_place;
    unsigned root;
    uint32_t instance;
};

static void post(struct fleet *fleet, const struct job *job, unsigned rank)
{
    struct netdam_member members[NODES] = {0};
    struct netdam_descriptor d = {
        .opcode = job->opcode,
        .operation = job->operation,
        .type = job->type,
        .list_count = (uint8_t)job->members,
        .user_data = 1000 + rank,
        .peer = rank,
        .length = job->length,
        .remote_key = job->opcode == NETDAM_OP_BROADCAST ? job->root : 0,
        .remote_address = LIST,
        .local_region = fleet->everything[rank],
        .immediate = job->instance,
    };
    unsigned action;

    for (unsigned i = 0; i < job->members; i++) {
        members[i].peer = i == rank ? 0 : fleet->peers[rank][i];
        members[i].region = i == rank ? fleet->shared[rank] : 0;
        members[i].key = KEY(i);
        members[i].control = CONTROL;
        members[i].input = INPUT;
        members[i].output = job->in_place ? INPUT : OUTPUT;
    }
    memcpy(fleet->nodes[rank].memory + LIST, members, sizeof(members));
    assert_true(ndtest_queue_post(&fleet->queues[rank], &d, fleet->wire.now_ns, &action));
    ndtest_wire_wake(&fleet->wire, rank);
}

static uint32_t value_of(unsigned member, uint32_t element)
{
    return (member + 1) * 10000 + element;
}

static uint32_t *vector(struct fleet *fleet, unsigned member, uint64_t address)
{
    return (uint32_t *)(void *)(fleet->nodes[member].memory + BASE + address);
}

static void fill(struct fleet *fleet, const struct job *job)
{
    for (unsigned i = 0; i < job->members; i++) {
        memset(fleet->nodes[i].memory + BASE + INPUT, 0x55, BYTES - INPUT);
        for (uint32_t n = 0; n < job->length / 4; n++) {
            vector(fleet, i, INPUT)[n] = value_of(i, n);
        }
    }
}

static uint32_t owner_of(const struct job *job, uint32_t byte)
{
    for (unsigned i = 0; i < job->members; i++) {
        uint64_t bytes, start = netdam_block(job->length, job->members, i, &bytes);

        if (byte >= start && byte < start + bytes) {
            return i;
        }
    }
    return NODES;
}

static void check(struct fleet *fleet, const struct job *job)
{
    for (unsigned i = 0; i < job->members; i++) {
        const uint32_t *out = vector(fleet, i, job->in_place ? INPUT : OUTPUT);

        for (uint32_t n = 0; n < job->length / 4; n++) {
            uint32_t owner = owner_of(job, n * 4), sum = 0;

            for (unsigned j = 0; j < job->members; j++) {
                sum += value_of(j, n);
            }
            switch (job->opcode) {
            case NETDAM_OP_ALL_REDUCE:
                assert_int_equal(out[n], sum);
                break;
            case NETDAM_OP_REDUCE_SCATTER:
                assert_int_equal(out[n], owner == i ? sum : job->in_place ? value_of(i, n) : 0x55555555);
                break;
            case NETDAM_OP_ALL_GATHER:
                assert_int_equal(out[n], value_of(owner, n));
                break;
            default:
                assert_int_equal(out[n], value_of(job->root, n));
                break;
            }
        }
        /* Nothing behind the end. */
        assert_int_equal(out[job->length / 4], 0x55555555);
        if (!job->in_place) {
            for (uint32_t n = 0; n < job->length / 4; n++) {
                assert_int_equal(vector(fleet, i, INPUT)[n], value_of(i, n));
            }
        }
    }
}

static void run(struct fleet *fleet, const struct job *job)
{
    fill(fleet, job);
    for (unsigned i = 0; i < job->members; i++) {
        post(fleet, job, (i + job->instance) % job->members);
        for (unsigned steps = 0; steps < 50 && ndtest_wire_step(&fleet->wire); steps++) {
        }
    }
    for (unsigned i = 0; i < job->members; i++) {
        struct netdam_completion completion = fleet_wait(fleet, i);

        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.user_data, 1000 + i);
        assert_int_equal(completion.length, job->length);
    }
    if (job->opcode != NETDAM_OP_BARRIER) {
        check(fleet, job);
    }
}

static void every_member_has_its_part_whatever_the_weather(void **state)
{
    static const uint8_t opcodes[] = {NETDAM_OP_ALL_REDUCE, NETDAM_OP_REDUCE_SCATTER, NETDAM_OP_ALL_GATHER,
                                      NETDAM_OP_BROADCAST, NETDAM_OP_BARRIER};
    static const uint32_t lengths[] = {0, 4, 60, 64, 68, 4096, 20004, 25000};

    (void)state;
    for (unsigned members = 1; members <= NODES; members++) {
        struct fleet fleet;
        uint32_t instance = 0;

        fleet_start(&fleet, members, 4, 1500);
        fleet.wire.weather = (struct ndtest_weather){.drop = 20000,
                                                     .duplicate = 20000,
                                                     .late = 10000,
                                                     .corrupt = 10000,
                                                     .port_full = 10000,
                                                     .latency_ns = 5000,
                                                     .jitter_ns = 20000,
                                                     .late_ns = 5000000};
        for (unsigned o = 0; o < ARRAY_SIZE(opcodes); o++) {
            for (unsigned l = 0; l < ARRAY_SIZE(lengths); l++) {
                bool reduces = opcodes[o] == NETDAM_OP_ALL_REDUCE || opcodes[o] == NETDAM_OP_REDUCE_SCATTER;
                struct job job = {.opcode = opcodes[o],
                                  .operation = reduces ? NETDAM_ALU_SUM : NETDAM_ALU_NONE,
                                  .type = reduces ? NETDAM_TYPE_U32 : NETDAM_TYPE_NONE,
                                  .members = members,
                                  .length = opcodes[o] == NETDAM_OP_BARRIER ? 0 : lengths[l],
                                  .in_place = l % 2 != 0,
                                  .root = l % members,
                                  .instance = ++instance};

                run(&fleet, &job);
            }
        }
        fleet_stop(&fleet);
    }
}

/* Values of very different sizes: their float sum depends on the order of its terms. */
static float rough(unsigned member, uint32_t n)
{
    return (float)(1 + n % 7) * (member % 2 != 0 ? 1.0e-4f : 3.0e4f) * (float)(int32_t)(n % 3 - 1 + member);
}

static void float_sums_are_the_same_whatever_the_weather(void **state)
{
    enum { LENGTH = 8200 };
    static uint8_t expected[LENGTH];
    bool orders_matter = false;

    (void)state;
    for (uint32_t seed = 0; seed < 1000; seed++) {
        struct job job = {.opcode = NETDAM_OP_ALL_REDUCE,
                          .operation = NETDAM_ALU_SUM,
                          .type = NETDAM_TYPE_F32,
                          .members = 4,
                          .length = LENGTH,
                          .instance = 1,
                          .in_place = seed % 2 != 0};
        struct fleet fleet;

        fleet_start(&fleet, seed, 4, 1500);
        if (seed != 0) {
            fleet.wire.weather = (struct ndtest_weather){.drop = 50000,
                                                         .duplicate = 50000,
                                                         .late = 20000,
                                                         .latency_ns = 5000,
                                                         .jitter_ns = 100000,
                                                         .late_ns = 5000000};
        }
        for (unsigned i = 0; i < 4; i++) {
            for (uint32_t n = 0; n < LENGTH / 4; n++) {
                float value = rough(i, n);

                memcpy(fleet.nodes[i].memory + BASE + INPUT + n * 4u, &value, 4);
            }
        }
        for (unsigned i = 0; i < 4; i++) {
            post(&fleet, &job, (i + seed) % 4);
        }
        for (unsigned i = 0; i < 4; i++) {
            const uint8_t *out = fleet.nodes[i].memory + BASE + (job.in_place ? INPUT : OUTPUT);

            assert_int_equal(fleet_wait(&fleet, i).status, NETDAM_STATUS_OK);
            if (seed == 0 && i == 0) {
                memcpy(expected, out, LENGTH);
            }
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_memory_equal(fleet.nodes[i].memory + BASE + (job.in_place ? INPUT : OUTPUT), expected, LENGTH);
        }
        fleet_stop(&fleet);
    }
    /* It would show if the order were another. */
    for (uint32_t n = 0; n < LENGTH / 4; n++) {
        volatile float up = ((rough(0, n) + rough(1, n)) + rough(2, n)) + rough(3, n);
        volatile float down = ((rough(3, n) + rough(2, n)) + rough(1, n)) + rough(0, n);

        orders_matter |= up != down;
    }
    assert_true(orders_matter);
}

static void a_member_that_dies_is_named_by_all_others(void **state)
{
    unsigned failed = 0;

    (void)state;
    for (unsigned steps = 0; steps < 600; steps += 13) {
        struct fleet fleet;
        struct job job = {.opcode = NETDAM_OP_ALL_REDUCE,
                          .operation = NETDAM_ALU_SUM,
                          .type = NETDAM_TYPE_U32,
                          .members = 4,
                          .length = 25000,
                          .instance = 1};
        bool all_over = true;

        fleet_start(&fleet, 3 + steps, 4, 1500);
        fill(&fleet, &job);
        for (unsigned i = 0; i < 4; i++) {
            if (steps != 0 || i != 2) {
                post(&fleet, &job, i);
            }
        }
        for (unsigned n = 0; n < steps && ndtest_wire_step(&fleet.wire); n++) {
        }
        for (unsigned i = 0; i < NODES; i++) {
            fleet.wire.cut[2][i] = fleet.wire.cut[i][2] = true;
        }
        for (unsigned i = 0; i < 4; i++) {
            struct netdam_completion completion;

            if (i == 2) {
                continue;
            }
            completion = fleet_wait(&fleet, i);
            all_over &= completion.status == NETDAM_STATUS_OK;
            if (completion.status != NETDAM_STATUS_OK) {
                assert_int_equal(completion.hop, 2);
            }
        }
        failed += !all_over;
        fleet_stop(&fleet);
    }
    assert_true(failed > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_has_its_part_whatever_the_weather),
        cmocka_unit_test(float_sums_are_the_same_whatever_the_weather),
        cmocka_unit_test(a_member_that_dies_is_named_by_all_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
