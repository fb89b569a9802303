/* SPDX-License-Identifier: BSD-3-Clause */
/* What tenants cost: 8 KiB WRITEs without and with them, beside the library's own sealing and opening of such bytes. */
#include "bench.h"
#include "nodes.h"

#include "crypto.h"

#include <string.h>

#define WRITE_BYTES 8192u
#define DATA_BYTES  ((size_t)8 << 20)
#define WRITES      256u

static void run_writes(void *opaque, unsigned times)
{
    struct nodes *nodes = opaque;

    for (unsigned n = 0; n < times; n++) {
        nodes_do(nodes, nodes_request(nodes, NETDAM_OP_WRITE, 0, WRITE_BYTES), WRITES, WRITE_BYTES);
    }
}

struct library {
    const struct netdam_fw_crypto *crypto;
    uint8_t text[WRITE_BYTES];
    uint8_t out[WRITE_BYTES];
    bool encrypts; /* else the bytes are only authenticated */
};

static void run_library(void *opaque, unsigned times)
{
    static const uint8_t header[112];
    struct library *library = opaque;
    const struct netdam_fw_crypto *crypto = library->crypto;

    for (unsigned n = 0; n < times * WRITES; n++) {
        uint8_t nonce[12] = {0}, tag[16];
        bool good;

        memcpy(nonce, &n, sizeof(n));
        good = library->encrypts
                   ? crypto->seal(crypto->opaque, 0, nonce, header, sizeof(header), library->text, WRITE_BYTES, tag) &&
                         crypto->open(crypto->opaque, 0, nonce, header, sizeof(header), library->text, WRITE_BYTES, tag,
                                      library->out)
                   : crypto->seal(crypto->opaque, 0, nonce, library->text, WRITE_BYTES, NULL, 0, tag) &&
                         crypto->open(crypto->opaque, 0, nonce, library->text, WRITE_BYTES, NULL, 0, tag, NULL);
        if (!good) {
            bench_fail("the library's cryptography fails");
        }
    }
}

void bench_crypto(FILE *out, const struct bench_plan *plan)
{
    static const char *const names[] = {"without", "authenticated", "encrypted"};
    static const unsigned modes[] = {NETDAM_TENANT_MODE_NONE, NETDAM_TENANT_MODE_AUTHENTICATE,
                                     NETDAM_TENANT_MODE_ENCRYPT};
    static const uint8_t key[16] = {1, 2, 3};
    static struct library library;
    double gigabytes = 1e-9 * WRITES * WRITE_BYTES;

    library.crypto = ndsim_crypto_open();
    if (library.crypto == NULL) {
        fprintf(out, "\"crypto\": {\"skipped\": \"built without mbed TLS: apt-get install libmbedtls-dev\"},\n");
        return;
    }
    if (!library.crypto->set_key(library.crypto->opaque, 0, key)) {
        bench_fail("the library takes no key");
    }
    fprintf(out, "\"crypto\": {\"bytes\": %u", WRITE_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        static struct nodes nodes;
        const struct nodes_options options = {
            .data_bytes = DATA_BYTES, .mtu = 9000, .payload_crc = true, .tenant_mode = modes[i]};
        const struct bench_side sides[2] = {{.run = run_writes, .opaque = &nodes},
                                            {.run = run_library, .opaque = &library}};
        double seconds[2] = {0};
        unsigned count = modes[i] == NETDAM_TENANT_MODE_NONE ? 1 : 2;

        library.encrypts = modes[i] == NETDAM_TENANT_MODE_ENCRYPT;
        nodes_start(&nodes, &options);
        run_writes(&nodes, 1);
        bench_compare(sides, count, plan->quick ? 1 : 8, plan->rounds, seconds);
        nodes_stop(&nodes);
        fprintf(out, ", \"%s\": {\"gb_s\": %.3f", names[i], gigabytes / seconds[0]);
        if (count == 2) {
            fprintf(out, ", \"library_gb_s\": %.3f, \"ratio\": %.3f", gigabytes / seconds[1], seconds[1] / seconds[0]);
        }
        fprintf(out, "}");
    }
    fprintf(out, "},\n");
    ndsim_crypto_close(library.crypto);
}
