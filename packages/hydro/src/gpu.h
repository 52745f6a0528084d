// The kernels of GPUs, in what CUDA and OpenCL C have in common; the models define the GPU_ macros.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A sweep reads one copy of the state and writes another; beyond the walls it takes what they
// mirror. GPU_BLOCKS says how many groups are to have room at a time: so few registers each has.
//
// `cells` points to a copy's memory, `origin` is the place of cell (0, 0) in it; see hydro.h for
// the layout. step[0] is the time step, step[1] the time. Coordinates are int, places long.
#ifndef GPU_H
#define GPU_H

// Threads of a group, and the cells at each of its ends that it only reads.
#define GPU_GROUP 128
#define GPU_EDGE  2
#define GPU_CELLS (GPU_GROUP - 2 * GPU_EDGE)
// Rows that a thread does along x, and climbs along y.
#define GPU_ROWS  8
#define GPU_CLIMB 64

// Variable `v` of a place; across: the dimension whose momentum counts as that across the faces.
GPU_FUNCTION struct hydro_state gpu_load(GPU_GLOBAL const double *cells, long place, long plane,
                                         int across) {
    struct hydro_state state;
    state.r = cells[place];
    state.u = cells[place + (1 + across) * plane];
    state.v = cells[place + (2 - across) * plane];
    state.p = cells[place + 3 * plane];
    return state;
}

GPU_FUNCTION void gpu_store(GPU_GLOBAL double *cells, long place, long plane, int across,
                            struct hydro_state state) {
    cells[place] = state.r;
    cells[place + (1 + across) * plane] = state.u;
    cells[place + (2 - across) * plane] = state.v;
    cells[place + 3 * plane] = state.p;
}

// A place k of n, or the one that it mirrors beyond the walls, where what goes across them is
// turned.
struct gpu_place {
    int k;
    int turned;
};

GPU_FUNCTION struct gpu_place gpu_within(int k, int n) {
    struct gpu_place place;
    place.turned = 0;
    for (; k < 0 || k >= n; place.turned ^= 1)
        k = k < 0 ? -1 - k : 2 * n - 1 - k;
    place.k = k;
    return place;
}

GPU_FUNCTION struct hydro_state gpu_turn(struct hydro_state state, int turned) {
    state.u = turned ? -state.u : state.u;
    return state;
}

// What the threads of a group tell each other.
GPU_FUNCTION void gpu_put(GPU_SHARED double (*share)[GPU_GROUP], int thread,
                          struct hydro_state state) {
    share[0][thread] = state.r;
    share[1][thread] = state.u;
    share[2][thread] = state.v;
    share[3][thread] = state.p;
}

GPU_FUNCTION struct hydro_state gpu_get(GPU_SHARED double (*share)[GPU_GROUP], int thread) {
    struct hydro_state state;
    state.r = share[0][thread];
    state.u = share[1][thread];
    state.v = share[2][thread];
    state.p = share[3][thread];
    return state;
}

GPU_FUNCTION struct hydro_state gpu_slope(struct hydro_state a, struct hydro_state b,
                                          struct hydro_state c) {
    struct hydro_state slope;
    slope.r = hydro_slope(a.r, b.r, c.r);
    slope.u = hydro_slope(a.u, b.u, c.u);
    slope.v = hydro_slope(a.v, b.v, c.v);
    slope.p = hydro_slope(a.p, b.p, c.p);
    return slope;
}

GPU_FUNCTION struct hydro_state gpu_flux(struct hydro_state left, struct hydro_state right) {
    struct hydro_riemann s = hydro_riemann_start(left, right);
    for (int k = 0; k < HYDRO_RIEMANN_STEPS; k++) {
        double step = hydro_riemann_step(s.p, s.left.r, s.left.p, s.right.r, s.right.p,
                                         s.left.u - s.right.u, s.left_c2, s.right_c2);
        s.p += step;
        if (!hydro_riemann_unsettled(s.p, step))
            break;
    }
    return hydro_flux(hydro_riemann_state(s.left, s.right, s.p));
}

GPU_FUNCTION struct hydro_state gpu_updated(struct hydro_state w, struct hydro_state low,
                                            struct hydro_state high, double dtdx) {
    w.r += (low.r - high.r) * dtdx;
    w.u += (low.u - high.u) * dtdx;
    w.v += (low.v - high.v) * dtdx;
    w.p += (low.p - high.p) * dtdx;
    return w;
}

// The largest value that the threads of a group have: known to thread 0.
GPU_FUNCTION double gpu_most(GPU_SHARED double *share, double own) {
    int t = GPU_THREAD;
    share[t] = own;
    for (int reach = GPU_GROUP / 2; reach > 0; reach /= 2) {
        GPU_BARRIER;
        if (t < reach)
            share[t] = HYDRO_MAX(share[t], share[t + reach]);
    }
    return t == 0 ? share[0] : own;
}

// Each group's fastest wave; groups take rows by turns.
GPU_KERNEL gpu_fastest(GPU_GLOBAL const double *cells, long origin, long plane, long pitch, int nx,
                       int ny, GPU_GLOBAL double *fastest) {
    GPU_LOCAL double share[GPU_GROUP];
    double own = 0;
    for (int j = GPU_GROUP_X; j < ny; j += GPU_GROUPS_X)
        for (int i = GPU_THREAD; i < nx; i += GPU_GROUP) {
            double speed =
                hydro_speed(hydro_primitive(gpu_load(cells, origin + j * pitch + i, plane, 0)));
            own = HYDRO_MAX(speed, own);
        }
    double most = gpu_most(share, own);
    if (GPU_THREAD == 0)
        fastest[GPU_GROUP_X] = most;
}

// One group: sets the time step from `count` groups' fastest waves, unless count is 0, and goes on
// in time. `portion` is 1, or 1/2 for the first step.
GPU_KERNEL gpu_begin_step(GPU_GLOBAL const double *fastest, int count, double dx, double portion,
                          GPU_GLOBAL double *step) {
    GPU_LOCAL double share[GPU_GROUP];
    double own = HYDRO_SMALL_C;
    for (int k = GPU_THREAD; k < count; k += GPU_GROUP)
        own = HYDRO_MAX(fastest[k], own);
    double most = gpu_most(share, own);
    if (GPU_THREAD != 0)
        return;
    if (count > 0)
        step[0] = HYDRO_COURANT * dx / most * portion;
    step[1] += step[0];
}

// Along x: a thread for each cell of a piece of a row, which overlaps the next pieces by the edges;
// GPU_ROWS rows, one after the other. Where `find`, also each group's fastest wave.
GPU_KERNEL GPU_BLOCKS(6)
    gpu_sweep_x(GPU_GLOBAL const double *from, GPU_GLOBAL double *to, long origin, long plane,
                long pitch, int nx, int ny, double per_dx, GPU_GLOBAL const double *step, int find,
                GPU_GLOBAL double *fastest) {
    // By turns: nobody puts anything where another may still get what was put before.
    GPU_LOCAL double share[2][4][GPU_GROUP];
    GPU_LOCAL double share_most[GPU_GROUP];
    int t = GPU_THREAD, i = GPU_GROUP_X * GPU_CELLS + t - GPU_EDGE;
    int before = HYDRO_MAX(t - 1, 0), after = HYDRO_MIN(t + 1, GPU_GROUP - 1);
    int own = t >= GPU_EDGE && t < GPU_GROUP - GPU_EDGE && i < nx;
    int begin = GPU_GROUP_Y * GPU_ROWS, end = HYDRO_MIN(begin + GPU_ROWS, ny);
    if (begin >= ny) // the whole group: of a grid whose third dimension is not full
        return;
    // Threads beyond the row's end compute what nobody reads.
    struct gpu_place within = gpu_within(HYDRO_MIN(i, nx + GPU_EDGE - 1), nx);
    long place = origin + begin * pitch + within.k;
    double dtdx = step[0] * per_dx, most = 0;
    struct hydro_state next = gpu_load(from, place, plane, 0);
    for (int j = begin, turn = 0; j < end; j++, turn ^= 1, place += pitch) {
        struct hydro_state w = gpu_turn(next, within.turned);
        if (j + 1 < end) // on its way while this row is computed
            next = gpu_load(from, place + pitch, plane, 0);
        struct hydro_cell cell = hydro_primitive(w);
        gpu_put(share[turn], t, cell.q);
        GPU_BARRIER;
        struct hydro_state a = gpu_get(share[turn], before), c = gpu_get(share[turn], after);
        struct hydro_faces faces = hydro_trace(cell, gpu_slope(a, cell.q, c), dtdx);
        gpu_put(share[turn ^ 1], t, faces.high);
        GPU_BARRIER;
        struct hydro_state low = gpu_flux(gpu_get(share[turn ^ 1], before), faces.low);
        gpu_put(share[turn], t, low);
        GPU_BARRIER;
        struct hydro_state high = gpu_get(share[turn], after);
        w = gpu_updated(w, low, high, dtdx);
        if (own)
            gpu_store(to, place, plane, 0, w);
        if (own && find) {
            double speed = hydro_speed(hydro_primitive(w));
            most = HYDRO_MAX(speed, most);
        }
    }
    if (!find)
        return;
    most = gpu_most(share_most, most);
    if (t == 0)
        fastest[(long)GPU_GROUP_Y * GPU_GROUPS_X + GPU_GROUP_X] = most;
}

// The cell of column i in row j, or in the row that it mirrors.
GPU_FUNCTION struct hydro_state gpu_load_row(GPU_GLOBAL const double *cells, long origin,
                                             long plane, long pitch, int i, int j, int ny) {
    struct gpu_place row = gpu_within(j, ny);
    return gpu_turn(gpu_load(cells, origin + row.k * pitch + i, plane, 1), row.turned);
}

// Along y: a thread for each column, which climbs GPU_CLIMB rows of it; see sweep_columns of
// sweep.c.
GPU_KERNEL GPU_BLOCKS(4)
    gpu_sweep_y(GPU_GLOBAL const double *from, GPU_GLOBAL double *to, long origin, long plane,
                long pitch, int nx, int ny, double per_dx, GPU_GLOBAL const double *step) {
    int i = GPU_GLOBAL_ID, begin = GPU_GROUP_Y * GPU_CLIMB;
    int end = HYDRO_MIN(begin + GPU_CLIMB, ny);
    if (i >= nx || begin >= ny)
        return;
    double dtdx = step[0] * per_dx;
    long place = origin + (begin - 2) * pitch + i; // of what is written next
    struct hydro_state w_before, w_here, w_after, next, high, low, flux;
    struct hydro_cell before =
        hydro_primitive(gpu_load_row(from, origin, plane, pitch, i, begin - 2, ny));
    w_here = gpu_load_row(from, origin, plane, pitch, i, begin - 1, ny);
    struct hydro_cell here = hydro_primitive(w_here);
    w_before = w_here, high = w_here, flux = w_here; // replaced before they are used
    next = gpu_load_row(from, origin, plane, pitch, i, begin, ny);
    for (int j = begin; j < end + 2; j++, place += pitch) {
        w_after = next;
        if (j < end + 1) // on its way while this row is computed
            next = gpu_load_row(from, origin, plane, pitch, i, j + 1, ny);
        struct hydro_cell after = hydro_primitive(w_after);
        struct hydro_faces faces = hydro_trace(here, gpu_slope(before.q, here.q, after.q), dtdx);
        low = flux;
        if (j > begin)
            flux = gpu_flux(high, faces.low);
        if (j > begin + 1)
            gpu_store(to, place, plane, 1, gpu_updated(w_before, low, flux, dtdx));
        high = faces.high;
        before = here, here = after;
        w_before = w_here, w_here = w_after;
    }
}

#endif
