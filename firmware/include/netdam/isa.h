/* SPDX-License-Identifier: BSD-3-Clause */
/* The instruction set: opcodes, ALU operations, data types, and what the algebra lets the transport do with each. */
#ifndef NETDAM_ISA_H
#define NETDAM_ISA_H

#include "netdam/types.h"

/* What an opcode brings and needs. */
#define NETDAM_OPF_MODIFIES 0x01u  /* changes the node's memory: uses a lane unless relaxed or unreliable */
#define NETDAM_OPF_PAYLOAD  0x02u  /* the request carries `length` bytes of payload */
#define NETDAM_OPF_RETURNS  0x04u  /* the answer carries `length` bytes of payload */
#define NETDAM_OPF_ATOMIC   0x08u  /* one element of `type`; operands travel as payload, the old value returns */
#define NETDAM_OPF_ALU      0x10u  /* names an ALU operation and an element type */
#define NETDAM_OPF_CHAIN    0x20u  /* only as a segment of a chain */
#define NETDAM_OPF_DEVICE   0x40u  /* only in a descriptor: the device turns it into other packets */
#define NETDAM_OPF_MEMORY   0x80u  /* names a region by key */
#define NETDAM_OPF_CONTROL  0x100u /* between firmwares: a descriptor must not name it */
#define NETDAM_OPF_ENTRIES  0x200u /* the payload is a list of entries; the answer carries what they fetch */

/* X(name, value, flags, text) */
#define NETDAM_OP_LIST(X)                                                                                              \
    X(ECHO, 0x01, NETDAM_OPF_PAYLOAD | NETDAM_OPF_RETURNS, "return the payload")                                       \
    X(CONFIRM, 0x02, NETDAM_OPF_CONTROL, "raise the lane's floor; with generation 0, ask for the generation")          \
    X(READ, 0x10, NETDAM_OPF_MEMORY | NETDAM_OPF_RETURNS, "return memory")                                             \
    X(WRITE, 0x11, NETDAM_OPF_MEMORY | NETDAM_OPF_MODIFIES | NETDAM_OPF_PAYLOAD, "store the payload")                  \
    X(SEND, 0x12, NETDAM_OPF_MODIFIES | NETDAM_OPF_PAYLOAD,                                                            \
      "store the payload where the next receive buffer of the queue pair says whose receive key it names")             \
    X(REDUCE, 0x20, NETDAM_OPF_MEMORY | NETDAM_OPF_MODIFIES | NETDAM_OPF_PAYLOAD | NETDAM_OPF_ALU,                     \
      "memory = memory op payload, element by element")                                                                \
    X(FETCH_ADD, 0x30, NETDAM_OPF_MEMORY | NETDAM_OPF_MODIFIES | NETDAM_OPF_ATOMIC, "add, return the old value")       \
    X(CAS, 0x31, NETDAM_OPF_MEMORY | NETDAM_OPF_MODIFIES | NETDAM_OPF_ATOMIC,                                          \
      "store the second operand if memory equals the first, return the old value")                                     \
    X(SWAP, 0x32, NETDAM_OPF_MEMORY | NETDAM_OPF_MODIFIES | NETDAM_OPF_ATOMIC, "store, return the old value")          \
    X(FETCH_OP, 0x33, NETDAM_OPF_MEMORY | NETDAM_OPF_MODIFIES | NETDAM_OPF_ATOMIC | NETDAM_OPF_ALU,                    \
      "memory = memory op operand, return the old value")                                                              \
    X(LOAD, 0x40, NETDAM_OPF_MEMORY | NETDAM_OPF_CHAIN, "payload = memory")                                            \
    X(LOAD_REDUCE, 0x41, NETDAM_OPF_MEMORY | NETDAM_OPF_CHAIN | NETDAM_OPF_ALU,                                        \
      "payload = payload op memory; nothing is stored")                                                                \
    X(COMPARE, 0x42, NETDAM_OPF_MEMORY | NETDAM_OPF_CHAIN, "stop the chain unless memory equals the payload")          \
    X(FORWARD, 0x43, NETDAM_OPF_CHAIN, "pass on unchanged")                                                            \
    X(TRANSACTION, 0x50, NETDAM_OPF_MODIFIES | NETDAM_OPF_PAYLOAD | NETDAM_OPF_ENTRIES,                                \
      "compares, then fetches, then writes, all or nothing")                                                           \
    X(CHAIN, 0x70, NETDAM_OPF_DEVICE, "visit the nodes of a segment list, one after the other")                        \
    X(ALL_REDUCE, 0x80, NETDAM_OPF_DEVICE | NETDAM_OPF_ALU, "reduce over a ring of nodes, result everywhere")          \
    X(REDUCE_SCATTER, 0x81, NETDAM_OPF_DEVICE | NETDAM_OPF_ALU, "reduce over a ring of nodes, one block each")         \
    X(ALL_GATHER, 0x82, NETDAM_OPF_DEVICE, "every node's block to every node")                                         \
    X(BROADCAST, 0x83, NETDAM_OPF_DEVICE, "one node's block to every node")                                            \
    X(BARRIER, 0x84, NETDAM_OPF_DEVICE, "complete when every node has arrived")

/* Operands of an atomic, as payload: one element each, little-endian. */
#define NETDAM_CAS_OPERANDS    2
#define NETDAM_ATOMIC_OPERANDS 1

/* X(name, value, text). The operation of an opcode without NETDAM_OPF_ALU is NONE. */
#define NETDAM_ALU_LIST(X)                                                                                             \
    X(NONE, 0x00, "no ALU operation")                                                                                  \
    X(SUM, 0x01, "integers wrap")                                                                                      \
    X(PRODUCT, 0x02, "integers wrap")                                                                                  \
    X(MIN, 0x03, "floats: a NaN wins, and -0 < +0 (IEEE 754-2019 minimum)")                                            \
    X(MAX, 0x04, "floats: a NaN wins, and -0 < +0 (IEEE 754-2019 maximum)")                                            \
    X(AND, 0x05, "bitwise, integers only")                                                                             \
    X(OR, 0x06, "bitwise, integers only")                                                                              \
    X(XOR, 0x07, "bitwise, integers only")                                                                             \
    X(SUM_SATURATING, 0x08, "integers only; the result stays at the type's limit")

/*
 * X(name, value, bytes, class, text). Payload is little-endian. A NaN that an ALU operation yields is always the
 * canonical one: quiet, positive, payload zero.
 */
#define NETDAM_TYPE_LIST(X)                                                                                            \
    X(NONE, 0x00, 1, NONE, "bytes")                                                                                    \
    X(U8, 0x01, 1, UNSIGNED, "unsigned 8 bit")                                                                         \
    X(I8, 0x02, 1, SIGNED, "two's complement 8 bit")                                                                   \
    X(U16, 0x03, 2, UNSIGNED, "unsigned 16 bit")                                                                       \
    X(I16, 0x04, 2, SIGNED, "two's complement 16 bit")                                                                 \
    X(U32, 0x05, 4, UNSIGNED, "unsigned 32 bit")                                                                       \
    X(I32, 0x06, 4, SIGNED, "two's complement 32 bit")                                                                 \
    X(U64, 0x07, 8, UNSIGNED, "unsigned 64 bit")                                                                       \
    X(I64, 0x08, 8, SIGNED, "two's complement 64 bit")                                                                 \
    X(F16, 0x09, 2, FLOAT, "IEEE 754 binary16")                                                                        \
    X(BF16, 0x0a, 2, FLOAT, "bfloat16")                                                                                \
    X(F32, 0x0b, 4, FLOAT, "IEEE 754 binary32")                                                                        \
    X(F64, 0x0c, 8, FLOAT, "IEEE 754 binary64")

enum netdam_type_class {
    NETDAM_TYPE_CLASS_NONE = 1,
    NETDAM_TYPE_CLASS_UNSIGNED = 2,
    NETDAM_TYPE_CLASS_SIGNED = 4,
    NETDAM_TYPE_CLASS_FLOAT = 8,
    NETDAM_TYPE_CLASS_INTEGER = NETDAM_TYPE_CLASS_UNSIGNED | NETDAM_TYPE_CLASS_SIGNED,
    NETDAM_TYPE_CLASS_NUMBER = NETDAM_TYPE_CLASS_INTEGER | NETDAM_TYPE_CLASS_FLOAT,
};

#define NETDAM_OP_ENUM(name, value, flags, text) NETDAM_OP_##name = (value),
enum netdam_op { NETDAM_OP_LIST(NETDAM_OP_ENUM) };
#undef NETDAM_OP_ENUM

#define NETDAM_ALU_ENUM(name, value, text) NETDAM_ALU_##name = (value),
enum netdam_alu { NETDAM_ALU_LIST(NETDAM_ALU_ENUM) };
#undef NETDAM_ALU_ENUM

#define NETDAM_TYPE_ENUM(name, value, bytes, class_, text) NETDAM_TYPE_##name = (value),
enum netdam_type { NETDAM_TYPE_LIST(NETDAM_TYPE_ENUM) };
#undef NETDAM_TYPE_ENUM

/*
 * Algebra. Each flag is a claim about two operations of this kind on overlapping memory, bit for bit:
 *   IDEMPOTENT  doing it twice in a row leaves what doing it once leaves
 *   COMMUTES    two of them leave the same memory in either order
 *   ASSOCIATES  two of them may be combined into one before they reach the memory
 * What a fetching operation returns is not part of the claim: only its effect on memory is.
 */
#define NETDAM_ALG_IDEMPOTENT 0x1u
#define NETDAM_ALG_COMMUTES   0x2u
#define NETDAM_ALG_ASSOCIATES 0x4u
#define NETDAM_ALG_LATTICE    (NETDAM_ALG_IDEMPOTENT | NETDAM_ALG_COMMUTES | NETDAM_ALG_ASSOCIATES)
#define NETDAM_ALG_GROUP      (NETDAM_ALG_COMMUTES | NETDAM_ALG_ASSOCIATES)

/*
 * X(opcode, operation, type class, flags). What is not listed is not defined. Sums and products of floats have no flag:
 * (m + a) + b and (m + b) + a round differently.
 */
#define NETDAM_ALGEBRA_LIST(X)                                                                                         \
    X(ECHO, NONE, NONE, NETDAM_ALG_LATTICE)                                                                            \
    X(CONFIRM, NONE, NONE, NETDAM_ALG_LATTICE)                                                                         \
    X(READ, NONE, NONE, NETDAM_ALG_LATTICE)                                                                            \
    X(WRITE, NONE, NONE, NETDAM_ALG_IDEMPOTENT)                                                                        \
    X(SEND, NONE, NONE, 0u)                                                                                            \
    X(REDUCE, SUM, INTEGER, NETDAM_ALG_GROUP)                                                                          \
    X(REDUCE, SUM, FLOAT, 0u)                                                                                          \
    X(REDUCE, PRODUCT, INTEGER, NETDAM_ALG_GROUP)                                                                      \
    X(REDUCE, PRODUCT, FLOAT, 0u)                                                                                      \
    X(REDUCE, MIN, NUMBER, NETDAM_ALG_LATTICE)                                                                         \
    X(REDUCE, MAX, NUMBER, NETDAM_ALG_LATTICE)                                                                         \
    X(REDUCE, AND, INTEGER, NETDAM_ALG_LATTICE)                                                                        \
    X(REDUCE, OR, INTEGER, NETDAM_ALG_LATTICE)                                                                         \
    X(REDUCE, XOR, INTEGER, NETDAM_ALG_GROUP)                                                                          \
    X(REDUCE, SUM_SATURATING, UNSIGNED, NETDAM_ALG_GROUP)                                                              \
    X(REDUCE, SUM_SATURATING, SIGNED, 0u)                                                                              \
    X(FETCH_ADD, NONE, INTEGER, NETDAM_ALG_GROUP)                                                                      \
    X(CAS, NONE, INTEGER, 0u)                                                                                          \
    X(SWAP, NONE, INTEGER, NETDAM_ALG_IDEMPOTENT)                                                                      \
    X(FETCH_OP, SUM, INTEGER, NETDAM_ALG_GROUP)                                                                        \
    X(FETCH_OP, SUM, FLOAT, 0u)                                                                                        \
    X(FETCH_OP, PRODUCT, INTEGER, NETDAM_ALG_GROUP)                                                                    \
    X(FETCH_OP, PRODUCT, FLOAT, 0u)                                                                                    \
    X(FETCH_OP, MIN, NUMBER, NETDAM_ALG_LATTICE)                                                                       \
    X(FETCH_OP, MAX, NUMBER, NETDAM_ALG_LATTICE)                                                                       \
    X(FETCH_OP, AND, INTEGER, NETDAM_ALG_LATTICE)                                                                      \
    X(FETCH_OP, OR, INTEGER, NETDAM_ALG_LATTICE)                                                                       \
    X(FETCH_OP, XOR, INTEGER, NETDAM_ALG_GROUP)                                                                        \
    X(LOAD, NONE, NONE, NETDAM_ALG_LATTICE)                                                                            \
    X(LOAD_REDUCE, SUM, INTEGER, NETDAM_ALG_GROUP)                                                                     \
    X(LOAD_REDUCE, SUM, FLOAT, 0u)                                                                                     \
    X(LOAD_REDUCE, PRODUCT, INTEGER, NETDAM_ALG_GROUP)                                                                 \
    X(LOAD_REDUCE, PRODUCT, FLOAT, 0u)                                                                                 \
    X(LOAD_REDUCE, MIN, NUMBER, NETDAM_ALG_LATTICE)                                                                    \
    X(LOAD_REDUCE, MAX, NUMBER, NETDAM_ALG_LATTICE)                                                                    \
    X(LOAD_REDUCE, AND, INTEGER, NETDAM_ALG_LATTICE)                                                                   \
    X(LOAD_REDUCE, OR, INTEGER, NETDAM_ALG_LATTICE)                                                                    \
    X(LOAD_REDUCE, XOR, INTEGER, NETDAM_ALG_GROUP)                                                                     \
    X(COMPARE, NONE, NONE, NETDAM_ALG_LATTICE)                                                                         \
    X(FORWARD, NONE, NONE, NETDAM_ALG_LATTICE)                                                                         \
    X(TRANSACTION, NONE, NONE, 0u)                                                                                     \
    X(CHAIN, NONE, NONE, 0u)                                                                                           \
    X(ALL_REDUCE, SUM, NUMBER, 0u)                                                                                     \
    X(ALL_REDUCE, PRODUCT, NUMBER, 0u)                                                                                 \
    X(ALL_REDUCE, MIN, NUMBER, 0u)                                                                                     \
    X(ALL_REDUCE, MAX, NUMBER, 0u)                                                                                     \
    X(ALL_REDUCE, AND, INTEGER, 0u)                                                                                    \
    X(ALL_REDUCE, OR, INTEGER, 0u)                                                                                     \
    X(ALL_REDUCE, XOR, INTEGER, 0u)                                                                                    \
    X(REDUCE_SCATTER, SUM, NUMBER, 0u)                                                                                 \
    X(REDUCE_SCATTER, PRODUCT, NUMBER, 0u)                                                                             \
    X(REDUCE_SCATTER, MIN, NUMBER, 0u)                                                                                 \
    X(REDUCE_SCATTER, MAX, NUMBER, 0u)                                                                                 \
    X(REDUCE_SCATTER, AND, INTEGER, 0u)                                                                                \
    X(REDUCE_SCATTER, OR, INTEGER, 0u)                                                                                 \
    X(REDUCE_SCATTER, XOR, INTEGER, 0u)                                                                                \
    X(ALL_GATHER, NONE, NONE, 0u)                                                                                      \
    X(BROADCAST, NONE, NONE, 0u)                                                                                       \
    X(BARRIER, NONE, NONE, 0u)

/* Flags of an opcode (NETDAM_OPF_*), or 0 if it is not defined. */
static inline unsigned netdam_op_flags(unsigned opcode)
{
    switch (opcode) {
#define NETDAM_OP_CASE(name, value, flags, text)                                                                       \
    case value:                                                                                                        \
        return (flags);
        NETDAM_OP_LIST(NETDAM_OP_CASE)
#undef NETDAM_OP_CASE
    default:
        return 0;
    }
}

/* True if `opcode` is in the list; FORWARD and the like have few flags, so the flags alone do not tell. */
static inline bool netdam_op_is_defined(unsigned opcode)
{
    return netdam_op_flags(opcode) != 0;
}

/* Bytes of one element, or 0 if the type is not defined. */
static inline unsigned netdam_type_bytes(unsigned type)
{
    switch (type) {
#define NETDAM_TYPE_CASE(name, value, bytes, class_, text)                                                             \
    case value:                                                                                                        \
        return (bytes);
        NETDAM_TYPE_LIST(NETDAM_TYPE_CASE)
#undef NETDAM_TYPE_CASE
    default:
        return 0;
    }
}

/* True if `bytes`, a length or an address, is a multiple of the type's size. */
static inline bool netdam_is_whole(uint64_t bytes, unsigned type)
{
    unsigned element = netdam_type_bytes(type);

    return element != 0 && (bytes & (element - 1)) == 0; /* sizes are powers of two */
}

/* enum netdam_type_class of a type, or 0 if the type is not defined. */
static inline unsigned netdam_type_class_of(unsigned type)
{
    switch (type) {
#define NETDAM_TYPE_CASE(name, value, bytes, class_, text)                                                             \
    case value:                                                                                                        \
        return NETDAM_TYPE_CLASS_##class_;
        NETDAM_TYPE_LIST(NETDAM_TYPE_CASE)
#undef NETDAM_TYPE_CASE
    default:
        return 0;
    }
}

static inline bool netdam_alu_is_defined(unsigned operation)
{
    return operation <= NETDAM_ALU_SUM_SATURATING;
}

#define NETDAM_ALGEBRA_KEY(opcode, operation, class_) ((opcode) << 8 | (operation) << 4 | (class_))
#define NETDAM_ALGEBRA_CASE(opcode, operation, class_)                                                                 \
    case NETDAM_ALGEBRA_KEY((unsigned)NETDAM_OP_##opcode, (unsigned)NETDAM_ALU_##operation,                            \
                            (unsigned)NETDAM_TYPE_CLASS_##class_):
/* A case for each class that a row of the list stands for. What two rows define does not compile. */
#define NETDAM_ALGEBRA_NONE(opcode, operation)     NETDAM_ALGEBRA_CASE(opcode, operation, NONE)
#define NETDAM_ALGEBRA_UNSIGNED(opcode, operation) NETDAM_ALGEBRA_CASE(opcode, operation, UNSIGNED)
#define NETDAM_ALGEBRA_SIGNED(opcode, operation)   NETDAM_ALGEBRA_CASE(opcode, operation, SIGNED)
#define NETDAM_ALGEBRA_FLOAT(opcode, operation)    NETDAM_ALGEBRA_CASE(opcode, operation, FLOAT)
#define NETDAM_ALGEBRA_INTEGER(opcode, operation)                                                                      \
    NETDAM_ALGEBRA_UNSIGNED(opcode, operation) NETDAM_ALGEBRA_SIGNED(opcode, operation)
#define NETDAM_ALGEBRA_NUMBER(opcode, operation)                                                                       \
    NETDAM_ALGEBRA_INTEGER(opcode, operation) NETDAM_ALGEBRA_FLOAT(opcode, operation)
#define NETDAM_ALGEBRA_ROW(opcode, operation, class_, flags)                                                           \
    NETDAM_ALGEBRA_##class_(opcode, operation) return (int)(flags);

/* Returns NETDAM_ALG_* flags of (opcode, operation, type), or -1 if the combination is not defined. */
static inline int netdam_algebra(unsigned opcode, unsigned operation, unsigned type)
{
    if (opcode > UINT8_MAX || !netdam_alu_is_defined(operation)) {
        return -1;
    }
    switch (NETDAM_ALGEBRA_KEY(opcode, operation, netdam_type_class_of(type))) {
        NETDAM_ALGEBRA_LIST(NETDAM_ALGEBRA_ROW)
    default:
        return -1;
    }
}

#undef NETDAM_ALGEBRA_KEY
#undef NETDAM_ALGEBRA_CASE
#undef NETDAM_ALGEBRA_NONE
#undef NETDAM_ALGEBRA_UNSIGNED
#undef NETDAM_ALGEBRA_SIGNED
#undef NETDAM_ALGEBRA_FLOAT
#undef NETDAM_ALGEBRA_INTEGER
#undef NETDAM_ALGEBRA_NUMBER
#undef NETDAM_ALGEBRA_ROW

#endif
