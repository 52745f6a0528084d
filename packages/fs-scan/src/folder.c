// Reads a folder: its names by getdents64, what they are by statx.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "folder.h"

#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BUFFER_SIZE = 256 << 10, FIRST_OBJECTS = 32, FIRST_NAMES = 1 << 10 };

#ifndef STATX_ATTR_MOUNT_ROOT // of Linux 5.8; an older one sets no bit
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

static const unsigned WANTED = STATX_BASIC_STATS | STATX_BTIME;
static const int OPEN = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

struct folder *folder_new(struct folder *parent, const char *name, uint64_t ino) {
    const size_t size = strlen(name) + 1;
    struct folder *made = memory(NULL, sizeof *made + size);
    *made = (struct folder){.parent = parent, .holders = 1, .ino = ino};
    memcpy(made->name, name, size);
    if (parent)
        atomic_fetch_add(&parent->holders, 1);
    return made;
}

void folder_release(struct folder *folder) {
    while (folder && atomic_fetch_sub(&folder->holders, 1) == 1) {
        struct folder *parent = folder->parent;
        free(folder);
        folder = parent;
    }
}

void found_free(struct found *found) {
    folder_release(found->folder);
    free(found->objects);
    free(found->names);
    free(found);
}

static struct found *found_new(struct folder *folder) {
    struct found *made = memory(NULL, sizeof *made);
    *made = (struct found){.folder = folder, .whole = true};
    if (folder)
        atomic_fetch_add(&folder->holders, 1);
    return made;
}

// The way from the root, without it: "a/b"; to be freed.
static char *way_to(const struct folder *folder) {
    size_t size = 1;
    for (const struct folder *at = folder; at->parent; at = at->parent)
        size += strlen(at->name) + 1;
    char *way = memory(NULL, size), *end = way + size - 1;
    *end = '\0';
    for (const struct folder *at = folder; at->parent; at = at->parent) {
        const size_t length = strlen(at->name);
        end -= length;
        memcpy(end, at->name, length);
        if (at->parent->parent)
            *--end = '/';
    }
    memmove(way, end, strlen(end) + 1);
    return way;
}

// A name may hold what a terminal would obey.
static void tell(const struct tree *tree, const char *way, const char *name, int error) {
    char text[2 * PATH_MAX];
    const char *between = *way && *name ? "/" : "";
    snprintf(text, sizeof text, "%s/%s%s%s", tree->path, way, between, name);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    fprintf(stderr, "fs-scan: %s: %s\n", text, strerror(error));
}

static bool is_gone(int error) {
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

static void count_error(const struct tree *tree, const char *way, const char *name, int error,
                        struct tally *tally) {
    if (error == EACCES || error == EPERM)
        tally->denied++;
    else
        tally->failed++;
    tell(tree, way, name, error);
}

static int open_at(int folder, const char *way) {
    int fd;
    do
        fd = openat(folder, way, OPEN);
    while (fd < 0 && errno == EINTR);
    return fd;
}

// The kernel takes PATH_MAX bytes at once: a longer way is walked in parts. It is written to.
static int open_way(int root, char *way) {
    int at = root;
    while (strlen(way) >= PATH_MAX) {
        char *cut = way + PATH_MAX - 1;
        while (*cut != '/')
            cut--;
        *cut = '\0';
        const int next = open_at(at, way);
        *cut = '/';
        if (at != root)
            close(at);
        if (next < 0)
            return -1;
        at = next;
        way = cut + 1;
    }
    const int fd = open_at(at, *way ? way : ".");
    if (at != root) {
        const int error = errno;
        close(at);
        errno = error;
    }
    return fd;
}

// From 1677 to 2262; what is beyond is at the end.
static int64_t nanoseconds(struct statx_timestamp time) {
    int64_t whole;
    if (__builtin_mul_overflow(time.tv_sec, INT64_C(1000000000), &whole) ||
        __builtin_add_overflow(whole, time.tv_nsec, &whole))
        return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return whole;
}

// SplitMix64's last step: each bit of the result depends on all of the input.
static uint64_t mix(uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static uint64_t digest_of(const struct object *one, const char *name) {
    const uint64_t fields[] = {
        one->ino,
        (uint64_t)one->mode << 32 | one->nlink,
        one->size,
        one->blocks,
        (uint64_t)one->uid << 32 | one->gid,
        (uint64_t)one->mtime_ns,
        (uint64_t)one->ctime_ns,
        (uint64_t)one->btime_ns,
    };
    uint64_t digest = one->name_length;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        digest = mix(digest ^ fields[i]) + i;
    for (size_t at = 0; at < one->name_length; at += sizeof digest) {
        const size_t rest = one->name_length - at;
        uint64_t part = 0;
        memcpy(&part, name + at, rest < sizeof part ? rest : sizeof part);
        digest = mix(digest ^ part) + at;
    }
    return digest;
}

static void grow(struct found *found, size_t length) {
    if (found->count == found->room) {
        found->room = found->room ? 2 * found->room : FIRST_OBJECTS;
        found->objects = memory(found->objects, found->room * sizeof *found->objects);
    }
    while (found->names_size + length + 1 > found->names_room) {
        found->names_room = found->names_room ? 2 * found->names_room : FIRST_NAMES;
        found->names = memory(found->names, found->names_room);
    }
}

static void add(struct found *found, const char *name, const struct statx *what) {
    const size_t length = strlen(name);
    grow(found, length);
    const bool has_birth = what->stx_mask & STATX_BTIME;
    struct object *one = &found->objects[found->count++];
    *one = (struct object){
        .name_at = found->names_size,
        .name_length = length,
        .ino = what->stx_ino,
        .size = what->stx_size,
        .blocks = what->stx_blocks,
        .mtime_ns = nanoseconds(what->stx_mtime),
        .ctime_ns = nanoseconds(what->stx_ctime),
        .atime_ns = nanoseconds(what->stx_atime),
        .btime_ns = has_birth ? nanoseconds(what->stx_btime) : 0,
        .mode = what->stx_mode,
        .nlink = what->stx_nlink,
        .uid = what->stx_uid,
        .gid = what->stx_gid,
    };
    memcpy(found->names + found->names_size, name, length + 1);
    found->names_size += length + 1;
    found->digest += digest_of(one, name);
}

static bool is_other_mount(const struct tree *tree, const struct statx *what) {
    if (what->stx_attributes_mask & what->stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return true; // a part of this file system mounted here, too, would be counted twice
    return S_ISDIR(what->stx_mode) &&
           (what->stx_dev_major != tree->device_major || what->stx_dev_minor != tree->device_minor);
}

static void add_entry(const struct tree *tree, const char *way, int fd, const char *name,
                      struct found *found, struct tally *tally) {
    struct statx what;
    if (!statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, WANTED, &what)) {
        if (is_other_mount(tree, &what))
            tally->mounts++;
        else
            add(found, name, &what);
    } else if (!is_gone(errno)) {
        if (found->whole) // one message a folder, for all of it may be closed to us
            count_error(tree, way, name, errno, tally);
        found->whole = false;
    }
}

static bool is_dots(const char *name) {
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static void read_names(const struct tree *tree, const char *way, int fd, struct found *found,
                       struct tally *tally) {
    static _Thread_local char buffer[BUFFER_SIZE] __attribute__((aligned(8)));
    for (;;) {
        const long size = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno != ENOENT) { // a folder that is removed meanwhile
            count_error(tree, way, "", errno, tally);
            found->whole = false;
        }
        if (size <= 0)
            return;
        for (long at = 0; at < size;) {
            const struct dirent64 *entry = (const struct dirent64 *)(buffer + at);
            if (!is_dots(entry->d_name))
                add_entry(tree, way, fd, entry->d_name, found, tally);
            at += entry->d_reclen;
        }
    }
}

// Opened by its way, another may be there by now: a link's target, say.
static bool is_same(const struct tree *tree, const struct folder *folder, int fd) {
    struct statx what;
    return !statx(fd, "", AT_EMPTY_PATH, STATX_INO, &what) && what.stx_ino == folder->ino &&
           what.stx_dev_major == tree->device_major && what.stx_dev_minor == tree->device_minor;
}

// The folder that it was listed in is in its place, and has the name no more.
static bool is_removed(const struct tree *tree, const struct folder *folder) {
    if (!folder->parent)
        return false;
    char *way = way_to(folder->parent);
    const int fd = open_way(tree->root, way);
    free(way);
    struct statx what;
    const bool removed = fd >= 0 && is_same(tree, folder->parent, fd) &&
                         statx(fd, folder->name, AT_SYMLINK_NOFOLLOW, STATX_INO, &what) &&
                         errno == ENOENT;
    if (fd >= 0)
        close(fd);
    return removed;
}

struct found *folder_read(const struct tree *tree, struct folder *folder, struct tally *tally) {
    char *way = way_to(folder);
    struct found *found = found_new(folder);
    const int fd = open_way(tree->root, way);
    if (fd < 0 && !is_gone(errno)) {
        count_error(tree, way, "", errno, tally);
        found->whole = false;
    } else if (fd >= 0 && is_same(tree, folder, fd)) {
        read_names(tree, way, fd, found, tally);
    } else {
        found->whole = false; // whatever was in it may be elsewhere by now
        tally->moved += !is_removed(tree, folder);
    }
    if (fd >= 0)
        close(fd);
    free(way);
    return found;
}

struct found *folder_root(struct tree *tree, const char *path) {
    tree->path = path;
    tree->root = open(path, OPEN & ~O_NOFOLLOW);
    struct statx what;
    if (tree->root < 0 || statx(tree->root, "", AT_EMPTY_PATH, WANTED, &what))
        return NULL;
    tree->device_major = what.stx_dev_major;
    tree->device_minor = what.stx_dev_minor;
    struct found *found = found_new(NULL);
    add(found, "", &what);
    return found;
}
