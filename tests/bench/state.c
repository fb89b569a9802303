/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer costs in the firmware's state block, by state_bytes() of configurations that differ in it alone. */
#include "bench.h"
#include "ndtest_node.h"

#include "ndfw.h"

static double state_bytes(uint32_t peers, uint32_t lanes, uint32_t windows)
{
    static uint8_t memory[4096] __attribute__((aligned(4096)));
    struct netdam_fw_config config;
    const char *error = "";
    size_t bytes;

    ndtest_config_default(&config, 0);
    config.memory = memory;
    config.memory_bytes = sizeof(memory);
    config.peers = peers;
    config.lanes = lanes;
    config.lane_windows = windows;
    bytes = netdam_fw_entry()->state_bytes(&config, &error);
    if (bytes == 0) {
        bench_fail(error);
    }
    return (double)bytes;
}

void bench_state(FILE *out)
{
    /* Between powers of two, for tables have so many places. */
    const uint32_t few = 1024, many = 8192;
    const double less = many - few;

    fprintf(out,
            "\"state_bytes_per_peer\": {\"requester\": %.1f, \"lane_in_table\": %.1f, \"lane_at_rest\": %zu, "
            "\"lane_unfinished\": %.1f, \"default_total\": %.0f},\n",
            (state_bytes(many, 4096, 256) - state_bytes(few, 4096, 256)) / less,
            (state_bytes(64, many, 256) - state_bytes(64, few, 256)) / less, sizeof(struct ndfw_lane),
            (state_bytes(64, 4096, many) - state_bytes(64, 4096, few)) / less, state_bytes(0, 0, 0));
}
