/* SPDX-License-Identifier: BSD-3-Clause */
/* An output port with a queue for each priority. */
#include "vt/queue.h"

#include <stdlib.h>
#include <string.h>

void ndsim_queues_init(struct ndsim_queues *queues, uint64_t bits_per_s)
{
    memset(queues, 0, sizeof(*queues));
    queues->line.bits_per_s = bits_per_s;
}

void ndsim_queues_fini(struct ndsim_queues *queues)
{
    for (unsigned i = 0; i < NDSIM_PRIORITIES; i++) {
        free(queues->fifos[i].entries);
        queues->fifos[i] = (struct ndsim_fifo){0};
    }
    queues->bytes = 0;
}

static bool grow(struct ndsim_fifo *fifo)
{
    uint32_t room = fifo->room == 0 ? 16 : 2 * fifo->room;
    struct ndsim_queued *entries = malloc(room * sizeof(*entries));

    if (entries == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < fifo->count; i++) {
        entries[i] = fifo->entries[(fifo->first + i) % fifo->room];
    }
    free(fifo->entries);
    fifo->entries = entries;
    fifo->room = room;
    fifo->first = 0;
    return true;
}

bool ndsim_queues_put(struct ndsim_queues *queues, unsigned priority, uint64_t frame, uint32_t bytes, uint64_t ready_ns)
{
    struct ndsim_fifo *fifo = &queues->fifos[priority % NDSIM_PRIORITIES];

    if (fifo->count == fifo->room && !grow(fifo)) {
        return false;
    }
    fifo->entries[(fifo->first + fifo->count) % fifo->room] = (struct ndsim_queued){frame, ready_ns, bytes};
    fifo->count++;
    queues->bytes += bytes;
    return true;
}

/* A line that has half a nanosecond left to send is not free yet. */
static uint64_t free_ns(const struct ndsim_line *line)
{
    return line->free_ns + (line->rest != 0);
}

uint64_t ndsim_queues_due_ns(const struct ndsim_queues *queues)
{
    uint64_t due = UINT64_MAX;

    for (unsigned i = 0; i < NDSIM_PRIORITIES; i++) {
        const struct ndsim_fifo *fifo = &queues->fifos[i];

        if (fifo->count != 0 && fifo->entries[fifo->first].ready_ns < due) {
            due = fifo->entries[fifo->first].ready_ns;
        }
    }
    return due < free_ns(&queues->line) ? free_ns(&queues->line) : due;
}

bool ndsim_queues_take(struct ndsim_queues *queues, uint64_t now_ns, uint64_t *frame, uint64_t *leaves_ns)
{
    if (free_ns(&queues->line) > now_ns) {
        return false;
    }
    for (unsigned i = NDSIM_PRIORITIES; i-- > 0;) {
        struct ndsim_fifo *fifo = &queues->fifos[i];

        if (fifo->count != 0 && fifo->entries[fifo->first].ready_ns <= now_ns) {
            struct ndsim_queued entry = fifo->entries[fifo->first];

            fifo->first = (fifo->first + 1) % fifo->room;
            fifo->count--;
            queues->bytes -= entry.bytes;
            *frame = entry.frame;
            /* Behind another frame it starts when that one ends, to the fraction of a nanosecond. */
            *leaves_ns = ndsim_line_send(&queues->line, entry.bytes,
                                         free_ns(&queues->line) == now_ns ? queues->line.free_ns : now_ns);
            return true;
        }
    }
    return false;
}

uint32_t ndsim_queues_count(const struct ndsim_queues *queues)
{
    uint32_t count = 0;

    for (unsigned i = 0; i < NDSIM_PRIORITIES; i++) {
        count += queues->fifos[i].count;
    }
    return count;
}

uint64_t ndsim_queues_backlog(const struct ndsim_queues *queues, uint64_t now_ns)
{
    return queues->bytes + ndsim_line_backlog(&queues->line, now_ns);
}
