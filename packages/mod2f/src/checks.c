// Numbers to transform, and the independent checks of a transform.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

#include "bk_random.h"

#include <float.h>
#include <math.h>

bool mod2f_all_ranks(const struct mod2f_variant *variant, bool here) {
    return variant->sum == NULL ? here : variant->sum(!here) == 0;
}

bool mod2f_allocate(struct mod2f_work *work, const struct mod2f_variant *variant, size_t n) {
    work->n = n;
    work->given = work->made = (struct mod2f_share){0, n};
    const size_t room = variant->share == NULL ? n : variant->share(work);
    work->in = bk_allocate_spread(2 * room * sizeof(double), work->threads);
    work->out = bk_allocate_spread(2 * room * sizeof(double), work->threads);
    return mod2f_all_ranks(variant, work->in != NULL && work->out != NULL);
}

void mod2f_free(struct mod2f_work *work) {
    bk_release(work->in);
    bk_release(work->out);
}

// Complex, both parts uniform in [-1, 1).
static void random_number(uint64_t seed, uint64_t index, double number[2]) {
    for (unsigned part = 0; part < 2; part++)
        number[part] = bk_random_uniform(bk_random_bits(seed, 2 * index + part));
}

void mod2f_fill(const struct mod2f_work *work) {
    for (size_t i = 0; i < work->given.count; i++)
        random_number(work->n, work->given.first + i, work->in + 2 * i);
    for (size_t i = 0; i < 2 * work->made.count; i++)
        work->out[i] = (double)NAN;
}

static unsigned logarithm(size_t n) {
    unsigned bits = 0;
    while (n >> (bits + 1) != 0)
        bits++;
    return bits;
}

// What rounding may make of one number of magnitude 1. A transform errs by less than 3.4 epsilon
// log2 n in the Euclidean norm (Higham, Accuracy and Stability, 24.1, with exact roots); a single
// number stays far below twice epsilon log2 n of the numbers that it is summed from.
static double tolerance(size_t n) {
    return 2 * DBL_EPSILON * logarithm(n);
}

// One level of the inverse: pairs (x[j], x[j + n/2]) to their sum, and their difference times
// exp(2 pi i j / n).
static void inverse_level(double *x, size_t n) {
    enum { NEAR = 256 };
    double near[2 * NEAR], far[2];
    size_t count = n / 2 < NEAR ? n / 2 : NEAR;
    for (size_t j = 0; j < count; j++)
        mod2f_root(j, n, near + 2 * j);
    double *upper = x + n;
    for (size_t j = 0; j < n / 2; j++) {
        if (j % NEAR == 0)
            mod2f_root(j, n, far);
        const double *w = near + 2 * (j % NEAR);
        double c = far[0] * w[0] - far[1] * w[1], s = far[0] * w[1] + far[1] * w[0];
        double re = x[2 * j] - upper[2 * j], im = x[2 * j + 1] - upper[2 * j + 1];
        x[2 * j] += upper[2 * j];
        x[2 * j + 1] += upper[2 * j + 1];
        upper[2 * j] = re * c + im * s;
        upper[2 * j + 1] = im * c - re * s;
    }
}

// n times the inverse transform, in place; number j ends at the place that has j's bits reversed.
static void inverse(double *x, size_t n) {
    if (n == 1)
        return;
    inverse_level(x, n);
    inverse(x, n / 2);
    inverse(x + n, n / 2);
}

static size_t reversed(size_t j, unsigned bits) {
    size_t result = 0;
    for (unsigned i = 0; i < bits; i++)
        result |= (j >> i & 1) << (bits - 1 - i);
    return result;
}

static struct bk_check verify_all(const struct mod2f_work *work) {
    struct bk_check check = BK_CHECK_START;
    const size_t n = work->n;
    unsigned bits = logarithm(n);
    inverse(work->out, n);
    for (size_t j = 0; j < n; j++) {
        const double *got = work->out + 2 * reversed(j, bits);
        double want[2];
        random_number(n, j, want);
        for (size_t part = 0; part < 2; part++)
            bk_check_value(&check, j, got[part] / (double)n, want[part], tolerance(n));
    }
    return check;
}

// A sum of complex numbers, and what it has no digits for.
struct sum {
    double value[2], lost[2];
};

static void multiply(const double *x, const double *y, double product[2]) {
    product[0] = x[0] * y[0] - x[1] * y[1];
    product[1] = x[0] * y[1] + x[1] * y[0];
}

static void add_product(struct sum *sum, const double *x, const double *y) {
    double product[2];
    multiply(x, y, product);
    for (size_t part = 0; part < 2; part++)
        bk_add(&sum->value[part], &sum->lost[part], product[part]);
}

static void end_sum(struct sum *sum, double (*over_ranks)(double value)) {
    for (size_t part = 0; part < 2; part++)
        sum->value[part] = over_ranks(sum->value[part] + sum->lost[part]);
}

// The transform's matrix is symmetric: with random g and its transform G, the sum of g[k] X[k] is
// that of x[k] G[k]. G is made by the variant, of g moved by some places, so that its errors are
// moved, too, and can't be the same in both sums; each number weighs as much as any other, also on
// its way. What both sums have too much or too little of shows in that of X[k], which is n x[0].
static struct bk_check verify_shares(struct mod2f_work *work, const struct mod2f_variant *variant) {
    const uint64_t n = work->n, moved = n / 3, seed = n + 1;
    const double one[2] = {1, 0};
    struct sum x_all = {0}, x_g = {0}, g_x = {0};
    double x[2], g[2], root[2];
    for (size_t i = 0; i < work->made.count; i++) {
        random_number(seed, work->made.first + i, g);
        add_product(&x_all, work->out + 2 * i, one);
        add_product(&x_g, work->out + 2 * i, g);
    }
    for (size_t i = 0; i < work->given.count; i++)
        random_number(seed, (work->given.first + i + n - moved) % n, work->in + 2 * i);
    variant->is.kernel(work, 1);
    for (size_t i = 0; i < work->made.count; i++) {
        const uint64_t k = work->made.first + i;
        random_number(n, k, x);
        mod2f_root(-(moved * k), n, root);
        multiply(x, root, g);
        add_product(&g_x, work->out + 2 * i, g);
    }
    struct sum *const sums[] = {&x_all, &x_g, &g_x};
    for (size_t i = 0; i < BK_COUNT(sums); i++)
        end_sum(sums[i], variant->sum);
    random_number(n, 0, x);
    struct bk_check check = BK_CHECK_START;
    for (size_t part = 0; part < 2; part++) {
        bk_check_value(&check, 0, x_all.value[part] / (double)n, x[part], tolerance(n));
        bk_check_value(&check, 1, x_g.value[part] / (double)n, g_x.value[part] / (double)n,
                       tolerance(n));
    }
    return check;
}

struct bk_check mod2f_verify(struct mod2f_work *work, const struct mod2f_variant *variant) {
    return variant->sum == NULL ? verify_all(work) : verify_shares(work, variant);
}

// A known transform: what goes in, what must come out, and what it is summed from. Of numbers that
// have nothing to do with each other that is the size of an average result, as are their errors. A
// tone's partial sums grow up to n, also in those results where they cancel out: which, and so how
// far they grew, is the plan's affair, and FFTW's goes by timing.
struct known {
    size_t n;
    size_t place; // of the impulse, or the tone's frequency
    void (*give)(const struct known *known, size_t j, double given[2]);
    void (*want)(const struct known *known, size_t k, double want[2]);
    double magnitude;
};

static void give_impulse(const struct known *known, size_t j, double given[2]) {
    given[0] = j == known->place;
    given[1] = 0;
}

static void want_impulse(const struct known *known, size_t k, double want[2]) {
    mod2f_root(known->place * k, known->n, want);
}

static void give_tone(const struct known *known, size_t j, double given[2]) {
    mod2f_root(known->place * j, known->n, given);
    given[1] = -given[1];
}

static void want_tone(const struct known *known, size_t k, double want[2]) {
    want[0] = k == known->place ? (double)known->n : 0;
    want[1] = 0;
}

static void give_random(const struct known *known, size_t j, double given[2]) {
    random_number(known->place, j, given);
}

// The sum that defines the transform.
static void want_sum(const struct known *known, size_t k, double want[2]) {
    struct sum sum = {0};
    for (size_t j = 0; j < known->n; j++) {
        double x[2], w[2];
        known->give(known, j, x);
        mod2f_root(j * k, known->n, w);
        add_product(&sum, x, w);
    }
    for (size_t part = 0; part < 2; part++)
        want[part] = sum.value[part] + sum.lost[part];
}

static void compare(struct bk_check *check, const struct known *known,
                    const struct mod2f_work *work) {
    for (size_t i = 0; i < work->made.count; i++) {
        const size_t k = work->made.first + i;
        double want[2];
        known->want(known, k, want);
        for (size_t part = 0; part < 2; part++)
            bk_check_value(check, k, work->out[2 * i + part], want[part],
                           tolerance(known->n) * known->magnitude);
    }
}

// False when memory is out.
static bool run_known(const struct mod2f_variant *variant, const struct known *known,
                      unsigned threads, bool fixed, struct bk_check *check) {
    struct mod2f_work work = {.threads = threads, .fixed = fixed};
    bool ok = mod2f_allocate(&work, variant, known->n) && variant->plan(&work);
    if (ok) {
        for (size_t i = 0; i < work.given.count; i++)
            known->give(known, work.given.first + i, work.in + 2 * i);
        if (variant->give != NULL)
            variant->give(&work);
        variant->is.kernel(&work, 1);
        if (variant->collect != NULL)
            variant->collect(&work);
        compare(check, known, &work);
    }
    variant->forget(&work);
    mod2f_free(&work);
    return ok;
}

struct bk_check mod2f_verify_known(const struct mod2f_variant *variant, unsigned threads,
                                   bool fixed, bool *enough_memory) {
    static const struct known cases[] = {
        {64, 11, give_impulse, want_impulse, 1}, {4096, 1531, give_impulse, want_impulse, 1},
        {64, 23, give_tone, want_tone, 64},      {4096, 3001, give_tone, want_tone, 4096},
        {64, 1, give_random, want_sum, 8},       {256, 2, give_random, want_sum, 16},
    };
    struct bk_check check = BK_CHECK_START;
    *enough_memory = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && *enough_memory; i++)
        *enough_memory = run_known(variant, &cases[i], threads, fixed, &check);
    if (variant->sum != NULL) // each rank saw its share
        check.compared = (uint64_t)variant->sum((double)check.compared);
    return check;
}
