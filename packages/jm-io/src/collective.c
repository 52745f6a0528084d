// Collective: all tasks write blocks of one array of three dimensions to one file, and read them,
// as coll_perf (Thakur, Gropp, Lusk 1999) and FLASH's checkpoints do; or by their nodes' own disks,
// from where blocks go to that file while the program computes (DEEP-ER, 3.1, figures 9 and 10).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_random.h"
#include "io.h"

#include <stdio.h>
#include <string.h>

static const uint64_t sizes_1[] = {128};
static const uint64_t sizes_quick[] = {5, 24};
static const struct bk_table tables[] = {
    {1, "128 words in each direction of a task's block, as coll_perf's", sizes_1,
     BK_COUNT(sizes_1)},
};
static const uint64_t most_computed = 1024; // so often, --work at most 2^20: an unsigned counts it
static const uint64_t most = 1024;          // MPI counts a block's bytes, and places, by int

static const struct bk_variant *const variants[] = {
    &io_block_posix.base,
#ifdef BENCH_MPI
    &io_block_mpi.base,
    &io_block_mpi_io.base,
    &io_block_mpi_io_all.base,
#endif
    NULL,
};

enum kernel { WRITE, READ, COMPUTE, LOCAL, CACHED, KERNELS };
static const char *const kernels[] = {"block-write", "block-read",   "compute",
                                      "local-write", "cached-write", NULL};
static const uint32_t local_kernels = 1U << LOCAL | 1U << CACHED;

enum { AGGREGATORS = IO_FOLDER + 1, BUFFER, WORK, WITHIN };
static const struct bk_extra extras[] = {
    [IO_FOLDER] = {.name = "--folder", .help = "where a folder for the file is made", .text = "."},
    [AGGREGATORS] = {.name = "--aggregators",
                     .help = "ranks that gather what others write (MPI-IO's cb_nodes); 0: as it "
                             "chooses",
                     .standard = 0,
                     .least = 0,
                     .most = 1 << 20,
                     .whole = true},
    [BUFFER] = {.name = "--buffer",
                .help = "bytes that one gathers at a time (MPI-IO's cb_buffer_size); 0: as it "
                        "chooses",
                .standard = 0,
                .least = 0,
                .most = 1 << 30,
                .whole = true},
    [WORK] = {.name = "--work",
              .help = "multiplications of each word of a block, in compute and cached-write",
              .standard = 16,
              .least = 0,
              .most = 1 << 20,
              .whole = true},
    [WITHIN] = {.name = "--local",
                .help = "where each node has a folder of its own for local-write and cached-write",
                .text = ""},
};

struct work {
    struct io_trouble trouble; // first: io_case
    struct io_block block;
    io_move_block *move;
    uint64_t n_words;
    unsigned rounds;     // of work on a word
    unsigned worked;     // how often the block was worked on, since it was made
    uint64_t generation; // of the block as it is written
    uint64_t *sent, *came;
    bool is_written;
    char path[PATH_MAX + 16], local[PATH_MAX + 32];
    struct io_flush flush; // of the second to the first
};

// ---- Blocks ------------------------------------------------------------------------------------

// So many tasks in each direction, as near to each other as can be.
static void divide(unsigned tasks, unsigned found[IO_DIMENSIONS]) {
    for (unsigned left = IO_DIMENSIONS; left > 0; left--) {
        unsigned part = tasks;
        for (unsigned i = 1; i <= tasks; i++) {
            double rest = 1; // of that many in each direction that is left
            for (unsigned power = 0; power < left; power++)
                rest *= i;
            if (tasks % i == 0 && rest <= tasks)
                part = i;
        }
        if (left == 1)
            part = tasks;
        found[left - 1] = part;
        tasks /= part;
    }
}

struct io_block io_block_of(unsigned task, unsigned tasks, uint64_t edge) {
    struct io_block block = {0};
    unsigned counts[IO_DIMENSIONS];
    divide(tasks, counts);
    for (unsigned i = IO_DIMENSIONS; i-- > 0;) {
        block.whole[i] = edge * counts[i];
        block.first[i] = edge * (task % counts[i]);
        block.count[i] = edge;
        task /= counts[i];
    }
    return block;
}

// Each word tells its place in the array, and the iteration.
static void fill(struct work *work) {
    const struct io_block *block = &work->block;
    uint64_t *word = work->sent;
    for (uint64_t row = 0; row < block->count[0] * block->count[1]; row++) {
        const uint64_t at = io_block_row(block, row);
        for (uint64_t k = 0; k < block->count[2]; k++)
            *word++ = bk_random_bits(work->generation, at + k);
    }
}

static uint64_t place_of(const void *block, uint64_t at) {
    const struct io_block *of = block;
    return io_block_row(of, at / (of->count[2] * IO_WORD)) * IO_WORD;
}

// ---- Kernels, and before them ------------------------------------------------------------------

static void move(struct work *work, uint64_t *words, enum io_access access) {
    work->block.words = words;
    (void)work->move(&work->block, work->path, access, &work->trouble);
}

static void write_block(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        move(work, work->sent, IO_WRITE);
}

static void read_block(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        move(work, work->came, IO_READ);
}

static void compute(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations; i++)
        for (uint64_t at = 0; at < work->n_words; at++)
            work->sent[at] = io_worked_on(work->sent[at], work->rounds);
}

// The program may go on when the node's kernel has it: its disk is asked for nothing.
static void put_local(struct work *work) {
    const struct io_interface *files = &io_posix_files;
    struct io_file file = {.path = work->local};
    if (!files->open(&file, IO_WRITE, false, false, &work->trouble))
        return;
    (void)files->write(&file, work->sent, (size_t)work->n_words * IO_WORD, 0, &work->trouble);
    (void)files->close(&file, &work->trouble);
}

static void write_local(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations; i++) {
        io_flush_end(&work->flush, &work->trouble); // of the file that is written over
        if (io_stopped(&work->trouble))
            return;
        put_local(work);
        io_flush_begin(&work->flush, &work->trouble);
    }
}

static void write_cached(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations; i++) {
        write_local(work, 1);
        compute(work, 1);
        io_flush_end(&work->flush, &work->trouble);
    }
}

static void remove_files(struct work *work) {
    io_flush_end(&work->flush, &work->trouble);
    io_remove_all(work->path, bk_rank() == 0, &work->trouble);
    if (work->local[0] != '\0')
        io_remove_all(work->local, true, &work->trouble);
}

static void prepare_compute(void *context, uint64_t iterations) {
    struct work *work = context;
    work->worked = (unsigned)iterations;
    work->generation = io_next_generation();
    fill(work);
    (void)io_stopped(&work->trouble);
}

static void prepare_write(void *context, uint64_t iterations) {
    struct work *work = context;
    prepare_compute(work, iterations);
    work->is_written = true;
    remove_files(work);
}

static void prepare_read(void *context, uint64_t iterations) {
    (void)iterations;
    struct work *work = context;
    memset(work->came, 0, (size_t)work->n_words * IO_WORD);
    (void)io_drop_all(work->path, &work->trouble);
}

static const struct {
    bk_kernel *run, *prepare;
} of_kernels[KERNELS] = {
    [WRITE] = {write_block, prepare_write},   [READ] = {read_block, prepare_read},
    [COMPUTE] = {compute, prepare_compute},   [LOCAL] = {write_local, prepare_write},
    [CACHED] = {write_cached, prepare_write},
};

// ---- Measuring ---------------------------------------------------------------------------------

// Words that came, beside those of the block worked on so often.
static void compare(const struct work *work, unsigned rounds, struct bk_check *found) {
    const size_t row = (size_t)work->block.count[2];
    for (size_t at = 0; at < work->n_words; at += row) {
        size_t right = 0;
        for (size_t i = at; i < at + row; i++)
            right += work->came[i] == io_worked_on(work->sent[i], rounds);
        bk_check_value(found, at, (double)right, (double)row, 0);
    }
}

// What was computed, and after a write all that the file has; after a read it lies in `came`.
static struct bk_check verify(void *context, unsigned kernel) {
    struct work *work = context;
    struct bk_check found = BK_CHECK_START;
    io_flush_end(&work->flush, &work->trouble);
    if (kernel == COMPUTE || kernel == CACHED) {
        memcpy(work->came, work->sent, (size_t)work->n_words * IO_WORD);
        fill(work);
        compare(work, work->worked * work->rounds, &found);
    }
    if (kernel == COMPUTE)
        return found;
    if (kernel != READ) {
        prepare_read(work, 1);
        read_block(work, 1);
    }
    compare(work, 0, &found);
    return found;
}

static const char *measure_kernel(struct bk_run *run, struct work *work, enum kernel kernel) {
    if ((run->options->kernels & 1U << kernel) == 0)
        return NULL;
    struct bk_case what =
        io_case(run, kernel, work->block.count[0], (double)(work->n_words * IO_WORD), "byte",
                of_kernels[kernel].prepare);
    if (kernel == COMPUTE)
        what.most_iterations = most_computed;
    if (kernel == LOCAL)
        what.device = io_local()->kind;
    if (kernel == CACHED)
        what.device = io_local_device();
    if (kernel == READ && !work->is_written) {
        prepare_write(work, 1);
        write_block(work, 1);
    }
    return io_measure(run, &what, of_kernels[kernel].run, work, kernel, verify);
}

// MPI's calls are for its first thread alone: what a thread brings goes by POSIX's.
static bool goes_by_a_local_file(const struct bk_run *run) {
    const struct io_block_variant *variant = (const struct io_block_variant *)run->variant;
    return variant->move == io_block_by_rows && (run->options->kernels & local_kernels) != 0;
}

static const char *measure_all(struct bk_run *run, struct work *work) {
    const uint64_t edge = work->block.count[0];
    const double bytes = (double)(work->n_words * IO_WORD);
    const char *trouble = NULL;
    for (enum kernel kernel = 0; kernel < LOCAL && trouble == NULL; kernel++)
        trouble = measure_kernel(run, work, kernel);
    if (trouble != NULL || !goes_by_a_local_file(run) ||
        !io_local_has_room(run, edge, bytes, IO_DIMENSIONS,
                           "words in each direction: --local has room for no more"))
        return trouble;
    snprintf(work->local, sizeof work->local, "%s/block.%u", io_local()->path, bk_rank());
    for (enum kernel kernel = LOCAL; kernel < KERNELS && trouble == NULL; kernel++)
        trouble = measure_kernel(run, work, kernel);
    return trouble;
}

// The block, what came of one, and a row on its way.
static double bytes(const struct bk_run *run, uint64_t size) {
    (void)run;
    const double row = (double)IO_WORD * (double)size;
    return 2 * row * (double)size * (double)size + row;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const uint64_t n_words = size * size * size, row_bytes = size * IO_WORD;
    if (bk_too_large(run, size, most, "words in each direction") ||
        !io_place_has_room(run, io_place(), size, (double)(n_words * IO_WORD) * bk_ranks(), 1,
                           IO_DIMENSIONS,
                           "words in each direction: the file system has room for no more"))
        return NULL;
    struct work work = {.block = io_block_of(bk_rank(), bk_ranks(), size),
                        .move = ((const struct io_block_variant *)run->variant)->move,
                        .n_words = n_words,
                        .rounds = (unsigned)run->options->extras[WORK],
                        .sent = bk_allocate((size_t)n_words * IO_WORD),
                        .came = bk_allocate((size_t)n_words * IO_WORD)};
    work.block.aggregators = (unsigned)run->options->extras[AGGREGATORS];
    work.block.buffer = (uint64_t)run->options->extras[BUFFER];
    work.flush = (struct io_flush){.from = work.local,
                                   .to = work.path,
                                   .bytes = n_words * IO_WORD,
                                   .piece = row_bytes,
                                   .words = bk_allocate((size_t)row_bytes),
                                   .place = place_of,
                                   .context = &work.block};
    snprintf(work.path, sizeof work.path, "%s/array", io_place()->path);
    const bool is_short = work.sent == NULL || work.came == NULL || work.flush.words == NULL;
    const char *trouble = bk_team_maximum(is_short) > 0 ? "out of memory: give smaller --sizes"
                                                        : measure_all(run, &work);
    io_flush_end(&work.flush, &work.trouble); // of a measurement that failed
    if (trouble == NULL) {
        remove_files(&work);
        trouble = io_told(run, &work.trouble);
    }
    bk_release(work.flush.words);
    bk_release(work.sent);
    bk_release(work.came);
    return trouble;
}

static const char *begin(struct bk_run *run) {
    return io_local_begin(run, WITHIN, goes_by_a_local_file(run));
}

static bool check(struct bk_run *run) {
    const uint64_t aggregators = (uint64_t)run->options->extras[AGGREGATORS];
    if (!io_local_check(run, WITHIN, local_kernels, "local-write and cached-write"))
        return false;
    return aggregators == bk_ranks() || io_less_than_ranks(run, "--aggregators", aggregators);
}

const struct bk_benchmark io_collective = {
    .name = "jm-io-collective",
    .command = "jm-io collective",
    .summary = "tasks write and read blocks of an array of three dimensions, in one file",
    .size_meaning = "words (8 bytes) of each task's block in each direction",
    .kernels = kernels,
    .variants = variants,
    .variants_help = "  posix: one task; mpi: a task for each rank, a row of its block a call;\n"
                     "  mpi-io: a block a call, by MPI-IO; mpi-io-all: by all ranks together,\n"
                     "  both without local-write and cached-write\n"
                     "  local-write: until a block is in the node's own file; cached-write: with\n"
                     "  --work, and until it has come to the array's; compute: the work alone",
    .usual = BK_ALL,
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 300,
    .extras = extras,
    .extra_count = BK_COUNT(extras),
    .check = check,
    .bytes = bytes,
    .begin = begin,
    .measure = measure,
    .end = io_place_remove,
};
