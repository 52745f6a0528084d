// The scheme on a grid: a strip of lanes at a time, whose values stay in the cache, and nothing in
// between written to memory. Along x the lanes of a strip are the cells of a row; along y they are
// columns, and the strip climbs them. So both directions use the same loops, which vectorise.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include "godunov.h"

#define LANES  HYDRO_STRIP
#define BLOCK  16 // lanes whose Riemann problems are iterated together, until all have settled
#define MARGIN 8  // lanes before and after a strip's own, in its arrays
#define STRIDE (LANES + 2 * MARGIN)

// Variables of struct hydro_state, struct hydro_cell as arrays of lanes.
enum { R, U, V, P, INVERSE_R, CELL_VALUES };
enum { STATE_VALUES = P + 1 };

static inline struct hydro_state load_state(const double *restrict from, ptrdiff_t lane) {
    return (struct hydro_state){from[R * STRIDE + lane], from[U * STRIDE + lane],
                                from[V * STRIDE + lane], from[P * STRIDE + lane]};
}

static inline void store_state(double *restrict to, ptrdiff_t lane, struct hydro_state state) {
    to[R * STRIDE + lane] = state.r;
    to[U * STRIDE + lane] = state.u;
    to[V * STRIDE + lane] = state.v;
    to[P * STRIDE + lane] = state.p;
}

// A strip's place: pointers to the four variables of its first cell, with the momentum across the
// faces second.
struct place {
    double *variable[HYDRO_VARIABLES];
};

static void primitive_lanes(ptrdiff_t n, const struct place *place, double *restrict cells) {
    const double *restrict r = place->variable[0];
    const double *restrict u = place->variable[1];
    const double *restrict v = place->variable[2];
    const double *restrict e = place->variable[3];
    for (ptrdiff_t i = 0; i < n; i++) {
        struct hydro_cell cell = hydro_primitive((struct hydro_state){r[i], u[i], v[i], e[i]});
        store_state(cells, i, cell.q);
        cells[INVERSE_R * STRIDE + i] = cell.inverse_r;
    }
}

static void trace_lanes(ptrdiff_t n, double dtdx, const double *restrict before,
                        const double *restrict here, const double *restrict after,
                        double *restrict low, double *restrict high) {
    for (ptrdiff_t i = 0; i < n; i++) {
        struct hydro_state a = load_state(before, i), b = load_state(here, i),
                           c = load_state(after, i);
        struct hydro_cell cell = {b, here[INVERSE_R * STRIDE + i]};
        struct hydro_state slope = {hydro_slope(a.r, b.r, c.r), hydro_slope(a.u, b.u, c.u),
                                    hydro_slope(a.v, b.v, c.v), hydro_slope(a.p, b.p, c.p)};
        struct hydro_faces faces = hydro_trace(cell, slope, dtdx);
        store_state(low, i, faces.low);
        store_state(high, i, faces.high);
    }
}

// The Riemann problems of a block of lanes.
struct problems {
    double left_r[BLOCK], left_u[BLOCK], left_v[BLOCK], left_p[BLOCK], left_c2[BLOCK];
    double right_r[BLOCK], right_u[BLOCK], right_v[BLOCK], right_p[BLOCK], right_c2[BLOCK];
    double p[BLOCK];
    double unsettled[BLOCK]; // 1 or 0
};

static inline void start_block(struct problems *restrict s, const double *restrict left,
                               const double *restrict right) {
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        struct hydro_riemann one = hydro_riemann_start(load_state(left, i), load_state(right, i));
        s->left_r[i] = one.left.r, s->left_u[i] = one.left.u;
        s->left_v[i] = one.left.v, s->left_p[i] = one.left.p;
        s->right_r[i] = one.right.r, s->right_u[i] = one.right.u;
        s->right_v[i] = one.right.v, s->right_p[i] = one.right.p;
        s->left_c2[i] = one.left_c2, s->right_c2[i] = one.right_c2;
        s->p[i] = one.p;
        s->unsettled[i] = 1;
    }
}

// A lane that has settled keeps its pressure, so that its result does not depend on its neighbours.
static inline double iterate_block(struct problems *restrict s) {
    double any = 0;
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        double p = s->p[i];
        double step =
            hydro_riemann_step(p, s->left_r[i], s->left_p[i], s->right_r[i], s->right_p[i],
                               s->left_u[i] - s->right_u[i], s->left_c2[i], s->right_c2[i]);
        double going = s->unsettled[i];
        p = going > 0 ? p + step : p;
        going = hydro_riemann_unsettled(p, step) ? going : 0;
        s->p[i] = p;
        s->unsettled[i] = going;
    }
    for (ptrdiff_t i = 0; i < BLOCK; i++)
        any += s->unsettled[i];
    return any;
}

static inline void finish_block(const struct problems *restrict s, double *restrict flux) {
    for (ptrdiff_t i = 0; i < BLOCK; i++) {
        struct hydro_state left = {s->left_r[i], s->left_u[i], s->left_v[i], s->left_p[i]};
        struct hydro_state right = {s->right_r[i], s->right_u[i], s->right_v[i], s->right_p[i]};
        store_state(flux, i, hydro_flux(hydro_riemann_state(left, right, s->p[i])));
    }
}

// Makes lanes [n, a multiple of BLOCK) equal to the last, so that whole blocks can be computed.
static void pad_lanes(ptrdiff_t n, double *states) {
    for (ptrdiff_t i = n; i % BLOCK != 0; i++)
        store_state(states, i, load_state(states, n - 1));
}

// Fluxes between the states `left` and `right` of n lanes. Lanes beyond n may be overwritten, up to
// a multiple of BLOCK.
static void flux_lanes(ptrdiff_t n, double *left, double *right, double *flux) {
    pad_lanes(n, left);
    pad_lanes(n, right);
    for (ptrdiff_t i = 0; i < n; i += BLOCK) {
        struct problems s;
        start_block(&s, left + i, right + i);
        for (int step = 0; step < HYDRO_RIEMANN_STEPS; step++)
            if (!(iterate_block(&s) > 0))
                break;
        finish_block(&s, flux + i);
    }
}

static void update_lanes(ptrdiff_t n, double dtdx, const struct place *place,
                         const double *restrict low, const double *restrict high) {
    for (int k = 0; k < HYDRO_VARIABLES; k++) {
        double *restrict cells = place->variable[k];
        for (ptrdiff_t i = 0; i < n; i++)
            cells[i] += (low[k * STRIDE + i] - high[k * STRIDE + i]) * dtdx;
    }
}

// Arrays of a strip, of STRIDE lanes each.
struct strip {
    double *cells[3]; // along x: one array; along y: those of three rows, by turns
    double *low;
    double *high[2];
    double *flux[2];
};

static struct strip make_strip(double *scratch) {
    struct strip strip;
    double *next = scratch;
    for (int k = 0; k < 3; k++, next += CELL_VALUES * STRIDE)
        strip.cells[k] = next + MARGIN;
    strip.low = next + MARGIN;
    for (int k = 0; k < 2; k++) {
        strip.high[k] = strip.low + (1 + k) * STATE_VALUES * STRIDE;
        strip.flux[k] = strip.low + (3 + k) * STATE_VALUES * STRIDE;
    }
    return strip;
}
_Static_assert((3 * CELL_VALUES + 5 * STATE_VALUES) * STRIDE * sizeof(double) <=
                   HYDRO_SCRATCH_BYTES,
               "a strip fits the scratch memory");

// Cells of a piece, or beside it, that lie together: [begin, end) along the sweep.
struct part {
    struct hydro_layers layers;
    ptrdiff_t begin;
    ptrdiff_t end;
};

// A sweep of a piece. What the grid has beside the piece is of the same part.
struct sweep {
    unsigned dimension;
    double dtdx;
    struct part parts[3]; // before the piece, its own, after it
    struct strip strip;
};

static struct hydro_layers layers_of(const struct hydro_grid *grid, unsigned dimension,
                                     ptrdiff_t begin) {
    ptrdiff_t step = dimension == 0 ? 1 : grid->pitch;
    return (struct hydro_layers){grid->cells + begin * step, grid->pitch, grid->plane};
}

static struct sweep make_sweep(const struct hydro_grid *grid, unsigned dimension, double dt,
                               const struct hydro_piece *piece, double *scratch) {
    const ptrdiff_t low = piece->begin[dimension] - HYDRO_GHOSTS;
    const ptrdiff_t high = piece->end[dimension] + HYDRO_GHOSTS;
    const ptrdiff_t begin = low + (piece->before.cells == NULL ? 0 : HYDRO_GHOSTS);
    const ptrdiff_t end = high - (piece->after.cells == NULL ? 0 : HYDRO_GHOSTS);
    return (struct sweep){dimension,
                          dt / grid->dx,
                          {{piece->before, low, begin},
                           {layers_of(grid, dimension, begin), begin, end},
                           {piece->after, end, high}},
                          make_strip(scratch)};
}

// Of cell `along` the sweep in the row, or column, `across`.
static struct place find_place(const struct sweep *sweep, ptrdiff_t along, ptrdiff_t across) {
    const struct part *part = sweep->parts;
    while (along >= part->end)
        part++;
    const struct hydro_layers *layers = &part->layers;
    bool x = sweep->dimension == 0;
    double *cell = layers->cells + (x ? across : along - part->begin) * layers->pitch +
                   (x ? along - part->begin : across);
    ptrdiff_t second = x ? 1 : 2;
    return (struct place){{cell, cell + second * layers->plane, cell + (3 - second) * layers->plane,
                           cell + 3 * layers->plane}};
}

// Along x: cells [first, first + n) of row j, of whatever part.
static void primitive_row(const struct sweep *sweep, ptrdiff_t j, ptrdiff_t first, ptrdiff_t n,
                          double *cells) {
    for (const struct part *part = sweep->parts; part < sweep->parts + 3; part++) {
        ptrdiff_t begin = HYDRO_MAX(first, part->begin), end = HYDRO_MIN(first + n, part->end);
        if (begin >= end)
            continue;
        struct place place = find_place(sweep, begin, j);
        primitive_lanes(end - begin, &place, cells + (begin - first));
    }
}

// Lanes -2 and on of the cell arrays are the cells before the strip: already read, and since then
// overwritten in the grid.
static void keep_last_cells(ptrdiff_t n, double *cells) {
    for (int k = 0; k < CELL_VALUES; k++)
        for (ptrdiff_t i = -2; i < 2; i++)
            cells[k * STRIDE + i] = cells[k * STRIDE + i + n];
}

// Along x, cells [begin, end) of row j. Lane i is cell (first + i): cells in lanes -2..n+1, traced
// ones in -1..n, flux i at the face before cell i.
static void sweep_row(const struct sweep *sweep, ptrdiff_t j, ptrdiff_t begin, ptrdiff_t end) {
    const struct strip *strip = &sweep->strip;
    double *cells = strip->cells[0], *low = strip->low, *high = strip->high[0];
    double *flux = strip->flux[0], dtdx = sweep->dtdx;
    primitive_row(sweep, j, begin - 2, 4, cells - 2);
    // n cells have n + 1 faces.
    for (ptrdiff_t first = begin; first < end; first += LANES - 1) {
        ptrdiff_t n = HYDRO_MIN(end - first, LANES - 1);
        primitive_row(sweep, j, first + 2, n, cells + 2);
        trace_lanes(n + 2, dtdx, cells - 2, cells - 1, cells, low - 1, high - 1);
        // Left of face i is the high face of cell i - 1: shifted, so that padding finds its place.
        flux_lanes(n + 1, high - 1, low, flux);
        struct place place = find_place(sweep, first, j);
        update_lanes(n, dtdx, &place, flux, flux + 1);
        keep_last_cells(n, cells);
    }
}

// Along y, rows [begin, end) of columns [first, first + n). Row j's cells are known, then row j - 1
// is traced, then the faces below row j - 1 have their fluxes, then row j - 2 is updated.
static void sweep_columns(const struct sweep *sweep, ptrdiff_t begin, ptrdiff_t end,
                          ptrdiff_t first, ptrdiff_t n) {
    const struct strip *strip = &sweep->strip;
    double *before = strip->cells[0], *here = strip->cells[1], *after = strip->cells[2];
    double *high = strip->high[0], *next_high = strip->high[1];
    double *flux = strip->flux[0], *next_flux = strip->flux[1], dtdx = sweep->dtdx;
    struct place place = find_place(sweep, begin - 2, first);
    primitive_lanes(n, &place, before);
    place = find_place(sweep, begin - 1, first);
    primitive_lanes(n, &place, here);
    for (ptrdiff_t j = begin; j < end + 2; j++) {
        place = find_place(sweep, j, first);
        primitive_lanes(n, &place, after);
        trace_lanes(n, dtdx, before, here, after, strip->low, next_high);
        if (j > begin)
            flux_lanes(n, high, strip->low, next_flux);
        if (j > begin + 1) {
            place = find_place(sweep, j - 2, first);
            update_lanes(n, dtdx, &place, flux, next_flux);
        }
        double *done = before;
        before = here, here = after, after = done;
        done = high, high = next_high, next_high = done;
        done = flux, flux = next_flux, next_flux = done;
    }
}

// A wall mirrors the cells before it, here of rows or columns [begin, end); what moves across it
// comes back.
static void mirror(const struct hydro_grid *grid, unsigned dimension, ptrdiff_t ghost,
                   ptrdiff_t source, ptrdiff_t begin, ptrdiff_t end) {
    ptrdiff_t step = dimension == 0 ? grid->pitch : 1;
    ptrdiff_t across = dimension == 0 ? 1 : grid->pitch;
    for (ptrdiff_t v = 0; v < HYDRO_VARIABLES; v++) {
        double sign = v == (ptrdiff_t)dimension + 1 ? -1 : 1;
        double *to = grid->cells + v * grid->plane + ghost * across;
        const double *from = grid->cells + v * grid->plane + source * across;
        for (ptrdiff_t i = begin; i < end; i++)
            to[i * step] = sign * from[i * step];
    }
}

// Fills the ghost cells of a piece's rows, or columns, at the walls that it reaches.
static void fill_walls(const struct hydro_grid *grid, unsigned dimension,
                       const struct hydro_piece *piece) {
    const ptrdiff_t first = grid->first[dimension], n = piece->end[dimension];
    const ptrdiff_t begin = piece->begin[1 - dimension], end = piece->end[1 - dimension];
    for (ptrdiff_t layer = 0; layer < HYDRO_GHOSTS; layer++) {
        if (first + piece->begin[dimension] == 0)
            mirror(grid, dimension, -1 - layer, layer, begin, end);
        if (first + n == grid->whole[dimension])
            mirror(grid, dimension, n + layer, n - 1 - layer, begin, end);
    }
}

struct hydro_piece hydro_whole(const struct hydro_grid *grid) {
    return (struct hydro_piece){.end = {grid->nx, grid->ny}};
}

void hydro_sweep(const struct hydro_grid *grid, unsigned dimension, double dt,
                 const struct hydro_piece *piece, double *scratch) {
    const ptrdiff_t *begin = piece->begin, *end = piece->end;
    struct sweep sweep = make_sweep(grid, dimension, dt, piece, scratch);
    fill_walls(grid, dimension, piece);
    if (dimension == 0)
        for (ptrdiff_t j = begin[1]; j < end[1]; j++)
            sweep_row(&sweep, j, begin[0], end[0]);
    else
        for (ptrdiff_t i = begin[0]; i < end[0]; i += LANES)
            sweep_columns(&sweep, begin[1], end[1], i, HYDRO_MIN(end[0] - i, LANES));
}

static double fastest_in_row(const struct hydro_grid *grid, ptrdiff_t j) {
    const double *restrict r = grid->cells + j * grid->pitch, *restrict u = r + grid->plane;
    const double *restrict v = u + grid->plane, *restrict e = v + grid->plane;
    double fastest = 0;
    for (ptrdiff_t i = 0; i < grid->nx; i++) {
        double speed = hydro_speed(hydro_primitive((struct hydro_state){r[i], u[i], v[i], e[i]}));
        fastest = HYDRO_MAX(speed, fastest);
    }
    return fastest;
}

double hydro_fastest(const struct hydro_grid *grid, ptrdiff_t begin, ptrdiff_t end) {
    double fastest = 0;
    for (ptrdiff_t j = begin; j < end; j++) {
        double in_row = fastest_in_row(grid, j);
        fastest = HYDRO_MAX(in_row, fastest);
    }
    return fastest;
}

double hydro_time_step(const struct hydro_run *run, double fastest) {
    double dt = HYDRO_COURANT * run->grid.dx / HYDRO_MAX(fastest, HYDRO_SMALL_C);
    return run->steps == 0 ? dt / 2 : dt;
}
