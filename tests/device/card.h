/* SPDX-License-Identifier: BSD-3-Clause */
/* A NetDAM function as a driver in the machine sees it: configuration space, BARs, registers, rings, MSI-X table. */
#ifndef NETDAM_TEST_CARD_H
#define NETDAM_TEST_CARD_H

#include "machine.h"
#include "netdam/admin.h"
#include "netdam/counters.h"
#include "netdam/isa.h"
#include "netdam/regs.h"
#include "netdam/ring.h"
#include "netdam/status.h"
#include "netdam/wire.h"

struct card {
    struct machine *machine;
    unsigned bus;
    unsigned devfn;
    uint64_t registers;
    uint64_t memory;
    uint64_t msix;
    uint8_t *onboard; /* the memory backend's file, mapped here too */
    size_t onboard_bytes;
};

/* Standard capabilities. */
#define CARD_CAP_EXPRESS 0x10
#define CARD_CAP_MSIX    0x11

/* Finds the n-th function of this kind, gives its BARs addresses and turns memory decoding on, bus mastering off. */
void card_open(struct card *c, struct machine *m, unsigned n);
/* The same for a function whose bus and place on it are in `c` already. */
void card_place(struct card *c, unsigned n);
/* Maps the file that is its memory backend. */
void card_map(struct card *c, const char *path, size_t bytes);
void card_close(struct card *c);

uint32_t card_config_read(struct card *c, unsigned offset, unsigned bytes);
void card_config_write(struct card *c, unsigned offset, unsigned bytes, uint32_t value);
/* 0: not there. */
unsigned card_capability(struct card *c, uint8_t id);
void card_bars(struct card *c);
void card_bus_master(struct card *c, bool on);
void card_function_reset(struct card *c);

uint64_t card_read(struct card *c, uint32_t offset, unsigned bytes);
void card_write(struct card *c, uint32_t offset, unsigned bytes, uint64_t value);
/* Until there is a link. */
void card_await_link(struct card *c);
uint64_t card_counter(struct card *c, enum netdam_counter counter);
void card_doorbell(struct card *c, unsigned queue_pair);

/* An administration command; missing arguments are 0. results may be NULL. */
enum netdam_admin_status card_admin(struct card *c, enum netdam_admin command, const uint64_t *arguments, size_t count,
                                    uint64_t results[NETDAM_ADMIN_RESULTS]);
#define card_admin_args(c, command, results, ...)                                                                      \
    card_admin(c, command, (const uint64_t[]){__VA_ARGS__},                                                            \
               sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), results)

/* A queue pair whose rings lie at `base` in on-board memory. */
struct card_queue {
    struct card *card;
    uint32_t number;
    uint64_t base;
    unsigned log2;
    struct netdam_ring *sq;
    struct netdam_ring *cq;
};

#define CARD_QUEUE_BYTES 0x4000

void card_queue_create(struct card_queue *q, struct card *c, uint64_t base, uint16_t vector);
/* A region of on-board memory with all permissions; returns its index and stores its key. */
uint32_t card_region(struct card *c, uint64_t base, uint64_t bytes, uint64_t *key);
/* A requester context towards 10.0.0.x. */
uint32_t card_peer(struct card *c, unsigned last);
/* Stores a descriptor; rings the doorbell if the device sleeps. */
void card_post(struct card_queue *q, const struct netdam_descriptor *descriptor);
/* Without the doorbell: the device finds it when it next looks by itself. */
void card_post_silently(struct card_queue *q, const struct netdam_descriptor *descriptor);
/* Waits for the next completion while the virtual clock runs, at most `milliseconds` of it. */
bool card_poll(struct card_queue *q, struct netdam_completion *completion, unsigned milliseconds);
/* Adds 1 to the completion ring's arm. */
void card_arm(struct card_queue *q);

void card_msix_enable(struct card *c, bool enable, bool function_mask);
void card_msix_set(struct card *c, unsigned vector, uint64_t address, uint32_t data, bool masked);
void card_msix_mask(struct card *c, unsigned vector, bool masked);
bool card_msix_pending(struct card *c, unsigned vector);

#endif
