// SPDX-License-Identifier: Apache-2.0
/* driver_copy.c - the stand-in libcuda: the functions that copy and fill. copy.c does it. Memory is
 * neither pinned nor moved ahead, and values in memory are not waited for: such calls are checked. */
#include "copy.h"
#include "driver.h"
#include "stream.h"

SIM_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	DRIVER_BEGIN(cuMemcpy);
	DRIVER_END(copy_line(dst, src, ByteCount, 0, NULL, false), ByteCount);
}

SIM_EXPORT CUresult cuMemcpyAsync(
	CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpyAsync);
	DRIVER_END(copy_line(dst, src, ByteCount, 0, hStream, true), ByteCount);
}

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	DRIVER_BEGIN(cuMemcpyHtoD_v2);
	DRIVER_END(copy_line(dstDevice, (uintptr_t)srcHost, ByteCount, COPY_TO_DEVICE, NULL, false),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	DRIVER_BEGIN(cuMemcpyDtoH_v2);
	DRIVER_END(
		copy_line((uintptr_t)dstHost, srcDevice, ByteCount, COPY_FROM_DEVICE, NULL, false),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	unsigned both = COPY_FROM_DEVICE | COPY_TO_DEVICE;
	DRIVER_BEGIN(cuMemcpyDtoD_v2);

	DRIVER_END(copy_line(dstDevice, srcDevice, ByteCount, both, NULL, false), ByteCount);
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpyHtoDAsync_v2);
	DRIVER_END(
		copy_line(dstDevice, (uintptr_t)srcHost, ByteCount, COPY_TO_DEVICE, hStream, true),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpyDtoHAsync_v2);
	DRIVER_END(copy_line((uintptr_t)dstHost, srcDevice, ByteCount, COPY_FROM_DEVICE, hStream,
			   true),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	unsigned both = COPY_FROM_DEVICE | COPY_TO_DEVICE;
	DRIVER_BEGIN(cuMemcpyDtoDAsync_v2);

	DRIVER_END(copy_line(dstDevice, srcDevice, ByteCount, both, hStream, true), ByteCount);
}

static uint64_t rect_bytes(const CUDA_MEMCPY2D *p)
{
	return p ? (uint64_t)p->WidthInBytes * p->Height : 0;
}

static unsigned device_sides(int src_type, int dst_type)
{
	return (src_type == CU_MEMORYTYPE_DEVICE ? COPY_FROM_DEVICE : 0) |
	       (dst_type == CU_MEMORYTYPE_DEVICE ? COPY_TO_DEVICE : 0);
}

static uintptr_t side(int type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : (uintptr_t)device;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream handle, bool async)
{
	struct copy_box b;

	if (!p)
		return SIM_INVALID_VALUE;
	b = (struct copy_box){
		.dst_pitch = p->dstPitch,
		.src_pitch = p->srcPitch,
		.width = p->WidthInBytes,
		.height = p->Height,
		.depth = 1,
		.dst_rows = p->Height,
		.src_rows = p->Height,
		.dst = side(p->dstMemoryType, p->dstHost, p->dstDevice) + p->dstY * p->dstPitch +
		       p->dstXInBytes,
		.src = side(p->srcMemoryType, p->srcHost, p->srcDevice) + p->srcY * p->srcPitch +
		       p->srcXInBytes,
	};
	return copy_box(&b, device_sides(p->srcMemoryType, p->dstMemoryType), handle, async);
}

SIM_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	DRIVER_BEGIN(cuMemcpy2DUnaligned_v2);
	DRIVER_END(copy_2d(pCopy, NULL, false), rect_bytes(pCopy));
}

SIM_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpy2DAsync_v2);
	DRIVER_END(copy_2d(pCopy, hStream, true), rect_bytes(pCopy));
}

static uint64_t box_bytes(const CUDA_MEMCPY3D *p)
{
	return p ? (uint64_t)p->WidthInBytes * p->Height * p->Depth : 0;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream handle, bool async)
{
	struct copy_box b;

	if (!p)
		return SIM_INVALID_VALUE;
	b = (struct copy_box){
		.dst_pitch = p->dstPitch,
		.src_pitch = p->srcPitch,
		.width = p->WidthInBytes,
		.height = p->Height,
		.depth = p->Depth,
		.dst_rows = p->dstHeight,
		.src_rows = p->srcHeight,
		.dst = side(p->dstMemoryType, p->dstHost, p->dstDevice) + p->dstXInBytes +
		       (p->dstZ * p->dstHeight + p->dstY) * p->dstPitch,
		.src = side(p->srcMemoryType, p->srcHost, p->srcDevice) + p->srcXInBytes +
		       (p->srcZ * p->srcHeight + p->srcY) * p->srcPitch,
	};
	return copy_box(&b, device_sides(p->srcMemoryType, p->dstMemoryType), handle, async);
}

SIM_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	DRIVER_BEGIN(cuMemcpy3D_v2);
	DRIVER_END(copy_3d(pCopy, NULL, false), box_bytes(pCopy));
}

SIM_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpy3DAsync_v2);
	DRIVER_END(copy_3d(pCopy, hStream, true), box_bytes(pCopy));
}

/* Up to the first that fails, whose index is told. */
SIM_EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
	size_t *failIdx, CUstream hStream)
{
	CUresult r = dsts && srcs && sizes && count ? SIM_SUCCESS : SIM_INVALID_VALUE;
	uint64_t bytes = 0;
	DRIVER_BEGIN(cuMemcpyBatchAsync);

	for (size_t i = 0; r == SIM_SUCCESS && i < count; i++) {
		bytes += sizes[i];
		r = copy_line(dsts[i], srcs[i], sizes[i], 0, hStream, true);
		if (r != SIM_SUCCESS && failIdx)
			*failIdx = i;
	}
	DRIVER_END(r, bytes);
}

SIM_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	CUcontext srcContext, size_t ByteCount)
{
	unsigned both = COPY_FROM_DEVICE | COPY_TO_DEVICE;
	DRIVER_BEGIN(cuMemcpyPeer);

	DRIVER_END(copy_line(dstDevice, srcDevice, ByteCount, both, NULL, false), ByteCount);
}

SIM_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
	CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	unsigned both = COPY_FROM_DEVICE | COPY_TO_DEVICE;
	DRIVER_BEGIN(cuMemcpyPeerAsync);

	DRIVER_END(copy_line(dstDevice, srcDevice, ByteCount, both, hStream, true), ByteCount);
}

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
	size_t height, CUstream handle)
{
	struct copy_box b = {
		.dst = dst,
		.dst_pitch = pitch,
		.width = width,
		.height = height,
		.depth = 1,
		.dst_rows = height,
	};

	return copy_fill(&b, value, handle);
}

SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	DRIVER_BEGIN(cuMemsetD8_v2);
	DRIVER_END(fill(dstDevice, N, uc, N, 1, NULL), N);
}

SIM_EXPORT CUresult cuMemsetD8Async(
	CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	DRIVER_BEGIN(cuMemsetD8Async);
	DRIVER_END(fill(dstDevice, N, uc, N, 1, hStream), N);
}

SIM_EXPORT CUresult cuMemsetD2D8_v2(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)
{
	DRIVER_BEGIN(cuMemsetD2D8_v2);
	DRIVER_END(fill(dstDevice, dstPitch, uc, Width, Height, NULL), Width * Height);
}

SIM_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream hStream)
{
	DRIVER_BEGIN(cuMemsetD2D8Async);
	DRIVER_END(fill(dstDevice, dstPitch, uc, Width, Height, hStream), Width * Height);
}

SIM_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short value, size_t N)
{
	DRIVER_BEGIN(cuMemsetD16_v2);
	DRIVER_END(fill(dstDevice, 2 * N, (unsigned char)value, 2 * N, 1, NULL), 2 * N);
}

SIM_EXPORT CUresult cuMemsetD16Async(
	CUdeviceptr dstDevice, unsigned short value, size_t N, CUstream hStream)
{
	DRIVER_BEGIN(cuMemsetD16Async);
	DRIVER_END(fill(dstDevice, 2 * N, (unsigned char)value, 2 * N, 1, hStream), 2 * N);
}

SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned value, size_t N)
{
	DRIVER_BEGIN(cuMemsetD32_v2);
	DRIVER_END(fill(dstDevice, 4 * N, (unsigned char)value, 4 * N, 1, NULL), 4 * N);
}

SIM_EXPORT CUresult cuMemsetD32Async(
	CUdeviceptr dstDevice, unsigned value, size_t N, CUstream hStream)
{
	DRIVER_BEGIN(cuMemsetD32Async);
	DRIVER_END(fill(dstDevice, 4 * N, (unsigned char)value, 4 * N, 1, hStream), 4 * N);
}

SIM_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned value,
	size_t Width, size_t Height, CUstream hStream)
{
	DRIVER_BEGIN(cuMemsetD2D32Async);
	DRIVER_END(fill(dstDevice, dstPitch, (unsigned char)value, 4 * Width, Height, hStream),
		4 * Width * Height);
}

SIM_EXPORT CUresult cuMemcpyWithAttributesAsync(
	CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpyWithAttributesAsync);
	DRIVER_END(attr ? copy_line(dst, src, size, 0, hStream, true) : SIM_INVALID_VALUE, size);
}

/* What moves nothing here is checked. */
static CUresult check(bool is_valid, CUstream handle)
{
	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	return !is_valid ? SIM_INVALID_VALUE : stream_of(handle) ? SIM_SUCCESS : SIM_INVALID_HANDLE;
}

SIM_EXPORT CUresult cuMemcpy3DBatchAsync(
	size_t numOps, void *opList, size_t *failIdx, unsigned long long flags, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpy3DBatchAsync);
	DRIVER_END(check(numOps && opList, hStream), 0);
}

SIM_EXPORT CUresult cuMemPrefetchAsync(
	CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	DRIVER_BEGIN(cuMemPrefetchAsync);
	DRIVER_END(check(devPtr && count, hStream), count);
}

SIM_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count,
	struct cudaMemLocation location, unsigned flags, CUstream hStream)
{
	DRIVER_BEGIN(cuMemPrefetchAsync_v2);
	DRIVER_END(check(devPtr && count, hStream), count);
}

SIM_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned Flags)
{
	DRIVER_BEGIN(cuMemHostRegister_v2);
	DRIVER_END(check(p && bytesize, NULL), bytesize);
}

SIM_EXPORT CUresult cuMemHostUnregister(void *p)
{
	DRIVER_BEGIN(cuMemHostUnregister);
	DRIVER_END(check(p != NULL, NULL), 0);
}

SIM_EXPORT CUresult cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr addr, unsigned value, unsigned flags)
{
	DRIVER_BEGIN(cuStreamWaitValue32_v2);
	DRIVER_END(check(addr != 0, stream), 0);
}

SIM_EXPORT CUresult cuStreamBatchMemOp_v2(
	CUstream stream, unsigned count, void *paramArray, unsigned flags)
{
	DRIVER_BEGIN(cuStreamBatchMemOp_v2);
	DRIVER_END(check(count && paramArray, stream), 0);
}
