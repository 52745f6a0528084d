// The engine of the models that run on CPUs: the part of a rank is cut in two along y, z and t; the
// eight blocks are the lanes of vectors, so that neighbours of all lanes are neighbours in memory
// alike. Around a block lie ghost sites, filled before D is applied: along y, z and t always, along
// x where ranks share it. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef QCD_LANES_H
#define QCD_LANES_H

#include "qcd.h"

enum { QCD_LANES = 8 };

// Does part `part` of `parts` of some work.
typedef void qcd_work(void *context, unsigned part, unsigned parts);

// Calls work for all its parts, in turn or at once; the caller does the first.
typedef void qcd_team(const struct qcd_run *run, qcd_work *work, void *context);
qcd_team qcd_alone, qcd_threads;

struct qcd_range {
    size_t from, to;
};

// A part's share of so many things, by whole units.
struct qcd_range qcd_share(size_t count, size_t unit, unsigned part, unsigned parts);

struct qcd_engine {
    int block[QCD_DIRECTIONS];             // sites of a lane's block
    size_t sites;                          // of a parity in a block
    size_t ghosts;                         // of a parity around it
    size_t lanes_ghosts;                   // the first of these: other lanes' sites
    size_t ghost_first[QCD_DIRECTIONS][2]; // below and above the block, counted from its sites
    size_t ghost_count[QCD_DIRECTIONS];    // on a side
    bool shared[QCD_DIRECTIONS];           // by several ranks
    int32_t *neighbour[2];    // [parity][site][direction][forward, backward]: in the other parity
    int32_t *ghost_source[2]; // [parity][ghost]: the site of the same parity that it copies
    void *links[2][2];        // [precision][parity]: [site][direction][forward, backward]
    double *partial;          // sums over chunks of sites
    // Sites by turns within ([bounds[0], bounds[1]) and so on) and at a border to other ranks.
    int32_t *bounds[2]; // [parity]
    size_t bound_count[2];
    size_t turn_sites[2][2]; // [parity][within, at a border]
    qcd_team *team;
    // What a model with ranks sets: sends a field's sites at the borders; lets them travel, by the
    // first of the team; puts other ranks' into the ghosts.
    void (*send)(struct qcd_run *run, struct qcd_field *field, int parity);
    void (*travel)(struct qcd_run *run);
    void (*receive)(struct qcd_run *run, struct qcd_field *field);
    void *more; // what it keeps
};

struct qcd_field {
    enum qcd_precision precision;
    void *values; // [site or ghost][QCD_SPINOR][lane]
};

// Of a field: the reals of a site in all lanes.
enum { QCD_SITE_REALS = QCD_SPINOR * QCD_LANES };

// What the models' functions of the same names do.
const char *qcd_engine_open(struct qcd_run *run, qcd_team *team);
void qcd_engine_close(struct qcd_run *run);
struct qcd_field *qcd_engine_new_field(struct qcd_run *run, enum qcd_precision precision);
void qcd_engine_free_field(struct qcd_run *run, struct qcd_field *field);
void qcd_engine_fill(struct qcd_run *run, struct qcd_field *field, int parity, qcd_source *source);
void qcd_engine_compare(struct qcd_run *run, const struct qcd_field *got,
                        const struct qcd_field *want, double tolerance, struct bk_check *check);
uint64_t qcd_engine_check_links(struct qcd_run *run, struct bk_check *check);
void qcd_engine_dslash(struct qcd_run *run, int parity, bool adjoint, struct qcd_field *out,
                       struct qcd_field *in);
void qcd_engine_clear(struct qcd_run *run, struct qcd_field *y);
void qcd_engine_add(struct qcd_run *run, struct qcd_field *y, double a, const struct qcd_field *x);
void qcd_engine_scale_add(struct qcd_run *run, struct qcd_field *y, double a,
                          const struct qcd_field *x);
void qcd_engine_copy(struct qcd_run *run, struct qcd_field *y, const struct qcd_field *x);
double qcd_engine_sum(struct qcd_run *run);

// The kernels, in both precisions (kernels.inc). `to` and `from` are sites.
void qcd_dslash_single(const struct qcd_engine *engine, int parity, bool adjoint, float *out,
                       const float *in, size_t from, size_t to);
void qcd_dslash_double(const struct qcd_engine *engine, int parity, bool adjoint, double *out,
                       const double *in, size_t from, size_t to);
void qcd_ghosts_single(const struct qcd_engine *engine, int parity, float *field, size_t from,
                       size_t to);
void qcd_ghosts_double(const struct qcd_engine *engine, int parity, double *field, size_t from,
                       size_t to);

#endif
