// Out of core: dense blocks for which memory has no room are made and written, read, changed and
// written again, and read, as MADbench2 does (NERSC's "Lustre Benchmarking with Madbench2":
// synchronously or not, shared files or own, by POSIX or MPI-IO).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_random.h"
#include "io.h"

#include <stdio.h>

static const uint64_t sizes_1[] = {1125};
static const uint64_t sizes_quick[] = {7, 40};
static const struct bk_table tables[] = {
    {1, "1125 words in each direction, of 18000 by 256 tasks (NERSC's MADbench: 24 of them)",
     sizes_1, BK_COUNT(sizes_1)},
};
static const uint64_t most = 16000; // MPI counts a block's bytes by int

static const struct bk_variant *const variants[] = {
    &io_posix.base, &io_posix_async.base,
#ifdef BENCH_MPI
    &io_mpi.base,   &io_mpi_async.base,   &io_mpi_io.base, &io_mpi_io_async.base,
#endif
    NULL,
};

enum phase { WRITE, UPDATE, READ, PHASES };
enum layout { SHARED, OWN, LAYOUTS };
enum { COMPUTE = (int)PHASES * (int)LAYOUTS };
static const char *const kernels[] = {"shared-write", "shared-update", "shared-read", "own-write",
                                      "own-update",   "own-read",      "compute",     NULL};

enum { BLOCKS = IO_FOLDER + 1, WORK };
static const struct bk_extra extras[] = {
    [IO_FOLDER] = {.name = "--folder", .help = "where a folder for the files is made", .text = "."},
    [BLOCKS] = {.name = "--blocks",
                .help = "of each task, one after the other; memory has three",
                .standard = 24,
                .least = 1,
                .most = 1 << 20,
                .whole = true},
    [WORK] = {.name = "--work",
              .help = "multiplications of each word, when it is made, changed or read",
              .standard = 16,
              .least = 1,
              .most = 1 << 20,
              .whole = true},
};

// One is on its way from the disk, one is worked on, one is on its way to the disk.
enum { IN_MEMORY = 3 };

struct work {
    struct io_trouble trouble; // first: io_case
    const struct io_interface *files;
    bool overlaps;
    enum layout layout;
    size_t n_words;      // of a block
    uint64_t room_bytes; // of one in a file: whole blocks of the file system
    uint64_t n_blocks;
    unsigned rounds;     // of work on a word
    uint64_t key;        // of this task's words, in this generation
    unsigned worked;     // how often what is on the disk was; 0: nothing is there
    uint64_t sum;        // of the words that were read last, worked on once more, by their places
    uint64_t n_computed; // blocks of `compute`
    struct io_file in, out;
    uint64_t *words[IN_MEMORY];
    struct io_request requests[IN_MEMORY];
    char path[PATH_MAX + 32];
};

static size_t block_bytes(const struct work *work) {
    return work->n_words * IO_WORD;
}

// In a shared file all tasks' first blocks come first.
static uint64_t place_of(const struct work *work, uint64_t block) {
    const uint64_t number = work->layout == OWN ? block : block * bk_ranks() + bk_rank();
    return number * work->room_bytes;
}

// ---- Computation -------------------------------------------------------------------------------

static void begin_anew(struct work *work) {
    work->key = bk_random_bits(io_next_generation(), bk_rank());
    work->worked = 0;
}

static uint64_t first_word(const struct work *work, uint64_t block, size_t at) {
    return bk_random_bits(work->key, block * work->n_words + at);
}

static uint64_t at_place(const struct work *work, uint64_t block, size_t at, uint64_t word) {
    return word * (2 * (block * work->n_words + at) + 1);
}

static void compute(struct work *work, enum phase phase, uint64_t block, uint64_t *words) {
    const unsigned rounds = work->rounds;
    uint64_t sum = 0;
    for (size_t i = 0; i < work->n_words; i++) {
        const uint64_t word = phase == WRITE ? first_word(work, block, i) : words[i];
        const uint64_t found = io_worked_on(word, rounds);
        if (phase == READ)
            sum += at_place(work, block, i, found);
        else
            words[i] = found;
    }
    work->sum += sum;
}

// ---- Blocks on their way -----------------------------------------------------------------------

static bool arrived(struct work *work, unsigned slot) {
    return work->files->finish(&work->requests[slot], &work->trouble);
}

static bool move(struct work *work, enum io_access access, uint64_t block) {
    const unsigned slot = (unsigned)(block % IN_MEMORY);
    struct io_request *request = &work->requests[slot];
    if (!arrived(work, slot))
        return false;
    request->file = access == IO_WRITE ? &work->out : &work->in;
    request->access = access;
    request->bytes = work->words[slot];
    request->count = block_bytes(work);
    request->at = place_of(work, block);
    if (work->overlaps)
        return work->files->start(request, &work->trouble);
    return io_move(work->files, request->file, access, request->bytes, request->count, request->at,
                   &work->trouble);
}

static void pass_blocks(struct work *work, enum phase phase) {
    const bool reads = phase != WRITE, writes = phase != READ;
    bool ok = !reads || move(work, IO_READ, 0);
    for (uint64_t block = 0; block < work->n_blocks && ok; block++) {
        const unsigned slot = (unsigned)(block % IN_MEMORY);
        ok = arrived(work, slot);
        if (ok && reads && block + 1 < work->n_blocks)
            ok = move(work, IO_READ, block + 1);
        if (ok)
            compute(work, phase, block, work->words[slot]);
        if (ok && writes)
            ok = move(work, IO_WRITE, block);
    }
    for (unsigned slot = 0; slot < IN_MEMORY; slot++)
        (void)arrived(work, slot);
}

static bool open_file(struct work *work, struct io_file *file, enum io_access access) {
    *file = (struct io_file){.path = work->path};
    return work->files->open(file, access, work->layout == SHARED, false, &work->trouble);
}

static void pass(struct work *work, enum phase phase) {
    const bool reads = phase != WRITE, writes = phase != READ;
    work->sum = 0;
    const bool has_in = reads && open_file(work, &work->in, IO_READ);
    const bool has_out = writes && open_file(work, &work->out, IO_WRITE);
    if (has_in == reads && has_out == writes)
        pass_blocks(work, phase);
    if (has_out) {
        (void)work->files->sync(&work->out, &work->trouble);
        (void)work->files->close(&work->out, &work->trouble);
    }
    if (has_in)
        (void)work->files->close(&work->in, &work->trouble);
    work->worked += writes;
}

// ---- Kernels, and before them ------------------------------------------------------------------

static void passes(struct work *work, enum phase phase, uint64_t iterations) {
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        pass(work, phase);
}

static void write_blocks(void *context, uint64_t iterations) {
    passes(context, WRITE, iterations);
}

static void update_blocks(void *context, uint64_t iterations) {
    passes(context, UPDATE, iterations);
}

static void read_blocks(void *context, uint64_t iterations) {
    passes(context, READ, iterations);
}

static void compute_alone(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations; i++)
        for (uint64_t block = 0; block < work->n_blocks; block++, work->n_computed++)
            compute(work, READ, 0, work->words[0]);
}

static void remove_files(struct work *work) {
    io_remove_all(work->path, work->layout == OWN || bk_rank() == 0, &work->trouble);
}

static void prepare_write(void *context, uint64_t iterations) {
    (void)iterations;
    struct work *work = context;
    remove_files(work);
    begin_anew(work);
}

static void prepare_update(void *context, uint64_t iterations) {
    struct work *work = context;
    if (work->worked != 1) {
        prepare_write(work, iterations);
        write_blocks(work, 1);
    }
    (void)io_drop_all(work->path, &work->trouble);
}

static void prepare_read(void *context, uint64_t iterations) {
    struct work *work = context;
    if (work->worked == 0)
        prepare_update(work, iterations);
    else
        (void)io_drop_all(work->path, &work->trouble);
}

static const struct {
    bk_kernel *run, *prepare;
} of_phases[PHASES] = {
    [WRITE] = {write_blocks, prepare_write},
    [UPDATE] = {update_blocks, prepare_update},
    [READ] = {read_blocks, prepare_read},
};

// ---- Verification ------------------------------------------------------------------------------

static uint64_t word_on_disk(const struct work *work, uint64_t block, size_t at) {
    return io_worked_on(first_word(work, block, at), work->rounds * work->worked);
}

// Halves, of which each is a double.
static void check_sum(struct bk_check *found, uint64_t index, uint64_t got, uint64_t want) {
    bk_check_value(found, index, (double)(got >> 32), (double)(want >> 32), 0);
    bk_check_value(found, index, (double)(got & UINT32_MAX), (double)(want & UINT32_MAX), 0);
}

// Each word of the files as they are, and the sum of what was read while it was timed.
static struct bk_check verify_files(void *context, unsigned kernel) {
    struct work *work = context;
    const enum phase phase = kernel % PHASES;
    struct bk_check found = BK_CHECK_START;
    const uint64_t sum = work->sum;
    uint64_t expected = 0;
    if (!io_drop_all(work->path, &work->trouble) || !open_file(work, &work->in, IO_READ))
        return found;
    for (uint64_t block = 0; block < work->n_blocks; block++) {
        const uint64_t *words = work->words[0];
        if (!work->files->read(&work->in, work->words[0], block_bytes(work), place_of(work, block),
                               &work->trouble))
            break;
        size_t right = 0;
        for (size_t i = 0; i < work->n_words; i++) {
            const uint64_t word = word_on_disk(work, block, i);
            right += words[i] == word;
            expected += at_place(work, block, i, io_worked_on(word, work->rounds));
        }
        bk_check_value(&found, block, (double)right, (double)work->n_words, 0);
    }
    (void)work->files->close(&work->in, &work->trouble);
    if (phase == READ)
        check_sum(&found, work->n_blocks, sum, expected);
    return found;
}

// The sum of what was computed without files, of one block again and again.
static struct bk_check verify_sum(void *context, unsigned kernel) {
    (void)kernel;
    const struct work *work = context;
    struct bk_check found = BK_CHECK_START;
    uint64_t expected = 0;
    for (size_t i = 0; i < work->n_words; i++)
        expected += at_place(work, 0, i, io_worked_on(first_word(work, 0, i), 2 * work->rounds));
    check_sum(&found, 0, work->sum, work->n_computed * expected);
    return found;
}

// ---- Measuring ---------------------------------------------------------------------------------

static const char *measure_phase(struct bk_run *run, struct work *work, uint64_t size,
                                 enum phase phase) {
    const unsigned kernel = PHASES * (unsigned)work->layout + phase;
    if ((run->options->kernels & 1U << kernel) == 0)
        return NULL;
    const double bytes = (double)work->n_blocks * (double)block_bytes(work);
    const struct bk_case what = io_case(run, kernel, size, bytes * (phase == UPDATE ? 2 : 1),
                                        "byte", of_phases[phase].prepare);
    return io_measure(run, &what, of_phases[phase].run, work, kernel, verify_files);
}

static const char *measure_layout(struct bk_run *run, struct work *work, uint64_t size) {
    const char *folder = io_place()->path;
    const char *trouble = NULL;
    work->worked = 0;
    if (work->layout == SHARED)
        snprintf(work->path, sizeof work->path, "%s/blocks", folder);
    else
        snprintf(work->path, sizeof work->path, "%s/blocks.%u", folder, bk_rank());
    for (enum phase phase = 0; phase < PHASES && trouble == NULL; phase++)
        trouble = measure_phase(run, work, size, phase);
    if (trouble != NULL)
        return trouble;
    remove_files(work);
    return io_told(run, &work->trouble);
}

// What the others would take without files.
static const char *measure_compute(struct bk_run *run, struct work *work, uint64_t size) {
    if ((run->options->kernels & 1U << COMPUTE) == 0)
        return NULL;
    const double bytes = (double)work->n_blocks * (double)block_bytes(work);
    const struct bk_case what = io_case(run, COMPUTE, size, bytes, "byte", NULL);
    begin_anew(work);
    compute(work, WRITE, 0, work->words[0]);
    work->sum = work->n_computed = 0;
    return io_measure(run, &what, compute_alone, work, COMPUTE, verify_sum);
}

static double bytes_of_memory(const struct bk_run *run, uint64_t size) {
    (void)run;
    return (double)IN_MEMORY * (double)IO_WORD * (double)size * (double)size;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const struct io_variant *variant = (const struct io_variant *)run->variant;
    const uint64_t n_blocks = (uint64_t)run->options->extras[BLOCKS];
    const uint64_t room_bytes = io_round_up(size * size * IO_WORD, io_place_block_bytes());
    const double bytes = (double)room_bytes * (double)n_blocks * bk_ranks();
    if (bk_too_large(run, size, most, "words in each direction") ||
        !io_place_has_room(run, io_place(), size, bytes, bk_ranks(), 2,
                           "words in each direction: the file system has room for no more"))
        return NULL;
    struct work work = {
        .files = variant->files,
        .overlaps = variant->overlaps,
        .n_words = (size_t)(size * size),
        .room_bytes = room_bytes,
        .n_blocks = n_blocks,
        .rounds = (unsigned)run->options->extras[WORK],
    };
    bool has_memory = true;
    for (unsigned i = 0; i < IN_MEMORY; i++)
        has_memory &= (work.words[i] = bk_allocate(block_bytes(&work))) != NULL;
    const char *trouble = NULL;
    if (bk_team_maximum(!has_memory) > 0)
        trouble = "out of memory: give smaller --sizes";
    for (work.layout = 0; work.layout < LAYOUTS && trouble == NULL; work.layout++)
        trouble = measure_layout(run, &work, size);
    if (trouble == NULL)
        trouble = measure_compute(run, &work, size);
    for (unsigned i = 0; i < IN_MEMORY; i++)
        bk_release(work.words[i]);
    return trouble;
}

const struct bk_benchmark io_out_of_core = {
    .name = "jm-io-out-of-core",
    .command = "jm-io out-of-core",
    .summary = "blocks that memory has no room for: written, updated and read, between computation",
    .size_meaning = "words (8 bytes) of each task's blocks in both directions",
    .kernels = kernels,
    .variants = variants,
    .variants_help = "  posix: one task; mpi: a task for each rank, by POSIX's calls; mpi-io: by\n"
                     "  MPI-IO's; -async: while a block is worked on, one comes and one goes\n"
                     "  compute: what is done between, without files",
    .usual = BK_ALL,
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 300,
    .extras = extras,
    .extra_count = BK_COUNT(extras),
    .bytes = bytes_of_memory,
    .begin = io_begin,
    .measure = measure,
    .end = io_place_remove,
};
