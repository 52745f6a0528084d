// The solution on an NVIDIA GPU: the same algorithm as on the host, on the device's memory,
// its products by cuBLAS, the rest by our own kernels. SPDX-License-Identifier: Apache-2.0 OR MIT
//
// While one stream brings the columns right of a panel up to date, another does so with the next
// panel's and factors it.
#include "bk_cuda.h"
#include "kernels.h"
#include "linpack.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <string.h>

// Work that goes on by itself.
struct lane {
    cudaStream_t stream;
    cublasHandle_t cublas;
    cudaEvent_t done; // the last of it that another waits for
};

// What one size needs on the device: there is one at a time.
static struct {
    linpack_gpu lu;  // of the system that is solved
    double *systems; // [copies][n + 1][stride]
    double *x;       // [n]
    int *row;        // [n]: for linpack_gpu_compose
    double *top;     // [n + 1][nb]: rows of U, before they are solved for
    // Of a panel and of the next:
    int *moves[2];      // of its leaves
    int *composed[2];   // of leaves of LINPACK_GPU_MOST columns
    double *inverse[2]; // [nb][nb]: of its triangle
    struct lane panel, rest;
    bool ok;
} gpu;

static void note_cuda(cudaError_t error, const char *what) {
    if (error != cudaSuccess && gpu.ok)
        fprintf(stderr, "jm-linpack: cuda: %s: %s; see nvidia-smi, or give smaller --sizes\n", what,
                cudaGetErrorString(error));
    gpu.ok = gpu.ok && error == cudaSuccess;
}

static void note_cublas(cublasStatus_t status, const char *what) {
    if (status != CUBLAS_STATUS_SUCCESS && gpu.ok)
        fprintf(stderr, "jm-linpack: cublas: %s: %s\n", what, cublasGetStatusString(status));
    gpu.ok = gpu.ok && status == CUBLAS_STATUS_SUCCESS;
}

// ---- Memory and streams

static void *allocate(size_t bytes, const char *what) {
    void *memory = NULL;
    if (gpu.ok)
        note_cuda(cudaMalloc(&memory, bytes), what);
    return memory;
}

static struct lane new_lane(int priority) {
    struct lane lane = {0};
    note_cuda(cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, priority),
              "cudaStreamCreate");
    note_cuda(cudaEventCreateWithFlags(&lane.done, cudaEventDisableTiming), "cudaEventCreate");
    if (gpu.ok)
        note_cublas(cublasCreate(&lane.cublas), "cublasCreate");
    if (gpu.ok)
        note_cublas(cublasSetStream(lane.cublas, lane.stream), "cublasSetStream");
    return lane;
}

static void free_lane(struct lane *lane) {
    if (lane->cublas != NULL)
        cublasDestroy(lane->cublas);
    if (lane->done != NULL)
        cudaEventDestroy(lane->done);
    if (lane->stream != NULL)
        cudaStreamDestroy(lane->stream);
}

static size_t leaves(size_t width) {
    return (width + gpu.lu.leaf - 1) / gpu.lu.leaf;
}

static bool begin(struct linpack_work *work) {
    gpu.ok = true;
    gpu.lu = (linpack_gpu){.n = work->n, .stride = work->stride};
    if (!linpack_gpu_choose(&gpu.lu, bk_cuda_number())) {
        fprintf(stderr, "jm-linpack: cuda: too many rows for this GPU: give smaller --sizes\n");
        return gpu.ok = false;
    }
    gpu.systems =
        allocate(work->copies * work->columns * work->stride * sizeof(double), "memory for A");
    gpu.x = allocate(work->n * sizeof(double), "memory for x");
    const size_t mail_bytes = linpack_gpu_mail_bytes(&gpu.lu);
    gpu.lu.mail = allocate(mail_bytes, "memory for pivots");
    gpu.row = allocate(work->n * sizeof(int), "memory for pivots");
    gpu.top = allocate((work->n + 1) * work->nb * sizeof(double), "memory for U");
    for (size_t i = 0; i < 2; i++) {
        const size_t bytes = leaves(work->nb) * 2 * gpu.lu.leaf * sizeof(int);
        gpu.moves[i] = allocate(bytes, "memory for pivots");
        gpu.composed[i] = allocate(bytes, "memory for pivots");
        gpu.inverse[i] = allocate(work->nb * work->nb * sizeof(double), "memory for U");
    }
    if (gpu.ok)
        note_cuda(cudaMemset(gpu.lu.mail, 0, mail_bytes), "cudaMemset");
    int low = 0, high = 0;
    note_cuda(cudaDeviceGetStreamPriorityRange(&low, &high), "priorities");
    gpu.panel = new_lane(high);
    gpu.rest = new_lane(low);
    note_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); // the lanes wait for no memset
    return gpu.ok;
}

static bool end(struct linpack_work *work) {
    (void)work;
    free_lane(&gpu.panel);
    free_lane(&gpu.rest);
    cudaFree(gpu.systems);
    cudaFree(gpu.x);
    cudaFree(gpu.lu.mail);
    cudaFree(gpu.row);
    cudaFree(gpu.top);
    for (size_t i = 0; i < 2; i++) {
        cudaFree(gpu.moves[i]);
        cudaFree(gpu.composed[i]);
        cudaFree(gpu.inverse[i]);
    }
    const bool ok = gpu.ok;
    memset(&gpu, 0, sizeof gpu);
    return ok;
}

// Makes the systems on the device.
static void prepare(void *context, uint64_t copies) {
    struct linpack_work *work = context;
    const size_t doubles = work->columns * work->stride;
    for (size_t copy = 0; copy < copies && gpu.ok; copy++)
        note_cuda(linpack_gpu_fill(gpu.systems + copy * doubles, work->n, work->stride,
                                   work->columns, work->seed, gpu.panel.stream),
                  "kernel fill");
    note_cuda(cudaStreamSynchronize(gpu.panel.stream), "kernel fill");
    linpack_begin_anew(work);
}

// ---- The decomposition

// A matrix' part, by columns.
struct part {
    double *first;
    size_t stride;
};

static struct part at(size_t row, size_t column) {
    return (struct part){gpu.lu.a + column * gpu.lu.stride + row, gpu.lu.stride};
}

static struct part of(struct part whole, size_t row, size_t column) {
    return (struct part){whole.first + column * whole.stride + row, whole.stride};
}

// C = factor A B + keep C; C is m x n, A m x k.
static void multiply(const struct lane *lane, size_t m, size_t n, size_t k, double factor,
                     struct part a, struct part b, double keep, struct part c) {
    if (m > 0 && n > 0)
        note_cublas(cublasDgemm(lane->cublas, CUBLAS_OP_N, CUBLAS_OP_N, (int)m, (int)n, (int)k,
                                &factor, a.first, (int)a.stride, b.first, (int)b.stride, &keep,
                                c.first, (int)c.stride),
                    "cublasDgemm");
}

// B = L^-1 B; L is m x m, B m x n.
static void solve_triangle(const struct lane *lane, size_t m, size_t n, struct part l,
                           struct part b) {
    if (m <= LINPACK_GPU_TRIANGLE) {
        note_cuda(linpack_gpu_solve(m, n, l.first, l.stride, b.first, b.stride, lane->stream),
                  "kernel solve");
        return;
    }
    const size_t top = (m / LINPACK_GPU_TRIANGLE + 1) / 2 * LINPACK_GPU_TRIANGLE;
    solve_triangle(lane, top, n, l, b);
    multiply(lane, m - top, n, top, -1, of(l, top, 0), b, 1, of(b, top, 0));
    solve_triangle(lane, m - top, n, of(l, top, top), of(b, top, 0));
}

// What a panel leaves for the columns right of it.
struct panel {
    size_t first, width; // columns
    int *moves, *composed;
    struct part inverse;
};

static struct panel panel_at(const struct linpack_work *work, size_t number) {
    const size_t first = number * work->nb, left = work->n - first, side = number % 2;
    const size_t width = left < work->nb ? left : work->nb;
    return (struct panel){
        first, width, gpu.moves[side], gpu.composed[side], {gpu.inverse[side], width}};
}

// Factors `width` of the panel's columns, from d on.
static void factor_columns(const struct panel *panel, size_t d, size_t width) {
    const struct lane *lane = &gpu.panel;
    const size_t leaf = gpu.lu.leaf;
    if (!gpu.ok) // there are no moves
        return;
    if (width <= leaf) {
        int *moves = panel->moves + 2 * (d - panel->first);
        note_cuda(linpack_gpu_leaf(&gpu.lu, d, width, moves, lane->stream), "kernel leaf");
        note_cuda(linpack_gpu_exchange(&gpu.lu, d, width, moves, leaf, panel->first,
                                       panel->first + panel->width, at(d, 0).first, gpu.lu.stride,
                                       lane->stream),
                  "kernel exchange");
        return;
    }
    const size_t left = leaves(width) / 2 * leaf, right = width - left, middle = d + left;
    const size_t below = gpu.lu.n - middle;
    factor_columns(panel, d, left);
    solve_triangle(lane, left, right, at(d, d), at(d, middle));
    multiply(lane, below, right, left, -1, at(middle, d), at(d, middle), 1, at(middle, middle));
    factor_columns(panel, middle, right);
}

// The columns of a panel whose moves are made at once, from its column `done` on.
static size_t together(const struct panel *panel, size_t done) {
    const size_t left = panel->width - done;
    return left < LINPACK_GPU_MOST ? left : LINPACK_GPU_MOST;
}

static void factor(const struct panel *panel) {
    const struct lane *lane = &gpu.panel;
    factor_columns(panel, panel->first, panel->width);
    if (!gpu.ok)
        return;
    for (size_t done = 0; done < panel->width; done += LINPACK_GPU_MOST)
        note_cuda(linpack_gpu_compose(&gpu.lu, panel->first + done, together(panel, done),
                                      panel->moves + 2 * done, gpu.row, panel->composed + 2 * done,
                                      lane->stream),
                  "kernel compose");
    note_cuda(linpack_gpu_unit(panel->inverse.first, panel->width, lane->stream), "kernel unit");
    solve_triangle(lane, panel->width, panel->width, at(panel->first, panel->first),
                   panel->inverse);
}

// Brings the columns first..last-1 up to date with the panel.
static void update(const struct lane *lane, const struct panel *panel, size_t first, size_t last) {
    const size_t width = panel->width, below = panel->first + width;
    const struct part top = {gpu.top, width};
    if (first >= last)
        return;
    for (size_t done = 0; done < width; done += LINPACK_GPU_MOST)
        note_cuda(linpack_gpu_exchange(&gpu.lu, panel->first + done, together(panel, done),
                                       panel->composed + 2 * done, together(panel, done), first,
                                       last, top.first + done, width, lane->stream),
                  "kernel exchange");
    multiply(lane, width, last - first, width, 1, panel->inverse, of(top, 0, first), 0,
             at(panel->first, first));
    multiply(lane, gpu.lu.n - below, last - first, width, -1, at(below, panel->first),
             at(panel->first, first), 1, at(below, first));
}

// What `lane` does from now on comes after all that the other has been given.
static void wait_for(const struct lane *lane, const struct lane *other) {
    note_cuda(cudaEventRecord(other->done, other->stream), "cudaEventRecord");
    note_cuda(cudaStreamWaitEvent(lane->stream, other->done, 0), "cudaStreamWaitEvent");
}

static void decompose(const struct linpack_work *work) {
    struct panel panel = panel_at(work, 0);
    factor(&panel);
    for (size_t number = 1; number * work->nb < work->n && gpu.ok; number++) {
        const struct panel next = panel_at(work, number);
        const size_t end = next.first + next.width;
        wait_for(&gpu.rest, &gpu.panel);
        update(&gpu.panel, &panel, next.first, end);
        update(&gpu.rest, &panel, end, work->n + 1);
        factor(&next);
        wait_for(&gpu.panel, &gpu.rest);
        panel = next;
    }
    update(&gpu.panel, &panel, work->n, work->n + 1);
}

// U x = y on the device, and x to the host.
static void substitute(const struct linpack_work *work) {
    const struct lane *lane = &gpu.panel;
    note_cuda(cudaMemcpyAsync(gpu.x, at(0, work->n).first, work->n * sizeof(double),
                              cudaMemcpyDeviceToDevice, lane->stream),
              "copy of y");
    note_cublas(cublasDtrsv(lane->cublas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                            (int)work->n, gpu.lu.a, (int)gpu.lu.stride, gpu.x, 1),
                "cublasDtrsv");
    note_cuda(cudaMemcpyAsync(work->x, gpu.x, work->n * sizeof(double), cudaMemcpyDeviceToHost,
                              lane->stream),
              "copy of x");
    note_cuda(cudaStreamSynchronize(lane->stream), "the solution");
}

static void solve(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations && gpu.ok; iteration++) {
        gpu.lu.a = gpu.systems + (linpack_next(work) - work->a);
        decompose(work);
        substitute(work);
    }
}

const struct linpack_variant linpack_cuda = {
    .is = {.name = "cuda",
           .device = bk_cuda_device,
           .kernel = solve,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take},
    .nb = 512,
    .prepare = prepare,
    .begin = begin,
    .end = end,
};
