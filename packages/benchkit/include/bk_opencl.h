/* bk_opencl: the device that benchmarks take, and what they say when OpenCL fails. Header only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Define CL_TARGET_OPENCL_VERSION before.
 */
#ifndef BK_OPENCL_H
#define BK_OPENCL_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stdio.h>

enum { BK_OPENCL_PLATFORMS = 8 };

/* True on success; else says what failed. */
static inline bool bk_opencl_succeeded(const char *benchmark, cl_int error, const char *what) {
    if (error != CL_SUCCESS)
        fprintf(stderr, "%s: opencl: %s failed with error %d; see `clinfo`\n", benchmark, what,
                error);
    return error == CL_SUCCESS;
}

static inline bool bk_opencl_has_doubles(cl_device_id device) {
    cl_device_fp_config doubles = 0;
    return clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, NULL) ==
               CL_SUCCESS &&
           doubles != 0;
}

/* The first device with double precision, GPUs before others; NULL when there is none. */
static inline cl_device_id bk_opencl_find_device(void) {
    static const cl_device_type kinds[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
    cl_platform_id platforms[BK_OPENCL_PLATFORMS];
    cl_uint count = 0;
    if (clGetPlatformIDs(BK_OPENCL_PLATFORMS, platforms, &count) != CL_SUCCESS)
        return NULL;
    for (size_t kind = 0; kind < 2; kind++)
        for (cl_uint i = 0; i < count && i < BK_OPENCL_PLATFORMS; i++) {
            cl_device_id device;
            if (clGetDeviceIDs(platforms[i], kinds[kind], 1, &device, NULL) == CL_SUCCESS &&
                bk_opencl_has_doubles(device))
                return device;
        }
    return NULL;
}

/* The compiler's words on a program that it did not build. */
static inline void bk_opencl_print_log(cl_program program, cl_device_id device) {
    static char log[16384];
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    fprintf(stderr, "%s\n", log);
}

#endif
