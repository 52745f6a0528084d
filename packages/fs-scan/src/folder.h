// A folder that is to be read, and what was found in it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef FOLDER_H
#define FOLDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

// Where a folder is, by the names on the way to it: however deep, no descriptor is held for it.
struct folder {
    struct folder *parent; // NULL: the root
    atomic_uint holders;   // itself to be read, and its folders
    uint64_t ino;
    char name[];
};

struct object {
    size_t name_at; // in the found's names
    size_t name_length;
    uint64_t ino, size, blocks;
    int64_t mtime_ns, ctime_ns, atime_ns, btime_ns; // btime_ns 0: its file system knows none
    uint32_t mode, nlink, uid, gid;
};

// All of one folder.
struct found {
    struct found *next;    // in a queue
    struct folder *folder; // held; NULL: what is in none, the root itself
    bool whole;            // false: something could not be read
    uint64_t digest;       // of all objects, in any order; without atime_ns: reading is no change
    size_t count, room;
    struct object *objects;
    size_t names_size, names_room;
    char *names;
};

// What went on, summed over threads.
struct tally {
    uint64_t denied; // folders that we may not read
    uint64_t failed; // and those that could not be read for another reason
    uint64_t moved;  // and those that were elsewhere, or below what was, when their turn came
    uint64_t mounts; // others' file systems, left out
};

struct tree {
    int root; // its descriptor
    uint32_t device_major, device_minor;
    const char *path; // for messages
};

// Makes a folder; parent is held by it.
struct folder *folder_new(struct folder *parent, const char *name, uint64_t ino);

// Lets go of it, and of those above that nobody holds.
void folder_release(struct folder *folder);

// Reads all of the folder; one that is not in its place is not whole, and without objects.
struct found *folder_read(const struct tree *tree, struct folder *folder, struct tally *tally);

// The root alone, as an object without a name; NULL: errno says why.
struct found *folder_root(struct tree *tree, const char *path);

void found_free(struct found *found);

#endif
