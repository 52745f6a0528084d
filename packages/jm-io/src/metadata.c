// Metadata: all tasks create empty files, look at them, and remove them, as HLRS's benchmark does
// (PRACE-1IP D9.3.3, 5.2 and figures 129 to 135) and mdtest.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t sizes_129[] = {10000};
static const uint64_t sizes_quick[] = {10, 100};
static const struct bk_table tables[] = {
    {129, "10 000 files of each task (figures 129 to 135)", sizes_129, BK_COUNT(sizes_129)},
};

static const struct bk_variant *const variants[] = {
    &io_posix.base,
#ifdef BENCH_MPI
    &io_mpi.base,
#endif
    NULL,
};

enum { CREATE, STAT, REMOVE, KERNELS };
static const char *const kernels[] = {"create", "stat", "remove", NULL};

static const char *const directories[] = {"shared", "own", NULL};
enum { FOLDER, DIRECTORIES, TASK_OFFSET };
static const struct bk_extra extras[] = {
    [FOLDER] = {.name = "--folder", .help = "where a folder for the files is made", .text = "."},
    [DIRECTORIES] = {.name = "--directories",
                     .help = "files are in one directory, or in one of each task",
                     .words = directories},
    [TASK_OFFSET] = {.name = "--task-offset",
                     .help = "a task looks at the files that the one so many ranks behind it "
                             "made, against caches: the tasks of a node, or more",
                     .standard = 0,
                     .least = 0,
                     .most = 1 << 30,
                     .whole = true},
};

struct work {
    uint64_t count;        // files of a task
    unsigned made, looked; // tasks whose files this one makes, and looks at
    bool own;              // directories
    uint64_t others;       // files that a stat did not find as they should be
    struct io_trouble trouble;
};

struct path {
    char text[PATH_MAX + 64];
};

static struct path directory_of(const struct work *work, unsigned task) {
    struct path path;
    if (work->own)
        snprintf(path.text, sizeof path.text, "%s/own.%u", io_place()->path, task);
    else
        snprintf(path.text, sizeof path.text, "%s/shared", io_place()->path);
    return path;
}

// Where the number of a task's file begins, which is written there again and again.
static char *name_files(const struct work *work, unsigned task, struct path *path) {
    *path = directory_of(work, task);
    const size_t used = strlen(path->text);
    return path->text + used +
           snprintf(path->text + used, sizeof path->text - used, "/file.%u.", task);
}

static void write_number(char *at, uint64_t number) {
    char digits[20];
    unsigned count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        *at++ = digits[--count];
    *at = '\0';
}

// ---- Kernels -----------------------------------------------------------------------------------

static bool create_file(struct work *work, const char *path) {
    const int descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    return (descriptor >= 0 && close(descriptor) == 0) || io_fail(&work->trouble, "create", path);
}

static bool stat_file(struct work *work, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0)
        return io_fail(&work->trouble, "look at", path);
    work->others += !S_ISREG(status.st_mode) || status.st_size != 0 || status.st_nlink != 1;
    return true;
}

static bool remove_file(struct work *work, const char *path) {
    return unlink(path) == 0 || io_fail(&work->trouble, "remove", path);
}

static void each_file(struct work *work, unsigned task,
                      bool (*act)(struct work *work, const char *path)) {
    struct path path;
    char *number = name_files(work, task, &path);
    for (uint64_t i = 0; i < work->count; i++) {
        write_number(number, i);
        if (!act(work, path.text))
            return;
    }
}

static void create_files(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        each_file(work, work->made, create_file);
}

static void stat_files(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        each_file(work, work->looked, stat_file);
}

static void remove_files(void *context, uint64_t iterations) {
    struct work *work = context;
    for (uint64_t i = 0; i < iterations && !io_stopped(&work->trouble); i++)
        each_file(work, work->made, remove_file);
}

// ---- Before and after --------------------------------------------------------------------------

// A task's own files that there are, as its directory tells.
static uint64_t files_there(struct work *work) {
    const struct path path = directory_of(work, work->made);
    char own[32];
    const int length = snprintf(own, sizeof own, "file.%u.", work->made);
    DIR *directory = opendir(path.text);
    uint64_t found = 0;
    errno = 0;
    for (struct dirent *one; directory != NULL && (one = readdir(directory)) != NULL;)
        found += strncmp(one->d_name, own, (size_t)length) == 0;
    if (errno != 0)
        (void)io_fail(&work->trouble, "list", path.text);
    if (directory != NULL)
        closedir(directory);
    return found;
}

// One iteration creates or removes all: before it none is there, or all are.
static void make_sure(struct work *work, bool are_there) {
    if (io_stopped(&work->trouble))
        return;
    const uint64_t found = files_there(work);
    if (are_there && found == 0)
        each_file(work, work->made, create_file);
    else if (!are_there && found > 0)
        each_file(work, work->made, remove_file);
}

static void prepare_without(void *context, uint64_t iterations) {
    (void)iterations;
    make_sure(context, false);
}

static void prepare_with(void *context, uint64_t iterations) {
    (void)iterations;
    make_sure(context, true);
}

static bool make_directories(struct work *work) {
    const struct path path = directory_of(work, work->made);
    if (mkdir(path.text, 0700) != 0 && errno != EEXIST)
        (void)io_fail(&work->trouble, "make", path.text);
    return !io_stopped(&work->trouble);
}

static void remove_directories(struct work *work) {
    if (io_stopped(&work->trouble))
        return; // they go with the place
    if (files_there(work) > 0)
        each_file(work, work->made, remove_file);
    (void)io_stopped(&work->trouble);
    (void)rmdir(directory_of(work, work->made).text); // the last task's succeeds
}

// ---- Measuring ---------------------------------------------------------------------------------

static const struct {
    bk_kernel *run, *prepare;
    bool once; // one iteration uses up what was prepared
} of_kernels[KERNELS] = {
    [CREATE] = {create_files, prepare_without, true},
    [STAT] = {stat_files, prepare_with, false},
    [REMOVE] = {remove_files, prepare_with, true},
};

static struct bk_check verify(struct work *work, unsigned kernel) {
    struct bk_check found = BK_CHECK_START;
    const double count = kernel == REMOVE ? 0 : (double)work->count;
    bk_check_value(&found, 0, (double)files_there(work), count, 0);
    bk_check_value(&found, 1, (double)work->others, 0, 0);
    return found;
}

static const char *measure_kernel(struct bk_run *run, struct work *work, unsigned kernel) {
    const double all = (double)work->count * (run->variant->mpi ? bk_ranks() : 1);
    struct bk_case what = bk_describe(run, kernel, work->count, all, kernels[kernel]);
    what.device = io_place()->kind;
    what.prepare = of_kernels[kernel].once ? of_kernels[kernel].prepare : NULL;
    what.most_iterations = 1;
    of_kernels[kernel].prepare(work, 1);
    struct bk_timing timing;
    if (!bk_measure(run->session, &what, of_kernels[kernel].run, work, &timing))
        return "out of memory";
    const struct bk_check right = verify(work, kernel);
    const char *trouble = io_told(run, &work->trouble);
    if (trouble == NULL)
        bk_finish(run, &what, &timing, &right);
    else
        bk_free_timing(&timing);
    return trouble;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const unsigned offset = (unsigned)run->options->extras[TASK_OFFSET];
    struct work work = {.count = size,
                        .made = bk_rank(),
                        .looked = (bk_rank() + offset) % bk_ranks(),
                        .own = run->options->extras[DIRECTORIES] > 0};
    const char *trouble = NULL;
    if (!io_place_has_room(run, size, 1, (double)size * bk_ranks(),
                           "files of a task: the file system has room for no more"))
        return NULL;
    if (!make_directories(&work))
        return io_told(run, &work.trouble);
    for (unsigned kernel = 0; kernel < KERNELS && trouble == NULL; kernel++)
        if ((run->options->kernels & 1U << kernel) != 0)
            trouble = measure_kernel(run, &work, kernel);
    remove_directories(&work);
    return trouble;
}

static const char *begin(struct bk_run *run) {
    return io_place_make(run, run->options->texts[FOLDER]) ? NULL : BK_TOLD;
}

const struct bk_benchmark io_metadata = {
    .name = "jm-io-metadata",
    .command = "jm-io metadata",
    .summary = "tasks create empty files, look at them, and remove them",
    .size_meaning = "files of each task",
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
    .begin = begin,
    .measure = measure,
};
