// A made-up benchmark for the unit tests.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef PROGRAM_H
#define PROGRAM_H

#include "benchkit.h"

static const char *const test_kernels[] = {"copy", "triad", NULL};
static const char *const test_variants[] = {"auto", "serial", "omp", NULL};
static const uint64_t test_sizes[] = {10, 20, 50};
static const uint64_t test_other_sizes[] = {7};
static const struct bk_table test_tables[] = {{60, "first", test_sizes, 3},
                                              {64, "second", test_other_sizes, 1}};

static const struct bk_program test_program = {
    .name = "test-bench",
    .summary = "for tests",
    .size_meaning = "things",
    .kernels = test_kernels,
    .variants = test_variants,
    .variants_help = "",
    .default_variants = 1,
    .all_variants = 6,
    .tables = test_tables,
    .table_count = 2,
    .quick_sizes = test_other_sizes,
    .quick_count = 1,
    .max_seconds = 60,
    .default_threads = 3,
};

#endif
