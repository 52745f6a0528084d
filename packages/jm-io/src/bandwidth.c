// Bandwidth: all tasks write their bytes, and read them, of one file, of a file each, or of some
// files in chunks, as IOR and SIONlib's partest do (PRACE-1IP D9.3.3, tables 19 and 20).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "io.h"

#include <stdio.h>

enum { MIB = 1 << 20, SECTOR = 4096 };

static const uint64_t sizes_19[] = {16 * MIB, 256 * MIB};
static const uint64_t sizes_20[] = {32 * MIB};
static const uint64_t sizes_quick[] = {MIB, 3 * MIB};
static const struct bk_table tables[] = {
    {19, "16 and 256 MiB of each task (for IOR's: 2 TB over all)", sizes_19, BK_COUNT(sizes_19)},
    {20, "32 MiB of each task (for SIONlib's: 2 TB over all)", sizes_20, BK_COUNT(sizes_20)},
};

static const struct bk_variant *const variants[] = {
    &io_posix.base,
#ifdef BENCH_MPI
    &io_mpi.base,
    &io_mpi_io.base,
#endif
    NULL,
};

enum layout { SHARED, OWN, CHUNKS, LAYOUTS };
// Of each layout the one that writes, and the one that reads.
static const char *const kernels[] = {"shared-write", "shared-read", "own-write", "own-read",
                                      "chunks-write", "chunks-read", NULL};

static const char *const no_yes[] = {"no", "yes", NULL};
enum { TRANSFER = IO_FOLDER + 1, BLOCK, FILES, TASK_OFFSET, DIRECT, SYNC, COLD };
static const struct bk_extra extras[] = {
    [IO_FOLDER] = {.name = "--folder", .help = "where a folder for the files is made", .text = "."},
    [TRANSFER] = {.name = "--transfer",
                  .help = "bytes of a call, a multiple of 8; with --direct yes of 4096",
                  .standard = MIB,
                  .least = 8,
                  .most = 1 << 30,
                  .whole = true},
    [BLOCK] = {.name = "--block",
               .help = "bytes of a task that follow each other in a shared file; 0: all of its",
               .standard = 0,
               .least = 0,
               .most = 0x1p40,
               .whole = true},
    [FILES] = {.name = "--files",
               .help = "files of `chunks`, each with as many tasks as the others",
               .standard = 1,
               .least = 1,
               .most = 1 << 20,
               .whole = true},
    [TASK_OFFSET] = {.name = "--task-offset",
                     .help = "a task reads what the one that many ranks behind it wrote, against "
                             "caches: the tasks of a node, or more",
                     .standard = 0,
                     .least = 0,
                     .most = 1 << 30,
                     .whole = true},
    [DIRECT] = {.name = "--direct", .help = "past the page cache (O_DIRECT)", .words = no_yes},
    [SYNC] = {.name = "--sync",
              .help = "fsync after a file is written, within its time",
              .standard = 1,
              .words = no_yes},
    [COLD] = {.name = "--cold",
              .help = "what this node has of a file in memory is dropped before it is read",
              .standard = 1,
              .words = no_yes},
};

struct work {
    struct io_trouble trouble; // first: io_case
    const struct io_interface *files;
    enum layout layout;
    unsigned n_files; // of chunks
    uint64_t size;    // of a task
    uint64_t transfer, block, alignment;
    unsigned written, read; // tasks whose bytes this one writes, and reads
    bool direct, sync, cold;
    uint64_t generation; // of what was written last
    bool is_written;
    uint64_t wrong; // transfers that were read while timed
    struct io_content content;
};

static uint64_t extra(const struct bk_run *run, unsigned index) {
    return (uint64_t)run->options->extras[index];
}

static uint64_t block_of(const struct bk_run *run, uint64_t size) {
    return extra(run, BLOCK) == 0 ? size : extra(run, BLOCK);
}

static bool check_size(struct bk_run *run, uint64_t size) {
    const uint64_t transfer = extra(run, TRANSFER), block = block_of(run, size);
    if (block % transfer != 0)
        return bk_refuse(run, "%s: %llu is no multiple of --transfer, %llu; give one",
                         block == size ? "--sizes" : "--block", (unsigned long long)block,
                         (unsigned long long)transfer);
    if (size % block != 0)
        return bk_refuse(run, "--sizes: %llu is no multiple of --block, %llu; give one",
                         (unsigned long long)size, (unsigned long long)block);
    return true;
}

static bool check(struct bk_run *run) {
    const struct bk_options *options = run->options;
    const bool direct = extra(run, DIRECT) != 0;
    const uint64_t unit = direct ? SECTOR : IO_WORD;
    if (extra(run, TRANSFER) % unit != 0)
        return bk_refuse(run, "--transfer: %llu is no multiple of %llu; give one",
                         (unsigned long long)extra(run, TRANSFER), (unsigned long long)unit);
    for (unsigned i = 0; direct && variants[i] != NULL; i++)
        if ((options->variants & 1U << i) != 0 &&
            ((const struct io_variant *)variants[i])->files != &io_posix_files)
            return bk_refuse(run, "--direct: there is none by %s; give --variant mpi",
                             variants[i]->name);
    if (bk_ranks() % extra(run, FILES) != 0)
        return bk_refuse(run, "--files: %llu can't have as many of %u tasks each; give a divisor",
                         (unsigned long long)extra(run, FILES), bk_ranks());
    if (!io_less_than_ranks(run, "--task-offset", extra(run, TASK_OFFSET)))
        return false;
    for (size_t i = 0; i < options->size_count; i++)
        if (!check_size(run, options->sizes[i]))
            return false;
    return true;
}

static double bytes(const struct bk_run *run, uint64_t size) {
    (void)size;
    return 2 * (double)extra(run, TRANSFER) + (double)IO_NOISE;
}

// ---- Where bytes are ---------------------------------------------------------------------------

// Of a task: its byte `at` is in block at / block, and these are `stride` apart.
struct extent {
    char path[PATH_MAX + 32];
    uint64_t first, stride;
    bool is_first; // of the tasks whose file it is
};

static struct extent extent_of(const struct work *work, unsigned task) {
    const char *folder = io_place()->path;
    const unsigned ranks = bk_ranks();
    struct extent extent = {.stride = work->block, .is_first = true};
    if (work->layout == SHARED) {
        snprintf(extent.path, sizeof extent.path, "%s/shared", folder);
        extent.first = task * work->block;
        extent.stride = ranks * work->block;
        extent.is_first = task == 0;
    } else if (work->layout == OWN) {
        snprintf(extent.path, sizeof extent.path, "%s/own.%u", folder, task);
    } else {
        // Tasks that follow each other share a file, whose chunks begin with its blocks.
        const unsigned of_a_file = ranks / work->n_files;
        const unsigned file = task / of_a_file, first = file * of_a_file;
        snprintf(extent.path, sizeof extent.path, "%s/chunks.%u", folder, file);
        extent.first = (task - first) * io_round_up(work->size, work->alignment);
        extent.is_first = task == first;
    }
    return extent;
}

static uint64_t place_of(const struct work *work, const struct extent *extent, uint64_t at) {
    return extent->first + at / work->block * extent->stride + at % work->block;
}

// ---- Kernels -----------------------------------------------------------------------------------

static bool open_extent(struct work *work, const struct extent *extent, enum io_access access,
                        struct io_file *file) {
    *file = (struct io_file){.path = extent->path};
    return work->files->open(file, access, work->layout == SHARED, work->direct, &work->trouble);
}

static void write_once(struct work *work) {
    const struct extent extent = extent_of(work, work->written);
    struct io_file file;
    work->generation = io_next_generation();
    if (!open_extent(work, &extent, IO_WRITE, &file))
        return;
    for (uint64_t at = 0; at < work->size; at += work->transfer) {
        io_content_stamp(&work->content, work->generation, work->written, at);
        if (!work->files->write(&file, work->content.sent, work->content.bytes,
                                place_of(work, &extent, at), &work->trouble))
            break;
    }
    if (work->sync)
        (void)work->files->sync(&file, &work->trouble);
    (void)work->files->close(&file, &work->trouble);
}

// Each transfer, as it came, is given to `look`.
static void read_once(struct work *work, void (*look)(struct work *work, uint64_t at, void *more),
                      void *more) {
    const struct extent extent = extent_of(work, work->read);
    struct io_file file;
    if (!open_extent(work, &extent, IO_READ, &file))
        return;
    for (uint64_t at = 0; at < work->size; at += work->transfer) {
        if (!work->files->read(&file, work->content.came, work->content.bytes,
                               place_of(work, &extent, at), &work->trouble))
            break;
        look(work, at, more);
    }
    (void)work->files->close(&file, &work->trouble);
}

static void write_files(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        write_once(work);
}

static void look_at_stamps(struct work *work, uint64_t at, void *more) {
    (void)more;
    work->wrong += !io_content_seems_right(&work->content, work->generation, work->read, at);
}

static void read_files(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        read_once(work, look_at_stamps, NULL);
}

// ---- Before and after --------------------------------------------------------------------------

// Each by one of its tasks, when none is still at it.
static void remove_files(struct work *work) {
    const struct extent extent = extent_of(work, work->written);
    io_remove_all(extent.path, extent.is_first, &work->trouble);
}

// What precedes a timed kernel ends when all ranks have ended it: their clocks begin alike.
static void prepare_write(void *context, uint64_t iterations) {
    (void)iterations;
    remove_files(context);
}

static void prepare_read(void *context, uint64_t iterations) {
    (void)iterations;
    struct work *work = context;
    if (!work->cold)
        return;
    (void)io_drop_all(extent_of(work, work->written).path, &work->trouble);
    (void)io_drop_all(extent_of(work, work->read).path, &work->trouble);
}

static void look_at_all(struct work *work, uint64_t at, void *more) {
    const size_t right = io_content_right(&work->content, work->generation, work->read, at);
    bk_check_value(more, at, (double)right, (double)work->transfer, 0);
}

// By all bytes, of the files as they are; the values are right bytes of each transfer.
static struct bk_check verify(void *context, unsigned kernel) {
    (void)kernel;
    struct work *work = context;
    struct bk_check found = BK_CHECK_START;
    prepare_read(work, 1);
    if (!io_stopped(&work->trouble))
        read_once(work, look_at_all, &found);
    if (work->wrong > 0)
        bk_check_value(&found, 0, (double)work->wrong, 0, 0);
    return found;
}

// ---- Measuring ---------------------------------------------------------------------------------

static const char *measure_kernel(struct bk_run *run, struct work *work, bool reads) {
    const unsigned kernel = 2 * (unsigned)work->layout + reads;
    if ((run->options->kernels & 1U << kernel) == 0)
        return NULL;
    bk_kernel *prepare = !reads ? prepare_write : work->cold ? prepare_read : NULL;
    const struct bk_case what =
        io_case(run, kernel, work->size, (double)work->size, "byte", prepare);
    if (reads && !work->is_written)
        write_files(work, 1);
    work->is_written = true;
    work->wrong = 0;
    return io_measure(run, &what, reads ? read_files : write_files, work, kernel, verify);
}

static const char *measure_layout(struct bk_run *run, struct work *work) {
    const char *trouble = measure_kernel(run, work, false);
    if (trouble == NULL)
        trouble = measure_kernel(run, work, true);
    if (trouble != NULL)
        return trouble;
    remove_files(work);
    return io_told(run, &work->trouble);
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const unsigned ranks = bk_ranks();
    const uint64_t alignment = io_place_block_bytes();
    const char *trouble = NULL;
    static const char elements[] = "bytes of a task: the file system has room for no more";
    if (bk_too_large(run, size, INT64_MAX / ranks - alignment, elements) ||
        !io_place_has_room(run, io_place(), size, (double)io_round_up(size, alignment) * ranks,
                           ranks, 1, elements))
        return NULL;
    for (unsigned i = 0; i < LAYOUTS && trouble == NULL; i++) {
        if ((run->options->kernels >> 2 * i & 3U) == 0)
            continue;
        struct work work = {
            .files = ((const struct io_variant *)run->variant)->files,
            .layout = i,
            .n_files = (unsigned)extra(run, FILES),
            .size = size,
            .transfer = extra(run, TRANSFER),
            .block = i == SHARED ? block_of(run, size) : size,
            .alignment = alignment,
            .written = bk_rank(),
            .read = (unsigned)((bk_rank() + extra(run, TASK_OFFSET)) % ranks),
            .direct = extra(run, DIRECT) != 0,
            .sync = extra(run, SYNC) != 0,
            .cold = extra(run, COLD) != 0,
        };
        const bool has_memory = io_content_make(&work.content, (size_t)work.transfer);
        trouble = bk_team_maximum(!has_memory) > 0 ? "out of memory: give a smaller --transfer"
                                                   : measure_layout(run, &work);
        io_content_free(&work.content);
    }
    return trouble;
}

const struct bk_benchmark io_bandwidth = {
    .name = "jm-io-bandwidth",
    .command = "jm-io bandwidth",
    .summary = "tasks write and read bytes of one file, of a file each, of some files in chunks",
    .size_meaning = "bytes of each task, a multiple of --transfer and of --block",
    .kernels = kernels,
    .variants = variants,
    .variants_help =
        "  posix: one task; mpi: a task for each rank, by POSIX's calls;\n"
        "  mpi-io: by MPI-IO's\n"
        "  shared: one file; own: a file each; chunks: --files files, in each of which\n"
        "  tasks have chunks that begin with the file system's blocks, as SIONlib's",
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
