// A session's insides, shared by measuring (measure.c) and reporting (session.c).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_SESSION_H
#define BENCHKIT_SESSION_H

#include "benchkit.h"
#include "machine.h"

#include <stdio.h>

struct bk_session {
    const struct bk_program *program;
    const struct bk_options *options;
    struct bk_machine machine;
    FILE *raw;
    FILE *cooked;
    const char *raw_name;
    char *cooked_name;
    int status;
};

// Name of a case's region, unique within the job step.
void bk_region_name(const struct bk_session *session, const struct bk_case *what, char *name,
                    size_t size);

// Now, in UTC, as ISO 8601 with an offset that every parser takes.
void bk_write_now(char *text, size_t size);

#endif
