/* SPDX-License-Identifier: BSD-3-Clause */
/* The least driver that can work a NetDAM function, over qtest; written from the specification headers alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"

#define CONFIG_ADDRESS 0xcf8
#define CONFIG_DATA    0xcfc

/* Configuration space of a conventional function. */
#define CONFIG_COMMAND    0x04
#define CONFIG_STATUS     0x06
#define CONFIG_BAR(n)     (0x10u + 4u * (n))
#define CONFIG_CAPABILITY 0x34

#define COMMAND_MEMORY     0x2u
#define COMMAND_BUS_MASTER 0x4u

/* Above all of the machine's main memory, below its interrupt controllers. */
#define CARD_WINDOW(n)     (0xc0000000u + (uint64_t)(n)*0x08000000u)
#define CARD_WINDOW_MEMORY 0x00000000u
#define CARD_WINDOW_REGS   0x07000000u
#define CARD_WINDOW_MSIX   0x07800000u

static uint32_t card_config_select(struct card *c, unsigned offset)
{
    machine_out(c->machine, CONFIG_ADDRESS, 4, 0x80000000u | c->bus << 16 | c->devfn << 8 | (offset & 0xfcu));
    return offset & 3u;
}

uint32_t card_config_read(struct card *c, unsigned offset, unsigned bytes)
{
    return machine_in(c->machine, (uint16_t)(CONFIG_DATA + card_config_select(c, offset)), bytes);
}

void card_config_write(struct card *c, unsigned offset, unsigned bytes, uint32_t value)
{
    machine_out(c->machine, (uint16_t)(CONFIG_DATA + card_config_select(c, offset)), bytes, value);
}

unsigned card_capability(struct card *c, uint8_t id)
{
    unsigned offset = card_config_read(c, CONFIG_CAPABILITY, 1);
    unsigned steps;

    for (steps = 0; offset >= 0x40 && steps < 48; steps++) {
        if (card_config_read(c, offset, 1) == id) {
            return offset;
        }
        offset = card_config_read(c, offset + 1, 1);
    }
    return 0;
}

void card_bars(struct card *c)
{
    card_config_write(c, CONFIG_BAR(NETDAM_BAR_REGISTERS), 4, (uint32_t)c->registers);
    card_config_write(c, CONFIG_BAR(NETDAM_BAR_MEMORY), 4, (uint32_t)c->memory);
    card_config_write(c, CONFIG_BAR(NETDAM_BAR_MEMORY + 1), 4, (uint32_t)(c->memory >> 32));
    card_config_write(c, CONFIG_BAR(NETDAM_BAR_MSIX), 4, (uint32_t)c->msix);
    card_config_write(c, CONFIG_COMMAND, 2, COMMAND_MEMORY);
}

void card_open(struct card *c, struct machine *m, unsigned n)
{
    unsigned found = 0;

    memset(c, 0, sizeof(*c));
    c->machine = m;
    for (c->devfn = 0; c->devfn < 256; c->devfn++) {
        if (card_config_read(c, 0, 4) == ((uint32_t)NETDAM_PCI_DEVICE_ID << 16 | NETDAM_PCI_VENDOR_ID) &&
            found++ == n) {
            break;
        }
    }
    if (c->devfn == 256) {
        fail_msg("no NetDAM function %u on bus 0", n);
    }
    card_place(c, n);
}

void card_place(struct card *c, unsigned n)
{
    c->memory = CARD_WINDOW(n) + CARD_WINDOW_MEMORY;
    c->registers = CARD_WINDOW(n) + CARD_WINDOW_REGS;
    c->msix = CARD_WINDOW(n) + CARD_WINDOW_MSIX;
    card_bars(c);
}

void card_map(struct card *c, const char *path, size_t bytes)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    c->onboard = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_true(c->onboard != MAP_FAILED);
    c->onboard_bytes = bytes;
}

void card_close(struct card *c)
{
    if (c->onboard != NULL) {
        munmap(c->onboard, c->onboard_bytes);
        c->onboard = NULL;
    }
}

void card_bus_master(struct card *c, bool on)
{
    card_config_write(c, CONFIG_COMMAND, 2, COMMAND_MEMORY | (on ? COMMAND_BUS_MASTER : 0));
}

void card_function_reset(struct card *c)
{
    unsigned control = card_capability(c, CARD_CAP_EXPRESS) + 8;

    card_config_write(c, control, 2, card_config_read(c, control, 2) | 0x8000u);
    card_bars(c);
}

uint64_t card_read(struct card *c, uint32_t offset, unsigned bytes)
{
    return machine_read(c->machine, c->registers + offset, bytes);
}

void card_write(struct card *c, uint32_t offset, unsigned bytes, uint64_t value)
{
    machine_write(c->machine, c->registers + offset, bytes, value);
}

void card_await_link(struct card *c)
{
    unsigned i;

    for (i = 0; (card_read(c, NETDAM_REG_STATUS, 4) & NETDAM_DEVICE_LINK_UP) == 0; i++) {
        if (i == 6000) {
            fail_msg("the link of the card at 0x%lx stays down", (unsigned long)c->registers);
        }
        poll(NULL, 0, 10);
    }
}

uint64_t card_counter(struct card *c, enum netdam_counter counter)
{
    return card_read(c, NETDAM_PAGE_COUNTERS + 8u * (uint32_t)counter, 8);
}

void card_doorbell(struct card *c, unsigned queue_pair)
{
    uint32_t stride = (uint32_t)card_read(c, NETDAM_REG_DOORBELL_STRIDE, 4);

    card_write(c, NETDAM_PAGE_DOORBELLS + queue_pair * stride, 4, 1);
}

enum netdam_admin_status card_admin(struct card *c, enum netdam_admin command, const uint64_t *arguments, size_t count,
                                    uint64_t results[NETDAM_ADMIN_RESULTS])
{
    uint32_t i;

    for (i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        card_write(c, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, i < count ? arguments[i] : 0);
    }
    card_write(c, NETDAM_REG_ADMIN_COMMAND, 4, command);
    for (i = 0; results != NULL && i < NETDAM_ADMIN_RESULTS; i++) {
        results[i] = card_read(c, NETDAM_REG_ADMIN_RESULT0 + 8 * i, 8);
    }
    return (enum netdam_admin_status)card_read(c, NETDAM_REG_ADMIN_STATUS, 4);
}

void card_queue_create(struct card_queue *q, struct card *c, uint64_t base, uint16_t vector)
{
    const unsigned log2 = 5;
    const uint64_t cq_base = base + netdam_ring_bytes(log2, sizeof(struct netdam_descriptor));
    const uint64_t rq_base = cq_base + netdam_ring_bytes(log2, sizeof(struct netdam_completion));
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_true(rq_base <= base + CARD_QUEUE_BYTES);
    assert_int_equal(card_admin_args(c, NETDAM_ADMIN_QUEUE_CREATE, results, base, log2, cq_base, log2, 0, 0,
                                     NETDAM_QUEUE_NETDAM | (uint64_t)vector << 16, 0),
                     NETDAM_ADMIN_STATUS_OK);
    q->card = c;
    q->number = (uint32_t)results[0];
    q->base = base;
    q->log2 = log2;
    q->sq = (struct netdam_ring *)(void *)(c->onboard + base);
    q->cq = (struct netdam_ring *)(void *)(c->onboard + cq_base);
}

uint32_t card_region(struct card *c, uint64_t base, uint64_t bytes, uint64_t *key)
{
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(card_admin_args(c, NETDAM_ADMIN_REGION_CREATE, results, base, bytes, NETDAM_PERMISSION_ALL, 0, 0),
                     NETDAM_ADMIN_STATUS_OK);
    *key = results[1];
    return (uint32_t)results[0];
}

uint32_t card_peer(struct card *c, unsigned last)
{
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(card_admin_args(c, NETDAM_ADMIN_PEER_OPEN, results, 0x0a000000u | last, 0,
                                     4u | card_read(c, NETDAM_REG_UDP_PORT, 4) << 16),
                     NETDAM_ADMIN_STATUS_OK);
    return (uint32_t)results[0];
}

void card_post_silently(struct card_queue *q, const struct netdam_descriptor *descriptor)
{
    struct netdam_descriptor *entries = (struct netdam_descriptor *)(void *)(q->sq + 1);
    uint32_t producer = q->sq->producer;

    assert_true(producer - __atomic_load_n(&q->sq->consumer, __ATOMIC_ACQUIRE) < 1u << q->log2);
    entries[producer & ((1u << q->log2) - 1)] = *descriptor;
    __atomic_store_n(&q->sq->producer, producer + 1, __ATOMIC_RELEASE);
}

void card_post(struct card_queue *q, const struct netdam_descriptor *descriptor)
{
    card_post_silently(q, descriptor);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&q->sq->consumer_flags, __ATOMIC_RELAXED) & NETDAM_RING_NEED_WAKEUP) {
        card_doorbell(q->card, q->number);
    }
}

bool card_poll(struct card_queue *q, struct netdam_completion *completion, unsigned milliseconds)
{
    const struct netdam_completion *entries = (const struct netdam_completion *)(const void *)(q->cq + 1);
    uint32_t consumer = q->cq->consumer;
    unsigned i;

    /* Each step is answered by QEMU's main loop, so that the device has been given its turn when it returns. */
    for (i = 0; i <= milliseconds * 10; i++) {
        if (__atomic_load_n(&q->cq->producer, __ATOMIC_ACQUIRE) != consumer) {
            *completion = entries[consumer & ((1u << q->log2) - 1)];
            __atomic_store_n(&q->cq->consumer, consumer + 1, __ATOMIC_RELEASE);
            return true;
        }
        machine_step(q->card->machine, 100000);
    }
    return false;
}

void card_arm(struct card_queue *q)
{
    __atomic_store_n(&q->cq->arm, q->cq->arm + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void card_msix_enable(struct card *c, bool enable, bool function_mask)
{
    unsigned control = card_capability(c, CARD_CAP_MSIX) + 2;
    uint32_t value = card_config_read(c, control, 2) & 0x3fffu;

    card_config_write(c, control, 2, value | (enable ? 0x8000u : 0) | (function_mask ? 0x4000u : 0));
}

static uint64_t card_msix_entry(struct card *c, unsigned vector)
{
    uint32_t table = card_config_read(c, card_capability(c, CARD_CAP_MSIX) + 4, 4);

    assert_int_equal(table & 7u, NETDAM_BAR_MSIX);
    return c->msix + (table & ~7u) + 16u * vector;
}

void card_msix_set(struct card *c, unsigned vector, uint64_t address, uint32_t data, bool masked)
{
    uint64_t entry = card_msix_entry(c, vector);

    machine_write(c->machine, entry + 12, 4, 1);
    machine_write(c->machine, entry, 4, (uint32_t)address);
    machine_write(c->machine, entry + 4, 4, (uint32_t)(address >> 32));
    machine_write(c->machine, entry + 8, 4, data);
    machine_write(c->machine, entry + 12, 4, masked);
}

void card_msix_mask(struct card *c, unsigned vector, bool masked)
{
    machine_write(c->machine, card_msix_entry(c, vector) + 12, 4, masked);
}

bool card_msix_pending(struct card *c, unsigned vector)
{
    uint32_t pba = card_config_read(c, card_capability(c, CARD_CAP_MSIX) + 8, 4);

    assert_int_equal(pba & 7u, NETDAM_BAR_MSIX);
    return machine_read(c->machine, c->msix + (pba & ~7u) + vector / 64 * 8, 8) >> vector % 64 & 1u;
}
