/* bk_cuda: the GPU that benchmarks take. Header only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef BK_CUDA_H
#define BK_CUDA_H

#include <cuda_runtime.h>
#include <stdbool.h>

/* The name of the first GPU; NULL when there is none. */
static inline const char *bk_cuda_device(void) {
    static struct cudaDeviceProp properties;
    int count = 0;
    if (properties.name[0] != '\0')
        return properties.name;
    bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0 &&
                 cudaGetDeviceProperties(&properties, 0) == cudaSuccess;
    return found ? properties.name : NULL;
}

#endif
