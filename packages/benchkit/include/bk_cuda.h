/* bk_cuda: the GPU that benchmarks take. Header only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef BK_CUDA_H
#define BK_CUDA_H

#include "benchkit.h"
#include "bk_gpu.h"

/* The number of this process's GPU, of those that it sees: the ranks of a node take them in turn.
 * -1 when there is none. */
static inline int bk_cuda_number(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < 1)
        return -1;
    return (int)(bk_rank_on_node() % (unsigned)count);
}

/* Its name; NULL when there is none. Makes no context: a GPU rests while a CPU is measured. */
static inline const char *bk_cuda_device(void) {
    static struct cudaDeviceProp properties;
    const int number = bk_cuda_number();
    if (number < 0)
        return NULL;
    if (properties.name[0] == '\0' && cudaGetDeviceProperties(&properties, number) != cudaSuccess)
        return NULL;
    return properties.name;
}

/* Makes it the one that the calling thread uses. */
static inline void bk_cuda_take(void) {
    const int number = bk_cuda_number();
    if (number >= 0)
        (void)cudaSetDevice(number); /* what is wrong with it, its first use tells */
}

/* Bytes of its memory that are free; 0 when it does not say. */
static inline double bk_cuda_memory(void) {
    size_t available = 0, all = 0;
    bk_cuda_take();
    return cudaMemGetInfo(&available, &all) == cudaSuccess ? (double)available : 0;
}

#endif
