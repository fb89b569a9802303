/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: 64 bit, from 0 at reset, readable as registers, never written by software. */
#ifndef NETDAM_COUNTERS_H
#define NETDAM_COUNTERS_H

/* X(name, text). The position in the list is the index. */
#define NETDAM_COUNTER_LIST(X)                                                                                         \
    X(TX_FRAMES, "frames handed to the port")                                                                          \
    X(TX_BYTES, "their bytes, from the Ethernet header on")                                                            \
    X(RX_FRAMES, "frames taken from the port")                                                                         \
    X(RX_BYTES, "their bytes, from the Ethernet header on")                                                            \
    X(RX_MALFORMED, "frames to the NetDAM port whose lengths or fixed fields contradict the wire format")              \
    X(RX_HEADER_CRC, "frames dropped because header_crc is wrong")                                                     \
    X(RX_PAYLOAD_CRC, "frames dropped because the payload CRC is wrong")                                               \
    X(RX_CHECKSUM, "frames dropped because an IP or UDP checksum is wrong")                                            \
    X(RX_OTHER, "frames that are not for the NetDAM port, ARP or ping, and that no RAW queue takes")                   \
    X(ARP_REQUESTS, "ARP requests and IPv6 solicitations answered")                                                    \
    X(PINGS, "ICMP echo requests answered")                                                                            \
    X(REQUESTS_EXECUTED, "requests executed for peers")                                                                \
    X(REQUESTS_REPEATED, "requests that had been executed or refused before, answered from memory")                    \
    X(REQUESTS_REFUSED, "requests refused by status")                                                                  \
    X(REQUESTS_BELOW_FLOOR, "late copies dropped: number below the lane's floor")                                      \
    X(REQUESTS_BEYOND_WINDOW, "requests dropped: further above the floor than the window allows")                      \
    X(REQUESTS_STALE, "requests answered STALE")                                                                       \
    X(REQUESTS_BUSY, "requests answered BUSY")                                                                         \
    X(ANSWERS_LIMITED, "answers not sent because of the limit on refusals")                                            \
    X(ANSWERS_DROPPED, "answers not sent because the port was full")                                                   \
    X(RESPONSES_MATCHED, "answers that ended an outstanding packet")                                                   \
    X(RESPONSES_UNMATCHED, "answers that matched nothing outstanding, dropped")                                        \
    X(RETRANSMISSIONS, "packets sent again")                                                                           \
    X(TIMEOUTS, "packets given up after the last retry")                                                               \
    X(DESCRIPTORS, "descriptors taken from submission rings")                                                          \
    X(COMPLETIONS, "completions stored")                                                                               \
    X(COMPLETION_ERRORS, "of these, with a status other than OK")                                                      \
    X(RING_ERRORS, "rings with an impossible index")                                                                   \
    X(DOORBELLS, "doorbell writes")                                                                                    \
    X(INTERRUPTS, "interrupts raised")                                                                                 \
    X(REGISTER_ERRORS, "register accesses of a wrong size, alignment, direction or offset")                            \
    X(ADMIN_ERRORS, "administration commands refused")                                                                 \
    X(LANES, "lanes remembered at the moment")                                                                         \
    X(LANE_WINDOWS, "lanes with something unfinished at the moment")                                                   \
    X(LANE_BYTES, "bytes of far-end state in use for these at the moment, and for what transactions have fetched")     \
    X(LANES_FORGOTTEN, "confirmed lanes forgotten")                                                                    \
    X(LANES_GIVEN_UP, "unconfirmed lanes given up")                                                                    \
    X(MERGED, "descriptors merged into another's packets")                                                             \
    X(FORWARDED, "chain packets passed on to the next node")                                                           \
    X(FORWARDS_DROPPED, "chain packets not passed on: port full, no link-layer address, or a repeated read that "      \
                        "fails")                                                                                       \
    X(RX_TENANT, "frames dropped because their tenant is not known here or their tag is wrong")                        \
    X(RX_REPLAYED, "frames dropped because their tenant's counter was seen before, or is older than can be told")      \
    X(TENANT_SENDERS, "senders remembered at the moment, so that nothing of theirs is taken twice")                    \
    X(TENANT_SENDERS_FORGOTTEN, "senders forgotten to make room, or with their tenant's key")                          \
    X(TENANT_SENDERS_FULL, "frames dropped because there was no room for their sender")                                \
    X(RAW_SENT, "frames sent for RAW queue pairs")                                                                     \
    X(RAW_RECEIVED, "frames stored in buffers of RAW queue pairs")                                                     \
    X(RAW_DROPPED, "frames for a RAW queue pair that had no buffer long enough, or no room for the completion")        \
    X(PATHS_RETIRED, "times that a path towards a peer was retired because it lost too much")                          \
    X(PATHS_RESTORED, "times that a retired path was used again")

#define NETDAM_COUNTER_ENUM(name, text) NETDAM_COUNTER_##name,
enum netdam_counter { NETDAM_COUNTER_LIST(NETDAM_COUNTER_ENUM) NETDAM_COUNTER_COUNT };
#undef NETDAM_COUNTER_ENUM

#endif
