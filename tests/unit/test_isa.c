/* SPDX-License-Identifier: BSD-3-Clause */
/* The specification's lists: values unique and in range, lookups agree, for every combination there is. */
#include "unit.h"

#include <stdio.h>

struct entry {
    const char *name;
    uint64_t value;
};

#define ENTRY3(name, value, text)                           {#name, value},
#define ENTRY4(name, value, b, text)                        {#name, value},
#define ENTRY5(name, value, b, c, text)                     {#name, value},
#define ENTRY_REG(name, offset, bytes, access, reset, text) {#name, offset},
#define ENTRY_POSITION(name, text)                          {#name, NETDAM_COUNTER_##name},
#define ENTRY_TRACE(name, arguments, text)                  {#name, NETDAM_FW_TRACE_##name},

static const struct entry ops[] = {NETDAM_OP_LIST(ENTRY4)};
static const struct entry alus[] = {NETDAM_ALU_LIST(ENTRY3)};
static const struct entry types[] = {NETDAM_TYPE_LIST(ENTRY5)};
static const struct entry statuses[] = {NETDAM_STATUS_LIST(ENTRY4)};
static const struct entry kinds[] = {NETDAM_KIND_LIST(ENTRY3)};
static const struct entry forms[] = {NETDAM_NODE_FORM_LIST(ENTRY3)};
static const struct entry flags[] = {NETDAM_FLAG_LIST(ENTRY4)};
static const struct entry registers[] = {NETDAM_REG_LIST(ENTRY_REG)};
static const struct entry counters[] = {NETDAM_COUNTER_LIST(ENTRY_POSITION)};
static const struct entry admins[] = {NETDAM_ADMIN_LIST(ENTRY5)};
static const struct entry admin_statuses[] = {NETDAM_ADMIN_STATUS_LIST(ENTRY3)};
static const struct entry descriptor_flags[] = {NETDAM_DESCRIPTOR_FLAG_LIST(ENTRY3)};
static const struct entry traces[] = {NETDAM_FW_TRACE_LIST(ENTRY_TRACE)};

static void values_and_names_are_unique_and_fit_their_field(void **state)
{
    const struct {
        const char *list;
        const struct entry *entries;
        size_t count;
        uint64_t limit; /* of the field on the wire, in the ring or in the BAR */
    } lists[] = {
        {"op", ops, ARRAY_SIZE(ops), UINT8_MAX},
        {"alu", alus, ARRAY_SIZE(alus), UINT8_MAX},
        {"type", types, ARRAY_SIZE(types), UINT8_MAX},
        {"status", statuses, ARRAY_SIZE(statuses), UINT8_MAX},
        {"kind", kinds, ARRAY_SIZE(kinds), UINT8_MAX},
        {"form", forms, ARRAY_SIZE(forms), UINT8_MAX},
        {"flag", flags, ARRAY_SIZE(flags), UINT16_MAX},
        {"register", registers, ARRAY_SIZE(registers), NETDAM_PAGE_COUNTERS - 1},
        {"counter", counters, ARRAY_SIZE(counters), NETDAM_COUNTER_COUNT - 1},
        {"admin", admins, ARRAY_SIZE(admins), UINT32_MAX},
        {"admin status", admin_statuses, ARRAY_SIZE(admin_statuses), UINT32_MAX},
        {"descriptor flag", descriptor_flags, ARRAY_SIZE(descriptor_flags), UINT32_MAX},
        {"trace", traces, ARRAY_SIZE(traces), NETDAM_FW_TRACE_COUNT - 1},
    };

    (void)state;
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        for (size_t i = 0; i < lists[l].count; i++) {
            const struct entry *a = &lists[l].entries[i];

            if (a->value > lists[l].limit || a->name[0] == '\0') {
                fail_msg("%s %s is out of range", lists[l].list, a->name);
            }
            for (size_t k = 0; k < i; k++) {
                const struct entry *b = &lists[l].entries[k];

                if (a->value == b->value || strcmp(a->name, b->name) == 0) {
                    fail_msg("%s: %s and %s collide", lists[l].list, a->name, b->name);
                }
            }
        }
    }
}

static void flags_are_single_bits_and_all_are_defined(void **state)
{
    unsigned all = 0, request = 0, response = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(descriptor_flags); i++) {
        assert_true((descriptor_flags[i].value & (descriptor_flags[i].value - 1)) == 0);
        all |= (unsigned)descriptor_flags[i].value;
    }
    assert_int_equal(all, NETDAM_DESCRIPTOR_FLAGS_DEFINED);
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        assert_true(flags[i].value != 0 && (flags[i].value & (flags[i].value - 1)) == 0);
    }
#define FLAG_WHERE(name, value, where, text)                                                                           \
    request |= (NETDAM_FLAG_WHERE_##where & 1) != 0 ? (unsigned)(value) : 0u;                                          \
    response |= (NETDAM_FLAG_WHERE_##where & 2) != 0 ? (unsigned)(value) : 0u;
    NETDAM_FLAG_LIST(FLAG_WHERE)
    assert_int_equal(netdam_flags_defined(NETDAM_KIND_REQUEST), request);
    assert_int_equal(netdam_flags_defined(NETDAM_KIND_RESPONSE), response);
    assert_int_not_equal(request, response);
}

static void lookups_say_what_the_lists_say_for_every_byte(void **state)
{
    (void)state;
    for (unsigned value = 0; value <= UINT8_MAX; value++) {
        unsigned op_flags = 0, bytes = 0, class_of = 0;
        bool alu = false;

#define FIND_OP(name, v, f, text) op_flags |= value == (v) ? (f) : 0u;
#define FIND_TYPE(name, v, b, class_, text)                                                                            \
    bytes |= value == (v) ? (b) : 0u;                                                                                  \
    class_of |= value == (v) ? (unsigned)NETDAM_TYPE_CLASS_##class_ : 0u;
#define FIND_ALU(name, v, text) alu |= value == (v);
        NETDAM_OP_LIST(FIND_OP)
        NETDAM_TYPE_LIST(FIND_TYPE)
        NETDAM_ALU_LIST(FIND_ALU)
        assert_int_equal(netdam_op_flags(value), op_flags);
        assert_int_equal(netdam_op_is_defined(value), op_flags != 0);
        assert_int_equal(netdam_type_bytes(value), bytes);
        assert_int_equal(netdam_type_class_of(value), class_of);
        assert_int_equal(netdam_alu_is_defined(value), alu);
    }
    /* Beyond a byte nothing is defined. */
    assert_int_equal(netdam_op_flags(0x100 | NETDAM_OP_READ), 0);
    assert_int_equal(netdam_type_bytes(0x100 | NETDAM_TYPE_U8), 0);
    assert_false(netdam_alu_is_defined(0x100 | NETDAM_ALU_SUM));
}

static void every_opcode_can_be_told_by_its_flags(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        unsigned f = netdam_op_flags((unsigned)ops[i].value);

        assert_true(ops[i].value != 0); /* an answer to what could not be understood names opcode 0 */
        assert_true(f != 0);
        assert_true((f & NETDAM_OPF_ATOMIC) == 0 || (f & NETDAM_OPF_MODIFIES) != 0);
        assert_true((f & NETDAM_OPF_ATOMIC) == 0 || (f & (NETDAM_OPF_PAYLOAD | NETDAM_OPF_RETURNS)) == 0);
        assert_true((f & NETDAM_OPF_DEVICE) == 0 || (f & (NETDAM_OPF_CHAIN | NETDAM_OPF_MEMORY)) == 0);
        assert_int_equal(ndfw_uses_lane((unsigned)ops[i].value, false), (f & NETDAM_OPF_MODIFIES) != 0);
    }
}

static void algebra_says_what_its_list_says_for_every_combination(void **state)
{
    unsigned defined = 0;

    (void)state;
    for (unsigned op = 0; op <= UINT8_MAX; op++) {
        for (unsigned alu = 0; alu <= 16; alu++) {
            for (unsigned type = 0; type <= 20; type++) {
                int want = -1;
                unsigned matches = 0;

#define FIND_ROW(opcode, operation, class_, f)                                                                         \
    if (op == NETDAM_OP_##opcode && alu == NETDAM_ALU_##operation &&                                                   \
        (netdam_type_class_of(type) & NETDAM_TYPE_CLASS_##class_) != 0) {                                              \
        matches++;                                                                                                     \
        want = (int)(f);                                                                                               \
    }
                NETDAM_ALGEBRA_LIST(FIND_ROW)
                assert_true(matches <= 1); /* no two rows speak of one combination */
                assert_int_equal(netdam_algebra(op, alu, type), want);
                if (want >= 0) {
                    unsigned f = netdam_op_flags(op);

                    defined++;
                    assert_true(f != 0 && netdam_type_bytes(type) != 0 && netdam_alu_is_defined(alu));
                    /* An ALU opcode names an operation and an element, no other opcode names an operation. */
                    assert_int_equal((f & NETDAM_OPF_ALU) != 0, alu != NETDAM_ALU_NONE);
                    assert_int_equal((f & (NETDAM_OPF_ALU | NETDAM_OPF_ATOMIC)) != 0, type != NETDAM_TYPE_NONE);
                    assert_true((unsigned)want <= NETDAM_ALG_LATTICE);
                }
            }
        }
    }
    assert_true(defined > 100);
    /* Whatever does not fit the fields of a packet. */
    assert_int_equal(netdam_algebra(NETDAM_OP_WRITE | 1u << 24, NETDAM_ALU_NONE, NETDAM_TYPE_NONE), -1);
    assert_int_equal(netdam_algebra(NETDAM_OP_REDUCE, NETDAM_ALU_SUM | 1u << 28, NETDAM_TYPE_U8), -1);
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        bool any = false;

        for (unsigned alu = 0; alu < ARRAY_SIZE(alus); alu++) {
            for (unsigned type = 0; type < ARRAY_SIZE(types); type++) {
                any |= netdam_algebra((unsigned)ops[i].value, alu, type) >= 0;
            }
        }
        assert_true(any); /* an opcode without a row could never be used */
    }
}

static void an_operation_is_defined_for_the_same_types_wherever_it_is_fetched_or_loaded(void **state)
{
    (void)state;
    for (unsigned alu = 1; alu < ARRAY_SIZE(alus); alu++) {
        for (unsigned type = 0; type < ARRAY_SIZE(types); type++) {
            int reduce = netdam_algebra(NETDAM_OP_REDUCE, alu, type);

            assert_int_equal(netdam_algebra(NETDAM_OP_FETCH_OP, alu, type),
                             netdam_algebra(NETDAM_OP_LOAD_REDUCE, alu, type));
            if (alu != NETDAM_ALU_SUM_SATURATING) {
                assert_int_equal(netdam_algebra(NETDAM_OP_FETCH_OP, alu, type), reduce);
            }
            /* What the ALU executes is defined. */
            assert_true(!ndfw_alu_executes(alu, type) || reduce >= 0);
        }
    }
}

static void executed_is_what_the_list_of_this_firmware_says(void **state)
{
    (void)state;
    for (unsigned op = 0; op <= UINT8_MAX; op++) {
        for (unsigned alu = 0; alu <= 16; alu++) {
            for (unsigned type = 0; type <= 20; type++) {
                struct ndfw_packet packet = {.opcode = (uint8_t)op, .operation = (uint8_t)alu, .type = (uint8_t)type};
                enum netdam_status want = NETDAM_STATUS_UNSUPPORTED;
                enum netdam_status status;

                packet.length = (netdam_op_flags(op) & NETDAM_OPF_ATOMIC) != 0 ? netdam_type_bytes(type) : 0;
                packet.payload_length = op == NETDAM_OP_CAS ? 2 * packet.length : packet.length;
                if (unit_is_executed(op, alu, type)) {
                    /* A list without entries is refused; that the opcode is executed shows in that. */
                    want = op == NETDAM_OP_TRANSACTION ? NETDAM_STATUS_BAD_LENGTH : NETDAM_STATUS_OK;
                }
                if (netdam_op_flags(op) == 0 || (netdam_op_flags(op) & NETDAM_OPF_DEVICE) != 0) {
                    want = NETDAM_STATUS_BAD_OPCODE;
                } else if (alu > 8 || (alu != 0) != ((netdam_op_flags(op) & NETDAM_OPF_ALU) != 0)) {
                    want = NETDAM_STATUS_BAD_OPERATION;
                } else if (netdam_algebra(op, alu, type) < 0) {
                    want = NETDAM_STATUS_BAD_TYPE;
                }
                status = ndfw_check_instruction(&packet);
                if (status != want) {
                    fail_msg("opcode %#x operation %u type %u: status %#x, expected %#x", op, alu, type,
                             (unsigned)status, (unsigned)want);
                }
            }
        }
    }
}

static void classes_of_status_match_their_ranges(void **state)
{
    (void)state;
#define STATUS_CLASS(name, value, class_, text)                                                                        \
    assert_int_equal(NETDAM_STATUS_CLASS_##class_, (value) == 0     ? NETDAM_STATUS_CLASS_SUCCESS                      \
                                                   : (value) < 0x40 ? NETDAM_STATUS_CLASS_REFUSED                      \
                                                   : (value) < 0x80 ? NETDAM_STATUS_CLASS_RETRY                        \
                                                   : (value) < 0xc0 ? NETDAM_STATUS_CLASS_LOCAL                        \
                                                                    : NETDAM_STATUS_CLASS_UNCERTAIN);
    NETDAM_STATUS_LIST(STATUS_CLASS)
    for (unsigned value = 0; value <= 0x200; value++) {
        unsigned class_of = NETDAM_STATUS_CLASS_NONE;

#define FIND_STATUS(name, v, class_, text)                                                                             \
    if (value == (v)) {                                                                                                \
        class_of = NETDAM_STATUS_CLASS_##class_;                                                                       \
    }
        NETDAM_STATUS_LIST(FIND_STATUS)
        assert_int_equal(netdam_status_class_of(value), class_of);
    }
}

static void lengths_and_addresses_are_whole_if_they_are_multiples_of_the_element(void **state)
{
    static const uint64_t values[] = {0, 1, 2, 3, 4, 6, 7, 8, 12, 16, UINT64_C(1) << 32, UINT64_MAX, UINT64_MAX - 7};

    (void)state;
    for (unsigned type = 0; type <= UINT8_MAX; type++) {
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
            unsigned bytes = netdam_type_bytes(type);

            assert_int_equal(netdam_is_whole(values[i], type), bytes != 0 && values[i] % bytes == 0);
        }
    }
}

static void registers_are_aligned_and_do_not_overlap(void **state)
{
    static const struct {
        const char *name;
        unsigned offset, bytes;
    } regs[] = {
#define REG_ROW(name, offset, bytes, access, reset, text) {#name, offset, bytes},
        NETDAM_REG_LIST(REG_ROW)};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(regs); i++) {
        assert_true(regs[i].bytes == 4 || regs[i].bytes == 8);
        assert_int_equal(regs[i].offset % regs[i].bytes, 0);
        for (size_t k = 0; k < i; k++) {
            if (regs[i].offset < regs[k].offset + regs[k].bytes && regs[k].offset < regs[i].offset + regs[i].bytes) {
                fail_msg("%s overlaps %s", regs[i].name, regs[k].name);
            }
        }
    }
    assert_true(8u * NETDAM_COUNTER_COUNT <= NETDAM_PAGE_BYTES);
}

static void payloads_fill_the_mtu_in_whole_elements(void **state)
{
    (void)state;
    assert_int_equal(netdam_payload_max(1500), 1400);
    assert_int_equal(netdam_payload_max(9000), 8904);
    for (uint32_t mtu = NETDAM_MTU_MIN; mtu <= NETDAM_MTU_MAX; mtu++) {
        uint32_t payload = netdam_payload_max(mtu);

        assert_int_equal(payload % 8, 0);
        assert_true(20 + 8 + 32 + 32 + payload + 4 <= mtu);
        assert_true(20 + 8 + 32 + 32 + payload + 8 + 4 > mtu);
    }
    assert_int_equal(netdam_generation_epoch(UINT64_C(0x1234567890abcdef)), 0x12345678);
}

static void big_endian_integers_keep_their_value_and_order(void **state)
{
    const uint64_t values[] = {0, 1, 0xff, 0x100, UINT64_C(0x0123456789abcdef), UINT64_MAX, UINT64_C(1) << 47};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        netdam_be64 b64 = netdam_be64_make(values[i]);
        netdam_be48 b48 = netdam_be48_make(values[i]);
        netdam_be32 b32 = netdam_be32_make((uint32_t)values[i]);
        netdam_be16 b16 = netdam_be16_make((uint16_t)values[i]);

        assert_true(netdam_be64_get(b64) == values[i]);
        assert_true(netdam_be48_get(b48) == (values[i] & ((UINT64_C(1) << 48) - 1)));
        assert_true(netdam_be32_get(b32) == (uint32_t)values[i]);
        assert_true(netdam_be16_get(b16) == (uint16_t)values[i]);
        for (unsigned k = 0; k < 8; k++) {
            assert_int_equal(b64.b[k], (uint8_t)(values[i] >> (56 - 8 * k)));
            assert_int_equal(b48.b[k < 6 ? k : 5], (uint8_t)(values[i] >> (40 - 8 * (k < 6 ? k : 5))));
            assert_int_equal(b32.b[k & 3], (uint8_t)(values[i] >> (24 - 8 * (k & 3))));
            assert_int_equal(b16.b[k & 1], (uint8_t)(values[i] >> (8 - 8 * (k & 1))));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_names_are_unique_and_fit_their_field),
        cmocka_unit_test(flags_are_single_bits_and_all_are_defined),
        cmocka_unit_test(lookups_say_what_the_lists_say_for_every_byte),
        cmocka_unit_test(every_opcode_can_be_told_by_its_flags),
        cmocka_unit_test(algebra_says_what_its_list_says_for_every_combination),
        cmocka_unit_test(an_operation_is_defined_for_the_same_types_wherever_it_is_fetched_or_loaded),
        cmocka_unit_test(executed_is_what_the_list_of_this_firmware_says),
        cmocka_unit_test(classes_of_status_match_their_ranges),
        cmocka_unit_test(lengths_and_addresses_are_whole_if_they_are_multiples_of_the_element),
        cmocka_unit_test(registers_are_aligned_and_do_not_overlap),
        cmocka_unit_test(payloads_fill_the_mtu_in_whole_elements),
        cmocka_unit_test(big_endian_integers_keep_their_value_and_order),
    };

    return cmocka_run_group_tests_name("isa", tests, NULL, NULL);
}
