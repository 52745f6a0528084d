// A set of inode numbers.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef INODES_H
#define INODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inodes {
    uint64_t *slots; // 0: free; no file system has an inode 0
    size_t count, room;
};

// False: it was there.
bool inodes_add(struct inodes *set, uint64_t ino);
void inodes_free(struct inodes *set);

#endif
