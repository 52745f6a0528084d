// STREAM's kernels: an element a work item; groups end beyond n.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define SCALAR 3.0

#define KERNEL(name, assignment)                                                                   \
    __kernel void name(__global double *restrict a, __global double *restrict b,                   \
                       __global double *restrict c, ulong n) {                                     \
        size_t i = get_global_id(0);                                                               \
        if (i < n)                                                                                 \
            assignment;                                                                            \
    }

KERNEL(stream_copy, c[i] = a[i])
KERNEL(stream_scale, b[i] = SCALAR * c[i])
KERNEL(stream_sum, c[i] = a[i] + b[i])
KERNEL(stream_triad, a[i] = b[i] + SCALAR * c[i])
