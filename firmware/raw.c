/* SPDX-License-Identifier: BSD-3-Clause */
/* RAW queue pairs: frames that are not NetDAM's, from on-board memory to the port and back, and which pair gets which. */
#include "ndfw.h"

#include "checksum.h"
#include "path.h"

#define ETHERTYPE_MIN  0x600 /* below, the field is a length */
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_UDP   17

/* Ethernet, the longest IPv4 header, and the ports: what tells whose a frame is. */
#define HEAD_BYTES (NETDAM_ETHERNET_BYTES + 60 + 4)

/* Descriptors of one queue pair before the next has its turn. */
#define TURN_DESCRIPTORS 16u

/* Of IPv4's flags and offset: 0 in a packet that is whole, and in one that has ports, the first of several too. */
#define IS_FRAGMENT   0x3fffu
#define IS_LATER_PART 0x1fffu

/* The ports of a UDP packet, or NULL; `head` holds `bytes` of the frame, or HEAD_BYTES. */
static const uint8_t *udp_ports(const uint8_t *head, size_t bytes, unsigned none_of)
{
    const uint8_t *ip = head + NETDAM_ETHERNET_BYTES;
    unsigned type = ndfw_get16(head + 12);
    size_t header = NETDAM_IPV6_BYTES;

    if (type == ETHERTYPE_IPV4 && bytes >= NETDAM_ETHERNET_BYTES + NETDAM_IPV4_BYTES) {
        header = (size_t)(ip[0] & 15) * 4;
        if (ip[0] >> 4 != 4 || header < NETDAM_IPV4_BYTES || (ndfw_get16(ip + 6) & none_of) != 0 ||
            ip[9] != PROTOCOL_UDP) {
            return NULL;
        }
    } else if (type != ETHERTYPE_IPV6 || bytes < NETDAM_ETHERNET_BYTES + NETDAM_IPV6_BYTES || ip[0] >> 4 != 6 ||
               ip[6] != PROTOCOL_UDP) {
        return NULL;
    }
    return bytes >= NETDAM_ETHERNET_BYTES + header + 4 ? ip + header : NULL;
}

/* The rule that wins, or NULL. */
static const struct ndfw_rule *find_rule(const struct ndfw *fw, const uint8_t *frame, size_t bytes, bool own_mac)
{
    const uint8_t *ports = udp_ports(frame, bytes, IS_FRAGMENT);
    const struct ndfw_rule *best = NULL;

    for (uint32_t i = 0; i < fw->rule_count; i++) {
        const struct ndfw_rule *rule = &fw->rules[i];
        bool matches = rule->kind == NETDAM_STEERING_PROMISCUOUS ? !own_mac : own_mac;

        if (rule->kind == NETDAM_STEERING_ETHERTYPE) {
            matches = matches && ndfw_get16(frame + 12) == rule->value;
        } else if (rule->kind == NETDAM_STEERING_UDP_PORT) {
            matches = matches && ports != NULL && ndfw_get16(ports + 2) == rule->value;
        }
        if (matches && (best == NULL || rule->kind < best->kind)) {
            best = rule;
        }
    }
    return best;
}

/* A frame that finds no buffer is lost, as on any card: nothing waits for software that does not post any. */
void ndfw_raw_receive(struct ndfw *fw, const uint8_t *frame, size_t bytes, bool own_mac, bool both)
{
    const struct ndfw_rule *rule = find_rule(fw, frame, bytes, own_mac);
    struct ndfw_packet packet = {.payload = frame, .length = (uint32_t)bytes};

    if (rule == NULL) {
        if (!both) {
            ndfw_dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
        }
        return;
    }
    fw->work_bytes += bytes;
    if (ndfw_queue_receive(fw, rule->queue, &packet, NULL) == NETDAM_STATUS_OK) {
        ndfw_count(fw, NETDAM_COUNTER_RAW_RECEIVED, 1);
    } else {
        ndfw_dropped(fw, NETDAM_COUNTER_RAW_DROPPED, bytes);
    }
}

enum netdam_admin_status ndfw_raw_steer(struct ndfw *fw, const uint64_t *args)
{
    const struct ndfw_queue *queue = args[0] < fw->config.queue_pairs ? &fw->queues[args[0]] : NULL;
    struct ndfw_rule rule = {.queue = (uint32_t)args[0], .value = (uint16_t)args[2], .kind = (uint8_t)args[1]};

    if (queue == NULL || queue->state == NETDAM_QUEUE_STATE_NONE) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    if (queue->type != NETDAM_QUEUE_RAW || queue->rq_entries == 0 || args[1] > NETDAM_STEERING_PROMISCUOUS ||
        args[2] > UINT16_MAX || (args[1] == NETDAM_STEERING_ETHERTYPE && args[2] < ETHERTYPE_MIN) ||
        (args[1] == NETDAM_STEERING_UDP_PORT) > (args[2] != 0) ||
        (args[1] >= NETDAM_STEERING_DEFAULT && args[2] != 0)) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    for (uint32_t i = 0; i < fw->rule_count; i++) {
        if (fw->rules[i].kind == rule.kind && fw->rules[i].value == rule.value) {
            return fw->rules[i].queue == rule.queue ? NETDAM_ADMIN_STATUS_OK : NETDAM_ADMIN_STATUS_EXISTS;
        }
    }
    if (fw->rule_count == NETDAM_STEERING_RULES) {
        return NETDAM_ADMIN_STATUS_NO_SPACE;
    }
    fw->rules[fw->rule_count++] = rule;
    return NETDAM_ADMIN_STATUS_OK;
}

void ndfw_raw_forget(struct ndfw *fw, uint32_t queue)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < fw->rule_count; i++) {
        if (fw->rules[i].queue != queue) {
            fw->rules[kept++] = fw->rules[i];
        }
    }
    fw->rule_count = kept;
}

/*
 * Frames carry the card's own address, but where the pair is told everything that goes by: then it may be a bridge. And
 * none may pass for a NetDAM packet of this card.
 */
static bool may_send(const struct ndfw *fw, uint32_t queue, const uint8_t *head, size_t bytes)
{
    const uint8_t *ports = udp_ports(head, bytes, IS_LATER_PART); /* who puts it together has the ports */
    const uint8_t *ip = head + NETDAM_ETHERNET_BYTES;
    bool bridge = false;

    for (uint32_t i = 0; i < fw->rule_count; i++) {
        bridge |= fw->rules[i].queue == queue && fw->rules[i].kind == NETDAM_STEERING_PROMISCUOUS;
    }
    if ((head[6] & 1) != 0 || (!bridge && !ndfw_is_same_mac(head + 6, fw->config.mac))) {
        return false;
    }
    return ports == NULL || !ndfw_is_own_port(fw, ndfw_get16(ports)) ||
           (ip[0] >> 4 == 4 ? memcmp(ip + 12, fw->config.ipv4, 4) : memcmp(ip + 8, fw->config.ipv6, 16)) != 0;
}

/* What is wrong with a descriptor, or with the head of its frame, which is copied before it is looked at. */
static enum netdam_status check(struct ndfw *fw, uint32_t queue, const struct netdam_descriptor *descriptor,
                                struct ndfw_buffer *buffer, uint8_t head[HEAD_BYTES])
{
    uint32_t bytes = descriptor->length < HEAD_BYTES ? descriptor->length : HEAD_BYTES;
    struct ndfw_span spans[NETDAM_LIST_MAX];
    enum netdam_status status;
    uint32_t count;

    if (descriptor->opcode != 0 || descriptor->operation != 0 || descriptor->type != 0 ||
        (descriptor->flags & ~((uint32_t)NETDAM_DESCRIPTOR_LIST | NETDAM_DESCRIPTOR_FENCE)) != 0 ||
        descriptor->peer != 0 || descriptor->remote_key != 0 || descriptor->remote_address != 0 ||
        descriptor->immediate != 0 || descriptor->u.buffer.result_address != 0 ||
        descriptor->length < NETDAM_ETHERNET_BYTES || descriptor->length > NETDAM_ETHERNET_BYTES + fw->config.mtu) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    status = ndfw_buffer_take(fw, descriptor, NETDAM_PERMISSION_LOCAL_READ, buffer);
    if (status == NETDAM_STATUS_OK) {
        status = ndfw_buffer_spans(fw, buffer, 0, bytes, NETDAM_PERMISSION_LOCAL_READ, spans, &count);
    }
    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    (void)ndfw_spans_load(fw, spans, count, head, false);
    return may_send(fw, queue, head, bytes) ? NETDAM_STATUS_OK : NETDAM_STATUS_LOCAL_PERMISSION;
}

/* Returns false if the port is full. */
static bool send_frame(struct ndfw *fw, const struct ndfw_buffer *buffer, uint32_t bytes, const uint8_t *head)
{
    struct ndfw_span spans[NETDAM_LIST_MAX];
    uint8_t *frame = ndfw_transmit_begin(fw, false, bytes);
    uint32_t count = 0;

    if (frame == NULL) {
        return false;
    }
    /* What was checked, whatever software has made of it since. */
    memcpy(frame, head, bytes < HEAD_BYTES ? bytes : HEAD_BYTES);
    if (bytes > HEAD_BYTES) {
        (void)ndfw_buffer_spans(fw, buffer, HEAD_BYTES, bytes - HEAD_BYTES, NETDAM_PERMISSION_LOCAL_READ, spans,
                                &count);
        (void)ndfw_spans_load(fw, spans, count, frame + HEAD_BYTES, false);
    }
    ndfw_transmit_end(fw, bytes);
    ndfw_count(fw, NETDAM_COUNTER_RAW_SENT, 1);
    return true;
}

/* Returns true if the queue pair has had its turn, or the budget is used up: there may be more. */
static bool run_queue(struct ndfw *fw, uint32_t index, uint64_t end)
{
    for (uint32_t n = 0; n < TURN_DESCRIPTORS && fw->work_bytes <= end; n++) {
        struct netdam_descriptor descriptor;
        uint8_t head[HEAD_BYTES];
        struct ndfw_buffer buffer;
        enum netdam_status status;

        if (!ndfw_queue_peek(fw, index, &descriptor)) {
            return false;
        }
        status = check(fw, index, &descriptor, &buffer, head);
        if (status == NETDAM_STATUS_OK && !send_frame(fw, &buffer, descriptor.length, head)) {
            fw->raw_waits = true;
            return false;
        }
        ndfw_queue_finish(fw, index, &descriptor, status, status == NETDAM_STATUS_OK ? descriptor.length : 0);
    }
    return true;
}

bool ndfw_raw_run(struct ndfw *fw, uint64_t budget_bytes)
{
    const uint64_t end = fw->work_bytes + budget_bytes;
    const uint32_t first = fw->next_raw;
    const bool port_full = fw->port_full; /* of NetDAM's frames, which have their own way to wait */
    bool more = false;

    for (uint32_t n = 0; n < fw->config.queue_pairs && !fw->raw_waits && fw->work_bytes <= end; n++) {
        uint32_t index = (first + n) % fw->config.queue_pairs;

        if (fw->queues[index].type == NETDAM_QUEUE_RAW) {
            more |= run_queue(fw, index, end);
            /* Whoever is behind the last one that had a turn is first next time. */
            fw->next_raw = (index + 1) % fw->config.queue_pairs;
        }
    }
    fw->port_full = port_full;
    return more;
}
