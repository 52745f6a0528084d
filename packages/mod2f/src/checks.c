// Numbers to transform, and the independent checks of a transform.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool mod2f_allocate(struct mod2f_work *work, size_t n) {
    work->n = n;
    if (bk_rank() != 0)
        return true;
    work->in = bk_allocate(2 * n * sizeof(double));
    work->out = bk_allocate(2 * n * sizeof(double));
    return work->in != NULL && work->out != NULL;
}

void mod2f_free(struct mod2f_work *work) {
    bk_release(work->in);
    bk_release(work->out);
}

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): uniform in [-1, 1).
static double random_value(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

void mod2f_fill(const struct mod2f_work *work) {
    if (work->in == NULL)
        return;
    uint64_t state = work->n;
    for (size_t i = 0; i < 2 * work->n; i++) {
        work->in[i] = random_value(&state);
        work->out[i] = (double)NAN;
    }
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

struct bk_check mod2f_verify(const struct mod2f_work *work) {
    struct bk_check check = BK_CHECK_START;
    if (work->out == NULL)
        return check;
    const size_t n = work->n;
    unsigned bits = logarithm(n);
    inverse(work->out, n);
    for (size_t j = 0; j < n; j++) {
        const double *got = work->out + 2 * reversed(j, bits);
        for (size_t part = 0; part < 2; part++)
            bk_check_value(&check, j, got[part] / (double)n, work->in[2 * j + part], tolerance(n));
    }
    return check;
}

// A known transform: what goes in, what must come out, and what it is summed from. Of numbers that
// have nothing to do with each other that is the size of an average result, as are their errors. A
// tone's partial sums grow up to n, also in those results where they cancel out: which, and so how
// far they grew, is the plan's affair, and FFTW's goes by timing.
struct known {
    size_t n;
    size_t place; // of the impulse, or the tone's frequency
    void (*fill)(const struct known *known, double *in);
    void (*want)(const struct known *known, const double *in, size_t k, double want[2]);
    double magnitude;
};

static void fill_impulse(const struct known *known, double *in) {
    memset(in, 0, 2 * known->n * sizeof *in);
    in[2 * known->place] = 1;
}

static void want_impulse(const struct known *known, const double *in, size_t k, double want[2]) {
    (void)in;
    mod2f_root(known->place * k, known->n, want);
}

static void fill_tone(const struct known *known, double *in) {
    for (size_t j = 0; j < known->n; j++) {
        mod2f_root(known->place * j, known->n, in + 2 * j);
        in[2 * j + 1] = -in[2 * j + 1];
    }
}

static void want_tone(const struct known *known, const double *in, size_t k, double want[2]) {
    (void)in;
    want[0] = k == known->place ? (double)known->n : 0;
    want[1] = 0;
}

static void fill_random(const struct known *known, double *in) {
    uint64_t state = known->place;
    for (size_t i = 0; i < 2 * known->n; i++)
        in[i] = random_value(&state);
}

// The sum that defines the transform.
static void want_sum(const struct known *known, const double *in, size_t k, double want[2]) {
    double lost[2] = {0, 0};
    want[0] = want[1] = 0;
    for (size_t j = 0; j < known->n; j++) {
        double w[2];
        mod2f_root(j * k, known->n, w);
        bk_add(&want[0], &lost[0], in[2 * j] * w[0] - in[2 * j + 1] * w[1]);
        bk_add(&want[1], &lost[1], in[2 * j] * w[1] + in[2 * j + 1] * w[0]);
    }
    want[0] += lost[0];
    want[1] += lost[1];
}

static void compare(struct bk_check *check, const struct known *known,
                    const struct mod2f_work *work) {
    for (size_t k = 0; k < known->n; k++) {
        double want[2];
        known->want(known, work->in, k, want);
        for (size_t part = 0; part < 2; part++)
            bk_check_value(check, k, work->out[2 * k + part], want[part],
                           tolerance(known->n) * known->magnitude);
    }
}

// False when memory is out.
static bool run_known(const struct mod2f_variant *variant, const struct known *known,
                      unsigned threads, bool fixed, struct bk_check *check) {
    struct mod2f_work work = {.n = known->n, .threads = threads, .fixed = fixed};
    bool ok = mod2f_allocate(&work, known->n) && variant->plan(&work);
    if (ok) {
        if (work.in != NULL)
            known->fill(known, work.in);
        if (variant->give != NULL)
            variant->give(&work);
        variant->is.kernel(&work, 1);
        if (variant->collect != NULL)
            variant->collect(&work);
        if (bk_rank() == 0)
            compare(check, known, &work);
    }
    variant->forget(&work);
    mod2f_free(&work);
    return ok;
}

struct bk_check mod2f_verify_known(const struct mod2f_variant *variant, unsigned threads,
                                   bool fixed, bool *enough_memory) {
    static const struct known cases[] = {
        {64, 11, fill_impulse, want_impulse, 1}, {4096, 1531, fill_impulse, want_impulse, 1},
        {64, 23, fill_tone, want_tone, 64},      {4096, 3001, fill_tone, want_tone, 4096},
        {64, 1, fill_random, want_sum, 8},       {256, 2, fill_random, want_sum, 16},
    };
    struct bk_check check = BK_CHECK_START;
    *enough_memory = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && *enough_memory; i++)
        *enough_memory = run_known(variant, &cases[i], threads, fixed, &check);
    return check;
}
