// Dhrystone 2.1 (R. P. Weicker, SIGPLAN Notices 23(8), 1988): one pass's state, procedures and
// check. SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Written anew: the same statements, calls, data types and sizes of data a pass, so that its
// figures are Dhrystones. Comments give the original's names. As its rules ask, the procedures are
// in two translation units (procedures_1.c, procedures_2.c), so that none of the one is inlined
// into the other, and no values are kept over passes that a pass does not keep.
#ifndef DHRYSTONE_H
#define DHRYSTONE_H

#include "benchkit.h"

// A VAX-11/780, "1 MIPS", does so many passes a second (1 DMIPS).
#define DHRYSTONE_VAX_PER_S 1757.0

enum { TEXT_SIZE = 31, ARRAY_SIZE = 50 };

typedef char text_30[TEXT_SIZE];
typedef int vector_50[ARRAY_SIZE];
typedef int matrix_50[ARRAY_SIZE][ARRAY_SIZE];

// Enumeration: Ident_1 to Ident_5.
enum identity { FIRST, SECOND, THIRD, FOURTH, FIFTH };

// Rec_Type: a variant record of the original's Ada version.
struct record {
    struct record *next; // Ptr_Comp
    enum identity kind;  // Discr
    union {
        struct {
            enum identity choice; // Enum_Comp
            int number;           // Int_Comp
            text_30 text;         // Str_Comp
        } first;
        struct {
            enum identity choice;
            text_30 text;
        } second;
        struct {
            char one;
            char two;
        } third;
    } as;
};

// The global variables. On the DSP each core has its own, in its own fast memory.
extern BK_FAST struct record *record_head;   // Ptr_Glob
extern BK_FAST struct record *record_second; // Next_Ptr_Glob
extern BK_FAST int global_number;            // Int_Glob
extern BK_FAST int global_truth;             // Bool_Glob
extern BK_FAST char global_char_1;           // Ch_1_Glob
extern BK_FAST char global_char_2;           // Ch_2_Glob
extern BK_FAST vector_50 global_vector;      // Arr_1_Glob
extern BK_FAST matrix_50 global_matrix;      // Arr_2_Glob

// procedures_1.c
void procedure_1(struct record *record);
void procedure_2(int *number);
void procedure_3(struct record **record);
void procedure_4(void);
void procedure_5(void);

// procedures_2.c
void procedure_6(enum identity choice, enum identity *result);
void procedure_7(int one, int two, int *result);
void procedure_8(vector_50 vector, matrix_50 matrix, int one, int two);
enum identity function_1(char one, char two);
int function_2(const text_30 one, const text_30 two);
int function_3(enum identity choice);

// The local variables of the original's main program, as the last pass left them.
struct dhrystone_locals {
    int number_1;
    int number_2;
    int number_3;
    enum identity choice;
    text_30 text_1;
    text_30 text_2;
};

// Sets the global variables to what they are before the first pass.
void dhrystone_start(void);

// Does `passes` passes.
void dhrystone_run(uint64_t passes, struct dhrystone_locals *locals);

// Compares every variable with the value that the original's program says it should have after
// `passes` passes since dhrystone_start.
struct bk_check dhrystone_verify(uint64_t passes, const struct dhrystone_locals *locals);

// Start, passes and check, `times` over; the outcome of the checks together.
struct bk_check dhrystone_repeat(uint64_t passes, uint64_t times);

// What one measurement runs: an iteration is `passes` passes by each core.
struct dhrystone_work {
    uint64_t passes;
    unsigned cores;
    struct bk_check check; // of the last run
};

// The backends; their kernels work on a struct dhrystone_work.
extern const struct bk_variant dhrystone_serial;
#ifdef BENCH_C66X
extern const struct bk_variant dhrystone_c66x; // all cores of the DSP
#endif

#endif
