// A run's command line and session: parsing (options.c), running (run.c), measuring (measure.c) and
// reporting (session.c).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_SESSION_H
#define BENCHKIT_SESSION_H

#include "benchkit.h"
#include "machine.h"
#include "pinning.h"

#include <stdio.h>

struct bk_session {
    const struct bk_benchmark *benchmark;
    const struct bk_options *options;
    struct bk_machine machine;
    unsigned team_nodes; // on which the ranks of this MPI job are
    FILE *raw;
    FILE *cooked;
    const char *raw_name;
    char *cooked_name;
    int status;
    enum bk_pinning pinning; // of the last result's threads, whichever rank's
    bool told_of_floating;
    bool measured; // anything at all
    bool left_out; // a size that was asked for
};

// Parses argv into *options; `threads` are those without --threads and at most. Returns -1 to go
// on, else the exit code: BK_OK after --help, BK_USAGE or BK_SYSTEM after an error that it printed
// (option, value, fix). bk_free_options frees the sizes.
int bk_parse(const struct bk_benchmark *benchmark, struct bk_threads threads,
             struct bk_options *options, int argc, char **argv);
void bk_free_options(struct bk_options *options);

// Opens the outputs and writes the raw header. NULL after an error that it printed (exit
// BK_SYSTEM). benchmark and options must outlive the session.
struct bk_session *bk_open(const struct bk_benchmark *benchmark, const struct bk_options *options);

// Notes that a result is wrong: the exit code will tell.
void bk_unverified(struct bk_session *session);

// Closes the outputs; returns the benchmark's exit code (an enum bk_exit).
int bk_close(struct bk_session *session);

// Name of a case's region, unique within the job step.
void bk_region_name(const struct bk_session *session, const struct bk_case *what, char *name,
                    size_t size);

// Now, in UTC, as ISO 8601 with an offset that every parser takes.
void bk_write_now(char *text, size_t size);

#endif
