/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock that is handed on in the order of arrival, so that neither a busy thread nor a busy reader starves the other.
 */
#ifndef NDSIM_TURN_H
#define NDSIM_TURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ndsim_turn {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t next;       /* ticket of the next thread to come */
    uint64_t now;        /* ticket of the thread whose turn it is */
    atomic_uint waiting; /* threads that have come and whose turn it is not yet; a hint for the owner */
};

static inline void ndsim_turn_init(struct ndsim_turn *turn)
{
    pthread_mutex_init(&turn->mutex, NULL);
    pthread_cond_init(&turn->changed, NULL);
    turn->next = 0;
    turn->now = 0;
    atomic_init(&turn->waiting, 0);
}

static inline void ndsim_turn_destroy(struct ndsim_turn *turn)
{
    pthread_cond_destroy(&turn->changed);
    pthread_mutex_destroy(&turn->mutex);
}

static inline void ndsim_turn_take(struct ndsim_turn *turn)
{
    uint64_t ticket;

    pthread_mutex_lock(&turn->mutex);
    ticket = turn->next++;
    if (ticket != turn->now) {
        atomic_fetch_add_explicit(&turn->waiting, 1, memory_order_relaxed);
        while (ticket != turn->now) {
            pthread_cond_wait(&turn->changed, &turn->mutex);
        }
        atomic_fetch_sub_explicit(&turn->waiting, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&turn->mutex);
}

static inline void ndsim_turn_pass(struct ndsim_turn *turn)
{
    bool others;

    pthread_mutex_lock(&turn->mutex);
    turn->now++;
    others = turn->now != turn->next;
    pthread_mutex_unlock(&turn->mutex);
    if (others) {
        pthread_cond_broadcast(&turn->changed);
    }
}

/* For the owner: lets those who have come by now have their turn. */
static inline void ndsim_turn_offer(struct ndsim_turn *turn)
{
    if (atomic_load_explicit(&turn->waiting, memory_order_relaxed) != 0) {
        ndsim_turn_pass(turn);
        ndsim_turn_take(turn);
    }
}

#endif
