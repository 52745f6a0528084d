// Open addressing, at most half full.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "inodes.h"

#include "memory.h"

enum { FIRST_ROOM = 64 };

// Where it is, or would be.
static size_t slot_of(const struct inodes *set, uint64_t ino) {
    size_t at = (size_t)((ino * 0x9e3779b97f4a7c15u) >> 32) & (set->room - 1);
    while (set->slots[at] && set->slots[at] != ino)
        at = (at + 1) & (set->room - 1);
    return at;
}

static void grow(struct inodes *set) {
    struct inodes grown = {.room = set->room ? 2 * set->room : FIRST_ROOM};
    grown.slots = memory(NULL, grown.room * sizeof *grown.slots);
    for (size_t i = 0; i < grown.room; i++)
        grown.slots[i] = 0;
    for (size_t i = 0; i < set->room; i++)
        if (set->slots[i])
            grown.slots[slot_of(&grown, set->slots[i])] = set->slots[i];
    free(set->slots);
    set->slots = grown.slots;
    set->room = grown.room;
}

bool inodes_add(struct inodes *set, uint64_t ino) {
    if (2 * set->count >= set->room)
        grow(set);
    const size_t at = slot_of(set, ino);
    if (set->slots[at])
        return false;
    set->slots[at] = ino;
    set->count++;
    return true;
}

void inodes_free(struct inodes *set) {
    free(set->slots);
}
