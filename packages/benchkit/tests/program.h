// A made-up benchmark for the unit tests.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef PROGRAM_H
#define PROGRAM_H

#include "session.h"

static const char *const test_kernels[] = {"copy", "triad", NULL};
static const struct bk_variant test_auto = {.name = "auto"}, test_serial = {.name = "serial"},
                               test_omp = {.name = "omp"}, test_mpi = {.name = "mpi", .mpi = true};
static const struct bk_variant *const test_variants[] = {&test_auto, &test_serial, &test_omp,
                                                         &test_mpi, NULL};
static const uint64_t test_sizes[] = {10, 20, 50};
static const uint64_t test_other_sizes[] = {7};
static const struct bk_table test_tables[] = {{60, "first", test_sizes, 3},
                                              {64, "second", test_other_sizes, 1}};

static const char *const test_orders[] = {"row", "column", NULL};
enum test_extra { TEST_CACHE_LINE, TEST_SHARE, TEST_ORDER, TEST_FOLDER, TEST_EXTRAS };
static const struct bk_extra test_extras[TEST_EXTRAS] = {
    {"--cache-line", "bytes of a cache line", 64, 8, 256, true, NULL, NULL},
    {"--share", "of the rows", 0.5, 0, 1, false, NULL, NULL},
    {"--order", "of the loops", 1, 0, 0, false, test_orders, NULL},
    {"--folder", "for files", 0, 0, 0, false, NULL, "."},
};

static const struct bk_benchmark test_program = {
    .name = "test-bench",
    .summary = "for tests",
    .size_meaning = "things",
    .kernels = test_kernels,
    .variants = test_variants,
    .variants_help = "",
    .usual = BK_AUTO,
    .tables = test_tables,
    .table_count = 2,
    .quick_sizes = test_other_sizes,
    .quick_count = 1,
    .max_seconds = 60,
    .extras = test_extras,
    .extra_count = TEST_EXTRAS,
};

#endif
