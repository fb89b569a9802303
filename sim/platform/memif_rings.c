/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two rings of a memif link. Whatever the peer stores is read once, checked, and used from the copy: an index that
 * moves further than it may, or a descriptor that leaves its region, breaks the link.
 */
#include "memif_link.h"

#include <string.h>

/* Buffers go back to the peer at least this often while a long batch is delivered. */
#define RECEIVE_PUBLISH 16

#define LOOKS_BEFORE_SLEEP 64

struct descriptor {
    uint16_t flags;
    uint16_t region;
    uint32_t length;
    uint32_t offset;
};

static struct descriptor load(const struct memif_queue *queue, uint16_t index)
{
    struct memif_descriptor *shared = &queue->ring->descriptor[index & (queue->slots - 1)];
    uint64_t low = atomic_load_explicit(&shared->low, memory_order_relaxed);
    uint64_t high = atomic_load_explicit(&shared->high, memory_order_relaxed);

    return (struct descriptor){.flags = (uint16_t)low,
                               .region = (uint16_t)(low >> 16),
                               .length = (uint32_t)(low >> 32),
                               .offset = (uint32_t)high};
}

static void store(const struct memif_queue *queue, uint16_t index, uint16_t flags, uint16_t region, uint32_t length,
                  uint32_t offset)
{
    struct memif_descriptor *shared = &queue->ring->descriptor[index & (queue->slots - 1)];

    atomic_store_explicit(&shared->low, (uint64_t)length << 32 | (uint32_t)region << 16 | flags, memory_order_relaxed);
    atomic_store_explicit(&shared->high, offset, memory_order_relaxed);
}

/* Of a client, whose buffers stay where they are whatever a descriptor says. */
static uint32_t buffer_offset(const struct memif_link *link, const struct memif_queue *queue, uint16_t index)
{
    uint32_t slot = (uint32_t)(index & (queue->slots - 1)) + (queue == &link->receive ? queue->slots : 0u);

    return (uint32_t)(link->buffers + (uint64_t)slot * link->stride);
}

static bool lies_within(const struct memif_link *link, uint16_t region, uint32_t offset, uint32_t bytes)
{
    return region < link->region_count && (uint64_t)offset + bytes <= link->regions[region].bytes;
}

/*
 * The peer's index limits what is ours: it may not go back, nor beyond what we have published. Acquire: what the peer
 * stored before the index, buffers and descriptors, is seen.
 */
static void refresh(struct memif_link *link, struct memif_queue *queue)
{
    bool transmit = queue == &link->transmit;
    uint16_t first = queue->published;
    uint16_t peers = link->client ? atomic_load_explicit(&queue->ring->tail, memory_order_acquire)
                                  : atomic_load_explicit(&queue->ring->head, memory_order_acquire);
    /* Client to server: the server has emptied up to its tail, all other slots are the client's to fill. */
    uint16_t limit = link->client && transmit ? (uint16_t)(peers + queue->slots) : peers;

    if ((uint16_t)(limit - first) > queue->slots || (uint16_t)(limit - first) < (uint16_t)(queue->limit - first)) {
        link->broken = "a ring's index is impossible";
        return;
    }
    queue->limit = limit;
}

/* Receiving: what has been taken goes back to the peer. */
static void publish_received(struct memif_link *link)
{
    struct memif_queue *queue = &link->receive;

    if (link->client) {
        uint16_t index = (uint16_t)(queue->published + queue->slots);

        for (; queue->published != queue->next; queue->published++, index++) {
            store(queue, index, 0, 0, link->buffer_bytes, buffer_offset(link, queue, index));
        }
        /* Release: the peer fills a buffer only after we have looked at it for the last time. */
        atomic_store_explicit(&queue->ring->head, index, memory_order_release);
    } else {
        queue->published = queue->next;
        atomic_store_explicit(&queue->ring->tail, queue->next, memory_order_release);
    }
}

memif_reason ndsim_memif_link_start(struct memif_link *link)
{
    struct memif_queue *queues[2] = {&link->transmit, &link->receive};
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct memif_queue *queue = queues[i];

        if (*(volatile uint32_t *)&queue->ring->cookie != MEMIF_COOKIE) {
            return "a ring has no cookie";
        }
        queue->next = queue->published = 0;
        queue->limit = link->client && queue == &link->transmit ? queue->slots : 0;
    }
    link->broken = NULL;
    link->piece_count = 0;
    link->pending_frames = 0;
    link->pending_bytes = 0;
    if (link->client) {
        /* Buffers for the server: as if one round had been received already. */
        for (i = 0; i < link->receive.slots; i++) {
            store(&link->receive, (uint16_t)i, 0, 0, link->buffer_bytes,
                  buffer_offset(link, &link->receive, (uint16_t)i));
        }
        atomic_store_explicit(&link->receive.ring->head, link->receive.slots, memory_order_release);
    }
    ndsim_memif_link_mask(link, true);
    return NULL;
}

/* Transmission. */

static bool take_piece(struct memif_link *link, uint16_t index, size_t *wanted)
{
    struct memif_piece *piece = &link->pieces[link->piece_count];

    if (link->client) {
        *piece = (struct memif_piece){
            .bytes = link->buffer_bytes, .region = 0, .offset = buffer_offset(link, &link->transmit, index)};
    } else {
        struct descriptor found = load(&link->transmit, index);

        *piece = (struct memif_piece){.bytes = found.length, .region = found.region, .offset = found.offset};
        if (found.length == 0 || !lies_within(link, found.region, found.offset, found.length)) {
            link->broken = "an empty buffer lies outside its region";
            return false;
        }
    }
    *wanted -= *wanted < piece->bytes ? *wanted : piece->bytes;
    link->piece_count++;
    return true;
}

enum memif_room ndsim_memif_link_begin(struct memif_link *link, size_t bytes, uint8_t **frame)
{
    struct memif_queue *queue = &link->transmit;
    size_t wanted = bytes;

    link->piece_count = 0;
    while (wanted != 0 && link->piece_count < MEMIF_PIECES_MAX && link->piece_count < queue->slots) {
        uint16_t index = (uint16_t)(queue->next + link->piece_count);

        if (index == queue->limit) {
            refresh(link, queue);
            if (link->broken != NULL) {
                return MEMIF_ROOM_BROKEN;
            }
            if (index == queue->limit) {
                link->needed = (uint16_t)(link->piece_count + 1);
                return MEMIF_ROOM_FULL;
            }
        }
        if (!take_piece(link, index, &wanted)) {
            return MEMIF_ROOM_BROKEN;
        }
    }
    if (wanted != 0) {
        return MEMIF_ROOM_NEVER;
    }
    link->direct = link->shared_frames && link->piece_count == 1 && link->regions[link->pieces[0].region].base != NULL;
    *frame =
        link->direct ? link->regions[link->pieces[0].region].base + link->pieces[0].offset : link->transmit_private;
    return MEMIF_ROOM_OK;
}

/* Copies the frame into the peer's buffers; returns how many it took. */
static unsigned scatter(struct memif_link *link, size_t bytes)
{
    size_t done = 0;
    unsigned used;

    for (used = 0; done < bytes && used < link->piece_count; used++) {
        struct memif_piece *piece = &link->pieces[used];
        const struct memif_region *region = &link->regions[piece->region];
        size_t part = bytes - done < piece->bytes ? bytes - done : piece->bytes;

        if (region->base != NULL) {
            memcpy(region->base + piece->offset, link->transmit_private + done, part);
        } else if (!ndsim_memif_memory_write(region, piece->offset, link->transmit_private + done, part)) {
            link->broken = "an empty buffer cannot be written";
            return 0;
        }
        piece->bytes = (uint32_t)part;
        done += part;
    }
    return used;
}

void ndsim_memif_link_end(struct memif_link *link, size_t bytes)
{
    struct memif_queue *queue = &link->transmit;
    unsigned used = 1;
    unsigned i;

    if (bytes == 0) {
        return;
    }
    if (link->direct) {
        link->pieces[0].bytes = (uint32_t)bytes;
    } else {
        used = scatter(link, bytes);
    }
    for (i = 0; i < used; i++, queue->next++) {
        store(queue, queue->next, i + 1 < used ? MEMIF_CHAINED : 0, link->pieces[i].region, link->pieces[i].bytes,
              link->pieces[i].offset);
    }
    if (used != 0) {
        link->pending_frames++;
        link->pending_bytes += bytes;
    }
}

bool ndsim_memif_link_flush(struct memif_link *link)
{
    struct memif_queue *queue = &link->transmit;

    if (queue->next == queue->published) {
        return false;
    }
    queue->published = queue->next;
    /* Release: whoever sees the index sees the frames. */
    atomic_store_explicit(link->client ? &queue->ring->head : &queue->ring->tail, queue->next, memory_order_release);
    link->statistics->transmit_frames += link->pending_frames;
    link->statistics->transmit_bytes += link->pending_bytes;
    link->pending_frames = 0;
    link->pending_bytes = 0;
    /*
     * Either we see that the peer wants to be woken, or it, having said so, sees the index when it looks once more: both
     * store, fence, and load what the other stored.
     */
    atomic_thread_fence(memory_order_seq_cst);
    return (atomic_load_explicit(&queue->ring->flags, memory_order_relaxed) & MEMIF_RING_MASKED) == 0;
}

bool ndsim_memif_link_has_room(struct memif_link *link)
{
    struct memif_queue *queue = &link->transmit;

    if (link->broken == NULL) {
        refresh(link, queue);
    }
    return link->broken != NULL || (uint16_t)(queue->limit - queue->next) >= link->needed;
}

/* Reception. */

/* The descriptor at next, checked; false: the link is broken. */
static bool take_descriptor(struct memif_link *link, struct descriptor *taken)
{
    struct memif_queue *queue = &link->receive;

    *taken = load(queue, queue->next);
    if (link->client) {
        taken->region = 0;
        taken->offset = buffer_offset(link, queue, queue->next);
        if (taken->length > link->buffer_bytes) {
            link->broken = "a frame is longer than its buffer";
            return false;
        }
    } else {
        if (!lies_within(link, taken->region, taken->offset, taken->length)) {
            link->broken = "a frame lies outside its region";
            return false;
        }
        if ((taken->flags & MEMIF_CHAINED) != 0) {
            /* DPDK's sender leaves the flag in place when it uses the descriptor for the next frame. */
            store(queue, queue->next, 0, taken->region, taken->length, taken->offset);
        }
    }
    queue->next++;
    return true;
}

static bool copy_part(struct memif_link *link, const struct descriptor *part, size_t at)
{
    const struct memif_region *region = &link->regions[part->region];

    if (region->base != NULL) {
        memcpy(link->receive_private + at, region->base + part->offset, part->length);
    } else if (!ndsim_memif_memory_read(region, part->offset, link->receive_private + at, part->length)) {
        link->broken = "a frame cannot be read";
        return false;
    }
    return true;
}

/* The next frame: NULL with *bytes 0 if it is dropped, or the link is broken. */
static const uint8_t *take_frame(struct memif_link *link, size_t *bytes)
{
    struct memif_queue *queue = &link->receive;
    const struct memif_region *region;
    struct descriptor part;
    bool too_long = false;
    unsigned parts = 0;
    size_t total = 0;

    *bytes = 0;
    if (!take_descriptor(link, &part)) {
        return NULL;
    }
    region = &link->regions[part.region];
    if ((part.flags & MEMIF_CHAINED) == 0 && link->shared_frames && region->base != NULL &&
        part.length <= link->frame_bytes) {
        *bytes = part.length;
        return part.length != 0 ? region->base + part.offset : NULL;
    }
    for (;;) {
        parts++;
        too_long = too_long || part.length > link->frame_bytes - total;
        if (!too_long && parts <= MEMIF_PIECES_MAX) {
            if (!copy_part(link, &part, total)) {
                return NULL;
            }
            total += part.length;
        }
        if ((part.flags & MEMIF_CHAINED) == 0) {
            break;
        }
        if (queue->next == queue->limit) {
            refresh(link, queue);
        }
        /* Frames are published whole, so the rest of this one is there. */
        if (link->broken == NULL && queue->next == queue->limit) {
            link->broken = "a chain of descriptors has no end";
        }
        if (link->broken != NULL || !take_descriptor(link, &part)) {
            return NULL;
        }
    }
    if (too_long || parts > MEMIF_PIECES_MAX) {
        link->statistics->receive_too_long += too_long;
        link->statistics->receive_scattered += !too_long;
        return NULL;
    }
    link->statistics->receive_empty += total == 0;
    *bytes = total;
    return total != 0 ? link->receive_private : NULL;
}

/*
 * The peer may wait for room, for which the protocol has no event: if what was left of the ring, before we gave buffers
 * back, was too little for the longest frame, and it sleeps. Otherwise it has seen the room, or will when it looks once
 * more before it sleeps: the fence is that of ndsim_memif_link_flush.
 */
static bool peer_may_wait(struct memif_link *link, uint16_t published_before)
{
    struct memif_queue *queue = &link->receive;
    uint16_t reserve = (uint16_t)(queue->slots < 16 ? queue->slots / 2 : 8);
    uint16_t filled;

    atomic_thread_fence(memory_order_seq_cst);
    if ((atomic_load_explicit(&link->transmit.ring->flags, memory_order_relaxed) & MEMIF_RING_MASKED) != 0) {
        return false;
    }
    filled = atomic_load_explicit(link->client ? &queue->ring->tail : &queue->ring->head, memory_order_relaxed);
    return (uint16_t)(filled - published_before) >= (uint16_t)(queue->slots - reserve);
}

unsigned ndsim_memif_link_receive(struct memif_link *link, unsigned max, ndsim_memif_deliver deliver, void *opaque,
                                  bool *kick)
{
    struct memif_queue *queue = &link->receive;
    uint16_t published = queue->published;
    unsigned taken;

    *kick = false;
    if (queue->next == queue->limit) {
        refresh(link, queue);
    }
    for (taken = 0; taken < max && link->broken == NULL && queue->next != queue->limit; taken++) {
        size_t bytes;
        const uint8_t *frame = take_frame(link, &bytes);

        if (frame != NULL) {
            link->statistics->receive_frames++;
            link->statistics->receive_bytes += bytes;
            deliver(opaque, frame, bytes);
        }
        if (taken % RECEIVE_PUBLISH == RECEIVE_PUBLISH - 1 && link->broken == NULL) {
            publish_received(link);
        }
    }
    if (taken != 0 && link->broken == NULL) {
        publish_received(link);
        *kick = peer_may_wait(link, published);
    }
    return taken;
}

void ndsim_memif_link_mask(struct memif_link *link, bool masked)
{
    atomic_store_explicit(&link->receive.ring->flags, masked ? MEMIF_RING_MASKED : 0, memory_order_relaxed);
}

bool ndsim_memif_link_waits(struct memif_link *link)
{
    unsigned looks;

    /*
     * One look behind the fence is enough for a peer that does as ndsim_memif_link_flush. DPDK's has no fence: its index
     * may still be in its processor's store buffer when it finds the events masked. That lasts well below a
     * microsecond, which is as long as this looks.
     */
    for (looks = 0; looks < LOOKS_BEFORE_SLEEP && link->broken == NULL && link->receive.next == link->receive.limit;
         looks++) {
        atomic_thread_fence(memory_order_seq_cst);
        refresh(link, &link->receive);
    }
    return link->broken != NULL || link->receive.next != link->receive.limit;
}

void ndsim_memif_link_drop(struct memif_link *link)
{
    struct memif_queue *queue = &link->receive;
    struct descriptor part;

    link->statistics->transmit_down += link->pending_frames;
    link->pending_frames = 0;
    link->pending_bytes = 0;
    link->transmit.next = link->transmit.published;
    refresh(link, queue);
    while (link->broken == NULL && queue->next != queue->limit) {
        if (take_descriptor(link, &part) && (part.flags & MEMIF_CHAINED) == 0) {
            link->statistics->receive_reset++;
        }
    }
    if (link->broken == NULL) {
        publish_received(link);
    }
}
