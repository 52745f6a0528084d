// qcd: the even-odd preconditioned Wilson operator on a 4D lattice and its solution by conjugate
// gradients; the lattice, the models and the checks. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef QCD_H
#define QCD_H

#include "benchkit.h"

#ifdef __cplusplus
extern "C" {
#endif

// Directions 0..3 are x, y, z, t. Spinors have 4 spins of 3 colours, links 3 x 3 colours; complex
// numbers are pairs of reals. The Wilson operator is M = 1 - kappa D, with
//   D psi(x) = sum over mu of (1 - gamma_mu) U_mu(x) psi(x + mu)
//                           + (1 + gamma_mu) U_mu(x - mu)^+ psi(x - mu)
// and antiperiodic in t. Even sites are those with an even sum of coordinates.
enum { QCD_DIRECTIONS = 4, QCD_SPINS = 4, QCD_COLOURS = 3 };
enum { QCD_SPINOR = 2 * QCD_SPINS * QCD_COLOURS, QCD_LINK = 2 * QCD_COLOURS * QCD_COLOURS };
enum { QCD_EVEN, QCD_ODD };

// Floating-point operations as the field counts them.
#define QCD_DSLASH_FLOPS 1320.0                          // D, per site
#define QCD_MATRIX_FLOPS (2 * QCD_DSLASH_FLOPS + 48)     // preconditioned, per even site
#define QCD_CG_FLOPS     (2 * QCD_MATRIX_FLOPS + 5 * 48) // an iteration, per even site

struct qcd_complex {
    double re, im;
};

// The lattice, and the part of it that a rank has.
struct qcd_lattice {
    int whole[QCD_DIRECTIONS];
    int first[QCD_DIRECTIONS];
    int size[QCD_DIRECTIONS]; // of the part
    bool cold;                // all links are one
    bool transformed;         // the gauge, at random: no physics changes
};

enum qcd_precision { QCD_SINGLE, QCD_DOUBLE };

struct qcd_model;

// A lattice with its links, as a model keeps them.
struct qcd_run {
    const struct qcd_model *model;
    struct qcd_lattice lattice;
    double kappa;
    unsigned threads;
    void *own; // what the model keeps
};

// A spinor for each even or each odd site; what it is belongs to the model.
struct qcd_field;

// A function of a site, by its coordinates in the whole lattice, that fills a field.
typedef void qcd_source(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                        double spinor[QCD_SPINOR]);

// y = z + s (x + a D in): z may be y, or NULL for none.
struct qcd_step {
    struct qcd_field *y;
    const struct qcd_field *z;
    double s;
    const struct qcd_field *x;
    double a;
    struct qcd_field *in;
};

// A programming model: what the solver needs of it. NULL functions are not needed.
struct qcd_model {
    struct bk_variant is;
    int link_values; // that D reads of each link
    // Of ranks: chooses this one's, whose size[0] is 0 where they can't share the lattice; adds up.
    void (*part)(struct qcd_lattice *lattice);
    double (*add_ranks)(double value);
    // Makes the links. NULL, or what is wrong and how to mend it.
    const char *(*open)(struct qcd_run *run);
    void (*close)(struct qcd_run *run);
    // NULL when memory is out.
    struct qcd_field *(*new_field)(struct qcd_run *run, enum qcd_precision precision);
    void (*free_field)(struct qcd_run *run, struct qcd_field *field);
    // Fills a double-precision field of a parity.
    void (*fill)(struct qcd_run *run, struct qcd_field *field, int parity, qcd_source *source);
    // Compares all values of two double-precision fields, this rank's sites.
    void (*compare)(struct qcd_run *run, const struct qcd_field *got, const struct qcd_field *want,
                    double tolerance, struct bk_check *check);
    // Compares copies of links with each other; a digest of all ranks' links, whatever their
    // number.
    uint64_t (*check_links)(struct qcd_run *run, struct bk_check *check);
    // out (of `parity`) = D in (of the other parity), or its adjoint. Both of one precision.
    void (*dslash)(struct qcd_run *run, int parity, bool adjoint, struct qcd_field *out,
                   struct qcd_field *in);
    void (*clear)(struct qcd_run *run, struct qcd_field *y);
    // y += a x
    void (*add)(struct qcd_run *run, struct qcd_field *y, double a, const struct qcd_field *x);
    // y = x + a y
    void (*scale_add)(struct qcd_run *run, struct qcd_field *y, double a,
                      const struct qcd_field *x);
    // Copies, from any precision to any.
    void (*copy)(struct qcd_run *run, struct qcd_field *y, const struct qcd_field *x);
    // The square of the norm of the y that add, scale_add, copy or dslash_add made last; D may have
    // been applied since.
    double (*sum)(struct qcd_run *run);
    // Several of the above in one, of one precision: the step, for y of `parity`; x += a p and
    // p = r + b p. NULL: the solver calls those.
    void (*dslash_add)(struct qcd_run *run, int parity, bool adjoint, const struct qcd_step *step);
    void (*advance)(struct qcd_run *run, struct qcd_field *x, struct qcd_field *p, double a,
                    const struct qcd_field *r, double b);
    // Waits until all that was asked for is done.
    void (*wait)(struct qcd_run *run);
};

// Of this build, ended by NULL: each the beginning of a struct qcd_model.
extern const struct bk_variant *const qcd_variants[];

extern const struct qcd_model qcd_serial;
#ifdef BENCH_OPENMP
extern const struct qcd_model qcd_omp;
#endif
#ifdef BENCH_MPI
extern const struct qcd_model qcd_mpi;
#endif
#ifdef BENCH_GPU
extern const struct qcd_model qcd_cuda;
#endif

// ---- Links and sources: functions of a site, the same on every machine
// -----------------------------

// U_mu(x), in SU(3): random, uniformly distributed; with the sign of the boundary in t.
void qcd_link(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS], int mu,
              struct qcd_complex u[QCD_COLOURS][QCD_COLOURS]);
// Random spinors, of two kinds; D of the first, and its adjoint, by qcd_reference; a spinor that
// nothing computes.
qcd_source qcd_source_a, qcd_source_b, qcd_source_da, qcd_source_adjoint_da, qcd_poison;
// Mean real part of the trace of the plaquettes over three: 1 for a cold lattice. The part's share.
double qcd_plaquette(const struct qcd_lattice *lattice);
// D psi at one site, by the formula above with the links and spinors of the functions above.
void qcd_reference(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS], bool adjoint,
                   qcd_source *source, double spinor[QCD_SPINOR]);

// ---- Ranks that share a lattice
// -----------------------------------------------------------------------

// The grid of ranks whose parts have the fewest sites beyond their borders, and of such the most
// that need none of those. False where there is none: parts are multiples of 2 sites along x, of 4
// along y, z and t.
bool qcd_choose_grid(const int whole[QCD_DIRECTIONS], int ranks, int count[QCD_DIRECTIONS]);
// The sides of a small lattice that so many ranks can share, along all directions where they
// are 16.
void qcd_least_sides(int ranks, int whole[QCD_DIRECTIONS]);

// ---- The lattice and the solver
// -----------------------------------------------------------------------

// Added up over the model's ranks.
double qcd_add_ranks(const struct qcd_model *model, double value);
// Whether it is so on all of the model's ranks: a rank that is out of memory must not go another
// way than those that wait for it.
bool qcd_all_ranks(const struct qcd_model *model, bool here);

struct qcd_lattice qcd_make_lattice(const struct qcd_model *model, int length, int time);
// Of any sides.
struct qcd_lattice qcd_share_lattice(const struct qcd_model *model,
                                     const int whole[QCD_DIRECTIONS]);
// Sites of the whole lattice.
double qcd_sites(const struct qcd_lattice *lattice);
const char *qcd_begin(struct qcd_run *run, const struct qcd_model *model,
                      struct qcd_lattice lattice, unsigned threads);
void qcd_end(struct qcd_run *run);

// Fields of a solution of M x = b, and how it went.
struct qcd_solver {
    struct qcd_run *run;
    struct qcd_field *b[2]; // by parity
    struct qcd_field *x[2];
    struct qcd_field *work[4];  // double
    struct qcd_field *small[6]; // single
    unsigned iterations;        // of the last solution
    unsigned updates;           // of the residual, in double precision
    double flops;               // of the last solution
};
// Makes the fields, with a random b. False when memory is out; qcd_solver_free is right in either
// case.
bool qcd_solver_make(struct qcd_solver *solver, struct qcd_run *run);
void qcd_solver_free(struct qcd_solver *solver);
// Solves M x = b to a relative residual of the preconditioned normal equations: conjugate gradients
// in single precision, their residual replaced by the true one, in double precision, each time it
// has fallen to a tenth (reliable updates: Clark et al., Comput. Phys. Commun. 181, 2010).
void qcd_solve(struct qcd_solver *solver, double tolerance);
// |b - M x| / |b|, of the full operator, in double precision.
double qcd_residual(struct qcd_solver *solver);

// ---- Checks
// -----------------------------------------------------------------------------------------------

// Fields in double precision that a check of D overwrites.
struct qcd_trial {
    struct qcd_field *in, *got, *want;
};
// D of source a at all sites of a parity against the reference, which is left in trial->want.
void qcd_check_parity(struct qcd_run *run, int parity, bool adjoint, const struct qcd_trial *trial,
                      struct bk_check *check);
// D and its adjoint, of both parities. False when memory is out.
bool qcd_check_dslash(struct qcd_run *run, struct bk_check *check);
// `out` was computed in a precision: all its sites against trial->want.
void qcd_check_measured(struct qcd_run *run, const struct qcd_field *out,
                        enum qcd_precision precision, const struct qcd_trial *trial,
                        struct bk_check *check);
// Everything on a small lattice. NULL, or why it could not.
const char *qcd_check_model(const struct qcd_model *model, unsigned threads,
                            struct bk_check *check);

#ifdef __cplusplus
}
#endif

#endif
