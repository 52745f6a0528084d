// Checkpoint: a program computes, hears of its neighbour, and each so many steps writes all of its
// state to a file, as MAXW-DGTD, iPic3D and BSIT do (DEEP-ER, 2.1, 2.2, figures 11 to 14); or to
// its node's own disk, from which it goes to that file meanwhile, as DEEP-ER's cache does.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_random.h"
#include "io.h"

#include <stdio.h>
#include <string.h>

static const uint64_t sizes_1[] = {64 << 20};
static const uint64_t sizes_4[] = {1312500000};
static const uint64_t sizes_quick[] = {8, 100008};
static const struct bk_table tables[] = {
    {1, "64 MiB of each task", sizes_1, BK_COUNT(sizes_1)},
    {4, "1.3 GB of each task, of 16 on a node (figure 4: BSIT's 21 GB)", sizes_4,
     BK_COUNT(sizes_4)},
};

static const struct bk_variant *const variants[] = {
    &io_posix.base,
#ifdef BENCH_MPI
    &io_mpi.base,
    &io_mpi_io.base,
#endif
    NULL,
};

enum kernel { STEPS, SHARED, SHARED_RESTART, OWN, OWN_RESTART, LOCAL, LOCAL_RESTART, KERNELS };
static const char *const kernels[] = {
    "steps",       "shared-checkpoint", "shared-restart", "own-checkpoint",
    "own-restart", "local-checkpoint",  "local-restart",  NULL};
static const uint32_t local_kernels = 1U << LOCAL | 1U << LOCAL_RESTART;

enum { N_STEPS = IO_FOLDER + 1, EVERY, WORK, HALO, TRANSFER, WITHIN };
static const struct bk_extra extras[] = {
    [IO_FOLDER] = {.name = "--folder", .help = "where a folder for the files is made", .text = "."},
    [N_STEPS] = {.name = "--steps",
                 .help = "of an iteration, a multiple of --every",
                 .standard = 10,
                 .least = 1,
                 .most = 1 << 20,
                 .whole = true},
    [EVERY] = {.name = "--every",
               .help = "steps from one checkpoint to the next",
               .standard = 10,
               .least = 1,
               .most = 1 << 20,
               .whole = true},
    [WORK] = {.name = "--work",
              .help = "multiplications of each word in a step",
              .standard = 16,
              .least = 1,
              .most = 1 << 20,
              .whole = true},
    [HALO] = {.name = "--halo",
              .help = "words of the state, at most, that a task sends to the next one in a step",
              .standard = 8192,
              .least = 1,
              .most = 1 << 26,
              .whole = true},
    [TRANSFER] = {.name = "--transfer",
                  .help = "bytes of a call, a multiple of 8",
                  .standard = 4 << 20,
                  .least = 8,
                  .most = 1 << 30,
                  .whole = true},
    [WITHIN] = {.name = "--local",
                .help = "where each node has a folder of its own for local-checkpoint and -restart",
                .text = ""},
};

struct work {
    struct io_trouble trouble; // first: io_case
    const struct io_variant *variant;
    const struct io_interface *files;
    size_t n_words, n_halo;
    uint64_t room_bytes; // of a state in a shared file: whole blocks of the file system
    uint64_t n_steps, every;
    size_t transfer; // words of a call
    unsigned rounds;
    uint64_t generation; // of the state at its begin
    uint64_t *now;       // the state
    uint64_t *halo;      // the last words of the neighbour's
    uint64_t *came;      // what a file holds
    bool is_shared, is_written;
    char path[PATH_MAX + 32];
    char to[PATH_MAX + 32]; // of a local checkpoint where it is brought; "": it is none
    struct io_flush flush;
};

// ---- The program -------------------------------------------------------------------------------

static void begin_state(struct work *work) {
    const uint64_t key = bk_random_bits(work->generation, bk_rank());
    for (size_t i = 0; i < work->n_words; i++)
        work->now[i] = bk_random_bits(key, i);
}

// All ranks call it.
static void hear(struct work *work) {
    const uint64_t *last = work->now + work->n_words - work->n_halo;
    if (work->variant->exchange != NULL)
        work->variant->exchange(last, work->halo, work->n_halo);
    else
        memcpy(work->halo, last, work->n_halo * IO_WORD);
}

static void step(struct work *work) {
    hear(work);
    for (size_t i = 0; i < work->n_words; i++)
        work->now[i] =
            io_worked_on(work->now[i] + (i < work->n_halo ? work->halo[i] : 0), work->rounds);
}

static void make_steps(struct work *work, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        step(work);
}

// ---- Its files ---------------------------------------------------------------------------------

// `checkpoint` is SHARED, OWN or LOCAL.
static void choose_file(struct work *work, enum kernel checkpoint) {
    const bool is_local = checkpoint == LOCAL;
    const char *folder = (is_local ? io_local() : io_place())->path;
    work->is_shared = checkpoint == SHARED;
    work->is_written = false;
    work->files = is_local ? &io_posix_files : work->variant->files;
    work->to[0] = '\0';
    if (work->is_shared)
        snprintf(work->path, sizeof work->path, "%s/checkpoint", folder);
    else
        snprintf(work->path, sizeof work->path, "%s/checkpoint.%u", folder, bk_rank());
    if (is_local)
        snprintf(work->to, sizeof work->to, "%s/checkpoint.%u", io_place()->path, bk_rank());
}

// Of the call that begins at this word of a state.
static size_t words_at(const struct work *work, size_t at) {
    const size_t left = work->n_words - at;
    return left < work->transfer ? left : work->transfer;
}

// All of a state. All ranks call it.
static void move(struct work *work, enum io_access access, const char *path, uint64_t *words) {
    const struct io_interface *files = work->files;
    const uint64_t first = work->is_shared ? bk_rank() * work->room_bytes : 0;
    struct io_file file = {.path = path};
    bool ok = true;
    if (!files->open(&file, access, work->is_shared, false, &work->trouble))
        return;
    for (size_t at = 0; at < work->n_words && ok; at += work->transfer) {
        const size_t bytes = words_at(work, at) * IO_WORD;
        const uint64_t place = first + at * IO_WORD;
        ok = io_move(files, &file, access, words + at, bytes, place, &work->trouble);
    }
    if (access == IO_WRITE)
        (void)files->sync(&file, &work->trouble);
    (void)files->close(&file, &work->trouble);
}

static void remove_files(struct work *work) {
    io_remove_all(work->path, !work->is_shared || bk_rank() == 0, &work->trouble);
    if (work->to[0] != '\0')
        io_remove_all(work->to, true, &work->trouble);
}

// ---- Kernels, and before them ------------------------------------------------------------------

static void run_steps(void *context, uint64_t iterations) {
    struct work *work = context;
    make_steps(work, iterations * work->n_steps);
}

static void run_checkpoints(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations * work->n_steps; i += work->every) {
        make_steps(work, work->every);
        io_flush_end(&work->flush, &work->trouble); // of the file that is written over
        if (io_stopped(&work->trouble))
            return;
        move(work, IO_WRITE, work->path, work->now);
        if (work->to[0] != '\0')
            io_flush_begin(&work->flush, &work->trouble);
    }
    io_flush_end(&work->flush, &work->trouble);
    work->is_written = true;
}

static void run_restart(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        move(work, IO_READ, work->path, work->came);
}

static void prepare_steps(void *context, uint64_t iterations) {
    (void)iterations;
    struct work *work = context;
    work->generation = io_next_generation();
    begin_state(work);
    (void)io_stopped(&work->trouble);
}

static void prepare_checkpoints(void *context, uint64_t iterations) {
    prepare_steps(context, iterations);
    remove_files(context);
}

static void forget(struct work *work, const char *path) {
    memset(work->came, 0, work->n_words * IO_WORD);
    (void)io_drop_all(path, &work->trouble);
}

static void prepare_restart(void *context, uint64_t iterations) {
    struct work *work = context;
    if (!work->is_written) {
        prepare_checkpoints(work, iterations);
        run_checkpoints(work, 1);
    }
    forget(work, work->path);
}

static const struct {
    bk_kernel *run, *prepare;
} of_kernels[KERNELS] = {
    [STEPS] = {run_steps, prepare_steps},
    [SHARED] = {run_checkpoints, prepare_checkpoints},
    [SHARED_RESTART] = {run_restart, prepare_restart},
    [OWN] = {run_checkpoints, prepare_checkpoints},
    [OWN_RESTART] = {run_restart, prepare_restart},
    [LOCAL] = {run_checkpoints, prepare_checkpoints},
    [LOCAL_RESTART] = {run_restart, prepare_restart},
};

// ---- Measuring ---------------------------------------------------------------------------------

// The neighbour's words are known at the begin.
static void check_hearing(struct work *work, struct bk_check *found) {
    const unsigned neighbour = (bk_rank() + bk_ranks() - 1) % bk_ranks();
    const uint64_t key = bk_random_bits(work->generation, neighbour);
    size_t right = 0;
    hear(work);
    for (size_t i = 0; i < work->n_halo; i++)
        right += work->halo[i] == bk_random_bits(key, work->n_words - work->n_halo + i);
    bk_check_value(found, 0, (double)right, (double)work->n_halo, 0);
}

static bool restarts(enum kernel kernel) {
    return kernel == SHARED_RESTART || kernel == OWN_RESTART || kernel == LOCAL_RESTART;
}

// Of the last checkpoint, or the state, all words: they are those of as many steps made anew.
static struct bk_check verify(void *context, unsigned kernel) {
    struct work *work = context;
    struct bk_check found = BK_CHECK_START;
    if (kernel == STEPS)
        memcpy(work->came, work->now, work->n_words * IO_WORD);
    else if (!restarts(kernel)) { // of a local one what has come of it to the shared folder
        const char *path = kernel == LOCAL ? work->to : work->path;
        forget(work, path);
        if (!io_stopped(&work->trouble))
            move(work, IO_READ, path, work->came);
    }
    if (io_stopped(&work->trouble))
        return found;
    begin_state(work);
    check_hearing(work, &found);
    make_steps(work, work->n_steps);
    for (size_t at = 0; at < work->n_words; at += work->transfer) {
        const size_t count = words_at(work, at);
        size_t right = 0;
        for (size_t i = at; i < at + count; i++)
            right += work->came[i] == work->now[i];
        bk_check_value(&found, at, (double)right, (double)count, 0);
    }
    return found;
}

static const char *measure_kernel(struct bk_run *run, struct work *work, enum kernel kernel) {
    const uint64_t bytes = work->n_words * IO_WORD;
    struct bk_case what = io_case(run, kernel, bytes, (double)bytes,
                                  restarts(kernel) ? "byte" : "step", of_kernels[kernel].prepare);
    if ((run->options->kernels & 1U << kernel) == 0)
        return NULL;
    if (!restarts(kernel)) // all tasks make one together
        what.operations = (double)work->n_steps;
    if (kernel == LOCAL_RESTART)
        what.device = io_local()->kind;
    if (kernel == LOCAL) // whose file goes to both
        what.device = io_local_device();
    return io_measure(run, &what, of_kernels[kernel].run, work, kernel, verify);
}

// Its checkpoints, and restarts from them.
static const char *measure_layout(struct bk_run *run, struct work *work, enum kernel checkpoint) {
    choose_file(work, checkpoint);
    const char *trouble = measure_kernel(run, work, checkpoint);
    if (trouble == NULL)
        trouble = measure_kernel(run, work, checkpoint + 1);
    if (trouble != NULL)
        return trouble;
    remove_files(work);
    return io_told(run, &work->trouble);
}

static size_t words(const struct bk_run *run, unsigned option) {
    return (size_t)run->options->extras[option];
}

static double bytes_of_memory(const struct bk_run *run, uint64_t size) {
    const double buffers =
        run->options->extras[HALO] * (double)IO_WORD + run->options->extras[TRANSFER];
    return 2 * (double)size + buffers;
}

static bool goes_by_a_local_file(const struct bk_run *run) {
    const struct io_variant *variant = (const struct io_variant *)run->variant;
    return variant->files == &io_posix_files && (run->options->kernels & local_kernels) != 0;
}

static bool has_local_room(const struct bk_run *run, const struct work *work) {
    return io_local_has_room(run, work->n_words * IO_WORD, (double)work->room_bytes, 1,
                             "bytes of a task's local file: --local has room for no more");
}

static const char *measure_all(struct bk_run *run, struct work *work) {
    const char *trouble = measure_kernel(run, work, STEPS);
    if (trouble == NULL)
        trouble = measure_layout(run, work, SHARED);
    if (trouble == NULL)
        trouble = measure_layout(run, work, OWN);
    if (trouble == NULL && goes_by_a_local_file(run) && has_local_room(run, work))
        trouble = measure_layout(run, work, LOCAL);
    return trouble;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const size_t n_words = (size_t)(size / IO_WORD);
    const uint64_t room_bytes = io_round_up(size, io_place_block_bytes());
    if (bk_too_large(run, size, PTRDIFF_MAX, "bytes of a task") ||
        !io_place_has_room(run, io_place(), size, (double)room_bytes * bk_ranks(), bk_ranks(), 1,
                           "bytes of a task: the file system has room for no more"))
        return NULL;
    struct work work = {
        .variant = (const struct io_variant *)run->variant,
        .n_words = n_words,
        .n_halo = n_words < words(run, HALO) ? n_words : words(run, HALO),
        .room_bytes = room_bytes,
        .n_steps = words(run, N_STEPS),
        .every = words(run, EVERY),
        .transfer = words(run, TRANSFER) / IO_WORD,
        .rounds = (unsigned)run->options->extras[WORK],
        .now = bk_allocate((size_t)size),
        .came = bk_allocate((size_t)size),
    };
    work.halo = bk_allocate(work.n_halo * IO_WORD);
    work.flush = (struct io_flush){.from = work.path,
                                   .to = work.to,
                                   .bytes = size,
                                   .piece = work.transfer * IO_WORD,
                                   .words = bk_allocate(work.transfer * IO_WORD)};
    const bool is_short =
        work.now == NULL || work.came == NULL || work.halo == NULL || work.flush.words == NULL;
    const char *trouble = bk_team_maximum(is_short) > 0 ? "out of memory: give smaller --sizes"
                                                        : measure_all(run, &work);
    bk_release(work.now);
    bk_release(work.came);
    bk_release(work.halo);
    bk_release(work.flush.words);
    return trouble;
}

static const char *begin(struct bk_run *run) {
    return io_local_begin(run, WITHIN, goes_by_a_local_file(run));
}

static bool check(struct bk_run *run) {
    const struct bk_options *options = run->options;
    if (!io_local_check(run, WITHIN, local_kernels, "local-checkpoint and local-restart"))
        return false;
    if (words(run, TRANSFER) % IO_WORD != 0)
        return bk_refuse(run, "--transfer: %zu is no multiple of 8; give one",
                         words(run, TRANSFER));
    if (words(run, N_STEPS) % words(run, EVERY) != 0)
        return bk_refuse(run, "--steps: %zu is no multiple of --every, %zu; give one",
                         words(run, N_STEPS), words(run, EVERY));
    for (size_t i = 0; i < options->size_count; i++)
        if (options->sizes[i] % IO_WORD != 0)
            return bk_refuse(run, "--sizes: %llu is no multiple of 8; give one",
                             (unsigned long long)options->sizes[i]);
    return true;
}

const struct bk_benchmark io_checkpoint = {
    .name = "jm-io-checkpoint",
    .command = "jm-io checkpoint",
    .summary = "a program whose state goes to files each so many steps, and comes back from them",
    .size_meaning = "bytes of each task's state, a multiple of 8",
    .kernels = kernels,
    .variants = variants,
    .variants_help = "  posix: one task; mpi: a task for each rank, by POSIX's calls; mpi-io: by\n"
                     "  MPI-IO's, without local-checkpoint and local-restart\n"
                     "  steps: the program without files",
    .usual = BK_ALL,
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 300,
    .extras = extras,
    .extra_count = BK_COUNT(extras),
    .check = check,
    .bytes = bytes_of_memory,
    .begin = begin,
    .measure = measure,
    .end = io_place_remove,
};
