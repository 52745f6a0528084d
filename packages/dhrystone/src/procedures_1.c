// Dhrystone, first translation unit: the pass of the main program and procedures 1 to 5.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "dhrystone.h"

#include <string.h>

// Two records are enough; the original allocates them, once.
static BK_FAST struct record records[2];

BK_FAST struct record *record_head;
BK_FAST struct record *record_second;
BK_FAST int global_number;
BK_FAST int global_truth;
BK_FAST char global_char_1;
BK_FAST char global_char_2;
BK_FAST vector_50 global_vector;
BK_FAST matrix_50 global_matrix;

void dhrystone_start(void) {
    record_second = &records[0];
    record_head = &records[1];
    memset(records, 0, sizeof records);
    record_head->next = record_second;
    record_head->kind = FIRST;
    record_head->as.first.choice = THIRD;
    record_head->as.first.number = 40;
    strcpy(record_head->as.first.text, "DHRYSTONE PROGRAM, SOME STRING");
    global_number = 0;
    global_truth = 0;
    global_char_1 = '\0';
    global_char_2 = '\0';
    memset(global_vector, 0, sizeof global_vector);
    memset(global_matrix, 0, sizeof global_matrix);
    global_matrix[8][7] = 10;
}

// The loop of the original's main program.
void dhrystone_run(uint64_t passes, struct dhrystone_locals *locals) {
    int number_1 = 0, number_2 = 0, number_3 = 0;
    enum identity choice = FIRST;
    text_30 text_1, text_2;
    strcpy(text_1, "DHRYSTONE PROGRAM, 1'ST STRING");
    for (uint64_t pass = 1; pass <= passes; pass++) {
        procedure_5();
        procedure_4();
        number_1 = 2;
        number_2 = 3;
        strcpy(text_2, "DHRYSTONE PROGRAM, 2'ND STRING");
        choice = SECOND;
        global_truth = !function_2(text_1, text_2);
        while (number_1 < number_2) { // once
            number_3 = 5 * number_1 - number_2;
            procedure_7(number_1, number_2, &number_3);
            number_1 += 1;
        }
        procedure_8(global_vector, global_matrix, number_1, number_3);
        procedure_1(record_head);
        for (char letter = 'A'; letter <= global_char_2; letter++) // twice
            if (choice == function_1(letter, 'C')) {               // never
                procedure_6(FIRST, &choice);
                strcpy(text_2, "DHRYSTONE PROGRAM, 3'RD STRING");
                number_2 = (int)pass;
                global_number = (int)pass;
            }
        number_2 = number_2 * number_1;
        number_1 = number_2 / number_3;
        number_2 = 7 * (number_2 - number_3) - number_1;
        procedure_2(&number_1);
    }
    locals->number_1 = number_1;
    locals->number_2 = number_2;
    locals->number_3 = number_3;
    locals->choice = choice;
    strcpy(locals->text_1, text_1);
    strcpy(locals->text_2, text_2);
}

// Proc_1: copies a record and changes some of its components, by pointers.
void procedure_1(struct record *record) {
    struct record *next = record->next;
    *record->next = *record_head;
    record->as.first.number = 5;
    next->as.first.number = record->as.first.number;
    next->next = record->next;
    procedure_3(&next->next);
    if (next->kind == FIRST) { // always
        next->as.first.number = 6;
        procedure_6(record->as.first.choice, &next->as.first.choice);
        next->next = record_head->next;
        procedure_7(next->as.first.number, 10, &next->as.first.number);
    } else {
        *record = *record->next;
    }
}

// Proc_2: a loop that is left by its condition on an enumeration.
void procedure_2(int *number) {
    int local = *number + 10;
    enum identity choice = SECOND;
    do { // once
        if (global_char_1 == 'A') {
            local -= 1;
            *number = local - global_number;
            choice = FIRST;
        }
    } while (choice != FIRST);
}

// Proc_3: a pointer to a pointer.
void procedure_3(struct record **record) {
    if (record_head != NULL) // always
        *record = record_head->next;
    procedure_7(10, global_number, &record_head->as.first.number);
}

// Proc_4: no parameters, truth values.
void procedure_4(void) {
    int truth = global_char_1 == 'A';
    global_truth = truth | global_truth;
    global_char_2 = 'B';
}

// Proc_5: no parameters, assignments alone.
void procedure_5(void) {
    global_char_1 = 'A';
    global_truth = 0;
}
