// SPDX-License-Identifier: Apache-2.0
/* driver_thread.c - the stand-in libcuda: the functions that programs built for per-thread default
 * streams call instead (_ptsz takes a stream, _ptds none). Functions of their own at addresses of
 * their own; the default stream is the legacy one all the same. */
#include "copy.h"
#include "driver.h"
#include "event.h"
#include "stream.h"

SIM_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gridDimX, unsigned gridDimY,
	unsigned gridDimZ, unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ,
	unsigned sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
	dim3 grid = {gridDimX, gridDimY, gridDimZ}, block = {blockDimX, blockDimY, blockDimZ};
	DRIVER_BEGIN(cuLaunchKernel_ptsz);

	DRIVER_END(driver_launch(f, grid, block, hStream), 0);
}

SIM_EXPORT CUresult cuMemcpyHtoD_v2_ptds(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	DRIVER_BEGIN(cuMemcpyHtoD_v2_ptds);
	DRIVER_END(copy_line(dstDevice, (uintptr_t)srcHost, ByteCount, COPY_TO_DEVICE, NULL, false),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	DRIVER_BEGIN(cuMemcpyDtoH_v2_ptds);
	DRIVER_END(
		copy_line((uintptr_t)dstHost, srcDevice, ByteCount, COPY_FROM_DEVICE, NULL, false),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpyHtoDAsync_v2_ptsz);
	DRIVER_END(
		copy_line(dstDevice, (uintptr_t)srcHost, ByteCount, COPY_TO_DEVICE, hStream, true),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpyDtoHAsync_v2_ptsz);
	DRIVER_END(copy_line((uintptr_t)dstHost, srcDevice, ByteCount, COPY_FROM_DEVICE, hStream,
			   true),
		ByteCount);
}

SIM_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream hStream)
{
	DRIVER_BEGIN(cuStreamSynchronize_ptsz);
	DRIVER_END(driver_stream_sync(hStream), 0);
}
