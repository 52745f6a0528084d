// CUDA: the kernels of gpu.h on the first GPU. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <cstdio>
#include <cstdlib>

#define GODUNOV_FUNCTION static __device__ __forceinline__
#include "godunov.h"

#define GPU_KERNEL   static __global__ void
#define GPU_FUNCTION static __device__ __forceinline__
#define GPU_GLOBAL
#define GPU_LOCAL     __shared__
#define GPU_BARRIER   __syncthreads()
#define GPU_THREAD    ((int)threadIdx.x)
#define GPU_GROUP_X   ((long)blockIdx.x)
#define GPU_GROUPS_X  ((long)gridDim.x)
#define GPU_GROUP_Y   ((long)blockIdx.y + 65535L * (long)blockIdx.z)
#define GPU_GLOBAL_ID ((long)blockIdx.x * blockDim.x + threadIdx.x)
#include "gpu.h"

namespace {

const int most_groups = 1024;

// What a run has on the device.
struct Buffers {
    double *cells[2]; // the first has the state
    double *fastest;
    double *step;
    size_t bytes;
    long origin;
};

// An error of the device: no result would be right.
void must(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "hydro: cuda: %s: %s; see `nvidia-smi`\n", what, cudaGetErrorString(error));
    exit(BK_SYSTEM);
}

// NULL when there is none.
const char *device() {
    static cudaDeviceProp properties;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
        return nullptr;
    must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    return properties.name;
}

void close(hydro_run *run) {
    Buffers *buffers = static_cast<Buffers *>(run->own);
    cudaFree(buffers->cells[0]);
    cudaFree(buffers->cells[1]);
    cudaFree(buffers->fastest);
    cudaFree(buffers->step);
    free(buffers);
}

bool allocate(Buffers *buffers) {
    return cudaMalloc(&buffers->cells[0], buffers->bytes) == cudaSuccess &&
           cudaMalloc(&buffers->cells[1], buffers->bytes) == cudaSuccess &&
           cudaMalloc(&buffers->fastest, most_groups * sizeof(double)) == cudaSuccess &&
           cudaMalloc(&buffers->step, 2 * sizeof(double)) == cudaSuccess;
}

const char *open(hydro_run *run) {
    const hydro_grid *grid = &run->grid;
    if (device() == nullptr)
        return "there is no NVIDIA GPU; install its driver, or leave out --variant cuda";
    Buffers *buffers = static_cast<Buffers *>(calloc(1, sizeof(Buffers)));
    if (buffers == nullptr)
        return "out of memory";
    run->own = buffers;
    buffers->origin = grid->cells - static_cast<double *>(grid->memory);
    buffers->bytes = hydro_grid_bytes(grid);
    if (!allocate(buffers)) {
        cudaGetLastError(); // has been answered
        close(run);
        return "the GPU is out of memory: give smaller --sizes";
    }
    must(cudaMemcpy(buffers->cells[0], grid->memory, buffers->bytes, cudaMemcpyHostToDevice),
         "cudaMemcpy");
    must(cudaMemset(buffers->step, 0, 2 * sizeof(double)), "cudaMemset");
    return nullptr;
}

// Groups in a grid of kernels; its second dimension has limits, so the third goes on.
dim3 groups(ptrdiff_t x, ptrdiff_t y) {
    const ptrdiff_t most = 65535;
    return dim3((unsigned)x, (unsigned)(y < most ? y : most), (unsigned)((y + most - 1) / most));
}

void fill_walls(const hydro_run *run, int dimension) {
    const Buffers *buffers = static_cast<const Buffers *>(run->own);
    const hydro_grid *grid = &run->grid;
    const ptrdiff_t count = dimension == 0 ? grid->ny : grid->nx;
    gpu_walls<<<groups((count + GPU_GROUP - 1) / GPU_GROUP, 1), GPU_GROUP>>>(
        buffers->cells[0], buffers->origin, grid->plane, dimension == 0 ? grid->pitch : 1,
        dimension == 0 ? 1 : grid->pitch, count, dimension == 0 ? grid->nx : grid->ny, dimension);
}

void sweep(hydro_run *run, int dimension) {
    Buffers *buffers = static_cast<Buffers *>(run->own);
    const hydro_grid *grid = &run->grid;
    fill_walls(run, dimension);
    if (dimension == 0)
        gpu_sweep_x<<<groups((grid->nx + GPU_CELLS - 1) / GPU_CELLS, grid->ny), GPU_GROUP>>>(
            buffers->cells[0], buffers->cells[1], buffers->origin, grid->plane, grid->pitch,
            grid->nx, grid->ny, grid->dx, buffers->step);
    else
        gpu_sweep_y<<<groups((grid->nx + GPU_GROUP - 1) / GPU_GROUP,
                             (grid->ny + GPU_CLIMB - 1) / GPU_CLIMB),
                      GPU_GROUP>>>(buffers->cells[0], buffers->cells[1], buffers->origin,
                                   grid->plane, grid->pitch, grid->nx, grid->ny, grid->dx,
                                   buffers->step);
    double *old = buffers->cells[0];
    buffers->cells[0] = buffers->cells[1];
    buffers->cells[1] = old;
}

void begin_step(const hydro_run *run) {
    const Buffers *buffers = static_cast<const Buffers *>(run->own);
    const hydro_grid *grid = &run->grid;
    int count = 0;
    if (run->steps % 2 == 0) {
        count = grid->ny < most_groups ? (int)grid->ny : most_groups;
        gpu_fastest<<<count, GPU_GROUP>>>(buffers->cells[0], buffers->origin, grid->plane,
                                          grid->pitch, grid->nx, grid->ny, buffers->fastest);
    }
    gpu_begin_step<<<1, GPU_GROUP>>>(buffers->fastest, count, grid->dx, run->steps == 0 ? 0.5 : 1.0,
                                     buffers->step);
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
    model.name = "cuda";
    model.tolerance = 1e-11;
    model.open = open;
    model.advance = advance;
    model.fetch = fetch;
    model.close = close;
    model.device = device;
    return model;
}

} // namespace

extern "C" {
extern const hydro_model hydro_cuda;
const hydro_model hydro_cuda = make_model();
}
