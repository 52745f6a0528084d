// SPDX-License-Identifier: GPL-2.0-or-later
// Files that grow by whole lines, written by a thread of their own.
#include "journal.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_MAX = 20000, FILE_MODE = 0640, DIRECTORY_MODE = 0750, RETRY_S = 5, STOP_S = 2 };

typedef struct entry {
    struct entry *next;
    char name[2 * JM_NAME_MAX];
    char line[];
} entry;

struct jm_journal {
    char folder[JM_PATH_MAX];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    entry *first, **last; /* oldest first */
    int count;
    bool stopping;
};

static struct timespec in_seconds(int seconds) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += seconds;
    return t;
}

/* A line that a crash tore ends here, so that it spoils no other. */
static bool end_torn_line(int fd) {
    char end = '\n';
    struct stat file;
    if (fstat(fd, &file) != 0)
        return false;
    if (file.st_size > 0 && pread(fd, &end, 1, file.st_size - 1) != 1)
        return false;
    return end == '\n' || write(fd, "\n", 1) == 1;
}

/* One write: on a disk that is full, what a part of it left is taken back. */
static bool append(int fd, const char *line) {
    struct stat before;
    size_t length = strlen(line);
    if (fstat(fd, &before) != 0)
        return false;
    if (write(fd, line, length) == (ssize_t)length && fdatasync(fd) == 0)
        return true;
    int failure = errno ? errno : ENOSPC;
    if (ftruncate(fd, before.st_size) != 0)
        jm_warn("a torn line stays: %s", strerror(errno));
    errno = failure;
    return false;
}

/* The merge is another user than root: what we make belongs to whom the folder above belongs. */
static bool give_to_owner(int fd, const char *above) {
    struct stat owner;
    return geteuid() != 0 ||
           (stat(above, &owner) == 0 && fchown(fd, owner.st_uid, owner.st_gid) == 0);
}

static bool make_folder(const char *folder) {
    char above[JM_PATH_MAX + 4];
    if (mkdir(folder, DIRECTORY_MODE) != 0)
        return errno == EEXIST;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    jm_format(above, sizeof above, "%s/..", folder);
    bool good = fd >= 0 && give_to_owner(fd, above);
    if (fd >= 0)
        close(fd);
    return good;
}

static bool write_entry(const jm_journal *journal, const entry *next) {
    char path[2 * JM_PATH_MAX], above[JM_PATH_MAX + 4];
    jm_format(path, sizeof path, "%s/%s.jsonl", journal->folder, next->name);
    jm_format(above, sizeof above, "%s/..", journal->folder);
    bool made = make_folder(journal->folder);
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    errno = fd >= 0 ? 0 : errno;
    bool good =
        made && fd >= 0 && give_to_owner(fd, above) && end_torn_line(fd) && append(fd, next->line);
    if (!good)
        jm_error("%s: cannot be written: %s; check `record_dir:`; lines wait", path,
                 strerror(errno));
    if (fd >= 0)
        close(fd);
    return good;
}

static void take_off(jm_journal *journal) {
    entry *done = journal->first;
    journal->first = done->next;
    if (!journal->first)
        journal->last = &journal->first;
    journal->count--;
    free(done);
}

static void *write_lines(void *opaque) {
    jm_journal *journal = opaque;
    pthread_mutex_lock(&journal->lock);
    while (!journal->stopping || journal->first) {
        if (!journal->first) {
            pthread_cond_wait(&journal->changed, &journal->lock);
            continue;
        }
        const entry *oldest = journal->first; /* only this thread takes entries off */
        pthread_mutex_unlock(&journal->lock);
        bool good = write_entry(journal, oldest);
        pthread_mutex_lock(&journal->lock);
        if (good) {
            take_off(journal);
            continue;
        }
        if (journal->stopping)
            break;
        struct timespec retry = in_seconds(RETRY_S);
        pthread_cond_timedwait(&journal->changed, &journal->lock, &retry);
    }
    pthread_mutex_unlock(&journal->lock);
    return NULL;
}

jm_journal *jm_journal_start(const char *folder) {
    jm_journal *journal = calloc(1, sizeof *journal);
    if (!journal || !jm_format(journal->folder, sizeof journal->folder, "%s", folder)) {
        free(journal);
        return NULL;
    }
    journal->last = &journal->first;
    pthread_mutex_init(&journal->lock, NULL);
    pthread_cond_init(&journal->changed, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(&journal->thread, NULL, write_lines, journal);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure == 0)
        return journal;
    free(journal);
    return NULL;
}

bool jm_journal_add(jm_journal *journal, const char *name, const char *line) {
    entry *new = malloc(sizeof *new + strlen(line) + 2);
    if (!new)
        return false;
    new->next = NULL;
    jm_format(new->name, sizeof new->name, "%s", name);
    jm_format(new->line, strlen(line) + 2, "%s\n", line);
    pthread_mutex_lock(&journal->lock);
    bool fits = journal->count < QUEUE_MAX;
    if (fits) {
        *journal->last = new;
        journal->last = &new->next;
        journal->count++;
        pthread_cond_signal(&journal->changed);
    }
    pthread_mutex_unlock(&journal->lock);
    if (!fits)
        free(new);
    return fits;
}

bool jm_journal_stop(jm_journal *journal) {
    pthread_mutex_lock(&journal->lock);
    journal->stopping = true;
    pthread_cond_signal(&journal->changed);
    pthread_mutex_unlock(&journal->lock);
    struct timespec patience = in_seconds(STOP_S);
    if (pthread_timedjoin_np(journal->thread, NULL, &patience) != 0)
        return false;
    while (journal->first)
        take_off(journal);
    free(journal);
    return true;
}
