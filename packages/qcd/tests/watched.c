// The program, watched: a rank allocates what it said it needs, each application of D sends two
// messages for each direction that ranks share, and faults are planted for its checks to find.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//     QCD_FAULT=NAME QCD_FAULT_SIZE=N qcd-watched OPTION...      options as qcd; exit code 70: not
//     so
//
// The faults: "link": in the lattice that is measured one copy of a link at the border in t has the
// wrong sign. While D is timed: "stale": a site keeps what it had; "single": one number is off in
// single precision; "halo": what is sent to the neighbour on one side comes from that on the other.
#include "lanes.h"

#ifdef BENCH_MPI
#include <mpi.h>
#endif
#include <stdlib.h>
#include <string.h>

#include <stdio.h>

// The linker's option --wrap calls __wrap_x in place of x, which is __real_x.
#define WRAP(result, name, ...)                                                                    \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

static size_t allocated;
static double said; // bytes
static unsigned sent;
static bool measured;
static const struct qcd_run *applied; // D, now

static void must(bool holds, const char *what, double got, double want) {
    if (holds)
        return;
    fprintf(stderr, "qcd-watched: rank %u: %s: %g, not %g\n", bk_rank(), what, got, want);
    exit(70);
}

// Of the last rank, at one size.
static bool planted(const struct qcd_run *run, const char *fault) {
    const char *name = getenv("QCD_FAULT"), *size = getenv("QCD_FAULT_SIZE");
    return name != NULL && size != NULL && strcmp(name, fault) == 0 &&
           run->lattice.whole[0] == atoi(size) && bk_rank() == bk_ranks() - 1;
}

// ---- Memory
// ------------------------------------------------------------------------------------------------

WRAP(void *, malloc, size_t bytes) {
    allocated += bytes;
    return __real_malloc(bytes);
}

WRAP(void *, calloc, size_t count, size_t bytes) {
    allocated += count * bytes;
    return __real_calloc(count, bytes);
}

WRAP(void *, bk_allocate, size_t bytes) {
    allocated += bytes;
    return __real_bk_allocate(bytes);
}

WRAP(bool, bk_memory_suffices, const char *program, uint64_t size, double bytes) {
    said = bytes;
    allocated = 0;
    return __real_bk_memory_suffices(program, size, bytes);
}

WRAP(bool, bk_measure, struct bk_session *session, const struct bk_case *what, bk_kernel *kernel,
     void *context, struct bk_timing *timing) {
    const double bytes = (double)allocated;
    must(fabs(bytes - said) < 0.1 * said, "bytes allocated", bytes, said);
    bk_note(session, "watched: a rank allocated %.0f bytes, %.3f of what was said", bytes,
            bytes / said);
    measured = true;
    const bool ok = __real_bk_measure(session, what, kernel, context, timing);
    measured = false;
    allocated = (size_t)bytes; // not what benchkit keeps
    return ok;
}

// ---- Messages and faults
// -----------------------------------------------------------------------------------

#ifdef BENCH_MPI
WRAP(int, MPI_Isend, const void *buffer, int count, MPI_Datatype type, int rank, int tag,
     MPI_Comm comm, MPI_Request *request) {
    sent++;
    // Where two ranks share a direction, each is the other's neighbour on both sides.
    const bool wrong = measured && planted(applied, "halo");
    return __real_MPI_Isend(buffer, count, type, rank, wrong ? tag ^ 1 : tag, comm, request);
}
#endif

WRAP(void, qcd_engine_dslash, struct qcd_run *run, int parity, bool adjoint, struct qcd_field *out,
     struct qcd_field *in) {
    const struct qcd_engine *engine = run->own;
    const bool single = out->precision == QCD_SINGLE;
    const size_t at = (engine->sites - 1) * QCD_SITE_REALS, size = single ? 4 : 8;
    char *site = (char *)out->values + at * size, old[QCD_SITE_REALS * sizeof(double)];
    unsigned shared = 0;
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        shared += run->lattice.size[d] != run->lattice.whole[d];
    memcpy(old, site, QCD_SITE_REALS * size);
    sent = 0;
    applied = run;
    __real_qcd_engine_dslash(run, parity, adjoint, out, in);
    must(sent == 2 * shared, "messages", sent, 2 * shared);
    if (measured && planted(run, "stale"))
        memcpy(site, old, QCD_SITE_REALS * size);
    if (measured && single && planted(run, "single"))
        ((float *)out->values)[at] += 1e-4F;
}

// Behind the first even site in t.
WRAP(const char *, qcd_engine_open, struct qcd_run *run, qcd_team *team) {
    const char *trouble = __real_qcd_engine_open(run, team);
    if (trouble != NULL || said == 0 || !planted(run, "link"))
        return trouble;
    double *links = ((struct qcd_engine *)run->own)->links[QCD_DOUBLE][QCD_EVEN];
    for (int k = 0; k < QCD_LINK; k++)
        links[(7 * QCD_LINK + k) * QCD_LANES] *= -1;
    return NULL;
}
