// CUDA or HIP: the kernels of gpu.h on a GPU. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_cuda.h"
#include "hydro.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "quick.h"

#define GODUNOV_FUNCTION        static __device__ __forceinline__
#define GODUNOV_INVERSE(x)      quick_inverse(x)
#define GODUNOV_ROOT(x)         quick_root(x)
#define GODUNOV_INVERSE_ROOT(x) quick_inverse_root(x)
#define GODUNOV_ALIKE(a, b)     quick_alike(a, b)
#include "godunov.h"

#define GPU_KERNEL         static __global__ void
#define GPU_BLOCKS(number) BK_LAUNCH_BOUNDS(GPU_GROUP, number)
#define GPU_FUNCTION       static __device__ __forceinline__
#define GPU_GLOBAL
#define GPU_LOCAL __shared__
#define GPU_SHARED
#define GPU_BARRIER   __syncthreads()
#define GPU_THREAD    ((int)threadIdx.x)
#define GPU_GROUP_X   ((int)blockIdx.x)
#define GPU_GROUPS_X  ((int)gridDim.x)
#define GPU_GROUP_Y   ((int)(blockIdx.y + 65535 * blockIdx.z))
#define GPU_GLOBAL_ID ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#include "gpu.h"

namespace {

// That look for the fastest wave of the first state; later each group along x knows its own.
const int first_groups = 1024;

// What a run has on the device.
struct Buffers {
    double *cells[2]; // the first has the state
    double *fastest;  // of each group
    double *step;
    size_t bytes;
    long origin;
};

// An error of the device: no result would be right.
void must(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "hydro: " BENCH_GPU ": %s: %s; see `" BK_GPU_QUERY "`\n", what,
            cudaGetErrorString(error));
    exit(BK_SYSTEM);
}

void close(hydro_run *run) {
    Buffers *buffers = static_cast<Buffers *>(run->own);
    (void)cudaFree(buffers->cells[0]);
    (void)cudaFree(buffers->cells[1]);
    (void)cudaFree(buffers->fastest);
    (void)cudaFree(buffers->step);
    free(buffers);
}

int groups_of(ptrdiff_t cells, int each) {
    return (int)((cells + each - 1) / each);
}

// Groups in a grid of kernels; its second dimension has limits, so the third goes on.
dim3 groups(int x, int y) {
    const int most = 65535;
    return dim3((unsigned)x, (unsigned)(y < most ? y : most), (unsigned)groups_of(y, most));
}

int groups_x(const hydro_grid *grid) {
    return groups_of(grid->nx, GPU_CELLS) * groups_of(grid->ny, GPU_ROWS);
}

bool allocate(Buffers *buffers, const hydro_grid *grid) {
    const int groups = groups_x(grid) > first_groups ? groups_x(grid) : first_groups;
    return cudaMalloc(&buffers->cells[0], buffers->bytes) == cudaSuccess &&
           cudaMalloc(&buffers->cells[1], buffers->bytes) == cudaSuccess &&
           cudaMalloc(&buffers->fastest, (size_t)groups * sizeof(double)) == cudaSuccess &&
           cudaMalloc(&buffers->step, 2 * sizeof(double)) == cudaSuccess;
}

const char *open(hydro_run *run) {
    const hydro_grid *grid = &run->grid;
    if (bk_cuda_device() == nullptr)
        return "there is no GPU; install its driver, or leave out --variant " BENCH_GPU;
    Buffers *buffers = static_cast<Buffers *>(calloc(1, sizeof(Buffers)));
    if (buffers == nullptr)
        return "out of memory";
    run->own = buffers;
    buffers->origin = grid->cells - static_cast<double *>(grid->memory);
    buffers->bytes = hydro_grid_bytes(grid);
    if (!allocate(buffers, grid)) {
        (void)cudaGetLastError(); // has been answered
        close(run);
        return "the GPU is out of memory: give smaller --sizes";
    }
    must(cudaMemcpy(buffers->cells[0], grid->memory, buffers->bytes, cudaMemcpyHostToDevice),
         "cudaMemcpy");
    must(cudaMemset(buffers->step, 0, 2 * sizeof(double)), "cudaMemset");
    return nullptr;
}

void sweep(hydro_run *run, int dimension) {
    Buffers *buffers = static_cast<Buffers *>(run->own);
    const hydro_grid *grid = &run->grid;
    const int nx = (int)grid->nx, ny = (int)grid->ny;
    // The second sweep of each second step is along x: what it finds is the next step's.
    const int find = (int)(run->steps % 2);
    if (dimension == 0)
        gpu_sweep_x<<<groups(groups_of(nx, GPU_CELLS), groups_of(ny, GPU_ROWS)), GPU_GROUP>>>(
            buffers->cells[0], buffers->cells[1], buffers->origin, grid->plane, grid->pitch, nx, ny,
            1 / grid->dx, buffers->step, find, buffers->fastest);
    else
        gpu_sweep_y<<<groups(groups_of(nx, GPU_GROUP), groups_of(ny, GPU_CLIMB)), GPU_GROUP>>>(
            buffers->cells[0], buffers->cells[1], buffers->origin, grid->plane, grid->pitch, nx, ny,
            1 / grid->dx, buffers->step);
    std::swap(buffers->cells[0], buffers->cells[1]);
}

// What the fastest wave is found from: as many values.
int find_fastest(const hydro_run *run) {
    const Buffers *buffers = static_cast<const Buffers *>(run->own);
    const hydro_grid *grid = &run->grid;
    if (run->steps % 2 != 0)
        return 0;
    if (run->steps > 0)
        return groups_x(grid);
    const int count = grid->ny < first_groups ? (int)grid->ny : first_groups;
    gpu_fastest<<<count, GPU_GROUP>>>(buffers->cells[0], buffers->origin, grid->plane, grid->pitch,
                                      (int)grid->nx, (int)grid->ny, buffers->fastest);
    return count;
}

void begin_step(const hydro_run *run) {
    const Buffers *buffers = static_cast<const Buffers *>(run->own);
    gpu_begin_step<<<1, GPU_GROUP>>>(buffers->fastest, find_fastest(run), run->grid.dx,
                                     run->steps == 0 ? 0.5 : 1.0, buffers->step);
}

void advance(hydro_run *run, uint64_t steps) {
    const Buffers *buffers = static_cast<const Buffers *>(run->own);
    for (uint64_t end = run->steps + steps; run->steps < end; run->steps++) {
        int first = (int)(run->steps % 2);
        begin_step(run);
        sweep(run, first);
        sweep(run, 1 - first);
        must(cudaGetLastError(), "a kernel");
    }
    double step[2];
    must(cudaMemcpy(step, buffers->step, sizeof step, cudaMemcpyDeviceToHost), "cudaMemcpy");
    run->dt = step[0];
    run->time = step[1];
}

void fetch(hydro_run *run) {
    const Buffers *buffers = static_cast<const Buffers *>(run->own);
    must(cudaMemcpy(run->grid.memory, buffers->cells[0], buffers->bytes, cudaMemcpyDeviceToHost),
         "cudaMemcpy");
}

hydro_model make_model() {
    hydro_model model = {};
    model.is.name = BENCH_GPU;
    model.is.device = bk_cuda_device;
    model.is.memory = bk_cuda_memory;
    model.is.take = bk_cuda_take;
    model.tolerance = 1e-11;
    model.open = open;
    model.advance = advance;
    model.fetch = fetch;
    model.close = close;
    return model;
}

} // namespace

extern "C" {
extern const hydro_model hydro_cuda;
const hydro_model hydro_cuda = make_model();
}
