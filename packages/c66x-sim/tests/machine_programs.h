// Programs of test_machine.c: words as GNU as makes them at 0x0c000000, and their text. What
// follows them in memory is 0, a nop.
// SPDX-License-Identifier: Apache-2.0 OR MIT
// clang-format off: one instruction a line
#ifndef C66X_MACHINE_PROGRAMS_H
#define C66X_MACHINE_PROGRAMS_H

#include "line.h"

static const struct line eight_cores[] = {
    {0x004403e2, "mvc .S2 dnum,b0"},
    {0x0200002b, "mvk .S2 0,b4"},
    {0x0080205a, "|| add .L2 1,b0,b1"},
    {0x020600ea, "mvkh .S2 201392128,b4"},
    {0x00900af6, "stw .D2T2 b1,*+b4[b0]"},
    {0x2012a120, "[b0] bnop .S1 c000048,5"},
    {0x02000029, "mvk .S1 0,a4"},
    {0x02900fda, "|| or .L2 0,b4,b5"},
    {0x00800428, "mvk .S1 8,a1"},
    {0x011436e6, "ldw .D2T2 *b5++(4),b2"},
    {0x0087e058, "add .L1 -1,a1,a1"},
    {0x00004000, "nop 3"},
    {0x7ffea120, "[!b2] bnop .S1 c000018,5"},
    {0x80000090, "[a1] b .S1 c000024"},
    {0x02089078, "add .L1X a4,b2,a4"},
    {0x00006000, "nop 4"},
    {0x00000000, "nop 1"},
    {0x0000a120, "bnop .S1 c000040,5"},
    {0x00000110, "b .S1 c000048"},
    {0x0001e000, "idle"},
};

static const struct line other_core_fails[] = {
    {0x004403e2, "mvc .S2 dnum,b0"},    {0x3001a120, "[!b0] bnop .S1 c000004,5"},
    {0x020010a8, "mvk .S1 33,a4"},      {0x00000000, "nop 1"},
    {0x0003a120, "bnop .S1 c00000c,5"},
};

static const struct line local_memory[] = {
    {0x004403e2, "mvc .S2 dnum,b0"},
    {0x0200002a, "mvk .S2 0,b4"},
    {0x0200406a, "mvkh .S2 8388608,b4"},
    {0x001002f6, "stw .D2T2 b0,*+b4(0)"},
    {0x2012a120, "[b0] bnop .S1 c000048,5"},
    {0x0120002a, "mvk .S2 16384,b2"},
    {0x010be05a, "add .L2 -1,b2,b2"},
    {0x6006a120, "[b2] bnop .S1 c000018,5"},
    {0x0280002a, "mvk .S2 0,b5"},
    {0x0289c06a, "mvkh .S2 327155712,b5"},
    {0x031402e6, "ldw .D2T2 *+b5(0),b6"},
    {0x039002e6, "ldw .D2T2 *+b4(0),b7"},
    {0x00006000, "nop 4"},
    {0x03188ca2, "shl .S2 b6,4,b6"},
    {0x02181fd8, "or .L1X 0,b6,a4"},
    {0x021c9078, "add .L1X a4,b7,a4"},
    {0x00000000, "nop 1"},
    {0x0000a120, "bnop .S1 c000040,5"},
    {0x00000110, "b .S1 c000048"},
    {0x0001e000, "idle"},
};

static const struct line uart_and_arguments[] = {
    {0x0200002a, "mvk .S2 0,b4"},
    {0x02012a6a, "mvkh .S2 39059456,b4"},
    {0x0110a2e6, "ldw .D2T2 *+b4(20),b2"},
    {0x030027aa, "mvk .S2 79,b6"},
    {0x038025aa, "mvk .S2 75,b7"},
    {0x00004000, "nop 3"},
    {0x631002f6, "[b2] stw .D2T2 b6,*+b4(0)"},
    {0x639002f6, "[b2] stw .D2T2 b7,*+b4(0)"},
    {0x02800028, "mvk .S1 0,a5"},
    {0x02860168, "mvkh .S1 201457664,a5"},
    {0x03144264, "ldw .D1T1 *+a5(8),a6"},
    {0x02140264, "ldw .D1T1 *+a5(0),a4"},
    {0x00006000, "nop 4"},
    {0x03980214, "ldbu .D1T1 *+a6(0),a7"},
    {0x00006000, "nop 4"},
    {0x039c2ca0, "shl .S1 a7,1,a7"},
    {0x0210e078, "add .L1 a7,a4,a4"},
    {0x00000000, "nop 1"},
    {0x0001a120, "bnop .S1 c000044,5"},
};

static const struct line host_call[] = {
    {0x00000000, "nop 1"},
    {0x00000000, "nop 1"},
    {0x02800028, "mvk .S1 0,a5"},
    {0x028601e8, "mvkh .S1 201523200,a5"},
    {0x02144244, "ldh .D1T1 *+a5(4),a4"},
    {0x00006000, "nop 4"},
    {0x00000000, "nop 1"},
    {0x0006a120, "bnop .S1 c000018,5"},
};

#endif
