// OpenCL: the kernels of gpu.h on the first device with double precision, GPUs before others.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#define CL_TARGET_OPENCL_VERSION 120
#include "bk_opencl.h"
#include "hydro.h"

#include <stdio.h>
#include <stdlib.h>

// Of gpu.h; the last look for the fastest wave of the first state.
enum { GROUP = 128, CELLS = GROUP - 4, ROWS = 8, CLIMB = 64, FIRST_GROUPS = 1024 };

extern const char hydro_cl[], godunov_cl[], gpu_cl[];

enum kernel { FASTEST, BEGIN_STEP, SWEEP_X, SWEEP_Y, KERNELS };
static const char *const kernel_names[KERNELS] = {"gpu_fastest", "gpu_begin_step", "gpu_sweep_x",
                                                  "gpu_sweep_y"};

// What lasts as long as the program.
static struct {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_kernel kernels[KERNELS];
    bool ready;
    char name[128];
} opencl;

// What a run has on the device.
struct buffers {
    cl_mem cells[2]; // the first has the state
    cl_mem fastest;
    cl_mem step;
    size_t bytes;
    cl_long origin;
};

static bool succeeded(cl_int error, const char *what) {
    return bk_opencl_succeeded("hydro", error, what);
}

static bool build_kernels(void) {
    const char *sources[] = {hydro_cl, godunov_cl, gpu_cl};
    cl_int error;
    cl_program program = clCreateProgramWithSource(opencl.context, 3, sources, NULL, &error);
    if (!succeeded(error, "clCreateProgramWithSource"))
        return false;
    bool ok =
        succeeded(clBuildProgram(program, 1, &opencl.device, "", NULL, NULL), "clBuildProgram");
    if (!ok)
        bk_opencl_print_log(program, opencl.device);
    for (int k = 0; k < KERNELS && ok; k++) {
        opencl.kernels[k] = clCreateKernel(program, kernel_names[k], &error);
        ok = succeeded(error, kernel_names[k]);
    }
    clReleaseProgram(program);
    return ok;
}

// NULL when there is none.
static const char *device(void) {
    if (opencl.device == NULL)
        opencl.device = bk_opencl_find_device();
    if (opencl.device == NULL)
        return NULL;
    clGetDeviceInfo(opencl.device, CL_DEVICE_NAME, sizeof opencl.name - 1, opencl.name, NULL);
    return opencl.name;
}

// Builds the kernels, once.
static bool ready(void) {
    if (opencl.ready)
        return true;
    cl_int error;
    opencl.context = clCreateContext(NULL, 1, &opencl.device, NULL, NULL, &error);
    if (!succeeded(error, "clCreateContext"))
        return false;
    opencl.queue = clCreateCommandQueue(opencl.context, opencl.device, 0, &error);
    opencl.ready = succeeded(error, "clCreateCommandQueue") && build_kernels();
    return opencl.ready;
}

// What can't fail but by an error in this program, or of the device: no result would be right.
static void must(cl_int error, const char *what) {
    if (!succeeded(error, what))
        exit(BK_SYSTEM);
}

static void set(enum kernel kernel, cl_uint index, size_t size, const void *value) {
    must(clSetKernelArg(opencl.kernels[kernel], index, size, value), "clSetKernelArg");
}

static void set_long(enum kernel kernel, cl_uint index, ptrdiff_t number) {
    cl_long value = number;
    set(kernel, index, sizeof value, &value);
}

static void set_int(enum kernel kernel, cl_uint index, ptrdiff_t number) {
    cl_int value = (cl_int)number;
    set(kernel, index, sizeof value, &value);
}

static void set_double(enum kernel kernel, cl_uint index, double value) {
    set(kernel, index, sizeof value, &value);
}

static void launch(enum kernel kernel, ptrdiff_t groups, ptrdiff_t groups_y) {
    const size_t items[2] = {(size_t)groups * GROUP, (size_t)groups_y}, group[2] = {GROUP, 1};
    must(clEnqueueNDRangeKernel(opencl.queue, opencl.kernels[kernel], 2, NULL, items, group, 0,
                                NULL, NULL),
         kernel_names[kernel]);
}

static cl_mem new_buffer(size_t bytes, void *content) {
    cl_int error;
    cl_mem_flags flags = CL_MEM_READ_WRITE;
    if (content != NULL)
        flags |= CL_MEM_COPY_HOST_PTR;
    cl_mem buffer = clCreateBuffer(opencl.context, flags, bytes, content, &error);
    return error == CL_SUCCESS ? buffer : NULL;
}

static void release(cl_mem buffer) {
    if (buffer != NULL)
        clReleaseMemObject(buffer);
}

static void close_opencl(struct hydro_run *run) {
    struct buffers *buffers = run->own;
    release(buffers->cells[0]);
    release(buffers->cells[1]);
    release(buffers->fastest);
    release(buffers->step);
    free(buffers);
}

static ptrdiff_t groups_x(const struct hydro_grid *grid) {
    return (grid->nx + CELLS - 1) / CELLS * ((grid->ny + ROWS - 1) / ROWS);
}

static const char *open_opencl(struct hydro_run *run) {
    struct hydro_grid *grid = &run->grid;
    if (device() == NULL)
        return "there is no OpenCL device with double precision; install its driver, or leave out "
               "--variant opencl";
    if (!ready())
        return "its kernels can't be built; see above";
    struct buffers *buffers = calloc(1, sizeof *buffers);
    if (buffers == NULL)
        return "out of memory";
    const ptrdiff_t groups = groups_x(grid) > FIRST_GROUPS ? groups_x(grid) : FIRST_GROUPS;
    double start[2] = {0, 0};
    run->own = buffers;
    buffers->origin = grid->cells - (double *)grid->memory;
    buffers->bytes = hydro_grid_bytes(grid);
    buffers->cells[0] = new_buffer(buffers->bytes, grid->memory);
    buffers->cells[1] = new_buffer(buffers->bytes, NULL);
    buffers->fastest = new_buffer((size_t)groups * sizeof(double), NULL);
    buffers->step = new_buffer(sizeof start, start);
    if (buffers->cells[0] != NULL && buffers->cells[1] != NULL && buffers->fastest != NULL &&
        buffers->step != NULL)
        return NULL;
    close_opencl(run);
    return "the device is out of memory: give smaller --sizes";
}

static void sweep(struct hydro_run *run, unsigned dimension) {
    struct buffers *buffers = run->own;
    const struct hydro_grid *grid = &run->grid;
    const enum kernel kernel = dimension == 0 ? SWEEP_X : SWEEP_Y;
    cl_uint next = 0;
    set(kernel, next++, sizeof(cl_mem), &buffers->cells[0]);
    set(kernel, next++, sizeof(cl_mem), &buffers->cells[1]);
    set_long(kernel, next++, buffers->origin);
    set_long(kernel, next++, grid->plane);
    set_long(kernel, next++, grid->pitch);
    set_int(kernel, next++, grid->nx);
    set_int(kernel, next++, grid->ny);
    set_double(kernel, next++, 1 / grid->dx);
    set(kernel, next++, sizeof(cl_mem), &buffers->step);
    if (dimension == 0) {
        // The second sweep of each second step is along x: what it finds is the next step's.
        set_int(kernel, next++, (ptrdiff_t)(run->steps % 2));
        set(kernel, next++, sizeof(cl_mem), &buffers->fastest);
        launch(kernel, (grid->nx + CELLS - 1) / CELLS, (grid->ny + ROWS - 1) / ROWS);
    } else
        launch(kernel, (grid->nx + GROUP - 1) / GROUP, (grid->ny + CLIMB - 1) / CLIMB);
    cl_mem old = buffers->cells[0];
    buffers->cells[0] = buffers->cells[1];
    buffers->cells[1] = old;
}

// What the fastest wave is found from: as many values.
static ptrdiff_t find_fastest(const struct hydro_run *run) {
    const struct buffers *buffers = run->own;
    const struct hydro_grid *grid = &run->grid;
    if (run->steps % 2 != 0)
        return 0;
    if (run->steps > 0)
        return groups_x(grid);
    const ptrdiff_t groups = grid->ny < FIRST_GROUPS ? grid->ny : FIRST_GROUPS;
    set(FASTEST, 0, sizeof(cl_mem), &buffers->cells[0]);
    set_long(FASTEST, 1, buffers->origin);
    set_long(FASTEST, 2, grid->plane);
    set_long(FASTEST, 3, grid->pitch);
    set_int(FASTEST, 4, grid->nx);
    set_int(FASTEST, 5, grid->ny);
    set(FASTEST, 6, sizeof(cl_mem), &buffers->fastest);
    launch(FASTEST, groups, 1);
    return groups;
}

static void begin_step(const struct hydro_run *run) {
    const struct buffers *buffers = run->own;
    const ptrdiff_t count = find_fastest(run);
    set(BEGIN_STEP, 0, sizeof(cl_mem), &buffers->fastest);
    set_int(BEGIN_STEP, 1, count);
    set_double(BEGIN_STEP, 2, run->grid.dx);
    set_double(BEGIN_STEP, 3, run->steps == 0 ? 0.5 : 1);
    set(BEGIN_STEP, 4, sizeof(cl_mem), &buffers->step);
    launch(BEGIN_STEP, 1, 1);
}

static void advance_opencl(struct hydro_run *run, uint64_t steps) {
    const struct buffers *buffers = run->own;
    for (uint64_t end = run->steps + steps; run->steps < end; run->steps++) {
        unsigned first = run->steps % 2;
        begin_step(run);
        sweep(run, first);
        sweep(run, 1 - first);
    }
    double step[2];
    must(clEnqueueReadBuffer(opencl.queue, buffers->step, CL_TRUE, 0, sizeof step, step, 0, NULL,
                             NULL),
         "clEnqueueReadBuffer");
    run->dt = step[0];
    run->time = step[1];
}

static void fetch_opencl(struct hydro_run *run) {
    const struct buffers *buffers = run->own;
    must(clEnqueueReadBuffer(opencl.queue, buffers->cells[0], CL_TRUE, 0, buffers->bytes,
                             run->grid.memory, 0, NULL, NULL),
         "clEnqueueReadBuffer");
}

const struct hydro_model hydro_opencl = {
    .is = {.name = "opencl", .device = device},
    .tolerance = 1e-11,
    .open = open_opencl,
    .advance = advance_opencl,
    .fetch = fetch_opencl,
    .close = close_opencl,
};
