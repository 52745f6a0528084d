// Programs of test_core.c: words as GNU as makes them at 0x0c000000, and their text. What
// follows them in memory is 0, a nop.
// SPDX-License-Identifier: Apache-2.0 OR MIT
// clang-format off: one instruction a line
#ifndef C66X_CORE_PROGRAMS_H
#define C66X_CORE_PROGRAMS_H

#include "line.h"

static const struct line load_delay[] = {
    {0x028000a8, "mvk .S1 1,a5"},    {0x02900264, "ldw .D1T1 *+a4(0),a5"},
    {0x08140fd8, "or .L1 0,a5,a16"}, {0x08940fd8, "or .L1 0,a5,a17"},
    {0x09140fd8, "or .L1 0,a5,a18"}, {0x09940fd8, "or .L1 0,a5,a19"},
    {0x0a140fd8, "or .L1 0,a5,a20"},
};

static const struct line branch_delay[] = {
    {0x00000390, "b .S1 c00001c"},   {0x00842058, "add .L1 1,a1,a1"},
    {0x00842058, "add .L1 1,a1,a1"}, {0x00842058, "add .L1 1,a1,a1"},
    {0x00842058, "add .L1 1,a1,a1"}, {0x00842058, "add .L1 1,a1,a1"},
    {0x00850058, "add .L1 8,a1,a1"}, {0x018031a8, "mvk .S1 99,a3"},
};

static const struct line branch_cuts_nop[] = {
    {0x00000190, "b .S1 c00000c"},
    {0x00010000, "nop 9"},
    {0x008000a8, "mvk .S1 1,a1"},
    {0x018031a8, "mvk .S1 99,a3"},
};

static const struct line false_predicates[] = {
    {0xc003a120, "[a0] bnop .S1 c00000c,5"},
    {0xc1836162, "[a0] addkpc .S2 c00000c,b3,3"},
    {0x008003a8, "mvk .S1 7,a1"},
    {0x018031a8, "mvk .S1 99,a3"},
};

static const struct line two_branches[] = {
    {0x00000190, "b .S1 c00000c"}, {0x00000310, "b .S1 c000018"}, {0x00006000, "nop 4"},
    {0x008000a8, "mvk .S1 1,a1"},  {0x01000128, "mvk .S1 2,a2"},  {0x00000000, "nop 1"},
    {0x018031a8, "mvk .S1 99,a3"},
};

static const struct line in_parallel[] = {
    {0x02900fd9, "or .L1 0,a4,a5"},
    {0x021406a0, "|| or .S1 0,a5,a4"},
    {0x03200275, "stw .D1T1 a6,*+a8(0)"},
    {0x032002e6, "|| ldw .D2T2 *+b8(0),b6"},
    {0x00006000, "nop 4"},
};

static const struct line calls[] = {
    {0x10000412, "callp .S2 c000020,b3"},
    {0x008000d0, "addk .S1 1,a1"},
    {0x01860163, "addkpc .S2 c000018,b3,0"},
    {0x00000410, "|| b .S1 c000020"},
    {0x00006000, "nop 4"},
    {0x01000128, "mvk .S1 2,a2"},
    {0x018031a8, "mvk .S1 99,a3"},
    {0x00010000, "nop 9"},
    {0x000c0362, "b .S2 b3"},
    {0x050c1fd8, "or .L1X 0,b3,a10"},
    {0x048000d0, "addk .S1 1,a9"},
    {0x00004000, "nop 3"},
};

static const struct line counting[] = {
    {0x00801020, "bdec .S1 c000000,a1"},
    {0x048000d0, "addk .S1 1,a9"},
    {0x00006000, "nop 4"},
    {0x01000020, "bpos .S1 c000000,a2"},
    {0x00008000, "nop 5"},
    {0x018031a8, "mvk .S1 99,a3"},
};

static const struct line addressing[] = {
    {0x08103664, "ldw .D1T1 *a4++(4),a16"},      {0x08905264, "ldw .D1T1 *++a4(8),a17"},
    {0x09103464, "ldw .D1T1 *a4--(4),a18"},      {0x09903064, "ldw .D1T1 *--a4(4),a19"},
    {0x0a102264, "ldw .D1T1 *+a4(4),a20"},       {0x0a902064, "ldw .D1T1 *-a4(4),a21"},
    {0x0b10aa64, "ldw .D1T1 *+a4[a5],a22"},      {0x0b90aa44, "ldh .D1T1 *+a4[a5],a23"},
    {0x0c10aa14, "ldbu .D1T1 *+a4[a5],a24"},     {0x0c90aa24, "ldb .D1T1 *+a4[a5],a25"},
    {0x0d10a804, "ldhu .D1T1 *-a4[a5],a26"},     {0x0d982334, "ldnw .D1T1 *+a6(4),a27"},
    {0x0e1c3764, "lddw .D1T1 *a7++(8),a29:a28"}, {0x0f1cab24, "ldndw .D1T1 *+a7(a5),a31:a30"},
    {0x0800646e, "ldw .D2T2 *+b14(400),b16"},    {0x00006000, "nop 4"},
};

static const struct line storing[] = {
    {0x02903634, "stb .D1T1 a5,*a4++(1)"},     {0x02902254, "sth .D1T1 a5,*+a4(2)"},
    {0x02906274, "stw .D1T1 a5,*+a4(12)"},     {0x02982354, "stnw .D1T1 a5,*+a6(4)"},
    {0x041c3744, "stdw .D1T1 a9:a8,*a7++(8)"}, {0x041cbd74, "stndw .D1T1 a9:a8,*a7--(a5)"},
};

static const struct line controls[] = {
    {0x024403e2, "mvc .S2 dnum,b4"},
    {0x051403a2, "mvc .S2 b5,tscl"},
    {0x00008000, "nop 5"},
    {0x032803e2, "mvc .S2 tscl,b6"},
    {0x03ac03e2, "mvc .S2 tsch,b7"},
    {0x06a003a2, "mvc .S2 b8,ilc"},
    {0x00004000, "nop 3"},
    {0x04b403e2, "mvc .S2 ilc,b9"},
    {0x054003e2, "mvc .S2 pce1,b10"},
    {0x10006000, "rint"},
    {0x058403e2, "mvc .S2 csr,b11"},
    {0x10004000, "dint"},
    {0x060403e2, "mvc .S2 csr,b12"},
};

static const struct line loop_buffer[] = {
    {0x069003a2, "mvc .S2 b4,ilc"},
    {0x00006000, "nop 4"},
    {0x00038000, "sploop 1"},
    {0x02903664, "ldw .D1T1 *a4++(4),a5"},
    {0x00006000, "nop 4"},
    {0x0a034001, "spkernel 5,0"},
    {0x0314c078, "|| add .L1 a6,a5,a6"},
    {0x018031a8, "mvk .S1 99,a3"},
};

static const struct line idle_until_branch[] = {
    {0x00000110, "b .S1 c000008"}, {0x0001e000, "idle"}, {0x008000d0, "addk .S1 1,a1"},
    {0x00000310, "b .S1 c000018"}, {0x0001e000, "idle"}, {0x010000a8, "mvk .S1 1,a2"},
    {0x018031a8, "mvk .S1 99,a3"},
};

static const struct line idle_for_ever[] = {
    {0x00000000, "nop 1"},
    {0x0001e000, "idle"},
    {0x018031a8, "mvk .S1 99,a3"},
};

static const struct line double_result[] = {
    {0x04188700, "mpydp .M1 a5:a4,a7:a6,a9:a8"},
    {0x0000e000, "nop 8"},
    {0x08200fd9, "or .L1 0,a8,a16"},
    {0x08a406a0, "|| or .S1 0,a9,a17"},
    {0x09200fd9, "or .L1 0,a8,a18"},
    {0x09a406a0, "|| or .S1 0,a9,a19"},
};

static const struct line early_read[] = {
    {0x02900264, "ldw .D1T1 *+a4(0),a5"},
    {0x00004000, "nop 3"},
    {0x03140fd8, "or .L1 0,a5,a6"},
    {0x00008000, "nop 5"},
};

static const struct line changed_source[] = {
    {0x04188319, "adddp .L1 a5:a4,a7:a6,a9:a8"},
    {0x038000a8, "|| mvk .S1 1,a7"},
    {0x00010000, "nop 9"},
};

static const struct line in_time[] = {
    {0x02900264, "ldw .D1T1 *+a4(0),a5"},
    {0x00006000, "nop 4"},
    {0x03140fd8, "or .L1 0,a5,a6"},
    {0x00008000, "nop 5"},
};

static const struct line same_time[] = {
    {0x02900264, "ldw .D1T1 *+a4(0),a5"},
    {0x00004000, "nop 3"},
    {0x028000a8, "mvk .S1 1,a5"},
    {0x00008000, "nop 5"},
};

static const struct line not_modelled[] = {
    {0x00002000, "nop 2"},
    {0x03148470, "gmpy4 .M1 a4,a5,a6"},
    {0x00008000, "nop 5"},
};

static const struct line circular[] = {
    {0x001003a2, "mvc .S2 b4,amr"},
    {0x00008000, "nop 5"},
};

static const struct line return_from_interrupt[] = {
    {0x031003a2, "mvc .S2 b4,irp"},
    {0x001800e2, "b .S2 irp"},
    {0x00008000, "nop 5"},
    {0x008000a8, "mvk .S1 1,a1"},
};

#endif
