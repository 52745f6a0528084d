// OpenBLAS' dgemm, called directly: what mod2am's variants are measured against.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// usage: dgemm N SECONDS    prints the F/s of the best repetition
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    int n = atoi(argv[1]);
    size_t count = (size_t)n * (size_t)n;
    // In huge pages, as ours.
    const size_t page = (size_t)2 << 20, bytes = (3 * count * sizeof(double) / page + 1) * page;
    double *matrices = aligned_alloc(page, bytes);
    if (!matrices)
        return 3;
    (void)madvise(matrices, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < 3 * count; i++)
        matrices[i] = (double)(i % 17) / 17;
    double best_s = 1e30;
    for (double end_s = now_s() + atof(argv[2]); now_s() < end_s;) {
        double begin_s = now_s();
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, matrices, n,
                    matrices + count, n, 0, matrices + 2 * count, n);
        double took_s = now_s() - begin_s;
        best_s = took_s < best_s ? took_s : best_s;
    }
    printf("%.6e\n", 2.0 * n * n * n / best_s);
    free(matrices);
    return 0;
}
