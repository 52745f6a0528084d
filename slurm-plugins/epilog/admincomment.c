// SPDX-License-Identifier: GPL-2.0-or-later
// admincomment FOLDER: puts finished jobs' energy into Slurm's accounting. FOLDER has a file a job,
// named by its number: `JOULES<tab>TEXT`, JOULES empty where they are not known whole. A file whose
// job is accounted goes; what is refused stays and holds up none of the others.
//
// A file is claimed while it is told, as .JOB, and stays so where it is refused: a newer JOB that
// comes meanwhile is told after it, or instead of it.
// Exit: 0 all are told, 1 some stay (try again later), 2 usage, 3 all stay for slurmdbd is away.
#include "accounting.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    TELLING_S = 20, /* for one job; then we end, and its file stays */
    EXIT_AWAY = 3,
    AWAY_MOST = 3, /* jobs of which there was no answer, one after the other: none will be had */
};

static volatile uint32_t job_at_hand;
static volatile int jobs_told;

static void took_too_long(int signal) {
    char text[80];
    (void)signal;
    jm_format(text, sizeof text, "admincomment: job %" PRIu32 ": no answer in %d s\n", job_at_hand,
              TELLING_S);
    if (write(STDERR_FILENO, text, strlen(text)) < 0 || jobs_told > 0)
        _exit(EXIT_FAILURE);
    _exit(EXIT_AWAY);
}

/* JOB or .JOB; 0: it is neither. */
static uint32_t job_of(const char *name) {
    uint64_t job;
    return jm_parse_u64(name + (name[0] == '.'), &job) && job < NO_VAL ? (uint32_t)job : 0;
}

static int by_number(const void *left, const void *right) {
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* The jobs that wait, each once. -1: the folder cannot be read. */
static int waiting(int folder, uint32_t **jobs) {
    DIR *directory = fdopendir(dup(folder));
    size_t count = 0, room = 0;
    *jobs = NULL;
    if (!directory)
        return -1;
    for (struct dirent *entry; (entry = readdir(directory));) {
        uint32_t job = job_of(entry->d_name);
        if (job && count == room) {
            room = 2 * room + 64;
            uint32_t *more = realloc(*jobs, room * sizeof **jobs);
            if (!more)
                break;
            *jobs = more;
        }
        if (job)
            (*jobs)[count++] = job;
    }
    closedir(directory);
    if (count > 1)
        qsort(*jobs, count, sizeof **jobs, by_number);
    int n = 0;
    for (size_t i = 0; i < count; i++)
        if (n == 0 || (*jobs)[i] != (*jobs)[n - 1])
            (*jobs)[n++] = (*jobs)[i];
    return n;
}

/* False: it is empty, or cannot be read. */
static bool read_energy(int folder, const char *name, char *text, size_t size,
                        jm_job_energy *told) {
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    if (length <= 0)
        return false;
    while (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = '\0';
    char *tab = strchr(text, '\t');
    told->text = tab ? tab + 1 : text;
    if (tab)
        *tab = '\0';
    told->known = tab && jm_parse_u64(text, &told->joules);
    return told->text[0] != '\0';
}

/* Refused is what cannot be read, too. Each is for good at once: slurmdbd may lose a connection and
 * what is not, and answer as before. */
static jm_accounting_status tell(jm_accounting *accounting, int folder, uint32_t job) {
    char text[4096], own[16], claimed[17];
    jm_job_energy told;
    jm_format(own, sizeof own, "%" PRIu32, job);
    jm_format(claimed, sizeof claimed, ".%" PRIu32, job);
    if (renameat(folder, own, folder, claimed) != 0 && errno != ENOENT) {
        fprintf(stderr, "admincomment: %s: %s\n", own, strerror(errno));
        return JM_ACCOUNTING_REFUSED;
    }
    jm_accounting_status status = JM_ACCOUNTING_REFUSED;
    errno = EINVAL;
    if (read_energy(folder, claimed, text, sizeof text, &told))
        status = jm_accounting_set(accounting, job, &told);
    if (status == JM_ACCOUNTING_REFUSED)
        fprintf(stderr, "admincomment: job %" PRIu32 ": %s\n", job, slurm_strerror(errno));
    else if (status == JM_ACCOUNTED && unlinkat(folder, claimed, 0) != 0)
        status = JM_ACCOUNTING_REFUSED;
    return status;
}

static int tell_all(int folder, const uint32_t *jobs, int count) {
    jm_accounting *accounting = jm_accounting_open();
    int away = 0, all_away = 0;            /* one after the other, and all in all */
    int first = (int)(time(NULL) % count); /* so that one which ends us holds up none for ever */
    for (int i = 0; i < count && accounting && away < AWAY_MOST; i++) {
        job_at_hand = jobs[(first + i) % count];
        alarm(TELLING_S);
        jm_accounting_status status = tell(accounting, folder, job_at_hand);
        jobs_told += status == JM_ACCOUNTED;
        away = status == JM_ACCOUNTING_AWAY ? away + 1 : 0;
        all_away += status == JM_ACCOUNTING_AWAY;
    }
    if (!accounting || all_away > 0)
        fprintf(stderr, "admincomment: %d jobs wait for %s\n", count - jobs_told,
                accounting ? "slurmdbd" : "slurmctld or slurmdbd");
    jm_accounting_close(accounting);
    if (jobs_told == count)
        return EXIT_SUCCESS;
    return jobs_told == 0 && (!accounting || all_away > 0) ? EXIT_AWAY : EXIT_FAILURE;
}

/* One at a time, or an older text could outlive a newer one. Nobody else can hold it. */
static bool lock(int folder) {
    int file = openat(folder, ".teller", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return file >= 0 && flock(file, LOCK_EX) == 0;
}

int main(int argc, char **argv) {
    uint32_t *jobs;
    if (argc != 2)
        return fprintf(stderr, "usage: admincomment FOLDER\n"), 2;
    signal(SIGALRM, took_too_long);
    alarm(TELLING_S);
    int folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int count = folder < 0 || !lock(folder) ? -1 : waiting(folder, &jobs);
    if (count < 0)
        return fprintf(stderr, "admincomment: %s: %s\n", argv[1], strerror(errno)), EXIT_FAILURE;
    slurm_init(NULL);
    int status = count > 0 ? tell_all(folder, jobs, count) : EXIT_SUCCESS;
    free(jobs);
    close(folder);
    return status;
}
