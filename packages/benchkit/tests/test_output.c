// Output: cooked lines to the letter, escapes, failed verification, and where the files go.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_fixtures.h"
#include "json.h"
#include "program.h"

#include <math.h>
#include <sched.h>
#include <sys/utsname.h>

static const char *contents(const char *path) {
    static char text[8192];
    test_read(path, text, sizeof text);
    return text;
}

TEST(strings_are_escaped) {
    char *line = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&line, &size);
    struct json_object object = json_begin(file);
    json_text(&object, "a", "q\"b\\n\n\x01\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    json_text(&object, "b", "\xff\xc3(\xed\xa0\x80\xc0\xaf\xe2\x82");
    json_text(&object, "c", NULL);
    json_number(&object, "d", 1e-7);
    json_number(&object, "e", (double)INFINITY);
    json_number(&object, "f", 16777216);
    json_end(&object);
    fclose(file);
    expect_text(line,
                "{\"a\":\"q\\\"b\\\\n\\u000a\\u0001\\u007f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\","
                "\"b\":\"\\ufffd\\ufffd(\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\","
                "\"c\":null,\"d\":1e-07,\"e\":null,\"f\":16777216}\n");
    free(line);
}

static const struct bk_case one_case = {.kernel = "copy",
                                        .variant = "omp-nt",
                                        .size = 1048576,
                                        .operations = 16777216,
                                        .operation = "byte",
                                        .threads = 2};

static double repetitions[] = {0.001, 0.003};

static struct bk_timing example(void) {
    return (struct bk_timing){.iterations = 20,
                              .repetitions = 2,
                              .repetition_s = repetitions,
                              .time_s = 0.002,
                              .best_s = 0.0019,
                              .spread_s = 0.001,
                              .region_seconds = 0.04,
                              .has_energy = true,
                              .energy_j = 0.25,
                              .energy_uncertainty_j = 0.01,
                              .power_w = 125,
                              .region = "copy/1048576",
                              .start = "2026-01-01T00:00:00+00:00"};
}

static int report(struct bk_check check) {
    unlink(test_path("cooked"));
    struct bk_options options = {
        .variants = 1, .threads = 2, .cooked = test_path("cooked"), .raw = test_path("raw")};
    struct bk_session *session = bk_open(&test_program, &options);
    if (!expect(session != NULL))
        return -1;
    struct bk_timing timing = example();
    bk_report(session, &one_case, &timing, &check);
    return bk_close(session);
}

TEST(a_verified_result_has_all_fields) {
    expect_equal(report((struct bk_check){.ok = true, .compared = 1, .digest = 0x1f}), BK_OK);
    const char *line = contents(test_path("cooked"));
    expect(strstr(line, "{\"benchmark\":\"test-bench\",\"kernel\":\"copy\",\"variant\":\"omp-nt\","
                        "\"size\":1048576,\"bytes_or_flops\":16777216,\"operations\":16777216,"
                        "\"operation\":\"byte\",\"iterations\":20,\"repetitions\":2,\"runs\":1,"
                        "\"time_s\":0.002,\"time_best_s\":0.0019,\"time_spread_s\":0.001,"
                        "\"performance\":8388608000,"
                        "\"unit\":\"B/s\",\"verified\":true,\"digest\":\"000000000000001f\","
                        "\"threads\":2,\"ranks\":1,\"nodes\":1,") == line,
           "%s", line);
    expect_part(line, "\"region\":\"copy/1048576\",\"region_seconds\":0.04,\"energy_j\":0.25,"
                      "\"energy_uncertainty_j\":0.01,\"power_w\":125,\"estimated\":false,"
                      "\"job\":\"7\",\"step\":\"0\",\"node\":\"n\\\"1\","
                      "\"start\":\"2026-01-01T00:00:00+00:00\",\"manifest\":{");
    expect_part(contents(test_path("raw")), "repetitions [s per iteration]: 0.001 0.003");
}

TEST(the_manifest_tells_how_the_program_was_built_and_what_it_runs_on) {
    bk_set_build(&(struct bk_build){.version = "1.2",
                                    .compiler = "GNU 12.2.0",
                                    .flags = "-O3 -DNAME=\"x\"",
                                    .spack_hash = "abcdef"});
    expect_equal(report((struct bk_check){.ok = true, .compared = 1}), BK_OK);
    const char *line = contents(test_path("cooked"));
    expect_part(line, "\"manifest\":{\"version\":\"1.2\",\"compiler\":\"GNU 12.2.0\","
                      "\"flags\":\"-O3 -DNAME=\\\"x\\\"\",\"libraries\":\"");
    expect_part(line, "libc.so.6");
    expect_part(line, "\"spack_spec\":null,\"spack_hash\":\"abcdef\",\"os_kernel\":\"");
    struct utsname name;
    expect_equal(uname(&name), 0);
    expect_part(line, name.release);
    expect_part(line, ",\"governor\":");
    expect_part(line, ",\"pinning\":\"");
    expect_part(line, "\",\"slurm\":\"22.05.8\",\"instruments\":null,\"channels\":null,");
    const char *end = strstr(line, ",\"frequency_hz\":");
    if (expect(end != NULL))
        expect_part(end, "}}\n");
}

// What a run of two results of so many threads says on standard error.
static const char *said_of_threads(unsigned threads, const char *device) {
    static char said[1024];
    struct bk_options options = {.cooked = test_path("cooked"), .raw = test_path("raw")};
    struct bk_session *session = bk_open(&test_program, &options);
    if (!expect(session != NULL))
        return "";
    struct bk_case what = one_case;
    what.threads = threads;
    what.device = device;
    const struct test_capture capture = test_capture(STDERR_FILENO);
    for (int result = 0; result < 2; result++) {
        struct bk_timing timing = example();
        bk_report(session, &what, &timing, &(struct bk_check){.ok = true, .compared = 1});
    }
    test_captured(&capture, said, sizeof said);
    expect_equal(bk_close(session), BK_OK);
    return said;
}

TEST(threads_that_float_are_warned_of_once) {
    static const char warning[] = "threads float from core to core, away from their caches and "
                                  "memory: set OMP_PROC_BIND=close OMP_PLACES=cores; give each "
                                  "rank cores for its threads (srun --cpus-per-task=THREADS "
                                  "--cpu-bind=cores, mpirun --map-by slot:PE=THREADS --bind-to "
                                  "core)\n";
    const bool float_here = bk_find_pinning(2) == BK_FLOATING; // not on one core
    expect_text(said_of_threads(1, NULL), "");
    expect_text(said_of_threads(100, "a GPU"), "", "its threads are its own");
    expect_text(said_of_threads(2, NULL), float_here ? test_text("test-bench: %s", warning) : "");
    expect(!float_here || strstr(contents(test_path("raw")), test_text("# %s", warning)) != NULL);
    expect(!float_here || strstr(contents(test_path("cooked")), "\"pinning\":\"none\"") != NULL);
    cpu_set_t before, one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    expect_equal(sched_getaffinity(0, sizeof before, &before), 0);
    expect_equal(sched_setaffinity(0, sizeof one, &one), 0);
    unlink(test_path("cooked"));
    expect_text(said_of_threads(2, NULL), "");
    expect_part(contents(test_path("cooked")), "\"pinning\":\"core\"");
    expect_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(devices_units_and_own_options_are_told) {
    const struct bk_case on_device = {.kernel = "step",
                                      .variant = "cuda",
                                      .size = 4,
                                      .operations = 100,
                                      .operation = "update",
                                      .threads = 1,
                                      .ranks = 3,
                                      .device = "A \"GPU\""};
    struct bk_options options = {.cooked = test_path("cooked"), .raw = test_path("raw")};
    options.extras[TEST_CACHE_LINE] = 128;
    options.extras[TEST_SHARE] = 0.25;
    options.extras[TEST_ORDER] = 1;
    options.texts[TEST_FOLDER] = "/a/b";
    setenv("SLURM_STEP_NUM_NODES", "2", 1);
    struct bk_session *session = bk_open(&test_program, &options);
    unsetenv("SLURM_STEP_NUM_NODES");
    if (!expect(session != NULL))
        return;
    struct bk_timing timing = example();
    bk_report(session, &on_device, &timing, &(struct bk_check){.ok = true, .compared = 1});
    expect_equal(bk_close(session), BK_OK);
    expect_part(contents(test_path("raw")), "# --order column\n# --folder /a/b\n");
    const char *line = contents(test_path("cooked"));
    expect_part(line, "\"performance\":50000,\"unit\":\"update/s\",");
    expect_part(line, "\"ranks\":3,\"nodes\":2,");
    expect_part(line, "\"device\":\"A \\\"GPU\\\"\",\"option_cache_line\":128,"
                      "\"option_share\":0.25,\"option_order\":\"column\",\"region\"");
}

static void expect_no_performance(struct bk_check check) {
    expect_equal(report(check), BK_UNVERIFIED);
    const char *line = contents(test_path("cooked"));
    expect_part(
        line, "\"time_s\":null,\"time_best_s\":null,\"time_spread_s\":null,\"performance\":null,");
    expect_part(line, "\"verified\":false,");
    expect_part(line, "\"energy_j\":null,\"energy_uncertainty_j\":null,\"power_w\":null,"
                      "\"estimated\":null,");
    expect_part(contents(test_path("raw")), "FAILED");
}

TEST(a_failed_or_empty_verification_has_no_performance) {
    struct bk_check wrong = BK_CHECK_START;
    bk_check_value(&wrong, 0, 1, 2, 0.5);
    expect_no_performance(wrong);
    expect_no_performance(BK_CHECK_START);
}

TEST(default_name_follows_the_job) {
    setenv("JOULEMARK_RESULTS", test_folder, 1);
    struct bk_options options = {.variants = 1, .raw = "/dev/null"};
    struct bk_session *session = bk_open(&test_program, &options);
    expect(session != NULL && bk_close(session) == BK_OK);
    expect_equal(unlink(test_path("test-bench.7.cooked.jsonl")), 0);
    unsetenv("JOULEMARK_RESULTS");
}

TEST(lost_output_is_an_error) {
    struct bk_options options = {.variants = 1, .cooked = "/dev/full", .raw = "/dev/null"};
    struct bk_session *session = bk_open(&test_program, &options);
    struct bk_timing timing = example();
    struct bk_check good = {.ok = true, .compared = 1};
    if (expect(session != NULL)) {
        bk_report(session, &one_case, &timing, &good);
        expect_equal(bk_close(session), BK_SYSTEM);
    }
    options.cooked = "/nonexistent/cooked";
    expect(bk_open(&test_program, &options) == NULL);
    // With standard output closed, the cooked file would get its number, and the raw output.
    options.cooked = test_path("closed");
    options.raw = NULL;
    const int saved = dup(STDOUT_FILENO);
    close(STDOUT_FILENO);
    expect(bk_open(&test_program, &options) == NULL);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    expect(access(test_path("closed"), F_OK) != 0);
}

int main(void) {
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("JOULEMARK_SLURM_VERSION", "22.05.8", 1);
    setenv("SLURMD_NODENAME", "n\"1", 1);
    return test_all_in_folders();
}
