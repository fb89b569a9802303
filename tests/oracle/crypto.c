/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests' cryptography, which here notices what real cryptography would not forgive: a nonce used twice under a key. */
#include "oracle.h"

#include "ndtest_crypto.h"

#include <stdlib.h>

static void watch(void *opaque, uint64_t secret)
{
    struct world *world = opaque;

    if (2 * world->nonce_count >= world->nonce_room) {
        uint32_t room = world->nonce_room == 0 ? 4096 : 2 * world->nonce_room;
        uint64_t *nonces = calloc(room, sizeof(*nonces));

        if (nonces == NULL) {
            abort();
        }
        for (uint32_t i = 0; i < world->nonce_room; i++) {
            uint32_t place = (uint32_t)world->nonces[i] % room;

            while (world->nonces[i] != 0 && nonces[place] != 0) {
                place = (place + 1) % room;
            }
            if (world->nonces[i] != 0) {
                nonces[place] = world->nonces[i];
            }
        }
        free(world->nonces);
        world->nonces = nonces;
        world->nonce_room = room;
    }
    for (uint32_t place = (uint32_t)(secret | 1) % world->nonce_room;; place = (place + 1) % world->nonce_room) {
        if (world->nonces[place] == (secret | 1)) {
            fail(world, FAILURE_NONCE, "after %u frames", world->nonce_count);
            return;
        }
        if (world->nonces[place] == 0) {
            world->nonces[place] = secret | 1;
            world->nonce_count++;
            return;
        }
    }
}

const struct netdam_fw_crypto *crypto_make(struct world *world)
{
    struct ndtest_crypto *crypto = world_allocate(world, sizeof(*crypto));

    ndtest_crypto_init(crypto);
    crypto->sealed = watch;
    crypto->opaque = world;
    return &crypto->calls;
}
