/* SPDX-License-Identifier: BSD-3-Clause */
/* What the modules of the firmware offer one another. */
#ifndef NDFW_H
#define NDFW_H

#include "state.h"

/* The only functions of a C library that the firmware may need; compilers emit calls to them by themselves. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

/* A NetDAM packet whose form has been checked; payload points into the frame, or to where it was deciphered. */
struct ndfw_packet {
    struct ndfw_endpoint from;
    uint32_t to_port;
    const uint8_t *payload;
    uint64_t context;
    uint64_t number;
    uint64_t key;
    uint64_t address;
    uint64_t generation; /* RESPONSE: the answer's */
    uint64_t echo;
    uint64_t floor;
    uint64_t immediate;
    uint64_t lanes;          /* the tenant's, or 0 */
    const uint8_t *newcomer; /* the tenant extension, if its sender is not known */
    uint32_t tenant;         /* proven, or 0 */
    uint32_t payload_length;
    uint32_t length;
    uint16_t distance;
    uint16_t flags;
    uint8_t kind;
    uint8_t status;
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint8_t hop;
    uint8_t segment_count;
    uint8_t node_form;
    const uint8_t *datagram;
    const uint8_t *segments; /* of a chain: the first, behind the origin */
    uint32_t header_length;
};

/* What an answer says. Its payload is private bytes, or on-board memory, or private bytes op memory. */
struct ndfw_answer {
    enum netdam_status status;
    unsigned flags;
    uint64_t generation;
    uint64_t floor;
    uint32_t length; /* bytes applied or returned */
    uint32_t payload_length;
    const uint8_t *payload;
    const uint8_t *memory;
};

/* crc32c.c */
uint32_t ndfw_crc32c(const struct ndfw *fw, uint32_t crc, const uint8_t *data, size_t bytes);
void ndfw_crc32c_prepare(struct ndfw *fw);
/* Of a NetDAM header, its own CRC counting as 0; at least a struct netdam_wire_header. */
uint32_t ndfw_crc32c_header(const struct ndfw *fw, const uint8_t *header, size_t bytes);
/* Copies out of on-board memory (8-byte loads where aligned) and goes on with the CRC32C of what is copied. */
uint32_t ndfw_crc32c_copy(const struct ndfw *fw, uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes);

/* memory.c */
uint8_t *ndfw_memory(struct ndfw *fw, uint64_t offset, uint64_t bytes, enum netdam_fw_access access);
void ndfw_store(uint8_t *to, const uint8_t *from, size_t bytes);
void ndfw_load(uint8_t *to, const uint8_t *from, size_t bytes);
/* The same between on-board memory and a packet's payload, with whatever the CPU has. */
void ndfw_payload_store(const struct ndfw *fw, uint8_t *memory, const uint8_t *payload, size_t bytes);
void ndfw_payload_load(const struct ndfw *fw, uint8_t *payload, const uint8_t *memory, size_t bytes);
/* To one tenant the regions of others do not exist. */
struct ndfw_region *ndfw_region_find(const struct ndfw *fw, uint64_t key, uint32_t tenant);
enum netdam_status ndfw_region_access(const struct ndfw *fw, uint64_t key, uint32_t tenant, uint64_t address,
                                      uint64_t bytes, uint32_t permission, uint64_t *offset);
enum netdam_status ndfw_local_access(const struct ndfw *fw, uint32_t region, uint32_t serial, uint64_t address,
                                     uint64_t bytes, uint32_t permission, uint64_t *offset);

/* buffer.c: local buffers of descriptors */
/* What a descriptor names, with all of it checked. */
enum netdam_status ndfw_buffer_take(struct ndfw *fw, const struct netdam_descriptor *descriptor, uint32_t permission,
                                    struct ndfw_buffer *buffer);
/* Where `bytes` of a buffer lie, from `offset` on; the regions may have gone since. At most NETDAM_LIST_MAX spans. */
enum netdam_status ndfw_buffer_spans(struct ndfw *fw, const struct ndfw_buffer *buffer, uint64_t offset, uint64_t bytes,
                                     uint32_t permission, struct ndfw_span *spans, uint32_t *count);
void ndfw_spans_store(const struct ndfw *fw, const struct ndfw_span *spans, uint32_t count, const uint8_t *from);
/* Returns the CRC32C of what was copied if `with_crc`, else 0. */
uint32_t ndfw_spans_load(const struct ndfw *fw, const struct ndfw_span *spans, uint32_t count, uint8_t *to,
                         bool with_crc);

/* map.c */
uint32_t ndfw_map_slots(uint32_t entries);
void ndfw_map_clear(struct ndfw_map *map);
void ndfw_map_insert(struct ndfw_map *map, uint64_t id, uint32_t index);
/* First candidate place of an id; the caller compares, and goes on to the next place until an empty one. */
uint32_t ndfw_map_first(const struct ndfw_map *map, uint64_t id);

/* alu.c */
bool ndfw_alu_executes(unsigned operation, unsigned type);
/* The result of an operation on one element. */
uint64_t ndfw_alu_apply(uint64_t value, uint64_t operand, unsigned operation, unsigned type);
/* memory[i] = memory[i] op operand[i]; memory is aligned to the element, operand need not be. They do not overlap. */
void ndfw_alu_reduce(const struct ndfw *fw, uint8_t *memory, const uint8_t *operand, size_t bytes, unsigned operation,
                     unsigned type);
/*
 * to[i] = payload[i] op memory[i]; memory is aligned to the element, the others need not be. `to` may be `payload`;
 * nothing else overlaps.
 */
void ndfw_alu_reduce_into(const struct ndfw *fw, uint8_t *to, const uint8_t *payload, const uint8_t *memory,
                          size_t bytes, unsigned operation, unsigned type);
uint64_t ndfw_element_load(const uint8_t *memory, unsigned bytes);
void ndfw_element_store(uint8_t *memory, unsigned bytes, uint64_t value);

/* frame.c */
enum ndfw_decoded {
    NDFW_DECODED_OK,
    NDFW_DECODED_REFUSE, /* packet->status says why; context, number and from are valid */
    NDFW_DECODED_DROP,   /* *counter says why */
};
/* For a port that NetDAM may share with others. */
bool ndfw_looks_like_answer(const uint8_t *datagram, size_t bytes);
/* `datagram` is what follows the UDP header; from is filled by the caller. */
enum ndfw_decoded ndfw_decode(struct ndfw *fw, const uint8_t *datagram, size_t bytes, struct ndfw_packet *packet,
                              enum netdam_counter *counter);
/* Bytes of a node part, or 0 if the form is not defined. */
uint32_t ndfw_node_bytes(unsigned node_form);
/* Whether flags of a request (NETDAM_FLAG_*) suit its instruction and one another. */
bool ndfw_flags_suit(unsigned flags, unsigned opcode, unsigned operation, unsigned type);
/* What is not executed, or contradicts the instruction set: a status that depends on the packet alone. */
enum netdam_status ndfw_check_instruction(const struct ndfw_packet *packet);
/*
 * Starts a frame with room for the payload and its CRC, from the own port or one of those behind it: `path`. Returns
 * where the NetDAM header goes, or NULL: port full.
 */
uint8_t *ndfw_frame_begin(struct ndfw *fw, const struct ndfw_endpoint *to, uint32_t path, uint32_t datagram_bytes);
void ndfw_frame_end(struct ndfw *fw, const struct ndfw_endpoint *to, uint32_t datagram_bytes);
/* Completes a datagram: a tenant's tag, and the checksums. */
void ndfw_seal(struct ndfw *fw, const struct ndfw_endpoint *to, uint8_t *datagram, uint32_t datagram_bytes);
uint32_t ndfw_datagram_bytes(const struct ndfw *fw, uint32_t payload_length, bool immediate, uint32_t tenant);
/* True if a payload gets a CRC. */
bool ndfw_has_crc(const struct ndfw *fw, uint32_t payload_length, uint32_t tenant);

uint8_t *ndfw_transmit_begin(struct ndfw *fw, bool loopback, size_t bytes);
void ndfw_transmit_end(struct ndfw *fw, size_t bytes);

/* The Internet checksum over the pseudo-header of IPv6. */
uint16_t ndfw_checksum_ipv6(const uint8_t *ip, unsigned protocol, const uint8_t *data, size_t bytes);

/* Whose a frame that has arrived is. */
enum ndfw_taken {
    NDFW_TAKEN_DEVICE, /* dealt with, or dropped and counted */
    NDFW_TAKEN_BOTH,   /* dealt with, and a RAW queue pair may have it too */
    NDFW_TAKEN_NOT,    /* a RAW queue pair's, or nobody's */
};

/* neighbour.c: ARP, neighbour discovery, ping */
enum ndfw_taken ndfw_arp_receive(struct ndfw *fw, const uint8_t *arp, size_t bytes);
enum ndfw_taken ndfw_ping_receive(struct ndfw *fw, const uint8_t *frame, size_t ip_length);
enum ndfw_taken ndfw_icmpv6_receive(struct ndfw *fw, const uint8_t *frame, const uint8_t *icmp, size_t bytes);

bool ndfw_is_self(const struct ndfw *fw, const struct ndfw_endpoint *endpoint);
bool ndfw_is_static_neighbour(const struct ndfw *fw, const struct ndfw_endpoint *endpoint);
bool ndfw_net_resolve(struct ndfw *fw, struct ndfw_endpoint *endpoint);
void ndfw_net_solicit(struct ndfw *fw, const struct ndfw_endpoint *endpoint);
/* The same for somebody who is no peer, and whose answer is to be learnt nevertheless. */
void ndfw_net_ask(struct ndfw *fw, const struct ndfw_endpoint *endpoint);
void ndfw_net_doubt(struct ndfw *fw, const struct ndfw_endpoint *endpoint);
bool ndfw_net_set_neighbour(struct ndfw *fw, uint8_t family, const uint8_t *address, const uint8_t *mac, bool fixed);

/* raw.c: RAW queue pairs */
enum netdam_admin_status ndfw_raw_steer(struct ndfw *fw, const uint64_t *args);
/* The queue pair is destroyed. */
void ndfw_raw_forget(struct ndfw *fw, uint32_t queue);
/* A frame that is no NetDAM packet of this device; `both`: the device has dealt with it as well. */
void ndfw_raw_receive(struct ndfw *fw, const uint8_t *frame, size_t bytes, bool own_mac, bool both);
/* Sends, for about `budget_bytes`. Returns true if there is more to send at once. */
bool ndfw_raw_run(struct ndfw *fw, uint64_t budget_bytes);

/* net.c */
void ndfw_net_receive(struct ndfw *fw, const uint8_t *frame, size_t bytes);
void ndfw_dropped(struct ndfw *fw, enum netdam_counter counter, size_t bytes);

/* lane.c */
enum ndfw_lane_verdict {
    NDFW_LANE_EXECUTE,  /* the caller executes and calls ndfw_lane_consume */
    NDFW_LANE_REPEATED, /* answered before: status and value are given */
    NDFW_LANE_DROP,
    NDFW_LANE_STALE,
    NDFW_LANE_BUSY,
};
struct ndfw_lane_result {
    uint64_t generation;
    uint64_t floor;
    uint64_t value;
    uint8_t status;
    struct ndfw_window *window;
};
/* `stranger`: the request names no key that exists, and will be refused. */
enum ndfw_lane_verdict ndfw_lane_admit(struct ndfw *fw, const struct ndfw_packet *packet, bool stranger,
                                       struct ndfw_lane_result *result);
void ndfw_lane_consume(struct ndfw_window *window, uint64_t number, uint8_t status, uint64_t value);
enum ndfw_lane_verdict ndfw_lane_confirm(struct ndfw *fw, const struct ndfw_packet *packet,
                                         struct ndfw_lane_result *result);
/* True if `generation` proves that the requester has heard from this node and is not older than its epoch. */
bool ndfw_lane_proves(const struct ndfw *fw, uint64_t context, uint64_t generation, uint64_t *right);
/* What was sent under the generation until now is stale, where no lane remembers it. */
void ndfw_lane_new_epoch(struct ndfw *fw);
/* NETDAM_FLAG_CONFIRM_WANTED for an answer to a request with a lane, if there is little room for more; else 0. */
unsigned ndfw_lane_wish(const struct ndfw *fw);
void ndfw_lane_start(struct ndfw *fw);
void ndfw_lane_timer(struct ndfw *fw);
uint64_t ndfw_lane_next_ns(const struct ndfw *fw);

/* transaction.c */
/* True if a packet's payload is a list of entries in right form. */
bool ndfw_transaction_is_whole(const struct ndfw_packet *packet);
bool ndfw_transaction_names_no_key(const struct ndfw *fw, const struct ndfw_packet *packet);
/* Returns a status that is final for this number, with the value to be remembered; or BUSY: nothing was done. */
enum netdam_status ndfw_transaction_execute(struct ndfw *fw, const struct ndfw_packet *packet,
                                            struct ndfw_window *window, uint64_t *value);
/* The length that the answer states, and the payload that it carries, of what was executed or refused. */
uint32_t ndfw_transaction_answer(const struct ndfw *fw, const struct ndfw_lane_result *result, const uint8_t **payload,
                                 uint32_t *payload_length);
void ndfw_replies_start(struct ndfw *fw);
/* Frees what belongs to these numbers of the window; `to` is not among them. */
void ndfw_replies_free(struct ndfw *fw, struct ndfw_window *window, uint64_t from, uint64_t to);
/* Of a descriptor whose buffer has been taken: form of the list, place for what it fetches. */
enum netdam_status ndfw_transaction_take(struct ndfw *fw, const struct netdam_descriptor *descriptor,
                                         struct ndfw_buffer *buffer);
/* True if an answer may be the one to this operation. */
bool ndfw_transaction_agrees(const struct ndfw_operation *operation, const struct ndfw_packet *packet);
/* Stores what came back; returns the status that ends the flight. */
enum netdam_status ndfw_transaction_receive(struct ndfw *fw, struct ndfw_operation *operation,
                                            struct ndfw_flight *flight, const struct ndfw_packet *packet);

/* The id by which a request's lane is found: one context has as many lanes as tenants use it. */
static inline uint64_t ndfw_lane_id(const struct ndfw_packet *packet)
{
    return packet->context ^ packet->lanes;
}

/* tenant.c */
size_t ndfw_tenant_room_bytes(void);
void ndfw_tenant_start(struct ndfw *fw);
enum netdam_admin_status ndfw_tenant_set(struct ndfw *fw, const uint64_t *args);
struct ndfw_tenant *ndfw_tenant_find(const struct ndfw *fw, uint64_t id);
/* The extension of a frame to come, which ndfw_seal completes; returns its bytes: 0 for tenant 0. */
size_t ndfw_tenant_extension(uint8_t *at, uint32_t tenant);
void ndfw_tenant_seal(struct ndfw *fw, const struct ndfw_endpoint *to, uint8_t *datagram);
/* Checks the tag of a packet with the flag TENANT, and deciphers the payload. False: drop, *counter says why. */
bool ndfw_tenant_open(struct ndfw *fw, const uint8_t *datagram, size_t bytes, struct ndfw_packet *packet,
                      enum netdam_counter *counter);
/* Remembers the sender of a packet, if it is new and the packet is known to be. False: no room, the packet is dropped. */
bool ndfw_tenant_admit(struct ndfw *fw, struct ndfw_packet *packet);

/* responder.c */
void ndfw_respond(struct ndfw *fw, struct ndfw_packet *packet);
void ndfw_refuse(struct ndfw *fw, const struct ndfw_packet *packet, enum netdam_status status);
void ndfw_refuse_at(struct ndfw *fw, const struct ndfw_packet *packet, enum netdam_status status, uint64_t generation,
                    uint64_t floor, unsigned flags);
void ndfw_answer(struct ndfw *fw, const struct ndfw_packet *packet, const struct ndfw_answer *answer);
/* Applies a modification; returns a status that is final for its number, and the old value for atomics. */
enum netdam_status ndfw_execute(struct ndfw *fw, const struct ndfw_packet *packet, uint64_t *value);
uint32_t ndfw_permission_for(unsigned opcode);
/* True if the key that a request names is nobody's. */
bool ndfw_names_no_key(const struct ndfw *fw, const struct ndfw_packet *packet);
/* Puts a payload and its CRC into a frame: private bytes, or memory, or private bytes op memory. */
void ndfw_put_payload(const struct ndfw *fw, const struct ndfw_packet *packet, uint8_t *to, const uint8_t *payload,
                      const uint8_t *memory, uint32_t bytes, bool has_crc);

/* hop.c: chains, as the node that executes a segment sees them */
void ndfw_hop(struct ndfw *fw, struct ndfw_packet *packet, enum netdam_status status);
/* True if chains may be passed on to this node. */
bool ndfw_may_forward(const struct ndfw *fw, const struct ndfw_endpoint *to);

/* peer.c: contexts, windows, timers */
void ndfw_peer_start(struct ndfw *fw, struct ndfw_peer *peer);
void ndfw_peer_renew(struct ndfw *fw, struct ndfw_peer *peer);
void ndfw_peer_index(struct ndfw *fw);
void ndfw_peer_receive(struct ndfw *fw, const struct ndfw_packet *packet);
/* True if an answer names a context that is open, and comes from that context's tenant. */
bool ndfw_peer_awaits(struct ndfw *fw, const struct ndfw_packet *packet);
void ndfw_peer_timer(struct ndfw *fw, struct ndfw_peer *peer);
uint64_t ndfw_peer_next_ns(const struct ndfw_peer *peer);
void ndfw_peer_close(struct ndfw *fw, struct ndfw_peer *peer);
void ndfw_peer_release_if_closed(struct ndfw *fw, struct ndfw_peer *peer);
/* The context of chains, at start. */
void ndfw_chain_start(struct ndfw *fw);
void ndfw_peer_fail_waiting(struct ndfw *fw, struct ndfw_peer *peer, enum netdam_status status);
void ndfw_flight_finish(struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_sequence *sequence, uint64_t number,
                        enum netdam_status status, uint8_t hop);
/* A flight that is under way is sent again as soon as possible. */
void ndfw_flight_again(struct ndfw_peer *peer, struct ndfw_sequence *sequence, struct ndfw_flight *flight);
struct ndfw_flight *ndfw_flight_at(const struct ndfw *fw, const struct ndfw_sequence *sequence, uint64_t number);
uint64_t ndfw_peer_rto_ns(const struct ndfw *fw, const struct ndfw_peer *peer, unsigned tries);
uint64_t ndfw_flight_rto_ns(const struct ndfw *fw, const struct ndfw_peer *peer, const struct ndfw_flight *flight);
/* True if a request is executed exactly once by a lane's numbers. */
bool ndfw_uses_lane(unsigned opcode, bool without);
/* The sequence that a request of this device takes its numbers from. */
struct ndfw_sequence *ndfw_sequence_for(struct ndfw_peer *peer, const struct netdam_descriptor *descriptor);
/* True if a number was the last: nothing is sent for the first time until the context has been renewed. */
bool ndfw_peer_is_exhausted(const struct ndfw_peer *peer);

/* requester.c: from operations to packets */
/* The flags of a descriptor as the wire has them. */
unsigned ndfw_wire_flags(const struct netdam_descriptor *descriptor);
/* Payload bytes of one packet of a request. */
uint32_t ndfw_packet_payload_max(const struct ndfw_peer *peer, const struct netdam_descriptor *descriptor);
/* Sends what the windows and the port allow; returns false if the port is full. */
bool ndfw_peer_pump(struct ndfw *fw, struct ndfw_peer *peer, uint64_t budget_end, bool *more);
/* The floor of a context for a peer's node: the peer's own context, or that of chains. */
bool ndfw_send_confirm(struct ndfw *fw, const struct ndfw_peer *context, const struct ndfw_peer *peer,
                       uint64_t generation, uint32_t path);

enum ndfw_sent {
    NDFW_SENT_OK,
    NDFW_SENT_PORT_FULL,
    NDFW_SENT_LOCAL_ERROR, /* the local region has gone: *status */
};

/* members.c */
/*
 * Checks a collective, into the next free entry; there is one, and a free tour. Where it is refused and others are to
 * hear of that, operation->collective is the entry, else NDFW_NONE.
 */
enum netdam_status ndfw_collective_check(struct ndfw *fw, struct ndfw_operation *operation);

/* collective.c */
/* `status`: of the check. If it is not OK, others are only told. */
void ndfw_collective_start(struct ndfw *fw, uint32_t operation, enum netdam_status status);
/* Returns true if there is more to do at once. */
bool ndfw_collectives_run(struct ndfw *fw, uint64_t budget_end);
uint64_t ndfw_collectives_next_ns(const struct ndfw *fw);
void ndfw_collectives_flush(struct ndfw *fw, uint32_t queue);
/* The handle closes: those that need it end. */
void ndfw_collectives_fail_peer(struct ndfw *fw, uint32_t peer);
/* A part has ended. */
void ndfw_collective_child(struct ndfw *fw, uint32_t collective, uint32_t kind, enum netdam_status status, uint8_t hop);

/* tour.c: chains, as their requester sees them */
/* Checks a tour's segments, and fills in what follows from them. On an error, *hop is the segment at fault. */
enum netdam_status ndfw_tour_prepare(const struct ndfw *fw, struct ndfw_tour *tour, uint32_t flags, uint32_t length,
                                     uint8_t *hop);
/* Checks a CHAIN, into the next free tour; there is one. On an error, the operation's hop is the segment at fault. */
enum netdam_status ndfw_tour_check(struct ndfw *fw, struct ndfw_operation *operation);
void ndfw_tour_take(struct ndfw *fw, struct ndfw_operation *operation);
void ndfw_tour_release(struct ndfw *fw, struct ndfw_operation *operation);
bool ndfw_tour_is_ready(struct ndfw *fw, const struct ndfw_operation *operation);
enum ndfw_sent ndfw_tour_send(struct ndfw *fw, uint64_t number, const struct ndfw_flight *flight,
                              enum netdam_status *status);
/* A packet is under way; has ended. */
void ndfw_tour_flies(struct ndfw *fw, const struct ndfw_operation *operation, uint64_t number);
void ndfw_tour_lands(struct ndfw *fw, const struct ndfw_operation *operation);
/* Ends what visits a peer and waits; `flying_too`: and what is under way. */
void ndfw_tour_fail_peer(struct ndfw *fw, uint32_t peer, enum netdam_status status, bool flying_too);
bool ndfw_tour_matches(const struct ndfw *fw, const struct ndfw_flight *flight, const struct ndfw_packet *packet);
bool ndfw_tour_returns(const struct ndfw *fw, const struct ndfw_operation *operation);
bool ndfw_tour_stores(const struct ndfw *fw, const struct ndfw_operation *operation);
bool ndfw_tour_stored_before(const struct ndfw *fw, const struct ndfw_operation *operation, uint32_t hop);
uint32_t ndfw_tour_nodes(const struct ndfw *fw, const struct ndfw_operation *operation);
uint32_t ndfw_tour_payload_max(const struct ndfw *fw, const struct ndfw_operation *operation);
/* What a CONFIRM of the chains' context carries as distance, for its answer to say whose it is. */
uint16_t ndfw_way_cookie(const struct ndfw *fw, const struct ndfw_peer *peer);
/* True if two peer handles name one node. */
bool ndfw_is_same_node(const struct ndfw *fw, uint32_t a, uint32_t b);
/* The node whose lane an answer speaks of, or NULL if it matches nothing that is under way. */
struct ndfw_peer *ndfw_tour_answering(struct ndfw *fw, const struct ndfw_packet *packet);
void ndfw_tour_stale(struct ndfw *fw, const struct ndfw_packet *packet);
void ndfw_tour_confirmed(struct ndfw *fw, const struct ndfw_packet *packet);
void ndfw_way_timer(struct ndfw *fw, struct ndfw_peer *peer);
bool ndfw_way_is_confirmed(const struct ndfw_way *way);
void ndfw_ways_renew(struct ndfw *fw);
bool ndfw_ways_are_confirmed(const struct ndfw *fw);

/* queue.c: rings */
uint32_t ndfw_queue_take(struct ndfw *fw, uint32_t queue, uint32_t most);
bool ndfw_queue_could_take(struct ndfw *fw, uint32_t queue);
/* The next descriptor, which stays in the ring. False if there is none, or no room for its completion. */
bool ndfw_queue_peek(struct ndfw *fw, uint32_t queue, struct netdam_descriptor *descriptor);
/* Takes it out, completed. */
void ndfw_queue_finish(struct ndfw *fw, uint32_t queue, const struct netdam_descriptor *descriptor,
                       enum netdam_status status, uint32_t length);
void ndfw_queue_set_flags(struct ndfw *fw, uint32_t queue, uint32_t flags);
void ndfw_queue_signal(struct ndfw *fw);
void ndfw_queue_flush(struct ndfw *fw, uint32_t queue, bool with_ring);
void ndfw_operation_list(struct ndfw *fw, struct ndfw_peer *peer, uint32_t index);
void ndfw_operation_fail(struct ndfw *fw, uint32_t index, enum netdam_status status, uint8_t hop);
void ndfw_operation_settle(struct ndfw *fw, uint32_t index);
/* Ends all parts of a collective. */
void ndfw_operations_end(struct ndfw *fw, uint32_t collective);
/* True if this firmware executes a descriptor that the device turns into other packets. */
bool ndfw_device_executes(unsigned opcode, unsigned operation, unsigned type);
/* A message, or the immediate of a WRITE, for a queue pair's next receive buffer. */
/* Of a WRITE, the payload goes to `memory`, before the completion tells of it and only if that can be delivered. */
enum netdam_status ndfw_queue_receive(struct ndfw *fw, uint32_t queue, const struct ndfw_packet *packet,
                                      uint8_t *memory);
uint32_t ndfw_queue_by_receive_key(const struct ndfw *fw, uint64_t key, uint32_t tenant);

/* merge.c: requests that share a packet */
/* Puts an operation just taken from its ring into the group of the one before it. False if it goes by itself. */
bool ndfw_merge(struct ndfw *fw, uint32_t index);
/* Takes a group apart of which nothing was applied: each is sent by itself. False if it is no group. */
bool ndfw_merge_split(struct ndfw *fw, uint32_t index);
/* Takes the first out of a group that has ended. The next one, which is returned, has ended likewise; or NDFW_NONE. */
uint32_t ndfw_merge_pop(struct ndfw *fw, uint32_t index);
/* Where the payload of a packet lies, as ndfw_buffer_spans; at most NDFW_SPANS_MAX spans. */
enum netdam_status ndfw_merge_spans(struct ndfw *fw, const struct ndfw_operation *operation,
                                    const struct ndfw_flight *flight, struct ndfw_span *spans, uint32_t *count);
/* Loads it from there, combining what is to be combined. Returns the CRC32C of the payload if `with_crc`, else 0. */
uint32_t ndfw_merge_load(struct ndfw *fw, const struct ndfw_operation *operation, const struct ndfw_span *spans,
                         uint32_t count, uint8_t *payload, bool with_crc);

/* admin.c */
uint64_t ndfw_register_read(struct ndfw *fw, uint32_t offset, unsigned bytes);
unsigned ndfw_register_write(struct ndfw *fw, uint32_t offset, unsigned bytes, uint64_t value);

/* firmware.c */
void ndfw_log(struct ndfw *fw, enum netdam_fw_log_level level, const char *text, uint64_t a, uint64_t b);
void ndfw_trace(struct ndfw *fw, enum netdam_fw_trace event, uint64_t a, uint64_t b, uint64_t c);
uint64_t ndfw_random(struct ndfw *fw);

/* The context of all chains lies behind those of the peers. */
static inline struct ndfw_peer *ndfw_chain_context(const struct ndfw *fw)
{
    return &fw->peers[fw->config.peers];
}

/* A free entry for a collective, or NDFW_NONE. */
static inline uint32_t ndfw_collective_free(const struct ndfw *fw)
{
    for (uint32_t i = 0; i < fw->config.collectives; i++) {
        if (fw->collectives[i].operation == NDFW_NONE) {
            return i;
        }
    }
    return NDFW_NONE;
}

static inline bool ndfw_is_chain_context(const struct ndfw *fw, const struct ndfw_peer *peer)
{
    return peer == ndfw_chain_context(fw);
}

static inline void ndfw_count(struct ndfw *fw, enum netdam_counter counter, uint64_t by)
{
    fw->counters[counter] += by;
}

#endif
