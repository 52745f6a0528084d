// Ranks by MPI, each with threads: the lattice is split over up to four directions. The faces of a
// part travel while D is applied within it. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lanes.h"

#include <mpi.h>
#include <stdlib.h>

#ifdef BENCH_OPENMP
#define TEAM     qcd_threads
#define THREADED true
#else
#define TEAM     qcd_alone
#define THREADED false
#endif

// Of each direction and side: what goes to that neighbour, and what comes from it.
struct ranks {
    MPI_Comm comm;
    int neighbour[QCD_DIRECTIONS][2];
    void *send[QCD_DIRECTIONS][2];
    void *receive[QCD_DIRECTIONS][2];
    MPI_Request requests[4 * QCD_DIRECTIONS];
    int request_count;
};

static void choose_part(struct qcd_lattice *lattice) {
    int count[QCD_DIRECTIONS];
    if (!qcd_choose_grid(lattice->whole, (int)bk_ranks(), count)) {
        lattice->size[0] = 0;
        return;
    }
    for (int d = QCD_DIRECTIONS - 1, rest = (int)bk_rank(); d >= 0; rest /= count[d--]) {
        lattice->size[d] = lattice->whole[d] / count[d];
        lattice->first[d] = rest % count[d] * lattice->size[d];
    }
}

static double add_ranks(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

// ---- Faces

// Lanes of a face that are at the part's border: half of them, but for x, which no lanes share.
static int border_lanes(int d) {
    return d == 0 ? QCD_LANES : QCD_LANES / 2;
}

// Packs sites [from, to) of a face that the neighbour on `side` needs: of its ghosts beyond us,
// those in its lanes at the border; for us, the ghosts' sources in our lanes at the border.
#define DEFINE_PACKING(REAL)                                                                       \
    static void pack_##REAL(const struct qcd_engine *engine, int parity, int d, int side,          \
                            const REAL *restrict field, REAL *restrict buffer,                     \
                            struct qcd_range sites) {                                              \
        const int bit = d == 0 ? 0 : 1 << (d - 1), own = side == 0 ? 0 : bit;                      \
        const int32_t *source = engine->ghost_source[parity] + engine->ghost_first[d][1 - side];   \
        buffer += sites.from * (size_t)(QCD_SPINOR * border_lanes(d));                             \
        for (size_t i = sites.from; i < sites.to; i++)                                             \
            for (int k = 0; k < QCD_SPINOR; k++)                                                   \
                for (int lane = 0; lane < QCD_LANES; lane++)                                       \
                    if ((lane & bit) == own)                                                       \
                        *buffer++ = field[(size_t)source[i] * QCD_SITE_REALS +                     \
                                          (size_t)(k * QCD_LANES + lane)];                         \
    }                                                                                              \
    static void unpack_##REAL(const struct qcd_engine *engine, int d, int side,                    \
                              REAL *restrict field, const REAL *restrict buffer,                   \
                              struct qcd_range sites) {                                            \
        const int bit = d == 0 ? 0 : 1 << (d - 1), own = side == 0 ? 0 : bit;                      \
        const size_t first = engine->sites + engine->ghost_first[d][side];                         \
        buffer += sites.from * (size_t)(QCD_SPINOR * border_lanes(d));                             \
        for (size_t i = sites.from; i < sites.to; i++)                                             \
            for (int k = 0; k < QCD_SPINOR; k++)                                                   \
                for (int lane = 0; lane < QCD_LANES; lane++)                                       \
                    if ((lane & bit) == own)                                                       \
                        field[(first + i) * QCD_SITE_REALS + (size_t)(k * QCD_LANES + lane)] =     \
                            *buffer++;                                                             \
    }
DEFINE_PACKING(float)
DEFINE_PACKING(double)

struct faces {
    const struct qcd_engine *engine;
    struct qcd_field *field;
    int parity;
    // What becomes of sites of one of them.
    void (*pass)(const struct faces *faces, int d, int side, struct qcd_range sites);
};

static void pack(const struct faces *faces, int d, int side, struct qcd_range sites) {
    const struct ranks *ranks = faces->engine->more;
    void *values = faces->field->values, *buffer = ranks->send[d][side];
    if (faces->field->precision == QCD_SINGLE)
        pack_float(faces->engine, faces->parity, d, side, values, buffer, sites);
    else
        pack_double(faces->engine, faces->parity, d, side, values, buffer, sites);
}

static void unpack(const struct faces *faces, int d, int side, struct qcd_range sites) {
    const struct ranks *ranks = faces->engine->more;
    void *values = faces->field->values, *buffer = ranks->receive[d][side];
    if (faces->field->precision == QCD_SINGLE)
        unpack_float(faces->engine, d, side, values, buffer, sites);
    else
        unpack_double(faces->engine, d, side, values, buffer, sites);
}

// This part's sites of all faces.
static void pass_part(void *context, unsigned part, unsigned parts) {
    const struct faces *faces = context;
    const struct qcd_engine *engine = faces->engine;
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        for (int side = 0; side < 2 && engine->shared[d]; side++)
            faces->pass(faces, d, side, qcd_share(engine->ghost_count[d], 1, part, parts));
}

static void send(struct qcd_run *run, struct qcd_field *field, int parity) {
    const struct qcd_engine *engine = run->own;
    struct ranks *ranks = engine->more;
    const MPI_Datatype type = field->precision == QCD_SINGLE ? MPI_FLOAT : MPI_DOUBLE;
    MPI_Request *request = ranks->requests;
    engine->team(run, pass_part, &(struct faces){engine, field, parity, pack});
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        for (int side = 0; side < 2 && engine->shared[d]; side++) {
            const int count = (int)engine->ghost_count[d] * QCD_SPINOR * border_lanes(d);
            const int rank = ranks->neighbour[d][side], going = 2 * d + side;
            MPI_Irecv(ranks->receive[d][side], count, type, rank, 2 * d + 1 - side, ranks->comm,
                      request++);
            MPI_Isend(ranks->send[d][side], count, type, rank, going, ranks->comm, request++);
        }
    ranks->request_count = (int)(request - ranks->requests);
}

static void travel(struct qcd_run *run) {
    struct ranks *ranks = ((struct qcd_engine *)run->own)->more;
    int all;
    MPI_Testall(ranks->request_count, ranks->requests, &all, MPI_STATUSES_IGNORE);
}

static void receive(struct qcd_run *run, struct qcd_field *field) {
    const struct qcd_engine *engine = run->own;
    struct ranks *ranks = engine->more;
    MPI_Waitall(ranks->request_count, ranks->requests, MPI_STATUSES_IGNORE);
    engine->team(run, pass_part, &(struct faces){.engine = engine, .field = field, .pass = unpack});
}

// ---- Ranks

static void free_ranks(struct ranks *ranks) {
    if (ranks == NULL)
        return;
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        for (int side = 0; side < 2; side++) {
            free(ranks->send[d][side]);
            free(ranks->receive[d][side]);
        }
    if (ranks->comm != MPI_COMM_NULL)
        MPI_Comm_free(&ranks->comm);
    free(ranks);
}

static void close_mpi(struct qcd_run *run) {
    free_ranks(((struct qcd_engine *)run->own)->more);
    qcd_engine_close(run);
}

static bool make_buffers(const struct qcd_engine *engine, struct ranks *ranks) {
    bool ok = true;
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        for (int side = 0; side < 2 && engine->shared[d]; side++) {
            const size_t reals = engine->ghost_count[d] * (size_t)(QCD_SPINOR * border_lanes(d));
            ranks->send[d][side] = malloc(reals * sizeof(double));
            ranks->receive[d][side] = malloc(reals * sizeof(double));
            ok = ok && ranks->send[d][side] != NULL && ranks->receive[d][side] != NULL;
        }
    return ok;
}

static void connect(const struct qcd_lattice *lattice, struct ranks *ranks) {
    const int periodic[QCD_DIRECTIONS] = {1, 1, 1, 1};
    int count[QCD_DIRECTIONS];
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        count[d] = lattice->whole[d] / lattice->size[d];
    MPI_Cart_create(MPI_COMM_WORLD, QCD_DIRECTIONS, count, periodic, 0, &ranks->comm);
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        MPI_Cart_shift(ranks->comm, d, 1, &ranks->neighbour[d][0], &ranks->neighbour[d][1]);
}

// The engine with buffers for its faces. Without ranks nothing travels.
static bool open_engine(struct qcd_run *run) {
    if (qcd_engine_open(run, TEAM) != NULL)
        return false;
    struct qcd_engine *engine = run->own;
    struct ranks *ranks = calloc(1, sizeof *ranks);
    engine->more = ranks;
    if (ranks == NULL)
        return false;
    ranks->comm = MPI_COMM_NULL;
    if (bk_ranks() > 1) {
        engine->send = send;
        engine->travel = travel;
        engine->receive = receive;
    }
    return make_buffers(engine, ranks);
}

static const char *open_mpi(struct qcd_run *run) {
    if (qcd_all_ranks(run->model, open_engine(run))) {
        connect(&run->lattice, ((struct qcd_engine *)run->own)->more);
        return NULL;
    }
    if (run->own != NULL)
        close_mpi(run);
    return "a rank is out of memory: give smaller --sizes";
}

const struct qcd_model qcd_mpi = {
    .is = {.name = "mpi", .threaded = THREADED, .mpi = true},
    .link_values = QCD_LINK,
    .part = choose_part,
    .add_ranks = add_ranks,
    .open = open_mpi,
    .close = close_mpi,
    .new_field = qcd_engine_new_field,
    .free_field = qcd_engine_free_field,
    .fill = qcd_engine_fill,
    .compare = qcd_engine_compare,
    .check_links = qcd_engine_check_links,
    .dslash = qcd_engine_dslash,
    .clear = qcd_engine_clear,
    .add = qcd_engine_add,
    .scale_add = qcd_engine_scale_add,
    .copy = qcd_engine_copy,
    .sum = qcd_engine_sum,
};
