/* SPDX-License-Identifier: BSD-3-Clause */
/* Tenants: their keys, proving and checking whose a frame is, and the senders whose frames are not taken twice. */
#include "ndfw.h"

#include "checksum.h"

/* What is authenticated in front of the packet's own headers. */
#define DESTINATION_BYTES 24u
#define KEY_BYTES         16u

/* Through a volatile pointer, or the compiler would leave out the clearing of what is not read again. */
static void wipe(uint8_t *secret, size_t bytes)
{
    volatile uint8_t *at = secret;

    for (size_t i = 0; i < bytes; i++) {
        at[i] = 0;
    }
}

size_t ndfw_tenant_room_bytes(void)
{
    return DESTINATION_BYTES + NDFW_FRAME_MAX;
}

struct ndfw_tenant *ndfw_tenant_find(const struct ndfw *fw, uint64_t id)
{
    for (uint32_t i = 0; id != 0 && i < fw->config.tenants; i++) {
        if (fw->tenants[i].id == id) {
            return &fw->tenants[i];
        }
    }
    return NULL;
}

void ndfw_tenant_start(struct ndfw *fw)
{
    memset(fw->tenants, 0, fw->config.tenants * sizeof(fw->tenants[0]));
    memset(fw->senders, 0, fw->config.tenant_senders * sizeof(fw->senders[0]));
    for (uint32_t i = 0; i < fw->config.tenant_senders; i++) {
        fw->senders[i].slot = fw->config.tenants + i;
    }
    fw->sender_spare = fw->config.tenants + fw->config.tenant_senders;
    ndfw_map_clear(&fw->sender_by_salt);
}

/* Salts are random, unless who holds the key wants them not to be. */
static uint64_t salt_id(const uint8_t *salt)
{
    uint64_t id;

    memcpy(&id, salt, sizeof(id));
    return id;
}

static struct ndfw_sender *find_sender(const struct ndfw *fw, uint32_t tenant, const uint8_t *salt)
{
    const struct ndfw_map *map = &fw->sender_by_salt;

    for (uint32_t at = ndfw_map_first(map, salt_id(salt)); map->slots[at] != 0; at = (at + 1) & map->mask) {
        struct ndfw_sender *sender = &fw->senders[map->slots[at] - 1];

        if (sender->tenant == tenant && memcmp(sender->salt, salt, sizeof(sender->salt)) == 0) {
            return sender;
        }
    }
    return NULL;
}

/* The key of one sender's frames, into a slot of the platform's. */
static bool prepare_slot(struct ndfw *fw, uint32_t slot, const struct ndfw_tenant *tenant, const uint8_t *salt)
{
    const struct netdam_fw_crypto *crypto = fw->platform.crypto;
    uint8_t info[12] = {'N', 'e', 't', 'D', 'A', 'M', NETDAM_WIRE_VERSION, tenant->mode};
    netdam_be32 id = netdam_be32_make(tenant->id);
    uint8_t key[KEY_BYTES];
    bool done;

    memcpy(info + 8, &id, sizeof(id));
    done =
        crypto->derive(crypto->opaque, tenant->key, KEY_BYTES, salt, sizeof(tenant->salt), info, sizeof(info), key) &&
        crypto->set_key(crypto->opaque, slot, key);
    wipe(key, sizeof(key));
    return done;
}

static void clear_slot(struct ndfw *fw, uint32_t slot)
{
    static const uint8_t none[KEY_BYTES] = {0};

    (void)fw->platform.crypto->set_key(fw->platform.crypto->opaque, slot, none);
}

static uint32_t sealing_slot(const struct ndfw *fw, const struct ndfw_tenant *tenant)
{
    return (uint32_t)(tenant - fw->tenants);
}

/* Counters start anew, so it takes a salt that was never used. */
static bool renew_salt(struct ndfw *fw, struct ndfw_tenant *tenant)
{
    fw->platform.entropy(fw->platform.opaque, tenant->salt, sizeof(tenant->salt));
    if (!prepare_slot(fw, sealing_slot(fw, tenant), tenant, tenant->salt)) {
        return false;
    }
    tenant->counter = 0;
    return true;
}

/*
 * What a forgotten sender once sent could be played to this node again. But whatever has an effect names a generation:
 * under a new epoch (by settle_forgotten), and with lanes that are found no more, all of that is stale.
 */
static void forget_sender(struct ndfw *fw, struct ndfw_sender *sender)
{
    ndfw_tenant_find(fw, sender->tenant)->lanes = ndfw_random(fw);
    clear_slot(fw, sender->slot);
    sender->tenant = 0;
    fw->counters[NETDAM_COUNTER_TENANT_SENDERS]--;
    ndfw_count(fw, NETDAM_COUNTER_TENANT_SENDERS_FORGOTTEN, 1);
}

static void settle_forgotten(struct ndfw *fw)
{
    ndfw_map_clear(&fw->sender_by_salt);
    for (uint32_t i = 0; i < fw->config.tenant_senders; i++) {
        if (fw->senders[i].tenant != 0) {
            ndfw_map_insert(&fw->sender_by_salt, salt_id(fw->senders[i].salt), i);
        }
    }
    ndfw_lane_new_epoch(fw);
}

static void forget_senders_of(struct ndfw *fw, uint32_t id)
{
    for (uint32_t i = 0; i < fw->config.tenant_senders; i++) {
        if (fw->senders[i].tenant == id) {
            forget_sender(fw, &fw->senders[i]);
        }
    }
    settle_forgotten(fw);
}

static bool is_used(const struct ndfw *fw, uint32_t id)
{
    bool used = false;

    for (uint32_t i = 0; i < fw->config.regions; i++) {
        used |= fw->regions[i].in_use && fw->regions[i].tenant == id;
    }
    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        used |= fw->queues[i].state != NETDAM_QUEUE_STATE_NONE && fw->queues[i].tenant == id;
    }
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        used |= fw->peers[i].in_use && fw->peers[i].tenant == id;
    }
    return used;
}

static enum netdam_admin_status remove_tenant(struct ndfw *fw, uint32_t id)
{
    struct ndfw_tenant *tenant = ndfw_tenant_find(fw, id);

    if (tenant == NULL) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    if (is_used(fw, id)) {
        return NETDAM_ADMIN_STATUS_EXISTS;
    }
    forget_senders_of(fw, id);
    clear_slot(fw, sealing_slot(fw, tenant));
    wipe(tenant->key, sizeof(tenant->key));
    tenant->id = 0;
    fw->tenant_count--;
    return NETDAM_ADMIN_STATUS_OK;
}

enum netdam_admin_status ndfw_tenant_set(struct ndfw *fw, const uint64_t *args)
{
    netdam_be64 key[2] = {netdam_be64_make(args[1]), netdam_be64_make(args[2])};
    struct ndfw_tenant *tenant, made;

    if (args[0] == 0 || args[0] > UINT32_MAX || args[3] > NETDAM_TENANT_MODE_ENCRYPT) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    if (fw->platform.crypto == NULL) {
        return NETDAM_ADMIN_STATUS_UNSUPPORTED;
    }
    if (args[3] == NETDAM_TENANT_MODE_NONE) {
        return remove_tenant(fw, (uint32_t)args[0]);
    }
    tenant = ndfw_tenant_find(fw, args[0]);
    for (uint32_t i = 0; tenant == NULL && i < fw->config.tenants; i++) {
        tenant = fw->tenants[i].id == 0 ? &fw->tenants[i] : NULL;
    }
    if (tenant == NULL) {
        return NETDAM_ADMIN_STATUS_NO_SPACE;
    }
    made = (struct ndfw_tenant){.id = (uint32_t)args[0], .mode = (uint8_t)args[3], .lanes = ndfw_random(fw)};
    memcpy(made.key, key, sizeof(made.key));
    fw->platform.entropy(fw->platform.opaque, made.salt, sizeof(made.salt));
    if (!prepare_slot(fw, sealing_slot(fw, tenant), &made, made.salt)) {
        tenant->counter = UINT64_MAX; /* whatever the slot holds now: under a new salt, or not at all */
        return NETDAM_ADMIN_STATUS_NO_SPACE;
    }
    /* Forgotten under the old key as under the new one: the id may have had this key before. */
    forget_senders_of(fw, made.id);
    fw->tenant_count += tenant->id == 0;
    *tenant = made;
    wipe(made.key, sizeof(made.key));
    wipe((uint8_t *)key, sizeof(key));
    return NETDAM_ADMIN_STATUS_OK;
}

size_t ndfw_tenant_extension(uint8_t *at, uint32_t tenant)
{
    struct netdam_wire_tenant extension = {.tenant = netdam_be32_make(tenant)};

    if (tenant == 0) {
        return 0;
    }
    memcpy(at, &extension, sizeof(extension));
    return sizeof(extension);
}

static size_t extension_at(unsigned flags)
{
    return sizeof(struct netdam_wire_header) +
           ((flags & NETDAM_FLAG_IMMEDIATE) != 0 ? sizeof(struct netdam_wire_immediate) : 0u);
}

/*
 * Puts together what is authenticated, up to the payload. A request is bound to the node that it is for, or whoever
 * carries it could take it to another one; an answer finds its way by the context, which nobody else has.
 */
static void associate(struct ndfw *fw, const struct netdam_wire_header *header, unsigned family, const uint8_t *address,
                      unsigned port, const uint8_t *datagram)
{
    const size_t crc_at = DESTINATION_BYTES + offsetof(struct netdam_wire_header, header_crc);
    size_t tag_at =
        DESTINATION_BYTES + extension_at(netdam_be16_get(header->flags)) + offsetof(struct netdam_wire_tenant, tag);
    uint8_t *room = fw->tenant_room;

    memset(room, 0, DESTINATION_BYTES);
    if (header->kind == NETDAM_KIND_REQUEST) {
        memcpy(room, address, family == 6 ? 16 : 4);
        ndfw_put16(room + 16, port);
    }
    memcpy(room + DESTINATION_BYTES, datagram, netdam_be16_get(header->header_length));
    memset(room + crc_at, 0, sizeof(header->header_crc));
    memset(room + tag_at, 0, sizeof(((struct netdam_wire_tenant *)NULL)->tag));
}

static void make_nonce(uint8_t nonce[12], uint64_t counter)
{
    netdam_be64 be = netdam_be64_make(counter);

    memset(nonce, 0, 4);
    memcpy(nonce + 4, &be, sizeof(be));
}

/* Fills extension and tag; in mode ENCRYPT the payload becomes ciphertext. */
static bool seal(struct ndfw *fw, const struct ndfw_endpoint *to, const struct netdam_wire_header *header,
                 uint8_t *datagram)
{
    const struct netdam_fw_crypto *crypto = fw->platform.crypto;
    size_t header_length = netdam_be16_get(header->header_length);
    size_t payload_length = netdam_be16_get(header->payload_length);
    size_t associated_bytes = DESTINATION_BYTES + header_length;
    uint8_t *at = datagram + extension_at(netdam_be16_get(header->flags));
    struct netdam_wire_tenant extension;
    struct ndfw_tenant *tenant;
    uint8_t nonce[12];
    bool encrypts;

    memcpy(&extension, at, sizeof(extension));
    tenant = ndfw_tenant_find(fw, netdam_be32_get(extension.tenant));
    if (tenant == NULL || (tenant->counter == UINT64_MAX && !renew_salt(fw, tenant))) {
        return false;
    }
    tenant->counter++;
    encrypts = tenant->mode == NETDAM_TENANT_MODE_ENCRYPT;
    extension.mode = tenant->mode;
    memcpy(extension.salt, tenant->salt, sizeof(extension.salt));
    extension.counter = netdam_be64_make(tenant->counter);
    memcpy(at, &extension, sizeof(extension));
    make_nonce(nonce, tenant->counter);
    associate(fw, header, to->family, to->address, to->port, datagram);
    if (!encrypts) {
        memcpy(fw->tenant_room + associated_bytes, datagram + header_length, payload_length);
        associated_bytes += payload_length;
    }
    return crypto->seal(crypto->opaque, sealing_slot(fw, tenant), nonce, fw->tenant_room, associated_bytes,
                        datagram + header_length, encrypts ? payload_length : 0,
                        at + offsetof(struct netdam_wire_tenant, tag));
}

void ndfw_tenant_seal(struct ndfw *fw, const struct ndfw_endpoint *to, uint8_t *datagram)
{
    struct netdam_wire_header header;

    if (fw->tenant_count == 0) {
        return; /* nobody's; and what a shared frame's header says by now may be somebody else's, see shared.c */
    }
    memcpy(&header, datagram, sizeof(header));
    if ((netdam_be16_get(header.flags) & NETDAM_FLAG_TENANT) != 0 && !seal(fw, to, &header, datagram)) {
        /* A frame that was begun has to go: without tag nobody takes it, and nobody learns anything from it. */
        memset(datagram + netdam_be16_get(header.header_length), 0, netdam_be16_get(header.payload_length));
        ndfw_log(fw, NETDAM_FW_LOG_ERROR, "a tenant's frame could not be sealed", 0, 0);
    }
}

/* True if this counter comes for the first time. */
static bool take_counter(struct ndfw_sender *sender, uint64_t counter)
{
    uint64_t *word = &sender->bits[counter % NDFW_REPLAY_WINDOW / 64];
    uint64_t bit = UINT64_C(1) << counter % 64;

    if (counter > sender->highest) {
        if (counter - sender->highest >= NDFW_REPLAY_WINDOW) {
            memset(sender->bits, 0, sizeof(sender->bits));
        } else {
            for (uint64_t n = sender->highest + 1; n <= counter; n++) {
                sender->bits[n % NDFW_REPLAY_WINDOW / 64] &= ~(UINT64_C(1) << n % 64);
            }
        }
        sender->highest = counter;
    } else if (sender->highest - counter >= NDFW_REPLAY_WINDOW || (*word & bit) != 0) {
        return false;
    }
    *word |= bit;
    return true;
}

bool ndfw_tenant_open(struct ndfw *fw, const uint8_t *datagram, size_t bytes, struct ndfw_packet *packet,
                      enum netdam_counter *counter)
{
    const struct netdam_fw_crypto *crypto = fw->platform.crypto;
    bool six = packet->from.family == 6;
    struct netdam_wire_tenant extension;
    struct netdam_wire_header header;
    struct ndfw_tenant *tenant;
    struct ndfw_sender *sender;
    size_t header_length, associated_bytes, text_bytes;
    const uint8_t *at;
    uint8_t nonce[12];
    uint32_t slot;

    memcpy(&header, datagram, sizeof(header));
    header_length = netdam_be16_get(header.header_length);
    at = datagram + extension_at(packet->flags);
    *counter = NETDAM_COUNTER_RX_MALFORMED;
    if (header_length < extension_at(packet->flags) + sizeof(extension) ||
        bytes != header_length + packet->payload_length) {
        return false;
    }
    *counter = NETDAM_COUNTER_RX_TENANT;
    memcpy(&extension, at, sizeof(extension));
    tenant = ndfw_tenant_find(fw, netdam_be32_get(extension.tenant));
    if (tenant == NULL || extension.mode != tenant->mode || !ndfw_is_zero(extension.reserved, 3)) {
        return false;
    }
    sender = find_sender(fw, tenant->id, extension.salt);
    slot = sender != NULL ? sender->slot : fw->sender_spare;
    if (sender == NULL && !prepare_slot(fw, slot, tenant, extension.salt)) {
        return false;
    }
    make_nonce(nonce, netdam_be64_get(extension.counter));
    associate(fw, &header, packet->from.family, six ? fw->config.ipv6 : fw->config.ipv4, fw->config.udp_port, datagram);
    associated_bytes = DESTINATION_BYTES + header_length;
    text_bytes = tenant->mode == NETDAM_TENANT_MODE_ENCRYPT ? packet->payload_length : 0;
    packet->payload = fw->tenant_room + associated_bytes;
    if (text_bytes == 0) {
        memcpy(fw->tenant_room + associated_bytes, datagram + header_length, packet->payload_length);
        associated_bytes += packet->payload_length;
    }
    if (!crypto->open(crypto->opaque, slot, nonce, fw->tenant_room, associated_bytes, datagram + header_length,
                      text_bytes, extension.tag, fw->tenant_room + associated_bytes)) {
        return false;
    }
    *counter = NETDAM_COUNTER_RX_REPLAYED;
    if (sender != NULL && !take_counter(sender, netdam_be64_get(extension.counter))) {
        return false;
    }
    if (sender != NULL) {
        sender->seen_ns = fw->now_ns;
    } else {
        packet->newcomer = at;
    }
    packet->tenant = tenant->id;
    packet->lanes = tenant->lanes;
    return true;
}

static uint32_t senders_of(const struct ndfw *fw, uint32_t tenant)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < fw->config.tenant_senders; i++) {
        count += fw->senders[i].tenant == tenant;
    }
    return count;
}

/* The sender of a tenant that has been silent longest. */
static struct ndfw_sender *most_silent(struct ndfw *fw, uint32_t tenant)
{
    struct ndfw_sender *found = NULL;

    for (uint32_t i = 0; i < fw->config.tenant_senders; i++) {
        struct ndfw_sender *sender = &fw->senders[i];

        if (sender->tenant == tenant && (found == NULL || sender->seen_ns < found->seen_ns)) {
            found = sender;
        }
    }
    return found;
}

/*
 * When all places are taken: those that have been silent for as long as a lane may be go; else one of the tenant that
 * holds most, if that is more than the newcomer's would: so no tenant can keep another one out. False if none went.
 */
static bool make_room(struct ndfw *fw, uint32_t tenant)
{
    uint32_t forgotten = 0, most = 0, holder = 0;

    for (uint32_t i = 0; i < fw->config.tenant_senders; i++) {
        if (fw->now_ns - fw->senders[i].seen_ns > fw->config.lane_give_up_ns) {
            forget_sender(fw, &fw->senders[i]);
            forgotten++;
        }
    }
    for (uint32_t i = 0; forgotten == 0 && i < fw->config.tenants; i++) {
        uint32_t count = fw->tenants[i].id != 0 ? senders_of(fw, fw->tenants[i].id) : 0;

        if (count > most) {
            most = count;
            holder = fw->tenants[i].id;
        }
    }
    if (forgotten == 0 && most > senders_of(fw, tenant) + 1) {
        forget_sender(fw, most_silent(fw, holder));
        forgotten++;
    }
    if (forgotten != 0) {
        settle_forgotten(fw);
    }
    return forgotten != 0;
}

/* True if a packet cannot be from before this node's, or the peer's, present state. */
static bool is_fresh(struct ndfw *fw, const struct ndfw_packet *packet)
{
    uint64_t right;

    return packet->kind == NETDAM_KIND_RESPONSE
               ? ndfw_peer_awaits(fw, packet)
               : ndfw_lane_proves(fw, ndfw_lane_id(packet), packet->generation, &right);
}

bool ndfw_tenant_admit(struct ndfw *fw, struct ndfw_packet *packet)
{
    struct netdam_wire_tenant extension;
    struct ndfw_sender *sender;
    uint32_t index = 0, slot;

    if (packet->newcomer == NULL || !is_fresh(fw, packet)) {
        return true;
    }
    if (fw->counters[NETDAM_COUNTER_TENANT_SENDERS] == fw->config.tenant_senders) {
        if (!make_room(fw, packet->tenant)) {
            ndfw_dropped(fw, NETDAM_COUNTER_TENANT_SENDERS_FULL, packet->payload_length);
            return false;
        }
        /* Of the epoch that has just ended: it is told so, and comes again. */
        packet->lanes = ndfw_tenant_find(fw, packet->tenant)->lanes;
        if (packet->kind == NETDAM_KIND_REQUEST) {
            return true;
        }
    }
    while (fw->senders[index].tenant != 0) {
        index++;
    }
    memcpy(&extension, packet->newcomer, sizeof(extension));
    sender = &fw->senders[index];
    slot = sender->slot;
    memset(sender, 0, sizeof(*sender));
    sender->tenant = packet->tenant;
    sender->slot = fw->sender_spare;
    sender->seen_ns = fw->now_ns;
    memcpy(sender->salt, extension.salt, sizeof(sender->salt));
    (void)take_counter(sender, netdam_be64_get(extension.counter));
    fw->sender_spare = slot;
    ndfw_map_insert(&fw->sender_by_salt, salt_id(sender->salt), index);
    fw->counters[NETDAM_COUNTER_TENANT_SENDERS]++;
    return true;
}
