// SPDX-License-Identifier: GPL-2.0-or-later
// Sets of a node's GPUs by their numbers, as Slurm writes them: "0,1" or "0-3".
#include "gpus.h"

#include <stdio.h>
#include <string.h>

/* A decimal number below JM_GPUS_MAX; where it ends, or NULL. */
static const char *take_number(const char *text, unsigned *number) {
    const char *at = text;
    for (*number = 0; *at >= '0' && *at <= '9' && *number < JM_GPUS_MAX; at++)
        *number = *number * 10 + (unsigned)(*at - '0');
    return at > text && *number < JM_GPUS_MAX ? at : NULL;
}

bool jm_gpus_parse(const char *text, jm_gpus *gpus) {
    jm_gpus found = 0;
    for (const char *at = text; *at;) {
        unsigned first, last;
        if (!(at = take_number(at, &first)))
            return false;
        last = first;
        if (*at == '-' && !(at = take_number(at + 1, &last)))
            return false;
        if (last < first || (*at != '\0' && (*at != ',' || at[1] == '\0')))
            return false;
        for (unsigned i = first; i <= last; i++)
            found |= UINT64_C(1) << i;
        at += *at == ',';
    }
    *gpus = found;
    return true;
}

void jm_gpus_format(jm_gpus gpus, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < JM_GPUS_MAX; i++)
        if (gpus >> i & 1 && jm_format(text + used, size - used, "%s%u", used ? "," : "", i))
            used = strlen(text);
}

/* The number that [text, end) ends in; -1: none. */
static int trailing_number(const char *text, const char *end) {
    const char *start = end;
    unsigned number;
    while (start > text && start[-1] >= '0' && start[-1] <= '9')
        start--;
    return start < end && take_number(start, &number) == end ? (int)number : -1;
}

static bool ends_in(const char *name, const char *suffix) {
    size_t length = strlen(name), end = strlen(suffix);
    return length >= end && strcmp(name + length - end, suffix) == 0;
}

static jm_gpus one_gpu(int number) {
    return number >= 0 ? UINT64_C(1) << number : 0;
}

/* "A.B-pair" at the name's end: both, or none. */
static jm_gpus pair_of(const char *name) {
    const char *end = name + strlen(name) - strlen("-pair"), *dot = end;
    while (dot > name && *dot != '.')
        dot--;
    int first = trailing_number(name, dot), second = trailing_number(dot + 1, end);
    return *dot == '.' && first >= 0 && second >= 0 ? one_gpu(first) | one_gpu(second) : 0;
}

/* N of "gpu-N-PART", whose own name may end in another; -1: it is none. */
static int number_of_part(const char *name) {
    static const char start[] = "gpu-";
    unsigned number;
    const char *end = strncmp(name, start, strlen(start)) == 0
                          ? take_number(name + strlen(start), &number)
                          : NULL;
    return end && *end == '-' ? (int)number : -1;
}

jm_gpus jm_gpus_of_channel(const char *name) {
    const char *slash = strchr(name, '/');
    const char *own = slash ? slash + 1 : name;
    if (ends_in(own, "-pair"))
        return pair_of(own);
    if (ends_in(own, "-mig")) /* Slurm's numbers are then those of parts of it */
        return 0;
    int number = number_of_part(own);
    if (number < 0)
        number = trailing_number(own, own + strlen(own));
    return one_gpu(number >= 0 || !slash ? number : trailing_number(name, slash));
}
