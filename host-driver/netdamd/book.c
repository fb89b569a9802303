/* SPDX-License-Identifier: BSD-3-Clause */
/* Ownership: every command of a client is checked against the book, carried out, and entered. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

/* More than any device has. */
#define TABLE_MAX (UINT32_C(1) << 20)

#define RINGS 3 /* submission, completion, receive */

struct ndbroker_piece {
    uint64_t offset;
    uint64_t bytes;
};

/* An entry of one of the device's tables. `owner` is 0 if nobody has it. */
struct entry {
    uint64_t owner;
    struct ndbroker_piece memory[RINGS]; /* that the device uses on its behalf */
};

struct table {
    struct entry *entries;
    uint32_t count;
    enum netdam_admin destroy;
};

struct ndbroker_book {
    struct netdam_device *device;
    struct ndbroker_limits limits;
    struct table queues;
    struct table regions;
    struct table peers;
    uint64_t vector_owner[NETDAM_QUEUE_PAIRS_MAX];
    uint32_t vectors;
};

static int table_open(struct table *table, struct netdam_device *device, uint32_t offset, enum netdam_admin destroy)
{
    table->count = (uint32_t)ndlib_read(device, offset, 4);
    table->destroy = destroy;
    if (table->count == 0 || table->count > TABLE_MAX) {
        return -EIO;
    }
    table->entries = calloc(table->count, sizeof(*table->entries));
    return table->entries ? 0 : -ENOMEM;
}

int ndbroker_book_open(struct netdam_device *device, const struct ndbroker_limits *limits,
                       struct ndbroker_book **book_out)
{
    struct ndbroker_book *book = calloc(1, sizeof(*book));
    int rc;

    if (!book) {
        return -ENOMEM;
    }
    book->device = device;
    book->limits = *limits;
    book->vectors = device->vectors < NETDAM_QUEUE_PAIRS_MAX ? device->vectors : NETDAM_QUEUE_PAIRS_MAX;
    rc = table_open(&book->queues, device, NETDAM_REG_QUEUE_PAIRS, NETDAM_ADMIN_QUEUE_DESTROY);
    if (rc == 0) {
        rc = table_open(&book->regions, device, NETDAM_REG_REGIONS, NETDAM_ADMIN_REGION_DESTROY);
    }
    if (rc == 0) {
        rc = table_open(&book->peers, device, NETDAM_REG_PEERS, NETDAM_ADMIN_PEER_CLOSE);
    }
    if (rc != 0) {
        ndbroker_book_close(book);
        return rc;
    }
    *book_out = book;
    return 0;
}

void ndbroker_book_close(struct ndbroker_book *book)
{
    if (book) {
        free(book->queues.entries);
        free(book->regions.entries);
        free(book->peers.entries);
        free(book);
    }
}

/* As ndlib_admin(), but with the device's own answer. */
static uint32_t command_device(struct ndbroker_book *book, uint32_t command, const uint64_t *arguments, unsigned count,
                               uint64_t results[NETDAM_ADMIN_RESULTS])
{
    struct netdam_device *device = book->device;
    uint32_t status;

    for (unsigned i = 0; i < count; i++) {
        ndlib_write(device, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, arguments[i]);
    }
    ndlib_write(device, NETDAM_REG_ADMIN_COMMAND, 4, command);
    status = (uint32_t)ndlib_read(device, NETDAM_REG_ADMIN_STATUS, 4);
    for (unsigned i = 0; status == NETDAM_ADMIN_STATUS_OK && results && i < NETDAM_ADMIN_RESULTS; i++) {
        results[i] = ndlib_read(device, NETDAM_REG_ADMIN_RESULT0 + 8 * i, 8);
    }
    return status;
}

static bool owns(const struct table *table, const struct ndbroker_owner *owner, uint64_t index)
{
    return index < table->count && table->entries[index].owner == owner->id;
}

/* All of it within one piece of the client's; an empty range is nowhere. */
static bool owns_memory(const struct ndbroker_owner *owner, uint64_t offset, uint64_t bytes)
{
    for (uint32_t i = 0; bytes > 0 && i < owner->pieces_count; i++) {
        const struct ndbroker_piece *piece = &owner->pieces[i];

        if (offset >= piece->offset && bytes <= piece->bytes && offset - piece->offset <= piece->bytes - bytes) {
            return true;
        }
    }
    return false;
}

static bool is_used(const struct table *table, const struct ndbroker_owner *owner, const struct ndbroker_piece *piece)
{
    for (uint32_t i = 0; i < table->count; i++) {
        for (unsigned k = 0; table->entries[i].owner == owner->id && k < RINGS; k++) {
            const struct ndbroker_piece *used = &table->entries[i].memory[k];

            if (used->bytes > 0 && used->offset < piece->offset + piece->bytes &&
                piece->offset < used->offset + used->bytes) {
                return true;
            }
        }
    }
    return false;
}

/*
 * Executes a command that makes an entry, and enters it. A device that answers with an index that it does not have, or
 * that somebody owns, is not to be trusted with the entry.
 */
static uint32_t make(struct ndbroker_book *book, struct table *table, struct ndbroker_owner *owner, uint32_t *held,
                     uint32_t limit, uint32_t command, const uint64_t *arguments, uint64_t *results,
                     const struct ndbroker_piece memory[RINGS])
{
    uint32_t status;

    if (*held >= limit) {
        return NETDAM_ADMIN_STATUS_NO_SPACE;
    }
    status = command_device(book, command, arguments, NETDAM_ADMIN_ARGS, results);
    if (status != NETDAM_ADMIN_STATUS_OK) {
        return status;
    }
    if (results[0] >= table->count || table->entries[results[0]].owner != 0) {
        ndlib_log(&book->device->log, NETDAM_LOG_ERROR, "%s: made entry %llu, which cannot be",
                  book->device->backend.name, (unsigned long long)results[0]);
        memset(results, 0, NETDAM_ADMIN_RESULTS * sizeof(*results));
        return NETDAM_ADMIN_STATUS_NO_SPACE;
    }
    table->entries[results[0]].owner = owner->id;
    memcpy(table->entries[results[0]].memory, memory, sizeof(table->entries[results[0]].memory));
    (*held)++;
    return status;
}

static uint32_t unmake(struct ndbroker_book *book, struct table *table, const struct ndbroker_owner *owner,
                       uint32_t *held, uint64_t index)
{
    uint32_t status = NETDAM_ADMIN_STATUS_NO_SUCH;

    if (owns(table, owner, index)) {
        status = command_device(book, table->destroy, &index, 1, NULL);
    }
    if (status == NETDAM_ADMIN_STATUS_OK) {
        table->entries[index] = (struct entry){.owner = 0};
        (*held)--;
    }
    return status;
}

/* Enters a ring of 2^log2 entries; false if it is not within the client's memory. */
static bool place_ring(const struct ndbroker_owner *owner, uint64_t base, uint64_t log2, size_t entry_bytes,
                       struct ndbroker_piece *ring)
{
    if (log2 > NETDAM_RING_LOG2_MAX) {
        return false;
    }
    *ring = (struct ndbroker_piece){.offset = base, .bytes = netdam_ring_bytes((unsigned)log2, entry_bytes)};
    return owns_memory(owner, ring->offset, ring->bytes);
}

static uint32_t queue_create(struct ndbroker_book *book, struct ndbroker_owner *owner, const uint64_t *arguments,
                             uint64_t *results)
{
    uint64_t own[NETDAM_ADMIN_ARGS];
    uint64_t vector = arguments[6] >> 16 & NETDAM_VECTOR_NONE;
    uint64_t tenant = arguments[6] >> 32;
    struct ndbroker_piece rings[RINGS] = {{.bytes = 0}};

    if (!place_ring(owner, arguments[0], arguments[1], sizeof(struct netdam_descriptor), &rings[0]) ||
        !place_ring(owner, arguments[2], arguments[3], sizeof(struct netdam_completion), &rings[1]) ||
        (arguments[5] != 0 &&
         !place_ring(owner, arguments[4], arguments[5], sizeof(struct netdam_descriptor), &rings[2]))) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    /* Such a pair sends in the machine's name, or sees what is not meant for the client. */
    if (((arguments[6] & 0xffff) != NETDAM_QUEUE_NETDAM || tenant != 0) && !owner->is_privileged) {
        return NETDAM_ADMIN_STATUS_UNSUPPORTED;
    }
    memcpy(own, arguments, sizeof(own));
    if (vector != NETDAM_VECTOR_NONE) {
        if (vector >= NETDAM_QUEUE_PAIRS_MAX || owner->vector_of[vector] == 0) {
            return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
        }
        own[6] = (arguments[6] & 0xffff) | (uint64_t)(owner->vector_of[vector] - 1) << 16 | tenant << 32;
    }
    return make(book, &book->queues, owner, &owner->queue_pairs, book->limits.queue_pairs, NETDAM_ADMIN_QUEUE_CREATE,
                own, results, rings);
}

static uint32_t region_create(struct ndbroker_book *book, struct ndbroker_owner *owner, const uint64_t *arguments,
                              uint64_t *results)
{
    const struct ndbroker_piece memory[RINGS] = {{.offset = arguments[0], .bytes = arguments[1]}};

    /* Who may speak in a tenant's name is for whoever set its key to say. */
    if (arguments[4] != 0 && !owner->is_privileged) {
        return NETDAM_ADMIN_STATUS_UNSUPPORTED;
    }
    /* The sixth argument is a queue pair + 1, or 0. */
    if (!owns_memory(owner, arguments[0], arguments[1]) ||
        (arguments[5] != 0 && !owns(&book->queues, owner, arguments[5] - 1))) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    return make(book, &book->regions, owner, &owner->regions, book->limits.regions, NETDAM_ADMIN_REGION_CREATE,
                arguments, results, memory);
}

uint32_t ndbroker_admin(struct ndbroker_book *book, struct ndbroker_owner *owner, uint64_t command,
                        const uint64_t arguments[NETDAM_ADMIN_ARGS], uint64_t results[NETDAM_ADMIN_RESULTS])
{
    static const struct ndbroker_piece nothing[RINGS];

    memset(results, 0, NETDAM_ADMIN_RESULTS * sizeof(*results));
    switch (command) {
    case NETDAM_ADMIN_REGION_CREATE:
        return region_create(book, owner, arguments, results);
    case NETDAM_ADMIN_QUEUE_CREATE:
        return queue_create(book, owner, arguments, results);
    case NETDAM_ADMIN_PEER_OPEN:
        if (arguments[2] >> 32 != 0 && !owner->is_privileged) {
            return NETDAM_ADMIN_STATUS_UNSUPPORTED;
        }
        return make(book, &book->peers, owner, &owner->peers, book->limits.peers, NETDAM_ADMIN_PEER_OPEN, arguments,
                    results, nothing);
    case NETDAM_ADMIN_REGION_DESTROY:
        return unmake(book, &book->regions, owner, &owner->regions, arguments[0]);
    case NETDAM_ADMIN_QUEUE_DESTROY:
        return unmake(book, &book->queues, owner, &owner->queue_pairs, arguments[0]);
    case NETDAM_ADMIN_PEER_CLOSE:
        return unmake(book, &book->peers, owner, &owner->peers, arguments[0]);
    case NETDAM_ADMIN_QUEUE_QUERY:
        if (!owns(&book->queues, owner, arguments[0])) {
            return NETDAM_ADMIN_STATUS_NO_SUCH;
        }
        break;
    case NETDAM_ADMIN_OPCODE_QUERY:
        break;
    case NETDAM_ADMIN_NEIGHBOUR_SET:
    case NETDAM_ADMIN_TENANT_SET:
        if (!owner->is_privileged) {
            return NETDAM_ADMIN_STATUS_UNSUPPORTED;
        }
        break;
    case NETDAM_ADMIN_STEERING_SET:
        if (!owner->is_privileged) {
            return NETDAM_ADMIN_STATUS_UNSUPPORTED;
        }
        if (!owns(&book->queues, owner, arguments[0])) {
            return NETDAM_ADMIN_STATUS_NO_SUCH;
        }
        break;
    default:
        return NETDAM_ADMIN_STATUS_BAD_COMMAND;
    }
    return command_device(book, (uint32_t)command, arguments, NETDAM_ADMIN_ARGS, results);
}

int ndbroker_take(struct ndbroker_book *book, struct ndbroker_owner *owner, uint64_t bytes, uint64_t alignment,
                  uint64_t *offset)
{
    uint64_t rounded;
    int rc;

    if (bytes > book->limits.memory_bytes - owner->memory_bytes || owner->pieces_count == NDBROKER_PIECES_MAX) {
        return -ENOSPC;
    }
    rounded = (bytes + NDLIB_ALLOC_UNIT - 1) & ~(uint64_t)(NDLIB_ALLOC_UNIT - 1);
    if (rounded > book->limits.memory_bytes - owner->memory_bytes) {
        return -ENOSPC;
    }
    if (owner->pieces_count == owner->pieces_room) {
        uint32_t room = owner->pieces_room == 0 ? 16 : 2 * owner->pieces_room;
        struct ndbroker_piece *pieces = realloc(owner->pieces, room * sizeof(*pieces));

        if (!pieces) {
            return -ENOMEM;
        }
        owner->pieces = pieces;
        owner->pieces_room = room;
    }
    rc = ndlib_alloc_take(&book->device->alloc, bytes, alignment, offset);
    if (rc == 0) {
        owner->pieces[owner->pieces_count++] = (struct ndbroker_piece){.offset = *offset, .bytes = rounded};
        owner->memory_bytes += rounded;
    }
    return rc;
}

int ndbroker_give(struct ndbroker_book *book, struct ndbroker_owner *owner, uint64_t offset)
{
    for (uint32_t i = 0; i < owner->pieces_count; i++) {
        struct ndbroker_piece piece = owner->pieces[i];

        if (piece.offset != offset) {
            continue;
        }
        if (is_used(&book->queues, owner, &piece) || is_used(&book->regions, owner, &piece)) {
            return -EBUSY;
        }
        owner->pieces[i] = owner->pieces[--owner->pieces_count];
        owner->memory_bytes -= piece.bytes;
        return ndlib_alloc_give(&book->device->alloc, offset);
    }
    return -EINVAL;
}

int ndbroker_vector(struct ndbroker_book *book, struct ndbroker_owner *owner, uint64_t vector)
{
    const struct ndlib_backend *backend = &book->device->backend;
    int fd = -ENOSPC;

    if (vector >= NETDAM_QUEUE_PAIRS_MAX) {
        return -EINVAL;
    }
    if (owner->vector_of[vector] != 0) {
        return backend->ops->interrupt_fd(backend->opaque, owner->vector_of[vector] - 1u);
    }
    if (owner->vectors >= book->limits.queue_pairs) {
        return -ENOSPC;
    }
    for (uint32_t i = 0; i < book->vectors; i++) {
        if (book->vector_owner[i] != 0) {
            continue;
        }
        fd = backend->ops->interrupt_fd(backend->opaque, i);
        if (fd >= 0) {
            book->vector_owner[i] = owner->id;
            owner->vector_of[vector] = (uint8_t)(i + 1);
            owner->vectors++;
        }
        break;
    }
    return fd;
}

void ndbroker_doorbell(struct ndbroker_book *book, const struct ndbroker_owner *owner, uint64_t index)
{
    uint64_t offset = NETDAM_PAGE_DOORBELLS + index * book->device->doorbell_stride;

    if (owns(&book->queues, owner, index) && offset <= NETDAM_BAR0_BYTES - 4) {
        ndlib_write(book->device, (uint32_t)offset, 4, 1);
    }
}

uint64_t ndbroker_read(struct ndbroker_book *book, uint64_t offset, uint64_t bytes)
{
    bool is_open = offset < NETDAM_PAGE_IDENTITY + NETDAM_PAGE_BYTES ||
                   (offset >= NETDAM_PAGE_COUNTERS && offset < NETDAM_PAGE_COUNTERS + NETDAM_PAGE_BYTES);

    if (!is_open || (bytes != 4 && bytes != 8) || offset % bytes != 0) {
        return UINT64_MAX;
    }
    return ndlib_read(book->device, (uint32_t)offset, (unsigned)bytes);
}

/* Destroys what the client has in a table; false if the device keeps something. */
static bool release_table(struct ndbroker_book *book, struct table *table, struct ndbroker_owner *owner, uint32_t *held)
{
    bool good = true;

    for (uint32_t i = 0; *held > 0 && i < table->count; i++) {
        if (!owns(table, owner, i) || unmake(book, table, owner, held, i) == NETDAM_ADMIN_STATUS_OK) {
            continue;
        }
        /* The entry stays taken, by a client that is no more. */
        (*held)--;
        good = false;
    }
    return good;
}

bool ndbroker_release(struct ndbroker_book *book, struct ndbroker_owner *owner)
{
    bool good = release_table(book, &book->queues, owner, &owner->queue_pairs);

    good = release_table(book, &book->regions, owner, &owner->regions) && good;
    good = release_table(book, &book->peers, owner, &owner->peers) && good;
    for (uint32_t i = 0; good && i < owner->pieces_count; i++) {
        ndlib_alloc_give(&book->device->alloc, owner->pieces[i].offset);
    }
    free(owner->pieces);
    for (uint32_t i = 0; i < book->vectors; i++) {
        if (book->vector_owner[i] == owner->id && good) {
            book->vector_owner[i] = 0;
        }
    }
    *owner = (struct ndbroker_owner){.id = owner->id};
    return good;
}
