// SPDX-License-Identifier: GPL-2.0-or-later
// The outbox: finished files of this node, on its own disk, until they have arrived where they go.
#include "outbox.h"

#include "log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORY_MODE = 0750, FILE_MODE = 0640, BOX_PATH_MAX = 2 * JM_PATH_MAX + 16 };
enum { DRAFT_S = 3600 }; /* an older draft is nobody's */

/* Where files are; those in a sub-folder arrive in a folder of the same name. */
static const char *const FOLDERS[] = {"", "profiles/"};
enum { FOLDERS_COUNT = sizeof FOLDERS / sizeof *FOLDERS };

/* A file on its way out, apart from whatever new one takes its name. */
static const char TAKEN[] = ".taken.";

void jm_outbox_find(const jm_config *config, jm_outboxes *outboxes) {
    jm_format(outboxes->path[0], JM_PATH_MAX, "%s/outbox", config->state_dir);
    jm_format(outboxes->path[1], JM_PATH_MAX, "%s.outbox", config->socket);
}

static bool same_file(const jm_parcel *parcel, const struct stat *file) {
    return parcel->inode == file->st_ino && parcel->size == (size_t)file->st_size &&
           parcel->changed.tv_sec == file->st_mtim.tv_sec &&
           parcel->changed.tv_nsec == file->st_mtim.tv_nsec;
}

static void stamp(jm_parcel *parcel, const struct stat *file) {
    parcel->inode = file->st_ino;
    parcel->changed = file->st_mtim;
    parcel->size = (size_t)file->st_size;
}

/* What another user put in its place, or can put into it, would go out as ours. Who owns the folder
 * above is no other one where he alone can write to it: all in it is his already. */
static bool is_ours(int fd, mode_t kind, int folder, const char *above) {
    struct stat found, over;
    return fstat(fd, &found) == 0 && (found.st_mode & S_IFMT) == kind &&
           (found.st_mode & 022) == 0 &&
           (found.st_uid == geteuid() || found.st_uid == 0 ||
            (fstatat(folder, above, &over, 0) == 0 && (over.st_mode & 022) == 0 &&
             found.st_uid == over.st_uid));
}

int jm_open_ours(int folder, const char *name, int flags) {
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, FILE_MODE);
    if (fd < 0 || is_ours(fd, S_IFREG, folder, "."))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* NULL: not there, or not ours alone. */
static DIR *open_folder(const char *folder) {
    char name[BOX_PATH_MAX]; /* with a slash at its end a link would be followed */
    jm_format(name, sizeof name, "%s", folder);
    for (size_t end = strlen(name); end > 1 && name[end - 1] == '/';)
        name[--end] = '\0';
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !directory)
        close(fd);
    if (!directory || is_ours(dirfd(directory), S_IFDIR, dirfd(directory), ".."))
        return directory;
    closedir(directory);
    errno = EPERM;
    return NULL;
}

int jm_outbox_open(const char *outbox, const char *name) {
    DIR *directory = open_folder(outbox);
    int fd = directory ? jm_open_ours(dirfd(directory), name, O_RDONLY) : -1;
    if (directory)
        closedir(directory);
    return fd;
}

/* A newer file of the same name makes this one needless. */
static void put_back(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) != 0)
        unlink(from);
}

/* Of a writer that was killed. */
static bool is_old_draft(int folder, const char *name) {
    const char *suffix = strrchr(name, '.');
    struct stat file;
    return name[0] == '.' && strcmp(suffix, ".tmp") == 0 &&
           fstatat(folder, name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
           time(NULL) - file.st_mtime > DRAFT_S;
}

static bool put_in_order(const char *folder) {
    DIR *directory = open_folder(folder);
    char from[BOX_PATH_MAX], to[BOX_PATH_MAX];
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        if (is_old_draft(dirfd(directory), entry->d_name))
            unlinkat(dirfd(directory), entry->d_name, 0);
        else if (strncmp(entry->d_name, TAKEN, strlen(TAKEN)) == 0 &&
                 jm_format(from, sizeof from, "%s/%s", folder, entry->d_name) &&
                 jm_format(to, sizeof to, "%s/%s", folder, entry->d_name + strlen(TAKEN)))
            put_back(from, to);
    if (directory)
        closedir(directory);
    return directory != NULL;
}

static bool make(const char *outbox) {
    char folder[BOX_PATH_MAX];
    for (int i = 0; i < FOLDERS_COUNT; i++) {
        jm_format(folder, sizeof folder, "%s/%s", outbox, FOLDERS[i]);
        if ((mkdir(folder, DIRECTORY_MODE) != 0 && errno != EEXIST) || !put_in_order(folder))
            return false;
    }
    return access(outbox, W_OK) == 0;
}

int jm_outbox_make(const jm_outboxes *outboxes, jm_message *why) {
    if (!make(outboxes->path[1]))
        jm_warn("outbox %s: cannot be used: %s", outboxes->path[1], strerror(errno));
    if (make(outboxes->path[0]))
        return 0;
    jm_message_set(why, "outbox %s: cannot be used: %s; check `state_dir:`", outboxes->path[0],
                   strerror(errno));
    return -1;
}

/* ---- listing ---- */

typedef struct {
    jm_parcel *parcels;
    int count, capacity;
} list;

static bool add(list *to, const char *outbox, const char *folder, const char *name,
                const struct stat *file) {
    if (to->count == to->capacity) {
        int capacity = to->capacity ? 2 * to->capacity : 16;
        jm_parcel *grown = realloc(to->parcels, (size_t)capacity * sizeof *grown);
        if (!grown)
            return false;
        to->parcels = grown;
        to->capacity = capacity;
    }
    jm_parcel *parcel = &to->parcels[to->count];
    if (!jm_format(parcel->name, sizeof parcel->name, "%s%s", folder, name))
        return true; /* none of ours has such a name */
    parcel->outbox = outbox;
    stamp(parcel, file);
    to->count++;
    return true;
}

/* Names that begin with a dot are not finished. */
static bool list_folder(list *to, const char *outbox, const char *folder) {
    char path[BOX_PATH_MAX];
    jm_format(path, sizeof path, "%s/%s", outbox, folder);
    DIR *directory = open_folder(path);
    if (!directory)
        return true; /* the other outbox may be well */
    bool good = true;
    struct stat file;
    for (const struct dirent *entry; good && (entry = readdir(directory));)
        if (entry->d_name[0] != '.' &&
            fstatat(dirfd(directory), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(file.st_mode))
            good = add(to, outbox, folder, entry->d_name, &file);
    closedir(directory);
    return good;
}

int jm_outbox_list(const jm_outboxes *outboxes, jm_parcel **parcels) {
    list found = {0};
    for (int i = 0; i < JM_OUTBOXES * FOLDERS_COUNT; i++)
        if (!list_folder(&found, outboxes->path[i / FOLDERS_COUNT], FOLDERS[i % FOLDERS_COUNT])) {
            free(found.parcels);
            return -1;
        }
    *parcels = found.parcels;
    return found.count;
}

/* ---- one file ---- */

static bool read_all(int fd, char *buffer, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, buffer + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

char *jm_outbox_read(jm_parcel *parcel, jm_message *why) {
    char path[BOX_PATH_MAX];
    struct stat file;
    jm_format(path, sizeof path, "%s/%s", parcel->outbox, parcel->name);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &file) == 0 && (text = malloc((size_t)file.st_size + 1)) &&
        read_all(fd, text, (size_t)file.st_size)) {
        text[file.st_size] = '\0';
        stamp(parcel, &file);
    } else {
        jm_message_set(why, "%s: cannot be read: %s", path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

void jm_outbox_discard(const jm_parcel *parcel) {
    char path[BOX_PATH_MAX], taken[BOX_PATH_MAX];
    struct stat file;
    const char *slash = strrchr(parcel->name, '/');
    int folder = slash ? (int)(slash - parcel->name) + 1 : 0;
    jm_format(path, sizeof path, "%s/%s", parcel->outbox, parcel->name);
    jm_format(taken, sizeof taken, "%s/%.*s%s%s", parcel->outbox, folder, parcel->name, TAKEN,
              parcel->name + folder);
    if (rename(path, taken) != 0)
        return;
    if (stat(taken, &file) == 0 && !same_file(parcel, &file))
        put_back(taken, path);
    else
        unlink(taken);
}
