// SPDX-License-Identifier: Apache-2.0
/* runtime_map.c - the stand-in libcudart: pitched and pooled memory, copies of boxes and batches,
 * fills of rectangles. */
#include "runtime.h"

SIM_EXPORT cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	RUNTIME_BEGIN(cudaMallocPitch, width * height);
	RUNTIME_END(DRIVER(cuMemAllocPitch_v2((CUdeviceptr *)devPtr, pitch, width, height, 4)),
		width * height);
}

SIM_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
	RUNTIME_BEGIN(cudaDeviceGetDefaultMemPool, 0);
	RUNTIME_END(DRIVER(cuDeviceGetDefaultMemPool(memPool, device)), 0);
}

SIM_EXPORT cudaError_t cudaMallocFromPoolAsync(
	void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMallocFromPoolAsync, size);
	RUNTIME_END(
		DRIVER(cuMemAllocFromPoolAsync((CUdeviceptr *)ptr, size, memPool, stream)), size);
}

static CUDA_MEMCPY3D box_of(const struct cudaMemcpy3DParms *p)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcPos.x,
		.srcY = p->srcPos.y,
		.srcZ = p->srcPos.z,
		.srcMemoryType = runtime_side_type(p->kind, cudaMemcpyDeviceToHost),
		.srcHost = p->srcPtr.ptr,
		.srcDevice = (CUdeviceptr)p->srcPtr.ptr,
		.srcPitch = p->srcPtr.pitch,
		.srcHeight = p->srcPtr.ysize,
		.dstXInBytes = p->dstPos.x,
		.dstY = p->dstPos.y,
		.dstZ = p->dstPos.z,
		.dstMemoryType = runtime_side_type(p->kind, cudaMemcpyHostToDevice),
		.dstHost = p->dstPtr.ptr,
		.dstDevice = (CUdeviceptr)p->dstPtr.ptr,
		.dstPitch = p->dstPtr.pitch,
		.dstHeight = p->dstPtr.ysize,
		.WidthInBytes = p->extent.width,
		.Height = p->extent.height,
		.Depth = p->extent.depth,
	};
}

static uint64_t box_bytes(const struct cudaMemcpy3DParms *p)
{
	return p ? (uint64_t)p->extent.width * p->extent.height * p->extent.depth : 0;
}

/* Arrays are not modelled. */
static cudaError_t box_check(const struct cudaMemcpy3DParms *p)
{
	if (!p || p->srcArray || p->dstArray)
		return SIM_INVALID_VALUE;
	return (unsigned)p->kind > cudaMemcpyDefault ? SIM_INVALID_MEMCPY_DIRECTION : SIM_SUCCESS;
}

SIM_EXPORT cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	CUDA_MEMCPY3D box;
	cudaError_t r;
	RUNTIME_BEGIN(cudaMemcpy3D, box_bytes(p));

	r = box_check(p);
	if (r == SIM_SUCCESS) {
		box = box_of(p);
		r = DRIVER(cuMemcpy3D_v2(&box));
	}
	RUNTIME_END(r, box_bytes(p));
}

SIM_EXPORT cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	CUDA_MEMCPY3D box;
	cudaError_t r;
	RUNTIME_BEGIN(cudaMemcpy3DAsync, box_bytes(p));

	r = box_check(p);
	if (r == SIM_SUCCESS) {
		box = box_of(p);
		r = DRIVER(cuMemcpy3DAsync_v2(&box, stream));
	}
	RUNTIME_END(r, box_bytes(p));
}

SIM_EXPORT cudaError_t cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
	struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
	cudaStream_t stream)
{
	uint64_t bytes = 0;
	RUNTIME_BEGIN(cudaMemcpyBatchAsync, 0);

	for (size_t i = 0; sizes && i < count; i++)
		bytes += sizes[i];
	RUNTIME_END(
		DRIVER(cuMemcpyBatchAsync((CUdeviceptr *)dsts, (CUdeviceptr *)srcs, sizes, count,
			(CUmemcpyAttributes *)attrs, attrsIdxs, numAttrs, failIdx, stream)),
		bytes);
}

SIM_EXPORT cudaError_t cudaMemset2D(
	void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
	RUNTIME_BEGIN(cudaMemset2D, width * height);
	RUNTIME_END(DRIVER(cuMemsetD2D8_v2(
			    (CUdeviceptr)devPtr, pitch, (unsigned char)value, width, height)),
		width * height);
}

SIM_EXPORT cudaError_t cudaMemset2DAsync(
	void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemset2DAsync, width * height);
	RUNTIME_END(DRIVER(cuMemsetD2D8Async((CUdeviceptr)devPtr, pitch, (unsigned char)value,
			    width, height, stream)),
		width * height);
}

SIM_EXPORT cudaError_t cudaMemcpy3DBatchAsync(
	size_t numOps, void *opList, size_t *failIdx, unsigned long long flags, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemcpy3DBatchAsync, 0);
	RUNTIME_END(DRIVER(cuMemcpy3DBatchAsync(numOps, opList, failIdx, flags, stream)), 0);
}

SIM_EXPORT cudaError_t cudaMemPrefetchAsync(
	const void *devPtr, size_t count, int dstDevice, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemPrefetchAsync, count);
	RUNTIME_END(
		DRIVER(cuMemPrefetchAsync((CUdeviceptr)devPtr, count, dstDevice, stream)), count);
}

SIM_EXPORT cudaError_t cudaMemPrefetchAsync_v2(const void *devPtr, size_t count,
	struct cudaMemLocation location, unsigned flags, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemPrefetchAsync_v2, count);
	RUNTIME_END(
		DRIVER(cuMemPrefetchAsync_v2((CUdeviceptr)devPtr, count, location, flags, stream)),
		count);
}

SIM_EXPORT cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned flags)
{
	RUNTIME_BEGIN(cudaHostRegister, size);
	RUNTIME_END(DRIVER(cuMemHostRegister_v2(ptr, size, flags)), size);
}

SIM_EXPORT cudaError_t cudaHostUnregister(void *ptr)
{
	RUNTIME_BEGIN(cudaHostUnregister, 0);
	RUNTIME_END(DRIVER(cuMemHostUnregister(ptr)), 0);
}

/* An extent by value: on the stack on x86-64, by the address of a copy on arm64. The bytes are not what a tracer can
 * see, and are not counted. */
SIM_EXPORT cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
	cudaError_t r;
	RUNTIME_BEGIN(cudaMalloc3D, 0);

	if (!pitchedDevPtr)
		RUNTIME_END(SIM_INVALID_VALUE, 0);
	r = DRIVER(cuMemAllocPitch_v2((CUdeviceptr *)&pitchedDevPtr->ptr, &pitchedDevPtr->pitch,
		extent.width, extent.height * extent.depth, 4));
	RUNTIME_END(r, 0);
}

SIM_EXPORT cudaError_t cudaLaunchCooperativeKernelMultiDevice(
	void *launchParamsList, unsigned numDevices, unsigned flags)
{
	RUNTIME_BEGIN(cudaLaunchCooperativeKernelMultiDevice, 0);
	RUNTIME_END(launchParamsList && numDevices ? SIM_SUCCESS : SIM_INVALID_VALUE, 0);
}
