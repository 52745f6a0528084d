// Where files are: a folder of our own, which is removed whatever ends the run.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "io.h"

#include <errno.h>
#include <ftw.h>
#include <mntent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static struct io_place place, local;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what is on the disk
static atomic_bool ends;                                 // by a signal

const struct io_place *io_place(void) {
    return &place;
}

const struct io_place *io_local(void) {
    return &local;
}

// Whether this process makes and removes its node's place.
static bool is_first_on_node(void) {
    return bk_ranks() == 1 || bk_rank_on_node() == 0;
}

// ---- Removal -----------------------------------------------------------------------------------

static int why_it_stays; // of what was not removed last

static int remove_entry(const char *path, const struct stat *status, int kind,
                        struct FTW *position) {
    (void)status, (void)kind, (void)position;
    if (remove(path) != 0) // it keeps its folder, which is tried again
        why_it_stays = errno;
    return 0;
}

static bool is_gone(const char *path) {
    return access(path, F_OK) != 0 && errno == ENOENT;
}

// Under another name nothing more comes into it: others may still be at work.
static void remove_tree(const char *path) {
    enum { TRIES = 300, OPEN_FILES = 16 };
    static const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
    char ending[PATH_MAX + 8];
    snprintf(ending, sizeof ending, "%s.ending", path);
    for (unsigned i = 0; i < TRIES; i++) {
        (void)rename(path, ending);
        nftw(ending, remove_entry, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
        nftw(path, remove_entry, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
        if (is_gone(path) && is_gone(ending))
            return;
        nanosleep(&pause, NULL); // a server is away, or another rank still has a file open
    }
    fprintf(stderr, "jm-io: can't remove '%s': %s; remove it by hand\n", ending,
            strerror(why_it_stays));
}

// What this process has made.
static void remove_trees(void) {
    if (local.path[0] != '\0' && is_first_on_node())
        remove_tree(local.path);
    if (place.path[0] != '\0' && bk_rank() == 0)
        remove_tree(place.path);
}

// What fails because the place is gone is nobody's trouble, and no exit status.
static void wait_if_it_ends(void) {
    while (atomic_load(&ends))
        pause();
}

void io_place_remove(void) {
    wait_if_it_ends();
    (void)bk_team_maximum(0); // none is still at work
    pthread_mutex_lock(&lock);
    remove_trees();
    local.path[0] = place.path[0] = '\0';
    pthread_mutex_unlock(&lock);
    (void)bk_team_maximum(0);
}

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGUSR1, SIGUSR2};
static sigset_t ignored; // of these, by the process's user

// By .preinit_array before any library's constructor: UCX's takes SIGHUP for itself, and who asked
// after it would see nothing of a nohup.
static void note_ignored(void) {
    sigemptyset(&ignored);
    for (size_t i = 0; i < BK_COUNT(fatal); i++) {
        struct sigaction now;
        if (sigaction(fatal[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            sigaddset(&ignored, fatal[i]);
    }
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = note_ignored;

// Those that end a process, but for what its user has it ignore.
static sigset_t ending_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < BK_COUNT(fatal); i++)
        if (!sigismember(&ignored, fatal[i]))
            sigaddset(&set, fatal[i]);
    return set;
}

// Removes the place, whatever the other threads wait for, and ends as the signal does. Nobody makes
// another one meanwhile, and its path stays as it is.
static void *wait_for_signals(void *nothing) {
    const sigset_t signals = ending_signals();
    int number = SIGTERM;
    if (sigwait(&signals, &number) != 0)
        return nothing;
    atomic_store(&ends, true);
    pthread_mutex_lock(&lock);
    remove_trees();
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    raise(number);
    return nothing;
}

void io_place_guard(void) {
    const sigset_t signals = ending_signals();
    pthread_t thread;
    signal(SIGXFSZ, SIG_IGN); // a limit on files' sizes is an error of the write,
    signal(SIGPIPE, SIG_IGN); // and so is an output that nobody reads
    for (size_t i = 0; i < BK_COUNT(fatal); i++)
        if (sigismember(&ignored, fatal[i]))
            signal(fatal[i], SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0)
        return;
    if (pthread_create(&thread, NULL, wait_for_signals, NULL) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

// ---- Making ------------------------------------------------------------------------------------

// The last of the longest mount points in which the path lies.
static void find_kind(const char *path, char *kind, size_t size) {
    snprintf(kind, size, "unknown");
    FILE *mounts = setmntent("/proc/self/mounts", "r");
    size_t longest = 0;
    for (struct mntent *one; mounts != NULL && (one = getmntent(mounts)) != NULL;) {
        const char *at = one->mnt_dir;
        const size_t length = strcmp(at, "/") == 0 ? 0 : strlen(at);
        if (length < longest || strncmp(path, at, length) != 0 ||
            (path[length] != '/' && path[length] != '\0'))
            continue;
        longest = length;
        snprintf(kind, size, "%s", one->mnt_type);
    }
    if (mounts != NULL)
        endmntent(mounts);
}

// The name in the folder `within`; false and errno where it can't be.
static bool find_path(struct io_place *in, const char *within, const char *name,
                      const char *ending) {
    char folder[PATH_MAX];
    if (realpath(within, folder) == NULL)
        return false;
    const char *top = strcmp(folder, "/") == 0 ? "" : folder;
    errno = ENAMETOOLONG;
    return snprintf(in->path, sizeof in->path, "%s/%s%s", top, name, ending) < (int)sizeof in->path;
}

static bool make(const struct bk_run *run, const char *within) {
    if (find_path(&place, within, "jm-io.XXXXXX", "") && mkdtemp(place.path) != NULL)
        return true;
    (void)bk_refuse(run, "can't make a folder in '%s': %s; give another --folder", within,
                    strerror(errno));
    place.path[0] = '\0';
    return false;
}

static void tell(struct bk_run *run, struct io_place *of, const char *files) {
    find_kind(of->path, of->kind, sizeof of->kind);
    bk_note(run->session, "%s are in %s, on %s", files, of->path, of->kind);
}

bool io_place_make(struct bk_run *run, const char *within) {
    if (place.path[0] != '\0')
        return true;
    pthread_mutex_lock(&lock);
    if (bk_rank() == 0)
        (void)make(run, within);
    bk_team_broadcast(place.path, sizeof place.path, 0);
    pthread_mutex_unlock(&lock);
    if (place.path[0] == '\0')
        return false;
    if (bk_team_maximum(access(place.path, W_OK) != 0) > 0)
        return bk_refuse(run,
                         "not all ranks can write to '%s'; give a --folder that all nodes have",
                         place.path);
    tell(run, &place, "files");
    return true;
}

// By each rank, for its own node.
static bool make_local(const struct bk_run *run, const char *within) {
    const char *name = strrchr(place.path, '/') + 1; // nobody else's
    if (find_path(&local, within, name, ".local") &&
        (!is_first_on_node() || mkdir(local.path, S_IRWXU) == 0))
        return true;
    fprintf(stderr,
            "%s: rank %u can't make a folder in '%s': %s; give a --local that each node has of "
            "its own\n",
            run->benchmark->name, bk_rank(), within, strerror(errno));
    local.path[0] = '\0'; // what is there is not ours to remove
    return false;
}

bool io_local_make(struct bk_run *run, const char *within) {
    if (local.path[0] != '\0')
        return true;
    pthread_mutex_lock(&lock);
    const bool is_made = make_local(run, within);
    pthread_mutex_unlock(&lock);
    if (bk_team_maximum(!is_made) > 0)
        return false;
    if (bk_team_maximum(access(local.path, W_OK) != 0) > 0)
        return bk_refuse(run, "not all ranks can write to '%s'; give another --local", local.path);
    tell(run, &local, "local files");
    return true;
}

const char *io_begin(struct bk_run *run) {
    return io_place_make(run, run->options->texts[IO_FOLDER]) ? NULL : BK_TOLD;
}

bool io_place_has_room(const struct bk_run *run, const struct io_place *where, uint64_t size,
                       double bytes, double files, unsigned dimensions, const char *elements) {
    static const double spare = 1.05;
    struct statvfs status;
    double share = 1; // of what is asked for; where it can't be asked, files will tell why
    if (statvfs(where->path, &status) == 0) {
        share = (double)status.f_bavail * (double)status.f_frsize / (spare * bytes);
        if (status.f_files > 0) // else they are not counted
            share = fmin(share, (double)status.f_favail / (spare * files));
    }
    share = -bk_team_maximum(-share);
    const double most = (double)size * pow(fmin(share, 1), 1.0 / dimensions);
    return share >= 1 || !bk_too_large(run, size, (uint64_t)most, elements);
}

uint64_t io_place_block_bytes(void) {
    enum { USUAL = 4096 };
    struct stat status;
    const bool known = stat(place.path, &status) == 0 && status.st_blksize > 0;
    return (uint64_t)bk_team_maximum(known ? (double)status.st_blksize : (double)USUAL);
}

bool io_less_than_ranks(const struct bk_run *run, const char *option, uint64_t value) {
    if (value < bk_ranks())
        return true;
    return bk_refuse(run, "%s: %llu are as many as tasks, or more; give 0 to %u", option,
                     (unsigned long long)value, bk_ranks() - 1);
}

// ---- Trouble -----------------------------------------------------------------------------------

bool io_note(struct io_trouble *trouble, const char *doing, const char *path, const char *why,
             const char *fix) {
    wait_if_it_ends();
    if (trouble->text[0] == '\0')
        snprintf(trouble->text, sizeof trouble->text, "can't %s '%s': %s; %s", doing, path, why,
                 fix);
    return false;
}

bool io_fail(struct io_trouble *trouble, const char *doing, const char *path) {
    const int error = errno;
    const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    const size_t length = strlen(local.path);
    const bool is_local = length > 0 && strncmp(path, local.path, length) == 0;
    const char *option = is_local ? "--local" : "--folder";
    char fix[64];
    snprintf(fix, sizeof fix,
             is_full ? "give smaller --sizes, or another %s"
                     : "give another %s, or look at its file system",
             option);
    return io_note(trouble, doing, path, strerror(error), fix);
}

bool io_stopped(const struct io_trouble *trouble) {
    return bk_team_maximum(trouble->text[0] != '\0') > 0;
}

const char *io_told(const struct bk_run *run, const struct io_trouble *trouble) {
    if (trouble->text[0] != '\0')
        fprintf(stderr, "%s: %s: rank %u %s\n", run->benchmark->name, run->variant->name, bk_rank(),
                trouble->text);
    return io_stopped(trouble) ? BK_TOLD : NULL;
}

static bool has_stopped(const void *context) {
    return io_stopped(context);
}

struct bk_case io_case(const struct bk_run *run, unsigned kernel, uint64_t size, double operations,
                       const char *operation, bk_kernel *prepare) {
    const double all = operations * (run->variant->mpi ? bk_ranks() : 1);
    struct bk_case what = bk_describe(run, kernel, size, all, operation);
    what.device = place.kind;
    what.prepare = prepare;
    what.most_iterations = 1;
    what.stopped = has_stopped;
    return what;
}

const char *io_measure(struct bk_run *run, const struct bk_case *what, bk_kernel *kernel,
                       void *context, unsigned number, io_verify *verify) {
    struct bk_timing timing;
    if (!bk_measure(run->session, what, kernel, context, &timing))
        return "out of memory";
    const struct bk_check right = verify(context, number);
    const char *told = io_told(run, context);
    if (told == NULL)
        bk_finish(run, what, &timing, &right);
    else
        bk_free_timing(&timing);
    return told;
}

// ---- Files of all ranks ------------------------------------------------------------------------

bool io_drop_all(const char *path, struct io_trouble *trouble) {
    if (io_stopped(trouble))
        return false;
    io_drop(path, trouble);
    return !io_stopped(trouble);
}

void io_remove_all(const char *path, bool is_mine, struct io_trouble *trouble) {
    if (io_stopped(trouble))
        return;
    if (is_mine && unlink(path) != 0 && errno != ENOENT)
        (void)io_fail(trouble, "remove", path);
    (void)io_stopped(trouble);
}
