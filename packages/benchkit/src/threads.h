// The program's threads, as the rest of benchkit sees them; without OpenMP there is the caller
// alone. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_THREADS_H
#define BENCHKIT_THREADS_H

#include "benchkit.h"

// Those of a program that has OpenMP; copied.
void bk_set_threads(const struct bk_threads *now);

// Has each of so many threads do its part of `work`; returns when all have.
void bk_run_threads(void (*work)(void *context, unsigned thread, unsigned threads), void *context,
                    unsigned threads);

#endif
