// The engine: where sites lie, who their neighbours are, and what is done to fields site by site.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lanes.h"

#include <stdlib.h>
#include <string.h>

// Sites whose sums are made together, so that they do not depend on the number of threads.
enum { CHUNK = 64 };

// ---- Geometry
// ---------------------------------------------------------------------------------------

// Index of a site of the block among those of its parity; without direction `left_out`, if 0..3.
static size_t index_of(const struct qcd_engine *engine, const int c[QCD_DIRECTIONS], int left_out) {
    size_t index = 0;
    for (int d = QCD_DIRECTIONS - 1; d >= 0; d--)
        if (d != left_out)
            index = index * (size_t)engine->block[d] + (size_t)c[d];
    return index / 2;
}

static void coordinates_of(const struct qcd_engine *engine, int parity, size_t index,
                           int c[QCD_DIRECTIONS]) {
    size_t rest = 2 * index;
    for (int d = 0; d < QCD_DIRECTIONS; d++) {
        c[d] = (int)(rest % (size_t)engine->block[d]);
        rest /= (size_t)engine->block[d];
    }
    c[0] += (c[0] + c[1] + c[2] + c[3] + parity) % 2;
}

static int32_t find_neighbour(const struct qcd_engine *engine, int c[QCD_DIRECTIONS], int d,
                              int by) {
    int n[QCD_DIRECTIONS];
    memcpy(n, c, sizeof n);
    n[d] += by;
    if (d == 0 && !engine->shared[d]) // not cut
        n[d] = (n[d] + engine->block[d]) % engine->block[d];
    if (n[d] >= 0 && n[d] < engine->block[d])
        return (int32_t)index_of(engine, n, -1);
    return (int32_t)(engine->sites + engine->ghost_first[d][by > 0] + index_of(engine, n, d));
}

static void find_neighbours(struct qcd_engine *engine, int parity) {
    for (size_t site = 0; site < engine->sites; site++) {
        int c[QCD_DIRECTIONS];
        coordinates_of(engine, parity, site, c);
        for (int d = 0; d < QCD_DIRECTIONS; d++)
            for (int back = 0; back < 2; back++)
                engine->neighbour[parity][8 * site + (size_t)(2 * d + back)] =
                    find_neighbour(engine, c, d, back ? -1 : 1);
    }
}

// A ghost at -1 copies the block's last layer (of the lane below), one beyond the end its first.
static void find_ghost_sources(struct qcd_engine *engine, int parity) {
    for (size_t site = 0; site < engine->sites; site++) {
        int c[QCD_DIRECTIONS];
        coordinates_of(engine, parity, site, c);
        for (int d = engine->shared[0] ? 0 : 1; d < QCD_DIRECTIONS; d++) {
            size_t place = index_of(engine, c, d);
            if (c[d] == engine->block[d] - 1)
                engine->ghost_source[parity][engine->ghost_first[d][0] + place] = (int32_t)site;
            if (c[d] == 0)
                engine->ghost_source[parity][engine->ghost_first[d][1] + place] = (int32_t)site;
        }
    }
}

// Sites that have no neighbour on another rank, and those that have one, by turns.
static void find_bounds(struct qcd_engine *engine, int parity) {
    int32_t *bounds = engine->bounds[parity];
    size_t count = 1;
    bounds[0] = 0;
    for (size_t site = 0; site < engine->sites; site++) {
        int c[QCD_DIRECTIONS];
        bool border = false;
        coordinates_of(engine, parity, site, c);
        for (int d = 0; d < QCD_DIRECTIONS; d++)
            border |= engine->shared[d] && (c[d] == 0 || c[d] == engine->block[d] - 1);
        if (border != (count % 2 == 0))
            bounds[count++] = (int32_t)site;
        engine->turn_sites[parity][border]++;
    }
    bounds[count++] = (int32_t)engine->sites;
    engine->bound_count[parity] = count;
}

static void place_ghosts(struct qcd_engine *engine, int d) {
    engine->ghost_count[d] = engine->sites / (size_t)engine->block[d];
    for (int side = 0; side < 2; side++, engine->ghosts += engine->ghost_count[d])
        engine->ghost_first[d][side] = engine->ghosts;
}

static void measure_block(struct qcd_engine *engine, const struct qcd_lattice *lattice) {
    engine->sites = 1;
    for (int d = 0; d < QCD_DIRECTIONS; d++) {
        engine->block[d] = d == 0 ? lattice->size[d] : lattice->size[d] / 2;
        engine->shared[d] = lattice->size[d] != lattice->whole[d];
        engine->sites *= (size_t)engine->block[d];
    }
    engine->sites /= 2;
    for (int d = 1; d < QCD_DIRECTIONS; d++)
        place_ghosts(engine, d);
    engine->lanes_ghosts = engine->ghosts;
    if (engine->shared[0])
        place_ghosts(engine, 0);
}

// A site of a lane, in the whole lattice.
static void place_of(const struct qcd_run *run, int parity, size_t index, int lane,
                     int site[QCD_DIRECTIONS]) {
    const struct qcd_engine *engine = run->own;
    coordinates_of(engine, parity, index, site);
    for (int d = 1; d < QCD_DIRECTIONS; d++)
        site[d] += (lane >> (d - 1) & 1) * engine->block[d];
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        site[d] += run->lattice.first[d];
}

// ---- Work by parts
// --------------------------------------------------------------------------------------

// What is done to the sites of fields; which of it is used depends on the work.
struct job {
    struct qcd_run *run;
    struct qcd_engine *engine;
    struct qcd_field *y;
    const struct qcd_field *x;
    double a;
    int parity;
    bool adjoint;
    bool border; // of D: the sites at a border to other ranks, or those within
    qcd_source *source;
    _Atomic uint64_t *digests; // of links [forward, backward]
};

struct qcd_range qcd_share(size_t count, size_t unit, unsigned part, unsigned parts) {
    size_t units = (count + unit - 1) / unit;
    size_t from = unit * (units * part / parts), to = unit * (units * (part + 1) / parts);
    return (struct qcd_range){from < count ? from : count, to < count ? to : count};
}

void qcd_alone(const struct qcd_run *run, qcd_work *work, void *context) {
    (void)run;
    work(context, 0, 1);
}

static void do_job(struct qcd_run *run, qcd_work *work, struct job job) {
    struct qcd_engine *engine = run->own;
    job.run = run;
    job.engine = engine;
    engine->team(run, work, &job);
}

// ---- Links
// ---------------------------------------------------------------------------------------------------

static void store_link(const struct qcd_engine *engine, int parity, size_t place, int lane,
                       struct qcd_complex u[QCD_COLOURS][QCD_COLOURS]) {
    const double *values = &u[0][0].re;
    float *single = (float *)engine->links[QCD_SINGLE][parity] + place * QCD_LINK * QCD_LANES;
    double *full = (double *)engine->links[QCD_DOUBLE][parity] + place * QCD_LINK * QCD_LANES;
    for (int k = 0; k < QCD_LINK; k++) {
        full[k * QCD_LANES + lane] = values[k];
        single[k * QCD_LANES + lane] = (float)values[k];
    }
}

// Each site has its own copies of the links to it, so that reading them is a stream.
static void make_links(void *context, unsigned part, unsigned parts) {
    const struct job *job = context;
    const struct qcd_lattice *lattice = &job->run->lattice;
    struct qcd_range range = qcd_share(job->engine->sites, 1, part, parts);
    for (size_t index = range.from; index < range.to; index++)
        for (int lane = 0; lane < QCD_LANES; lane++)
            for (int k = 0; k < 8; k++) {
                int site[QCD_DIRECTIONS], d = k / 2;
                struct qcd_complex u[QCD_COLOURS][QCD_COLOURS];
                place_of(job->run, job->parity, index, lane, site);
                if (k % 2 == 1)
                    site[d] = (site[d] + lattice->whole[d] - 1) % lattice->whole[d];
                qcd_link(lattice, site, d, u);
                store_link(job->engine, job->parity, 8 * index + (size_t)k, lane, u);
            }
}

// Of the numbers' bits (FNV-1a, a word at a time), in one lane.
static uint64_t digest_of(const double *values, size_t count) {
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t k = 0; k < count; k++) {
        uint64_t bits;
        memcpy(&bits, &values[k * QCD_LANES], sizeof bits);
        digest = (digest ^ bits) * UINT64_C(0x100000001b3);
    }
    return digest;
}

static void digest_links(void *context, unsigned part, unsigned parts) {
    const struct job *job = context;
    const struct qcd_range range = qcd_share(job->engine->sites, 1, part, parts);
    const double *links = job->engine->links[QCD_DOUBLE][job->parity];
    uint64_t digests[2] = {0, 0};
    for (size_t place = 8 * range.from; place < 8 * range.to; place++)
        for (size_t lane = 0; lane < QCD_LANES; lane++)
            digests[place % 2] += digest_of(links + place * QCD_LINK * QCD_LANES + lane, QCD_LINK);
    for (int k = 0; k < 2; k++)
        job->digests[k] += digests[k];
}

// In halves, which doubles add without rounding.
static uint64_t add_digests(const struct qcd_run *run, uint64_t digest) {
    const double low = qcd_add_ranks(run->model, (double)(uint32_t)digest);
    const double high = qcd_add_ranks(run->model, (double)(digest >> 32));
    return (uint64_t)low + ((uint64_t)high << 32);
}

// Every link is kept twice, ahead of a site and behind its neighbour, who may be on another rank.
uint64_t qcd_engine_check_links(struct qcd_run *run, struct bk_check *check) {
    _Atomic uint64_t digests[2] = {0, 0};
    for (int parity = 0; parity < 2; parity++)
        do_job(run, digest_links, (struct job){.parity = parity, .digests = digests});
    const uint64_t ahead = add_digests(run, digests[0]), behind = add_digests(run, digests[1]);
    bk_check_value(check, 0, (double)(uint32_t)ahead, (double)(uint32_t)behind, 0);
    bk_check_value(check, 1, (double)(ahead >> 32), (double)(behind >> 32), 0);
    return ahead;
}

static bool allocate(struct qcd_engine *engine) {
    bool ok = true;
    size_t reals = engine->sites * 8 * QCD_LINK * QCD_LANES;
    for (int parity = 0; parity < 2; parity++) {
        engine->neighbour[parity] = malloc(engine->sites * 8 * sizeof(int32_t));
        engine->ghost_source[parity] = malloc(engine->ghosts * sizeof(int32_t));
        engine->bounds[parity] = malloc((engine->sites + 2) * sizeof(int32_t));
        engine->links[QCD_SINGLE][parity] = bk_allocate(reals * sizeof(float));
        engine->links[QCD_DOUBLE][parity] = bk_allocate(reals * sizeof(double));
        ok = ok && engine->neighbour[parity] != NULL && engine->ghost_source[parity] != NULL &&
             engine->bounds[parity] != NULL && engine->links[QCD_SINGLE][parity] != NULL &&
             engine->links[QCD_DOUBLE][parity] != NULL;
    }
    engine->partial = malloc((engine->sites / CHUNK + 1) * sizeof(double));
    return ok && engine->partial != NULL;
}

void qcd_engine_close(struct qcd_run *run) {
    struct qcd_engine *engine = run->own;
    for (int parity = 0; parity < 2; parity++) {
        free(engine->neighbour[parity]);
        free(engine->ghost_source[parity]);
        free(engine->bounds[parity]);
        bk_release(engine->links[QCD_SINGLE][parity]);
        bk_release(engine->links[QCD_DOUBLE][parity]);
    }
    free(engine->partial);
    free(engine);
    run->own = NULL;
}

const char *qcd_engine_open(struct qcd_run *run, qcd_team *team) {
    struct qcd_engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL)
        return "out of memory: give smaller --sizes";
    run->own = engine;
    measure_block(engine, &run->lattice);
    if (!allocate(engine)) {
        qcd_engine_close(run);
        return "out of memory: give smaller --sizes";
    }
    engine->team = team;
    for (int parity = 0; parity < 2; parity++) {
        find_neighbours(engine, parity);
        find_ghost_sources(engine, parity);
        find_bounds(engine, parity);
        do_job(run, make_links, (struct job){.parity = parity});
    }
    return NULL;
}

// ---- Fields
// ---------------------------------------------------------------------------------------------------

static void clear_part(void *context, unsigned part, unsigned parts) {
    const struct job *job = context;
    size_t size = job->y->precision == QCD_SINGLE ? sizeof(float) : sizeof(double);
    struct qcd_range range =
        qcd_share(job->engine->sites + job->engine->ghosts, CHUNK, part, parts);
    memset((char *)job->y->values + range.from * QCD_SITE_REALS * size, 0,
           (range.to - range.from) * QCD_SITE_REALS * size);
}

void qcd_engine_clear(struct qcd_run *run, struct qcd_field *y) {
    do_job(run, clear_part, (struct job){.y = y});
}

struct qcd_field *qcd_engine_new_field(struct qcd_run *run, enum qcd_precision precision) {
    const struct qcd_engine *engine = run->own;
    struct qcd_field *field = malloc(sizeof *field);
    if (field == NULL)
        return NULL;
    size_t reals = (engine->sites + engine->ghosts) * QCD_SITE_REALS;
    field->precision = precision;
    field->values = bk_allocate(reals * (precision == QCD_SINGLE ? sizeof(float) : sizeof(double)));
    if (field->values == NULL) {
        free(field);
        return NULL;
    }
    qcd_engine_clear(run, field);
    return field;
}

void qcd_engine_free_field(struct qcd_run *run, struct qcd_field *field) {
    (void)run;
    if (field != NULL)
        bk_release(field->values);
    free(field);
}

static void fill_part(void *context, unsigned part, unsigned parts) {
    const struct job *job = context;
    struct qcd_range range = qcd_share(job->engine->sites, 1, part, parts);
    double *values = job->y->values;
    for (size_t index = range.from; index < range.to; index++)
        for (int lane = 0; lane < QCD_LANES; lane++) {
            int site[QCD_DIRECTIONS];
            double spinor[QCD_SPINOR];
            place_of(job->run, job->parity, index, lane, site);
            job->source(&job->run->lattice, site, spinor);
            for (int k = 0; k < QCD_SPINOR; k++)
                values[index * QCD_SITE_REALS + (size_t)(k * QCD_LANES + lane)] = spinor[k];
        }
}

void qcd_engine_fill(struct qcd_run *run, struct qcd_field *field, int parity, qcd_source *source) {
    do_job(run, fill_part, (struct job){.y = field, .parity = parity, .source = source});
}

void qcd_engine_compare(struct qcd_run *run, const struct qcd_field *got,
                        const struct qcd_field *want, double tolerance, struct bk_check *check) {
    const struct qcd_engine *engine = run->own;
    const double *got_values = got->values, *want_values = want->values;
    for (size_t i = 0; i < engine->sites * QCD_SITE_REALS; i++)
        bk_check_value(check, i, got_values[i], want_values[i], tolerance);
}

// ---- D
// ------------------------------------------------------------------------------------------------------------

static void ghosts_part(void *context, unsigned part, unsigned parts) {
    const struct job *job = context;
    struct qcd_range range = qcd_share(job->engine->lanes_ghosts, 1, part, parts);
    if (job->y->precision == QCD_SINGLE)
        qcd_ghosts_single(job->engine, job->parity, job->y->values, range.from, range.to);
    else
        qcd_ghosts_double(job->engine, job->parity, job->y->values, range.from, range.to);
}

static void dslash_sites(const struct job *job, size_t from, size_t to) {
    if (job->y->precision == QCD_SINGLE)
        qcd_dslash_single(job->engine, job->parity, job->adjoint, job->y->values, job->x->values,
                          from, to);
    else
        qcd_dslash_double(job->engine, job->parity, job->adjoint, job->y->values, job->x->values,
                          from, to);
}

// The part's share of the sites whose turn it is. A library of MPI moves messages while it is
// called: now and then.
static void dslash_part(void *context, unsigned part, unsigned parts) {
    const struct job *job = context;
    const struct qcd_engine *engine = job->engine;
    const int32_t *bounds = engine->bounds[job->parity];
    const struct qcd_range range =
        qcd_share(engine->turn_sites[job->parity][job->border], 1, part, parts);
    const bool travels = part == 0 && engine->travel != NULL && !job->border;
    const size_t pause = travels ? 4 * CHUNK : SIZE_MAX;
    size_t before = 0, done = 0; // sites of earlier turns; since the last pause
    for (size_t i = job->border; i + 1 < engine->bound_count[job->parity]; i += 2) {
        const size_t first = (size_t)bounds[i], after = before + (size_t)bounds[i + 1] - first;
        const size_t to = range.to < after ? range.to : after;
        size_t from = range.from > before ? range.from : before;
        while (from < to) {
            const size_t count = to - from < pause ? to - from : pause;
            dslash_sites(job, first + from - before, first + from - before + count);
            from += count;
            done += count;
            if (done >= pause) {
                engine->travel(job->run);
                done = 0;
            }
        }
        before = after;
    }
}

void qcd_engine_dslash(struct qcd_run *run, int parity, bool adjoint, struct qcd_field *out,
                       struct qcd_field *in) {
    const struct qcd_engine *engine = run->own;
    struct job job = {.y = out, .x = in, .parity = parity, .adjoint = adjoint};
    if (engine->send != NULL)
        engine->send(run, in, 1 - parity);
    do_job(run, ghosts_part, (struct job){.y = in, .parity = 1 - parity});
    do_job(run, dslash_part, job);
    if (engine->receive == NULL)
        return;
    engine->receive(run, in);
    job.border = true;
    do_job(run, dslash_part, job);
}

// ---- Sums of fields
// ------------------------------------------------------------------------------------------------

// y = x + a y over n reals, or y += a x, or y = x; the square of y's norm.
#define DEFINE_SUMS(REAL_Y, REAL_X, NAME)                                                          \
    static double add_##NAME(REAL_Y *restrict y, REAL_Y a, const REAL_X *restrict x, size_t n) {   \
        double sum[QCD_LANES] = {0};                                                               \
        for (size_t i = 0; i < n; i += QCD_LANES)                                                  \
            for (size_t k = 0; k < QCD_LANES; k++) {                                               \
                y[i + k] += a * (REAL_Y)x[i + k];                                                  \
                sum[k] += (double)y[i + k] * (double)y[i + k];                                     \
            }                                                                                      \
        return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));  \
    }                                                                                              \
    static double scale_add_##NAME(REAL_Y *restrict y, REAL_Y a, const REAL_X *restrict x,         \
                                   size_t n) {                                                     \
        double sum[QCD_LANES] = {0};                                                               \
        for (size_t i = 0; i < n; i += QCD_LANES)                                                  \
            for (size_t k = 0; k < QCD_LANES; k++) {                                               \
                y[i + k] = (REAL_Y)x[i + k] + a * y[i + k];                                        \
                sum[k] += (double)y[i + k] * (double)y[i + k];                                     \
            }                                                                                      \
        return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));  \
    }
DEFINE_SUMS(float, float, ss)
DEFINE_SUMS(double, double, dd)
DEFINE_SUMS(double, float, ds)
DEFINE_SUMS(float, double, sd)

static double add_reals(const struct job *job, size_t i, size_t n) {
    bool y_single = job->y->precision == QCD_SINGLE, x_single = job->x->precision == QCD_SINGLE;
    float *ys = job->y->values;
    double *yd = job->y->values;
    const float *xs = job->x->values;
    const double *xd = job->x->values;
    if (y_single)
        return x_single ? add_ss(ys + i, (float)job->a, xs + i, n)
                        : add_sd(ys + i, (float)job->a, xd + i, n);
    return x_single ? add_ds(yd + i, job->a, xs + i, n) : add_dd(yd + i, job->a, xd + i, n);
}

static double scale_add_reals(const struct job *job, size_t i, size_t n) {
    bool y_single = job->y->precision == QCD_SINGLE, x_single = job->x->precision == QCD_SINGLE;
    float *ys = job->y->values;
    double *yd = job->y->values;
    const float *xs = job->x->values;
    const double *xd = job->x->values;
    if (y_single)
        return x_single ? scale_add_ss(ys + i, (float)job->a, xs + i, n)
                        : scale_add_sd(ys + i, (float)job->a, xd + i, n);
    return x_single ? scale_add_ds(yd + i, job->a, xs + i, n)
                    : scale_add_dd(yd + i, job->a, xd + i, n);
}

static void by_chunks(const struct job *job, unsigned part, unsigned parts,
                      double (*reals)(const struct job *, size_t, size_t)) {
    struct qcd_range range = qcd_share(job->engine->sites, CHUNK, part, parts);
    for (size_t from = range.from; from < range.to; from += CHUNK) {
        size_t to = from + CHUNK < range.to ? from + CHUNK : range.to;
        job->engine->partial[from / CHUNK] =
            reals(job, from * QCD_SITE_REALS, (to - from) * QCD_SITE_REALS);
    }
}

static void add_part(void *context, unsigned part, unsigned parts) {
    by_chunks(context, part, parts, add_reals);
}

static void scale_add_part(void *context, unsigned part, unsigned parts) {
    by_chunks(context, part, parts, scale_add_reals);
}

double qcd_engine_sum(struct qcd_run *run) {
    const struct qcd_engine *engine = run->own;
    double sum = 0;
    for (size_t chunk = 0; chunk * CHUNK < engine->sites; chunk++)
        sum += engine->partial[chunk];
    return qcd_add_ranks(run->model, sum);
}

void qcd_engine_add(struct qcd_run *run, struct qcd_field *y, double a, const struct qcd_field *x) {
    do_job(run, add_part, (struct job){.y = y, .a = a, .x = x});
}

void qcd_engine_scale_add(struct qcd_run *run, struct qcd_field *y, double a,
                          const struct qcd_field *x) {
    do_job(run, scale_add_part, (struct job){.y = y, .a = a, .x = x});
}

// Zero times what was there is zero: fields never hold what is not finite.
void qcd_engine_copy(struct qcd_run *run, struct qcd_field *y, const struct qcd_field *x) {
    qcd_engine_scale_add(run, y, 0, x);
}
