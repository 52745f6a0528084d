// Tracing: what it costs a program that its events go to a file of each task, as Extrae has them do
// (DEEP-ER, figures 7 and 8: no trace against trace, by the size of the trace).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_random.h"
#include "io.h"

#include <stdio.h>

static const uint64_t sizes_8[] = {1000, 10000, 100000, 1000000};
static const uint64_t sizes_quick[] = {10, 1000};
static const struct bk_table tables[] = {
    {8, "1000 to 1 000 000 events of each task (figure 8: as many iterations of an FFT)", sizes_8,
     BK_COUNT(sizes_8)},
};

static const struct bk_variant *const variants[] = {
    &io_posix.base,
#ifdef BENCH_MPI
    &io_mpi.base,
#endif
    NULL,
};

enum { UNTRACED, TRACED, KERNELS };
static const char *const kernels[] = {"untraced", "traced", NULL};

static const char *const no_yes[] = {"no", "yes", NULL};
enum { BUFFER = IO_FOLDER + 1, WORK, SYNC };
static const struct bk_extra extras[] = {
    [IO_FOLDER] = {.name = "--folder", .help = "where a folder for the files is made", .text = "."},
    [BUFFER] = {.name = "--buffer",
                .help = "events that memory has, before they are written",
                .standard = 1 << 16,
                .least = 1,
                .most = 1 << 26,
                .whole = true},
    [WORK] = {.name = "--work",
              .help = "multiplications of the program from one event to the next",
              .standard = 1024,
              .least = 1,
              .most = 1 << 26,
              .whole = true},
    [SYNC] = {.name = "--sync",
              .help = "fsync after the last event, within its time",
              .standard = 1,
              .words = no_yes},
};

struct event {
    uint64_t time_ns;
    uint64_t number;
    uint64_t value; // the program's, by which what it did can be told
};

struct work {
    struct io_trouble trouble; // first: io_case
    const struct io_interface *files;
    uint64_t n_events;
    size_t capacity; // of the buffer
    unsigned rounds;
    bool sync;
    uint64_t first; // value of the program
    uint64_t last;  // of its end
    uint64_t begin_ns, end_ns;
    uint64_t times; // of all events, their sum
    struct event *buffer;
    char path[PATH_MAX + 32];
};

// ---- The program -------------------------------------------------------------------------------

static bool flush(struct work *work, struct io_file *file, size_t count, uint64_t written) {
    return work->files->write(file, work->buffer, count * sizeof *work->buffer,
                              written * sizeof *work->buffer, &work->trouble);
}

static void run_program(struct work *work, struct io_file *trace) {
    uint64_t value = work->first, written = 0;
    size_t kept = 0;
    bool ok = true;
    work->times = 0;
    work->begin_ns = bk_now_ns();
    for (uint64_t i = 0; i < work->n_events && ok; i++) {
        value = io_worked_on(value, work->rounds);
        if (trace == NULL)
            continue;
        const uint64_t now_ns = bk_now_ns();
        work->times += now_ns;
        work->buffer[kept++] = (struct event){now_ns, i, value};
        if (kept == work->capacity || i + 1 == work->n_events) {
            ok = flush(work, trace, kept, written);
            written += kept;
            kept = 0;
        }
    }
    work->last = value;
    work->end_ns = bk_now_ns();
}

static void run_untraced(void *context, uint64_t iterations) {
    for (uint64_t i = 0; i < iterations; i++)
        run_program(context, NULL);
}

static void run_traced(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++) {
        struct io_file file = {.path = work->path};
        if (!work->files->open(&file, IO_WRITE, false, false, &work->trouble))
            return;
        run_program(work, &file);
        if (work->sync)
            (void)work->files->sync(&file, &work->trouble);
        (void)work->files->close(&file, &work->trouble);
    }
}

// ---- Before and after --------------------------------------------------------------------------

// What precedes a timed kernel ends when all ranks have ended it: their clocks begin alike.
static void prepare(void *context, uint64_t iterations) {
    (void)iterations;
    struct work *work = context;
    work->first = bk_random_bits(io_next_generation(), bk_rank());
    io_remove_all(work->path, true, &work->trouble);
}

// An event is right by its number and value, and by a time that is not before the last one's.
static uint64_t right_events(struct work *work, size_t count, uint64_t first, uint64_t *value,
                             uint64_t *time_ns, uint64_t *times) {
    uint64_t right = 0;
    for (size_t i = 0; i < count; i++) {
        const struct event *event = &work->buffer[i];
        *value = io_worked_on(*value, work->rounds);
        right += event->number == first + i && event->value == *value &&
                 event->time_ns >= *time_ns && event->time_ns <= work->end_ns;
        *time_ns = event->time_ns;
        *times += event->time_ns;
    }
    return right;
}

// All events of the trace, or the program's last value.
static struct bk_check verify(void *context, unsigned kernel) {
    struct work *work = context;
    struct bk_check found = BK_CHECK_START;
    struct io_file file = {.path = work->path};
    uint64_t value = work->first, time_ns = work->begin_ns, times = 0;
    if (kernel == UNTRACED) {
        for (uint64_t i = 0; i < work->n_events; i++)
            value = io_worked_on(value, work->rounds);
        bk_check_value(&found, 0, work->last == value, 1, 0);
        return found;
    }
    if (!io_drop_all(work->path, &work->trouble) ||
        !work->files->open(&file, IO_READ, false, false, &work->trouble))
        return found;
    for (uint64_t at = 0; at < work->n_events; at += work->capacity) {
        const uint64_t left = work->n_events - at;
        const size_t count = left < work->capacity ? (size_t)left : work->capacity;
        if (!work->files->read(&file, work->buffer, count * sizeof *work->buffer,
                               at * sizeof *work->buffer, &work->trouble))
            break;
        const uint64_t right = right_events(work, count, at, &value, &time_ns, &times);
        bk_check_value(&found, at, (double)right, (double)count, 0);
    }
    (void)work->files->close(&file, &work->trouble);
    bk_check_value(&found, work->n_events, work->times == times, 1, 0);
    return found;
}

// ---- Measuring ---------------------------------------------------------------------------------

static const char *measure_kernel(struct bk_run *run, struct work *work, unsigned kernel) {
    const struct bk_case what =
        io_case(run, kernel, work->n_events, (double)work->n_events, "event", prepare);
    return io_measure(run, &what, kernel == TRACED ? run_traced : run_untraced, work, kernel,
                      verify);
}

static double bytes(const struct bk_run *run, uint64_t size) {
    (void)size;
    return run->options->extras[BUFFER] * sizeof(struct event);
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const double written = (double)size * sizeof(struct event) * bk_ranks();
    if (!io_place_has_room(run, io_place(), size, written, bk_ranks(), 1,
                           "events of a task: the file system has room for no more"))
        return NULL;
    struct work work = {
        .files = ((const struct io_variant *)run->variant)->files,
        .n_events = size,
        .capacity = (size_t)run->options->extras[BUFFER],
        .rounds = (unsigned)run->options->extras[WORK],
        .sync = run->options->extras[SYNC] > 0,
    };
    const char *trouble = NULL;
    snprintf(work.path, sizeof work.path, "%s/trace.%u", io_place()->path, bk_rank());
    work.buffer = bk_allocate(work.capacity * sizeof *work.buffer);
    if (bk_team_maximum(work.buffer == NULL) > 0)
        trouble = "out of memory: give a smaller --buffer";
    for (unsigned kernel = 0; kernel < KERNELS && trouble == NULL; kernel++)
        if ((run->options->kernels & 1U << kernel) != 0)
            trouble = measure_kernel(run, &work, kernel);
    if (trouble == NULL) {
        prepare(&work, 0);
        trouble = io_told(run, &work.trouble);
    }
    bk_release(work.buffer);
    return trouble;
}

const struct bk_benchmark io_tracing = {
    .name = "jm-io-tracing",
    .command = "jm-io tracing",
    .summary = "a program alone, and with its events written to a file of each task",
    .size_meaning = "events of each task, of 24 bytes",
    .kernels = kernels,
    .variants = variants,
    .variants_help = "  posix: one task; mpi: a task for each rank",
    .usual = BK_ALL,
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 300,
    .extras = extras,
    .extra_count = BK_COUNT(extras),
    .bytes = bytes,
    .begin = io_begin,
    .measure = measure,
    .end = io_place_remove,
};
