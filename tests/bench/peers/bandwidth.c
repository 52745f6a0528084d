// What the memory of this machine can do: streams of reads alone, and of stores alone.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// usage: bandwidth DOUBLES SECONDS    prints B/s of the best read and of the best store
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef double vector __attribute__((vector_size(64)));

static double read_all(const vector *from, size_t count) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (size_t i = 0; i < count; i += 4) {
        vector v = (from[i] + from[i + 1]) + (from[i + 2] + from[i + 3]);
        sum += v[0];
    }
    return sum;
}

static void store_all(double *to, size_t count, double value) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; i += 2) {
#ifdef __SSE2__
        _mm_stream_pd(to + i, _mm_set1_pd(value));
#else
        to[i] = to[i + 1] = value;
#endif
    }
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    size_t count = strtoull(argv[1], NULL, 10) / 32 * 32;
    const size_t huge = (size_t)2 << 20;
    size_t size = (count * sizeof(double) + huge - 1) / huge * huge;
    double *memory = aligned_alloc(huge, size);
    if (!memory)
        return 3;
    madvise(memory, size, MADV_HUGEPAGE); // else it is the pages' tables that limit
    double best_read_s = 1e30, best_store_s = 1e30, sum = 0;
    store_all(memory, count, 1);
    for (double end_s = omp_get_wtime() + atof(argv[2]); omp_get_wtime() < end_s;) {
        double begin_s = omp_get_wtime();
        store_all(memory, count, 1);
        double middle_s = omp_get_wtime();
        sum += read_all((const vector *)memory, count / 8);
        double end = omp_get_wtime();
        best_store_s = middle_s - begin_s < best_store_s ? middle_s - begin_s : best_store_s;
        best_read_s = end - middle_s < best_read_s ? end - middle_s : best_read_s;
    }
    double bytes = (double)count * sizeof *memory;
    printf("%.6e %.6e\n", bytes / best_read_s, bytes / best_store_s);
    free(memory);
    return sum > 0 ? 0 : 1;
}
