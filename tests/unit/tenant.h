/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of tenants: cryptography that is watched, two nodes on one wire, and frames sealed by hand. */
#ifndef UNIT_TENANT_H
#define UNIT_TENANT_H

#include "unit.h"

#define TENANT_ID    UINT32_C(7)
#define TENANT_OTHER UINT32_C(8)
#define TENANT_BYTES sizeof(struct netdam_wire_tenant)

/* A tenant as both ends of a test know it. */
struct tenant_key {
    uint32_t id;
    uint8_t mode; /* enum netdam_tenant_mode */
    uint8_t key[16];
};

extern const struct tenant_key tenant_plain;  /* TENANT_ID, AUTHENTICATE */
extern const struct tenant_key tenant_secret; /* TENANT_ID, ENCRYPT, the same key */
extern const struct tenant_key tenant_other;  /* TENANT_OTHER, ENCRYPT, another key */

/*
 * The platform's cryptography, of the library, with every (key, nonce) that anything is sealed with remembered: a second
 * use of one fails the test. One for all nodes, forgotten with tenant_watch_start.
 */
void tenant_watch_start(void);
/* Different (key, nonce) so far. */
size_t tenant_watch_sealed(void);
/* From here on, until the next start, the calls of the library fail. */
void tenant_watch_fail(bool fails);

/* Gives a node the watched cryptography and starts it anew; its entropy goes on. */
void tenant_start(struct unit *u, unsigned index, const struct netdam_fw_config *config);
void tenant_restart(struct unit *u);
enum netdam_admin_status tenant_set(struct unit *u, const struct tenant_key *tenant);
uint32_t tenant_region(struct unit *u, uint64_t base, uint64_t bytes, uint64_t key, uint32_t tenant);
uint32_t tenant_peer(struct unit *u, unsigned family, uint32_t tenant);

/* Two nodes with the same clock. */
struct tenant_wire {
    struct unit a; /* node 0 */
    struct unit b; /* node 1 */
    /* Sees each frame, may change it; false: it is lost. NULL: all arrive. */
    bool (*tap)(void *opaque, bool from_a, uint8_t *frame, size_t *bytes);
    void *opaque;
    uint64_t passed;
};
/* Both ends: started, nothing set. */
void tenant_wire_start(struct tenant_wire *wire, const struct netdam_fw_config *config);
void tenant_wire_stop(struct tenant_wire *wire);
/* Runs both and carries frames until nothing more comes, then lets `ns` go by in the same way. */
void tenant_wire_run(struct tenant_wire *wire, uint64_t ns);

/* By the specification: seals what unit_request_frame or unit_answer_frame made, without payload CRC. */
struct tenant_sender {
    const struct tenant_key *tenant;
    uint8_t salt[16];
    uint64_t counter; /* of the last frame */
};
size_t tenant_seal(uint8_t *frame, size_t bytes, struct tenant_sender *sender);
/* The same for a request; to node 1 - from. */
size_t tenant_request_frame(uint8_t *frame, unsigned from, const struct unit_request *request,
                            struct tenant_sender *sender);
/* Opens a frame in place: tag removed from the flags' meaning stays, payload in the clear. False: it does not verify. */
bool tenant_open(uint8_t *frame, size_t bytes, const struct tenant_key *tenant);

#endif
