// The product by our own kernel (gemm.cl) on the first OpenCL device with double precision.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#define CL_TARGET_OPENCL_VERSION 120
#include "bk_opencl.h"
#include "mod2am.h"

#include <stdio.h>
#include <stdlib.h>

extern const char gemm_cl[];

// As in gemm.cl.
enum { TILE = 64, GROUP = 16 };

// What lasts as long as the program.
static struct {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_kernel kernel;
    char name[128];
} opencl;

// What one size needs.
struct buffers {
    cl_mem a, b, c;
    bool ok;
};

static bool succeeded(cl_int error, const char *what) {
    return bk_opencl_succeeded("mod2am", error, what);
}

static bool build_kernel(void) {
    const char *source = gemm_cl;
    cl_int error;
    cl_program program = clCreateProgramWithSource(opencl.context, 1, &source, NULL, &error);
    if (!succeeded(error, "clCreateProgramWithSource"))
        return false;
    if (!succeeded(clBuildProgram(program, 1, &opencl.device, "", NULL, NULL), "clBuildProgram")) {
        bk_opencl_print_log(program, opencl.device);
        return false;
    }
    opencl.kernel = clCreateKernel(program, "gemm", &error);
    clReleaseProgram(program);
    return succeeded(error, "clCreateKernel");
}

// Finds the device and builds the kernel, once.
static bool ready(void) {
    if (opencl.kernel != NULL)
        return true;
    opencl.device = bk_opencl_find_device();
    if (opencl.device == NULL)
        return false;
    clGetDeviceInfo(opencl.device, CL_DEVICE_NAME, sizeof opencl.name - 1, opencl.name, NULL);
    cl_int error;
    opencl.context = clCreateContext(NULL, 1, &opencl.device, NULL, NULL, &error);
    if (!succeeded(error, "clCreateContext"))
        return false;
    opencl.queue = clCreateCommandQueue(opencl.context, opencl.device, 0, &error);
    return succeeded(error, "clCreateCommandQueue") && build_kernel();
}

static const char *device(void) {
    return ready() ? opencl.name : NULL;
}

static cl_mem new_buffer(size_t bytes, double *content, bool *ok) {
    cl_int error = CL_SUCCESS;
    cl_mem buffer = NULL;
    if (*ok)
        buffer = clCreateBuffer(opencl.context,
                                CL_MEM_READ_WRITE | (content == NULL ? 0 : CL_MEM_COPY_HOST_PTR),
                                bytes, content, &error);
    *ok = *ok && succeeded(error, "clCreateBuffer (is the device's memory full?)");
    return buffer;
}

static bool set_arguments(const struct mod2am_work *work, const struct buffers *buffers) {
    const cl_ulong n = work->n;
    return succeeded(clSetKernelArg(opencl.kernel, 0, sizeof n, &n), "clSetKernelArg") &&
           succeeded(clSetKernelArg(opencl.kernel, 1, sizeof(cl_mem), &buffers->a),
                     "clSetKernelArg") &&
           succeeded(clSetKernelArg(opencl.kernel, 2, sizeof(cl_mem), &buffers->b),
                     "clSetKernelArg") &&
           succeeded(clSetKernelArg(opencl.kernel, 3, sizeof(cl_mem), &buffers->c),
                     "clSetKernelArg");
}

static bool begin(struct mod2am_work *work) {
    struct buffers *buffers = calloc(1, sizeof *buffers);
    work->space = buffers;
    if (buffers == NULL || !ready()) {
        fprintf(stderr, "mod2am: opencl: there is no device with double precision; install its "
                        "driver, or leave out --variant opencl\n");
        return false;
    }
    const size_t bytes = work->n * work->n * sizeof(double);
    buffers->ok = true;
    buffers->a = new_buffer(bytes, work->a, &buffers->ok);
    buffers->b = new_buffer(bytes, work->b, &buffers->ok);
    buffers->c = new_buffer(bytes, NULL, &buffers->ok);
    buffers->ok = buffers->ok && set_arguments(work, buffers);
    return buffers->ok;
}

static void release(cl_mem buffer) {
    if (buffer != NULL)
        clReleaseMemObject(buffer);
}

// Brings C back; an error of the kernel leaves the C that no result is.
static bool end(struct mod2am_work *work) {
    struct buffers *buffers = work->space;
    if (buffers == NULL)
        return false;
    const size_t bytes = work->n * work->n * sizeof(double);
    bool ok = buffers->ok && succeeded(clEnqueueReadBuffer(opencl.queue, buffers->c, CL_TRUE, 0,
                                                           bytes, work->c, 0, NULL, NULL),
                                       "clEnqueueReadBuffer");
    release(buffers->a);
    release(buffers->b);
    release(buffers->c);
    free(buffers);
    return ok;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    struct buffers *buffers = work->space;
    const size_t groups = (work->n + TILE - 1) / TILE;
    const size_t items[2] = {groups * GROUP, groups * GROUP}, group[2] = {GROUP, GROUP};
    for (uint64_t iteration = 0; iteration < iterations && buffers->ok; iteration++)
        buffers->ok = succeeded(clEnqueueNDRangeKernel(opencl.queue, opencl.kernel, 2, NULL, items,
                                                       group, 0, NULL, NULL),
                                "clEnqueueNDRangeKernel");
    buffers->ok = succeeded(clFinish(opencl.queue), "clFinish") && buffers->ok;
}

const struct mod2am_variant mod2am_opencl = {
    .is = {.name = "opencl", .device = device, .kernel = multiply},
    .begin = begin,
    .end = end,
};
