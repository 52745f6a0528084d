// The C library: memory, texts, sorting, a file that is written, read again and removed.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 200 };

static int compare(const void *a, const void *b) {
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

static void sorting(void) {
    int *numbers = malloc(COUNT * sizeof *numbers), sum = 0;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (int)(random_bits() >> 45);
    qsort(numbers, COUNT, sizeof *numbers, compare);
    for (int i = 1; i < COUNT; i++)
        sum += (numbers[i] >= numbers[i - 1]) + numbers[i] % 7;
    printf("sorted %d %d %d\n", sum, numbers[0], numbers[COUNT - 1]);
    free(numbers);
}

static void moving(void) {
    char text[128], other[128];
    memset(text, 'x', sizeof text);
    for (unsigned i = 0; i < sizeof text - 1; i++)
        text[i] = (char)('a' + i % 26);
    text[sizeof text - 1] = '\0';
    for (unsigned at = 0; at < 9; at++) { // odd addresses and lengths
        memcpy(other + at, text + 2 * at, 50 + at);
        memmove(text + at + 3, text + at, 40);
        other[at + 50] = '\0';
        printf("moved %u %s %d\n", at, other + at, strcmp(other + at, text));
    }
    printf("parsed %d %.3f %s\n", atoi("-4711"), strtod("2.5e-1", NULL),
           strstr("needle in hay", "in"));
}

static void files(void) {
    const char *name = "c66x-sim-test.txt";
    char line[64] = "";
    FILE *file = fopen(name, "w");
    if (!file) {
        puts("file cannot be made");
        return;
    }
    for (int i = 0; i < 100; i++)
        fprintf(file, "line %d\n", i);
    fclose(file);
    file = fopen(name, "r");
    fseek(file, 8, SEEK_SET);
    fgets(line, sizeof line, file);
    printf("read '%.6s' ", line);
    fseek(file, -8, SEEK_END);
    fgets(line, sizeof line, file);
    fclose(file);
    printf("and '%.7s', removed %d, ", line, remove(name));
    printf("missing %d\n", fopen(name, "r") == NULL);
}

void texts(void) {
    sorting();
    moving();
    files();
}
