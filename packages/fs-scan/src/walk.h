// Many threads read folders; one, the caller's, takes what they found.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WALK_H
#define WALK_H

#include "folder.h"

struct walk;

// Begins at the tree's root. NULL: no thread could be made, errno says why.
struct walk *walk_begin(const struct tree *tree, uint64_t root_ino, unsigned threads);

// What was found in another folder, to be freed; NULL: that was all.
struct found *walk_next(struct walk *walk);

// Ends it, also before all is read.
struct tally walk_end(struct walk *walk);

#endif
