// A pass gives the original's values on every backend, and the check sees each variable.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "dhrystone.h"

// Values compared after one start: 6 global ones, 2 records of 4 and a text, 4 local ones, 2 texts.
enum { VALUES = 6 + 2 * (4 + TEXT_SIZE) + 4 + 2 * TEXT_SIZE };

static void values_are_the_originals(void) {
    static const uint64_t passes[] = {1, 2, 3, 1000};
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        struct dhrystone_work work = {.passes = passes[i], .cores = 1};
        dhrystone_serial.kernel(&work, 3);
        expect(work.check.ok && work.check.compared == 3 * VALUES, "serial, passes=%" PRIu64,
               passes[i]);
#ifdef BENCH_C66X
        work.cores = bk_core_count();
        dhrystone_c66x.kernel(&work, 2);
        expect(work.check.ok && work.check.compared == (uint64_t)2 * work.cores * VALUES,
               "c66x, passes=%" PRIu64, passes[i]);
#endif
    }
}

static struct dhrystone_locals after(uint64_t passes) {
    struct dhrystone_locals locals;
    dhrystone_start();
    dhrystone_run(passes, &locals);
    return locals;
}

static void one_wrong_variable_is_found(void) {
    struct dhrystone_locals locals = after(7);
    expect(dhrystone_verify(7, &locals).ok, "the check of seven passes");
    expect(!dhrystone_verify(8, &locals).ok, "a pass left out");
    int *const numbers[] = {&global_number,
                            &global_truth,
                            &global_vector[8],
                            &global_matrix[8][7],
                            &record_head->as.first.number,
                            &record_second->as.first.number,
                            &locals.number_1,
                            &locals.number_2,
                            &locals.number_3};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (*numbers[i])++;
        expect(!dhrystone_verify(7, &locals).ok, "a wrong number, %zu", i);
        (*numbers[i])--;
    }
    char *const letters[] = {&global_char_1,
                             &global_char_2,
                             &record_head->as.first.text[29],
                             &record_second->as.first.text[0],
                             &locals.text_1[18],
                             &locals.text_2[TEXT_SIZE - 1]};
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        (*letters[i])++;
        expect(!dhrystone_verify(7, &locals).ok, "a wrong letter, %zu", i);
        (*letters[i])--;
    }
    expect(dhrystone_verify(7, &locals).ok, "restored");
}

// Paths that a pass never takes, but a compiler must keep.
static void the_other_branches_work(void) {
    enum identity result = FIRST;
    after(1);
    procedure_6(SECOND, &result);
    expect_equal(result, FOURTH, "second, small number");
    global_number = 101;
    procedure_6(SECOND, &result);
    expect_equal(result, FIRST, "second, large number");
    procedure_6(FIFTH, &result);
    expect_equal(result, THIRD, "fifth");
    procedure_6(FOURTH, &result);
    expect_equal(result, FOURTH, "fourth");
    expect(function_1('C', 'C') == SECOND && global_char_1 == 'C', "equal letters");
    expect_equal(function_2("DHRYSTONE PROGRAM, 3'RD STRING", "DHRYSTONE PROGRAM, 2'ND STRING"), 1,
                 "a greater text");
    expect_equal(global_number, 10, "number after a greater text");
}

int main(void) {
    values_are_the_originals();
    one_wrong_variable_is_found();
    the_other_branches_work();
    return expect_result();
}
