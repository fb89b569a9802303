/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Yields, then sleeps: on two cores spinning keeps from running whom one waits for. Devices of DPDK cannot wake anybody
 * up, so with them sleep is naps, which grow.
 */
#include "wait.h"

#include <rte_pause.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define YIELDS      300u
#define NAP_MIN_NS  2000u
#define NAP_MAX_NS  50000u
#define LONG_ROUNDS 20000u /* about a second of naps without work: they may grow further */
#define LONG_NAP_NS 500000u
#define SOON_NS     20000u /* not worth going to sleep for */
#define SLEEP_NS    UINT64_C(100000000)

uint64_t ndfab_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool ndfab_wait_open(struct ndfab_wait *wait, struct ndfab_fabric *fabric, const struct ndfab_control *control,
                     bool poll)
{
    uint32_t ports = fabric->topology.port_count;

    *wait = (struct ndfab_wait){.fabric = fabric, .control = control, .poll = poll, .can_sleep = true};
    for (uint32_t i = 0; i < ports; i++) {
        wait->can_sleep &= fabric->ports[i].memif != NULL;
    }
    wait->fds = calloc(ports + NDFAB_CONTROL_FDS, sizeof(*wait->fds));
    if (wait->fds == NULL) {
        fprintf(stderr, "netdam-fabric: not enough memory\n");
        return false;
    }
    ndsim_share_ask_for_short_slices();
    /* Naps of microseconds are as long as they say. */
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    return true;
}

void ndfab_wait_close(struct ndfab_wait *wait)
{
    free(wait->fds);
}

void ndfab_wait_busy(struct ndfab_wait *wait)
{
    wait->idle = 0;
    wait->nap_ns = NAP_MIN_NS;
    if (!wait->poll) {
        ndsim_share_yield(&wait->share);
    }
}

static void nap(uint64_t ns)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = (long)ns};

    nanosleep(&time, NULL);
}

/* All ports are asked for wake-ups, and looked at once more by that. */
static bool sleep_until_woken(struct ndfab_wait *wait, uint64_t ns)
{
    struct ndfab_fabric *fabric = wait->fabric;
    uint32_t ports = fabric->topology.port_count;
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    bool quiet = true;
    bool woken = false;

    for (uint32_t i = 0; i < ports; i++) {
        quiet &= ndsim_memif_arm(fabric->ports[i].memif);
        wait->fds[i] = (struct pollfd){.fd = ndsim_memif_fd(fabric->ports[i].memif), .events = POLLIN};
    }
    if (quiet) {
        woken = ppoll(wait->fds, ports + ndfab_control_fds(wait->control, wait->fds + ports), &time, NULL) != 0;
    }
    for (uint32_t i = 0; i < ports; i++) {
        ndsim_memif_disarm(fabric->ports[i].memif);
    }
    return woken;
}

bool ndfab_wait_idle(struct ndfab_wait *wait, bool blocked)
{
    uint64_t next_ns = ndsim_loop_next_ns(&wait->fabric->loop);
    uint64_t now_ns = ndfab_clock_ns();
    uint64_t left_ns = next_ns > now_ns ? next_ns - now_ns : 0;

    if (wait->poll) {
        rte_pause();
        return false;
    }
    if (left_ns < SOON_NS) {
        ndsim_share_yield(&wait->share);
        return false;
    }
    if (wait->idle++ < YIELDS && ndsim_share_yield(&wait->share)) {
        return false;
    }
    if (wait->can_sleep) {
        return sleep_until_woken(wait, RTE_MIN(left_ns, blocked ? NDSIM_MEMIF_RETRY_NS : SLEEP_NS));
    }
    nap(RTE_MIN(left_ns - SOON_NS / 2, wait->nap_ns));
    wait->nap_ns = RTE_MIN(wait->nap_ns * 2, wait->idle > LONG_ROUNDS ? LONG_NAP_NS : NAP_MAX_NS);
    return false;
}
