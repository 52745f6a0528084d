// OpenCL's words for gpu.h, which follows, and godunov.h before it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define GPU_KERNEL    __kernel void
#define GPU_BLOCKS(number)
#define GPU_FUNCTION  static inline
#define GPU_GLOBAL    __global
#define GPU_LOCAL     __local
#define GPU_SHARED    __local
#define GPU_BARRIER   barrier(CLK_LOCAL_MEM_FENCE)
#define GPU_THREAD    ((int)get_local_id(0))
#define GPU_GROUP_X   ((int)get_group_id(0))
#define GPU_GROUPS_X  ((int)get_num_groups(0))
#define GPU_GROUP_Y   ((int)get_group_id(1))
#define GPU_GLOBAL_ID ((int)get_global_id(0))
