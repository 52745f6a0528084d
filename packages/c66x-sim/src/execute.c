// What the instructions do (SPRUFE8, chapter 3), one function each; isa.def names them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A function reads its sources at once and leaves its results to arrive after their delay slots.
// Floating point is the host's IEEE arithmetic, rounding to nearest: the C66x's has subnormal
// numbers as zero, which is not modelled. A result that is not a number is the manual's.
#include "caches.h"
#include "core.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define NAN_DP UINT64_C(0x7fffffffffffffff)
#define NAN_SP UINT32_C(0x7fffffff)

enum { SATURATED = 1 << 9, INTERRUPTS_ON = 1 }; // of CSR

typedef struct c66x_core core_t;
typedef const struct c66x_step step_t;

// -- results -------------------------------------------------------------------------------------

static inline struct c66x_slot *slot_after(core_t *core, unsigned delay) {
    unsigned index = (unsigned)(core->cycle + 1 + delay) % C66X_SLOTS;
    core->slots_in_use |= 1u << index;
    return &core->slots[index];
}

static inline void add(struct c66x_slot *slot, uint8_t reg, uint32_t value) {
    *slot->end++ = (struct c66x_write){value, reg};
}

static inline void put_at(core_t *core, unsigned delay, uint8_t reg, uint32_t value) {
    add(slot_after(core, delay), reg, value);
}

static inline void put(core_t *core, step_t *step, uint32_t value) {
    if (step->at_once)
        core->regs[step->result] = value;
    else
        put_at(core, step->delay, step->result, value);
}

// A pair whose words arrive together.
static inline void put_pair(core_t *core, step_t *step, uint64_t value) {
    struct c66x_slot *slot = slot_after(core, step->delay);
    add(slot, step->result, (uint32_t)value);
    add(slot, step->result + 1u, (uint32_t)(value >> 32));
}

// A pair whose high word arrives a cycle after the low one.
static inline void put_late_pair(core_t *core, step_t *step, uint64_t value) {
    put_at(core, step->delay - 1u, step->result, (uint32_t)value);
    put_at(core, step->delay, step->result + 1u, (uint32_t)(value >> 32));
}

// 40 bits: the other bits of the high word are zero.
static inline void put_long(core_t *core, step_t *step, int64_t value) {
    put_pair(core, step, (uint64_t)value & 0xffffffffff);
}

static inline uint64_t pair(const uint32_t *words) {
    return words[0] | (uint64_t)words[1] << 32;
}

static inline int64_t long_value(const uint32_t *words) { // 40 bits, signed
    return (int64_t)(pair(words) << 24) >> 24;
}

static int64_t saturate(core_t *core, int64_t value, unsigned bits) {
    int64_t most = (INT64_C(1) << (bits - 1)) - 1;
    if (value >= -most - 1 && value <= most)
        return value;
    core->control[C66X_CSR] |= SATURATED;
    return value < 0 ? -most - 1 : most;
}

static inline double dp(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t dp_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? NAN_DP : bits;
}

static inline float sp(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t sp_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? NAN_SP : bits;
}

// -- shapes of functions -------------------------------------------------------------------------

// 32-bit result of unsigned words a and b.
#define WORD(name, expression)                                                                     \
    static void do_##name(core_t *core, step_t *step) {                                            \
        uint32_t a = step->a[0], b = step->b[0];                                                   \
        (void)a, (void)b;                                                                          \
        put(core, step, (uint32_t)(expression));                                                   \
    }
// The same of signed words, widened so that nothing overflows.
#define SIGNED(name, expression)                                                                   \
    static void do_##name(core_t *core, step_t *step) {                                            \
        int64_t a = (int32_t)step->a[0], b = (int32_t)step->b[0];                                  \
        (void)a, (void)b;                                                                          \
        put(core, step, (uint32_t)(expression));                                                   \
    }
// Two results of signed or unsigned halfwords, or four of bytes: `expression` of a and b.
#define EACH(name, type, lanes, expression)                                                        \
    static void do_##name(core_t *core, step_t *step) {                                            \
        uint32_t value = 0;                                                                        \
        for (unsigned lane = 0; lane < (lanes); lane++) {                                          \
            unsigned at = lane * 32 / (lanes);                                                     \
            int32_t a = (type)(step->a[0] >> at), b = (type)(step->b[0] >> at);                    \
            (void)b;                                                                               \
            value |= ((uint32_t)(expression) & (UINT32_MAX >> (32 - 32 / (lanes)))) << at;         \
        }                                                                                          \
        put(core, step, value);                                                                    \
    }
// One bit a lane.
#define COMPARE_EACH(name, type, lanes, operator)                                                  \
    static void do_##name(core_t *core, step_t *step) {                                            \
        uint32_t value = 0;                                                                        \
        for (unsigned lane = 0; lane < (lanes); lane++) {                                          \
            unsigned at = lane * 32 / (lanes);                                                     \
            value |= (uint32_t)((type)(step->a[0] >> at) operator(type)(step->b[0] >> at))         \
                     << lane;                                                                      \
        }                                                                                          \
        put(core, step, value);                                                                    \
    }
// 64-bit result of words.
#define WIDE(name, type_a, type_b, expression)                                                     \
    static void do_##name(core_t *core, step_t *step) {                                            \
        int64_t a = (type_a)step->a[0], b = (type_b)step->b[0];                                    \
        put_pair(core, step, (uint64_t)(expression));                                              \
    }
// 40-bit result; `first` and `second` make the sources.
#define LONG(name, first, second, expression)                                                      \
    static void do_##name(core_t *core, step_t *step) {                                            \
        int64_t a = (first), b = (second);                                                         \
        (void)b;                                                                                   \
        put_long(core, step, expression);                                                          \
    }
#define COMPARE_LONG(name, first, mask, operator)                                                  \
    static void do_##name(core_t *core, step_t *step) {                                            \
        int64_t a = (first), b = long_value(step->b) & (mask);                                     \
        put(core, step, a operator b);                                                             \
    }
#define A_SIGNED   ((int32_t)step->a[0])
#define A_UNSIGNED ((int64_t)step->a[0])
#define B_SIGNED   ((int32_t)step->b[0])
#define B_UNSIGNED ((int64_t)step->b[0])
#define A_LONG     long_value(step->a)
#define B_LONG     long_value(step->b)
#define UNSIGNED40 INT64_C(0xffffffffff)

#define LOW(word)     ((int16_t)(word))
#define HIGH(word)    ((int16_t)((word) >> 16))
#define ULOW(word)    ((uint16_t)(word))
#define UHIGH(word)   ((uint16_t)((word) >> 16))
#define BYTE(word, n) ((word) >> (8 * (n)) & 0xff)

// -- words ---------------------------------------------------------------------------------------

WORD(move, a)
WORD(add, a + b)
WORD(sub, a - b)
WORD(and, a &b)
WORD(or, a | b)
WORD(xor, a ^ b)
WORD(andn, a & ~b)
WORD(cmpeq, a == b)
SIGNED(cmpgt, a > b)
SIGNED(cmplt, a < b)
WORD(cmpgtu, a > b)
WORD(cmpltu, a < b)
WORD(subc, a >= b ? ((a - b) << 1) + 1 : a << 1)
SIGNED(abs, saturate(core, a < 0 ? -a : a, 32))
SIGNED(sadd, saturate(core, a + b, 32))
SIGNED(ssub, saturate(core, a - b, 32))
WORD(addab, a + b)
WORD(subab, a - b)
WORD(addah, a + (b << 1))
WORD(subah, a - (b << 1))
WORD(addaw, a + (b << 2))
WORD(subaw, a - (b << 2))
WORD(addad, a + (b << 3))
WORD(addk, core->regs[step->result] + a)
WORD(mvkh, (core->regs[step->result] & 0xffff) | a)

static unsigned leading_zeros(uint64_t value, unsigned bits) {
    return value ? (unsigned)__builtin_clzll(value) - (64 - bits) : bits;
}

// Sign bits that are not needed.
static unsigned norm(int64_t value, unsigned bits) {
    uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
    return leading_zeros(magnitude, bits) - 1;
}

SIGNED(norm, norm(a, 32))
WORD(lmbd, leading_zeros(a & 1 ? b : (uint32_t)~b, 32))

static void do_norm_long(core_t *core, step_t *step) {
    put(core, step, norm(long_value(step->a), 40));
}

// -- shifts and bit fields -----------------------------------------------------------------------

static uint32_t shift_count(step_t *step, uint32_t most) {
    uint32_t count = step->b[0] & 63;
    return count < most ? count : most;
}

WORD(shl, (uint64_t)a << shift_count(step, 32))
WORD(shru, (uint64_t)a >> shift_count(step, 32))
SIGNED(shr, a >> shift_count(step, 32))
SIGNED(sshl, saturate(core, a *(INT64_C(1) << (b & 31)), 32))
WORD(rotl, a << (b & 31) | a >> ((32 - (b & 31)) & 31))
LONG(shl_to_long, A_SIGNED, 0, (int64_t)((uint64_t)a << shift_count(step, 40)))
LONG(shl_long, A_LONG, 0, (int64_t)((uint64_t)a << shift_count(step, 40)))
LONG(shr_long, A_LONG, 0, a >> shift_count(step, 40))
LONG(shru_long, A_LONG &UNSIGNED40, 0, a >> shift_count(step, 40))

// The field's two numbers, as a register holds them: left shift and right shift, or first and last.
static uint32_t field_a(uint32_t b) {
    return b >> 5 & 31;
}
static uint32_t field_b(uint32_t b) {
    return b & 31;
}
static uint32_t field_mask(uint32_t b) {
    uint32_t first = field_a(b), last = field_b(b);
    return first <= last ? (UINT32_MAX >> (31 - (last - first))) << first : 0;
}

WORD(ext, (int32_t)(a << field_a(b)) >> field_b(b))
WORD(extu, a << field_a(b) >> field_b(b))
WORD(set, a | field_mask(b))
WORD(clr, a & ~field_mask(b))

// -- 40-bit numbers ------------------------------------------------------------------------------

LONG(add_long, A_SIGNED, B_LONG, a + b)
LONG(sub_long, A_SIGNED, B_LONG, a - b)
LONG(addu_long, A_UNSIGNED, B_LONG, a + b)
LONG(add_to_long, A_SIGNED, B_SIGNED, a + b)
LONG(sub_to_long, A_SIGNED, B_SIGNED, a - b)
LONG(addu_to_long, A_UNSIGNED, B_UNSIGNED, a + b)
LONG(subu_to_long, A_UNSIGNED, B_UNSIGNED, a - b)
LONG(sadd_long, A_SIGNED, B_LONG, saturate(core, a + b, 40))
LONG(ssub_long, A_SIGNED, B_LONG, saturate(core, a - b, 40))
LONG(abs_long, A_LONG, 0, saturate(core, a < 0 ? -a : a, 40))
COMPARE_LONG(cmpeq_long, A_SIGNED, -1, ==)
COMPARE_LONG(cmpgt_long, A_SIGNED, -1, >)
COMPARE_LONG(cmplt_long, A_SIGNED, -1, <)
COMPARE_LONG(cmpgtu_long, A_UNSIGNED, UNSIGNED40, >)
COMPARE_LONG(cmpltu_long, A_UNSIGNED, UNSIGNED40, <)

static void do_sat(core_t *core, step_t *step) {
    put(core, step, (uint32_t)saturate(core, long_value(step->a), 32));
}

// -- halfwords and bytes -------------------------------------------------------------------------

EACH(add2, int16_t, 2, a + b)
EACH(sub2, int16_t, 2, a - b)
EACH(add4, uint8_t, 4, a + b)
EACH(sub4, uint8_t, 4, a - b)
EACH(sadd2, int16_t, 2, saturate(core, a + b, 16))
EACH(ssub2, int16_t, 2, saturate(core, a - b, 16))
EACH(saddu4, uint8_t, 4, a + b > 255 ? 255 : a + b)
EACH(abs2, int16_t, 2, saturate(core, a < 0 ? -a : a, 16))
EACH(subabs4, uint8_t, 4, a < b ? b - a : a - b)
EACH(min2, int16_t, 2, a < b ? a : b)
EACH(max2, int16_t, 2, a > b ? a : b)
EACH(minu4, uint8_t, 4, a < b ? a : b)
EACH(maxu4, uint8_t, 4, a > b ? a : b)
EACH(avg2, int16_t, 2, (a + b + 1) >> 1)
EACH(avgu4, uint8_t, 4, (a + b + 1) >> 1)
EACH(bitc4, uint8_t, 4, __builtin_popcount((unsigned)a))
EACH(shr2, int16_t, 2, a >> (step->b[0] & 31))
EACH(shru2, uint16_t, 2, a >> (step->b[0] & 31))
COMPARE_EACH(cmpeq2, int16_t, 2, ==)
COMPARE_EACH(cmpgt2, int16_t, 2, >)
COMPARE_EACH(cmpeq4, uint8_t, 4, ==)
COMPARE_EACH(cmpgtu4, uint8_t, 4, >)

static uint32_t halves(int32_t high, int32_t low) {
    return (uint32_t)high << 16 | (uint16_t)low;
}

static uint32_t bytes(uint32_t b3, uint32_t b2, uint32_t b1, uint32_t b0) {
    return b3 << 24 | b2 << 16 | b1 << 8 | b0;
}

static int32_t unsigned_saturate(int32_t value, int32_t most) {
    return value < 0 ? 0 : value > most ? most : value;
}

WORD(pack2, halves(LOW(a), LOW(b)))
WORD(packh2, halves(HIGH(a), HIGH(b)))
WORD(packlh2, halves(LOW(a), HIGH(b)))
WORD(packhl2, halves(HIGH(a), LOW(b)))
WORD(packl4, bytes(BYTE(a, 2), BYTE(a, 0), BYTE(b, 2), BYTE(b, 0)))
WORD(packh4, bytes(BYTE(a, 3), BYTE(a, 1), BYTE(b, 3), BYTE(b, 1)))
WORD(unpklu4, bytes(0, BYTE(a, 1), 0, BYTE(a, 0)))
WORD(unpkhu4, bytes(0, BYTE(a, 3), 0, BYTE(a, 2)))
WORD(swap4, bytes(BYTE(a, 2), BYTE(a, 3), BYTE(a, 0), BYTE(a, 1)))
WORD(shlmb, b << 8 | a >> 24)
WORD(shrmb, b >> 8 | a << 24)
WORD(xpnd2, halves(a & 2 ? -1 : 0, a & 1 ? -1 : 0))
WORD(xpnd4, bytes(a & 8 ? 255 : 0, a & 4 ? 255 : 0, a & 2 ? 255 : 0, a & 1 ? 255 : 0))
WORD(spack2,
     halves((int32_t)saturate(core, (int32_t)a, 16), (int32_t)saturate(core, (int32_t)b, 16)))
WORD(spacku4,
     bytes((uint32_t)unsigned_saturate(HIGH(a), 255), (uint32_t)unsigned_saturate(LOW(a), 255),
           (uint32_t)unsigned_saturate(HIGH(b), 255), (uint32_t)unsigned_saturate(LOW(b), 255)))
WORD(saddus2, halves(unsigned_saturate(UHIGH(a) + HIGH(b), 0xffff),
                     unsigned_saturate(ULOW(a) + LOW(b), 0xffff)))

static void do_dpack2(core_t *core, step_t *step) {
    uint32_t a = step->a[0], b = step->b[0];
    put_pair(core, step, halves(LOW(a), LOW(b)) | (uint64_t)halves(HIGH(a), HIGH(b)) << 32);
}

static void do_dmv(core_t *core, step_t *step) {
    put_pair(core, step, step->b[0] | (uint64_t)step->a[0] << 32);
}

// Sum to the odd register, difference to the even one.
static void do_addsub(core_t *core, step_t *step) {
    uint32_t a = step->a[0], b = step->b[0];
    put_pair(core, step, (a - b) | (uint64_t)(a + b) << 32);
}

static void do_saddsub(core_t *core, step_t *step) {
    int64_t a = A_SIGNED, b = B_SIGNED;
    uint32_t sum = (uint32_t)saturate(core, a + b, 32), rest = (uint32_t)saturate(core, a - b, 32);
    put_pair(core, step, rest | (uint64_t)sum << 32);
}

static void do_addsub2(core_t *core, step_t *step) {
    uint32_t a = step->a[0], b = step->b[0];
    uint32_t sum = halves(HIGH(a) + HIGH(b), LOW(a) + LOW(b));
    uint32_t rest = halves(HIGH(a) - HIGH(b), LOW(a) - LOW(b));
    put_pair(core, step, rest | (uint64_t)sum << 32);
}

static int32_t saturate16(core_t *core, int32_t value) {
    return (int32_t)saturate(core, value, 16);
}

static void do_saddsub2(core_t *core, step_t *step) {
    uint32_t a = step->a[0], b = step->b[0];
    uint32_t sum = halves(saturate16(core, HIGH(a) + HIGH(b)), saturate16(core, LOW(a) + LOW(b)));
    uint32_t rest = halves(saturate16(core, HIGH(a) - HIGH(b)), saturate16(core, LOW(a) - LOW(b)));
    put_pair(core, step, rest | (uint64_t)sum << 32);
}

// Bit i of the low half goes to bit 2i, of the high half to 2i+1.
static void do_shfl(core_t *core, step_t *step) {
    uint32_t value = 0;
    for (unsigned i = 0; i < 16; i++)
        value |= (step->a[0] >> i & 1) << 2 * i | (step->a[0] >> (i + 16) & 1) << (2 * i + 1);
    put(core, step, value);
}

static void do_deal(core_t *core, step_t *step) {
    uint32_t value = 0;
    for (unsigned i = 0; i < 16; i++)
        value |= (step->a[0] >> 2 * i & 1) << i | (step->a[0] >> (2 * i + 1) & 1) << (i + 16);
    put(core, step, value);
}

static void do_bitr(core_t *core, step_t *step) {
    uint32_t value = 0;
    for (unsigned i = 0; i < 32; i++)
        value |= (step->a[0] >> i & 1) << (31 - i);
    put(core, step, value);
}

// -- multiplication ------------------------------------------------------------------------------

// Products of halfwords with the sign wanted: the name says of which.
#define HALF_PRODUCT(name, first, second) WORD(mpy##name, (uint32_t)first(a) * (uint32_t)second(b))
#define SATURATED_PRODUCT(name, first, second)                                                     \
    WORD(smpy##name, saturate(core, (int64_t)first(a) * second(b) * 2, 32))

HALF_PRODUCT(, LOW, LOW)
HALF_PRODUCT(u, ULOW, ULOW)
HALF_PRODUCT(us, ULOW, LOW)
HALF_PRODUCT(su, LOW, ULOW)
HALF_PRODUCT(h, HIGH, HIGH)
HALF_PRODUCT(hu, UHIGH, UHIGH)
HALF_PRODUCT(hus, UHIGH, HIGH)
HALF_PRODUCT(hsu, HIGH, UHIGH)
HALF_PRODUCT(hl, HIGH, LOW)
HALF_PRODUCT(hlu, UHIGH, ULOW)
HALF_PRODUCT(huls, UHIGH, LOW)
HALF_PRODUCT(hslu, HIGH, ULOW)
HALF_PRODUCT(lh, LOW, HIGH)
HALF_PRODUCT(lhu, ULOW, UHIGH)
HALF_PRODUCT(luhs, ULOW, HIGH)
HALF_PRODUCT(lshu, LOW, UHIGH)
SATURATED_PRODUCT(, LOW, LOW)
SATURATED_PRODUCT(h, HIGH, HIGH)
SATURATED_PRODUCT(hl, HIGH, LOW)
SATURATED_PRODUCT(lh, LOW, HIGH)

WORD(mpy32, a *b)
WIDE(mpy32_wide, int32_t, int32_t, a *b)
WIDE(mpy32su, int32_t, uint32_t, a *b)
WIDE(mpy32us, uint32_t, int32_t, a *b)
WIDE(mpy32u, uint32_t, uint32_t, (uint64_t)a *(uint64_t)b)
WIDE(mpyhi, uint32_t, int32_t, HIGH((uint32_t)a) * b)
WIDE(mpyli, uint32_t, int32_t, LOW((uint32_t)a) * b)
WORD(mpyhir, (HIGH(a) * (int64_t)(int32_t)b + 0x4000) >> 15)
WORD(mpylir, (LOW(a) * (int64_t)(int32_t)b + 0x4000) >> 15)
SIGNED(smpy32, saturate(core, (a * b) >> 31, 32))

static void do_mpyid(core_t *core, step_t *step) {
    put_late_pair(core, step, (uint64_t)((int64_t)A_SIGNED * B_SIGNED));
}

static void do_mpy2(core_t *core, step_t *step) {
    uint32_t a = step->a[0], b = step->b[0];
    put_pair(core, step,
             (uint32_t)(LOW(a) * LOW(b)) | (uint64_t)(uint32_t)(HIGH(a) * HIGH(b)) << 32);
}

static void do_smpy2(core_t *core, step_t *step) {
    uint32_t a = step->a[0], b = step->b[0];
    int64_t low = saturate(core, (int64_t)LOW(a) * LOW(b) * 2, 32);
    int64_t high = saturate(core, (int64_t)HIGH(a) * HIGH(b) * 2, 32);
    put_pair(core, step, (uint32_t)low | (uint64_t)high << 32);
}

static void do_mpyu4(core_t *core, step_t *step) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= (uint64_t)(BYTE(step->a[0], i) * BYTE(step->b[0], i)) << 16 * i;
    put_pair(core, step, value);
}

static void do_mpysu4(core_t *core, step_t *step) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= (uint64_t)(uint16_t)((int8_t)BYTE(step->a[0], i) * (int32_t)BYTE(step->b[0], i))
                 << 16 * i;
    put_pair(core, step, value);
}

static int64_t products(uint32_t a, uint32_t b, int sign) {
    return (int64_t)HIGH(a) * HIGH(b) + sign * (int64_t)LOW(a) * LOW(b);
}

WORD(dotp2, products(a, b, 1))
WORD(dotpn2, products(a, b, -1))
WIDE(dotp2_long, uint32_t, uint32_t, products((uint32_t)a, (uint32_t)b, 1))
WORD(dotpu4, BYTE(a, 0) * BYTE(b, 0) + BYTE(a, 1) * BYTE(b, 1) + BYTE(a, 2) * BYTE(b, 2) +
                 BYTE(a, 3) * BYTE(b, 3))

static void do_dotpsu4(core_t *core, step_t *step) {
    int32_t sum = 0;
    for (unsigned i = 0; i < 4; i++)
        sum += (int8_t)BYTE(step->a[0], i) * (int32_t)BYTE(step->b[0], i);
    put(core, step, (uint32_t)sum);
}

// Complex: real parts in the high halves; the product's real part goes to the odd register.
static void do_cmpy(core_t *core, step_t *step) {
    uint32_t a = step->a[0], b = step->b[0];
    int64_t imaginary = (int64_t)HIGH(a) * LOW(b) + (int64_t)LOW(a) * HIGH(b);
    put_pair(core, step,
             (uint32_t)saturate(core, imaginary, 32) | (uint64_t)products(a, b, -1) << 32);
}

// -- floating point ------------------------------------------------------------------------------

#define DOUBLE(name, expression)                                                                   \
    static void do_##name(core_t *core, step_t *step) {                                            \
        double a = dp(pair(step->a)), b = dp(pair(step->b));                                       \
        (void)b;                                                                                   \
        put_late_pair(core, step, dp_bits(expression));                                            \
    }
#define SINGLE(name, expression)                                                                   \
    static void do_##name(core_t *core, step_t *step) {                                            \
        float a = sp(step->a[0]), b = sp(step->b[0]);                                              \
        (void)b;                                                                                   \
        put(core, step, sp_bits(expression));                                                      \
    }
#define COMPARE_DOUBLE(name, operator)                                                             \
    static void do_##name(core_t *core, step_t *step) {                                            \
        put(core, step, dp(pair(step->a)) operator dp(pair(step->b)));                             \
    }
#define COMPARE_SINGLE(name, operator) WORD(name, sp(a) operator sp(b))

// Approximations: the exponent is right and the mantissa has eight bits.
static double eight_bits(double value) {
    return dp(dp_bits(value) & UINT64_C(0xfffff00000000000));
}

DOUBLE(adddp, a + b)
DOUBLE(subdp, a - b)
DOUBLE(mpydp, a *b)
DOUBLE(absdp, fabs(a))
DOUBLE(rcpdp, eight_bits(1 / a))
DOUBLE(rsqrdp, eight_bits(signbit(a) && a < 0 ? (double)NAN : copysign(1 / sqrt(fabs(a)), a)))
SINGLE(addsp, a + b)
SINGLE(subsp, a - b)
SINGLE(mpysp, a *b)
SINGLE(abssp, fabsf(a))
SINGLE(rcpsp, (float)eight_bits(1 / (double)a))
SINGLE(rsqrsp,
       (float)eight_bits(a < 0 ? (double)NAN : copysign(1 / sqrt(fabs((double)a)), (double)a)))
COMPARE_DOUBLE(cmpeqdp, ==)
COMPARE_DOUBLE(cmpgtdp, >)
COMPARE_DOUBLE(cmpltdp, <)
COMPARE_SINGLE(cmpeqsp, ==)
COMPARE_SINGLE(cmpgtsp, >)
COMPARE_SINGLE(cmpltsp, <)

static void do_mpyspdp(core_t *core, step_t *step) {
    put_late_pair(core, step, dp_bits((double)sp(step->a[0]) * dp(pair(step->b))));
}

static void do_mpysp2dp(core_t *core, step_t *step) {
    put_late_pair(core, step, dp_bits((double)sp(step->a[0]) * (double)sp(step->b[0])));
}

static void do_spdp(core_t *core, step_t *step) {
    put_late_pair(core, step, dp_bits((double)sp(step->a[0])));
}

static void do_dpsp(core_t *core, step_t *step) {
    put(core, step, sp_bits((float)dp(pair(step->a))));
}

static void do_intdp(core_t *core, step_t *step) {
    put_late_pair(core, step, dp_bits((double)A_SIGNED));
}

static void do_intdpu(core_t *core, step_t *step) {
    put_late_pair(core, step, dp_bits((double)step->a[0]));
}

WORD(intsp, sp_bits((float)(int32_t)a))
WORD(intspu, sp_bits((float)a))

// The nearest word: the largest of its sign for what has none.
static uint32_t to_word(double value) {
    if (value > -0x1p31 - 1 && value < 0x1p31)
        return (uint32_t)(int32_t)value;
    return signbit(value) ? UINT32_C(0x80000000) : UINT32_C(0x7fffffff);
}

WORD(spint, to_word(rint((double)sp(a))))
WORD(sptrunc, to_word(trunc((double)sp(a))))

static void do_dpint(core_t *core, step_t *step) {
    put(core, step, to_word(rint(dp(pair(step->a)))));
}

static void do_dptrunc(core_t *core, step_t *step) {
    put(core, step, to_word(trunc(dp(pair(step->a)))));
}

// -- memory --------------------------------------------------------------------------------------

// The address of an access; the base register changes where the mode says so.
static uint32_t memory_address(core_t *core, step_t *step) {
    uint32_t base = core->regs[step->base], offset = step->b[0] << step->shift;
    uint32_t moved = step->mode & C66X_PLUS ? base + offset : base - offset;
    if (!(step->mode & C66X_MODIFY))
        return moved;
    put_at(core, 0, step->base, moved);
    return step->mode & C66X_AFTER ? base : moved;
}

static uint8_t *memory_at(core_t *core, uint32_t address, uint32_t size) {
    uint32_t offset = address - C66X_DDR3_BASE;
    if (offset <= C66X_DDR3_SIZE - size)
        return core->ddr3 + offset;
    offset = address - C66X_MSMC_BASE;
    if (offset <= C66X_MSMC_SIZE - size)
        return core->msmc + offset;
    offset = address - C66X_L2_BASE;
    if (offset <= C66X_L2_SIZE - size)
        return core->l2 + offset;
    return c66x_memory_at(core->memory, core->number, address, size);
}

static bool aligned(core_t *core, uint32_t address, uint32_t alignment) {
    if (address % alignment == 0)
        return true;
    c66x_core_fault(core, "access to 0x%08" PRIx32 ", which is no multiple of %" PRIu32, address,
                    alignment);
    return false;
}

static uint64_t load(core_t *core, step_t *step, uint32_t size, uint32_t alignment) {
    uint32_t address = memory_address(core, step);
    uint64_t value = 0;
    if (!aligned(core, address, alignment))
        return 0;
    if (core->caches)
        c66x_caches_load(core, step, address, size);
    const uint8_t *at = memory_at(core, address, size);
    if (at)
        memcpy(&value, at, size);
    else if (!c66x_register_read(core->memory, core->number, address, size, core->cycle, &value))
        c66x_core_fault(core, "load of %" PRIu32 " bytes at 0x%08" PRIx32 ", where nothing is",
                        size, address);
    return value;
}

static void store(core_t *core, step_t *step, uint32_t size, uint32_t alignment, uint64_t value) {
    uint32_t address = memory_address(core, step);
    if (!aligned(core, address, alignment))
        return;
    if (core->caches)
        c66x_caches_store(core, step, address, size);
    uint8_t *at = memory_at(core, address, size);
    if (at)
        memcpy(at, &value, size);
    else if (!c66x_register_write(core->memory, core->number, address, size, value))
        c66x_core_fault(core, "store of %" PRIu32 " bytes at 0x%08" PRIx32 ", where nothing is",
                        size, address);
    else if (core->caches)
        c66x_caches_operate(core, step, address, (uint32_t)value);
}

#define LOAD(name, size, alignment, type)                                                          \
    static void do_##name(core_t *core, step_t *step) {                                            \
        put(core, step, (uint32_t)(type)load(core, step, size, alignment));                        \
    }
#define LOAD_PAIR(name, alignment)                                                                 \
    static void do_##name(core_t *core, step_t *step) {                                            \
        put_pair(core, step, load(core, step, 8, alignment));                                      \
    }
#define STORE(name, size, alignment, value)                                                        \
    static void do_##name(core_t *core, step_t *step) {                                            \
        store(core, step, size, alignment, value);                                                 \
    }

LOAD(ldb, 1, 1, int8_t)
LOAD(ldbu, 1, 1, uint8_t)
LOAD(ldh, 2, 2, int16_t)
LOAD(ldhu, 2, 2, uint16_t)
LOAD(ldw, 4, 4, uint32_t)
LOAD(ldnw, 4, 1, uint32_t)
LOAD_PAIR(lddw, 8)
LOAD_PAIR(ldndw, 1)
STORE(stb, 1, 1, step->a[0])
STORE(sth, 2, 2, step->a[0])
STORE(stw, 4, 4, step->a[0])
STORE(stnw, 4, 1, step->a[0])
STORE(stdw, 8, 8, pair(step->a))
STORE(stndw, 8, 1, pair(step->a))

// -- control -------------------------------------------------------------------------------------

static void do_branch(core_t *core, step_t *step) {
    struct c66x_slot *slot = slot_after(core, step->delay);
    slot->branch = true;
    slot->target = step->a[0];
}

static void do_callp(core_t *core, step_t *step) {
    put_at(core, 0, step->result, step->b[0]);
    do_branch(core, step);
}

static void do_bpos(core_t *core, step_t *step) {
    if (core->regs[step->result] <= INT32_MAX)
        do_branch(core, step);
}

static void do_bdec(core_t *core, step_t *step) {
    uint32_t count = core->regs[step->result];
    if (count > INT32_MAX)
        return;
    do_branch(core, step);
    put_at(core, 0, step->result, count - 1);
}

static uint64_t time_stamp(const core_t *core) {
    return core->time_stamp_runs ? core->cycle - core->time_stamp_start : 0;
}

static void do_from_control(core_t *core, step_t *step) {
    uint32_t value = core->control[step->control];
    if (step->control == C66X_TSCL) { // the high word is kept until it is read
        uint64_t now = time_stamp(core);
        core->control[C66X_TSCH] = (uint32_t)(now >> 32);
        value = (uint32_t)now;
    } else if (step->control == C66X_PCE1) {
        value = step->instruction->address & ~31u;
    } else if (step->control == C66X_DNUM) {
        value = core->number;
    }
    put(core, step, value);
}

enum { ROUNDING_MODES = 0x06000600 }; // of FADCR and FMCR

static void do_to_control(core_t *core, step_t *step) {
    uint32_t value = step->a[0];
    if (step->control == C66X_AMR && value != 0)
        c66x_core_fault(core, "circular addressing (AMR 0x%08" PRIx32 ") is not modelled", value);
    else if ((step->control == C66X_FADCR || step->control == C66X_FMCR) && value & ROUNDING_MODES)
        c66x_core_fault(core, "only rounding to nearest is modelled (0x%08" PRIx32 ")", value);
    if (step->control != C66X_TSCL) {
        core->control[step->control] = value;
    } else if (!core->time_stamp_runs) { // any write starts it
        core->time_stamp_runs = true;
        core->time_stamp_start = core->cycle;
    }
}

static void do_dint(core_t *core, step_t *step) {
    (void)step;
    core->control[C66X_TSR] = (core->control[C66X_CSR] & INTERRUPTS_ON) << 1;
    core->control[C66X_CSR] &= ~(uint32_t)INTERRUPTS_ON;
}

static void do_rint(core_t *core, step_t *step) {
    (void)step;
    core->control[C66X_CSR] |= core->control[C66X_TSR] >> 1 & INTERRUPTS_ON;
}

static void do_idle(core_t *core, step_t *step) {
    (void)step;
    core->idle = C66X_FOREVER;
}

static void do_nop(core_t *core, step_t *step) {
    (void)core, (void)step;
}

// The loop buffer is run as a plain loop, one iteration after the other (core.c).
static void do_sploop(core_t *core, step_t *step) {
    (void)core, (void)step;
}

static void do_spkernel(core_t *core, step_t *step) {
    (void)core, (void)step;
}

static void do_unmodelled(core_t *core, step_t *step) {
    c66x_core_fault(core, "'%s' is not modelled", step->instruction->row->mnemonic);
}

c66x_execute *const c66x_executes[] = {
#define ROW(unit, code, mnemonic, operands, delay, reads, execute) do_##execute,
#include "isa.def"
#undef ROW
};
