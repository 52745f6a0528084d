/* bk_gpu: CUDA's runtime, or HIP's by CUDA's names, so that one text of kernels is for both.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What is here is what our backends use. HIP's are wavefronts of 64 threads: those of AMD's CDNA.
 */
#ifndef BK_GPU_H
#define BK_GPU_H

#ifndef BENCH_HIP

#include <cuda_runtime.h>

#define BK_GPU_QUERY "nvidia-smi" /* tells a user more */
#define BK_WARP      32           /* threads that go in step */
#define BK_ALL_LANES 0xffffffffu

/* A kernel's threads in a block, and blocks for which a multiprocessor is to have registers. */
#define BK_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)

#else

#ifdef __cplusplus
#include <hip/hip_runtime.h>
#else
#include <hip/hip_runtime_api.h>
#endif

#define BK_GPU_QUERY "rocm-smi"
#define BK_WARP      64
#define BK_ALL_LANES 0xffffffffffffffffu

/* All gfx9 have these; ROCm tells the wavefront's size itself no more. */
#if defined __HIP_DEVICE_COMPILE__ && !defined __GFX9__
#error "this GPU's wavefronts are not of 64 threads: give another of CMAKE_HIP_ARCHITECTURES"
#endif

/* Here the second number is of warps, for each of the four parts of a multiprocessor. */
#define BK_LAUNCH_BOUNDS(threads, blocks)                                                          \
    __launch_bounds__(threads, ((threads) * (blocks) + 4 * BK_WARP - 1) / (4 * BK_WARP))

#define cudaDeviceProp                                hipDeviceProp_t
#define cudaError_t                                   hipError_t
#define cudaEventCreateWithFlags                      hipEventCreateWithFlags
#define cudaEventDestroy                              hipEventDestroy
#define cudaEventDisableTiming                        hipEventDisableTiming
#define cudaEventRecord                               hipEventRecord
#define cudaEventSynchronize                          hipEventSynchronize
#define cudaEvent_t                                   hipEvent_t
#define cudaDeviceCanAccessPeer                       hipDeviceCanAccessPeer
#define cudaDeviceEnablePeerAccess                    hipDeviceEnablePeerAccess
#define cudaDeviceSynchronize                         hipDeviceSynchronize
#define cudaFree                                      hipFree
#define cudaFreeHost                                  hipHostFree
#define cudaGetDevice                                 hipGetDevice
#define cudaGetDeviceCount                            hipGetDeviceCount
#define cudaGetDeviceProperties                       hipGetDeviceProperties
#define cudaGetErrorString                            hipGetErrorString
#define cudaGetLastError                              hipGetLastError
#define cudaMalloc                                    hipMalloc
#define cudaMallocHost                                hipHostMalloc
#define cudaMemGetInfo                                hipMemGetInfo
#define cudaMemcpy                                    hipMemcpy
#define cudaMemcpy2D                                  hipMemcpy2D
#define cudaMemcpyDefault                             hipMemcpyDefault
#define cudaMemcpyDeviceToHost                        hipMemcpyDeviceToHost
#define cudaMemcpyHostToDevice                        hipMemcpyHostToDevice
#define cudaMemcpyPeerAsync                           hipMemcpyPeerAsync
#define cudaMemset                                    hipMemset
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor hipOccupancyMaxActiveBlocksPerMultiprocessor
#define cudaSetDevice                                 hipSetDevice
#define cudaSuccess                                   hipSuccess

#ifdef __cplusplus
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize
#define cudaFuncSetAttribute(kernel, ...)                                                          \
    hipFuncSetAttribute(reinterpret_cast<const void *>(kernel), __VA_ARGS__)

/* A block has all of its shared memory without asking. */
#define sharedMemPerBlockOptin       sharedMemPerBlock

/* All of a wavefront's threads come here. */
#define __shfl_down_sync(lanes, ...) (static_cast<void>(lanes), __shfl_down(__VA_ARGS__))

/* Has no name in HIP. */
#define __ldcs(from)                 (*(from))
#endif

#endif
#endif
