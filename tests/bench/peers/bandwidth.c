// The memory's limit for a triad's traffic, two vectors read and one written, beside jm-stream's
// own triad: both in turns of milliseconds in one process, so that a memory whose speed wanders, a
// virtual machine's or a shared one's, wanders for all alike.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// usage: bandwidth DOUBLES SECONDS    in each vector; of all turns
// prints  RATIO LOW HIGH OURS LIMIT LOOP: jm-stream's speed as a part of the fastest loop's, lowest
// and highest of five spells of time, both in B/s, and that loop's name
//
// A loop's speed is that of its 99th percentile turn: slower ones met something else that runs
// here. Each turn takes the next eighth of the vectors, so that none finds them in a cache.
#include "stream.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef double line __attribute__((vector_size(64))); // a cache line

enum { LINE = 8, SEGMENTS = 8, SPELLS = 5, TURNS = 4096 };

static inline void prefetch(const double *at) {
    __builtin_prefetch(at, 0, 0);
}

// Past the caches, where the processor can.
static inline void store(double *to, line values) {
#if defined(__AVX512F__)
    _mm512_stream_pd(to, (__m512d)values);
#elif defined(__SSE2__)
    for (int i = 0; i < LINE; i += 2)
        _mm_stream_pd(to + i, _mm_set_pd(values[i + 1], values[i]));
#else
    *(line *)to = values;
#endif
}

// a = b + c by `parts` streams of each vector at once, each reading `ahead` doubles ahead.
static inline __attribute__((always_inline)) void
traffic(double *a, const double *b, const double *c, size_t n, size_t parts, size_t ahead) {
    const size_t length = n / (parts * LINE) * LINE;
    for (size_t from = 0; from < length; from += LINE)
#pragma GCC unroll 8
        for (size_t part = 0; part < parts; part++) {
            size_t i = part * length + from;
            if (ahead > 0)
                prefetch(b + i + ahead), prefetch(c + i + ahead);
            store(a + i, *(const line *)(b + i) + *(const line *)(c + i));
        }
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

#define TRAFFIC(name, parts, ahead)                                                                \
    static void name(double *restrict a, double *restrict b, double *restrict c, size_t n) {       \
        traffic(a, b, c, n, parts, ahead);                                                         \
    }
TRAFFIC(one, 1, 0)
TRAFFIC(one_ahead, 1, 128)
TRAFFIC(two, 2, 0)
TRAFFIC(two_ahead, 2, 128)
TRAFFIC(three, 3, 0)
TRAFFIC(four, 4, 0)

// Stores that read the line first: what a processor without others has.
static void cached(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + c[i];
}

static struct {
    const char *name;
    stream_loop *run;
} loops[] = {
    {"jm-stream", NULL}, // its two kinds of loops first
    {"jm-stream", NULL},  {"stores through the caches", cached},
    {"1 stream", one},    {"1 stream, prefetched", one_ahead},
    {"2 streams", two},   {"2 streams, prefetched", two_ahead},
    {"3 streams", three}, {"4 streams", four},
};
enum { OURS = 2, LOOPS = sizeof loops / sizeof loops[0] };

static double *vectors[3];
static size_t segment; // doubles

static double *new_vector(size_t doubles) {
    const size_t huge = (size_t)2 << 20;
    size_t size =
        (doubles * sizeof(double) + huge - 1) / huge * huge + huge; // prefetches overshoot
    double *memory = aligned_alloc(huge, size);
    if (memory)
        madvise(memory, size, MADV_HUGEPAGE); // else it is the pages' tables that limit
    return memory;
}

// One loop over one segment by all threads, or the first touch; B/s.
static double turn(stream_loop *run, size_t number) {
    double begin_s = omp_get_wtime();
#pragma omp parallel
    {
        size_t threads = (size_t)omp_get_num_threads(), length = segment / threads / LINE * LINE;
        size_t from = number % SEGMENTS * segment + (size_t)omp_get_thread_num() * length;
        run(vectors[0] + from, vectors[1] + from, vectors[2] + from, length);
    }
    return 3 * sizeof(double) * (double)segment / (omp_get_wtime() - begin_s);
}

static void touch(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = c[i] = 1;
}

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// All loops in turns for so long; the speed of each.
static void spell(double seconds, double speed[LOOPS]) {
    static double rates[LOOPS][TURNS];
    size_t round = 0, number = 0;
    for (double end_s = omp_get_wtime() + seconds; omp_get_wtime() < end_s && round < TURNS;
         round++)
        for (size_t i = 0; i < LOOPS; i++) {
            size_t loop = (i + round) % LOOPS;
            rates[loop][round] = turn(loops[loop].run, number++);
        }
    for (size_t loop = 0; loop < LOOPS; loop++) {
        qsort(rates[loop], round, sizeof(double), by_value);
        speed[loop] = rates[loop][round * 99 / 100];
    }
}

static size_t fastest(const double speed[LOOPS], size_t from, size_t to) {
    for (size_t loop = from; loop < to; loop++)
        from = speed[loop] > speed[from] ? loop : from;
    return from;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    segment = strtoull(argv[1], NULL, 10) / SEGMENTS;
    for (int i = 0; i < 3; i++)
        if ((vectors[i] = new_vector(segment * SEGMENTS)) == NULL)
            return 3;
    for (size_t number = 0; number < SEGMENTS; number++)
        turn(touch, number);
    stream_loop *const *streaming = stream_streaming_loops();
    loops[0].run = stream_plain_loops[STREAM_TRIAD];
    loops[1].run = streaming ? streaming[STREAM_TRIAD] : loops[0].run;

    double speed[SPELLS][LOOPS], all[LOOPS] = {0}, low = 1e30, high = 0;
    for (int i = 0; i < SPELLS; i++) {
        spell(atof(argv[2]) / SPELLS, speed[i]);
        for (size_t loop = 0; loop < LOOPS; loop++)
            all[loop] += speed[i][loop] / SPELLS;
    }
    const size_t ours = fastest(all, 0, OURS), limit = fastest(all, OURS, LOOPS);
    for (int i = 0; i < SPELLS; i++) {
        double ratio = speed[i][ours] / speed[i][limit];
        low = ratio < low ? ratio : low;
        high = ratio > high ? ratio : high;
    }
    printf("%.4f %.4f %.4f %.4e %.4e %s\n", all[ours] / all[limit], low, high, all[ours],
           all[limit], loops[limit].name);
    return 0;
}
