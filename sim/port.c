/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes Ethernet, IP and UDP headers off what the firmware sends, puts them on what it receives, and answers ARP. */
#define _GNU_SOURCE
#include "port.h"
#include "netdam/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HEADERS_BYTES (NETDAM_ETHERNET_BYTES + NETDAM_IPV4_BYTES + NETDAM_UDP_BYTES)
#define FRAME_MAX     (NETDAM_ETHERNET_BYTES + NETDAM_MTU_MAX)
#define DATAGRAM_MAX  (FRAME_MAX - HEADERS_BYTES)

/* A received frame starts here in its slot, so that the NetDAM header behind 42 bytes of headers is aligned to 64. */
#define RECEIVE_OFFSET 22
#define SLOT_BYTES     9088

#define TRANSMIT_SLOTS 128
#define RECEIVE_SLOTS  64
#define ARP_SLOTS      32
#define ARP_BYTES      42

/* What the kernel is asked for; without privileges it grants net.core.{r,w}mem_max at most. */
#define SOCKET_BUFFER_BYTES (16 << 20)

#define ETHERTYPE_AT 12
#define IP_AT        NETDAM_ETHERNET_BYTES
#define UDP_AT       (IP_AT + NETDAM_IPV4_BYTES)

_Static_assert(RECEIVE_OFFSET + FRAME_MAX <= SLOT_BYTES, "a frame fits its slot");

/* Rounds without sleep after which the control channel of a memif link is looked at. */
#define MEMIF_ROUNDS 512

#define MEMIF_BATCH 64

struct ndsim_port {
    int fd;
    struct ndsim_memif *memif; /* NULL: a socket */
    uint8_t *memif_frame;      /* between transmit_begin and transmit_end */
    unsigned memif_rounds;
    ndsim_port_deliver deliver; /* during receive */
    void *deliver_opaque;
    bool wire; /* whole frames, on a unix socket */
    bool connected;
    struct sockaddr_un path;
    struct sockaddr_un peer_path;
    struct sockaddr_in local;
    ndsim_port_tap tap;
    void *tap_opaque;
    struct netdam_soft_statistics statistics;

    /* Waiting to be sent: [first, first + count). New ones go behind; the array is reused when all have left. */
    unsigned transmit_first;
    unsigned transmit_count;
    bool blocked;

    unsigned arp_count;
    uint8_t arp[ARP_SLOTS][ARP_BYTES];

    struct mmsghdr transmit_message[TRANSMIT_SLOTS];
    struct iovec transmit_vector[TRANSMIT_SLOTS];
    struct sockaddr_in transmit_peer[TRANSMIT_SLOTS];
    struct mmsghdr receive_message[RECEIVE_SLOTS];
    struct iovec receive_vector[RECEIVE_SLOTS];
    struct sockaddr_in receive_peer[RECEIVE_SLOTS];
    _Alignas(64) uint8_t transmit_slot[TRANSMIT_SLOTS][SLOT_BYTES];
    _Alignas(64) uint8_t receive_slot[RECEIVE_SLOTS][SLOT_BYTES];
};

static void put16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static unsigned get16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* One's complement sum in the byte order of memory (RFC 1071, section 2 (B)); `bytes` at an even distance from the
 * start. */
static uint64_t sum_bytes(const uint8_t *p, size_t bytes)
{
    uint64_t sum = 0;
    uint32_t word;
    uint16_t half;

    for (; bytes >= 4; bytes -= 4, p += 4) {
        memcpy(&word, p, 4);
        sum += word;
    }
    if (bytes >= 2) {
        memcpy(&half, p, 2);
        sum += half;
        bytes -= 2;
        p += 2;
    }
    if (bytes != 0) {
        half = 0;
        memcpy(&half, p, 1);
        sum += half;
    }
    return sum;
}

static uint16_t checksum_of(uint64_t sum)
{
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

void ndsim_port_own_mac(uint32_t ipv4, uint8_t mac[6])
{
    mac[0] = 0x02;
    mac[1] = 0x00;
    memcpy(mac + 2, &ipv4, 4);
}

void ndsim_port_peer_mac(uint32_t ipv4, uint8_t mac[6])
{
    ndsim_port_own_mac(ipv4, mac);
    mac[1] = 0x01;
}

static void set_buffer(int fd, int force, int plain)
{
    int bytes = SOCKET_BUFFER_BYTES;

    if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)) != 0) {
        (void)setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof(bytes));
    }
}

/* A path may be narrower than the MTU, and whoever finds that out may be forbidden to say so: routers cut packets up. */
static void allow_fragments(int fd)
{
    int how = IP_PMTUDISC_DONT;

    (void)setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &how, sizeof(how));
}

static struct ndsim_port *new_port(ndsim_port_tap tap, void *tap_opaque)
{
    struct ndsim_port *port = aligned_alloc(64, (sizeof(*port) + 63) / 64 * 64);

    if (port != NULL) {
        memset(port, 0, offsetof(struct ndsim_port, transmit_slot));
        port->tap = tap;
        port->tap_opaque = tap_opaque;
        port->fd = -1;
    }
    return port;
}

static struct ndsim_port *new_socket(int family, ndsim_port_tap tap, void *tap_opaque, int *error)
{
    struct ndsim_port *port = new_port(tap, tap_opaque);

    *error = -ENOMEM;
    if (port == NULL) {
        return NULL;
    }
    port->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->fd < 0) {
        *error = -errno;
        free(port);
        return NULL;
    }
    set_buffer(port->fd, SO_RCVBUFFORCE, SO_RCVBUF);
    set_buffer(port->fd, SO_SNDBUFFORCE, SO_SNDBUF);
    return port;
}

static int give_up(struct ndsim_port *port)
{
    int error = -errno;

    close(port->fd);
    free(port);
    return error;
}

int ndsim_port_open(const struct sockaddr_in *local, ndsim_port_tap tap, void *tap_opaque, struct ndsim_port **result)
{
    socklen_t length = sizeof(*local);
    int error;
    struct ndsim_port *port = new_socket(AF_INET, tap, tap_opaque, &error);
    unsigned i;

    if (port == NULL) {
        return error;
    }
    allow_fragments(port->fd);
    if (bind(port->fd, (const struct sockaddr *)local, sizeof(*local)) != 0 ||
        getsockname(port->fd, (struct sockaddr *)&port->local, &length) != 0) {
        return give_up(port);
    }
    for (i = 0; i < TRANSMIT_SLOTS; i++) {
        port->transmit_message[i].msg_hdr.msg_name = &port->transmit_peer[i];
        port->transmit_message[i].msg_hdr.msg_namelen = sizeof(port->transmit_peer[i]);
        port->transmit_message[i].msg_hdr.msg_iov = &port->transmit_vector[i];
        port->transmit_message[i].msg_hdr.msg_iovlen = 1;
        port->transmit_peer[i].sin_family = AF_INET;
    }
    for (i = 0; i < RECEIVE_SLOTS; i++) {
        port->receive_message[i].msg_hdr.msg_name = &port->receive_peer[i];
        port->receive_message[i].msg_hdr.msg_iov = &port->receive_vector[i];
        port->receive_message[i].msg_hdr.msg_iovlen = 1;
        port->receive_vector[i].iov_base = port->receive_slot[i] + RECEIVE_OFFSET + HEADERS_BYTES;
        port->receive_vector[i].iov_len = DATAGRAM_MAX;
    }
    *result = port;
    return 0;
}

static bool set_path(struct sockaddr_un *address, const char *path)
{
    size_t length = strlen(path);

    address->sun_family = AF_UNIX;
    if (length == 0 || length >= sizeof(address->sun_path)) {
        return false;
    }
    memcpy(address->sun_path, path, length + 1);
    return true;
}

/* A socket whose owner was killed; whoever is alive, or not ours to ask, keeps his name. */
static bool is_left_behind(const struct sockaddr_un *path)
{
    struct stat status;
    bool dead = false;
    int fd;

    /* A file that is none refuses connections, too. */
    if (lstat(path->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        dead = connect(fd, (const struct sockaddr *)path, sizeof(*path)) != 0 && errno == ECONNREFUSED;
        close(fd);
    }
    return dead;
}

static int bind_wire(int fd, const struct sockaddr_un *path)
{
    int result = bind(fd, (const struct sockaddr *)path, sizeof(*path));

    if (result != 0 && errno == EADDRINUSE) {
        if (is_left_behind(path) && unlink(path->sun_path) == 0) {
            return bind(fd, (const struct sockaddr *)path, sizeof(*path));
        }
        errno = EADDRINUSE;
    }
    return result;
}

int ndsim_port_open_wire(const char *path, const char *peer_path, const struct sockaddr_in *name, ndsim_port_tap tap,
                         void *tap_opaque, struct ndsim_port **result)
{
    int error;
    struct ndsim_port *port = new_socket(AF_UNIX, tap, tap_opaque, &error);
    unsigned i;

    if (port == NULL) {
        return error;
    }
    port->wire = true;
    port->local = *name;
    errno = EINVAL;
    if (!set_path(&port->path, path) || !set_path(&port->peer_path, peer_path) ||
        bind_wire(port->fd, &port->path) != 0) {
        return give_up(port);
    }
    for (i = 0; i < TRANSMIT_SLOTS; i++) {
        port->transmit_message[i].msg_hdr.msg_iov = &port->transmit_vector[i];
        port->transmit_message[i].msg_hdr.msg_iovlen = 1;
    }
    for (i = 0; i < RECEIVE_SLOTS; i++) {
        port->receive_message[i].msg_hdr.msg_iov = &port->receive_vector[i];
        port->receive_message[i].msg_hdr.msg_iovlen = 1;
        port->receive_vector[i].iov_base = port->receive_slot[i] + RECEIVE_OFFSET;
        port->receive_vector[i].iov_len = FRAME_MAX;
    }
    *result = port;
    return 0;
}

int ndsim_port_open_memif(const struct ndsim_memif_config *config, const struct sockaddr_in *name, ndsim_port_tap tap,
                          void *tap_opaque, struct ndsim_port **result)
{
    struct ndsim_memif_config whole = *config;
    struct ndsim_port *port = new_port(tap, tap_opaque);
    int error;

    if (port == NULL) {
        return -ENOMEM;
    }
    whole.frame_bytes = FRAME_MAX;
    port->local = *name;
    error = ndsim_memif_open(&whole, &port->memif);
    if (error != 0) {
        free(port);
        return error;
    }
    *result = port;
    return 0;
}

void ndsim_port_close(struct ndsim_port *port, bool owner)
{
    if (port->memif != NULL && owner) {
        ndsim_memif_close(port->memif);
    } else if (port->memif != NULL) {
        ndsim_memif_abandon(port->memif);
    } else {
        close(port->fd);
    }
    if (port->wire && owner) {
        (void)unlink(port->path.sun_path);
    }
    free(port);
}

int ndsim_port_fd(const struct ndsim_port *port)
{
    return port->memif != NULL ? ndsim_memif_fd(port->memif) : port->fd;
}

bool ndsim_port_arm(struct ndsim_port *port)
{
    return port->memif == NULL || ndsim_memif_arm(port->memif);
}

void ndsim_port_disarm(struct ndsim_port *port)
{
    if (port->memif != NULL) {
        ndsim_memif_disarm(port->memif);
        ndsim_memif_process(port->memif);
        port->blocked = false; /* tried again after every sleep */
    }
}

struct sockaddr_in ndsim_port_local(const struct ndsim_port *port)
{
    return port->local;
}

bool ndsim_port_blocked(const struct ndsim_port *port)
{
    return port->blocked;
}

void ndsim_port_unblock(struct ndsim_port *port)
{
    port->blocked = false;
}

const struct ndsim_memif *ndsim_port_memif(const struct ndsim_port *port)
{
    return port->memif;
}

void ndsim_port_statistics(const struct ndsim_port *port, struct netdam_soft_statistics *statistics)
{
    struct ndsim_memif_statistics link;

    *statistics = port->statistics;
    if (port->memif != NULL) {
        ndsim_memif_get_statistics(port->memif, &link);
        statistics->datagrams_sent = link.transmit_frames;
        statistics->datagrams_taken = link.receive_frames;
        statistics->taken_too_long = link.receive_too_long + link.receive_scattered;
        statistics->send_errors = link.transmit_down + link.transmit_stalled + link.transmit_too_long;
        statistics->send_blocked = link.transmit_full;
    }
}

/* Connected, the socket tells when the other end has room again. */
static void connect_wire(struct ndsim_port *port)
{
    if (port->wire && !port->connected && port->transmit_count != 0) {
        port->connected = connect(port->fd, (const struct sockaddr *)&port->peer_path, sizeof(port->peer_path)) == 0;
    }
}

void ndsim_port_flush(struct ndsim_port *port)
{
    if (port->memif != NULL) {
        ndsim_memif_flush(port->memif);
        return;
    }
    connect_wire(port);
    while (port->transmit_count != 0 && !port->blocked) {
        int sent = sendmmsg(port->fd, port->transmit_message + port->transmit_first, port->transmit_count, 0);

        if (sent > 0) {
            port->statistics.datagrams_sent += (unsigned)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM) {
            port->blocked = true;
            port->statistics.send_blocked++;
            return;
        } else if (errno == EINTR) {
            continue;
        } else {
            /* The first message is at fault (no route, forbidden, too long) or is told of an ICMP error: a loss. */
            port->statistics.send_errors++;
            port->connected = false; /* the other end of a wire has gone */
            sent = 1;
        }
        port->transmit_first += (unsigned)sent;
        port->transmit_count -= (unsigned)sent;
    }
    if (port->transmit_count == 0) {
        port->transmit_first = 0;
    }
}

uint8_t *ndsim_port_transmit_begin(struct ndsim_port *port, size_t bytes)
{
    if (bytes > FRAME_MAX) {
        return NULL;
    }
    if (port->memif != NULL) {
        port->memif_frame = ndsim_memif_transmit_begin(port->memif, bytes);
        port->blocked = port->memif_frame == NULL;
        return port->memif_frame;
    }
    if (port->transmit_first + port->transmit_count == TRANSMIT_SLOTS) {
        ndsim_port_flush(port);
        if (port->transmit_count != 0) {
            return NULL;
        }
    }
    return port->transmit_slot[port->transmit_first + port->transmit_count];
}

/* Every address is said to be on the link; the answer waits until the firmware is not running. */
static void arp_answer(struct ndsim_port *port, const uint8_t *request, size_t bytes)
{
    static const uint8_t form[8] = {0x00, 0x01, 0x08, 0x00, 6, 4, 0x00, 0x01};
    uint8_t *answer = port->arp[port->arp_count];
    uint32_t target;

    if (bytes < ARP_BYTES || memcmp(request + IP_AT, form, sizeof(form)) != 0) {
        port->statistics.not_sendable++;
        return;
    }
    if (port->arp_count == ARP_SLOTS) {
        return; /* lost, as on a wire; the firmware asks again */
    }
    memcpy(&target, request + 38, 4);
    memcpy(answer, request + 22, 6);
    ndsim_port_peer_mac(target, answer + 6);
    memcpy(answer + ETHERTYPE_AT, request + ETHERTYPE_AT, 2 + 6);
    put16(answer + 20, 2);
    memcpy(answer + 22, answer + 6, 6);
    memcpy(answer + 28, &target, 4);
    memcpy(answer + 32, request + 22, 6 + 4);
    port->arp_count++;
}

/* The frame's UDP datagram, if it is one of this node: sent in its name, or, if not `outgoing`, to it. */
static bool find_datagram(const struct ndsim_port *port, const uint8_t *frame, size_t bytes, bool outgoing, size_t *at,
                          size_t *length)
{
    size_t ip_bytes;
    size_t header;
    size_t udp_bytes;

    if (bytes < HEADERS_BYTES || get16(frame + ETHERTYPE_AT) != 0x0800 || frame[IP_AT] >> 4 != 4) {
        return false;
    }
    header = (size_t)(frame[IP_AT] & 0x0f) * 4;
    ip_bytes = get16(frame + IP_AT + 2);
    if (header < NETDAM_IPV4_BYTES || ip_bytes > bytes - IP_AT || ip_bytes < header + NETDAM_UDP_BYTES) {
        return false;
    }
    if ((get16(frame + IP_AT + 6) & 0x3fff) != 0 || frame[IP_AT + 9] != IPPROTO_UDP) {
        return false; /* a fragment, or another protocol */
    }
    if (memcmp(frame + IP_AT + (outgoing ? 12 : 16), &port->local.sin_addr, 4) != 0 ||
        memcmp(frame + IP_AT + header + (outgoing ? 0 : 2), &port->local.sin_port, 2) != 0) {
        return false;
    }
    udp_bytes = get16(frame + IP_AT + header + 4);
    if (udp_bytes < NETDAM_UDP_BYTES || udp_bytes > ip_bytes - header) {
        return false;
    }
    *at = IP_AT + header + NETDAM_UDP_BYTES;
    *length = udp_bytes - NETDAM_UDP_BYTES;
    return true;
}

static void tap_frame(const struct ndsim_port *port, const uint8_t *frame, size_t bytes, bool outgoing)
{
    size_t length;
    size_t at;

    if (port->tap != NULL && find_datagram(port, frame, bytes, outgoing, &at, &length)) {
        port->tap(port->tap_opaque, outgoing, frame + at, length);
    }
}

void ndsim_port_transmit_end(struct ndsim_port *port, size_t bytes)
{
    unsigned slot = port->transmit_first + port->transmit_count;
    uint8_t *frame = port->transmit_slot[slot];
    size_t length;
    size_t at;

    if (port->memif != NULL) {
        tap_frame(port, port->memif_frame, bytes, true);
        ndsim_memif_transmit_end(port->memif, bytes);
        return;
    }
    if (port->wire) {
        port->transmit_vector[slot].iov_base = frame;
        port->transmit_vector[slot].iov_len = bytes;
        port->transmit_count++;
        tap_frame(port, frame, bytes, true);
        return;
    }
    if (bytes >= NETDAM_ETHERNET_BYTES && get16(frame + ETHERTYPE_AT) == 0x0806) {
        arp_answer(port, frame, bytes);
        return;
    }
    if (!find_datagram(port, frame, bytes, true, &at, &length)) {
        port->statistics.not_sendable++;
        return;
    }
    memcpy(&port->transmit_peer[slot].sin_addr, frame + IP_AT + 16, 4);
    memcpy(&port->transmit_peer[slot].sin_port, frame + at - NETDAM_UDP_BYTES + 2, 2);
    port->transmit_vector[slot].iov_base = frame + at;
    port->transmit_vector[slot].iov_len = length;
    port->transmit_count++;
    if (port->tap != NULL) {
        port->tap(port->tap_opaque, true, frame + at, length);
    }
}

/* Puts headers in front of a datagram; returns the length of the frame. */
static size_t wrap(const struct ndsim_port *port, uint8_t *frame, const struct sockaddr_in *peer, size_t datagram_bytes)
{
    uint8_t *ip = frame + IP_AT;
    uint8_t *udp = frame + UDP_AT;
    size_t udp_bytes = NETDAM_UDP_BYTES + datagram_bytes;
    uint16_t checksum;
    uint64_t pseudo;

    ndsim_port_own_mac(port->local.sin_addr.s_addr, frame);
    ndsim_port_peer_mac(peer->sin_addr.s_addr, frame + 6);
    put16(frame + ETHERTYPE_AT, 0x0800);
    put16(ip, 0x4500);
    put16(ip + 2, (unsigned)(NETDAM_IPV4_BYTES + udp_bytes));
    put16(ip + 4, 0);
    put16(ip + 6, 0x4000); /* do not fragment */
    ip[8] = 64;
    ip[9] = IPPROTO_UDP;
    put16(ip + 10, 0);
    memcpy(ip + 12, &peer->sin_addr, 4);
    memcpy(ip + 16, &port->local.sin_addr, 4);
    checksum = checksum_of(sum_bytes(ip, NETDAM_IPV4_BYTES));
    memcpy(ip + 10, &checksum, 2);

    memcpy(udp, &peer->sin_port, 2);
    memcpy(udp + 2, &port->local.sin_port, 2);
    put16(udp + 4, (unsigned)udp_bytes);
    put16(udp + 6, 0);
    pseudo = sum_bytes(ip + 12, 8) + htons(IPPROTO_UDP) + htons((uint16_t)udp_bytes);
    checksum = checksum_of(pseudo + sum_bytes(udp, udp_bytes));
    if (checksum == 0) {
        checksum = 0xffff; /* 0 would mean that there is none */
    }
    memcpy(udp + 6, &checksum, 2);
    return HEADERS_BYTES + datagram_bytes;
}

static int receive_batch(struct ndsim_port *port)
{
    int i;
    int count;

    for (i = 0; i < RECEIVE_SLOTS; i++) {
        port->receive_message[i].msg_hdr.msg_namelen = sizeof(port->receive_peer[i]);
    }
    do {
        count = recvmmsg(port->fd, port->receive_message, RECEIVE_SLOTS, MSG_DONTWAIT, NULL);
    } while (count < 0 && errno == EINTR);
    return count > 0 ? count : 0; /* an ICMP error is a loss like any other */
}

static void deliver_memif(void *opaque, const uint8_t *frame, size_t bytes)
{
    const struct ndsim_port *port = opaque;

    tap_frame(port, frame, bytes, false);
    port->deliver(port->deliver_opaque, frame, bytes);
}

static unsigned receive_memif(struct ndsim_port *port, ndsim_port_deliver deliver, void *opaque)
{
    if (++port->memif_rounds == MEMIF_ROUNDS) {
        port->memif_rounds = 0;
        ndsim_memif_process(port->memif);
    }
    port->deliver = deliver;
    port->deliver_opaque = opaque;
    return ndsim_memif_receive(port->memif, MEMIF_BATCH, deliver_memif, port);
}

unsigned ndsim_port_receive(struct ndsim_port *port, ndsim_port_deliver deliver, void *opaque)
{
    unsigned frames = 0;
    int count;
    int i;

    if (port->memif != NULL) {
        return receive_memif(port, deliver, opaque);
    }
    while (port->arp_count != 0) {
        uint8_t frame[ARP_BYTES];

        port->arp_count--;
        memcpy(frame, port->arp[port->arp_count], ARP_BYTES);
        deliver(opaque, frame, ARP_BYTES);
        frames++;
    }
    count = receive_batch(port);
    for (i = 0; i < count; i++) {
        const struct mmsghdr *message = &port->receive_message[i];
        uint8_t *frame = port->receive_slot[i] + RECEIVE_OFFSET;

        if ((message->msg_hdr.msg_flags & MSG_TRUNC) != 0) {
            port->statistics.taken_too_long++;
            continue;
        }
        if (port->wire) {
            tap_frame(port, frame, message->msg_len, false);
            deliver(opaque, frame, message->msg_len);
            port->statistics.datagrams_taken++;
            frames++;
            continue;
        }
        if (port->tap != NULL) {
            port->tap(port->tap_opaque, false, frame + HEADERS_BYTES, message->msg_len);
        }
        deliver(opaque, frame, wrap(port, frame, &port->receive_peer[i], message->msg_len));
        port->statistics.datagrams_taken++;
        frames++;
    }
    return frames;
}

bool ndsim_port_has_answers(const struct ndsim_port *port)
{
    return port->arp_count != 0;
}

void ndsim_port_reset(struct ndsim_port *port)
{
    unsigned batches;

    if (port->memif != NULL) {
        ndsim_memif_reset(port->memif);
        port->blocked = false;
        return;
    }
    port->transmit_first = 0;
    port->transmit_count = 0;
    port->arp_count = 0;
    /* Peers may go on sending: what fits the socket's buffer is gone after this many batches. */
    for (batches = 0; batches < SOCKET_BUFFER_BYTES / 512 / RECEIVE_SLOTS; batches++) {
        if (receive_batch(port) == 0) {
            break;
        }
    }
}
