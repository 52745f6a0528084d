// Dhrystone, second translation unit: procedures 6 to 8 and the functions.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "dhrystone.h"

#include <string.h>

// Proc_6: a selection by an enumeration.
void procedure_6(enum identity choice, enum identity *result) {
    *result = choice;
    if (!function_3(choice))
        *result = FOURTH;
    switch (choice) {
    case FIRST:
        *result = FIRST;
        break;
    case SECOND:
        *result = global_number > 100 ? FIRST : FOURTH;
        break;
    case THIRD: // always
        *result = SECOND;
        break;
    case FOURTH:
        break;
    case FIFTH:
        *result = THIRD;
        break;
    }
}

// Proc_7: called three times a pass; a result by reference.
void procedure_7(int one, int two, int *result) {
    int local = one + 2;
    *result = two + local;
}

// Proc_8: elements of a vector and of a matrix.
void procedure_8(vector_50 vector, matrix_50 matrix, int one, int two) {
    int local = one + 5;
    vector[local] = two;
    vector[local + 1] = vector[local];
    vector[local + 30] = local;
    for (int index = local; index <= local + 1; index++)
        matrix[local][index] = local;
    matrix[local][local - 1] += 1;
    matrix[local + 20][local] = vector[local];
    global_number = 5;
}

// Func_1: called three times a pass; compares characters.
enum identity function_1(char one, char two) {
    char first = one;
    char second = first;
    if (second != two) // always
        return FIRST;
    global_char_1 = first;
    return SECOND;
}

// Func_2: compares texts, at two characters and whole.
int function_2(const text_30 one, const text_30 two) {
    int local = 2;
    char letter = '\0';
    while (local <= 2) // once
        if (function_1(one[local], two[local + 1]) == FIRST) {
            letter = 'A';
            local += 1;
        }
    if (letter >= 'W' && letter < 'Z')
        local = 7;
    if (letter == 'R')
        return 1;
    if (strcmp(one, two) > 0) {
        local += 7;
        global_number = local;
        return 1;
    }
    return 0; // always
}

// Func_3: a truth value of an enumeration.
int function_3(enum identity choice) {
    enum identity local = choice;
    return local == THIRD;
}
