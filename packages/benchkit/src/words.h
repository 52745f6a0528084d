// Words that each node of an MPI job tells, as one line for all.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_WORDS_H
#define BENCHKIT_WORDS_H

enum { BK_WORDS_MAX = 2048 };

// `own`: this rank's, apart by spaces, of which those of each node's first rank count. *all: what
// all nodes tell alike, else each word once, with `(2/3)` behind one that only 2 of 3 nodes tell;
// empty where they are too many, for a part would pass for all. With MPI all ranks call it.
void bk_gather_words(const char *own, char all[BK_WORDS_MAX]);

#endif
