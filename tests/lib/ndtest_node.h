/* SPDX-License-Identifier: BSD-3-Clause */
/* A firmware instance under test: state, guarded on-board memory, platform, and software's side of registers and rings.
 */
#ifndef NDTEST_NODE_H
#define NDTEST_NODE_H

#include "ndtest_random.h"

#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/isa.h"
#include "netdam/regs.h"
#include "netdam/ring.h"
#include "netdam/status.h"
#include "netdam/wire.h"

struct ndtest_node;

/* What the test sees and decides. Any member may be NULL. */
struct ndtest_hooks {
    void *opaque;
    /* The port: as transmit_begin and transmit_end of the platform. NULL: frames vanish. */
    uint8_t *(*transmit_begin)(void *opaque, struct ndtest_node *node, size_t bytes);
    void (*transmit_end)(void *opaque, struct ndtest_node *node, size_t bytes);
    void (*access)(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                   enum netdam_fw_access access);
    /* NULL: from the node's own seed. */
    void (*entropy)(void *opaque, struct ndtest_node *node, void *buffer, size_t bytes);
    void (*trace)(void *opaque, struct ndtest_node *node, enum netdam_fw_trace event, uint64_t a, uint64_t b,
                  uint64_t c);
};

#define NDTEST_GUARD_BYTES 4096u
#define NDTEST_GUARD_BYTE  0xc9

struct ndtest_node {
    const struct netdam_fw_ops *ops;
    struct netdam_fw_config config;
    struct netdam_fw_platform platform;
    struct ndtest_hooks hooks;
    void *state;
    size_t state_bytes;
    uint8_t *memory; /* config.memory_bytes, guards before and after */
    uint8_t *memory_block;
    uint8_t *state_block;
    struct ndtest_random entropy;
    uint64_t interrupts;
    uint64_t log_lines;
    uint8_t *transmit; /* between transmit_begin and transmit_end without a port */
    unsigned index;    /* the test's name for it */
    bool running;
};

/*
 * Fills `config` with what every test starts from: MAC 02:00:00:00:00:XX, 10.0.0.XX/24, fd00::XX (XX = index + 1),
 * no merging, the firmware's defaults elsewhere.
 */
void ndtest_config_default(struct netdam_fw_config *config, unsigned index);

/* Allocates; does not start. False with *error if the firmware refuses the configuration or memory is short. */
bool ndtest_node_init(struct ndtest_node *node, const struct netdam_fw_ops *ops, const struct netdam_fw_config *config,
                      const struct ndtest_hooks *hooks, uint64_t seed, const char **error);
void ndtest_node_fini(struct ndtest_node *node);
void ndtest_node_start(struct ndtest_node *node, uint64_t now_ns);
void ndtest_node_stop(struct ndtest_node *node, uint64_t now_ns);

/* True if neither guard of memory nor of state has changed. */
bool ndtest_node_guards_intact(const struct ndtest_node *node);

uint64_t ndtest_node_register(struct ndtest_node *node, enum netdam_register reg);
uint64_t ndtest_node_counter(struct ndtest_node *node, enum netdam_counter counter);

/* An administration command through the registers. Returns its status; *action gets the NETDAM_FW_ACTION_* bits. */
enum netdam_admin_status ndtest_node_admin(struct ndtest_node *node, enum netdam_admin command, const uint64_t *args,
                                           unsigned count, uint64_t results[NETDAM_ADMIN_RESULTS], uint64_t now_ns);

enum netdam_admin_status ndtest_region_create(struct ndtest_node *node, uint64_t base, uint64_t length,
                                              uint32_t permissions, uint64_t key, uint64_t now_ns, uint32_t *index,
                                              uint64_t *key_out);
enum netdam_admin_status ndtest_region_destroy(struct ndtest_node *node, uint32_t index, uint64_t now_ns);

/* Towards `other` at its configured address; family 4 or 6. */
enum netdam_admin_status ndtest_peer_open(struct ndtest_node *node, const struct ndtest_node *other, unsigned family,
                                          uint64_t now_ns, uint32_t *peer);
enum netdam_admin_status ndtest_peer_close(struct ndtest_node *node, uint32_t peer, uint64_t now_ns);
enum netdam_admin_status ndtest_neighbour_set(struct ndtest_node *node, const struct ndtest_node *other,
                                              unsigned family, uint64_t now_ns);

/* Software's side of a queue pair. */
struct ndtest_queue {
    struct ndtest_node *node;
    uint64_t sq_base;
    uint64_t cq_base;
    uint64_t rq_base;
    uint64_t receive_key; /* 0: no receive ring */
    unsigned sq_log2;
    unsigned cq_log2;
    unsigned rq_log2; /* 0: no receive ring */
    uint32_t id;
    uint32_t produced; /* SQ */
    uint32_t consumed; /* CQ */
    uint32_t receive_produced;
    bool open;
};

enum netdam_admin_status ndtest_queue_create(struct ndtest_queue *queue, struct ndtest_node *node, uint64_t sq_base,
                                             unsigned sq_log2, uint64_t cq_base, unsigned cq_log2, uint32_t first_index,
                                             uint64_t now_ns);
/* The same with a receive ring of 2^rq_log2 entries; rq_log2 0: none. */
enum netdam_admin_status ndtest_queue_create_receiving(struct ndtest_queue *queue, struct ndtest_node *node,
                                                       uint64_t sq_base, unsigned sq_log2, uint64_t cq_base,
                                                       unsigned cq_log2, uint64_t rq_base, unsigned rq_log2,
                                                       uint32_t first_index, uint64_t now_ns);
/* The same for frames that are not NetDAM's: of type RAW, with as many entries in each ring. */
enum netdam_admin_status ndtest_queue_create_raw(struct ndtest_queue *queue, struct ndtest_node *node, uint64_t base,
                                                 unsigned log2, uint64_t now_ns);
enum netdam_admin_status ndtest_queue_destroy(struct ndtest_queue *queue, uint64_t now_ns);

/*
 * Stores a descriptor and the producer index, and writes the doorbell if the device asked for it. False if the ring is
 * full. *action gets the doorbell's NETDAM_FW_ACTION_* bits, 0 without one.
 */
bool ndtest_queue_post(struct ndtest_queue *queue, const struct netdam_descriptor *descriptor, uint64_t now_ns,
                       unsigned *action);
/* Stores a receive descriptor and the producer index. False if the ring is full or there is none. */
bool ndtest_queue_post_receive(struct ndtest_queue *queue, const struct netdam_descriptor *descriptor);
/* Receive descriptors that the device has used, as a free-running index. */
uint32_t ndtest_queue_received(const struct ndtest_queue *queue);
/* Descriptors that the device has taken, as a free-running index. */
uint32_t ndtest_queue_taken(const struct ndtest_queue *queue);
/* Takes the next completion. False if there is none. */
bool ndtest_queue_poll(struct ndtest_queue *queue, struct netdam_completion *completion);
/* Completions the device claims are there; more than the ring holds is a violation. */
uint32_t ndtest_queue_ready(const struct ndtest_queue *queue);

#endif
