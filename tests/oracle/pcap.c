/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames into a file that Wireshark reads: pcap with times in ns. */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>

struct pcap {
    FILE *file;
    bool failed;
};

static void put(struct pcap *pcap, const void *data, size_t bytes)
{
    if (fwrite(data, 1, bytes, pcap->file) != bytes) {
        pcap->failed = true;
    }
}

struct pcap *pcap_open(const char *path)
{
    const uint32_t header[] = {0xa1b23c4d, 2 | 4u << 16, 0, 0, 65535, 1};
    struct pcap *pcap = calloc(1, sizeof(*pcap));

    if (pcap == NULL) {
        return NULL;
    }
    pcap->file = fopen(path, "wb");
    if (pcap->file == NULL) {
        free(pcap);
        return NULL;
    }
    put(pcap, header, sizeof(header));
    return pcap;
}

void pcap_write(struct pcap *pcap, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    const uint32_t header[] = {(uint32_t)(now_ns / 1000000000), (uint32_t)(now_ns % 1000000000), bytes, bytes};

    put(pcap, header, sizeof(header));
    put(pcap, frame, bytes);
}

bool pcap_close(struct pcap *pcap)
{
    bool good = !pcap->failed;

    good &= fclose(pcap->file) == 0;
    free(pcap);
    return good;
}
