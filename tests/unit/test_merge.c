/* SPDX-License-Identifier: BSD-3-Clause */
/* Which descriptors share a packet, what that packet holds, and what each of them is told in the end. */
#include "merge.h"
#include "reference.h"

static void adjacent_writes_share_a_packet_and_complete_each(void **state)
{
    static const uint32_t lengths[16] = {8, 1, 3, 100, 64, 7, 5, 200, 9, 11, 300, 2, 16, 31, 33, 400};

    (void)state;
    for (unsigned count = 1; count <= 16; count++) {
        struct ndtest_packet p;
        uint32_t bytes = 0, at = 0;

        start(count % 2 ? 4 : 6, GENERATION);
        for (unsigned i = 0; i < count; i++) {
            post_write(bytes, lengths[i], i);
            bytes += lengths[i];
        }
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p);
        unit_expect_silence(&b.u);
        assert_int_equal(p.opcode, NETDAM_OP_WRITE);
        assert_int_equal(p.flags, NETDAM_FLAG_PAYLOAD_CRC);
        assert_int_equal(p.length, bytes);
        assert_int_equal(p.payload_bytes, bytes);
        assert_true(p.address == BENCH_REMOTE && p.key == UNIT_KEY && p.generation == GENERATION);
        for (unsigned i = 0; i < count; i++) {
            expect_bytes(p.payload + at, i, lengths[i]);
            at += lengths[i];
        }
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_MERGED), count - 1);
        unit_expect_no_completion(&b.queue);
        unit_answer_ok(&b.u, &p, NULL);
        for (unsigned i = 0; i < count; i++) {
            expect_completion(i, NETDAM_STATUS_OK, lengths[i]);
        }
        unit_answer_ok(&b.u, &p, NULL); /* a second answer is of no concern */
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 1);
        stop();
    }
}

static void writes_may_grow_at_both_ends(void **state)
{
    /* Posted in this order; where each lies, in bytes from the lowest. */
    static const struct {
        uint32_t at[6], length[6];
        uint64_t completed[6];
    } cases[] = {
        {{50, 40, 30, 20, 10, 0}, {10, 10, 10, 10, 10, 10}, {5, 4, 3, 2, 1, 0}},
        {{30, 37, 20, 40, 13, 0}, {7, 3, 10, 90, 7, 13}, {5, 4, 2, 0, 1, 3}},
        {{0, 4, 8, 16, 17, 20}, {4, 4, 8, 1, 3, 4}, {0, 1, 2, 3, 4, 5}},
    };

    (void)state;
    for (unsigned c = 0; c < ARRAY_SIZE(cases); c++) {
        struct ndtest_packet p;
        uint32_t bytes = 0;

        start(4, GENERATION);
        for (unsigned i = 0; i < 6; i++) {
            post_write(cases[c].at[i], cases[c].length[i], i);
            bytes += cases[c].length[i];
        }
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p);
        unit_expect_silence(&b.u);
        assert_true(p.address == BENCH_REMOTE);
        assert_int_equal(p.length, bytes);
        for (unsigned i = 0; i < 6; i++) {
            expect_bytes(p.payload + cases[c].at[i], i, cases[c].length[i]);
        }
        unit_answer_ok(&b.u, &p, NULL);
        for (unsigned i = 0; i < 6; i++) {
            uint64_t id = cases[c].completed[i];

            expect_completion(id, NETDAM_STATUS_OK, cases[c].length[id]);
        }
        stop();
    }
}

static void apart(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    (void)first;
    second->remote_address += 1;
}

static void overlapping(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    (void)first;
    second->remote_address -= 1;
}

static void apart_below(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    second->remote_address = first->remote_address - second->length - 1;
}

static void overlapping_below(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    second->remote_address = first->remote_address - second->length + 1;
}

static void same_range(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    second->remote_address = first->remote_address;
}

static void other_key(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    (void)first;
    second->remote_key++;
}

static void first_empty(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    second->remote_address -= first->length;
    first->length = 0;
}

static void second_empty(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    (void)first;
    second->length = 0;
}

static void second_reads(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    (void)first;
    second->opcode = NETDAM_OP_READ;
}

static void both_read(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    first->opcode = second->opcode = NETDAM_OP_READ;
}

static void both_echo(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    first->opcode = second->opcode = NETDAM_OP_ECHO;
    first->remote_key = second->remote_key = first->remote_address = second->remote_address = 0;
}

static void both_send(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    first->opcode = second->opcode = NETDAM_OP_SEND;
    first->remote_address = second->remote_address = 0;
}

static void first_reduces(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    (void)second;
    first->opcode = NETDAM_OP_REDUCE;
    first->operation = NETDAM_ALU_SUM;
    first->type = NETDAM_TYPE_U64;
}

static void second_reduces(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    first_reduces(second, first);
}

static void both_reduce(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    first_reduces(first, second);
    first_reduces(second, first);
}

static void both_reduce_alike(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    both_reduce(first, second);
    second->remote_address = first->remote_address;
}

static void reduce_shorter(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    both_reduce_alike(first, second);
    second->length -= 8;
}

static void reduce_other_operation(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    both_reduce_alike(first, second);
    second->operation = NETDAM_ALU_XOR;
}

static void reduce_other_type(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    both_reduce_alike(first, second);
    second->type = NETDAM_TYPE_I64;
}

static void reduce_shifted(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    both_reduce_alike(first, second);
    second->remote_address += 8;
}

static void atomics(struct netdam_descriptor *first, struct netdam_descriptor *second)
{
    *first = bench_atomic(&b, NETDAM_OP_FETCH_ADD, NETDAM_TYPE_U64, 1, 0, 0);
    *second = bench_atomic(&b, NETDAM_OP_FETCH_ADD, NETDAM_TYPE_U64, 1, 0, 1);
}

static void what_does_not_belong_together_has_packets_of_its_own(void **state)
{
    static const struct {
        const char *name;
        void (*change)(struct netdam_descriptor *first, struct netdam_descriptor *second);
    } cases[] = {
        {"a gap", apart},
        {"an overlap", overlapping},
        {"a gap below", apart_below},
        {"an overlap below", overlapping_below},
        {"the same range", same_range},
        {"another key", other_key},
        {"nothing first", first_empty},
        {"nothing second", second_empty},
        {"a READ second", second_reads},
        {"READs", both_read},
        {"ECHOs", both_echo},
        {"SENDs", both_send},
        {"a REDUCE first", first_reduces},
        {"a REDUCE second", second_reduces},
        {"REDUCEs side by side", both_reduce},
        {"a shorter REDUCE", reduce_shorter},
        {"another operation", reduce_other_operation},
        {"another type", reduce_other_type},
        {"another range", reduce_shifted},
        {"atomics", atomics},
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct netdam_descriptor first, second;
        struct ndtest_packet p;

        start(4, GENERATION);
        first = write_of(64, 64, 0);
        second = write_of(128, 64, 1);
        cases[i].change(&first, &second);
        post(&first);
        post(&second);
        unit_run(&b.u);
        if (b.u.count != 2 || unit_counter(&b.u, NETDAM_COUNTER_MERGED) != 0) {
            fail_msg("%s: %u packets", cases[i].name, b.u.count);
        }
        unit_expect_sent(&b.u, &p);
        assert_true(p.opcode == first.opcode && p.address == first.remote_address && p.length == first.length);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, 0, NETDAM_STATUS_OK);
        unit_expect_sent(&b.u, &p);
        assert_true(p.opcode == second.opcode && p.address == second.remote_address && p.length == second.length);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
        stop();
    }
}

/* The same two descriptors as in the table above, without any change, and as REDUCEs. */
static void what_belongs_together_does_share_a_packet(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        struct netdam_descriptor first, second;

        start(4, GENERATION);
        first = write_of(64, 64, 0);
        second = write_of(128, 64, 1);
        if (way == 1) {
            both_reduce_alike(&first, &second);
        }
        post(&first);
        post(&second);
        unit_run(&b.u);
        assert_int_equal(b.u.count, 1);
        unit_stop(&b.u);
    }
}

static void a_flag_asks_for_packets_of_ones_own(void **state)
{
    static const uint32_t flags[] = {
        NETDAM_DESCRIPTOR_FENCE,      NETDAM_DESCRIPTOR_RELAXED,   NETDAM_DESCRIPTOR_ORDERED,
        NETDAM_DESCRIPTOR_UNRELIABLE, NETDAM_DESCRIPTOR_IMMEDIATE,
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(flags); i++) {
        for (unsigned which = 1; which <= 3; which++) {
            unsigned packets = 0, completions = 0;

            start(4, GENERATION);
            for (unsigned n = 0; n < 2; n++) {
                struct netdam_descriptor d = write_of(n * 8, 8, n);

                d.flags = (which & (1u << n)) != 0 ? flags[i] : 0;
                post(&d);
            }
            unit_run(&b.u);
            for (struct ndtest_packet p; unit_sent(&b.u, &p); packets++) {
                assert_int_equal(p.length, 8);
                unit_answer(&b.u, &p, &(struct unit_answer){.flags = p.flags & NETDAM_FLAG_RELAXED, .length = 8});
            }
            for (struct netdam_completion c; ndtest_queue_poll(&b.queue, &c); completions++) {
                assert_int_equal(c.status, NETDAM_STATUS_OK);
            }
            assert_int_equal(packets, 2);
            assert_int_equal(completions, 2);
            assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_MERGED), 0);
            stop();
        }
    }
}

/* Two WRITEs that belong together, and a third descriptor between them. */
static void nothing_is_merged_across_another_descriptor(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct netdam_descriptor between[] = {
            bench_descriptor(&b, NETDAM_OP_READ, 0, 64, 1),
            bench_descriptor(&b, NETDAM_OP_ECHO, 0, 64, 1),
            bench_atomic(&b, NETDAM_OP_FETCH_ADD, NETDAM_TYPE_U64, 1, 0, 1),
            bench_descriptor(&b, NETDAM_OP_WRITE, 0, 64, 1), /* another key */
            bench_descriptor(&b, NETDAM_OP_WRITE, 0, 64, 1), /* another peer */
            bench_descriptor(&b, 0xff, 0, 64, 1),            /* a mistake */
        };
        unsigned packets = 0;

        start(4, GENERATION);
        between[3].remote_key++;
        between[3].remote_address += 8;
        between[4].remote_address += 8;
        between[4].peer = unit_peer(&b.u, 6, GENERATION);
        for (unsigned n = 0; n < 6; n++) {
            between[n].peer = n == 4 ? between[n].peer : b.peer;
            between[n].local_region = between[n].opcode == NETDAM_OP_FETCH_ADD ? 0 : b.region;
        }
        post_write(0, 8, 0);
        post(&between[i]);
        post_write(8, 8, 2);
        unit_run(&b.u);
        for (struct ndtest_packet p; unit_sent(&b.u, &p); packets++) {
            assert_int_not_equal(p.length, 16);
            unit_answer_ok(&b.u, &p, NULL);
        }
        assert_int_equal(packets, i == 5 ? 2 : 3);
        for (unsigned n = 0; n < 3; n++) {
            (void)unit_completion(&b.queue);
        }
        stop();
    }
}

static void two_rings_do_not_share_a_packet(void **state)
{
    struct ndtest_queue other;
    struct netdam_descriptor d;
    struct ndtest_packet p;

    (void)state;
    start(4, GENERATION);
    unit_queue(&b.u, &other, OTHER_RING, 4);
    for (unsigned i = 0; i < 6; i++) {
        d = write_of(i * 8, 8, i);
        unit_post(&b.u, i % 2 == 0 ? &b.queue : &other, &d);
        if (i % 2 != 0) {
            b.u.node.ops->run(b.u.node.state, b.u.now_ns, 1, &b.u.result);
        }
    }
    unit_run(&b.u);
    for (unsigned i = 0; i < 6; i++) {
        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.length, 8);
        unit_answer_ok(&b.u, &p, NULL);
    }
    for (unsigned i = 0; i < 6; i++) {
        (void)unit_completion(i % 2 == 0 ? &b.queue : &other);
    }
    stop();
}

/* The place in the table that a group had is taken by a request of another ring, which goes on where the group ended. */
static void a_place_that_another_ring_has_taken_over_is_not_joined(void **state)
{
    struct ndtest_queue other;
    struct netdam_descriptor d;
    struct ndtest_packet p;

    (void)state;
    start(4, GENERATION);
    unit_queue(&b.u, &other, OTHER_RING, 4);
    post_write(0, 8, 0);
    unit_run(&b.u);
    unit_expect_sent(&b.u, &p);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 0, NETDAM_STATUS_OK);
    b.u.port_room = 0;
    d = write_of(8, 8, 1);
    unit_post(&b.u, &other, &d);
    unit_run(&b.u);
    post_write(16, 8, 2);
    unit_run(&b.u);
    b.u.port_room = UINT32_MAX;
    unit_run(&b.u);
    for (unsigned i = 0; i < 2; i++) {
        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.length, 8);
        unit_answer_ok(&b.u, &p, NULL);
    }
    unit_expect_completion(&other, 1, NETDAM_STATUS_OK);
    expect_completion(2, NETDAM_STATUS_OK, 8);
    stop();
}

static void what_has_been_sent_is_not_joined(void **state)
{
    struct ndtest_packet p;

    (void)state;
    start(4, GENERATION);
    for (unsigned i = 0; i < 3; i++) {
        post_write(i * 8, 8, i);
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.length, 8);
        unit_expect_silence(&b.u);
    }
    /* Nor a long one whose first packets are on their way while the rest waits. */
    b.u.port_room = 1;
    post_write(100, 1400 * 2, 3);
    unit_run(&b.u);
    post_write(100 + 1400 * 2, 8, 4);
    unit_run(&b.u);
    b.u.port_room = UINT32_MAX;
    unit_run(&b.u);
    assert_int_equal(b.u.count, 3);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_MERGED), 0);
    unit_stop(&b.u);
}

static void a_group_has_no_more_than_sixteen(void **state)
{
    struct ndtest_packet p;
    unsigned done = 0;

    (void)state;
    start(4, 0);
    for (unsigned i = 0; i < 40; i++) {
        post_write(i * 3, 3, i);
    }
    unit_run(&b.u); /* the generation is asked for; all of them wait */
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
    unit_answer(&b.u, &p,
                &(struct unit_answer){.status = NETDAM_STATUS_STALE, .generation = GENERATION, .echo = UNIT_ECHO_NONE});
    for (unsigned count = 16; done < 40; count = 8 + 8 * (done == 16)) {
        unit_expect_sent(&b.u, &p);
        assert_true(p.address == BENCH_REMOTE + done * 3 && p.length == count * 3);
        unit_answer_ok(&b.u, &p, NULL);
        for (unsigned i = 0; i < count; i++) {
            expect_completion(done + i, NETDAM_STATUS_OK, 3);
        }
        done += count;
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_MERGED), 37);
    stop();
}

static void a_group_fits_one_packet(void **state)
{
    static const uint32_t mtus[] = {1500, 9000};

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct netdam_fw_config config = bench_config();
        unsigned family = (i & 1) != 0 ? 6 : 4;
        bool over = (i & 4) != 0;
        struct ndtest_packet p;
        uint32_t most, half;

        config.no_merge = 0;
        config.mtu = mtus[i >> 1 & 1];
        bench_start(&b, &config, family, GENERATION);
        most = netdam_payload_max(config.mtu - (family == 6 ? 20u : 0u));
        half = most / 2;
        for (unsigned n = 0; n < 2; n++) {
            struct netdam_descriptor d =
                bench_descriptor(&b, NETDAM_OP_WRITE, 1 + n * 9000, n == 0 ? half : most - half + over, n);

            d.remote_address += n * half;
            post(&d);
        }
        unit_run(&b.u);
        assert_int_equal(b.u.count, over ? 2 : 1);
        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.length, over ? half : most);
        assert_memory_equal(p.payload, b.u.node.memory + BENCH_LOCAL + 1, half);
        if (!over) {
            assert_memory_equal(p.payload + half, b.u.node.memory + BENCH_LOCAL + 9001, most - half);
        }
        unit_stop(&b.u);
        /* And REDUCEs that fit by themselves, or do not. */
        bench_start(&b, &config, family, GENERATION);
        for (unsigned n = 0; n < 2; n++) {
            struct netdam_descriptor d = reduce_of(NETDAM_ALU_SUM, NETDAM_TYPE_U8, most + over, n);

            post(&d);
        }
        unit_run(&b.u);
        assert_int_equal(b.u.count, over ? 4 : 1);
        unit_stop(&b.u);
    }
}

static void it_can_be_switched_off(void **state)
{
    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    assert_int_equal(b.u.fw->config.no_merge, 1);
    for (unsigned i = 0; i < 4; i++) {
        post_write(i * 8, 8, i);
    }
    unit_run(&b.u);
    assert_int_equal(b.u.count, 4);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_MERGED), 0);
    unit_stop(&b.u);
}

/* Elements that are edge values of the type, beginning with another one for each operand. */
static void fill_operand(uint64_t user_data, unsigned type, uint32_t length)
{
    uint64_t edges[REFERENCE_EDGES];
    unsigned count = reference_edges(type, edges), bytes = netdam_type_bytes(type);

    for (uint32_t i = 0; i < length / bytes; i++) {
        unit_memory_put(&b.u, BENCH_LOCAL + 3 + user_data * 2001 + i * bytes, bytes,
                        edges[(i * (1 + user_data) + user_data * 5) % count]);
    }
}

static uint64_t combined(unsigned operation, unsigned type, unsigned operands, uint32_t index)
{
    unsigned bytes = netdam_type_bytes(type);
    uint64_t value = unit_memory_get(&b.u, BENCH_LOCAL + 3 + index * bytes, bytes);

    for (unsigned n = 1; n < operands; n++) {
        value =
            reference(operation, type, value, unit_memory_get(&b.u, BENCH_LOCAL + 3 + n * 2001 + index * bytes, bytes));
    }
    return value;
}

/* Of every operation and type: combined if the table says that it commutes and associates, and only then. */
static void reductions_of_one_range_are_combined_where_the_algebra_allows(void **state)
{
    static const uint32_t lengths[] = {8, 64, 1024, 1400};
    unsigned merged = 0, apart_count = 0;

    (void)state;
    for (unsigned operation = NETDAM_ALU_SUM; netdam_alu_is_defined(operation); operation++) {
        for (unsigned type = NETDAM_TYPE_U8; netdam_type_bytes(type) != 0; type++) {
            int algebra = netdam_algebra(NETDAM_OP_REDUCE, operation, type);
            bool group = algebra >= 0 && (algebra & NETDAM_ALG_COMMUTES) != 0 && (algebra & NETDAM_ALG_ASSOCIATES) != 0;
            unsigned operands = 2 + (operation + type) % 15;
            uint32_t length = lengths[(operation + type) % 4];
            struct ndtest_packet p;

            if (algebra < 0) {
                continue;
            }
            start(4, GENERATION);
            for (unsigned n = 0; n < operands; n++) {
                struct netdam_descriptor d = reduce_of(operation, type, length, n);

                fill_operand(n, type, length);
                post(&d);
            }
            unit_run(&b.u);
            assert_int_equal(b.u.count, group ? 1 : operands);
            for (unsigned n = 0; n < (group ? 1 : operands); n++) {
                unit_expect_sent(&b.u, &p);
                assert_true(p.opcode == NETDAM_OP_REDUCE && p.operation == operation && p.type == type);
                assert_true(p.address == BENCH_REMOTE && p.length == length && p.payload_bytes == length);
                for (uint32_t i = 0; group && i < length / netdam_type_bytes(type); i++) {
                    uint64_t value = 0;

                    memcpy(&value, p.payload + i * netdam_type_bytes(type), netdam_type_bytes(type));
                    assert_true(value == combined(operation, type, operands, i));
                }
                if (!group) {
                    expect_bytes(p.payload, n, length);
                }
                unit_answer_ok(&b.u, &p, NULL);
            }
            for (unsigned n = 0; n < operands; n++) {
                expect_completion(n, NETDAM_STATUS_OK, length);
            }
            assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_MERGED), group ? operands - 1 : 0);
            merged += group;
            apart_count += !group;
            stop();
        }
    }
    assert_int_equal(merged, 8 * 7 + 4 * 2 + 4); /* integers; MIN and MAX of floats; saturating sums without sign */
    assert_int_equal(apart_count, 4 * 2 + 4);    /* sums and products of floats; saturating sums with sign */
}

/* A list of pieces, cut where no element ends, some of them empty. */
static void lists_are_gathered_into_shared_packets(void **state)
{
    static const uint32_t cuts[3][4] = {{1, 6, 0, 1025}, {513, 0, 518, 1}, {344, 344, 343, 1}};

    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        uint8_t *local = NULL;
        struct ndtest_packet p;

        start(4, GENERATION);
        local = b.u.node.memory + BENCH_LOCAL;
        for (unsigned n = 0; n < 3; n++) {
            struct netdam_descriptor d =
                way == 0 ? write_of(n * 400, 400, n) : reduce_of(NETDAM_ALU_SUM, NETDAM_TYPE_U64, 1032, n);
            struct netdam_list_entry list[4];
            uint32_t at = 3 + n * 2001;

            for (unsigned i = 0; i < 4; i++) {
                uint32_t bytes = way == 0 ? 100 : cuts[n][i];

                list[i] = (struct netdam_list_entry){.local_region = b.region, .length = bytes, .local_address = at};
                at += bytes;
            }
            memcpy(local + 0x10000 + n * 64, list, sizeof(list));
            d.flags = NETDAM_DESCRIPTOR_LIST;
            d.list_count = 4;
            d.u.buffer.local_address = 0x10000 + n * 64;
            post(&d);
        }
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p);
        unit_expect_silence(&b.u);
        for (unsigned n = 0; way == 0 && n < 3; n++) {
            expect_bytes(p.payload + n * 400, n, 400);
        }
        for (unsigned i = 0; way == 1 && i < 129; i++) {
            uint64_t value;

            memcpy(&value, p.payload + i * 8, 8);
            assert_true(value == combined(NETDAM_ALU_SUM, NETDAM_TYPE_U64, 3, i));
        }
        unit_answer_ok(&b.u, &p, NULL);
        for (unsigned n = 0; n < 3; n++) {
            expect_completion(n, NETDAM_STATUS_OK, way == 0 ? 400 : 1032);
        }
        stop();
    }
}

static void without_payload_crc_shared_packets_carry_none(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        struct netdam_fw_config config = bench_config();
        struct ndtest_packet p;

        config.no_merge = 0;
        config.no_payload_crc = 1;
        bench_start(&b, &config, 4, GENERATION);
        for (unsigned n = 0; n < 2; n++) {
            struct netdam_descriptor d =
                way == 0 ? write_of(n * 16, 16, n) : reduce_of(NETDAM_ALU_XOR, NETDAM_TYPE_U16, 32, n);

            post(&d);
        }
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.flags, 0);
        assert_int_equal(p.length, 32);
        unit_stop(&b.u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adjacent_writes_share_a_packet_and_complete_each),
        cmocka_unit_test(writes_may_grow_at_both_ends),
        cmocka_unit_test(what_does_not_belong_together_has_packets_of_its_own),
        cmocka_unit_test(what_belongs_together_does_share_a_packet),
        cmocka_unit_test(a_flag_asks_for_packets_of_ones_own),
        cmocka_unit_test(nothing_is_merged_across_another_descriptor),
        cmocka_unit_test(two_rings_do_not_share_a_packet),
        cmocka_unit_test(a_place_that_another_ring_has_taken_over_is_not_joined),
        cmocka_unit_test(what_has_been_sent_is_not_joined),
        cmocka_unit_test(a_group_has_no_more_than_sixteen),
        cmocka_unit_test(a_group_fits_one_packet),
        cmocka_unit_test(it_can_be_switched_off),
        cmocka_unit_test(reductions_of_one_range_are_combined_where_the_algebra_allows),
        cmocka_unit_test(lists_are_gathered_into_shared_packets),
        cmocka_unit_test(without_payload_crc_shared_packets_carry_none),
    };

    return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
