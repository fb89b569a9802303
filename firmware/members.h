/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of a collective. Places are those in its list; the ring goes through them from the own one on. */
#ifndef NDFW_MEMBERS_H
#define NDFW_MEMBERS_H

#include "ndfw.h"

/* The place of the member that is `step` further in the ring than this one; fewer steps than members. */
uint32_t ndfw_member_after(const struct ndfw_collective *c, uint32_t step);
/* Whose fault a failure of a chain is: its hops are the others in the order of the ring. */
uint32_t ndfw_member_of_hop(const struct ndfw_collective *c, uint8_t hop);
/* What can be said of one entry of a list: whether it is possible, and names a node that no other entry names. */
enum netdam_status ndfw_member_check(const struct ndfw *fw, const struct netdam_descriptor *d,
                                     const struct ndfw_collective *c, uint32_t place);

#endif
