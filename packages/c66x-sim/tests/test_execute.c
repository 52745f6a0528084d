// Every instruction class alone: value, saturation and delay slots. The vectors are the examples of
// TI's manual (SPRUFE8, chapter 3) where it has one, else follow from its definition.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "core.h"

#include <ctype.h>

enum { FIRST = 2, SECOND = 6, RESULT = 8, OTHER = 0x5eed };
static const uint32_t nop_9 = 0x10000;

// One case: sources and result as 64 bits; a word's are the low half.
struct vector {
    char unit;
    const char *mnemonic, *operands;
    uint64_t a, b, result;
};

static struct c66x_memory memory;

static const struct c66x_row *find_row(const struct vector *vector) {
    for (size_t i = 0; i < c66x_row_count; i++) {
        const struct c66x_row *row = &c66x_rows[i];
        if (row->unit == vector->unit && strcmp(row->mnemonic, vector->mnemonic) == 0 &&
            strcmp(row->operands, vector->operands) == 0)
            return row;
    }
    fprintf(stderr, "no row '%s' with '%s'\n", vector->mnemonic, vector->operands);
    exit(EXIT_FAILURE);
}

// The instruction with side 1 and no predicate; sources are numbered as they are written.
static uint32_t encode(const struct c66x_row *row, const struct vector *vector) {
    uint32_t word = row->value;
    unsigned source = 0;
    for (const char *letter = row->operands; *letter; letter++) {
        bool is_result = strchr("dDEz", *letter) != NULL;
        unsigned reg = source == 0 ? FIRST : SECOND;
        uint32_t constant = (uint32_t)(source == 0 ? vector->a : vector->b);
        if (is_result)
            word |= RESULT << 23;
        else if (*letter == 'K' || *letter == 'H')
            word |= (*letter == 'K' ? constant & 0xffff : constant >> 16) << 7;
        else if (*letter == 'w')
            word |= (vector->b & 31) << 8;
        else if (*letter == 'u' && strcmp(row->operands, "buwd") == 0)
            word |= (uint32_t)(vector->b >> 5 & 31) << 13;
        else
            word |= (strchr("kum", *letter) ? constant & 31 : reg)
                    << (strchr("bBxXQm", *letter) ? 18 : 13);
        source += !is_result;
    }
    return word;
}

static void put_pair(struct c66x_core *core, unsigned reg, uint64_t value) {
    core->regs[reg] = (uint32_t)value;
    core->regs[reg + 1] = (uint32_t)(value >> 32);
}

// A core before the instruction, its sources in their registers.
static struct c66x_core *prepare(const struct vector *vector) {
    static const uint32_t no_traps[1];
    uint32_t code[] = {encode(find_row(vector), vector), nop_9, nop_9};
    memcpy(memory.msmc, code, sizeof code);
    struct c66x_core *core = c66x_core_make(&memory, 0, C66X_MSMC_BASE, no_traps);
    put_pair(core, FIRST, vector->a);
    put_pair(core, SECOND, vector->b);
    put_pair(core, RESULT, OTHER);
    return core;
}

static uint64_t result(const struct c66x_core *core) {
    return core->regs[RESULT] | (uint64_t)core->regs[RESULT + 1] << 32;
}

static void check(const struct vector *vector) {
    const struct c66x_row *row = find_row(vector);
    struct c66x_core *core = prepare(vector);
    bool pair = strpbrk(row->operands, "DE") != NULL;
    unsigned before = core->regs[RESULT + pair];
    c66x_core_run(core, 1u + row->delay);
    bool early = row->delay && core->regs[RESULT + pair] != before; // else the next packet's
    c66x_core_run(core, 2u + row->delay);
    expect_equal(pair ? result(core) : core->regs[RESULT], vector->result, "%s", vector->mnemonic);
    expect(!early && core->stop == C66X_RUNNING, "%s: %s", vector->mnemonic, core->why.text);
    c66x_core_free(core);
}

static const struct vector words[] = {
    {'L', "abs", "xd", 0x80004e3d, 0, 0x7fffb1c3},
    {'L', "abs", "xd", 0x3ff60010, 0, 0x3ff60010},
    {'L', "abs", "xd", 0x80000000, 0, 0x7fffffff},
    {'L', "add", "axd", 0x325a, 0xffffff12, 0x316c},
    {'S', "add", "kxd", (uint64_t)-5, 3, 0xfffffffe},
    {'D', "add", "bad", 7, 8, 15},
    {'D', "add", "bud", 7, 31, 38},
    {'D', "add", "xkd", 7, 31, 6},
    {'S', "addk", "Kz", 15401, 0, OTHER + 15401},
    {'D', "addab", "bad", 0x100, 4, 0x104},
    {'D', "addah", "bad", 0x100, 4, 0x108},
    {'D', "addaw", "bad", 0x100, 4, 0x110},
    {'D', "addad", "bud", 0x100, 4, 0x120},
    {'D', "subab", "bad", 0x100, 4, 0xfc},
    {'D', "subah", "bud", 0x100, 4, 0xf8},
    {'D', "subaw", "bad", 0x100, 4, 0xf0},
    {'L', "and", "axd", 0xf7a1302a, 0x02b6e724, 0x02a02020},
    {'D', "and", "kxd", (uint64_t)-2, 0xff, 0xfe},
    {'L', "andn", "axd", 0x19577bfc, 0xfedcba98, 0x01034164},
    {'L', "or", "axd", 0x08a3a49f, 0x00ff375a, 0x08ffb7df},
    {'L', "xor", "axd", 0x0721325a, 0x00190f12, 0x07383d48},
    {'L', "cmpeq", "axd", 0x4b8, 0x4b7, 0},
    {'L', "cmpeq", "kxd", 12, 12, 1},
    {'L', "cmpgt", "axd", 0x1b6, 0x8bd, 0},
    {'L', "cmpgt", "axd", 0xfffffe91, 0xfffffdc4, 1},
    {'L', "cmpgtu", "axd", 0x128, 0xffffffde, 0},
    {'L', "cmpgtu", "uxd", 10, 5, 1},
    {'L', "cmplt", "axd", 0x7e2, 0xf6b, 1},
    {'L', "cmpltu", "axd", 0x289a, 0xffffff12, 1},
    {'L', "sub", "axd", 0x325a, 0xffffff12, 0x3348},
    {'L', "sub", "ybd", 7, 9, 0xfffffffe},
    {'S', "sub", "xad", 7, 9, 0xfffffffe},
    {'L', "subc", "axd", 0x125a, 0x1f12, 0x24b4},
    {'L', "subc", "axd", 0x21a31, 0x1f63f, 0x47e5},
    {'L', "subc", "axd", 5, 5, 1},
    {'L', "cmpgt", "axd", 5, 5, 0},
    {'L', "cmplt", "axd", 5, 5, 0},
    {'L', "cmpgtu", "axd", 5, 5, 0},
    {'L', "cmpltu", "axd", 5, 5, 0},
    {'L', "sadd", "axd", 0x5a2e51a3, 0x012a3fa2, 0x5b589145},
    {'L', "sadd", "axd", 0x436771f2, 0x5a2e51a3, 0x7fffffff},
    {'L', "ssub", "axd", 0x5a2e51a3, 0x802a3fa2, 0x7fffffff},
    {'L', "ssub", "axd", 0x436771f2, 0x5a2e51a3, 0xe939204f},
    {'L', "norm", "xd", 0x02a3469f, 0, 5},
    {'L', "norm", "xd", 0xfffff25a, 0, 19},
    {'L', "norm", "xd", 0, 0, 31},
    {'L', "lmbd", "axd", 1, 0x009e3a81, 8},
    {'L', "lmbd", "axd", 0, 0xffffffff, 32},
    {'L', "mvk", "md", (uint64_t)-5, 0, 0xfffffffb},
    {'D', "mvk", "kd", (uint64_t)-5, 0, 0xfffffffb},
    {'S', "mvk", "Kd", 0xffff8000, 0, 0xffff8000},
    {'S', "mvkh", "Hz", 0x0a320000, 0, 0x0a320000 + OTHER},
    {'M', "mvd", "xd", 0x1234, 0, 0x1234},
    {'S', "shl", "xud", 0x29e3d31c, 4, 0x9e3d31c0},
    {'S', "shl", "xad", 0x419751a5, 9, 0x2ea34a00},
    {'S', "shl", "xad", 1, 32, 0},
    {'S', "shr", "xud", 0xf12363d1, 8, 0xfff12363},
    {'S', "shr", "xad", 0x80000000, 40, 0xffffffff},
    {'S', "shru", "xud", 0xf12363d1, 8, 0x00f12363},
    {'S', "sshl", "xud", 0x02e3031c, 2, 0x0b8c0c70},
    {'S', "sshl", "xad", 0x47191925, 6, 0x7fffffff},
    {'M', "rotl", "xad", 0xa6e2c179, 0x14583b69, 0xc582f34d},
    {'M', "rotl", "xud", 0x80000001, 0, 0x80000001},
    {'S', "ext", "buwd", 0x07a43f2a, 10 << 5 | 19, 0xfffff21f},
    {'S', "ext", "xad", 0x03b6e7d5, 0x73, 0x3b6},
    {'S', "extu", "buwd", 0x07a43f2a, 10 << 5 | 19, 0x121f},
    {'S', "extu", "xad", 0x03b6e7d5, 0x156, 0x36e},
    {'S', "set", "buwd", 0x4b134a1e, 7 << 5 | 21, 0x4b3fff9e},
    {'S', "set", "buwd", 0x4b134a1e, 21 << 5 | 7, 0x4b134a1e},
    {'S', "clr", "buwd", 0x07a43f2a, 4 << 5 | 19, 0x07a0000a},
    {'S', "clr", "xad", 0x03b6e7d5, 0x52, 0x03b00001},
};

static const struct vector longs[] = {
    {'L', "add", "axD", 0x325a, 0xffffff12, 0x316c},
    {'L', "add", "yBD", 0xffffffff, 0x00ffffff12, 0x00ffffff11},
    {'L', "addu", "axD", 0x325a, 0xffffff12, 0x010000316c},
    {'L', "addu", "yBD", 0x325a, 0xffffffff12, 0x316c},
    {'L', "sub", "axD", 0, 1, 0xffffffffff},
    {'L', "subu", "axD", 0x325a, 0xffffff12, 0xff00003348},
    {'L', "abs", "BD", 0xffca4a37b9, 0, 0x35b5c847},
    {'L', "sat", "Bd", 0x1f3413539a, 0, 0x7fffffff},
    {'L', "sat", "Bd", 0x00a1907321, 0, 0x7fffffff},
    {'L', "sat", "Bd", 0xffa1907321, 0, 0xa1907321},
    {'L', "norm", "Bd", 0x0002a3469f, 0, 13},
    {'L', "cmpeq", "yBd", 0xf23a3789, 0xfff23a3789, 1},
    {'L', "cmpgt", "yBd", 5, 0xfffffffff0, 1},
    {'L', "cmpgtu", "yBd", 5, 0xfffffffff0, 0},
    {'S', "shl", "xuD", 0x80000001, 4, 0xf800000010},
    {'S', "shl", "BuD", 0x0080000001, 4, 0x0800000010},
    {'S', "shr", "BaD", 0x8000000000, 39, 0xffffffffff},
    {'S', "shru", "BaD", 0x8000000000, 39, 1},
    {'L', "sadd", "yBD", 1, 0x7fffffffff, 0x7fffffffff},
    {'L', "ssub", "kBD", (uint64_t)-2, 0x7fffffffff, 0x8000000000},
    {'S', "dmv", "axD", 0x11223344, 0x55667788, 0x1122334455667788},
    {'L', "addsub", "axD", 0x0700, 0x0100, 0x0000080000000600},
    {'L', "saddsub", "axD", 0x7fffffff, 1, 0x7fffffff7ffffffe},
    {'L', "addsub2", "axD", 0x00080004, 0x00010002, 0x0009000600070002},
    {'L', "saddsub2", "axD", 0x7fff8000, 0x00010001, 0x7fff80017ffe8000},
    {'L', "dpack2", "axD", 0x87654321, 0x12345678, 0x8765123443215678},
};

static const struct vector packed[] = {
    {'L', "add2", "axd", 0x002137e1, 0x039ae4b8, 0x03bb1c99},
    {'L', "sub2", "axd", 0x11056e30, 0x11056980, 0x000004b0},
    {'L', "add4", "axd", 0xff6789ab, 0x02010155, 0x01688a00},
    {'L', "sub4", "axd", 0x00010203, 0x01010101, 0xff000102},
    {'S', "sadd2", "axd", 0x0789f23a, 0x04b84975, 0x0c413baf},
    {'S', "sadd2", "axd", 0x7fff8000, 0x00018000, 0x7fff8000},
    {'L', "ssub2", "axd", 0x00098001, 0x00078010, 0x0002fff1},
    {'S', "saddu4", "axd", 0x5789f23a, 0x74b84975, 0xcbffffaf},
    {'S', "saddus2", "axd", 0x5789f23a, 0x74b84975, 0xcc41ffff},
    {'L', "abs2", "xd", 0xff688000, 0, 0x00987fff},
    {'L', "subabs4", "axd", 0x3789f23a, 0x04b84975, 0x332fa93b},
    {'L', "min2", "axd", 0x3789f23a, 0x04b84975, 0x04b8f23a},
    {'L', "max2", "axd", 0x3789f23a, 0x04b84975, 0x37894975},
    {'L', "minu4", "axd", 0x3789f23a, 0x04b84975, 0x0489493a},
    {'L', "maxu4", "axd", 0x3789f23a, 0x04b84975, 0x37b8f275},
    {'M', "avg2", "axd", 0x61984357, 0x7582ae15, 0x6b8df8b6},
    {'M', "avgu4", "axd", 0x1a2e5f4e, 0x9ef26e3f, 0x5c906747},
    {'M', "bitc4", "xd", 0x9e526e30, 0, 0x05030502},
    {'M', "bitr", "xd", 0xa6e2c179, 0, 0x9e834765},
    {'M', "shfl", "xd", 0xb1746ca4, 0, 0x9e526e30},
    {'M', "deal", "xd", 0x9e526e30, 0, 0xb1746ca4},
    {'M', "xpnd2", "xd", 0x16, 0, 0xffff0000},
    {'M', "xpnd4", "xd", 0x15, 0, 0x00ff00ff},
    {'S', "cmpeq2", "axd", 0x11056e30, 0x11056980, 2},
    {'S', "cmpeq4", "axd", 0x023a4e1c, 0x02b84e76, 10},
    {'S', "cmpgt2", "axd", 0x11056e30, 0x11056980, 1},
    {'S', "cmpgtu4", "axd", 0x253a1c17, 0x02b84e17, 8},
    {'S', "shr2", "xad", 0x97a41234, 4, 0xf97a0123},
    {'S', "shru2", "xud", 0x97a41234, 4, 0x097a0123},
    {'L', "pack2", "axd", 0x3789f23a, 0x04b84975, 0xf23a4975},
    {'L', "packh2", "axd", 0x3789f23a, 0x04b84975, 0x378904b8},
    {'L', "packhl2", "axd", 0x3789f23a, 0x04b84975, 0x37894975},
    {'L', "packlh2", "axd", 0x3789f23a, 0x04b84975, 0xf23a04b8},
    {'L', "packh4", "axd", 0x3789f23a, 0x04b84975, 0x37f20449},
    {'L', "packl4", "axd", 0x3789f23a, 0x04b84975, 0x893ab875},
    {'L', "unpkhu4", "xd", 0x9e526e30, 0, 0x009e0052},
    {'L', "unpklu4", "xd", 0x9e526e30, 0, 0x006e0030},
    {'L', "swap4", "xd", 0x9e526e30, 0, 0x529e306e},
    {'L', "shlmb", "axd", 0x3789f23a, 0x04b84975, 0xb8497537},
    {'L', "shrmb", "axd", 0x3789f23a, 0x04b84975, 0x3a04b849},
    {'S', "spack2", "axd", 0x3789f23a, 0x80b84975, 0x7fff8000},
    {'S', "spacku4", "axd", 0x3789f23a, 0x04b80075, 0xff00ff75},
};

static const struct vector products[] = {
    {'M', "mpy", "axd", 0x123, 0x01e0fa81, 0xfff9c0a3},
    {'M', "mpy", "kxd", (uint64_t)-12, 0xfe85, 0x11c4},
    {'M', "mpyu", "axd", 0x123, 0x0f12fa81, 0x011cc0a3},
    {'M', "mpyus", "axd", 0x1234ffa1, 0x1234ffa1, 0xffa12341},
    {'M', "mpysu", "axd", 0x1234ffa1, 0x1234ffa1, 0xffa12341},
    {'M', "mpyh", "axd", 0x00230000, 0xffa71234, 0xfffff3d5},
    {'M', "mpyhl", "axd", 0x008a003e, 0x21ff00a7, 0x5a06},
    {'M', "mpyhlu", "axd", 0xffff0000, 0xffff, 0xfffe0001},
    {'M', "mpyhu", "axd", 0xffff0000, 0xffff0000, 0xfffe0001},
    {'M', "mpyhus", "axd", 0xffff0000, 0xffff0000, 0xffff0001},
    {'M', "mpyhsu", "axd", 0xffff0000, 0xffff0000, 0xffff0001},
    {'M', "mpyhuls", "axd", 0xffff0000, 0xffff, 0xffff0001},
    {'M', "mpyhslu", "axd", 0xffff0000, 0xffff, 0xffff0001},
    {'M', "mpylh", "axd", 0x00020003, 0x00050007, 15},
    {'M', "mpylhu", "axd", 0xffff, 0xffff0000, 0xfffe0001},
    {'M', "mpyluhs", "axd", 0xffff, 0xffff0000, 0xffff0001},
    {'M', "mpylshu", "axd", 0xffff, 0xffff0000, 0xffff0001},
    {'M', "smpy", "axd", 0x123, 0x01e0fa81, 0xfff38146},
    {'M', "smpyh", "axd", 0x80000000, 0x80000000, 0x7fffffff},
    {'M', "smpyhl", "axd", 0x00020000, 3, 12},
    {'M', "smpylh", "axd", 2, 0x00030000, 12},
    {'M', "mpy32", "axd", 0x12345678, 0x9abcdef0, 0x242d2080},
    {'M', "mpyi", "axd", 0x12345678, 0x9abcdef0, 0x242d2080},
    {'M', "mpy32", "axD", 0xffffffff, 2, 0xfffffffffffffffe},
    {'M', "mpyid", "axE", 0xffffffff, 2, 0xfffffffffffffffe},
    {'M', "mpy32u", "axD", 0xffffffff, 0xffffffff, 0xfffffffe00000001},
    {'M', "mpy32su", "axD", 0xffffffff, 0xffffffff, 0xffffffff00000001},
    {'M', "mpy32us", "axD", 0xffffffff, 0xffffffff, 0xffffffff00000001},
    {'M', "smpy32", "axd", 0x80000000, 0x80000000, 0x7fffffff},
    {'M', "smpy32", "axd", 0x40000000, 0x40000000, 0x20000000},
    {'M', "mpy2", "axD", 0x6a321193, 0xb1746ca4, 0xdf6ab0a80775462c},
    {'M', "smpy2", "axD", 0x80000002, 0x80000003, 0x7fffffff0000000c},
    {'M', "mpyhi", "axD", 0x6a321193, 0xb1746ca4, 0xffffdf6addb92008},
    {'M', "mpyli", "axD", 0x6a321193, 0xb1746ca4, 0xfffffa9ba111462c},
    {'M', "mpyhir", "axd", 0x10000000, 0x00000008, 1},
    {'M', "mpylir", "axd", 0x1000, 0xfffffff8, 0xffffffff},
    {'M', "mpyu4", "axD", 0x6a321193, 0xb1746ca4, 0x494a16a8072c5e2c},
    {'M', "mpysu4", "axD", 0xff010280, 0xff020380, 0xff0100020006c000},
    {'M', "dotp2", "axd", 0x6a321193, 0xb1746ca4, 0xe6dff6d4},
    {'M', "dotp2", "axD", 0x6a321193, 0xb1746ca4, 0xffffffffe6dff6d4},
    {'M', "dotpn2", "axd", 0x3629274a, 0x325c8036, 0x1e442f20},
    {'M', "dotpu4", "axd", 0x6a321193, 0xb1746ca4, 0xc54a},
    {'M', "dotpsu4", "axd", 0x6a321193, 0xb1746ca4, 0x214a},
    {'M', "cmpy", "axD", 0x00080004, 0x00090002, 0x0000004000000034},
};

static const struct vector floats[] = {
    {'L', "intdp", "xE", 0x19651127, 0, 0x41b9651127000000},
    {'L', "intdpu", "xE", 0xffffffde, 0, 0x41effffffbc00000},
    {'L', "intsp", "xd", 0x19651127, 0, 0x4dcb2889},
    {'L', "intspu", "xd", 0xffffffde, 0, 0x4f800000},
    {'L', "spint", "xd", 0x4109999a, 0, 9},
    {'L', "spint", "xd", 0x40200000, 0, 2}, // 2.5: to the even one
    {'L', "sptrunc", "xd", 0x4109999a, 0, 8},
    {'L', "sptrunc", "xd", 0x5f000000, 0, 0x7fffffff},
    {'S', "spdp", "xE", 0x4109999a, 0, 0x4021333340000000},
    {'L', "dpint", "Qd", 0x4021333333333333, 0, 9},
    {'L', "dptrunc", "Qd", 0x4021333333333333, 0, 8},
    {'L', "dptrunc", "Qd", 0xc1e0000000200000, 0, 0x80000000},
    {'L', "dptrunc", "Qd", 0xc1f0000000000000, 0, 0x80000000},
    {'L', "dpsp", "Qd", 0x4021333333333333, 0, 0x4109999a},
    {'L', "adddp", "AXE", 0x4021333333333333, 0xc004000000000000, 0x4018666666666666},
    {'S', "subdp", "AXE", 0x4021333333333333, 0xc004000000000000, 0x4026333333333333},
    {'S', "subdp", "XAE", 0x4000000000000000, 0x3ff0000000000000, 0x3ff0000000000000},
    {'M', "mpydp", "AXE", 0x4021333333333333, 0xc004000000000000, 0xc035800000000000},
    {'M', "mpydp", "AXE", 0x7ff0000000000000, 0, 0x7fffffffffffffff},
    {'M', "mpyspdp", "aXE", 0x4109999a, 0xc004000000000000, 0xc035800010000000},
    {'M', "mpysp2dp", "axE", 0x4109999a, 0xc0200000, 0xc035800010000000},
    {'L', "addsp", "axd", 0xc0200000, 0x4109999a, 0x40c33334},
    {'L', "subsp", "axd", 0x4109999a, 0xc0200000, 0x4131999a},
    {'S', "subsp", "xad", 0x4109999a, 0xc0200000, 0x4131999a},
    {'M', "mpysp", "axd", 0xc0200000, 0x4109999a, 0xc1ac0000},
    {'M', "mpysp", "axd", 0x7f800000, 0, 0x7fffffff},
    {'S', "absdp", "QE", 0xc004000000000000, 0, 0x4004000000000000},
    {'S', "abssp", "xd", 0xc020000a, 0, 0x4020000a},
    {'S', "cmpeqdp", "AXd", 0x4021333333333333, 0xc004000000000000, 0},
    {'S', "cmpeqdp", "AXd", 0x8000000000000000, 0, 1},
    {'S', "cmpgtdp", "AXd", 0x4021333333333333, 0xc004000000000000, 1},
    {'S', "cmpgtdp", "AXd", 0x4021333333333333, 0x4021333333333333, 0},
    {'S', "cmpltdp", "AXd", 0x4021333333333333, 0x4021333333333333, 0},
    {'S', "cmpltdp", "AXd", 0x7fffffffffffffff, 0xc004000000000000, 0},
    {'S', "cmpeqsp", "axd", 0xc0200000, 0x4109999a, 0},
    {'S', "cmpgtsp", "axd", 0x4109999a, 0xc0200000, 1},
    {'S', "cmpltsp", "axd", 0x4109999a, 0xc0200000, 0},
    {'S', "cmpltsp", "axd", 0x4109999a, 0x4109999a, 0},
    {'S', "cmpgtsp", "axd", 0x4109999a, 0x4109999a, 0},
    {'S', "rcpdp", "QE", 0x4010000000000000, 0, 0x3fd0000000000000},
    {'S', "rcpdp", "QE", 0, 0, 0x7ff0000000000000},
    {'S', "rsqrdp", "QE", 0x4010000000000000, 0, 0x3fe0000000000000},
    {'S', "rsqrdp", "QE", 0xc010000000000000, 0, 0x7fffffffffffffff},
    {'S', "rcpsp", "xd", 0x40800000, 0, 0x3e800000},
    {'S', "rsqrsp", "xd", 0x40800000, 0, 0x3f000000},
};

#define CHECK_ALL(vectors) check_all(vectors, sizeof(vectors) / sizeof *(vectors))

static void check_all(const struct vector *vectors, size_t count) {
    for (size_t i = 0; i < count; i++)
        check(&vectors[i]);
}

// The approximations have eight good bits, as the manual promises, and not the whole result.
static void approximations(void) {
    struct c66x_core *core =
        prepare(&(struct vector){'S', "rcpdp", "QE", 0x4008000000000000, 0, 0});
    c66x_core_run(core, 4);
    double third;
    uint64_t bits = result(core);
    memcpy(&third, &bits, sizeof third);
    expect(third * 3 > 1 - 0x1p-8 && third * 3 < 1 + 0x1p-8);
    expect(third * 3 != 1);
    c66x_core_free(core);
}

// A saturated result is told in CSR.
static void saturation_is_told(void) {
    for (uint32_t saturated = 0; saturated < 2; saturated++) {
        uint64_t a = saturated ? 0x7fffffff : 1;
        struct c66x_core *core = prepare(&(struct vector){'L', "sadd", "axd", a, 2, 0});
        c66x_core_run(core, 2);
        expect_equal(core->control[C66X_CSR] >> 9 & 1, saturated);
        c66x_core_free(core);
    }
}

int main(void) {
    expect(c66x_memory_make(&memory, 1, NULL));
    CHECK_ALL(words);
    CHECK_ALL(longs);
    CHECK_ALL(packed);
    CHECK_ALL(products);
    CHECK_ALL(floats);
    approximations();
    saturation_is_told();
    c66x_memory_free(&memory);
    return expect_result();
}
