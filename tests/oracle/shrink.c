/* SPDX-License-Identifier: BSD-3-Clause */
/* A failing case made smaller: fewer operations, fewer faults, fewer nodes, as long as it fails in the same way. */
#include "oracle.h"

#include <stdlib.h>

/* Runs at most; a case takes some milliseconds. */
#define RUNS_MAX 1500u

static void *checked(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

void fault_add(struct fault_list *list, struct fault fault)
{
    if (list->count == list->room) {
        list->room = list->room == 0 ? 256 : 2 * list->room;
        list->at = checked(realloc(list->at, list->room * sizeof(*list->at)));
    }
    list->at[list->count++] = fault;
}

static bool still_fails(const struct plan *plan, enum failure failure, struct shrunk *shrunk)
{
    struct tally tally = {0};
    char text[8];

    if (plan->happened != NULL) {
        plan->happened->count = 0;
    }
    shrunk->runs++;
    return world_run(plan, &tally, text, sizeof(text)) == failure;
}

/* Leaves out `keep` entries in ever smaller pieces (Zeller and Hildebrandt's ddmin, without its complements). */
static void shrink_operations(struct plan *plan, enum failure failure, struct shrunk *shrunk)
{
    uint32_t *kept = checked(malloc((plan->operations + 1) * sizeof(*kept)));

    for (uint32_t chunk = plan->operations / 2; chunk != 0; chunk /= 2) {
        uint32_t count = 0;

        for (uint32_t i = 0; i < plan->operations; i++) {
            if (shrunk->keep[i]) {
                kept[count++] = i;
            }
        }
        if (chunk >= count) {
            continue;
        }
        for (uint32_t from = 0; from < count && shrunk->runs < RUNS_MAX; from += chunk) {
            uint32_t to = from + chunk < count ? from + chunk : count;

            for (uint32_t i = from; i < to; i++) {
                shrunk->keep[kept[i]] = false;
            }
            if (!still_fails(plan, failure, shrunk)) {
                for (uint32_t i = from; i < to; i++) {
                    shrunk->keep[kept[i]] = true;
                }
            }
        }
    }
    free(kept);
}

static void shrink_faults(struct plan *plan, enum failure failure, struct shrunk *shrunk)
{
    struct fault_list *list = &shrunk->faults;

    for (uint32_t chunk = list->count; chunk != 0; chunk /= 2) {
        for (uint32_t from = 0; from < list->count && shrunk->runs < RUNS_MAX;) {
            uint32_t bytes = chunk < list->count - from ? chunk : list->count - from;
            struct fault *out = checked(malloc(bytes * sizeof(*out)));

            memcpy(out, list->at + from, bytes * sizeof(*out));
            memmove(list->at + from, list->at + from + bytes, (list->count - from - bytes) * sizeof(*out));
            list->count -= bytes;
            if (!still_fails(plan, failure, shrunk)) {
                memmove(list->at + from + bytes, list->at + from, (list->count - from) * sizeof(*out));
                memcpy(list->at + from, out, bytes * sizeof(*out));
                list->count += bytes;
                from += bytes;
            }
            free(out);
        }
    }
}

static void shrink_sites(struct plan *plan, enum failure failure, struct shrunk *shrunk)
{
    for (uint32_t sites = 2; sites < SITES_MAX; sites++) {
        plan->sites = sites;
        if (still_fails(plan, failure, shrunk)) {
            return;
        }
    }
    plan->sites = 0;
}

void shrink(const struct plan *failing, enum failure failure, struct shrunk *shrunk)
{
    struct plan plan = *failing;

    memset(shrunk, 0, sizeof(*shrunk));
    shrunk->keep = checked(calloc(plan.operations + 1, sizeof(*shrunk->keep)));
    for (uint32_t i = 0; i < plan.operations; i++) {
        shrunk->keep[i] = failing->keep == NULL || failing->keep[i];
    }
    plan.pcap = NULL;
    plan.tell = false;
    plan.keep = shrunk->keep;
    plan.happened = NULL;
    shrink_operations(&plan, failure, shrunk);
    shrink_sites(&plan, failure, shrunk);
    /* Which faults there were; then none but these. */
    plan.happened = &shrunk->faults;
    shrunk->by_chance = !still_fails(&plan, failure, shrunk);
    plan.happened = NULL;
    if (!shrunk->by_chance) {
        plan.only = &shrunk->faults;
        shrink_faults(&plan, failure, shrunk);
        shrink_operations(&plan, failure, shrunk);
        shrink_sites(&plan, failure, shrunk);
    }
    shrunk->sites = plan.sites;
    for (uint32_t i = 0; i < plan.operations; i++) {
        shrunk->kept += shrunk->keep[i];
    }
}
