// SPDX-License-Identifier: GPL-2.0-or-later
// The forwarder's way to a shared folder: copy beside the final place, then rename.
#include "clock.h"
#include "forward.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0640, DIRECTORY_MODE = 0750, PLACE_MAX = 2 * JM_PATH_MAX + 48 };
enum { RUNS_MAX = 1000, PART_MAX = 4096 };
static const int64_t SAID_EVERY_NS = 3600 * JM_NS_PER_S;

/* A record that only says that there is none never takes the place of one. */
static bool is_missing_record(const char *text) {
    const char *missing = strstr(text, "\"missing\": ");
    return missing && strncmp(missing, "\"missing\": null", strlen("\"missing\": null")) != 0;
}

static bool make_folder(const char *folder) {
    return mkdir(folder, DIRECTORY_MODE) == 0 || errno == EEXIST;
}

static bool write_all(int fd, const char *text, size_t size) {
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        size -= (size_t)n;
    }
    return true;
}

/* The merge is another user than root: a file belongs to whom its folder belongs. */
static bool give_to_owner(int fd, const char *folder) {
    struct stat owner;
    return geteuid() != 0 ||
           (stat(folder, &owner) == 0 && fchown(fd, owner.st_uid, owner.st_gid) == 0);
}

/* O_EXCL: a link that another user planted is never followed. */
static bool write_draft(const char *folder, const char *draft, const char *text, size_t size) {
    unlink(draft);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return false;
    bool good = give_to_owner(fd, folder) && write_all(fd, text, size) && fsync(fd) == 0;
    int failure = errno;
    if (close(fd) != 0 && good) {
        good = false;
        failure = errno;
    }
    errno = failure;
    return good;
}

typedef struct {
    int64_t start_ns, end_ns; /* 0: a text that does not say it */
} run;

static int64_t time_of(const char *text, const char *key) {
    const char *found = strstr(text, key);
    return found ? strtoll(found + strlen(key), NULL, 10) : 0;
}

/* A record's is that of the job, its first account; a profile's is in its first and last line. */
static run run_of(const char *text) {
    const char *end = strstr(text, "\"end_ns\":") ? "\"end_ns\":" : "\n{\"end\":";
    return (run){time_of(text, "\"start_ns\":"), time_of(text, end)};
}

static run run_at(const char *path) {
    char text[2 * PART_MAX + 1];
    struct stat file;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, PART_MAX) : 0;
    if (n == PART_MAX && fstat(fd, &file) == 0) {
        off_t from = file.st_size > 2 * PART_MAX ? file.st_size - PART_MAX : PART_MAX;
        ssize_t end = pread(fd, text + n, PART_MAX, from);
        n += end > 0 ? end : 0;
    }
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return run_of(text);
}

/* Slurm may start a job more than once. */
static bool is_other(const run *there, const run *ours) {
    return there->start_ns && ours->start_ns && there->start_ns != ours->start_ns;
}

static bool is_later(const run *there, const run *ours) {
    if (is_other(there, ours))
        return there->start_ns > ours->start_ns;
    return there->start_ns && ours->start_ns && there->end_ns > ours->end_ns;
}

/* A record that another forwarder of ours puts there meanwhile is seen. */
static bool put(const char *draft, const char *final) {
    if (access(final, F_OK) == 0)
        return rename(draft, final) == 0;
    if (renameat2(AT_FDCWD, draft, AT_FDCWD, final, RENAME_NOREPLACE) == 0)
        return true;
    return errno == EINVAL && rename(draft, final) == 0; /* NFS does not know the flag */
}

/* Over an earlier version of itself; a record beside an earlier run's, as FINAL.2, which is merged
 * too; a profile over an earlier run's. A ledger that lost what it had saved last, as by a power
 * failure, tells of the job's beginning. */
static bool place(const char *draft, const char *final, const char *text, bool record) {
    char numbered[PLACE_MAX];
    run ours = run_of(text), there = run_at(final);
    jm_format(numbered, sizeof numbered, "%s", final);
    for (int number = 2; record && number <= RUNS_MAX && is_other(&there, &ours); number++) {
        jm_format(numbered, sizeof numbered, "%s.%d", final, number);
        there = run_at(numbered);
    }
    if (!is_later(&there, &ours))
        return put(draft, numbered);
    jm_info("%s is later than what the outbox had of this job, and stays", numbered);
    return unlink(draft) == 0;
}

/* Only where there is nothing yet. */
static bool place_first(const char *draft, const char *final) {
    bool good = link(draft, final) == 0 || errno == EEXIST;
    int failure = errno;
    unlink(draft);
    errno = failure;
    return good;
}

static bool is_record(const jm_parcel *parcel) {
    const char *end = strrchr(parcel->name, '.');
    return !strchr(parcel->name, '/') && end && strcmp(end, ".json") == 0;
}

static bool place_parcel(const jm_parcel *parcel, const char *text, const char *draft,
                         const char *final) {
    bool record = is_record(parcel);
    return record && is_missing_record(text) ? place_first(draft, final)
                                             : place(draft, final, text, record);
}

typedef enum { ARRIVED, LEFT, DOWN } outcome;

/* Another file may be smaller. */
static bool is_full(int error) {
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* The draft has this process's number in its name: one that hangs there meets no later one. With
 * errno, where it has not arrived. */
static outcome deliver(const jm_forward *forward, const jm_parcel *parcel, const char *text) {
    char folder[PLACE_MAX], draft[PLACE_MAX], final[PLACE_MAX];
    const char *slash = strrchr(parcel->name, '/');
    int length = slash ? (int)(slash - parcel->name) : 0;
    const char *record_dir = forward->config->record_dir;
    const char *base = slash ? slash + 1 : parcel->name;
    jm_format(folder, sizeof folder, "%s%s%.*s", record_dir, slash ? "/" : "", length,
              parcel->name);
    if (!jm_format(final, sizeof final, "%s/%s", folder, base) ||
        !jm_format(draft, sizeof draft, "%s/.%s.%ld.tmp", folder, base, (long)getpid())) {
        errno = ENAMETOOLONG;
        return LEFT;
    }
    if (!make_folder(record_dir) || !make_folder(folder))
        return slash ? LEFT : DOWN;
    bool drafted = write_draft(folder, draft, text, parcel->size);
    if (drafted && place_parcel(parcel, text, draft, final))
        return ARRIVED;
    int failure = errno;
    unlink(draft);
    errno = failure;
    return drafted || slash || is_full(failure) ? LEFT : DOWN;
}

static outcome forward_one(const jm_forward *forward, jm_parcel *parcel, jm_message *why) {
    char *text = jm_outbox_read(parcel, why);
    if (!text)
        return LEFT;
    outcome end = deliver(forward, parcel, text);
    int failure = errno;
    if (end == ARRIVED)
        jm_outbox_discard(parcel);
    else
        jm_message_set(why,
                       "record %s/%s: cannot be written: %s; check `record_dir:`, its owner and "
                       "space",
                       forward->config->record_dir, parcel->name, strerror(failure));
    free(text);
    errno = failure;
    return end;
}

/* An episode is a line as it begins, one an hour, and one as it ends; so is each file that alone
 * cannot be placed. */
static void tell(jm_forward *forward, int error, const char *why, int left, bool rest) {
    int64_t now_ns = jm_boot_ns();
    jm_fault *fault = &forward->fault;
    bool is_new = error != fault->error || (!rest && left > fault->left) ||
                  now_ns - fault->said_boot_ns > SAID_EVERY_NS;
    if (error == 0 && fault->error != 0)
        jm_info("record_dir %s takes all records again", forward->config->record_dir);
    else if (error != 0 && is_new)
        jm_error("%s; %d wait in the outbox", why, left);
    if (error == 0 || is_new)
        *fault = (jm_fault){error, left, now_ns};
}

static bool is_newer(const jm_parcel *a, const jm_parcel *b) {
    return a->changed.tv_sec != b->changed.tv_sec ? a->changed.tv_sec > b->changed.tv_sec
                                                  : a->changed.tv_nsec > b->changed.tv_nsec;
}

int jm_forward_to_folder(jm_forward *forward, bool *rest) {
    jm_parcel *parcels = NULL;
    int count = jm_outbox_list(&forward->outboxes, &parcels), left = 0, told = 0;
    const jm_parcel *newest = NULL; /* of those that alone cannot be placed: others were told of */
    jm_message said = {""}, why;
    outcome end = ARRIVED;
    *rest = false;
    if (count < 0) {
        tell(forward, ENOMEM, "the outbox cannot be listed: out of memory", 1, true);
        return 1;
    }
    make_folder(forward->config->record_dir); /* a first start needs no preparation */
    for (int i = 0; i < count && end != DOWN; i++) {
        if (jm_forward_stopping()) {
            free(parcels);
            return left + count - i;
        }
        errno = 0;
        end = forward_one(forward, &parcels[i], &why);
        if (end == ARRIVED)
            continue;
        left += end == DOWN ? count - i : 1;
        int error = errno ? errno : EIO;
        bool of_folder = end == DOWN || is_full(error);
        if (of_folder || (!*rest && (!newest || is_newer(&parcels[i], newest)))) {
            newest = &parcels[i];
            told = error;
            said = why;
        }
        *rest |= of_folder;
    }
    tell(forward, told, said.text, left, *rest);
    free(parcels);
    return left;
}
