/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soft device's port: Ethernet frames of the firmware on one side, an ordinary UDP socket on the other, or an
 * Ethernet wire or memif link that carries whole frames.
 */
#ifndef NDSIM_PORT_H
#define NDSIM_PORT_H

#include "memif.h"
#include "netdam_soft.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ndsim_port;

typedef void (*ndsim_port_tap)(void *opaque, bool outgoing, const uint8_t *datagram, size_t bytes);
typedef void (*ndsim_port_deliver)(void *opaque, const uint8_t *frame, size_t bytes);

/* Binds `local`. Returns 0 and *port, or a negated errno. */
int ndsim_port_open(const struct sockaddr_in *local, ndsim_port_tap tap, void *tap_opaque, struct ndsim_port **port);
/*
 * Binds the unix datagram socket `path`, which close unlinks, in the place of one whose owner was killed; frames go to `peer_path`, lost while nobody is there.
 * `name` is the node's IPv4 address and port on that wire. As ndsim_port_open.
 */
int ndsim_port_open_wire(const char *path, const char *peer_path, const struct sockaddr_in *name, ndsim_port_tap tap,
                         void *tap_opaque, struct ndsim_port **port);
/* An end of a memif link, of which only frame_bytes is set here; `name` as above. Errors as ndsim_memif_open. */
int ndsim_port_open_memif(const struct ndsim_memif_config *config, const struct sockaddr_in *name, ndsim_port_tap tap,
                          void *tap_opaque, struct ndsim_port **port);
/* `owner`: not a child after fork; removes the name of a wire's end. */
void ndsim_port_close(struct ndsim_port *port, bool owner);

int ndsim_port_fd(const struct ndsim_port *port);
struct sockaddr_in ndsim_port_local(const struct ndsim_port *port);

/* The link-layer address that a node with this IPv4 address (network byte order) calls its own. */
void ndsim_port_own_mac(uint32_t ipv4, uint8_t mac[6]);

/* What all others are said to have: never the own one, not even for a node that differs by its port alone. */
void ndsim_port_peer_mac(uint32_t ipv4, uint8_t mac[6]);

/* As in struct netdam_fw_platform. */
uint8_t *ndsim_port_transmit_begin(struct ndsim_port *port, size_t bytes);
void ndsim_port_transmit_end(struct ndsim_port *port, size_t bytes);

/* Hands everything queued to the socket, as far as it takes it. */
void ndsim_port_flush(struct ndsim_port *port);

/*
 * Around sleeping on ndsim_port_fd: false if there is something to do instead. disarm is called either way, whatever
 * has happened meanwhile.
 */
bool ndsim_port_arm(struct ndsim_port *port);
void ndsim_port_disarm(struct ndsim_port *port);

/* The socket was full; nothing is handed to it before ndsim_port_unblock, which poll's POLLOUT asks for. */
bool ndsim_port_blocked(const struct ndsim_port *port);
void ndsim_port_unblock(struct ndsim_port *port);

/* Delivers one batch of what has come, answers to ARP requests included. Returns the number of frames. */
unsigned ndsim_port_receive(struct ndsim_port *port, ndsim_port_deliver deliver, void *opaque);

/* Answers to ARP requests wait for the next call of receive. */
bool ndsim_port_has_answers(const struct ndsim_port *port);

/* Drops everything queued in both directions, as a card's reset empties its FIFOs. */
void ndsim_port_reset(struct ndsim_port *port);

/* Of a memif link; NULL without. */
const struct ndsim_memif *ndsim_port_memif(const struct ndsim_port *port);

void ndsim_port_statistics(const struct ndsim_port *port, struct netdam_soft_statistics *statistics);

#endif
