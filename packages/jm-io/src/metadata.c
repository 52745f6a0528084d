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
enum { DIRECTORIES = IO_FOLDER + 1, TASK_OFFSET };
static const struct bk_extra extras[] = {
    [IO_FOLDER] = {.name = "--folder", .help = "where a folder for the files is made", .text = "."},
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
    struct io_trouble trouble; // first: io_case
    uint64_t count;            // files of a task
    unsigned made, looked;     // tasks whose files this one makes, and looks at
    bool own;                  // directories
    bool are_there;            // the task's files
    uint64_t others;           // files that a stat did not find as they should be
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
    work->are_there = true;
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
    work->are_there = false;
}

// ---- Before and after --------------------------------------------------------------------------

// Files in a task's directory, as that tells.
static uint64_t files_there(struct work *work) {
    const struct path path = directory_of(work, work->made);
    DIR *directory = opendir(path.text);
    uint64_t found = 0;
    if (directory == NULL) {
        (void)io_fail(&work->trouble, "list", path.text);
        return 0;
    }
    errno = 0;
    for (struct dirent *one; (one = readdir(directory)) != NULL;)
        found += strncmp(one->d_name, "file.", 5) == 0;
    if (errno != 0)
        (void)io_fail(&work->trouble, "list", path.text);
    closedir(directory);
    return found;
}

// What precedes a timed kernel ends when all ranks have ended it: their clocks begin alike. Nobody
// lists a directory, by which a node might know what is in it.
static void make_sure(struct work *work, bool are_there) {
    if (io_stopped(&work->trouble))
        return;
    if (are_there != work->are_there)
        each_file(work, work->made, are_there ? create_file : remove_file);
    work->are_there = are_there;
    (void)io_stopped(&work->trouble);
}

static void prepare_without(void *context, uint64_t iterations) {
    (void)iterations;
    make_sure(context, false);
}

static void prepare_with(void *context, uint64_t iterations) {
    (void)iterations;
    make_sure(context, true);
}

// Of others' files: made anew, so that no node has looked at them yet.
static void prepare_look(void *context, uint64_t iterations) {
    const struct work *work = context;
    if (work->looked != work->made)
        prepare_without(context, iterations);
    prepare_with(context, iterations);
}

static bool make_directories(struct work *work) {
    const struct path path = directory_of(work, work->made);
    if (mkdir(path.text, 0700) != 0 && errno != EEXIST)
        (void)io_fail(&work->trouble, "make", path.text);
    return !io_stopped(&work->trouble);
}

static void remove_directories(struct work *work) {
    make_sure(work, false);
    const struct path path = directory_of(work, work->made);
    if (!io_stopped(&work->trouble) && (work->own || bk_rank() == 0) && rmdir(path.text) != 0)
        (void)io_fail(&work->trouble, "remove", path.text);
}

// ---- Measuring ---------------------------------------------------------------------------------

static const struct {
    bk_kernel *run, *prepare;
} of_kernels[KERNELS] = {
    [CREATE] = {create_files, prepare_without},
    [STAT] = {stat_files, prepare_look},
    [REMOVE] = {remove_files, prepare_with},
};

static struct bk_check verify(void *context, unsigned kernel) {
    struct work *work = context;
    struct bk_check found = BK_CHECK_START;
    const double count = kernel == REMOVE ? 0 : (double)work->count;
    if (io_stopped(&work->trouble)) // or all have ended
        return found;
    if (work->own || bk_rank() == 0) // one lists what is one
        bk_check_value(&found, 0, (double)files_there(work), count * (work->own ? 1 : bk_ranks()),
                       0);
    bk_check_value(&found, 1, (double)work->others, 0, 0);
    return found;
}

static const char *measure_kernel(struct bk_run *run, struct work *work, unsigned kernel) {
    const struct bk_case what = io_case(run, kernel, work->count, (double)work->count,
                                        kernels[kernel], of_kernels[kernel].prepare);
    return io_measure(run, &what, of_kernels[kernel].run, work, kernel, verify);
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const unsigned offset = (unsigned)run->options->extras[TASK_OFFSET];
    struct work work = {.count = size,
                        .made = bk_rank(),
                        .looked = (bk_rank() + offset) % bk_ranks(),
                        .own = run->options->extras[DIRECTORIES] > 0};
    const char *trouble = NULL;
    if (!io_place_has_room(run, io_place(), size, 1, (double)size * bk_ranks(), 1,
                           "files of a task: the file system has room for no more"))
        return NULL;
    if (!make_directories(&work))
        return io_told(run, &work.trouble);
    for (unsigned kernel = 0; kernel < KERNELS && trouble == NULL; kernel++)
        if ((run->options->kernels & 1U << kernel) != 0)
            trouble = measure_kernel(run, &work, kernel);
    if (trouble != NULL)
        return trouble; // they go with the place
    remove_directories(&work);
    return io_told(run, &work.trouble);
}

static bool check(struct bk_run *run) {
    return io_less_than_ranks(run, "--task-offset", (uint64_t)run->options->extras[TASK_OFFSET]);
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
    .check = check,
    .begin = io_begin,
    .measure = measure,
    .end = io_place_remove,
};
