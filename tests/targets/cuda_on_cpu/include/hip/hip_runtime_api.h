// HIP's runtime as our benchmarks use it, for the emulation on a CPU: CUDA's by HIP's names.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef HIP_ON_CPU_RUNTIME_API_H
#define HIP_ON_CPU_RUNTIME_API_H

#include "../cuda_runtime_api.h"

#define hipDeviceCanAccessPeer                       cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess                    cudaDeviceEnablePeerAccess
#define hipDeviceProp_t                              cudaDeviceProp
#define hipDeviceSynchronize                         cudaDeviceSynchronize
#define hipError_t                                   cudaError_t
#define hipEventCreateWithFlags                      cudaEventCreateWithFlags
#define hipEventDestroy                              cudaEventDestroy
#define hipEventDisableTiming                        cudaEventDisableTiming
#define hipEventRecord                               cudaEventRecord
#define hipEventSynchronize                          cudaEventSynchronize
#define hipEvent_t                                   cudaEvent_t
#define hipFree                                      cudaFree
#define hipFuncAttributeMaxDynamicSharedMemorySize   cudaFuncAttributeMaxDynamicSharedMemorySize
#define hipFuncSetAttribute                          cudaFuncSetAttribute
#define hipGetDevice                                 cudaGetDevice
#define hipGetDeviceCount                            cudaGetDeviceCount
#define hipGetDeviceProperties                       cudaGetDeviceProperties
#define hipGetErrorString                            cudaGetErrorString
#define hipGetLastError                              cudaGetLastError
#define hipHostFree                                  cudaFreeHost
#define hipHostMalloc                                cudaMallocHost
#define hipMalloc                                    cudaMalloc
#define hipMemGetInfo                                cudaMemGetInfo
#define hipMemcpy                                    cudaMemcpy
#define hipMemcpy2D                                  cudaMemcpy2D
#define hipMemcpyDefault                             cudaMemcpyDefault
#define hipMemcpyDeviceToHost                        cudaMemcpyDeviceToHost
#define hipMemcpyHostToDevice                        cudaMemcpyHostToDevice
#define hipMemcpyPeerAsync                           cudaMemcpyPeerAsync
#define hipMemset                                    cudaMemset
#define hipOccupancyMaxActiveBlocksPerMultiprocessor cudaOccupancyMaxActiveBlocksPerMultiprocessor
#define hipSetDevice                                 cudaSetDevice
#define hipSuccess                                   cudaSuccess

#endif
