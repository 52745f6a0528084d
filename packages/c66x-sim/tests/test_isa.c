// Decoder and text without a toolchain: every form of an operand, delay slots, what is no
// instruction. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "isa.h"

#include "bk_expect.h"
#include "isa_lines.h"

TEST(words_have_their_text) {
    expect_lines(lines, sizeof lines / sizeof *lines, 0x0c000000);
}

// Mnemonics by the delay slots of their (last) result: SPRUFE8, tables of the instructions'
// pipelines.
static const struct {
    uint8_t delay, reads;
    const char *mnemonics;
} classes[] = {
    {0, 1,
     " abs abs2 abssp add add2 add4 addab addad addah addaw addk addkpc addsub addsub2 addu "
     "and andn clr cmpeq cmpeq2 cmpeq4 cmpeqsp cmpgt cmpgt2 cmpgtsp cmpgtu cmpgtu4 cmplt cmpltsp "
     "cmpltu dint dmv dpack2 dpackx2 ext extu idle lmbd max2 maxu4 min2 minu4 mvc mvk mvkh nop "
     "norm or pack2 packh2 packh4 packhl2 packl4 packlh2 rcpsp rint rpack2 rsqrsp sadd sadd2 "
     "saddsub saddsub2 saddu4 saddus2 sat set shfl3 shl shlmb shr shr2 shrmb shru shru2 spack2 "
     "spacku4 spkernel spkernelr sploop sploopd sploopw spmask spmaskr sshl ssub ssub2 stb stdw "
     "sth "
     "stndw stnw stw sub sub2 sub4 subab subabs4 subah subaw subc subu swap4 swe swenr unpkhu4 "
     "unpklu4 xor "},
    {1, 1,
     " absdp avg2 avgu4 bitc4 bitr deal mpy mpyh mpyhl mpyhlu mpyhslu mpyhsu mpyhu mpyhuls mpyhus "
     "mpylh mpylhu mpylshu mpyluhs mpysu mpyu mpyus rcpdp rotl rsqrdp shfl smpy smpyh smpyhl "
     "smpylh spdp sshvl sshvr xpnd2 xpnd4 "},
    {1, 2, " cmpeqdp cmpgtdp cmpltdp "},
    {3, 1,
     " addsp cmpy cmpyr cmpyr1 ddotp4 ddotph2 ddotph2r ddotpl2 ddotpl2r dotp2 dotpn2 dotpnrsu2 "
     "dotprsu2 dotpsu4 dotpu4 dpint dpsp dptrunc gmpy gmpy4 intsp intspu mpy2 mpy2ir mpy32 mpy32su "
     "mpy32u mpy32us mpyhi mpyhir mpyli mpylir mpysp mpysu4 mpyu4 mvd smpy2 smpy32 spint sptrunc "
     "subsp xormpy "},
    {4, 1, " intdp intdpu ldb ldbu lddw ldh ldhu ldndw ldnw ldw mpysp2dp "},
    {5, 1, " b bdec bnop bpos callp "},
    {6, 2, " adddp mpyspdp subdp "},
    {8, 4, " mpyi "},
    {9, 4, " mpydp mpyid "},
};

TEST(results_take_their_time) {
    for (size_t i = 0; i < c66x_row_count; i++) {
        const struct c66x_row *row = &c66x_rows[i];
        char name[16];
        bool found = false;
        snprintf(name, sizeof name, " %s ", row->mnemonic);
        for (size_t j = 0; j < sizeof classes / sizeof *classes; j++)
            found |= strstr(classes[j].mnemonics, name) && row->delay == classes[j].delay &&
                     row->reads == classes[j].reads;
        expect(found, "%s has another delay than the manual's", row->mnemonic);
    }
}

TEST(the_rest_is_refused) {
    static const uint32_t words[] = {
        0x12184078, // add .L that would always run
        0xe2184078, // predicate 7
        0x029c6318, // adddp with odd pairs
        0x02984464, // ldw with addressing mode 2
        0x00012000, // nop of 10 cycles
        0x40000000, // nop with a predicate
        0x001800e0, // b irp on .S1
        0x00007120, // bnop with bit 12
        0x02181038, // dptrunc with a cross path
        0x002003e2, // mvc from a register that is not there
        0xffffffff,
    };
    struct c66x_instruction it;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        expect(!c66x_decode(words[i], 0, &it), "0x%08" PRIx32, words[i]);
    expect(c66x_is_header(0xe0000000) && !c66x_is_header(0xf0000000) && !c66x_is_header(0));
}

// Without a predicate by the top bits 0001, which no predicate has.
static bool runs_always(const struct c66x_row *row) {
    return row->mask >> 28 == 0xf && row->value >> 28 == 1;
}

// No word means two things.
TEST(rows_exclude_each_other) {
    for (size_t i = 0; i < c66x_row_count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct c66x_row *one = &c66x_rows[i], *other = &c66x_rows[j];
            uint32_t both = one->mask & other->mask;
            bool idle = strcmp(other->mnemonic, "idle") == 0; // and nop, whose count is checked
            expect(idle || runs_always(one) != runs_always(other) ||
                       (one->value & both) != (other->value & both),
                   "%s and %s", one->mnemonic, other->mnemonic);
        }
}

int main(void) {
    return expect_all();
}
