// bk_main: which variants and sizes it runs, with what, what it leaves out or refuses, and how it
// ends. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_fixtures.h"
#include "team.h"

#ifdef BENCH_OPENMP
#include <omp.h>
#endif

static char calls[1024];   // what the benchmark's functions were asked to do
static char message[4096]; // what the last run wrote to standard error
static char raw[65536];    // its raw output
static const char *trouble;
static bool wrong_check, wrong_result;

static const char *has_none(void) {
    return NULL;
}

static const char *has_one(void) {
    return "a device";
}

static double free_bytes = 1e9;

static double device_memory(void) {
    return free_bytes;
}

const struct bk_build bk_build = {.version = "1.2"};

static uint64_t iteration_ns = 2000000;

static void work(void *context, uint64_t iterations) {
    volatile double *sum = context;
    const uint64_t end_ns = bk_now_ns() + iterations * iteration_ns;
    while (bk_now_ns() < end_ns)
        *sum = *sum + 1;
}

// A benchmark's own struct begins with a bk_variant.
struct own {
    struct bk_variant is;
    char letter;
};

static const struct own first = {{.name = "first", .kernel = work}, 'f'};
static const struct own threads = {{.name = "threads", .threaded = true, .kernel = work}, 't'};
static const struct own missing = {{.name = "missing", .device = has_none, .kernel = work}, 'x'};
static const struct own device = {
    {.name = "device", .device = has_one, .kernel = work, .memory = device_memory}, 'd'};
static const struct own ranks = {{.name = "ranks", .mpi = true, .kernel = work}, 'r'};
static const struct bk_variant *const variants[] = {&first.is,  &threads.is, &missing.is,
                                                    &device.is, &ranks.is,   NULL};

static const char *const kernels[] = {"one", "two", NULL};
static const uint64_t sizes[] = {2, 3};
static const struct bk_table tables[] = {{1, "two sizes", sizes, 2}};

static void called(const char *what, const struct bk_run *run, uint64_t size) {
    const size_t used = strlen(calls);
    snprintf(calls + used, sizeof calls - used, "%s%s%c%llu/%u", used == 0 ? "" : " ", what,
             ((const struct own *)run->variant)->letter, (unsigned long long)size, run->threads);
}

static bool check(struct bk_run *run) {
    if (run->options->sizes[0] == 666)
        return bk_refuse(run, "--sizes: %d is no good; give 2", 666);
    run->options->min_seconds = 0.001;
    return true;
}

static double bytes(const struct bk_run *run, uint64_t size) {
    (void)run;
    return size == 999 ? 1e18 : 0x1p20;
}

static const char *begin(struct bk_run *run) {
    called("+", run, 0);
    expect(run->check.ok && run->check.compared == 0 && !(run->rate > 0));
    if (wrong_check)
        bk_check_value(&run->check, 0, 1, 2, 0);
    return NULL;
}

static bool tables_own(const struct bk_run *run) {
    return !run->options->asked;
}

static double operations; // of a size

static double of_any_size(uint64_t size) {
    (void)size;
    return operations;
}

static const struct bk_growth any_growth = {of_any_size, NULL, UINT64_MAX, 2, "steps"};

static bool too_long(struct bk_run *run, uint64_t size, double wanted_operations) {
    operations = wanted_operations;
    return bk_too_long(run, size, &any_growth);
}

static const char *measure(struct bk_run *run, uint64_t size) {
    called("", run, size);
    if (bk_too_large(run, size, 1000, "things"))
        return NULL;
    double sum = 0;
    const struct bk_case what = bk_describe(run, 1, size, 1000, "flop");
    expect(what.threads == run->threads && strcmp(what.kernel, "two") == 0);
    struct bk_timing timing;
    if (trouble != NULL || !bk_measure(run->session, &what, run->variant->kernel, &sum, &timing))
        return trouble;
    struct bk_check result = BK_CHECK_START;
    bk_check_value(&result, 0, wrong_result, 0, 0);
    const bool tells = timing.time_s >= 1e-3;
    const double rate = tells ? what.operations / timing.time_s : run->rate;
    bk_finish(run, &what, &timing, &result);
    expect(!(run->rate < rate) && !(run->rate > rate));
    if (!(run->rate > 0)) {
        expect(!too_long(run, size, 1e30));
        return NULL;
    }
    if (!tables_own(run))
        return NULL;
    // An iteration of a hundred times the limit, and one of a hundredth.
    expect_equal(too_long(run, size, 100 * rate * run->options->max_seconds), !run->options->quick);
    expect(!too_long(run, size, 0.01 * rate * run->options->max_seconds));
    expect_equal(bk_too_large(run, size, 2, "things"), size > 2);
    return NULL;
}

static const struct bk_benchmark all_of_them = {
    .name = "test-run",
    .summary = "for tests",
    .size_meaning = "things",
    .kernels = kernels,
    .variants = variants,
    .variants_help = "  none",
    .tables = tables,
    .table_count = 1,
    .quick_sizes = sizes,
    .quick_count = 1,
    .max_seconds = 1,
    .check = check,
    .bytes = bytes,
    .begin = begin,
    .measure = measure,
};

// Runs a program of these with some options; its exit code. What it did and wrote is in calls,
// message and raw, which is the last one's.
static int run_one_of(const struct bk_benchmark *const *benchmarks, char *name,
                      const char *options) {
    char words[256], raw_name[64];
    char *argv[16] = {"test-run", name,        "--threads", "3",
                      "--cooked", "/dev/null", "--raw",     raw_name};
    int argc = 8;
    snprintf(words, sizeof words, "%s", options);
    snprintf(raw_name, sizeof raw_name, "test_run.%ld.raw", (long)getpid());
    for (char *word = strtok(words, " "); word != NULL && argc < 15; word = strtok(NULL, " "))
        argv[argc++] = word;
    calls[0] = '\0';
    struct test_capture captured = test_capture(STDERR_FILENO);
    const int status = bk_main_each(benchmarks, argc, argv);
    test_captured(&captured, message, sizeof message);
    test_read(raw_name, raw, sizeof raw);
    unlink(raw_name);
    return status;
}

static int run(const struct bk_benchmark *benchmark, const char *options) {
    const struct bk_benchmark *const one[] = {benchmark, NULL};
    return run_one_of(one, "--min-seconds=0.5", options);
}

TEST(a_program_has_several_benchmarks) {
    struct bk_benchmark left = all_of_them, right = all_of_them;
    left.name = "test-left", left.command = "test left";
    right.name = "test-right", right.command = "test right";
    const struct bk_benchmark *const both[] = {&left, &right, NULL};
    char options[] = "--variant first --sizes 2";
    expect_equal(run_one_of(both, "right", options), BK_OK);
    expect_text(calls, "+f0/1 f2/1");
    expect_part(raw, "# test-right: for tests");
    expect_equal(run_one_of(both, "--min-seconds=0.5", options), BK_OK);
    expect_text(calls, "+f0/1 f2/1 +f0/1 f2/1");
    expect_equal(run_one_of(both, "up", options), BK_USAGE);
    expect_text(message, "test-run: 'up' is unknown; give left, right, or options alone for all of "
                         "them\n");
    wrong_result = true;
    expect_equal(run_one_of(both, "--min-seconds=0.5", options), BK_UNVERIFIED);
    expect_text(calls, "+f0/1 f2/1 +f0/1 f2/1");
    wrong_result = false;
    trouble = "no disk";
    expect_equal(run_one_of(both, "--min-seconds=0.5", options), BK_SYSTEM);
    expect_text(calls, "+f0/1 f2/1", "the second is not begun");
    trouble = NULL;
}

TEST(each_variant_runs_at_all_sizes) {
    expect_equal(run(&all_of_them, ""), BK_OK);
    expect_text(calls, "+f0/1 f2/1 f3/1 +t0/3 t2/3 t3/3 +d0/1 d2/1 d3/1");
    expect_part(raw, "two/2/device device, 1 ranks of 1 threads, a device:");
    expect_part(raw, "# left out missing: this machine has not what it needs");
    expect_part(raw, "# skipped threads 3: 2 steps would take 200 s, the limit is 1 s; give");
    expect_part(raw, "# skipped threads 3: it takes at most 2 things; give smaller");
    expect(strstr(raw, "# skipped threads 2: it takes") == NULL);
    expect_part(message, "test-run: skipped threads 3: it takes at most 2 things; give");
    expect_equal(run(&all_of_them, "--sizes 5 --variant device,first"), BK_OK);
    expect_text(calls, "+f0/1 f5/1 +d0/1 d5/1");
    expect(strstr(raw, "left out") == NULL);
    // Asked for by name, it is the benchmark's to say what is wrong.
    expect_equal(run(&all_of_them, "--quick --variant missing"), BK_OK);
    expect_text(calls, "+x0/1 x2/1");
}

// Waiting for threads takes a tiny size's time; larger ones were skipped for it.
TEST(a_short_iteration_tells_nothing_of_larger_sizes) {
    iteration_ns = 100;
    expect_equal(run(&all_of_them, "--sizes 2,5"), BK_OK);
    expect_text(calls, "+f0/1 f2/1 f5/1 +t0/3 t2/3 t5/3 +d0/1 d2/1 d5/1");
    iteration_ns = 2000000;
}

static bool is_first(const struct bk_variant *variant) {
    return variant == &first.is;
}

TEST(the_usual_ones_are_the_benchmarks_choice) {
    struct bk_benchmark benchmark = all_of_them;
    benchmark.begin = NULL;
    benchmark.usual = BK_LAST;
    expect_equal(run(&benchmark, "--sizes 2"), BK_OK);
    expect_text(calls, "d2/1");
    benchmark.usual = BK_AUTO;
    expect_equal(run(&benchmark, "--sizes 2"), BK_OK);
    expect_text(calls, "f2/1");
    expect_equal(run(&benchmark, "--quick"), BK_OK);
    expect_text(calls, "t2/3 d2/1");
    benchmark.usual = BK_ALL;
    benchmark.available = is_first;
    expect_equal(run(&benchmark, "--sizes 2"), BK_OK);
    expect_text(calls, "f2/1");
}

static double as_it_is(double value) {
    return value;
}

static void keep(char *text, size_t size, unsigned rank) {
    (void)text, (void)size, (void)rank;
}

TEST(ranks_run_what_they_share) {
    const struct bk_team alone = {.ranks = 1, .ranks_on_node = 1, .first_on_node = true};
    const struct bk_team two = {.ranks = 2,
                                .ranks_on_node = 2,
                                .first_on_node = true,
                                .maximum = as_it_is,
                                .sum = as_it_is,
                                .broadcast = keep};
    struct bk_benchmark benchmark = all_of_them;
    expect_equal(run(&benchmark, "--variant ranks"), BK_USAGE);
    bk_set_team(&two);
    expect_equal(run(&benchmark, "--sizes 2"), BK_OK);
    expect_text(calls, "+r0/1 r2/1");
    expect_part(raw, "two/2 ranks, 2 ranks of 1 threads, CPU:");
    benchmark.usual = BK_AUTO;
    expect_equal(run(&benchmark, "--sizes 2"), BK_OK);
    expect_text(calls, "+f0/1 f2/1");
    bk_set_team(&alone);
}

TEST(a_rank_knows_its_place_on_the_node) {
    static const char *const launchers[] = {"SLURM_LOCALID", "PMI_LOCAL_RANK", "MPI_LOCALRANKID",
                                            "MV2_COMM_WORLD_LOCAL_RANK",
                                            "OMPI_COMM_WORLD_LOCAL_RANK"};
    for (size_t i = 0; i < BK_COUNT(launchers); i++)
        unsetenv(launchers[i]);
    expect_equal(bk_rank_on_node(), 0);
    // Each but the last is what another's ranks may have from the job.
    for (unsigned i = 0; i < BK_COUNT(launchers); i++) {
        setenv(launchers[i], (const char *[]){"5", "4", "3", "2", "1"}[i], 1);
        expect_equal(bk_rank_on_node(), 5 - i);
    }
    bk_set_team(&(struct bk_team){.ranks = 8, .ranks_on_node = 4, .rank_on_node = 3, .rank = 7});
    expect_equal(bk_rank_on_node(), 3);
    bk_set_team(&(struct bk_team){.ranks = 1, .ranks_on_node = 1, .first_on_node = true});
    for (size_t i = 0; i < BK_COUNT(launchers); i++)
        unsetenv(launchers[i]);
}

TEST(what_cannot_run_is_refused_before) {
    expect_equal(run(&all_of_them, "--sizes 666"), BK_USAGE);
    expect_text(message, "test-run: --sizes: 666 is no good; give 2\n");
    expect_equal(run(&all_of_them, "--sizes 2,999"), BK_SYSTEM);
    expect_part(message, "999");
    expect_equal(run(&all_of_them, "--sizes"), BK_USAGE);
    expect_equal(run(&all_of_them, "--cooked /no/such/folder/file"), BK_SYSTEM);
    expect_text(calls, "");
}

// All threads that are reported compute: neither OpenMP's environment nor the load takes some away.
TEST(threads_are_as_many_as_reported) {
#ifdef BENCH_OPENMP
    omp_set_dynamic(1);
    expect_equal(run(&all_of_them, "--sizes 2 --variant threads"), BK_OK);
    expect(!omp_get_dynamic());
    expect_equal(omp_get_thread_limit(), 5); // by tests/CMakeLists.txt
    expect_equal(run(&all_of_them, "--sizes 2 --variant threads --threads 5"), BK_OK);
    expect_text(calls, "+t0/5 t2/5");
    expect_equal(run(&all_of_them, "--sizes 2 --threads 6"), BK_USAGE);
    expect_text(message, "test-run: --threads '6': is more than OpenMP gives; give up to 5, or a "
                         "greater $OMP_THREAD_LIMIT\n");
#endif
}

TEST(trouble_ends_the_run) {
    trouble = "out of luck: try again";
    expect_equal(run(&all_of_them, ""), BK_SYSTEM);
    expect_text(calls, "+f0/1 f2/1");
    expect_text(message, "test-run: first 2: out of luck: try again\n");
    trouble = BK_TOLD;
    expect_equal(run(&all_of_them, ""), BK_SYSTEM);
    expect_text(message, "");
    trouble = NULL;
}

TEST(a_wrong_result_is_no_success) {
    wrong_result = true;
    expect_equal(run(&all_of_them, "--quick --variant first"), BK_UNVERIFIED);
    wrong_result = false;
    wrong_check = true;
    expect_equal(run(&all_of_them, "--quick --variant first"), BK_UNVERIFIED);
    expect_part(raw, "value 0 is 1 and should be 2");
    wrong_check = false;
}

TEST(what_is_skipped_is_no_success) {
    expect_equal(run(&all_of_them, "--sizes 2000"), BK_LEFT_OUT);
    expect_text(calls, "+f0/1 f2000/1 +t0/3 t2000/3 +d0/1 d2000/1");
    expect_part(message, "test-run: skipped device 2000: it takes at most 1000 things; "
                         "give smaller --sizes\n"
                         "test-run: nothing was measured: every size was skipped\n");
    expect_equal(run(&all_of_them, "--sizes 2,2000"), BK_LEFT_OUT);
    expect_part(message, "test-run: sizes that were asked for have no result: see above\n");
    // A later option that gives a table's sizes, and a table's that are left out.
    expect_equal(run(&all_of_them, "--sizes 2,2000 --sizes table1"), BK_OK);
    expect_equal(run(&all_of_them, "--sizes 2,2000 --table 1"), BK_OK);
    expect_equal(run(&all_of_them, "--sizes 2,2000 --quick"), BK_OK);
    // Small cases that were wrong are told even so.
    wrong_check = true;
    expect_equal(run(&all_of_them, "--sizes 2000"), BK_UNVERIFIED);
    wrong_check = false;
}

static double less_bytes(const struct bk_run *run, uint64_t size) {
    return all_of_them.bytes(run, size) / 2;
}

TEST(a_device_has_its_own_memory) {
    free_bytes = 0x1p19;
    expect_equal(run(&all_of_them, ""), BK_OK);
    expect_text(calls, "+f0/1 f2/1 f3/1 +t0/3 t2/3 t3/3 +d0/1");
    expect_equal(run(&all_of_them, "--sizes 5"), BK_LEFT_OUT);
    expect_part(message, "test-run: skipped device 5: it needs 1.0 MiB of the device's memory, 0.5 "
                         "MiB are free; give smaller --sizes\n");
    struct bk_benchmark less = all_of_them;
    less.device_bytes = less_bytes;
    expect_equal(run(&less, "--sizes 5"), BK_OK);
    free_bytes = 1e9;
}

static char tried[256]; // sizes
static double once_s, operation_s;

static double cube(uint64_t size) {
    return (double)size * (double)size * (double)size;
}

// As a device's: small sizes take the time of a launch.
static double grown_seconds(struct bk_run *run, uint64_t size) {
    (void)run;
    const size_t used = strlen(tried);
    snprintf(tried + used, sizeof tried - used, " %llu", (unsigned long long)size);
    return once_s + operation_s * cube(size);
}

static const struct bk_growth growth = {cube, grown_seconds, 10, 4, "steps"};

// Takes no time, but has the rate.
static const char *measure_growing(struct bk_run *run, uint64_t size) {
    if (bk_too_long(run, size, &growth))
        return NULL;
    struct bk_timing timing = {.time_s = once_s + operation_s * cube(size),
                               .repetition_s = calloc(1, sizeof(double)),
                               .repetitions = 1,
                               .iterations = 1};
    const struct bk_case what = bk_describe(run, 0, size, cube(size), "flop");
    struct bk_check result = BK_CHECK_START;
    bk_check_value(&result, 0, 0, 0, 0);
    bk_finish(run, &what, &timing, &result);
    return NULL;
}

// The limit of all_of_them is one second.
static int run_growing(const char *options) {
    struct bk_benchmark benchmark = all_of_them;
    char all[128];
    benchmark.measure = measure_growing;
    snprintf(all, sizeof all, "--variant first %s", options);
    tried[0] = '\0';
    return run(&benchmark, all);
}

TEST(a_rate_that_grows_is_tried_at_greater_sizes) {
    once_s = 1e-3, operation_s = 1e-11;
    expect_equal(run_growing("--sizes 2000"), BK_OK);
    expect_text(tried, " 10 20 40 80 160 320 640");
    // On from what was measured.
    expect_equal(run_growing("--sizes 300,2000"), BK_OK);
    expect_text(tried, " 10 20 40 80 600");
    // Not so far that a try is long itself.
    expect_equal(run_growing("--sizes 10,20000"), BK_LEFT_OUT);
    expect_text(tried, " 20 40 80 160 320 640 1280");
    expect_text(message, "test-run: skipped first 20000: 4 steps would take 335 s, the limit is "
                         "1 s; give more --max-seconds-per-size\n"
                         "test-run: sizes that were asked for have no result: see above\n");
    expect_part(raw, "# skipped first 20000: 4 steps would take 335 s");
    expect_equal(run_growing("--sizes 20000 --max-seconds-per-size 400"), BK_OK);
}

TEST(a_rate_that_does_not_grow_is_believed) {
    once_s = 0, operation_s = 1e-9;
    expect_equal(run_growing("--sizes 2000"), BK_LEFT_OUT);
    expect_text(tried, " 10 20");
    expect_equal(run_growing("--sizes 5"), BK_OK);
    expect_text(tried, "");
    // What can't be tried is begun.
    operation_s = 0;
    expect_equal(run_growing("--sizes 2000"), BK_OK);
    expect_text(tried, " 10");
}

int main(void) {
    return expect_all();
}
