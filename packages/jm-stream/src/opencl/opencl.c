// STREAM by OpenCL (stream.cl), on the first device with double precision; GPUs before others.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#define CL_TARGET_OPENCL_VERSION 120
#include "bk_opencl.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

extern const char stream_cl[];

static const char *const kernel_names[STREAM_KERNELS] = {"stream_copy", "stream_scale",
                                                         "stream_sum", "stream_triad"};

// Work items of a group, at most.
enum { GROUP = 1024 };

// What lasts as long as the program.
static struct {
    bool searched;
    cl_device_id device; // NULL: there is none
    cl_context context;
    cl_command_queue queue;
    cl_kernel kernels[STREAM_KERNELS];
    size_t group;
    char name[128];
} opencl;

// The vectors on the device; `ok` is false after an error.
struct buffers {
    cl_mem vectors[STREAM_VECTORS];
    bool ok;
};

static bool succeeded(cl_int error, const char *what) {
    return bk_opencl_succeeded("jm-stream", error, what);
}

static bool build_kernels(void) {
    const char *source = stream_cl;
    cl_int error;
    cl_program program = clCreateProgramWithSource(opencl.context, 1, &source, NULL, &error);
    bool ok =
        succeeded(error, "clCreateProgramWithSource") &&
        succeeded(clBuildProgram(program, 1, &opencl.device, "", NULL, NULL), "clBuildProgram");
    if (!ok && program != NULL)
        bk_opencl_print_log(program, opencl.device);
    opencl.group = GROUP;
    for (unsigned i = 0; ok && i < STREAM_KERNELS; i++) {
        opencl.kernels[i] = clCreateKernel(program, kernel_names[i], &error);
        size_t most = GROUP;
        ok =
            succeeded(error, "clCreateKernel") &&
            succeeded(clGetKernelWorkGroupInfo(opencl.kernels[i], opencl.device,
                                               CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL),
                      "clGetKernelWorkGroupInfo");
        opencl.group = most < opencl.group ? most : opencl.group;
    }
    if (program != NULL)
        clReleaseProgram(program);
    return ok;
}

static bool prepare(void) {
    cl_int error;
    clGetDeviceInfo(opencl.device, CL_DEVICE_NAME, sizeof opencl.name - 1, opencl.name, NULL);
    opencl.context = clCreateContext(NULL, 1, &opencl.device, NULL, NULL, &error);
    if (!succeeded(error, "clCreateContext"))
        return false;
    opencl.queue = clCreateCommandQueue(opencl.context, opencl.device, 0, &error);
    return succeeded(error, "clCreateCommandQueue") && build_kernels();
}

// The device's name; looks for it and builds the kernels when called first.
static const char *device(void) {
    if (!opencl.searched) {
        opencl.searched = true;
        opencl.device = bk_opencl_find_device();
        if (opencl.device != NULL && !prepare())
            opencl.device = NULL;
    }
    return opencl.device == NULL ? NULL : opencl.name;
}

static void first_touch(const struct stream_work *work) {
    stream_fill(&work->arrays, 0, work->arrays.n);
}

static bool open(struct stream_work *work) {
    struct buffers *buffers = calloc(1, sizeof *buffers);
    work->state = buffers;
    for (unsigned i = 0; buffers != NULL && i < STREAM_VECTORS; i++) {
        cl_int error;
        buffers->vectors[i] = clCreateBuffer(opencl.context, CL_MEM_READ_WRITE,
                                             work->arrays.n * sizeof(double), NULL, &error);
        if (!succeeded(error, "clCreateBuffer"))
            return false;
    }
    return buffers != NULL;
}

static bool store(struct stream_work *work) {
    struct buffers *buffers = work->state;
    buffers->ok = true;
    for (unsigned i = 0; buffers->ok && i < STREAM_VECTORS; i++)
        buffers->ok =
            succeeded(clEnqueueWriteBuffer(opencl.queue, buffers->vectors[i], CL_TRUE, 0,
                                           work->arrays.n * sizeof(double),
                                           stream_vector(&work->arrays, i), 0, NULL, NULL),
                      "clEnqueueWriteBuffer");
    return buffers->ok;
}

static bool fetch(struct stream_work *work) {
    struct buffers *buffers = work->state;
    for (unsigned i = 0; buffers->ok && i < STREAM_VECTORS; i++)
        buffers->ok = succeeded(clEnqueueReadBuffer(opencl.queue, buffers->vectors[i], CL_TRUE, 0,
                                                    work->arrays.n * sizeof(double),
                                                    stream_vector(&work->arrays, i), 0, NULL, NULL),
                                "clEnqueueReadBuffer");
    return buffers->ok;
}

static void close(struct stream_work *work) {
    struct buffers *buffers = work->state;
    for (unsigned i = 0; buffers != NULL && i < STREAM_VECTORS; i++)
        if (buffers->vectors[i] != NULL)
            clReleaseMemObject(buffers->vectors[i]);
    free(buffers);
}

static bool set_arguments(cl_kernel kernel, const struct stream_work *work) {
    const struct buffers *buffers = work->state;
    const cl_ulong n = work->arrays.n;
    bool ok = succeeded(clSetKernelArg(kernel, STREAM_VECTORS, sizeof n, &n), "clSetKernelArg");
    for (unsigned i = 0; ok && i < STREAM_VECTORS; i++)
        ok = succeeded(clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers->vectors[i]),
                       "clSetKernelArg");
    return ok;
}

static void run(void *context, uint64_t iterations) {
    const struct stream_work *work = context;
    struct buffers *buffers = work->state;
    cl_kernel kernel = opencl.kernels[work->kernel];
    const size_t groups = (work->arrays.n + opencl.group - 1) / opencl.group;
    const size_t items = groups * opencl.group;
    buffers->ok = buffers->ok && set_arguments(kernel, work);
    for (uint64_t i = 0; i < iterations && buffers->ok; i++)
        buffers->ok = succeeded(clEnqueueNDRangeKernel(opencl.queue, kernel, 1, NULL, &items,
                                                       &opencl.group, 0, NULL, NULL),
                                "clEnqueueNDRangeKernel");
    buffers->ok = succeeded(clFinish(opencl.queue), "clFinish") && buffers->ok;
}

const struct stream_model stream_opencl = {
    .first_touch = first_touch,
    .run = run,
    .device = device,
    .open = open,
    .store = store,
    .fetch = fetch,
    .close = close,
};
