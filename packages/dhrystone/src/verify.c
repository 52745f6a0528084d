// The values that the original's program prints as "should be", for every variable.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "dhrystone.h"

static void check_number(struct bk_check *check, long long got, long long want) {
    bk_check_value(check, check->compared, (double)got, (double)want, 0);
}

static void check_text(struct bk_check *check, const char *got, const char *want) {
    for (size_t i = 0; i < TEXT_SIZE; i++)
        check_number(check, got[i], want[i]);
}

static void check_record(struct bk_check *check, const struct record *record, enum identity choice,
                         int number) {
    check_number(check, record->next == record_second, 1);
    check_number(check, record->kind, FIRST);
    check_number(check, record->as.first.choice, choice);
    check_number(check, record->as.first.number, number);
    check_text(check, record->as.first.text, "DHRYSTONE PROGRAM, SOME STRING");
}

static void check_globals(struct bk_check *check, uint64_t passes) {
    check_number(check, global_number, 5);
    check_number(check, global_truth, 1);
    check_number(check, global_char_1, 'A');
    check_number(check, global_char_2, 'B');
    check_number(check, global_vector[8], 7);
    check_number(check, global_matrix[8][7], (long long)passes + 10);
    check_record(check, record_head, THIRD, 17);
    check_record(check, record_second, SECOND, 18);
}

static void check_locals(struct bk_check *check, const struct dhrystone_locals *locals) {
    check_number(check, locals->number_1, 5);
    check_number(check, locals->number_2, 13);
    check_number(check, locals->number_3, 7);
    check_number(check, locals->choice, SECOND);
    check_text(check, locals->text_1, "DHRYSTONE PROGRAM, 1'ST STRING");
    check_text(check, locals->text_2, "DHRYSTONE PROGRAM, 2'ND STRING");
}

struct bk_check dhrystone_verify(uint64_t passes, const struct dhrystone_locals *locals) {
    struct bk_check check = BK_CHECK_START;
    check_globals(&check, passes);
    check_locals(&check, locals);
    return check;
}

struct bk_check dhrystone_repeat(uint64_t passes, uint64_t times) {
    struct bk_check all = BK_CHECK_START;
    for (uint64_t i = 0; i < times && all.ok; i++) {
        struct dhrystone_locals locals;
        dhrystone_start();
        dhrystone_run(passes, &locals);
        struct bk_check one = dhrystone_verify(passes, &locals);
        one.compared += all.compared;
        all = one;
    }
    return all;
}
