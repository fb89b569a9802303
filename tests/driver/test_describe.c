/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams in words, through the library: against the golden packets and everything that is cut off them. */
#define _GNU_SOURCE
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam.h"
#include "netdam/wire.h"

#define GOLDEN "tests/golden"

/* Reads a golden packet: hexadecimal digits, '#' starts a comment. Returns its length, 0 if there is no such file. */
static size_t load(const char *name, uint8_t *frame, size_t frame_bytes)
{
    char path[256];
    char line[512];
    size_t digits = 0;
    FILE *file;

    snprintf(path, sizeof(path), GOLDEN "/%s", name);
    file = fopen(path, "r");
    if (!file) {
        return 0;
    }
    while (fgets(line, sizeof(line), file)) {
        for (const char *next = line; *next && *next != '#'; next++) {
            static const char alphabet[] = "0123456789abcdef";
            const char *digit = strchr(alphabet, *next);

            if (digit && digits / 2 < frame_bytes) {
                unsigned value = (unsigned)(digit - alphabet);

                frame[digits / 2] = (uint8_t)(digits % 2 == 0 ? value << 4 : frame[digits / 2] | value);
                digits++;
            }
        }
    }
    fclose(file);
    return digits / 2;
}

static size_t headers_bytes(const uint8_t *frame)
{
    return NETDAM_ETHERNET_BYTES + (frame[12] == 0x86 ? NETDAM_IPV6_BYTES : NETDAM_IPV4_BYTES) + NETDAM_UDP_BYTES;
}

static void golden_packets_are_named(void **state)
{
    static const struct {
        const char *file;
        const char *line;
    } table[] = {
        {"write-request.hex", "REQUEST  WRITE ctx c0ffee0011223344 #7 distance 2 gen 5eed000100000001 key "
                              "6b65790123456789 address 0x41 length 12"},
        {"write-answer.hex", "RESPONSE WRITE OK ctx c0ffee0011223344 #7 floor 5"},
        {"write-ipv6-request.hex", "REQUEST  WRITE "},
        {"reduce-request.hex", "REQUEST  REDUCE.SUM.F32 "},
        {"reduce-min-request.hex", "REQUEST  REDUCE.MIN.I64 "},
        {"cas-request.hex", "REQUEST  CAS.U64 "},
        {"confirm-request.hex", "REQUEST  CONFIRM "},
        {"bad-key-answer.hex", "RESPONSE WRITE BAD_KEY "},
        {"bad-range-answer.hex", "RESPONSE WRITE BAD_RANGE "},
        {"misaligned-answer.hex", "RESPONSE FETCH_ADD.I64 MISALIGNED "},
        {"no-permission-answer.hex", "RESPONSE REDUCE.SUM.I32 NO_PERMISSION "},
        {"busy-answer.hex", "RESPONSE WRITE BUSY "},
        {"stale-answer.hex", "RESPONSE WRITE STALE "},
        {"bad-opcode-0-request.hex", "REQUEST  opcode 0x00 "},
        {"bad-version-request.hex", "MALFORMED 72 bytes, version 2"},
        {"kind-3.hex", "MALFORMED 80 bytes, kind 3"},
        {"datagram-31.hex", "MALFORMED 31 bytes"},
        {"datagram-segment.hex", "MALFORMED 63 bytes"},
        {"response-short.hex", "RESPONSE OK ctx c0ffee0011223344 #7 without answer"},
        {"bad-segments-index-request.hex", "REQUEST  without the segment it names "},
    };

    (void)state;
    for (unsigned i = 0; i < COUNT(table); i++) {
        uint8_t frame[4096];
        size_t bytes = load(table[i].file, frame, sizeof(frame));
        char line[240];

        assert_true(bytes > headers_bytes(frame) - 1);
        netdam_describe_datagram(frame + headers_bytes(frame), bytes - headers_bytes(frame), line, sizeof(line));
        print_message("# %s: %s\n", table[i].file, line);
        assert_memory_equal(line, table[i].line, strlen(table[i].line));
    }
}

static void extensions_are_skipped_and_flags_named(void **state)
{
    static const struct {
        const char *file;
        const char *flag;
    } table[] = {
        {"flag-immediate-request.hex", "IMMEDIATE"}, {"flag-tenant-request.hex", "TENANT"},
        {"flag-ordered-request.hex", "ORDERED"},     {"flag-relaxed-request.hex", "RELAXED"},
        {"write-again-request.hex", "AGAIN"},        {"write-again-answer.hex", "AGAIN"},
    };

    (void)state;
    for (unsigned i = 0; i < COUNT(table); i++) {
        uint8_t frame[4096];
        size_t bytes = load(table[i].file, frame, sizeof(frame));
        char line[240];

        assert_true(bytes > headers_bytes(frame) - 1);
        netdam_describe_datagram(frame + headers_bytes(frame), bytes - headers_bytes(frame), line, sizeof(line));
        print_message("# %s: %s\n", table[i].file, line);
        assert_non_null(strstr(line, table[i].flag));
        assert_non_null(strstr(line, " #"));
    }
}

/* Each datagram in an allocation of exactly its size, so that a sanitizer sees a byte too far. */
static void anything_gets_a_terminated_line(void **state)
{
    DIR *directory = opendir(GOLDEN);
    struct dirent *entry;
    unsigned count = 0;

    (void)state;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        uint8_t frame[4096];
        size_t bytes;

        if (!strstr(entry->d_name, ".hex")) {
            continue;
        }
        bytes = load(entry->d_name, frame, sizeof(frame));
        count++;
        for (size_t start = 14; start < bytes && start < 90; start++) {
            for (size_t length = 0; length <= bytes - start; length += 1 + length / 16) {
                uint8_t *datagram = malloc(length + (length == 0));
                char line[64];

                memcpy(datagram, frame + start, length);
                if (length > 0) {
                    datagram[0] = NETDAM_WIRE_VERSION;
                }
                memset(line, 'x', sizeof(line));
                netdam_describe_datagram(datagram, length, line, sizeof(line) - 1);
                assert_true(strlen(line) < sizeof(line) - 1);
                assert_int_equal(line[sizeof(line) - 1], 'x');
                free(datagram);
            }
        }
    }
    closedir(directory);
    assert_true(count > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_packets_are_named),
        cmocka_unit_test(extensions_are_skipped_and_flags_named),
        cmocka_unit_test(anything_gets_a_terminated_line),
    };

    return cmocka_run_group_tests_name("driver datagrams in words", tests, NULL, NULL);
}
