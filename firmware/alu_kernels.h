/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ALU's arithmetic: one plain loop per operation and type, for the compiler to vectorize with the instructions that
 * the including file allows. It defines ALU_LEVEL, a name, and ALU_F16C or ALU_AVX512 if there are instructions for
 * halves, and gets the functions of that level. All levels give the same bits.
 */
#ifndef ALU_LEVEL
#error "to be included by one file per level"
#endif

#define CANONICAL_NAN_F16  0x7e00u
#define CANONICAL_NAN_BF16 0x7fc0u
#define CANONICAL_NAN_F32  0x7fc00000u
#define CANONICAL_NAN_F64  UINT64_C(0x7ff8000000000000)

static inline float f32_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t bits_of_f32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline double f64_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t bits_of_f64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Sums and products round once, and a NaN is always the canonical one. */
#define ROUNDING_FUNCTIONS(name, bits_type, of, bits_of, canonical)                                                    \
    static inline bits_type name##_sum(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        bits_type r = bits_of(of(a) + of(b));                                                                          \
        return of(r) != of(r) ? (bits_type)(canonical) : r;                                                            \
    }                                                                                                                  \
    static inline bits_type name##_product(bits_type a, bits_type b)                                                   \
    {                                                                                                                  \
        bits_type r = bits_of(of(a) * of(b));                                                                          \
        return of(r) != of(r) ? (bits_type)(canonical) : r;                                                            \
    }

/* Equal values differ in sign only if they are zeros: OR keeps the minus, AND drops it. */
#define FLOAT_CHOICES(name, bits_type, of, canonical)                                                                  \
    static inline bits_type name##_min(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        bits_type r = (bits_type)((of(a) < of(b) ? a : b) | (of(b) < of(a) ? b : a));                                  \
        return of(a) != of(a) || of(b) != of(b) ? (bits_type)(canonical) : r;                                          \
    }                                                                                                                  \
    static inline bits_type name##_max(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        bits_type r = (bits_type)((of(a) > of(b) ? a : b) & (of(b) > of(a) ? b : a));                                  \
        return of(a) != of(a) || of(b) != of(b) ? (bits_type)(canonical) : r;                                          \
    }

ROUNDING_FUNCTIONS(f32, uint32_t, f32_of, bits_of_f32, CANONICAL_NAN_F32)
ROUNDING_FUNCTIONS(f64, uint64_t, f64_of, bits_of_f64, CANONICAL_NAN_F64)
FLOAT_CHOICES(f32, uint32_t, f32_of, CANONICAL_NAN_F32)
FLOAT_CHOICES(f64, uint64_t, f64_of, CANONICAL_NAN_F64)

/* Signed integers in the order of the halves whose bits they are, -0 below +0; its own inverse. */
static inline int16_t half_order(uint16_t half)
{
    return (int16_t)(half ^ ((uint16_t)((int16_t)half >> 15) & 0x7fffu));
}

#define HALF_CHOICES(name, infinity, canonical)                                                                        \
    static inline uint16_t name##_min(uint16_t a, uint16_t b)                                                          \
    {                                                                                                                  \
        uint16_t r = half_order(a) < half_order(b) ? a : b;                                                            \
        bool is_nan = ((a & 0x7fff) > (infinity)) | ((b & 0x7fff) > (infinity));                                       \
        return is_nan ? (uint16_t)(canonical) : r;                                                                     \
    }                                                                                                                  \
    static inline uint16_t name##_max(uint16_t a, uint16_t b)                                                          \
    {                                                                                                                  \
        uint16_t r = half_order(a) > half_order(b) ? a : b;                                                            \
        bool is_nan = ((a & 0x7fff) > (infinity)) | ((b & 0x7fff) > (infinity));                                       \
        return is_nan ? (uint16_t)(canonical) : r;                                                                     \
    }

HALF_CHOICES(f16, 0x7c00, CANONICAL_NAN_F16)
HALF_CHOICES(bf16, 0x7f80, CANONICAL_NAN_BF16)

/*
 * Halves are computed in binary32: it has more than twice their digits and two to spare, so that rounding twice gives
 * what rounding once gives (for sums and products). Masks choose, not branches: both sides are computed anyway.
 */
static inline uint32_t mask_if(bool condition)
{
    return 0u - (uint32_t)condition;
}

static inline float f16_value(uint16_t half)
{
    uint32_t magnitude = half & 0x7fffu;
    uint32_t normal = (magnitude << 13) + 0x38000000u + (mask_if(magnitude >= 0x7c00u) & 0x38000000u);
    uint32_t small = bits_of_f32((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t is_small = mask_if(magnitude < 0x0400u);

    return f32_of((uint32_t)(half & 0x8000u) << 16 | (small & is_small) | (normal & ~is_small));
}

/* To the nearest, ties to even. */
static inline uint16_t f16_bits(float value)
{
    uint32_t bits = bits_of_f32(value);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    /* Below the smallest normal half: adding 0.5 leaves, rounded, the multiple of 2^-24 in the low bits. */
    uint32_t small = bits_of_f32(f32_of(magnitude) + 0.5f) - bits_of_f32(0.5f);
    uint32_t is_small = mask_if(magnitude < 0x38800000u);
    uint32_t is_large = mask_if(magnitude >= 0x477ff000u); /* half a step above the greatest finite half */
    uint32_t is_nan = mask_if(magnitude > 0x7f800000u);
    uint32_t half = (small & is_small) | (normal & ~is_small & ~is_large) | (0x7c00u & is_large);

    return (uint16_t)(((bits >> 16 & 0x8000u) | half) & ~is_nan) | (uint16_t)(CANONICAL_NAN_F16 & is_nan);
}

static inline float bf16_value(uint16_t half)
{
    return f32_of((uint32_t)half << 16);
}

static inline uint16_t bf16_bits(float value)
{
    uint32_t bits = bits_of_f32(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;

    return (uint16_t)(value != value ? CANONICAL_NAN_BF16 : rounded);
}

#define HALF_FUNCTIONS(name)                                                                                           \
    static inline uint16_t name##_sum(uint16_t a, uint16_t b)                                                          \
    {                                                                                                                  \
        return name##_bits(name##_value(a) + name##_value(b));                                                         \
    }                                                                                                                  \
    static inline uint16_t name##_product(uint16_t a, uint16_t b)                                                      \
    {                                                                                                                  \
        return name##_bits(name##_value(a) * name##_value(b));                                                         \
    }

HALF_FUNCTIONS(f16)
HALF_FUNCTIONS(bf16)

/* Sums and products wrap: unsigned arithmetic, cut to the width. */
#define INTEGER_FUNCTIONS(name, bits_type, value_type)                                                                 \
    static inline bits_type name##_sum(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return (bits_type)(a + b);                                                                                     \
    }                                                                                                                  \
    static inline bits_type name##_product(bits_type a, bits_type b)                                                   \
    {                                                                                                                  \
        return (bits_type)(1u * a * b);                                                                                \
    }                                                                                                                  \
    static inline bits_type name##_min(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return (value_type)a < (value_type)b ? a : b;                                                                  \
    }                                                                                                                  \
    static inline bits_type name##_max(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return (value_type)a > (value_type)b ? a : b;                                                                  \
    }                                                                                                                  \
    static inline bits_type name##_and(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return a & b;                                                                                                  \
    }                                                                                                                  \
    static inline bits_type name##_or(bits_type a, bits_type b)                                                        \
    {                                                                                                                  \
        return a | b;                                                                                                  \
    }                                                                                                                  \
    static inline bits_type name##_xor(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return a ^ b;                                                                                                  \
    }

INTEGER_FUNCTIONS(u8, uint8_t, uint8_t)
INTEGER_FUNCTIONS(i8, uint8_t, int8_t)
INTEGER_FUNCTIONS(u16, uint16_t, uint16_t)
INTEGER_FUNCTIONS(i16, uint16_t, int16_t)
INTEGER_FUNCTIONS(u32, uint32_t, uint32_t)
INTEGER_FUNCTIONS(i32, uint32_t, int32_t)
INTEGER_FUNCTIONS(u64, uint64_t, uint64_t)
INTEGER_FUNCTIONS(i64, uint64_t, int64_t)

/* Sums that stay at the limit. A signed sum overflows if both signs differ from its own; it had the sign of either. */
#define SATURATING_UNSIGNED(name, bits_type)                                                                           \
    static inline bits_type name##_saturating(bits_type a, bits_type b)                                                \
    {                                                                                                                  \
        bits_type sum = (bits_type)(a + b);                                                                            \
        return sum < a ? (bits_type)UINT64_MAX : sum;                                                                  \
    }
#define SATURATING_SIGNED(name, bits_type, value_type, high)                                                           \
    static inline bits_type name##_saturating(bits_type a, bits_type b)                                                \
    {                                                                                                                  \
        bits_type sum = (bits_type)(a + b);                                                                            \
        bits_type limit = (bits_type)((value_type)a < 0 ? (bits_type)(high) + 1u : (bits_type)(high));                 \
        return (value_type)(bits_type)((a ^ sum) & (b ^ sum)) < 0 ? limit : sum;                                       \
    }

SATURATING_UNSIGNED(u8, uint8_t)
SATURATING_UNSIGNED(u16, uint16_t)
SATURATING_UNSIGNED(u32, uint32_t)
SATURATING_UNSIGNED(u64, uint64_t)
SATURATING_SIGNED(i8, uint8_t, int8_t, INT8_MAX)
SATURATING_SIGNED(i16, uint16_t, int16_t, INT16_MAX)
SATURATING_SIGNED(i32, uint32_t, int32_t, INT32_MAX)
SATURATING_SIGNED(i64, uint64_t, int64_t, INT64_MAX)

/* X(operation, type, function prefix, function, bits type) */
#define INTEGER_KERNELS(X, TYPE, name, bits_type)                                                                      \
    X(SUM, TYPE, name, sum, bits_type)                                                                                 \
    X(PRODUCT, TYPE, name, product, bits_type)                                                                         \
    X(MIN, TYPE, name, min, bits_type)                                                                                 \
    X(MAX, TYPE, name, max, bits_type)                                                                                 \
    X(AND, TYPE, name, and, bits_type)                                                                                 \
    X(OR, TYPE, name, or, bits_type)                                                                                   \
    X(XOR, TYPE, name, xor, bits_type)                                                                                 \
    X(SUM_SATURATING, TYPE, name, saturating, bits_type)

#define FLOAT_KERNELS(X, TYPE, name, bits_type)                                                                        \
    X(SUM, TYPE, name, sum, bits_type)                                                                                 \
    X(PRODUCT, TYPE, name, product, bits_type)                                                                         \
    X(MIN, TYPE, name, min, bits_type)                                                                                 \
    X(MAX, TYPE, name, max, bits_type)

#define PLAIN_KERNELS(X)                                                                                               \
    INTEGER_KERNELS(X, U8, u8, uint8_t)                                                                                \
    INTEGER_KERNELS(X, I8, i8, uint8_t)                                                                                \
    INTEGER_KERNELS(X, U16, u16, uint16_t)                                                                             \
    INTEGER_KERNELS(X, I16, i16, uint16_t)                                                                             \
    INTEGER_KERNELS(X, U32, u32, uint32_t)                                                                             \
    INTEGER_KERNELS(X, I32, i32, uint32_t)                                                                             \
    INTEGER_KERNELS(X, U64, u64, uint64_t)                                                                             \
    INTEGER_KERNELS(X, I64, i64, uint64_t)                                                                             \
    X(MIN, F16, f16, min, uint16_t)                                                                                    \
    X(MAX, F16, f16, max, uint16_t)                                                                                    \
    FLOAT_KERNELS(X, BF16, bf16, uint16_t)                                                                             \
    FLOAT_KERNELS(X, F32, f32, uint32_t)                                                                               \
    FLOAT_KERNELS(X, F64, f64, uint64_t)

#define F16_KERNELS(X)                                                                                                 \
    X(SUM, F16, f16, sum, uint16_t)                                                                                    \
    X(PRODUCT, F16, f16, product, uint16_t)

/*
 * Many halves at once, with the instructions that convert them; NaNs are made canonical before they are cut. Returns
 * how many elements it has done, from the first on: the rest is left to the plain loop.
 */
#if defined(ALU_AVX512)
#define HALVES         16u
#define halves_sum     _mm512_add_ps
#define halves_product _mm512_mul_ps

static inline __m512 halves_load(const uint8_t *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)(const void *)from));
}

static inline void halves_store(uint8_t *to, __m512 values)
{
    __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32((int)CANONICAL_NAN_F32));
    __m512 clean = _mm512_mask_mov_ps(values, _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q), nan);

    _mm256_storeu_si256((__m256i_u *)(void *)to, _mm512_cvtps_ph(clean, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(ALU_F16C)
#define HALVES         8u
#define halves_sum     _mm256_add_ps
#define halves_product _mm256_mul_ps

static inline __m256 halves_load(const uint8_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(const void *)from));
}

static inline void halves_store(uint8_t *to, __m256 values)
{
    __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32((int)CANONICAL_NAN_F32));
    __m256 clean = _mm256_blendv_ps(values, nan, _mm256_cmp_ps(values, values, _CMP_UNORD_Q));

    _mm_storeu_si128((__m128i_u *)(void *)to, _mm256_cvtps_ph(clean, _MM_FROUND_TO_NEAREST_INT));
}
#endif

#if defined(HALVES)
#define HALVES_FUNCTION(function)                                                                                      \
    static inline size_t many_f16_##function(uint8_t *to, const uint8_t *a, const uint8_t *b, size_t count)            \
    {                                                                                                                  \
        size_t done = 0;                                                                                               \
        for (; count - done >= HALVES; done += HALVES) {                                                               \
            halves_store(to + 2 * done, halves_##function(halves_load(a + 2 * done), halves_load(b + 2 * done)));      \
        }                                                                                                              \
        return done;                                                                                                   \
    }
HALVES_FUNCTION(sum)
HALVES_FUNCTION(product)
#else
#define many_f16_sum     none
#define many_f16_product none
#endif

static inline size_t none(uint8_t *to, const uint8_t *a, const uint8_t *b, size_t count)
{
    (void)to, (void)a, (void)b, (void)count;
    return 0;
}

/* Where the result overwrites an operand it does so element by element: no iteration needs what another has stored. */
#if defined(__clang__)
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* On-board memory is aligned to the element, so that each element is one access; the frame's bytes lie anywhere. */
#define LOOPS(many, name, function, bits_type)                                                                         \
    static void reduce_##name##_##function(uint8_t *restrict memory, const uint8_t *restrict operand, size_t count)    \
    {                                                                                                                  \
        bits_type *elements = (bits_type *)(void *)memory;                                                             \
        for (size_t i = many(memory, memory, operand, count); i < count; i++) {                                        \
            bits_type value;                                                                                           \
            memcpy(&value, operand + i * sizeof(value), sizeof(value));                                                \
            elements[i] = name##_##function(elements[i], value);                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void into_##name##_##function(uint8_t *to, const uint8_t *payload, const uint8_t *memory, size_t count)     \
    {                                                                                                                  \
        const bits_type *elements = (const bits_type *)(const void *)memory;                                           \
        size_t start = many(to, payload, memory, count);                                                               \
        INDEPENDENT                                                                                                    \
        for (size_t i = start; i < count; i++) {                                                                       \
            bits_type value;                                                                                           \
            memcpy(&value, payload + i * sizeof(value), sizeof(value));                                                \
            value = name##_##function(value, elements[i]);                                                             \
            memcpy(to + i * sizeof(value), &value, sizeof(value));                                                     \
        }                                                                                                              \
    }
#define PLAIN_LOOPS(OPERATION, TYPE, name, function, bits_type) LOOPS(none, name, function, bits_type)
#define F16_LOOPS(OPERATION, TYPE, name, function, bits_type)   LOOPS(many_f16_##function, name, function, bits_type)
PLAIN_KERNELS(PLAIN_LOOPS)
F16_KERNELS(F16_LOOPS)

#define LEVEL_FUNCTION_(prefix, level) prefix##level
#define LEVEL_FUNCTION(prefix, level)  LEVEL_FUNCTION_(prefix, level)

void LEVEL_FUNCTION(ndfw_alu_reduce_, ALU_LEVEL)(uint8_t *memory, const uint8_t *operand, size_t bytes,
                                                 unsigned operation, unsigned type)
{
    switch (operation << 8 | type) {
#define REDUCE_CASE(OPERATION, TYPE, name, function, bits_type)                                                        \
    case NETDAM_ALU_##OPERATION << 8 | NETDAM_TYPE_##TYPE:                                                             \
        reduce_##name##_##function(memory, operand, bytes / sizeof(bits_type));                                        \
        break;
        PLAIN_KERNELS(REDUCE_CASE)
        F16_KERNELS(REDUCE_CASE)
    default:
        break;
    }
}

void LEVEL_FUNCTION(ndfw_alu_into_, ALU_LEVEL)(uint8_t *to, const uint8_t *payload, const uint8_t *memory, size_t bytes,
                                               unsigned operation, unsigned type)
{
    switch (operation << 8 | type) {
#define INTO_CASE(OPERATION, TYPE, name, function, bits_type)                                                          \
    case NETDAM_ALU_##OPERATION << 8 | NETDAM_TYPE_##TYPE:                                                             \
        into_##name##_##function(to, payload, memory, bytes / sizeof(bits_type));                                      \
        break;
        PLAIN_KERNELS(INTO_CASE)
        F16_KERNELS(INTO_CASE)
    default:
        break;
    }
}
