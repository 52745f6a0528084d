// Plans our own transform by trying. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "choice.h"

#include <math.h>
#include <stdlib.h>

// Larger transforms are never fastest direct, smaller ones never split.
static const size_t direct_most = (size_t)1 << 18, split_least = (size_t)1 << 11;
// Smaller ones fit a cache.
static const size_t past_least = (size_t)1 << 17;
// Each try lasts so long at least, and is the best of so many.
static const double try_seconds = 2e-4;
enum { TRIES = 5, LEAST_FACTOR = 16 };

static void free_plan(struct own_plan *plan) {
    free_transform(&plan->transform);
    bk_release(plan->work);
    *plan = (struct own_plan){0};
}

static bool make_plan(struct own_plan *plan, const struct mod2f_work *work, size_t n1) {
    if (plan_transform(&plan->transform, work->n, n1))
        plan->work = bk_allocate(work->threads * plan->transform.work_size * sizeof(double));
    return plan->work != NULL;
}

// Seconds of one transform. A large one is run but twice: it takes long enough to be known.
static double seconds_of(struct mod2f_work *work, bk_kernel *kernel) {
    double best_s = INFINITY;
    for (int i = 0; i < TRIES && (i < 2 || best_s < 100 * try_seconds); i++)
        best_s = fmin(best_s, bk_quick_time(kernel, work, try_seconds));
    return best_s;
}

// Keeps the plan with n1, which stores past the caches or not, where it is faster than the one
// before it; false when memory is out.
static bool try_plan(struct mod2f_work *work, bk_kernel *kernel, size_t n1, bool past,
                     double *best_s) {
    struct own_plan *best = work->plan, tried = {0};
    if (!make_plan(&tried, work, n1)) {
        free_plan(&tried);
        return false;
    }
    tried.transform.past = past;
    work->plan = &tried;
    double s = seconds_of(work, kernel);
    work->plan = best;
    struct own_plan slower = s < *best_s ? *best : tried;
    if (s < *best_s) {
        *best = tried;
        *best_s = s;
    }
    free_plan(&slower);
    return true;
}

bool plan_fastest(struct mod2f_work *work, bk_kernel *kernel) {
    const size_t n = work->n;
    work->plan = calloc(1, sizeof(struct own_plan));
    bool ok = work->plan != NULL;
    double best_s = INFINITY;
    mod2f_fill(work); // infinities or denormal numbers would be slow
    if (ok && n <= direct_most)
        ok = try_plan(work, kernel, n, false, &best_s);
    // Matrices from twice as wide as high to eight times as high as wide.
    for (size_t n1 = LEAST_FACTOR; ok && n >= split_least && n1 <= n / LEAST_FACTOR; n1 *= 2)
        if (n1 <= 8 * (n / n1) && n / n1 <= 2 * n1)
            ok = try_plan(work, kernel, n1, false, &best_s) &&
                 (n < past_least || try_plan(work, kernel, n1, true, &best_s));
    return ok;
}

void forget_fastest(struct mod2f_work *work) {
    if (work->plan != NULL)
        free_plan(work->plan);
    free(work->plan);
    work->plan = NULL;
}
