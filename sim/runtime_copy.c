// SPDX-License-Identifier: Apache-2.0
/* runtime_copy.c - the stand-in libcudart: copies and fills. The kind of a copy chooses the
 * driver's function, as in the real runtime; kinds that do not say where both sides are go to
 * cuMemcpy, which finds out from the addresses. */
#include "runtime.h"

static CUresult copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUdeviceptr d = (CUdeviceptr)dst, s = (CUdeviceptr)src;

	switch (kind) {
	case cudaMemcpyHostToDevice: return DRIVER(cuMemcpyHtoD_v2(d, src, count));
	case cudaMemcpyDeviceToHost: return DRIVER(cuMemcpyDtoH_v2(dst, s, count));
	case cudaMemcpyDeviceToDevice: return DRIVER(cuMemcpyDtoD_v2(d, s, count));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault: return DRIVER(cuMemcpy(d, s, count));
	}
	return SIM_INVALID_MEMCPY_DIRECTION;
}

SIM_EXPORT cudaError_t cudaMemcpy(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	RUNTIME_BEGIN(cudaMemcpy, count);
	RUNTIME_END(copy(dst, src, count, kind), count);
}

static CUresult copy_async(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, CUstream stream)
{
	CUdeviceptr d = (CUdeviceptr)dst, s = (CUdeviceptr)src;

	switch (kind) {
	case cudaMemcpyHostToDevice: return DRIVER(cuMemcpyHtoDAsync_v2(d, src, count, stream));
	case cudaMemcpyDeviceToHost: return DRIVER(cuMemcpyDtoHAsync_v2(dst, s, count, stream));
	case cudaMemcpyDeviceToDevice: return DRIVER(cuMemcpyDtoDAsync_v2(d, s, count, stream));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault: return DRIVER(cuMemcpyAsync(d, s, count, stream));
	}
	return SIM_INVALID_MEMCPY_DIRECTION;
}

SIM_EXPORT cudaError_t cudaMemcpyAsync(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemcpyAsync, count);
	RUNTIME_END(copy_async(dst, src, count, kind, stream), count);
}

int runtime_side_type(enum cudaMemcpyKind kind, enum cudaMemcpyKind device_kind)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return kind == device_kind || kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
								       : CU_MEMORYTYPE_HOST;
}

static CUDA_MEMCPY2D rect_of(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
	size_t height, enum cudaMemcpyKind kind)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = runtime_side_type(kind, cudaMemcpyDeviceToHost),
		.srcHost = src,
		.srcDevice = (CUdeviceptr)src,
		.srcPitch = spitch,
		.dstMemoryType = runtime_side_type(kind, cudaMemcpyHostToDevice),
		.dstHost = dst,
		.dstDevice = (CUdeviceptr)dst,
		.dstPitch = dpitch,
		.WidthInBytes = width,
		.Height = height,
	};
}

SIM_EXPORT cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D rect = rect_of(dst, dpitch, src, spitch, width, height, kind);
	RUNTIME_BEGIN(cudaMemcpy2D, width * height);

	if ((unsigned)kind > cudaMemcpyDefault)
		RUNTIME_END(SIM_INVALID_MEMCPY_DIRECTION, width * height);
	RUNTIME_END(DRIVER(cuMemcpy2DUnaligned_v2(&rect)), width * height);
}

SIM_EXPORT cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D rect = rect_of(dst, dpitch, src, spitch, width, height, kind);
	RUNTIME_BEGIN(cudaMemcpy2DAsync, width * height);

	if ((unsigned)kind > cudaMemcpyDefault)
		RUNTIME_END(SIM_INVALID_MEMCPY_DIRECTION, width * height);
	RUNTIME_END(DRIVER(cuMemcpy2DAsync_v2(&rect, stream)), width * height);
}

static cudaError_t contexts_of(
	int dst_device, int src_device, CUcontext *ret_dst, CUcontext *ret_src)
{
	cudaError_t r = runtime_context(dst_device, ret_dst);

	return r == SIM_SUCCESS ? runtime_context(src_device, ret_src) : r;
}

SIM_EXPORT cudaError_t cudaMemcpyPeer(
	void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
	CUcontext to, from;
	cudaError_t r;
	RUNTIME_BEGIN(cudaMemcpyPeer, count);

	r = contexts_of(dstDevice, srcDevice, &to, &from);
	if (r == SIM_SUCCESS)
		r = DRIVER(cuMemcpyPeer((CUdeviceptr)dst, to, (CUdeviceptr)src, from, count));
	RUNTIME_END(r, count);
}

SIM_EXPORT cudaError_t cudaMemcpyPeerAsync(
	void *dst, int dstDevice, const void *src, int srcDevice, size_t count, cudaStream_t stream)
{
	CUcontext to, from;
	cudaError_t r;
	RUNTIME_BEGIN(cudaMemcpyPeerAsync, count);

	r = contexts_of(dstDevice, srcDevice, &to, &from);
	if (r == SIM_SUCCESS)
		r = DRIVER(cuMemcpyPeerAsync(
			(CUdeviceptr)dst, to, (CUdeviceptr)src, from, count, stream));
	RUNTIME_END(r, count);
}

SIM_EXPORT cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
	RUNTIME_BEGIN(cudaMemset, count);
	RUNTIME_END(DRIVER(cuMemsetD8_v2((CUdeviceptr)devPtr, (unsigned char)value, count)), count);
}

SIM_EXPORT cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemsetAsync, count);
	RUNTIME_END(
		DRIVER(cuMemsetD8Async((CUdeviceptr)devPtr, (unsigned char)value, count, stream)),
		count);
}

/* A symbol is the address of what it stands for. */
SIM_EXPORT cudaError_t cudaMemcpyToSymbol(
	const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	RUNTIME_BEGIN(cudaMemcpyToSymbol, count);
	RUNTIME_END(copy((char *)symbol + offset, src, count, kind), count);
}

SIM_EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemcpyToSymbolAsync, count);
	RUNTIME_END(copy_async((char *)symbol + offset, src, count, kind, stream), count);
}

SIM_EXPORT cudaError_t cudaMemcpyWithAttributesAsync(void *dst, const void *src, size_t size,
	struct cudaMemcpyAttributes *attr, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemcpyWithAttributesAsync, size);
	RUNTIME_END(DRIVER(cuMemcpyWithAttributesAsync((CUdeviceptr)dst, (CUdeviceptr)src, size,
			    (CUmemcpyAttributes *)attr, stream)),
		size);
}
