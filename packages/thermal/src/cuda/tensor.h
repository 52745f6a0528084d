// What the products need on the device. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef THERMAL_TENSOR_H
#define THERMAL_TENSOR_H

#include <stdint.h>

// A block's results, kept in the GPU's memory between launches.
struct tensor_block {
    uint64_t tiles;              // that were right
    unsigned long long residual; // bits that were wrong
};

struct tensor_state {
    double *a, *b, *c; // c: the product, as it was first
    struct tensor_block *blocks;
    uint64_t done; // tiles, of each block
};

#endif
