// The transform on a DSP's cores: radix 4 and 2 on each, over the split n = n1 n2 that EuroBen's
// code and the seeds' port have (Agarwal, Gustavson, Zubair, Supercomputing 1994).
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Each core has blocks of LINE columns, then blocks of LINE rows: what it writes fills whole lines
// of the caches, which do not know of one another. Operations and their order are the same on every
// target.
#include "mod2f.h"

#include <stdlib.h>

// Complex numbers in a line of the caches.
enum { LINE = BK_LINE / 2 };
// The longest column or row: what the core works in fits its fast memory. n is its square at most.
enum { LONGEST = 4096 };

static BK_FAST double buffers[2][2 * LONGEST];

struct plan {
    size_t n, n1, n2;
    double *middle; // of column block b: its rows k1, LINE numbers each
    double *roots;  // exp(-2 pi i k / n2)
    double *fine;   // exp(-2 pi i k / n), k below n1: products of both are all roots of n
    unsigned n1_bits;
};

struct number {
    double re, im;
};

static struct number load(const double *from) {
    return (struct number){from[0], from[1]};
}

static void store(double *to, struct number x) {
    to[0] = x.re;
    to[1] = x.im;
}

static struct number sum(struct number a, struct number b) {
    return (struct number){a.re + b.re, a.im + b.im};
}

static struct number difference(struct number a, struct number b) {
    return (struct number){a.re - b.re, a.im - b.im};
}

static struct number product(struct number a, struct number b) {
    return (struct number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// One radix-4 pass of a Stockham transform: groups of s butterflies that share their roots.
static void pass_4(const double *x, double *y, size_t n, size_t s, const double *roots,
                   size_t root_step) {
    const size_t m = n / (4 * s), quarter = 2 * s * m;
    for (size_t p = 0; p < m; p++) {
        const struct number w1 = load(roots + 2 * p * s * root_step);
        const struct number w2 = load(roots + 4 * p * s * root_step);
        const struct number w3 = load(roots + 6 * p * s * root_step);
        for (size_t q = 0; q < s; q++) {
            const double *from = x + 2 * (q + s * p);
            double *to = y + 2 * (q + 4 * s * p);
            const struct number a = load(from), b = load(from + quarter),
                                c = load(from + 2 * quarter), d = load(from + 3 * quarter);
            const struct number s0 = sum(a, c), d0 = difference(a, c), s1 = sum(b, d),
                                d1 = difference(b, d), turned = {d1.im, -d1.re};
            store(to, sum(s0, s1));
            store(to + 2 * s, product(sum(d0, turned), w1));
            store(to + 4 * s, product(difference(s0, s1), w2));
            store(to + 6 * s, product(difference(d0, turned), w3));
        }
    }
}

// The last pass of an odd power of two.
static void pass_2(const double *x, double *y, size_t n) {
    for (size_t q = 0; q < n; q += 2) {
        const struct number a = load(x + q), b = load(x + n + q);
        store(y + q, sum(a, b));
        store(y + n + q, difference(a, b));
    }
}

// Transforms the n numbers in buffers[0]; returns the buffer with the result.
static const double *transform_line(const struct plan *plan, size_t n) {
    const size_t root_step = plan->n2 / n;
    unsigned at = 0;
    size_t s = 1;
    for (; 4 * s <= n; s *= 4, at ^= 1)
        pass_4(buffers[at], buffers[at ^ 1], n, s, plan->roots, root_step);
    if (s < n) {
        pass_2(buffers[at], buffers[at ^ 1], n);
        at ^= 1;
    }
    return buffers[at];
}

// exp(-2 pi i t / n) for t = n1 a + b: a root of n2 and a fine one.
static struct number root_of(const struct plan *plan, size_t t) {
    return product(load(plan->roots + 2 * (t >> plan->n1_bits)),
                   load(plan->fine + 2 * (t & (plan->n1 - 1))));
}

// Column j of the n1 x n2 matrix `in`, transformed and turned by the roots between the halves.
static void transform_column(const struct plan *plan, const double *in, size_t j) {
    double *to = plan->middle + 2 * (j / LINE * LINE * plan->n1 + j % LINE);
    for (size_t i = 0; i < plan->n1; i++)
        store(buffers[0] + 2 * i, load(in + 2 * (i * plan->n2 + j)));
    const double *result = transform_line(plan, plan->n1);
    for (size_t k = 0; k < plan->n1; k++)
        store(to + 2 * LINE * k, product(load(result + 2 * k), root_of(plan, j * k)));
}

// Row k, transformed, to every n1-th place of `out`.
static void transform_row(const struct plan *plan, double *out, size_t k) {
    for (size_t j = 0; j < plan->n2; j++)
        store(buffers[0] + 2 * j,
              load(plan->middle + 2 * (j / LINE * LINE * plan->n1 + k * LINE + j % LINE)));
    const double *result = transform_line(plan, plan->n2);
    for (size_t i = 0; i < plan->n2; i++)
        store(out + 2 * (i * plan->n1 + k), load(result + 2 * i));
}

static void transform_columns(void *context, unsigned core, unsigned cores) {
    const struct mod2f_work *work = context;
    const struct plan *plan = work->plan;
    for (size_t block = core; block < plan->n2 / LINE; block += cores)
        for (size_t j = block * LINE; j < (block + 1) * LINE; j++)
            transform_column(plan, work->in, j);
}

static void transform_rows(void *context, unsigned core, unsigned cores) {
    const struct mod2f_work *work = context;
    const struct plan *plan = work->plan;
    for (size_t block = core; block < plan->n1 / LINE; block += cores)
        for (size_t k = block * LINE; k < (block + 1) * LINE; k++)
            transform_row(plan, work->out, k);
}

static void transform(void *context, uint64_t iterations) {
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        bk_cores(transform_columns, context, bk_core_count());
        bk_cores(transform_rows, context, bk_core_count());
    }
}

// exp(-2 pi i k / n) for k below `count`; NULL when memory is out.
static double *make_roots(size_t count, size_t n) {
    double *roots = bk_allocate(2 * count * sizeof(double));
    for (size_t k = 0; roots != NULL && k < count; k++)
        mod2f_root(k, n, roots + 2 * k);
    return roots;
}

static bool plan(struct mod2f_work *work) {
    struct plan *plan = work->plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return false;
    unsigned bits = 0;
    while (work->n >> (bits + 1) != 0)
        bits++;
    plan->n = work->n;
    plan->n1 = (size_t)1 << bits / 2;
    plan->n2 = plan->n / plan->n1; // n1 or twice that
    plan->n1_bits = bits / 2;
    plan->middle = bk_allocate(2 * plan->n * sizeof(double));
    plan->roots = make_roots(plan->n2, plan->n2);
    plan->fine = make_roots(plan->n1, plan->n);
    return plan->middle != NULL && plan->roots != NULL && plan->fine != NULL;
}

static void forget(struct mod2f_work *work) {
    struct plan *plan = work->plan;
    if (plan != NULL) {
        bk_release(plan->middle);
        bk_release(plan->roots);
        bk_release(plan->fine);
    }
    free(plan);
    work->plan = NULL;
}

const struct mod2f_variant mod2f_c66x = {
    .is = {.name = "c66x", .kernel = transform},
    .most = (size_t)LONGEST * LONGEST,
    .plan = plan,
    .forget = forget,
};
