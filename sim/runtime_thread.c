// SPDX-License-Identifier: Apache-2.0
/* runtime_thread.c - the stand-in libcudart: the functions that programs built for per-thread
 * default streams call instead (_ptsz takes a stream, _ptds none), which call those of the driver.
 */
#include "runtime.h"

SIM_EXPORT cudaError_t cudaLaunchKernel_ptsz(const void *func, dim3 gridDim, dim3 blockDim,
	void **args, size_t sharedMem, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaLaunchKernel_ptsz, 0);
	RUNTIME_END(DRIVER(cuLaunchKernel_ptsz((CUfunction)func, gridDim.x, gridDim.y, gridDim.z,
			    blockDim.x, blockDim.y, blockDim.z, (unsigned)sharedMem, stream, args,
			    NULL)),
		0);
}

/* Only the kinds that cross PCIe are here. */
SIM_EXPORT cudaError_t cudaMemcpy_ptds(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUresult r = SIM_INVALID_MEMCPY_DIRECTION;
	RUNTIME_BEGIN(cudaMemcpy_ptds, count);

	if (kind == cudaMemcpyHostToDevice)
		r = DRIVER(cuMemcpyHtoD_v2_ptds((CUdeviceptr)dst, src, count));
	else if (kind == cudaMemcpyDeviceToHost)
		r = DRIVER(cuMemcpyDtoH_v2_ptds(dst, (CUdeviceptr)src, count));
	RUNTIME_END(r, count);
}

SIM_EXPORT cudaError_t cudaMemcpyAsync_ptsz(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUresult r = SIM_INVALID_MEMCPY_DIRECTION;
	RUNTIME_BEGIN(cudaMemcpyAsync_ptsz, count);

	if (kind == cudaMemcpyHostToDevice)
		r = DRIVER(cuMemcpyHtoDAsync_v2_ptsz((CUdeviceptr)dst, src, count, stream));
	else if (kind == cudaMemcpyDeviceToHost)
		r = DRIVER(cuMemcpyDtoHAsync_v2_ptsz(dst, (CUdeviceptr)src, count, stream));
	RUNTIME_END(r, count);
}

SIM_EXPORT cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaStreamSynchronize_ptsz, 0);
	RUNTIME_END(DRIVER(cuStreamSynchronize_ptsz(stream)), 0);
}
