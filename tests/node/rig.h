/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the soft device share: a driver of a few lines, and netdam-node as a child process. */
#ifndef NODE_RIG_H
#define NODE_RIG_H

#include "netdam_soft.h"
#include "netdam/admin.h"
#include "netdam/isa.h"
#include "netdam/regs.h"
#include "netdam/ring.h"
#include "netdam/status.h"

#include <stdio.h>
#include <sys/types.h>

#define RIG_MEMORY  (UINT64_C(8) << 20)
#define RIG_DATA    UINT64_C(65536) /* rings lie below, the region begins here */
#define RIG_ENTRIES 64u             /* of each ring */

/* Nothing here takes longer on a machine that is merely busy. */
#define RIG_PATIENCE_NS UINT64_C(30000000000)

struct rig {
    struct netdam_soft *soft;
    uint8_t *memory;
    uint64_t key; /* of region 0: RIG_DATA to the end of memory, everything permitted */
    uint32_t region;
    uint32_t pair;
    uint32_t sq_producer;
    uint32_t cq_consumer;
};

uint64_t rig_now_ns(void);
void rig_nap(void); /* a millisecond */

/* A device on a free port of 127.0.0.1 with a region and a queue pair. NULL: the firmware's defaults. */
void rig_open(struct rig *rig, const struct netdam_soft_config *like);
void rig_close(struct rig *rig);

/* Region and queue pair anew, as after a reset. */
void rig_set_up(struct rig *rig);

uint64_t rig_counter(const struct rig *rig, enum netdam_counter counter);

/* Returns enum netdam_admin_status; arguments that are not given are 0. */
unsigned rig_admin(const struct rig *rig, unsigned command, const uint64_t *arguments, unsigned count,
                   uint64_t results[NETDAM_ADMIN_RESULTS]);
uint32_t rig_peer(const struct rig *rig, uint16_t port);

/* Ring producer's part: returns false if the ring is full. */
bool rig_post(struct rig *rig, const struct netdam_descriptor *descriptor);
/* All of them become visible at once. */
bool rig_post_all(struct rig *rig, const struct netdam_descriptor *descriptors, uint32_t count);
bool rig_poll(struct rig *rig, struct netdam_completion *completion);
/* Fails the test if nothing comes. */
void rig_wait(struct rig *rig, struct netdam_completion *completion);
/* Posts one and waits for it. */
struct netdam_completion rig_do(struct rig *rig, const struct netdam_descriptor *descriptor);

/* `local` and `remote` count from the start of the regions. */
struct netdam_descriptor rig_request(const struct rig *rig, unsigned opcode, uint32_t peer, uint64_t key,
                                     uint64_t local, uint64_t remote, uint32_t length);

struct rig_node {
    pid_t pid;
    FILE *output;
    uint16_t port;
    uint64_t bytes;
    uint64_t key;
};

/* Starts $O/sim/netdam-node --listen 127.0.0.1:0 with further arguments and reads its ready line. */
void rig_node_start(struct rig_node *node, const char *const *arguments);
/* Sends `signal_number`, reads what is left of the output into `rest`, and returns what waitpid says. */
int rig_node_stop(struct rig_node *node, int signal_number, char *rest, size_t size);

/* The number behind "NAME " at the start of a line, or UINT64_MAX. */
uint64_t rig_number(const char *text, const char *name);

#endif
