// Where the program's threads may run. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_PINNING_H
#define BENCHKIT_PINNING_H

// From near to far, so that the greatest of several holds for all of them.
enum bk_pinning {
    BK_PINNING_UNKNOWN,
    BK_PINNED_TO_CORES, // each thread to one core, whichever of its hardware threads
    BK_PINNED_TO_NODES, // each to one of several NUMA nodes
    BK_FLOATING,
};

// Of the loosest of so many threads.
enum bk_pinning bk_find_pinning(unsigned threads);

#endif
