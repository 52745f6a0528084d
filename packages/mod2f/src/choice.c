// Plans our own transform, by trying or by its size. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Larger transforms are never fastest direct, smaller ones never split.
static const size_t direct_most = (size_t)1 << 18, split_least = (size_t)1 << 11;
// Smaller ones fit a cache.
static const size_t past_least = (size_t)1 << 17;
// Larger ones are split by a fixed plan.
static const size_t fixed_direct_most = (size_t)1 << 14;
// Each try lasts so long at least; the best of many is taken, but of two where they take long. On a
// busy machine threads seldom run all at once, and a short try has the best chance.
static const double try_seconds = 3e-5, all_tries_seconds = 0.3;
enum { TRIES = 200, LEAST_TRIES = 2, LEAST_FACTOR = 16 };

static void free_plan(struct own_plan *plan) {
    free_transform(&plan->transform);
    bk_release(plan->work);
    *plan = (struct own_plan){0};
}

static bool make_plan(struct own_plan *plan, const struct mod2f_work *work, size_t n1) {
    if (plan_transform(&plan->transform, work->n, n1))
        plan->work = bk_allocate(plan->threads * plan->transform.work_size * sizeof(double));
    return plan->work != NULL;
}

static double seconds_of(struct mod2f_work *work, bk_kernel *kernel) {
    double best_s = INFINITY, all_s = 0;
    for (int i = 0; i < TRIES && (i < LEAST_TRIES || all_s < all_tries_seconds); i++) {
        uint64_t start_ns = bk_now_ns();
        best_s = fmin(best_s, bk_quick_time(kernel, work, try_seconds));
        all_s += (double)(bk_now_ns() - start_ns) * 1e-9;
    }
    return best_s;
}

// A way to transform that is tried.
struct way {
    size_t n1;
    bool past;
    unsigned threads;
};

// Keeps the plan where it is faster than the one before it; false when memory is out.
static bool try_way(struct mod2f_work *work, bk_kernel *kernel, struct way way, double *best_s) {
    struct own_plan *best = work->plan, tried = {.threads = way.threads};
    if (!make_plan(&tried, work, way.n1)) {
        free_plan(&tried);
        return false;
    }
    tried.transform.past = way.past;
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

static bool plan_fastest(struct mod2f_work *work, bk_kernel *kernel) {
    const size_t n = work->n;
    const unsigned all = work->threads;
    bool ok = true;
    double best_s = INFINITY;
    mod2f_fill(work); // infinities or denormal numbers would be slow
    for (unsigned parts = 1; ok && n <= direct_most && parts <= all && parts <= most_parts(n);
         parts *= 2)
        ok = try_way(work, kernel, (struct way){n, false, parts}, &best_s);
    // Matrices from twice as wide as high to eight times as high as wide.
    for (size_t n1 = LEAST_FACTOR; ok && n >= split_least && n1 <= n / LEAST_FACTOR; n1 *= 2)
        if (n1 <= 8 * (n / n1) && n / n1 <= 2 * n1)
            ok = try_way(work, kernel, (struct way){n1, false, all}, &best_s) &&
                 (n < past_least || try_way(work, kernel, (struct way){n1, true, all}, &best_s));
    return ok;
}

// The same operations whatever the machine and the number of threads.
static bool plan_fixed(struct mod2f_work *work) {
    struct own_plan *plan = work->plan;
    size_t n1 = work->n;
    while (n1 != work->n / n1 && n1 != 2 * (work->n / n1) && work->n > fixed_direct_most)
        n1 /= 2;
    plan->threads = n1 < work->n ? work->threads : 1;
    return make_plan(plan, work, n1);
}

static void say_how(struct mod2f_work *work) {
    const struct own_plan *plan = work->plan;
    const struct transform *transform = &plan->transform;
    const char *by = work->fixed ? "fixed" : "fastest";
    if (transform->n2 == 1)
        snprintf(work->how, sizeof work->how, "%s plan: direct, threads %u", by, plan->threads);
    else
        snprintf(work->how, sizeof work->how, "%s plan: %lu x %lu, threads %u%s", by,
                 (unsigned long)transform->n1, (unsigned long)transform->n2, plan->threads,
                 transform->past ? ", past the caches" : "");
}

bool plan_own(struct mod2f_work *work, bk_kernel *kernel) {
    work->plan = calloc(1, sizeof(struct own_plan));
    bool ok = work->plan != NULL && (work->fixed ? plan_fixed(work) : plan_fastest(work, kernel));
    if (ok)
        say_how(work);
    return ok;
}

void forget_own(struct mod2f_work *work) {
    if (work->plan != NULL)
        free_plan(work->plan);
    free(work->plan);
    work->plan = NULL;
}
