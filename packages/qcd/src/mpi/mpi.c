// Ranks by MPI: the lattice is split over t, or t and z; faces are exchanged before D is applied.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lanes.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

// A half of the lanes of a face goes to a neighbour: that at the part's border.
enum { HALF = QCD_LANES / 2 };

struct ranks {
    MPI_Comm comm;
    int count[2];        // along z and t
    int neighbour[2][2]; // [z, t][below, above]
    void *send[2];
    void *receive[2];
};

// Ranks along z and t, as many along t or more, so that the parts can be cut in two and stay even.
// False when that can't be.
static bool split(const struct qcd_lattice *lattice, int ranks, int count[2]) {
    int balanced = 1;
    while ((balanced + 1) * (balanced + 1) <= ranks)
        balanced++;
    for (count[0] = balanced; count[0] > 0; count[0]--) {
        count[1] = ranks / count[0];
        if (count[0] * count[1] == ranks && lattice->whole[2] % (4 * count[0]) == 0 &&
            lattice->whole[3] % (4 * count[1]) == 0)
            return true;
    }
    return false;
}

static void choose_part(struct qcd_lattice *lattice) {
    int ranks, rank, count[2];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!split(lattice, ranks, count)) {
        lattice->size[0] = 0; // found by open
        return;
    }
    const int at[2] = {rank / count[1], rank % count[1]};
    for (int k = 0; k < 2; k++) {
        lattice->size[2 + k] = lattice->whole[2 + k] / count[k];
        lattice->first[2 + k] = at[k] * lattice->size[2 + k];
    }
}

static void alone(const struct qcd_run *run, qcd_work *work, void *context) {
    (void)run;
    work(context, 0, 1);
}

static double sum_ranks(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

// Packs the lanes of a face that the neighbour on `side` needs: of its ghosts beyond us, those in
// its lanes at the border; for us, the ghosts' sources in our lanes at the border.
#define DEFINE_PACKING(REAL)                                                                       \
    static void pack_##REAL(const struct qcd_engine *engine, int parity, int d, int side,          \
                            const REAL *restrict field, REAL *restrict buffer) {                   \
        const int bit = 1 << (d - 1), own = side == 0 ? 0 : bit;                                   \
        const int32_t *source = engine->ghost_source[parity] + engine->ghost_first[d][1 - side];   \
        for (size_t i = 0; i < engine->ghost_count[d]; i++)                                        \
            for (int k = 0; k < QCD_SPINOR; k++)                                                   \
                for (int lane = 0; lane < QCD_LANES; lane++)                                       \
                    if ((lane & bit) == own)                                                       \
                        *buffer++ = field[(size_t)source[i] * QCD_SITE_REALS +                     \
                                          (size_t)(k * QCD_LANES + lane)];                         \
    }                                                                                              \
    static void unpack_##REAL(const struct qcd_engine *engine, int d, int side,                    \
                              REAL *restrict field, const REAL *restrict buffer) {                 \
        const int bit = 1 << (d - 1), own = side == 0 ? 0 : bit;                                   \
        size_t first = engine->sites + engine->ghost_first[d][side];                               \
        for (size_t i = 0; i < engine->ghost_count[d]; i++)                                        \
            for (int k = 0; k < QCD_SPINOR; k++)                                                   \
                for (int lane = 0; lane < QCD_LANES; lane++)                                       \
                    if ((lane & bit) == own)                                                       \
                        field[(first + i) * QCD_SITE_REALS + (size_t)(k * QCD_LANES + lane)] =     \
                            *buffer++;                                                             \
    }
DEFINE_PACKING(float)
DEFINE_PACKING(double)

static void exchange_direction(const struct qcd_engine *engine, const struct ranks *ranks,
                               struct qcd_field *field, int parity, int d) {
    const bool single = field->precision == QCD_SINGLE;
    const int count = (int)(engine->ghost_count[d] * QCD_SPINOR * HALF);
    const MPI_Datatype type = single ? MPI_FLOAT : MPI_DOUBLE;
    MPI_Request requests[4];
    for (int side = 0; side < 2; side++) {
        if (single)
            pack_float(engine, parity, d, side, field->values, ranks->send[side]);
        else
            pack_double(engine, parity, d, side, field->values, ranks->send[side]);
        MPI_Irecv(ranks->receive[side], count, type, ranks->neighbour[d - 2][side], 1 - side,
                  ranks->comm, &requests[2 * side]);
        MPI_Isend(ranks->send[side], count, type, ranks->neighbour[d - 2][side], side, ranks->comm,
                  &requests[2 * side + 1]);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < 2; side++)
        if (single)
            unpack_float(engine, d, side, field->values, ranks->receive[side]);
        else
            unpack_double(engine, d, side, field->values, ranks->receive[side]);
}

static void exchange(struct qcd_run *run, struct qcd_field *field, int parity) {
    const struct qcd_engine *engine = run->own;
    const struct ranks *ranks = engine->more;
    for (int k = 0; k < 2; k++)
        if (ranks->count[k] > 1)
            exchange_direction(engine, ranks, field, parity, 2 + k);
}

static void free_ranks(struct ranks *ranks) {
    if (ranks == NULL)
        return;
    for (int side = 0; side < 2; side++) {
        free(ranks->send[side]);
        free(ranks->receive[side]);
    }
    if (ranks->comm != MPI_COMM_NULL)
        MPI_Comm_free(&ranks->comm);
    free(ranks);
}

static void close_mpi(struct qcd_run *run) {
    free_ranks(((struct qcd_engine *)run->own)->more);
    qcd_engine_close(run);
}

static struct ranks *make_ranks(const struct qcd_lattice *lattice) {
    struct ranks *ranks = calloc(1, sizeof *ranks);
    if (ranks == NULL)
        return NULL;
    const int *size = lattice->size;
    const int longer = size[3] > size[2] ? size[3] : size[2];
    size_t face = (size_t)size[0] * (size_t)size[1] * (size_t)longer;
    bool ok = true;
    ranks->comm = MPI_COMM_NULL;
    for (int side = 0; side < 2; side++) {
        // In each direction: half of the face's sites in all lanes, of which half are sent.
        ranks->send[side] = malloc(face * QCD_SPINOR * sizeof(double));
        ranks->receive[side] = malloc(face * QCD_SPINOR * sizeof(double));
        ok = ok && ranks->send[side] != NULL && ranks->receive[side] != NULL;
    }
    if (ok)
        return ranks;
    free_ranks(ranks);
    return NULL;
}

static void connect(const struct qcd_lattice *lattice, struct ranks *ranks) {
    const int periodic[2] = {1, 1};
    for (int k = 0; k < 2; k++)
        ranks->count[k] = lattice->whole[2 + k] / lattice->size[2 + k];
    MPI_Cart_create(MPI_COMM_WORLD, 2, ranks->count, periodic, 0, &ranks->comm);
    for (int k = 0; k < 2; k++)
        MPI_Cart_shift(ranks->comm, k, 1, &ranks->neighbour[k][0], &ranks->neighbour[k][1]);
}

static const char *open_mpi(struct qcd_run *run) {
    if (run->lattice.size[0] == 0)
        return "the lattice can't be split: ranks along z and along t (2 n sites) each must divide "
               "a "
               "quarter of its sites; give other --sizes or another number of ranks";
    struct ranks *ranks = make_ranks(&run->lattice);
    const char *trouble = "a rank is out of memory: give smaller --sizes";
    if (ranks != NULL)
        trouble = qcd_engine_open(run, alone, sum_ranks, exchange, ranks);
    int ok = trouble == NULL;
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (ok) {
        connect(&run->lattice, ranks);
        return NULL;
    }
    if (trouble == NULL)
        qcd_engine_close(run);
    free_ranks(ranks);
    return "a rank is out of memory: give smaller --sizes";
}

const struct qcd_model qcd_mpi = {
    .is = {.name = "mpi", .mpi = true},
    .link_values = QCD_LINK,
    .part = choose_part,
    .open = open_mpi,
    .close = close_mpi,
    .new_field = qcd_engine_new_field,
    .free_field = qcd_engine_free_field,
    .fill = qcd_engine_fill,
    .read = qcd_engine_read,
    .dslash = qcd_engine_dslash,
    .clear = qcd_engine_clear,
    .add = qcd_engine_add,
    .scale_add = qcd_engine_scale_add,
    .copy = qcd_engine_copy,
    .sum = qcd_engine_sum,
};
