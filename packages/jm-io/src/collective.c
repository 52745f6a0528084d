// Collective: all tasks write blocks of one array of three dimensions to one file, and read them,
// as coll_perf (Thakur, Gropp, Lusk 1999) and FLASH's checkpoints do (DEEP-ER).
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
static const uint64_t most = 1024; // MPI counts a block's bytes, and places, by int

static const struct bk_variant *const variants[] = {
    &io_block_posix.base,
#ifdef BENCH_MPI
    &io_block_mpi.base,
    &io_block_mpi_io.base,
    &io_block_mpi_io_all.base,
#endif
    NULL,
};

enum { WRITE, READ, KERNELS };
static const char *const kernels[] = {"block-write", "block-read", NULL};

enum { AGGREGATORS = IO_FOLDER + 1, BUFFER };
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
};

struct work {
    struct io_trouble trouble; // first: io_case
    struct io_block block;
    io_move_block *move;
    uint64_t n_words;
    uint64_t *sent, *came;
    bool is_written;
    char path[PATH_MAX + 16];
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
    const uint64_t seed = io_next_generation();
    uint64_t *word = work->sent;
    for (uint64_t i = 0; i < block->count[0]; i++)
        for (uint64_t j = 0; j < block->count[1]; j++) {
            const uint64_t row = (block->first[0] + i) * block->whole[1] + block->first[1] + j;
            const uint64_t at = row * block->whole[2] + block->first[2];
            for (uint64_t k = 0; k < block->count[2]; k++)
                *word++ = bk_random_bits(seed, at + k);
        }
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

static void remove_file(struct work *work) {
    io_remove_all(work->path, bk_rank() == 0, &work->trouble);
}

static void prepare_write(void *context, uint64_t iterations) {
    (void)iterations;
    struct work *work = context;
    if (io_stopped(&work->trouble))
        return;
    fill(work);
    work->is_written = true;
    remove_file(work);
}

static void prepare_read(void *context, uint64_t iterations) {
    (void)iterations;
    struct work *work = context;
    memset(work->came, 0, (size_t)work->n_words * IO_WORD);
    (void)io_drop_all(work->path, &work->trouble);
}

// ---- Measuring ---------------------------------------------------------------------------------

// After a write all is read again; after a read it lies in `came`.
static struct bk_check verify(void *context, unsigned kernel) {
    struct work *work = context;
    struct bk_check found = BK_CHECK_START;
    if (kernel == WRITE) {
        prepare_read(work, 1);
        read_block(work, 1);
    }
    const size_t row = (size_t)work->block.count[2];
    for (size_t at = 0; at < work->n_words; at += row) {
        size_t right = 0;
        for (size_t i = at; i < at + row; i++)
            right += work->came[i] == work->sent[i];
        bk_check_value(&found, at, (double)right, (double)row, 0);
    }
    return found;
}

static const char *measure_kernel(struct bk_run *run, struct work *work, unsigned kernel) {
    if ((run->options->kernels & 1U << kernel) == 0)
        return NULL;
    const struct bk_case what =
        io_case(run, kernel, work->block.count[0], (double)(work->n_words * IO_WORD), "byte",
                kernel == WRITE ? prepare_write : prepare_read);
    if (kernel == READ && !work->is_written) {
        prepare_write(work, 1);
        write_block(work, 1);
    }
    return io_measure(run, &what, kernel == WRITE ? write_block : read_block, work, kernel, verify);
}

static double bytes(const struct bk_run *run, uint64_t size) {
    (void)run;
    return 2.0 * (double)IO_WORD * (double)size * (double)size * (double)size;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    if (bk_too_large(run, size, most, "words in each direction") ||
        !io_place_has_room(run, io_place(), size, bytes(run, size) / 2 * bk_ranks(), 1,
                           IO_DIMENSIONS,
                           "words in each direction: the file system has room for no more"))
        return NULL;
    const uint64_t n_words = size * size * size;
    struct work work = {.block = io_block_of(bk_rank(), bk_ranks(), size),
                        .move = ((const struct io_block_variant *)run->variant)->move,
                        .n_words = n_words,
                        .sent = bk_allocate((size_t)n_words * IO_WORD),
                        .came = bk_allocate((size_t)n_words * IO_WORD)};
    work.block.aggregators = (unsigned)run->options->extras[AGGREGATORS];
    work.block.buffer = (uint64_t)run->options->extras[BUFFER];
    snprintf(work.path, sizeof work.path, "%s/array", io_place()->path);
    const char *trouble = NULL;
    if (bk_team_maximum(work.sent == NULL || work.came == NULL) > 0)
        trouble = "out of memory: give smaller --sizes";
    for (unsigned kernel = 0; kernel < KERNELS && trouble == NULL; kernel++)
        trouble = measure_kernel(run, &work, kernel);
    if (trouble == NULL) {
        remove_file(&work);
        trouble = io_told(run, &work.trouble);
    }
    bk_release(work.sent);
    bk_release(work.came);
    return trouble;
}

static bool check(struct bk_run *run) {
    const uint64_t aggregators = (uint64_t)run->options->extras[AGGREGATORS];
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
                     "  mpi-io: a block a call, by MPI-IO; mpi-io-all: by all ranks together",
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
    .begin = io_begin,
    .measure = measure,
    .end = io_place_remove,
};
