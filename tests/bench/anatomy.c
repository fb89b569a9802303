/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the nanoseconds of one request go. The stages of whole requests are timed in batches, in place; what is inside
 * the target's stage is timed by calling the firmware's functions with the same packet many times.
 */
#include "bench.h"
#include "nodes.h"

#include "ndfw.h"

#include <stdlib.h>

#define BATCHES_MOST 4096u
#define HEADERS      (NETDAM_ETHERNET_BYTES + NETDAM_IPV4_BYTES + NETDAM_UDP_BYTES)
#define CONTEXT      UINT64_C(0xbe9c4)

/* In the order of a request's way. */
enum stage {
    STAGE_DESCRIPTOR, /* requester: the descriptor is taken and checked */
    STAGE_REQUEST,    /* requester: the packet is made, its payload copied */
    STAGE_TARGET,     /* target: everything from the frame to the answer */
    STAGE_COMPLETION, /* requester: the answer is matched, the completion stored */
    STAGE_COUNT,
};

struct anatomy {
    struct nodes nodes;
    struct netdam_descriptor descriptor;
    unsigned batch;
    double samples[STAGE_COUNT][BATCHES_MOST];
    unsigned count;

    /* Inside the target. */
    struct ndfw *fw;
    uint8_t *datagram; /* of one request, kept */
    size_t datagram_bytes;
    struct ndfw_packet packet;
    uint64_t offset;
};

static void one_batch(struct anatomy *anatomy)
{
    struct nodes *nodes = &anatomy->nodes;
    struct ndfw *fw = nodes->node[0].state;
    struct netdam_completion completion;
    bool more;
    double time[STAGE_COUNT + 1];

    for (unsigned i = 0; i < anatomy->batch; i++) {
        unsigned action;

        (void)ndtest_queue_post(&nodes->queue, &anatomy->descriptor, fw->now_ns, &action);
    }
    fw->now_ns = nodes_now_ns();
    fw->work_bytes = 0;
    time[0] = bench_clock();
    (void)ndfw_queue_take(fw, nodes->queue.id, anatomy->batch);
    time[1] = bench_clock();
    (void)ndfw_peer_pump(fw, &fw->peers[nodes->peer], UINT64_MAX, &more);
    time[2] = bench_clock();
    nodes_deliver(nodes, 0, fw->now_ns);
    time[3] = bench_clock();
    nodes_deliver(nodes, 1, fw->now_ns);
    time[4] = bench_clock();
    for (unsigned i = 0; i < anatomy->batch; i++) {
        if (!ndtest_queue_poll(&nodes->queue, &completion) || completion.status != NETDAM_STATUS_OK) {
            bench_fail("a request of the anatomy has not completed");
        }
    }
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
        anatomy->samples[stage][anatomy->count] = 1e9 * (time[stage + 1] - time[stage]) / anatomy->batch;
    }
    anatomy->count++;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *samples, unsigned count)
{
    qsort(samples, count, sizeof(samples[0]), ascending);
    return samples[count / 2];
}

/* One request more, of which the packet is kept. */
static void keep_packet(struct anatomy *anatomy)
{
    struct nodes *nodes = &anatomy->nodes;
    struct ndfw *fw = nodes->node[0].state;
    enum netdam_counter counter;
    unsigned action;
    bool more;

    (void)ndtest_queue_post(&nodes->queue, &anatomy->descriptor, fw->now_ns, &action);
    fw->work_bytes = 0;
    (void)ndfw_queue_take(fw, nodes->queue.id, 1);
    (void)ndfw_peer_pump(fw, &fw->peers[nodes->peer], UINT64_MAX, &more);
    anatomy->fw = nodes->node[1].state;
    anatomy->datagram_bytes = nodes->wire[0].bytes[0] - HEADERS;
    anatomy->datagram = bench_allocate(4096, anatomy->datagram_bytes + HEADERS);
    memcpy(anatomy->datagram, nodes->wire[0].slots, nodes->wire[0].bytes[0]);
    anatomy->datagram += HEADERS;
    memset(&anatomy->packet, 0, sizeof(anatomy->packet));
    if (ndfw_decode(anatomy->fw, anatomy->datagram, anatomy->datagram_bytes, &anatomy->packet, &counter) !=
        NDFW_DECODED_OK) {
        bench_fail("the anatomy's packet cannot be decoded");
    }
    nodes_deliver(nodes, 0, fw->now_ns);
    nodes_deliver(nodes, 1, fw->now_ns);
    anatomy->offset = NODES_DATA_START + anatomy->packet.address;
    /* From here on a context of its own, in the generation that the node has now. */
    anatomy->packet.context = CONTEXT;
    anatomy->packet.generation = anatomy->fw->generation;
    anatomy->packet.number = 1;
    anatomy->packet.distance = 0;
    anatomy->packet.from = fw->peers[nodes->peer].endpoint;
}

static void run_decode(void *opaque, unsigned times)
{
    struct anatomy *anatomy = opaque;
    struct ndfw_packet packet;
    enum netdam_counter counter;

    for (unsigned i = 0; i < times; i++) {
        (void)ndfw_decode(anatomy->fw, anatomy->datagram, anatomy->datagram_bytes, &packet, &counter);
    }
}

static void run_payload_crc(void *opaque, unsigned times)
{
    struct anatomy *anatomy = opaque;

    for (unsigned i = 0; i < times; i++) {
        (void)ndfw_crc32c(anatomy->fw, 0, anatomy->packet.payload, anatomy->packet.payload_length);
    }
}

static void run_lane(void *opaque, unsigned times)
{
    struct anatomy *anatomy = opaque;
    struct ndfw_lane_result result;

    for (unsigned i = 0; i < times; i++) {
        if (ndfw_lane_admit(anatomy->fw, &anatomy->packet, false, &result) != NDFW_LANE_EXECUTE) {
            bench_fail("the anatomy's lane does not execute");
        }
        ndfw_lane_consume(result.window, anatomy->packet.number, 0, 0);
        anatomy->packet.number++;
    }
}

static void run_region(void *opaque, unsigned times)
{
    struct anatomy *anatomy = opaque;
    uint64_t offset;

    for (unsigned i = 0; i < times; i++) {
        if (ndfw_region_access(anatomy->fw, anatomy->packet.key, 0, anatomy->packet.address, anatomy->packet.length,
                               NETDAM_PERMISSION_REMOTE_WRITE, &offset) != NETDAM_STATUS_OK ||
            ndfw_memory(anatomy->fw, offset, anatomy->packet.length, NETDAM_FW_ACCESS_WRITE) == NULL) {
            bench_fail("the anatomy's region refuses");
        }
    }
}

static void run_effect(void *opaque, unsigned times)
{
    struct anatomy *anatomy = opaque;
    const struct ndfw_packet *packet = &anatomy->packet;
    uint8_t *memory = anatomy->nodes.node[1].memory + anatomy->offset;

    for (unsigned i = 0; i < times; i++) {
        if (packet->opcode == NETDAM_OP_REDUCE) {
            ndfw_alu_reduce(anatomy->fw, memory, packet->payload, packet->length, packet->operation, packet->type);
        } else {
            ndfw_payload_store(anatomy->fw, memory, packet->payload, packet->length);
        }
    }
}

/* An answer without payload: to an ECHO of nothing. */
static void run_answer(void *opaque, unsigned times)
{
    struct anatomy *anatomy = opaque;
    struct ndfw_packet packet = anatomy->packet;

    packet.opcode = NETDAM_OP_ECHO;
    packet.operation = packet.type = 0;
    packet.length = packet.payload_length = 0;
    packet.flags = 0;
    for (unsigned i = 0; i < times; i++) {
        ndfw_respond(anatomy->fw, &packet);
        anatomy->nodes.wire[1].tail = 0;
    }
}

static double inside(struct anatomy *anatomy, const struct bench_plan *plan, void (*run)(void *, unsigned))
{
    const struct bench_side side = {NULL, run, anatomy};
    double seconds;

    bench_compare(&side, 1, bench_times(&side, plan->small_seconds), plan->rounds, &seconds);
    return 1e9 * seconds;
}

static void take_apart(FILE *out, const struct bench_plan *plan, struct anatomy *anatomy, const char *effect)
{
    double stage[STAGE_COUNT], total = 0, crc, decode, lane, region, applied, answer;

    anatomy->count = 0;
    for (unsigned i = 0; i < (plan->quick ? 64u : BATCHES_MOST); i++) {
        one_batch(anatomy);
    }
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        stage[i] = median(anatomy->samples[i], anatomy->count);
        total += stage[i];
    }
    keep_packet(anatomy);
    crc = anatomy->packet.flags & NETDAM_FLAG_PAYLOAD_CRC ? inside(anatomy, plan, run_payload_crc) : 0;
    decode = inside(anatomy, plan, run_decode) - crc;
    lane = inside(anatomy, plan, run_lane);
    region = inside(anatomy, plan, run_region);
    applied = inside(anatomy, plan, run_effect);
    answer = inside(anatomy, plan, run_answer);
    fprintf(out,
            "{\"bytes\": %u, \"total_ns\": %.1f, \"descriptor_ns\": %.1f, \"request_ns\": %.1f, \"target_ns\": %.1f, "
            "\"completion_ns\": %.1f,\n  \"target\": {\"decode_ns\": %.1f, \"payload_crc_ns\": %.1f, "
            "\"lane_ns\": %.1f, \"region_ns\": %.1f, \"%s_ns\": %.1f, \"answer_ns\": %.1f, \"rest_ns\": %.1f}}",
            anatomy->descriptor.length, total, stage[STAGE_DESCRIPTOR], stage[STAGE_REQUEST], stage[STAGE_TARGET],
            stage[STAGE_COMPLETION], decode, crc, lane, region, effect, applied, answer,
            stage[STAGE_TARGET] - decode - crc - lane - region - applied - answer);
    bench_release(anatomy->datagram - HEADERS);
}

void bench_anatomy(FILE *out, const struct bench_plan *plan)
{
    static struct anatomy anatomy;
    const struct nodes_options options = {.data_bytes = 1u << 20, .mtu = 9000, .payload_crc = true};

    nodes_start(&anatomy.nodes, &options);
    nodes_do(&anatomy.nodes, nodes_request(&anatomy.nodes, NETDAM_OP_WRITE, 0, 8), plan->packets, 8);
    anatomy.descriptor = nodes_request(&anatomy.nodes, NETDAM_OP_WRITE, 0, 8);
    anatomy.batch = 16;
    fprintf(out, "\"anatomy\": {\"write_8\": ");
    take_apart(out, plan, &anatomy, "store");
    nodes_stop(&anatomy.nodes);

    nodes_start(&anatomy.nodes, &options);
    anatomy.descriptor = nodes_request(&anatomy.nodes, NETDAM_OP_REDUCE, 0, 8192);
    anatomy.descriptor.operation = NETDAM_ALU_SUM;
    anatomy.descriptor.type = NETDAM_TYPE_F32;
    nodes_do(&anatomy.nodes, anatomy.descriptor, plan->packets / 4, 8192);
    anatomy.batch = 7;
    fprintf(out, ",\n\"reduce_8k\": ");
    take_apart(out, plan, &anatomy, "alu");
    nodes_stop(&anatomy.nodes);
    fprintf(out, "},\n");
}
