/* SPDX-License-Identifier: BSD-3-Clause */
/* Status codes: how a request ended, on the wire and in completions. */
#ifndef NETDAM_STATUS_H
#define NETDAM_STATUS_H

/* What a status says about the effect of the packet or request. */
enum netdam_status_class {
    NETDAM_STATUS_CLASS_SUCCESS,   /* applied exactly once */
    NETDAM_STATUS_CLASS_REFUSED,   /* nothing of that packet was applied at that hop, then or later (of a RELAXED packet
                                      that was repeated: not by the copy that was refused) */
    NETDAM_STATUS_CLASS_RETRY,     /* between nodes only: the requester acts on it, no completion carries it */
    NETDAM_STATUS_CLASS_LOCAL,     /* refused here: nothing of that packet was applied anywhere else */
    NETDAM_STATUS_CLASS_UNCERTAIN, /* applied at most once, possibly still later */
    NETDAM_STATUS_CLASS_NONE,      /* not defined */
};

/* X(name, value, class, text) */
#define NETDAM_STATUS_LIST(X)                                                                                          \
    X(OK, 0x00, SUCCESS, "applied exactly once, visible through the target's mapping")                                 \
    X(BAD_VERSION, 0x01, REFUSED, "the node does not speak this version of the wire format")                           \
    X(BAD_OPCODE, 0x02, REFUSED, "opcode is not defined, or for descriptors only")                                     \
    X(BAD_OPERATION, 0x03, REFUSED, "ALU operation is not defined, or not for this opcode")                            \
    X(BAD_TYPE, 0x04, REFUSED, "data type is not defined, or not for this opcode and operation")                       \
    X(BAD_FLAGS, 0x05, REFUSED, "a flag is not defined, or not for this opcode")                                       \
    X(BAD_SEGMENTS, 0x06, REFUSED, "segment list is empty, too long, out of order or of an unknown form")              \
    X(BAD_LENGTH, 0x07, REFUSED, "length contradicts payload, type, opcode or the largest answer")                     \
    X(MISALIGNED, 0x08, REFUSED, "address is not a multiple of the element's size")                                    \
    X(BAD_KEY, 0x09, REFUSED, "no region has this key")                                                                \
    X(BAD_RANGE, 0x0a, REFUSED, "part of the range lies outside the region")                                           \
    X(NO_PERMISSION, 0x0b, REFUSED, "the region does not permit this access")                                          \
    X(UNSUPPORTED, 0x0c, REFUSED, "defined, but this firmware does not execute it")                                    \
    X(NOT_FORWARDED, 0x0d, REFUSED, "the next segment's node lies outside the configured prefixes")                    \
    X(NOT_READY, 0x0e, REFUSED, "no receive buffer is posted, or no room for its completion")                          \
    X(COMPARE_FAILED, 0x0f, REFUSED, "a compare in the transaction or chain did not hold")                             \
    X(STALE, 0x40, RETRY, "generation is not the lane's; the answer carries the one to use and an echo")               \
    X(BUSY, 0x41, RETRY, "no room for the lane or its window at the moment; the number is not consumed")               \
    X(LOCAL_DESCRIPTOR, 0x80, LOCAL, "descriptor has an undefined or contradicting field")                             \
    X(LOCAL_REGION, 0x81, LOCAL, "local region does not exist, or ceased to exist before the end")                     \
    X(LOCAL_RANGE, 0x82, LOCAL, "part of the local range lies outside the local region")                               \
    X(LOCAL_PERMISSION, 0x83, LOCAL, "the local region does not permit this access, or the frame is not to be sent")   \
    X(LOCAL_PEER, 0x84, LOCAL, "peer handle is not open")                                                              \
    X(LOCAL_UNSUPPORTED, 0x85, LOCAL, "defined, but this firmware does not execute it")                                \
    X(UNREACHABLE, 0x86, LOCAL, "no link-layer address could be found for the peer")                                   \
    X(TIMEOUT, 0xc0, UNCERTAIN, "no answer within the bounded retries, or only BUSY")                                  \
    X(UNKNOWN, 0xc1, UNCERTAIN, "the node lost its lanes; the request may have been applied before that")              \
    X(FLUSHED, 0xc2, UNCERTAIN,                                                                                        \
      "device reset, queue pair or region destroyed, or peer closed while the request was under way")

#define NETDAM_STATUS_ENUM(name, value, class_, text) NETDAM_STATUS_##name = (value),
enum netdam_status { NETDAM_STATUS_LIST(NETDAM_STATUS_ENUM) };
#undef NETDAM_STATUS_ENUM

static inline enum netdam_status_class netdam_status_class_of(unsigned status)
{
    switch (status) {
#define NETDAM_STATUS_CASE(name, value, class_, text)                                                                  \
    case value:                                                                                                        \
        return NETDAM_STATUS_CLASS_##class_;
        NETDAM_STATUS_LIST(NETDAM_STATUS_CASE)
#undef NETDAM_STATUS_CASE
    default:
        return NETDAM_STATUS_CLASS_NONE;
    }
}

#endif
