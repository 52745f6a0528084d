// Plans and runs our own transform. A small one is a Stockham transform of a few passes of radix up
// to 16; once the first pass is over, its numbers k are as many transforms of their own. A large
// one is a matrix n1 x n2 (Gentleman and Sande 1966; six-step: Bailey 1990): its columns and then
// its rows are transformed in blocks that fit the second-level cache, so that the data cross memory
// twice; both transpositions are part of the blocks' first and last passes.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "transform.h"
#include "passes.h"
#include "simd.h"

enum { MAX_RADIX = 16 };

// Second-level cache that a block's two buffers may fill, in bytes.
static const size_t block_bytes = (size_t)512 << 10;

static unsigned logarithm(size_t n) {
    unsigned bits = 0;
    while (n >> (bits + 1) != 0)
        bits++;
    return bits;
}

// As few stages as radix 16 allows, of as equal radices as possible, larger ones first.
static void choose_radices(struct passes *passes) {
    unsigned bits = logarithm(passes->n);
    passes->count = (bits + 3) / 4;
    size_t s = 1;
    for (unsigned i = 0; i < passes->count; i++) {
        struct stage *stage = &passes->stages[i];
        unsigned left = passes->count - i, share = (bits + left - 1) / left;
        bits -= share;
        stage->radix = 1U << share;
        stage->s = s;
        s *= stage->radix;
        stage->m = passes->n / s;
    }
}

// Roots w^(p k), w = exp(-2 pi i / (radix m)), as run_stage reads them.
static void fill_roots(const struct stage *stage) {
    double *to = stage->roots;
    for (size_t p = 0; p < stage->m; p++)
        for (unsigned k = 1; k < stage->radix; k++, to += 4) {
            double root[2];
            mod2f_root(p * k, stage->radix * stage->m, root);
            to[0] = to[1] = root[0];
            to[2] = -root[1];
            to[3] = root[1];
        }
}

// The same as run_first_stage reads them: a vector of LANES neighbours p for each k.
static void fill_first_roots(const struct stage *stage) {
    double *to = stage->roots;
    for (size_t p = 0; p < stage->m; p += LANES)
        for (unsigned k = 1; k < stage->radix; k++)
            for (unsigned lane = 0; lane < LANES; lane++, to += 2)
                mod2f_root((p + lane) * k, stage->radix * stage->m, to);
}

static bool plan_passes(struct passes *passes, size_t n, size_t columns) {
    passes->n = n;
    passes->columns = columns;
    choose_radices(passes);
    for (unsigned i = 0; i < passes->count; i++) {
        struct stage *stage = &passes->stages[i];
        bool first = columns == 1 && i == 0;
        stage->roots = bk_allocate((first ? 2 : 4) * stage->m * stage->radix * sizeof(double));
        if (stage->roots == NULL)
            return false;
        if (first)
            fill_first_roots(stage);
        else
            fill_roots(stage);
    }
    return true;
}

static void free_passes(struct passes *passes) {
    for (unsigned i = 0; i < MAX_STAGES; i++)
        bk_release(passes->stages[i].roots);
}

// All roots of n from two tables of about its square root each.
static bool plan_roots(struct transform *plan) {
    size_t n = plan->n;
    plan->fine_bits = logarithm(n) / 2;
    size_t fine = (size_t)1 << plan->fine_bits, coarse = n / fine;
    plan->fine = bk_allocate(2 * fine * sizeof(double));
    plan->coarse = bk_allocate(2 * coarse * sizeof(double));
    if (plan->fine == NULL || plan->coarse == NULL)
        return false;
    for (size_t i = 0; i < fine; i++)
        mod2f_root(i, n, &plan->fine[2 * i]);
    for (size_t i = 0; i < coarse; i++)
        mod2f_root(i, coarse, &plan->coarse[2 * i]);
    return true;
}

static size_t block_columns(size_t rows) {
    // Eight numbers are two cache lines; four are one.
    return 2 * 16 * 8 * rows <= block_bytes ? 8 : 4;
}

bool plan_matrix(struct transform *plan, size_t n, size_t n1, size_t width,
                 struct mod2f_share columns, struct mod2f_share rows) {
    const size_t n2 = n / n1;
    *plan = (struct transform){.n = n, .n1 = n1, .n2 = n2, .columns = columns, .rows = rows};
    // Two buffers, and what run_last_stage multiplies with.
    plan->work_size = 2 * width * (2 * (n1 > n2 ? n1 : n2) + n1 + MAX_RADIX);
    return plan_roots(plan) && plan_passes(&plan->first, n1, width) &&
           plan_passes(&plan->second, n2, width);
}

bool plan_transform(struct transform *plan, size_t n, size_t n1) {
    const size_t n2 = n / n1;
    if (n2 == 1) {
        *plan = (struct transform){.n = n, .n1 = n1, .n2 = 1, .work_size = 2 * n};
        return plan_passes(&plan->first, n, 1);
    }
    const bool planned = plan_matrix(plan, n, n1, block_columns(n1 > n2 ? n1 : n2),
                                     (struct mod2f_share){0, n2}, (struct mod2f_share){0, n1});
    plan->middle = bk_allocate(2 * n * sizeof(double));
    return planned && plan->middle != NULL;
}

void free_transform(struct transform *plan) {
    free_passes(&plan->first);
    free_passes(&plan->second);
    bk_release(plan->fine);
    bk_release(plan->coarse);
    bk_release(plan->middle);
    *plan = (struct transform){0};
}

void transform_directly(const struct transform *plan, const double *in, double *out, double *work) {
    const struct passes *passes = &plan->first;
    for (unsigned i = 0; i < passes->count; i++) {
        // By turns, so that the last one writes to `out`.
        const bool to_out = (passes->count - i) % 2 == 1;
        const struct rows x = {to_out ? work : out, 1, false}, y = {to_out ? out : work, 1, false};
        if (i == 0)
            run_first_stage(&passes->stages[0], in, y.at, 0, 1);
        else
            run_stage(1, &passes->stages[i], x, y);
    }
}

unsigned most_parts(size_t n) {
    struct passes passes = {.n = n};
    choose_radices(&passes);
    return passes.stages[0].radix / LINE;
}

void transform_part(const struct transform *plan, const double *in, double *out, double *work,
                    unsigned part, unsigned parts) {
    const struct passes *passes = &plan->first;
    const unsigned radix = passes->stages[0].radix, columns = radix / parts;
    double *buffers[2] = {work, work + 2 * plan->n / parts};
    run_first_stage(&passes->stages[0], in, buffers[0], part, parts);
    for (unsigned i = 1; i < passes->count; i++) {
        struct stage stage = passes->stages[i];
        stage.s /= radix; // of these columns, not of all that lie side by side
        struct rows from = {buffers[(i + 1) % 2], columns, false};
        if (i + 1 < passes->count)
            run_stage(columns, &stage, from, (struct rows){buffers[i % 2], columns, false});
        else // each group of numbers to its place
            for (unsigned c = 0; c < columns; c += LINE, from.at += 2 * LINE)
                run_stage(LINE, &stage, from,
                          (struct rows){out + 2 * (parts * c + LINE * part), radix, false});
    }
}

size_t column_blocks(const struct transform *plan) {
    return plan->columns.count / plan->first.columns;
}

size_t row_blocks(const struct transform *plan) {
    return plan->rows.count / plan->second.columns;
}

// exp(-2 pi i t / n), within two or three units in the last place.
static void root_of(const struct transform *plan, size_t t, double *root) {
    const double *a = plan->coarse + 2 * ((t & (plan->n - 1)) >> plan->fine_bits);
    const double *b = plan->fine + 2 * (t & (((size_t)1 << plan->fine_bits) - 1));
    root[0] = a[0] * b[0] - a[1] * b[1];
    root[1] = a[0] * b[1] + a[1] * b[0];
}

// The roots that follow the columns' last pass: exp(-2 pi i j r / n) for column j and row r = q + s
// k.
static void fill_factors(const struct transform *plan, size_t block, double *inner, double *outer) {
    const struct passes *passes = &plan->first;
    const struct stage *last = &passes->stages[passes->count - 1];
    const size_t columns = passes->columns;
    for (size_t c = 0; c < columns; c++) {
        size_t j = plan->columns.first + block * columns + c;
        for (size_t q = 0; q < last->s; q++)
            root_of(plan, j * q, inner + 2 * (q * columns + c));
        for (size_t k = 0; k < last->radix; k++)
            root_of(plan, j * last->s * k, outer + 2 * (k * columns + c));
    }
}

static void columns_to(const struct transform *plan, const double *in, size_t block, double *work,
                       double *at, bool past) {
    const struct passes *passes = &plan->first;
    const size_t columns = passes->columns, size = 2 * plan->n1 * columns;
    double *buffers[2] = {work, work + size}, *inner = work + 2 * size, *outer = inner + size;
    fill_factors(plan, block, inner, outer);
    struct rows from = {(double *)in + 2 * columns * block, plan->columns.count, false};
    for (unsigned i = 0; i + 1 < passes->count; i++) {
        struct rows to = {buffers[i % 2], columns, false};
        run_stage(columns, &passes->stages[i], from, to);
        from = to;
    }
    run_last_stage(columns, &passes->stages[passes->count - 1], from,
                   (struct rows){at, columns, past}, inner, outer);
    end_stores_past();
}

void transform_columns(const struct transform *plan, const double *in, size_t block, double *work) {
    double *to = plan->middle + 2 * block * plan->first.columns * plan->n1;
    columns_to(plan, in, block, work, to, plan->past);
}

const double *transform_columns_apart(const struct transform *plan, const double *in, size_t block,
                                      double *work) {
    // The buffer that the last pass does not read.
    double *to = work + (plan->first.count - 1) % 2 * 2 * plan->n1 * plan->first.columns;
    columns_to(plan, in, block, work, to, false);
    return to;
}

// Gathers the rows of a block as columns.
static void gather_rows(const struct transform *plan, size_t block, double *to) {
    const size_t columns = plan->second.columns, rows = plan->rows.count;
    for (size_t j = 0; j < plan->n2; j += columns) {
        const double *from = plan->middle + 2 * (j * rows + block * columns * columns);
        for (size_t r = 0; r < columns; r += LANES)
            for (size_t c = 0; c < columns; c += LANES) {
                vec v[LANES];
                for (size_t lane = 0; lane < LANES; lane++)
                    v[lane] = load(from + 2 * ((r + lane) * columns + c));
                transpose(v);
                for (size_t lane = 0; lane < LANES; lane++)
                    store(to + 2 * ((j + c + lane) * columns + r), v[lane]);
            }
    }
}

void transform_rows(const struct transform *plan, double *out, size_t block, double *work) {
    const struct passes *passes = &plan->second;
    const size_t columns = passes->columns, size = 2 * plan->n2 * columns;
    double *buffers[2] = {work, work + size};
    gather_rows(plan, block, buffers[0]);
    for (unsigned i = 0; i < passes->count; i++) {
        bool last = i + 1 == passes->count;
        struct rows to = {buffers[(i + 1) % 2], columns, false};
        if (last)
            to = (struct rows){out + 2 * columns * block, plan->rows.count, plan->past};
        run_stage(columns, &passes->stages[i], (struct rows){buffers[i % 2], columns, false}, to);
    }
    end_stores_past();
}
