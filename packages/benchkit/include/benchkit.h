/* benchkit: what all benchmarks share - command line, timing, repetition, verification, output.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A benchmark describes itself (struct bk_benchmark, at the end) and hands itself to bk_main, which
 * parses the command line and calls it back for each variant at each size; it then measures
 * (bk_measure), verifies and reports (bk_finish). Raw and cooked output are the idea of RZBENCH;
 * the quantities are those of PRACE-1IP D9.3.3, annex 8.1: all of them per ONE iteration.
 */
#ifndef BENCHKIT_H
#define BENCHKIT_H

#include <math.h>
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
    BK_LEFT_OUT = 4,   /* a size that --sizes names was left out, or every size */
};

/* Runs the kernel `iterations` times. */
typedef void bk_kernel(void *context, uint64_t iterations);

/* ---- The command line ------------------------------------------------------------------------ */

/* Problem sizes of a published result table, selected by --table NUMBER. */
struct bk_table {
    unsigned number;
    const char *title;
    const uint64_t *sizes;
    size_t count;
};

/* An option that one benchmark alone has: a number between limits, one of some words, or a text,
 * which results do not tell: two folders' are of one kind. */
struct bk_extra {
    const char *name;         /* as typed, e.g. "--offset" */
    const char *help;         /* one line, with the unit */
    double standard;          /* without the option; of words, an index */
    double least, most;       /* a number's limits, inclusive */
    bool whole;               /* whole numbers only */
    const char *const *words; /* NULL-terminated; NULL: a number is asked for, */
    const char *text;         /* or a text: that without the option; NULL: none is */
};

enum { BK_EXTRAS_MAX = 16 };

/* A parsed command line; masks have bit i for name i. Strings belong to argv. */
struct bk_options {
    uint64_t *sizes;
    size_t size_count;
    unsigned table; /* whose sizes these are; 0: none's */
    bool asked;     /* --sizes names them: to leave one out is an error */
    uint32_t kernels;
    uint32_t variants;
    unsigned threads;
    double min_seconds; /* timed seconds of one measurement, at least */
    double max_seconds; /* a measurement starts no repetition after this many timed seconds */
    const char *cooked;
    const char *raw;
    bool quick;
    double extras[BK_EXTRAS_MAX]; /* [extra_count]: number, or index of the word */
    const char *texts[BK_EXTRAS_MAX];
};

/* ---- Ranks of an MPI job --------------------------------------------------------------------- */

/* The ranks that run the program together: all make the same calls in the same order, with the same
 * options and sizes. They agree on times, memory and verification, so that all take the same
 * decisions; rank 0 alone writes. With more than one rank only variants with `mpi` can be chosen;
 * without MPI's launcher (mpirun, srun --mpi=...) only the others, so that these never need an MPI.
 */
struct bk_team {
    unsigned rank;
    unsigned ranks;
    unsigned ranks_on_node;
    unsigned rank_on_node;
    bool first_on_node;              /* its energy is the node's */
    double (*maximum)(double value); /* over all ranks; NULL without MPI */
    double (*sum)(double value);
    void (*broadcast)(char *text, size_t size, unsigned rank); /* that rank's, to all */
};

/* First of all a program with the backend mpi, that is bk_main or a test, calls bk_mpi_begin, which
 * starts MPI if a launcher started the program; it returns bk_mpi_end(exit code). */
void bk_mpi_begin(int *argc, char ***argv);
int bk_mpi_end(int status);

void bk_set_team(const struct bk_team *team); /* what bk_mpi_begin does; copied */
unsigned bk_rank(void);                       /* 0 without MPI */
unsigned bk_ranks(void);                      /* 1 without MPI */

/* Of the ranks' values the largest, and the sum; a rank's text, for all. All ranks call these. */
double bk_team_maximum(double value);
double bk_team_sum(double value);
void bk_team_broadcast(char *text, size_t size, unsigned rank);

/* Of this process among those that a launcher started on its node, for MPI or side by side; else 0.
 */
unsigned bk_rank_on_node(void);

/* ---- Cores and memory of a DSP --------------------------------------------------------------- */

/* Runs `work` on `cores` cores and returns when all have; `core` counts from 0. The bare-metal port
 * uses the DSP's cores; a host calls them in turn, so that the same file can be tested there. The
 * cores can't wait for each other inside `work`: where they must, call bk_cores again. */
void bk_cores(void (*work)(void *context, unsigned core, unsigned cores), void *context,
              unsigned cores);
unsigned bk_core_count(void); /* 8: the C6678's, on a host too */

/* A line of a DSP's caches, in doubles and bytes. It is written back as a whole, and the caches
 * know nothing of one another: in one call of bk_cores no two cores may write to the same line. */
enum { BK_LINE = 16, BK_LINE_BYTES = BK_LINE * sizeof(double) };

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

/* A page lies on the NUMA node of the thread that touches it first. Has each of a program's
 * `threads` threads touch its part of memory that nobody has touched: equal ones, one after the
 * other, as OpenMP's schedule(static) shares a loop. Its contents are lost. */
void bk_spread(void *memory, size_t bytes, unsigned threads);
/* Memory for data that these threads will work on together: bk_allocate's, spread. */
void *bk_allocate_spread(size_t bytes, unsigned threads);

/* True when `bytes` of each rank fit the memory that every machine has to spare; else prints what
 * is needed. */
bool bk_memory_suffices(const char *program, uint64_t size, double bytes);

/* ---- Measuring ------------------------------------------------------------------------------- */

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
    /* Whether the kernel can't go on: no more repetitions. All ranks are asked, and say the same.
     * NULL: it always can. */
    bool (*stopped)(const void *context);
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

/* *sum += term; what the sum has no digits for is added to *lost (Neumaier 1974). Both begin with
 * 0; their sum is as good as one in twice the digits. */
static inline void bk_add(double *sum, double *lost, double term) {
    const double next = *sum + term;
    *lost += fabs(*sum) >= fabs(term) ? *sum - next + term : term - next + *sum;
    *sum = next;
}

/* ---- Output ---------------------------------------------------------------------------------- */

/* Writes one measurement to the raw and cooked outputs. A result that is not ok, or compared
 * nothing, has no performance, time or energy, and makes the exit code BK_UNVERIFIED. With MPI,
 * each rank gives the check of its own part. */
void bk_report(struct bk_session *session, const struct bk_case *what,
               const struct bk_timing *timing, const struct bk_check *check);

/* Writes a remark to the raw output. */
void bk_note(struct bk_session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- A benchmark ----------------------------------------------------------------------------- */

/* One way to compute: serial, by OpenMP, on a GPU. A benchmark's own struct of what it has to know
 * besides begins with one; a cast leads back to it. */
struct bk_variant {
    const char *name;
    bool threaded; /* by --threads threads; else by one */
    bool mpi;      /* by the ranks of an MPI job together; see struct bk_team */
    /* What computes; NULL where this machine has none. Without the function: the CPU. */
    const char *(*device)(void);
    bk_kernel *kernel;      /* for the benchmark's own functions */
    double (*memory)(void); /* bytes that are free on its device, 0: not known; NULL likewise */
    void (*take)(void); /* its device, before it is used: asking for its name must not wake it */
};

/* The variants that run without --variant; --quick runs all in any case. */
enum bk_usual {
    BK_ALL,  /* all that this machine can run */
    BK_LAST, /* of these the last */
    BK_AUTO, /* the first, which stands for another, whatever the ranks; `all` is without it */
};

/* A run of a benchmark, as its functions see it. */
struct bk_run {
    const struct bk_benchmark *benchmark;
    struct bk_options *options;
    struct bk_session *session;
    const struct bk_variant *variant; /* the one that runs */
    unsigned threads;                 /* of one rank: --threads, or 1 where it is not threaded */
    struct bk_check check;            /* of the variant, by small cases in `begin` */
    double rate; /* operations a second of the last size whose iteration took 1 ms; 0: none yet */
    uint64_t rate_size; /* that size */
};

/* What a benchmark is, for bk_main. Lists of names and variants end with NULL, and have at most 32;
 * functions that are NULL are not needed. */
struct bk_benchmark {
    const char *name;
    const char *command; /* as typed, "PROGRAM NAME" of a program with several; NULL: its name */
    const char *summary;
    const char *size_meaning; /* for --help, e.g. "elements of one vector" */
    const char *const *kernels;
    const struct bk_variant *const *variants;
    const char *variants_help;
    enum bk_usual usual;
    bool one_thread_a_rank; /* without --threads, where there are many ranks; else as OpenMP */
    const struct bk_table *tables;
    size_t table_count;
    size_t default_table; /* index: its sizes are the default */
    const uint64_t *quick_sizes;
    size_t quick_count;
    double max_seconds; /* default of --max-seconds-per-size */
    const struct bk_extra *extras;
    size_t extra_count; /* at most BK_EXTRAS_MAX */

    /* Whether this machine can run the variant; NULL: when its device is there. */
    bool (*available)(const struct bk_variant *variant);
    /* Looks at the options before anything is measured, and may change them. False after
     * bk_refuse. */
    bool (*check)(struct bk_run *run);
    /* Bytes of memory that each rank needs for a size: refused before anything is measured. */
    double (*bytes)(const struct bk_run *run, uint64_t size);
    /* Bytes that run->variant needs of its device's memory, NULL: as many; a size for which that
     * has no room is left out, and told. */
    double (*device_bytes)(const struct bk_run *run, uint64_t size);
    /* These two return NULL, or what is wrong and how to mend it, which ends the run with
     * BK_SYSTEM; BK_TOLD when that was printed already. */
    /* Begins a variant, e.g. checks it by small cases into run->check. */
    const char *(*begin)(struct bk_run *run);
    /* Measures, verifies and reports the variant at one size. */
    const char *(*measure)(struct bk_run *run, uint64_t size);
    /* Whatever happened, by all ranks, after the last variant. */
    void (*end)(void);
};

#define BK_TOLD ""

/* The number of an array's elements: of sizes, tables or extras. */
#define BK_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The whole of a benchmark's main: command line, MPI's ranks where the program has that backend,
 * its variants one after the other, each at all sizes; returns the exit code. */
int bk_main(const struct bk_benchmark *benchmark, int argc, char **argv);

/* Likewise of a program with several benchmarks, ended by NULL: the first argument names one; where
 * it begins with a dash, all run, one after the other, with the same options. */
int bk_main_each(const struct bk_benchmark *const *benchmarks, int argc, char **argv);

/* Threads that OpenMP would use, and the most that it gives. */
struct bk_threads {
    unsigned usual, most;
    /* Has each of so many do its part of `work`; NULL: there is the caller alone. */
    void (*run)(void (*work)(void *context, unsigned thread, unsigned threads), void *context,
                unsigned threads);
};

/* How a program was built, for its results; benchkit_benchmark() writes bk_build. NULL: unknown. */
struct bk_build {
    const char *version;  /* the benchmark's */
    const char *compiler; /* with its version; of C, and of CUDA where there is some */
    const char *flags;    /* for all files, but warnings */
    const char *spack_spec, *spack_hash;
};
extern const struct bk_build bk_build;

/* What bk_main does before MPI begins, which loads libraries of its own. */
void bk_set_build(const struct bk_build *build);

/* What bk_main and bk_main_each do between MPI's begin and end. */
int bk_run_benchmark(const struct bk_benchmark *benchmark, struct bk_threads threads, int argc,
                     char **argv);
int bk_run_each(const struct bk_benchmark *const *benchmarks, struct bk_threads threads, int argc,
                char **argv);

/* Prints what is wrong with which option, and how to mend it; always false. */
bool bk_refuse(const struct bk_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The run's variant with a kernel of the benchmark's list: what bk_measure is to know of it. */
struct bk_case bk_describe(const struct bk_run *run, unsigned kernel, uint64_t size,
                           double operations, const char *operation);

/* How long a size takes, for bk_too_long. */
struct bk_growth {
    double (*operations)(uint64_t size);                  /* of one iteration */
    double (*seconds)(struct bk_run *run, uint64_t size); /* of one, by a short try; 0: it failed */
    uint64_t smallest;                                    /* size that is worth a try */
    unsigned count;         /* iterations of a measurement, at least */
    const char *iterations; /* what to call them */
};

/* Whether a size takes longer than --max-seconds-per-size. By run->rate; where that is none yet or
 * of a smaller size and says so, by tries of sizes that double, until it says so no more, grows no
 * more, or the next try is long itself: a device is far below its speed at a small size. Never with
 * --quick. Where it is true, it said so, and the run's exit code will tell of a size that was asked
 * for. */
bool bk_too_long(struct bk_run *run, uint64_t size, const struct bk_growth *growth);

/* Whether a size is more than the `most` elements that a variant's own memory has room for; says so
 * as bk_too_long does. `elements`: what to call them. */
bool bk_too_large(const struct bk_run *run, uint64_t size, uint64_t most, const char *elements);

/* Reports what was measured, as wrong if run->check was, notes run->rate where an iteration was
 * long enough to tell of larger sizes, and frees the timing. */
void bk_finish(struct bk_run *run, const struct bk_case *what, struct bk_timing *timing,
               const struct bk_check *check);

#ifdef __cplusplus
}
#endif
#endif
