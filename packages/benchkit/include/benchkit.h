/* benchkit: what all benchmarks share - command line, timing, repetition, verification, output.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A benchmark describes itself (struct bk_program), parses its command line (bk_parse), opens a
 * session (bk_open), and for each case measures (bk_measure), verifies and reports (bk_report);
 * bk_close gives its exit code. Raw and cooked output are the idea of RZBENCH; the quantities are
 * those of PRACE-1IP D9.3.3, annex 8.1: all of them per ONE iteration.
 */
#ifndef BENCHKIT_H
#define BENCHKIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exit codes of every benchmark. */
enum bk_exit {
    BK_OK = 0,
    BK_UNVERIFIED = 1, /* a result failed its verification */
    BK_USAGE = 2,      /* wrong command line */
    BK_SYSTEM = 3,     /* out of memory, or input/output failed */
};

/* ---- A benchmark's description and its command line ------------------------------------------ */

/* Problem sizes of a published result table, selected by --table NUMBER. */
struct bk_table {
    unsigned number;
    const char *title;
    const uint64_t *sizes;
    size_t count;
};

/* An option that one benchmark alone has: a number between limits, or one of some words. */
struct bk_extra {
    const char *name;         /* as typed, e.g. "--offset" */
    const char *help;         /* one line, with the unit */
    double standard;          /* without the option; of words, an index */
    double least, most;       /* a number's limits, inclusive */
    bool whole;               /* whole numbers only */
    const char *const *words; /* NULL-terminated; NULL: a number is asked for */
};

enum { BK_EXTRAS_MAX = 16 };

/* What a benchmark is; names are NULL-terminated lists of at most 32, masks have bit i for name i.
 */
struct bk_program {
    const char *name;
    const char *summary;
    const char *size_meaning; /* for --help, e.g. "elements of one vector" */
    const char *const *kernels;
    const char *const *variants;
    const char *variants_help;
    uint32_t default_variants; /* without --variant */
    uint32_t all_variants;     /* --variant all, and --quick */
    const struct bk_table *tables;
    size_t table_count;
    size_t default_table; /* index: its sizes are the default */
    const uint64_t *quick_sizes;
    size_t quick_count;
    double max_seconds;       /* default of --max-seconds-per-size */
    unsigned default_threads; /* without --threads; what OpenMP would use, or 1 */
    const struct bk_extra *extras;
    size_t extra_count;    /* at most BK_EXTRAS_MAX */
    uint32_t mpi_variants; /* that the ranks of an MPI job run together; see struct bk_team */
};

/* A parsed command line. Strings belong to argv; sizes are freed by bk_free_options. */
struct bk_options {
    uint64_t *sizes;
    size_t size_count;
    unsigned table; /* whose sizes these are; 0: none's */
    uint32_t kernels;
    uint32_t variants;
    unsigned threads;
    double min_seconds; /* timed seconds of one measurement, at least */
    double max_seconds; /* a measurement starts no repetition after this many timed seconds */
    const char *cooked;
    const char *raw;
    bool quick;
    double extras[BK_EXTRAS_MAX]; /* [program->extra_count]: number, or index of the word */
};

/* Parses argv into *options. Returns -1 to go on, else the exit code: BK_OK after --help, BK_USAGE
 * or BK_SYSTEM after an error that it printed (option, value, fix). */
int bk_parse(const struct bk_program *program, struct bk_options *options, int argc, char **argv);
void bk_free_options(struct bk_options *options);

/* ---- Ranks of an MPI job --------------------------------------------------------------------- */

/* The ranks that run the program together: all make the same calls in the same order, with the same
 * options and sizes. They agree on times, memory and verification, so that all take the same
 * decisions; rank 0 alone writes. With more than one rank only mpi_variants can be chosen; without
 * MPI's launcher (mpirun, srun --mpi=...) only the others, so that these never need an MPI. */
struct bk_team {
    unsigned rank;
    unsigned ranks;
    unsigned ranks_on_node;
    bool first_on_node;              /* its energy is the node's */
    double (*maximum)(double value); /* over all ranks; NULL without MPI */
    double (*sum)(double value);
};

/* Programs with the backend mpi call bk_mpi_begin first of all, which starts MPI if a launcher
 * started the program, and return bk_mpi_end(exit code). Both are there where BENCH_MPI is. */
void bk_mpi_begin(int *argc, char ***argv);
int bk_mpi_end(int status);

void bk_set_team(const struct bk_team *team); /* what bk_mpi_begin does; copied */
unsigned bk_rank(void);                       /* 0 without MPI */
unsigned bk_ranks(void);                      /* 1 without MPI */

/* ---- Cores and memory of a DSP --------------------------------------------------------------- */

/* Runs `work` on `cores` cores and returns when all have; `core` counts from 0. The bare-metal port
 * uses the DSP's cores; a host calls them in turn, so that the same file can be tested there. The
 * cores can't wait for each other inside `work`: where they must, call bk_cores again. */
void bk_cores(void (*work)(void *context, unsigned core, unsigned cores), void *context,
              unsigned cores);
unsigned bk_core_count(void); /* 8: the C6678's, on a host too */

/* Where a static array lies: BK_FAST in the core's own L2, BK_SHARED in the memory that all cores
 * share. The bare-metal port defines both; on a host they say nothing. */
#ifndef BK_FAST
#define BK_FAST
#endif
#ifndef BK_SHARED
#define BK_SHARED
#endif

/* ---- Memory ---------------------------------------------------------------------------------- */

/* `bytes` of memory, aligned for huge pages and not yet touched; NULL when there is none. */
void *bk_allocate(size_t bytes);
void bk_release(void *memory);

/* True when `bytes` of each rank fit the memory that every machine has to spare; else prints what
 * is needed. */
bool bk_memory_suffices(const char *program, uint64_t size, double bytes);

/* ---- Measuring ------------------------------------------------------------------------------- */

/* Runs the kernel `iterations` times. */
typedef void bk_kernel(void *context, uint64_t iterations);

/* What is measured. */
struct bk_case {
    const char *kernel;
    const char *variant;
    uint64_t size;
    double operations;     /* of one iteration, by all threads and ranks together */
    const char *operation; /* "byte", "flop", or another word in the singular */
    unsigned threads;      /* of one rank */
    unsigned ranks;        /* that share the work; 0: one */
    const char *device;    /* that computes, e.g. "NVIDIA H200"; NULL: the CPU */
    /* Makes the input that the next `iterations` of the kernel use up, at most most_iterations; not
     * timed and not in the region. NULL: the kernel leaves its input as it was. */
    bk_kernel *prepare;
    uint64_t most_iterations;
};

/* What was measured; per ONE iteration unless said otherwise. */
struct bk_timing {
    uint64_t iterations;         /* in the region, all repetitions together */
    uint64_t repetitions;        /* >= 2 */
    double *repetition_s;        /* [repetitions], mean seconds of one iteration in each */
    double time_s;               /* mean */
    double best_s;               /* the fastest repetition */
    double spread_s;             /* standard deviation of that mean, k=1 */
    double region_seconds;       /* all repetitions, by the daemon's clock where there is one */
    bool has_energy;             /* the fields below are meaningful */
    bool estimated;              /* energy from a model, not an instrument */
    double energy_j;             /* joules */
    double energy_uncertainty_j; /* joules, k=2 */
    double power_w;              /* mean watts over the region */
    char region[256];            /* its name, unique in the job step */
    char start[40];              /* ISO 8601, UTC */
};

struct bk_session;

/* Nanoseconds of a clock that only goes forward. */
uint64_t bk_now_ns(void);

/* Opens the outputs and writes the raw header. NULL after an error that it printed (exit
 * BK_SYSTEM). program and options must outlive the session. */
struct bk_session *bk_open(const struct bk_program *program, const struct bk_options *options);

/* Measures one case: finds how many iterations make a repetition long enough, then marks a region
 * around repetitions until they last min_seconds and their mean is known to 1 %, or max_seconds are
 * over (three at least; two where max_seconds stop it). With MPI, times are the slowest rank's and
 * energies the sum over the nodes. Returns false only when memory is out.
 * bk_free_timing frees what it holds. */
bool bk_measure(struct bk_session *session, const struct bk_case *what, bk_kernel *kernel,
                void *context, struct bk_timing *timing);
void bk_free_timing(struct bk_timing *timing);

/* Seconds of one iteration, from one short run: for planning, not for reporting. */
double bk_quick_time(bk_kernel *kernel, void *context, double seconds);

/* Which of two contexts (0 or 1) the kernel runs faster with, from `rounds` short runs of each. */
unsigned bk_faster(bk_kernel *kernel, void *const contexts[2], double seconds, unsigned rounds);

/* ---- Verification ---------------------------------------------------------------------------- */

/* Outcome of comparing results with what they should be; start from BK_CHECK_START. */
struct bk_check {
    bool ok;
    uint64_t compared;
    double worst_ratio;   /* largest |got - want| / tolerance; a correct result has <= 1 */
    uint64_t worst_index; /* where, and what was there */
    double got;
    double want;
    uint64_t digest; /* of the bits of all that was got: equal results have equal digests */
};
#define BK_CHECK_START ((struct bk_check){.ok = true})

/* Compares one value; `tolerance` is absolute, and 0 asks for equality. A NaN never passes. */
void bk_check_value(struct bk_check *check, uint64_t index, double got, double want,
                    double tolerance);

/* ---- Output ---------------------------------------------------------------------------------- */

/* Writes one measurement to the raw and cooked outputs. A result that is not ok, or compared
 * nothing, has no performance, time or energy, and makes the exit code BK_UNVERIFIED. With MPI,
 * each rank gives the check of its own part. */
void bk_report(struct bk_session *session, const struct bk_case *what,
               const struct bk_timing *timing, const struct bk_check *check);

/* Writes a remark to the raw output. */
void bk_note(struct bk_session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Closes the outputs; returns the benchmark's exit code (an enum bk_exit). */
int bk_close(struct bk_session *session);

#ifdef __cplusplus
}
#endif
#endif
