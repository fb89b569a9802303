/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's interrupt thread, held inside the callback of an eventfd. */
/* The interrupt handles of programs are "experimental" in DPDK 22.11, and unchanged since. */
#define ALLOW_EXPERIMENTAL_API
#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <rte_interrupts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 10 /* the thread has nothing to do that takes so long */

struct ndfab_gate {
    struct rte_intr_handle *handle;
    int fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned round; /* in which the thread has to be held anew */
    bool held;
    bool released; /* for good */
};

static void on_event(void *opaque)
{
    struct ndfab_gate *gate = opaque;
    uint64_t count;
    unsigned round;

    if (read(gate->fd, &count, sizeof(count)) < 0) {
        return;
    }
    pthread_mutex_lock(&gate->lock);
    round = gate->round;
    gate->held = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->released && gate->round == round) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

static void ring(struct ndfab_gate *gate)
{
    const uint64_t one = 1;

    while (write(gate->fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

/* Whoever is held goes, does what else has come up, and finds the eventfd, which holds it again. */
static bool hold(struct ndfab_gate *gate)
{
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&gate->lock);
    gate->round++;
    gate->held = false;
    ring(gate);
    pthread_cond_broadcast(&gate->changed);
    while (!gate->held && error == 0) {
        error = pthread_cond_timedwait(&gate->changed, &gate->lock, &until);
    }
    pthread_mutex_unlock(&gate->lock);
    return error == 0;
}

struct ndfab_gate *ndfab_gate_open(void)
{
    struct ndfab_gate *gate = calloc(1, sizeof(*gate));

    if (gate != NULL) {
        gate->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        gate->handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
        pthread_mutex_init(&gate->lock, NULL);
        pthread_cond_init(&gate->changed, NULL);
        if (gate->fd >= 0 && gate->handle != NULL && rte_intr_fd_set(gate->handle, gate->fd) == 0 &&
            rte_intr_type_set(gate->handle, RTE_INTR_HANDLE_EXT) == 0 &&
            rte_intr_callback_register(gate->handle, on_event, gate) == 0) {
            if (hold(gate)) {
                return gate;
            }
            ndfab_gate_close(gate);
            gate = NULL;
        }
    }
    fprintf(stderr, "netdam-fabric: DPDK's interrupt thread cannot be held\n");
    if (gate != NULL) {
        rte_intr_instance_free(gate->handle);
        if (gate->fd >= 0) {
            close(gate->fd);
        }
        free(gate);
    }
    return NULL;
}

void ndfab_gate_pass(struct ndfab_gate *gate)
{
    if (gate != NULL && !hold(gate)) {
        fprintf(stderr, "netdam-fabric: DPDK's interrupt thread is stuck\n");
    }
}

void ndfab_gate_close(struct ndfab_gate *gate)
{
    if (gate == NULL) {
        return;
    }
    pthread_mutex_lock(&gate->lock);
    gate->released = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
    /* Waits until the callback has returned. */
    rte_intr_callback_unregister_sync(gate->handle, on_event, gate);
    rte_intr_instance_free(gate->handle);
    close(gate->fd);
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}
