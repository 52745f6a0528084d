// Asynchronous copies into shared memory, for the emulation on a CPU: they are made when they are
// waited for, and until then nothing may be read where they go. SPDX-License-Identifier: Apache-2.0
// OR MIT
#ifndef CUDA_ON_CPU_PIPELINE_H
#define CUDA_ON_CPU_PIPELINE_H

#include <stddef.h>

// Begins a copy of 4, 8 or 16 bytes, which must be aligned so.
void __pipeline_memcpy_async(void *to, const void *from, size_t bytes);

// Ends a group of the thread's copies.
void __pipeline_commit();

// Waits for all groups of the thread but the last `prior`.
void __pipeline_wait_prior(size_t prior);

#endif
