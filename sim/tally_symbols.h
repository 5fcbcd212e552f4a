/* SPDX-License-Identifier: Apache-2.0 */
/* tally_symbols.h - the exported functions of each library, in the order of their tally lines. */
#pragma once

#define RUNTIME_SYMBOLS(X)                                                                         \
	X(cudaMalloc)                                                                              \
	X(cudaFree)                                                                                \
	X(cudaMallocManaged)                                                                       \
	X(cudaMallocAsync)                                                                         \
	X(cudaFreeAsync)                                                                           \
	X(cudaHostAlloc)                                                                           \
	X(cudaMallocHost)                                                                          \
	X(cudaFreeHost)                                                                            \
	X(cudaLaunchKernel)                                                                        \
	X(cudaLaunchKernelExC)                                                                     \
	X(cudaLaunchCooperativeKernel)                                                             \
	X(cudaMemcpy)                                                                              \
	X(cudaMemcpyAsync)                                                                         \
	X(cudaMemcpy2D)                                                                            \
	X(cudaMemcpy2DAsync)                                                                       \
	X(cudaMemcpyPeer)                                                                          \
	X(cudaMemcpyPeerAsync)                                                                     \
	X(cudaMemset)                                                                              \
	X(cudaMemsetAsync)                                                                         \
	X(cudaStreamCreate)                                                                        \
	X(cudaStreamDestroy)                                                                       \
	X(cudaStreamSynchronize)                                                                   \
	X(cudaDeviceSynchronize)                                                                   \
	X(cudaEventCreate)                                                                         \
	X(cudaEventRecord)                                                                         \
	X(cudaEventSynchronize)                                                                    \
	X(cudaEventDestroy)                                                                        \
	X(cudaStreamWaitEvent)                                                                     \
	X(cudaSetDevice)                                                                           \
	X(cudaGetDevice)                                                                           \
	X(cudaGetDeviceCount)                                                                      \
	X(cudaGetErrorString)                                                                      \
	X(cudaGetLastError)

#define DRIVER_SYMBOLS(X)                                                                          \
	X(cuInit)                                                                                  \
	X(cuDriverGetVersion)                                                                      \
	X(cuDeviceGetCount)                                                                        \
	X(cuDeviceGetName)                                                                         \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMemFree_v2)                                                                            \
	X(cuMemAllocManaged)                                                                       \
	X(cuMemAllocAsync)                                                                         \
	X(cuMemFreeAsync)                                                                          \
	X(cuMemHostAlloc)                                                                          \
	X(cuMemFreeHost)                                                                           \
	X(cuLaunchKernel)                                                                          \
	X(cuLaunchKernelEx)                                                                        \
	X(cuLaunchCooperativeKernel)                                                               \
	X(cuMemcpy)                                                                                \
	X(cuMemcpyAsync)                                                                           \
	X(cuMemcpyHtoD_v2)                                                                         \
	X(cuMemcpyDtoH_v2)                                                                         \
	X(cuMemcpyDtoD_v2)                                                                         \
	X(cuMemcpyHtoDAsync_v2)                                                                    \
	X(cuMemcpyDtoHAsync_v2)                                                                    \
	X(cuMemcpyDtoDAsync_v2)                                                                    \
	X(cuMemcpy2DUnaligned_v2)                                                                  \
	X(cuMemcpy2DAsync_v2)                                                                      \
	X(cuMemcpyPeer)                                                                            \
	X(cuMemcpyPeerAsync)                                                                       \
	X(cuMemsetD8_v2)                                                                           \
	X(cuMemsetD8Async)                                                                         \
	X(cuStreamCreate)                                                                          \
	X(cuStreamDestroy_v2)                                                                      \
	X(cuStreamSynchronize)                                                                     \
	X(cuStreamWaitEvent)                                                                       \
	X(cuCtxSynchronize)                                                                        \
	X(cuEventCreate)                                                                           \
	X(cuEventRecord)                                                                           \
	X(cuEventSynchronize)                                                                      \
	X(cuEventDestroy_v2)
