// SPDX-License-Identifier: Apache-2.0
/* runtime_array.c - the stand-in libcudart: arrays, which are pitched memory of one byte an element here, copies to and
 * from them, and boxes that are filled or copied between devices. */
#include <stdlib.h>

#include "runtime.h"

struct cudaArray {
	CUdeviceptr at;
	size_t pitch;
};

SIM_EXPORT cudaError_t cudaMallocArray(
	cudaArray_t *array, const void *desc, size_t width, size_t height, unsigned flags)
{
	struct cudaArray *made = NULL;
	cudaError_t r;
	RUNTIME_BEGIN(cudaMallocArray, 0);

	if (array)
		made = malloc(sizeof(*made));
	if (!made)
		RUNTIME_END(SIM_INVALID_VALUE, 0);
	r = DRIVER(cuMemAllocPitch_v2(&made->at, &made->pitch, width, height, 4));
	if (r == SIM_SUCCESS)
		*array = made;
	else
		free(made);
	RUNTIME_END(r, 0);
}

SIM_EXPORT cudaError_t cudaFreeArray(cudaArray_t array)
{
	cudaError_t r;
	RUNTIME_BEGIN(cudaFreeArray, 0);

	r = array ? DRIVER(cuMemFree_v2(array->at)) : SIM_SUCCESS;
	free(array);
	RUNTIME_END(r, 0);
}

static CUDA_MEMCPY2D to_array(cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = runtime_side_type(kind, cudaMemcpyDeviceToHost),
		.srcHost = src,
		.srcDevice = (CUdeviceptr)src,
		.srcPitch = spitch,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = dst->at + y * dst->pitch + x,
		.dstPitch = dst->pitch,
		.WidthInBytes = width,
		.Height = height,
	};
}

SIM_EXPORT cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D rect = to_array(dst, wOffset, hOffset, src, spitch, width, height, kind);
	RUNTIME_BEGIN(cudaMemcpy2DToArray, width * height);
	RUNTIME_END(DRIVER(cuMemcpy2DUnaligned_v2(&rect)), width * height);
}

SIM_EXPORT cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t stream)
{
	CUDA_MEMCPY2D rect = to_array(dst, wOffset, hOffset, src, spitch, width, height, kind);
	RUNTIME_BEGIN(cudaMemcpy2DToArrayAsync, width * height);
	RUNTIME_END(DRIVER(cuMemcpy2DAsync_v2(&rect, stream)), width * height);
}

SIM_EXPORT cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst,
	size_t hOffsetDst, cudaArray_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t width,
	size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D rect = to_array(dst, wOffsetDst, hOffsetDst,
		(void *)(src->at + hOffsetSrc * src->pitch + wOffsetSrc), src->pitch, width, height,
		kind);
	RUNTIME_BEGIN(cudaMemcpy2DArrayToArray, width * height);
	RUNTIME_END(DRIVER(cuMemcpy2DUnaligned_v2(&rect)), width * height);
}

/* One row. */
SIM_EXPORT cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D rect = to_array(dst, wOffset, hOffset, src, count, count, 1, kind);
	RUNTIME_BEGIN(cudaMemcpyToArray, count);
	RUNTIME_END(DRIVER(cuMemcpy2DUnaligned_v2(&rect)), count);
}

SIM_EXPORT cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D rect = to_array(dst, wOffset, hOffset, src, count, count, 1, kind);
	RUNTIME_BEGIN(cudaMemcpyToArrayAsync, count);
	RUNTIME_END(DRIVER(cuMemcpy2DAsync_v2(&rect, stream)), count);
}

SIM_EXPORT cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
	cudaArray_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t count,
	enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D rect = to_array(dst, wOffsetDst, hOffsetDst,
		(void *)(src->at + hOffsetSrc * src->pitch + wOffsetSrc), src->pitch, count, 1,
		kind);
	RUNTIME_BEGIN(cudaMemcpyArrayToArray, count);
	RUNTIME_END(DRIVER(cuMemcpy2DUnaligned_v2(&rect)), count);
}

/* The structures by value are on the stack on x86-64, and by the addresses of copies on arm64: the stream is the second
 * word there, and the fourth here. */
static CUresult fill_box(
	struct cudaPitchedPtr at, int value, struct cudaExtent extent, cudaStream_t stream)
{
	return DRIVER(cuMemsetD2D8Async((CUdeviceptr)at.ptr, at.pitch, (unsigned char)value,
		extent.width, extent.height * extent.depth, stream));
}

SIM_EXPORT cudaError_t cudaMemset3D(
	struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent)
{
	RUNTIME_BEGIN(cudaMemset3D, 0);
	RUNTIME_END(fill_box(pitchedDevPtr, value, extent, NULL), 0);
}

SIM_EXPORT cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value,
	struct cudaExtent extent, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMemset3DAsync, 0);
	RUNTIME_END(fill_box(pitchedDevPtr, value, extent, stream), 0);
}

static CUDA_MEMCPY3D box_of(const struct cudaMemcpy3DPeerParms *p)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = (CUdeviceptr)p->srcPtr.ptr,
		.srcPitch = p->srcPtr.pitch,
		.srcHeight = p->srcPtr.ysize,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = (CUdeviceptr)p->dstPtr.ptr,
		.dstPitch = p->dstPtr.pitch,
		.dstHeight = p->dstPtr.ysize,
		.WidthInBytes = p->extent.width,
		.Height = p->extent.height,
		.Depth = p->extent.depth,
	};
}

SIM_EXPORT cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
	CUDA_MEMCPY3D box = box_of(p);
	RUNTIME_BEGIN(cudaMemcpy3DPeer, 0);
	RUNTIME_END(DRIVER(cuMemcpy3D_v2(&box)), 0);
}

SIM_EXPORT cudaError_t cudaMemcpy3DPeerAsync(
	const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	CUDA_MEMCPY3D box = box_of(p);
	RUNTIME_BEGIN(cudaMemcpy3DPeerAsync, 0);
	RUNTIME_END(DRIVER(cuMemcpy3DAsync_v2(&box, stream)), 0);
}
