// The command line: what it accepts, and that errors name option, value and fix.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_fixtures.h"
#include "program.h"

#include <math.h>

static char message[4096]; // what the last parse wrote to standard error

static int parse(struct bk_options *options, const char *arguments) {
    static char words[256]; // options point into it
    char *argv[16] = {"test-bench"};
    int argc = 1;
    snprintf(words, sizeof words, "%s", arguments);
    for (char *word = strtok(words, " "); word != NULL && argc < 15; word = strtok(NULL, " "))
        argv[argc++] = word;
    struct test_capture captured = test_capture(STDERR_FILENO);
    int status = bk_parse(&test_program, (struct bk_threads){3, 100, NULL}, options, argc, argv);
    test_captured(&captured, message, sizeof message);
    return status;
}

static void expect_sizes(const char *arguments, const uint64_t *sizes, size_t count) {
    struct bk_options options;
    expect_equal(parse(&options, arguments), -1);
    expect_equal(options.size_count, count, "of %s", arguments);
    for (size_t i = 0; i < count && i < options.size_count; i++)
        expect_equal(options.sizes[i], sizes[i], "of %s", arguments);
    bk_free_options(&options);
}

static void expect_error(const char *arguments, const char *want) {
    struct bk_options options;
    expect_equal(parse(&options, arguments), BK_USAGE);
    expect_part(message, want, "of %s", arguments);
}

static void expect_table(const char *arguments, unsigned table) {
    struct bk_options options;
    expect_equal(parse(&options, arguments), -1);
    expect_equal(options.table, table, "of %s", arguments);
    bk_free_options(&options);
}

TEST(it_is_known_whose_sizes_they_are) {
    expect_table("", 60);
    expect_table("--table 64", 64);
    expect_table("--sizes table64", 64);
    expect_table("--table 64 --sizes 7", 0);
    expect_table("--quick", 0);
}

TEST(sizes_come_from_list_range_or_table) {
    expect_sizes("", (uint64_t[]){10, 20, 50}, 3);
    expect_sizes("--table 64", (uint64_t[]){7}, 1);
    expect_sizes("--sizes table64", (uint64_t[]){7}, 1);
    expect_sizes("--sizes 3,1,2", (uint64_t[]){3, 1, 2}, 3);
    expect_sizes("--sizes=1024:4096:x2", (uint64_t[]){1024, 2048, 4096}, 3);
    expect_sizes("--sizes 100:350:+100", (uint64_t[]){100, 200, 300}, 3);
    expect_sizes("--sizes 18446744073709551615", (uint64_t[]){UINT64_MAX}, 1);
    expect_sizes("--sizes 9223372036854775808:18446744073709551615:x2",
                 (uint64_t[]){UINT64_C(1) << 63}, 1);
    expect_sizes("--quick", (uint64_t[]){7}, 1);
    expect_sizes("--quick --sizes 5", (uint64_t[]){5}, 1);
}

TEST(defaults_are_the_programs) {
    struct bk_options options;
    expect_equal(parse(&options, ""), -1);
    expect_equal(options.threads, 3);
    expect(options.kernels == 3 && options.variants == 1);
    expect(options.max_seconds > 59 && options.cooked == NULL && !options.quick);
    bk_free_options(&options);
}

TEST(options_are_taken) {
    struct bk_options options;
    expect_equal(parse(&options, "--kernels triad --variant all --threads 2 --min-seconds 0.25 "
                                 "--max-seconds-per-size=9 --cooked a.jsonl --raw b.txt"),
                 -1);
    expect(options.kernels == 2 && options.variants == 6 && options.threads == 2);
    expect(options.min_seconds < 0.26 && options.max_seconds < 9.1);
    bk_free_options(&options);
}

TEST(errors_name_option_value_and_fix) {
    expect_error("--sizes 1,x", "--sizes '1,x': 'x' is not a whole number above 0; give e.g.");
    expect_error("--sizes 0", "not a whole number");
    expect_error("--sizes -5", "not a whole number");
    expect_error("--sizes 1,", "not a whole number");
    expect_error("--sizes 99999999999999999999", "not a whole number");
    expect_error("--sizes 5,5", "size 5 is given twice");
    expect_error("--sizes 1:8", "is not FROM:TO:xFACTOR");
    expect_error("--sizes 1:8:x1", "never ends or is empty");
    expect_error("--sizes 8:1:x2", "never ends or is empty");
    expect_error("--sizes 1:99999:+1", "more than 4096 sizes");
    expect_error("--table 61", "--table '61': no such table; give one of 60, 64");
    expect_error("--sizes table61", "--sizes '61': no such table; give one of 60, 64");
    expect_error("--kernels copy,add", "--kernels 'copy,add': 'add' is unknown; give all, or some "
                                       "of copy,triad");
    expect_error("--variant cop", "is unknown");
    expect_error("--threads two", "--threads 'two': is not a number of threads; give 1 to");
    expect_error("--min-seconds 0", "is not a number of seconds");
    expect_error("--min-seconds nan", "is not a number of seconds");
    expect_error("--max-seconds-per-size 0.1", "is below --min-seconds");
    expect_error("--sizes", "--sizes: needs a value; give --sizes LIST");
    expect_error("--quick=1", "takes no value");
    expect_error("--sizez 1", "--sizez: unknown option; see --help");
    expect_error("1024", "unknown option");
}

static void expect_extras(const char *arguments, double line, double share, double order,
                          const char *folder) {
    struct bk_options options;
    expect_equal(parse(&options, arguments), -1);
    expect_near(options.extras[TEST_CACHE_LINE], line, 1e-12);
    expect_near(options.extras[TEST_SHARE], share, 1e-12);
    expect_near(options.extras[TEST_ORDER], order, 1e-12);
    expect_text(options.texts[TEST_FOLDER], folder);
    bk_free_options(&options);
}

TEST(a_benchmark_has_options_of_its_own) {
    expect_extras("", 64, 0.5, 1, ".");
    expect_extras("--cache-line 128 --share=0.25 --order row --folder=/a=b", 128, 0.25, 0, "/a=b");
    expect_error("--cache-line 12.5",
                 "--cache-line '12.5': is not a whole number from 8 to 256; give one");
    expect_error("--cache-line 257", "is not a whole number from 8 to 256");
    expect_error("--cache-line x", "is not a whole number");
    expect_error("--share 1.01", "--share '1.01': is not a number from 0 to 1; give one");
    expect_error("--share nan", "is not a number");
    expect_error("--order up", "--order 'up': is unknown; give one of row,column");
    expect_error("--share", "--share: needs a value");
}

static double as_it_is(double value) {
    return value;
}

static uint32_t variants_of(const char *arguments) {
    struct bk_options options;
    uint32_t variants = parse(&options, arguments) == -1 ? options.variants : 0;
    bk_free_options(&options);
    return variants;
}

TEST(mpis_variants_are_for_mpis_ranks) {
    const struct bk_team alone = {.ranks = 1, .ranks_on_node = 1, .first_on_node = true};
    struct bk_team started = alone;
    started.maximum = as_it_is;
    started.sum = as_it_is;
    expect_error("--variant serial,mpi", "--variant 'serial,mpi': needs MPI; start it by mpirun");
    expect(variants_of("--variant all") == 6 && variants_of("--quick") == 6);
    bk_set_team(&started);
    expect(variants_of("--variant all") == 14 && variants_of("") == 1);
    started.ranks = 2;
    bk_set_team(&started);
    expect(variants_of("") == 1 && variants_of("--quick") == 8 &&
           variants_of("--variant mpi") == 8);
    expect_error("--variant serial", "--variant 'serial': runs on one rank, not on 2; start it");
    started.rank = 1;
    bk_set_team(&started);
    expect_error("--variant serial", ""); // rank 0 has said it
    expect_text(message, "");
    bk_set_team(&alone);
}

TEST(help_is_no_error) {
    struct bk_options options;
    expect_equal(parse(&options, "--help"), BK_OK);
    expect_text(message, "");
}

int main(void) {
    return expect_all();
}
