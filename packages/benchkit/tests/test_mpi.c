// The ranks of an MPI job measure, verify and report as one; each rank checks its view of it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "fake_daemon.h"
#include "program.h"
#include "team.h"
#include "words.h"

#include <math.h>
#include <mpi.h>
#include <string.h>

static uint64_t done; // iterations, in the kernel

static void slow_on_one_rank(void *context, uint64_t iterations) {
    uint64_t start_ns = bk_now_ns(), each_ns = bk_rank() == 0 ? 200000 : 20000;
    (void)context;
    while (bk_now_ns() - start_ns < iterations * each_ns)
        continue;
    done += iterations;
}

static double agreed(double value) {
    double least = value, most = value;
    MPI_Allreduce(&value, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    expect(!(most > least));
    return most;
}

// Lines of a file that have the text in them.
static unsigned lines_with(const char *text, const char *path) {
    unsigned lines = 0;
    char line[4096];
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        lines += strstr(line, text) != NULL;
    if (file != NULL)
        fclose(file);
    return lines;
}

// What a rank's daemon tells: rank 0's and the last one's are of two nodes, which have a channel in
// common; that between them is not its node's first, and is not asked.
static const char *channels_of(unsigned rank) {
    if (rank == 0)
        return "instruments=powercap/cpu%20nvml/gpu channels=rapl/package-0%20gpu/0";
    if (rank + 1 == bk_ranks())
        return "instruments=powercap/cpu%20ipmi/node channels=rapl/package-0%20bmc";
    return "instruments=exec/node channels=other";
}

// A run of which one rank's part is wrong, or none's (wrong_rank < 0); its exit code.
static int run(const char *cooked, int wrong_rank) {
    struct bk_options options;
    char path[128];
    snprintf(path, sizeof path, "%s", cooked);
    char *argv[] = {"test-bench", "--quick", "--cooked", path, "--raw", "/dev/null", NULL};
    expect_equal(bk_parse(&test_program, (struct bk_threads){3, 100, NULL}, &options, 6, argv), -1);
    struct bk_session *session = bk_open(&test_program, &options);
    if (!expect(session != NULL))
        return BK_SYSTEM;
    const struct bk_case what = {.kernel = "copy",
                                 .variant = "mpi",
                                 .size = 7,
                                 .operations = 1,
                                 .operation = "flop",
                                 .threads = 1,
                                 .ranks = bk_ranks()};
    struct bk_timing timing;
    expect(bk_measure(session, &what, slow_on_one_rank, NULL, &timing));
    // The slowest rank's time, and the same number of everything, on all.
    expect(agreed(timing.time_s) > 150e-6);
    agreed((double)timing.repetitions);
    agreed((double)timing.iterations);
    agreed((double)done);
    // Each daemon answers 5 J, and each node counts once.
    double iterations = (double)timing.iterations, nodes = bk_ranks() > 1 ? 2 : 1;
    expect(timing.has_energy);
    expect_near(agreed(timing.energy_j) * iterations, 5 * nodes, 1e-9);
    expect_near(timing.energy_uncertainty_j * iterations, 0.0400005 * nodes, 1e-9);
    expect_near(timing.power_w, 10 * nodes, 1e-9);
    struct bk_check check = BK_CHECK_START;
    bk_check_value(&check, 0, (int)bk_rank() == wrong_rank, 0, 0);
    bk_report(session, &what, &timing, &check);
    bk_free_timing(&timing);
    bk_free_options(&options);
    return bk_close(session);
}

static void ranks_are_one_run(const char *cooked) {
    expect_equal(run(cooked, -1), BK_OK);
    expect_equal(run(cooked, (int)bk_ranks() - 1), BK_UNVERIFIED);
    MPI_Barrier(MPI_COMM_WORLD);
    expect_equal(lines_with("\n", cooked), 2);
    bool several = bk_ranks() > 1;
    expect_equal(lines_with(several ? "\"nodes\":2," : "\"nodes\":1,", cooked), 2);
    const char *told =
        several
            ? "\"instruments\":\"powercap/cpu nvml/gpu(1/2) ipmi/node(1/2)\","
              "\"channels\":\"rapl/package-0 gpu/0(1/2) bmc(1/2)\","
            : "\"instruments\":\"powercap/cpu nvml/gpu\",\"channels\":\"rapl/package-0 gpu/0\",";
    expect_equal(lines_with(told, cooked), 2);
}

static void too_many_words_are_none(void) {
    char own[1500] = "", all[BK_WORDS_MAX];
    for (size_t i = 0, used = 0; i < 100; i++, used = strlen(own))
        snprintf(own + used, sizeof own - used, "rank%u-%zu ", bk_rank(), i);
    bk_gather_words(own, all);
    expect_text(all, bk_ranks() > 1 ? "" : own);
}

static void memory_is_asked_for_by_all_ranks_of_a_node(void) {
    expect(bk_memory_suffices("test-bench", 1, 1e3));
    // One rank's wish is all ranks' answer.
    expect(!bk_memory_suffices("test-bench", 1, bk_rank() + 1 == bk_ranks() ? 1e18 : 1e3));
}

// As if the last rank were on a node of its own: one machine has to do.
static void spread_over_two_nodes(void) {
    struct bk_team team = *bk_team();
    team.first_on_node = team.rank == 0 || team.rank + 1 == team.ranks;
    bk_set_team(&team);
}

int main(int argc, char **argv) {
    bk_mpi_begin(&argc, &argv);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect_equal(bk_ranks(), (unsigned)ranks);
    char cooked[128];
    int process = getpid();
    MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(cooked, sizeof cooked, "test_mpi.%d.jsonl", process);
    static struct fake_daemon daemon;
    fake_start(&daemon);
    daemon.channels = channels_of(bk_rank());
    spread_over_two_nodes();
    ranks_are_one_run(cooked);
    fake_stop(&daemon);
    too_many_words_are_none();
    memory_is_asked_for_by_all_ranks_of_a_node();
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(cooked);
    return bk_mpi_end(expect_result());
}
