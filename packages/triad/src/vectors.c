// The four vectors: where they lie, what is in them, and the check of the result.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

#include <math.h>

// Bytes from the beginning of one vector to that of the next.
static double stride(enum triad_placement placement, double bytes, double alignment,
                     double offset) {
    if (placement == TRIAD_PACKED)
        return bytes;
    double aligned = ceil(bytes / alignment) * alignment;
    return placement == TRIAD_SHIFTED ? aligned + offset : aligned;
}

double triad_bytes(enum triad_placement placement, uint64_t n, size_t alignment, size_t offset) {
    double bytes = (double)n * sizeof(double);
    return 3 * stride(placement, bytes, (double)alignment, (double)offset) + bytes +
           (double)alignment;
}

bool triad_allocate(struct triad_vectors *vectors, enum triad_placement placement, size_t n,
                    size_t alignment, size_t offset, unsigned threads) {
    double bytes = triad_bytes(placement, n, alignment, offset);
    *vectors = (struct triad_vectors){.n = n};
    if (bytes >= (double)(SIZE_MAX / 2))
        return false;
    vectors->block = bk_allocate((size_t)bytes);
    if (vectors->block == NULL)
        return false;
    uintptr_t start = (uintptr_t)vectors->block;
    char *first = (char *)vectors->block + (alignment - start % alignment) % alignment;
    size_t step =
        (size_t)stride(placement, (double)n * sizeof(double), (double)alignment, (double)offset);
    double **const all[] = {&vectors->a, &vectors->b, &vectors->c, &vectors->d};
    for (size_t i = 0; i < 4; i++) {
        *all[i] = (double *)(void *)(first + i * step);
        bk_spread(*all[i], n * sizeof(double), threads);
    }
    return true;
}

void triad_free(struct triad_vectors *vectors) {
    bk_release(vectors->block);
}

// Small whole numbers: b + c * d is exact, fused or not. The periods are prime, so that no power of
// two's stride repeats the values.
static double value_b(size_t i) {
    return (double)(i % 1021);
}

static double value_c(size_t i) {
    return (double)(i % 251) - 125;
}

static double value_d(size_t i) {
    return (double)(i % 127) + 1;
}

void triad_fill(const struct triad_vectors *vectors) {
    for (size_t i = 0; i < vectors->n; i++) {
        vectors->a[i] = (double)NAN;
        vectors->b[i] = value_b(i);
        vectors->c[i] = value_c(i);
        vectors->d[i] = value_d(i);
    }
}

struct bk_check triad_verify(const struct triad_vectors *vectors) {
    struct bk_check check = BK_CHECK_START;
    for (size_t i = 0; i < vectors->n; i++)
        bk_check_value(&check, i, vectors->a[i], value_b(i) + value_c(i) * value_d(i), 0);
    return check;
}
