/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs in a guest: opens the card, does every kind of operation towards its own address, and where there are interrupts
 * sleeps on them thousands of times. `guest_card interrupts CYCLES` or `guest_card none`. Ends with 0, or says what
 * failed.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam.h"

#define REGION_BYTES UINT64_C(65536)

/* Long enough for a busy machine; what takes longer was lost. */
#define SOON_NS UINT64_C(60000000000)
#define SOON_MS 60000

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("guest_card: line %d: not true: %s\n", __LINE__, #condition);                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct card {
    struct netdam_device *device;
    struct netdam_queue *queue;
    struct netdam_queue *other;
    struct netdam_region *region;
    struct netdam_peer *self;
    uint8_t *memory; /* of the region */
};

static void print_log(void *opaque, enum netdam_log_level level, const char *line)
{
    (void)opaque;
    printf("log %d: %s\n", (int)level, line);
}

static struct netdam_remote there(const struct card *card, uint64_t address)
{
    return (struct netdam_remote){card->self, netdam_region_key(card->region), address};
}

static struct netdam_local here(const struct card *card, uint64_t address)
{
    return (struct netdam_local){card->region, address};
}

/* What a reset takes away. */
static void card_set_up(struct card *card)
{
    struct netdam_device_info info;
    uint64_t offset;
    char address[16];

    EXPECT(netdam_query(card->device, &info) == 0);
    EXPECT(netdam_alloc(card->device, REGION_BYTES, 4096, &offset) == 0);
    EXPECT(netdam_region_create(card->device, offset, REGION_BYTES, NETDAM_PERMISSION_ALL, 0, &card->region) == 0);
    EXPECT(netdam_queue_create(card->device, NULL, &card->queue) == 0);
    EXPECT(netdam_queue_create(card->device, NULL, &card->other) == 0);
    snprintf(address, sizeof(address), "%u.%u.%u.%u", info.ipv4[0], info.ipv4[1], info.ipv4[2], info.ipv4[3]);
    EXPECT(netdam_peer_open(card->device, address, &card->self) == 0);
    card->memory = netdam_region_pointer(card->region);
    printf("card %s, %u vectors, own address %s\n", netdam_device_name(card->device), info.vectors, address);
}

static void card_reset(struct card *card)
{
    EXPECT(netdam_reset(card->device) == 0);
    EXPECT(netdam_queue_arm(card->queue) == -ESTALE || netdam_queue_arm(card->queue) == -ENOTSUP);
    EXPECT(netdam_queue_destroy(card->queue) == 0);
    EXPECT(netdam_queue_destroy(card->other) == 0);
    EXPECT(netdam_peer_close(card->self) == 0);
    EXPECT(netdam_region_destroy(card->region) == 0);
    card_set_up(card);
}

/* One process owns the card; to look at it is allowed to any, but through vfio the kernel may say no. */
static void only_observers_besides(struct card *card, bool vfio)
{
    const struct netdam_open_config observe = {.log = print_log, .flags = NETDAM_OPEN_OBSERVE};
    struct netdam_device *second;
    struct netdam_device_info info;
    int rc;

    EXPECT(netdam_open("pci", NULL, &second) == -EBUSY);
    rc = netdam_open("pci", &observe, &second);
    EXPECT(rc == 0 || (vfio && rc == -EBUSY));
    if (rc != 0) {
        return;
    }
    EXPECT(netdam_query(second, &info) == 0);
    EXPECT(info.memory_bytes == netdam_memory_bytes(card->device) && info.main_memory_bytes == 0);
    netdam_close(second);
}

static void operations(struct card *card)
{
    uint64_t *counter = (uint64_t *)(void *)(card->memory + 32768);
    int32_t *numbers = (int32_t *)(void *)card->memory;
    int32_t *sums = (int32_t *)(void *)(card->memory + 16384);
    uint64_t old = 1;

    for (unsigned i = 0; i < 10000; i++) {
        card->memory[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    EXPECT(netdam_write(card->queue, there(card, 16385), here(card, 0), 10000, SOON_NS) == 0);
    EXPECT(memcmp(card->memory, card->memory + 16385, 10000) == 0);
    EXPECT(netdam_read(card->queue, here(card, 40003), there(card, 16385), 10000, SOON_NS) == 0);
    EXPECT(memcmp(card->memory, card->memory + 40003, 10000) == 0);
    for (int32_t i = 0; i < 1000; i++) {
        numbers[i] = i;
        sums[i] = -2 * i;
    }
    EXPECT(netdam_reduce(card->queue, NETDAM_ALU_SUM, NETDAM_TYPE_I32, there(card, 16384), here(card, 0), 4000,
                         SOON_NS) == 0);
    for (int32_t i = 0; i < 1000; i++) {
        EXPECT(sums[i] == -i);
    }
    *counter = 40;
    EXPECT(netdam_fetch_add(card->queue, NETDAM_TYPE_U64, there(card, 32768), 2, &old, SOON_NS) == 0);
    EXPECT(old == 40 && *counter == 42);
    EXPECT(netdam_cas(card->queue, NETDAM_TYPE_U64, there(card, 32768), 42, 7, &old, SOON_NS) == 0);
    EXPECT(old == 42 && *counter == 7);
    EXPECT(netdam_echo(card->queue, card->self, here(card, 0), 3000, SOON_NS) == 0);
    EXPECT(netdam_read(card->queue, here(card, 0), there(card, REGION_BYTES - 1), 2, SOON_NS) ==
           NETDAM_STATUS_BAD_RANGE);
    puts("operations: done");
}

static void no_interrupts(const struct card *card)
{
    EXPECT(netdam_queue_fd(card->queue) == -ENOTSUP);
    EXPECT(netdam_queue_arm(card->queue) == -ENOTSUP);
}

static void post_one(struct card *card, uint64_t number)
{
    struct netdam_request request = {
        .opcode = NETDAM_OP_WRITE,
        .user_data = number,
        .remote = there(card, 8),
        .local = here(card, 0),
        .length = 8,
    };

    *(volatile uint64_t *)(void *)card->memory = number;
    EXPECT(netdam_post(card->queue, &request, 1) == 1);
}

/* The other queue pair has its own vector, and nothing that happens to this one makes it readable. */
static void arm_and_wait(struct card *card, unsigned long cycles)
{
    struct pollfd pollfd = {.fd = netdam_queue_fd(card->queue), .events = POLLIN};
    struct pollfd others = {.fd = netdam_queue_fd(card->other), .events = POLLIN};
    unsigned long slept = 0;

    EXPECT(pollfd.fd >= 0 && others.fd >= 0 && pollfd.fd != others.fd);
    EXPECT(netdam_queue_arm(card->other) == 0);
    for (unsigned long i = 0; i < cycles; i++) {
        struct netdam_completion completion;
        int rc;

        /* Armed before anything can happen; or while it happens, which is where a wake-up could be lost. */
        if (i % 2 == 0) {
            EXPECT(netdam_queue_arm(card->queue) == 0);
            post_one(card, i);
            rc = 0;
        } else {
            post_one(card, i);
            rc = netdam_queue_arm(card->queue);
            EXPECT(rc == 0 || rc == -EAGAIN);
        }
        if (rc == 0) {
            if (poll(&pollfd, 1, SOON_MS) != 1) {
                printf("guest_card: wake-up %lu of %lu was lost\n", i, cycles);
                exit(1);
            }
            slept++;
        }
        /* An interrupt without a completion is allowed, and asks for another look. */
        while ((rc = netdam_poll(card->queue, &completion, 1)) == 0) {
            rc = netdam_queue_arm(card->queue);
            EXPECT(rc == 0 || rc == -EAGAIN);
            EXPECT(rc != 0 || poll(&pollfd, 1, SOON_MS) == 1);
        }
        EXPECT(rc == 1 && completion.user_data == i && completion.status == NETDAM_STATUS_OK);
        EXPECT(*(volatile uint64_t *)(void *)(card->memory + 8) == i);
    }
    EXPECT(poll(&others, 1, 0) == 0);
    EXPECT(slept >= cycles / 2);
    printf("arm-and-wait: %lu cycles, slept %lu times\n", cycles, slept);
}

int main(int argc, char **argv)
{
    bool interrupts = argc == 3 && strcmp(argv[1], "interrupts") == 0;
    const struct netdam_open_config config = {.log = print_log};
    struct card card;

    if (!interrupts && (argc != 2 || strcmp(argv[1], "none") != 0)) {
        puts("Usage: guest_card interrupts CYCLES | guest_card none");
        return 2;
    }
    /* What one process has left behind, the next does not find. */
    for (unsigned round = 0; round < 2; round++) {
        EXPECT(netdam_open("pci", &config, &card.device) == 0);
        card_set_up(&card);
        only_observers_besides(&card, interrupts);
        operations(&card);
        if (!interrupts) {
            no_interrupts(&card);
            card_reset(&card);
            no_interrupts(&card);
        } else {
            arm_and_wait(&card, 10);
            card_reset(&card);
            arm_and_wait(&card, round == 0 ? 10 : strtoul(argv[2], NULL, 10));
        }
        netdam_close(card.device);
    }
    return 0;
}
