/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's own memif endpoint as a program: sends back every frame it receives.
 *   dpdk_peer PATH server|client ZERO_COPY BUFFER_BYTES
 * Prints "up" and "down" as its link changes, and ends when its standard input does.
 */
#include "gate.h"

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define BURST 32
#define SLOTS 256

static void fail(const char *what)
{
    fprintf(stderr, "dpdk_peer: %s\n", what);
    exit(2);
}

static uint16_t start_port(struct rte_mempool *pool)
{
    struct rte_eth_conf configuration = {0};
    uint16_t port = 0;

    if (rte_eth_dev_configure(port, 1, 1, &configuration) != 0 ||
        rte_eth_rx_queue_setup(port, 0, SLOTS, 0, NULL, pool) != 0 ||
        rte_eth_tx_queue_setup(port, 0, SLOTS, 0, NULL) != 0) {
        fail("the port cannot be set up");
    }
    return port;
}

static void echo(uint16_t port)
{
    struct rte_mbuf *frames[BURST];
    uint16_t count = rte_eth_rx_burst(port, 0, frames, BURST);
    uint16_t sent = 0;
    unsigned tries;

    for (tries = 0; sent < count && tries < 1000000; tries++) {
        sent = (uint16_t)(sent + rte_eth_tx_burst(port, 0, frames + sent, (uint16_t)(count - sent)));
    }
    rte_pktmbuf_free_bulk(frames + sent, count - sent);
}

int main(int argc, char **argv)
{
    char device[256], prefix[64];
    char *eal[] = {
        argv[0],  "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",         "-m",
        "128",    "--lcores",  "0@(0-1)",     prefix,     "--single-file-segments", "--log-level=pmd.net.memif:error",
        "--vdev", device,      NULL};
    struct rte_mempool *pool;
    struct rte_eth_link link;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool client, started = false, up = false;
    struct ndfab_gate *gate;
    unsigned rounds, tries;
    uint16_t port;

    if (argc != 5) {
        fail("usage: dpdk_peer PATH server|client yes|no BUFFER_BYTES");
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    client = strcmp(argv[2], "client") == 0;
    snprintf(prefix, sizeof(prefix), "--file-prefix=netdam%d", (int)getpid());
    snprintf(device, sizeof(device),
             "net_memif0,role=%s,id=7,socket=%s,socket-abstract=no,bsize=%s,rsize=8,zero-copy=%s", argv[2], argv[1],
             argv[4], argv[3]);
    if (rte_eal_init((int)(sizeof(eal) / sizeof(eal[0])) - 1, eal) < 0) {
        fail("EAL does not start");
    }
    pool = rte_pktmbuf_pool_create("frames", 4095, 0, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + atoi(argv[4])), 0);
    if (pool == NULL) {
        fail("no memory for frames");
    }
    port = start_port(pool);
    gate = ndfab_gate_open();
    if (gate == NULL) {
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (rounds = 0;; rounds++) {
        if (up) {
            echo(port);
        }
        if (up && rounds % 64 != 0) {
            continue;
        }
        if (poll(&input, 1, up ? 0 : 1) != 0) {
            return 0;
        }
        /* A client gives up for good, so it is started again and again; a server listens once started. */
        if (!started || (client && !up)) {
            if (started) {
                (void)rte_eth_dev_stop(port);
            }
            started = rte_eth_dev_start(port) == 0;
        }
        /* The handshake goes on in another thread, which takes the port apart when the link goes down: between bursts. */
        for (tries = 0; tries < 200; tries++) {
            ndfab_gate_pass(gate);
            if (rte_eth_link_get_nowait(port, &link) == 0 && (link.link_status == RTE_ETH_LINK_UP) != up) {
                up = !up;
                printf("%s\n", up ? "up" : "down");
            }
            if (up || !client || !started) {
                break;
            }
            (void)poll(NULL, 0, 1);
        }
    }
}
