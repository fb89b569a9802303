/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the memif endpoint share: a directory, patience, and a peer that says what a test wants it to. */
#ifndef MEMIF_RIG_H
#define MEMIF_RIG_H

#include "memif.h"
#include "memif_wire.h"

#include <sys/types.h>

/* Nothing here takes longer on a machine that is merely busy. */
#define RIG_PATIENCE_MS 60000

struct rig {
    char directory[64];
    char path[96];
    char log[8][256]; /* the last lines */
    unsigned lines;
};

int rig_set_up(void **state);
int rig_tear_down(void **state);

/* The line with `text` in it, among the last ones; NULL: none. */
const char *rig_logged(const struct rig *rig, const char *text);

struct ndsim_memif_config rig_config(struct rig *rig, enum ndsim_memif_role role);
struct ndsim_memif *rig_open(struct rig *rig, const struct ndsim_memif_config *config);

/* Sleeps on the endpoints' descriptors and processes what comes until both links are up, or down. */
void rig_until_link(struct ndsim_memif *a, struct ndsim_memif *b, bool up);
/* One round of that, with one endpoint or two. */
void rig_step(struct ndsim_memif *a, struct ndsim_memif *b);

/* How many this process has open. */
unsigned rig_descriptors(void);

struct ndsim_memif_statistics rig_statistics(const struct ndsim_memif *memif);

/* Sends `bytes` bytes that follow from `seed` when there is room. */
void rig_send(struct ndsim_memif *memif, uint64_t seed, size_t bytes);
/* Fails the test if they are not these. */
void rig_check(const uint8_t *frame, size_t bytes, uint64_t seed, size_t expected_bytes);

/*
 * A peer that follows a script: a socket, messages, and memory that it made or was given. The endpoint that it deals
 * with is given its turns, unless it is another process's: NULL.
 */
struct script {
    int fd;
    int listener;
    int memory_fd;
    uint8_t *memory;
    size_t memory_bytes;
    int event_fd[2]; /* of the ring from client to server, and of the other */
    struct memif_ring *ring[2];
    char reason[MEMIF_REASON_BYTES]; /* of the DISCONNECT that came */
};

#define SCRIPT_S2M 0
#define SCRIPT_M2S 1

/* How its client differs from a good one. */
struct script_client {
    bool (*tamper)(uint8_t *message, int *fds, unsigned *fd_count); /* false: not sent at all; may be NULL */
    uint32_t log2_slots;                                            /* 0: 4, which are 16 slots */
    bool unsealed;
    bool no_cookie;
    size_t missing_bytes;  /* the memory is smaller than announced by so many */
    unsigned more_regions; /* so many behind the first one, */
    int more_fd;           /* all of this memory */
    uint64_t more_bytes;   /* and as long as that */
};

#define SCRIPT_BUFFER_BYTES 2048u

void script_init(struct script *script);
void script_close(struct script *script);
void script_connect(struct script *script, const char *path);
void script_listen(struct script *script, const char *path);
void script_accept(struct script *script, struct ndsim_memif *memif);

void script_send(struct script *script, const uint8_t message[MEMIF_MESSAGE_BYTES], const int *fds, unsigned fd_count);
/* Lets the endpoint work until a message comes: its type; 0: the socket was closed. Stores up to one descriptor. */
unsigned script_wait(struct script *script, struct ndsim_memif *memif, uint8_t message[MEMIF_MESSAGE_BYTES], int *fd);

/* Rings and buffers of a client, the two rings' buffers one after the other. */
void script_make_memory(struct script *script, const struct script_client *client);
/* From HELLO to CONNECTED. True: the link is up. False: it was refused, script->reason tells why. */
bool script_be_client(struct script *script, struct ndsim_memif *memif, const struct script_client *client);
/* From HELLO to CONNECTED against a client; `log2_max` is what HELLO says. */
void script_be_server(struct script *script, struct ndsim_memif *memif, unsigned log2_max);
/* The endpoint has given up: waits for DISCONNECT or the end, and fails if the reason has no `text` in it. */
void script_expect_end(struct script *script, struct ndsim_memif *memif, const char *text);

void script_put(uint8_t *message, unsigned offset, uint64_t value, unsigned bits);
uint64_t script_get(const uint8_t *message, unsigned offset, unsigned bits);

unsigned script_type(const uint8_t *message);

void script_describe(struct memif_ring *ring, unsigned slot, unsigned flags, unsigned region, uint32_t length,
                     uint32_t offset);

#endif
