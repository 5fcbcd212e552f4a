// SPDX-License-Identifier: Apache-2.0
/* driver_copy.c - the stand-in libcuda: copies and fills.
 *
 * Every copy is a rectangle (one row for the plain ones). Its time on the device is size / rate;
 * its bytes really move, at most SIM_COPY_BYTES of them. Where they move:
 * - synchronous: in the call, after all earlier work of the streams has ended, so that the source's
 *   page faults happen in the call;
 * - asynchronous from pageable host memory: in the call (the real driver stages it), time enqueued;
 * - asynchronous to pageable host memory: the call waits, as the real one does;
 * - captured: from wherever to wherever at each launch, on the stream's thread;
 * - asynchronous between pinned and device memory: on the stream's thread when the work ends. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "knob.h"
#include "lane.h"
#include "stream.h"

enum place { PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE, PLACE_BAD };

struct rect {
	uintptr_t dst, src;
	size_t dst_pitch, src_pitch, width, height;
};

struct copy_effect {
	struct stream_effect effect;
	struct rect rect;
	int fill; /* of a fill; -1: copy */
};

static struct rect line(uintptr_t dst, uintptr_t src, size_t size)
{
	return (struct rect){dst, src, size, size, size, size ? 1 : 0};
}

/* Bytes from the first to the last of a side; false if they do not fit a size. */
static bool rect_extent(size_t pitch, const struct rect *r, size_t *ret)
{
	size_t rows;

	return r->width <= pitch && !__builtin_mul_overflow(pitch, r->height - 1, &rows) &&
	       !__builtin_add_overflow(rows, r->width, ret);
}

/* What kind of memory [addr, addr + size) is; PLACE_BAD if it leaves its allocation. */
static enum place place_of(uintptr_t addr, size_t size, bool writes)
{
	size_t span;

	if (!addr)
		return PLACE_BAD;
	span = memory_span(&driver_device_memory, addr, writes);
	if (span)
		return span >= size ? PLACE_DEVICE : PLACE_BAD;
	if (addr >= driver_device_memory.base &&
		addr - driver_device_memory.base < driver_device_memory.capacity)
		return PLACE_BAD;
	span = memory_span(&driver_host_memory, addr, writes);
	if (span)
		return span >= size ? PLACE_PINNED : PLACE_BAD;
	return PLACE_PAGEABLE;
}

static void rect_copy(const struct rect *r)
{
	uint64_t left = knob_get()->copy_bytes;

	for (size_t row = 0; row < r->height && left; row++) {
		size_t n = r->width < left ? r->width : (size_t)left;

		memmove((void *)(r->dst + row * r->dst_pitch),
			(const void *)(r->src + row * r->src_pitch), n);
		left -= n;
	}
}

static void effect_run(struct stream_effect *e)
{
	struct copy_effect *c = (struct copy_effect *)e;
	uint64_t n =
		c->rect.width < knob_get()->copy_bytes ? c->rect.width : knob_get()->copy_bytes;

	if (c->fill >= 0)
		memset((void *)c->rect.dst, c->fill, n);
	else
		rect_copy(&c->rect);
}

static struct stream_effect *effect_new(const struct rect *r, int fill)
{
	struct copy_effect *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct copy_effect){.effect.run = effect_run, .rect = *r, .fill = fill};
	return &c->effect;
}

static enum stream_lane lane_of(enum place dst, enum place src)
{
	if (dst == PLACE_DEVICE)
		return src == PLACE_DEVICE ? LANE_NONE : LANE_TO_DEVICE;
	return src == PLACE_DEVICE ? LANE_TO_HOST : LANE_NONE;
}

static void copy_now(struct stream *s, const struct rect *r, enum stream_lane lane, uint64_t dur_ns)
{
	uint64_t ticket;

	if (s == stream_of(NULL))
		stream_wait_all();
	else
		stream_wait(s, stream_last(s));
	ticket = stream_enqueue(s, lane, dur_ns, NULL);
	rect_copy(r);
	stream_wait(s, ticket);
}

/* @device: sides that the called function says are on the device, bit 0 source, bit 1 target. */
static CUresult copy(const struct rect *r, unsigned device, CUstream handle, bool async)
{
	struct stream *s = stream_of(handle);
	size_t dst_size, src_size;
	enum place dst, src;
	enum stream_lane lane;
	struct stream_effect *e;
	uint64_t dur_ns;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s)
		return SIM_INVALID_HANDLE;
	if (r->width == 0 || r->height == 0)
		return SIM_SUCCESS;
	if (!rect_extent(r->dst_pitch, r, &dst_size) || !rect_extent(r->src_pitch, r, &src_size))
		return SIM_INVALID_VALUE;
	dst = place_of(r->dst, dst_size, true);
	src = place_of(r->src, src_size, false);
	if (dst == PLACE_BAD || src == PLACE_BAD || ((device & 2) && dst == PLACE_PAGEABLE) ||
		((device & 1) && src == PLACE_PAGEABLE))
		return SIM_INVALID_VALUE;
	lane = lane_of(dst, src);
	dur_ns = lane_transfer_ns((uint64_t)r->width * r->height,
		lane == LANE_NONE ? knob_get()->mem_rate : knob_get()->pcie_rate);
	if (!async && driver_breaks_capture(s))
		return SIM_CAPTURE_UNSUPPORTED;
	if (!async || (dst == PLACE_PAGEABLE && !stream_is_capturing(s))) {
		copy_now(s, r, lane, dur_ns);
		return SIM_SUCCESS;
	}
	if (src == PLACE_PAGEABLE && !stream_is_capturing(s)) {
		rect_copy(r);
		stream_enqueue(s, lane, dur_ns, NULL);
		return SIM_SUCCESS;
	}
	e = effect_new(r, -1);
	if (!e)
		return SIM_OUT_OF_MEMORY;
	stream_enqueue(s, lane, dur_ns, e);
	return SIM_SUCCESS;
}

static CUresult copy_line(
	uintptr_t dst, uintptr_t src, size_t size, unsigned device, CUstream handle, bool async)
{
	struct rect r = line(dst, src, size);

	return copy(&r, device, handle, async);
}

enum { FROM_DEVICE = 1, TO_DEVICE = 2 };

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
	DRIVER_END(copy_line(dstDevice, (uintptr_t)srcHost, ByteCount, TO_DEVICE, NULL, false),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	DRIVER_BEGIN(cuMemcpyDtoH_v2);
	DRIVER_END(copy_line((uintptr_t)dstHost, srcDevice, ByteCount, FROM_DEVICE, NULL, false),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	unsigned both = FROM_DEVICE | TO_DEVICE;
	DRIVER_BEGIN(cuMemcpyDtoD_v2);

	DRIVER_END(copy_line(dstDevice, srcDevice, ByteCount, both, NULL, false), ByteCount);
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpyHtoDAsync_v2);
	DRIVER_END(copy_line(dstDevice, (uintptr_t)srcHost, ByteCount, TO_DEVICE, hStream, true),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	DRIVER_BEGIN(cuMemcpyDtoHAsync_v2);
	DRIVER_END(copy_line((uintptr_t)dstHost, srcDevice, ByteCount, FROM_DEVICE, hStream, true),
		ByteCount);
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	unsigned both = FROM_DEVICE | TO_DEVICE;
	DRIVER_BEGIN(cuMemcpyDtoDAsync_v2);

	DRIVER_END(copy_line(dstDevice, srcDevice, ByteCount, both, hStream, true), ByteCount);
}

static uint64_t rect_bytes(const CUDA_MEMCPY2D *p)
{
	return p ? (uint64_t)p->WidthInBytes * p->Height : 0;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream handle, bool async)
{
	struct rect r;
	unsigned device = 0;

	if (!p)
		return SIM_INVALID_VALUE;
	r = (struct rect){
		.dst_pitch = p->dstPitch,
		.src_pitch = p->srcPitch,
		.width = p->WidthInBytes,
		.height = p->Height,
		.dst = p->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->dstHost
							      : (uintptr_t)p->dstDevice,
		.src = p->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->srcHost
							      : (uintptr_t)p->srcDevice,
	};
	r.dst += p->dstY * p->dstPitch + p->dstXInBytes;
	r.src += p->srcY * p->srcPitch + p->srcXInBytes;
	if (p->srcMemoryType == CU_MEMORYTYPE_DEVICE)
		device |= FROM_DEVICE;
	if (p->dstMemoryType == CU_MEMORYTYPE_DEVICE)
		device |= TO_DEVICE;
	return copy(&r, device, handle, async);
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

SIM_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	CUcontext srcContext, size_t ByteCount)
{
	unsigned both = FROM_DEVICE | TO_DEVICE;
	DRIVER_BEGIN(cuMemcpyPeer);

	DRIVER_END(copy_line(dstDevice, srcDevice, ByteCount, both, NULL, false), ByteCount);
}

SIM_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
	CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	unsigned both = FROM_DEVICE | TO_DEVICE;
	DRIVER_BEGIN(cuMemcpyPeerAsync);

	DRIVER_END(copy_line(dstDevice, srcDevice, ByteCount, both, hStream, true), ByteCount);
}

/* A fill never blocks the caller, also on the default stream. */
static CUresult fill(CUdeviceptr dst, unsigned char value, size_t size, CUstream handle)
{
	struct stream *s = stream_of(handle);
	struct rect r = line(dst, 0, size);
	struct stream_effect *e;
	enum place place;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s)
		return SIM_INVALID_HANDLE;
	if (size == 0)
		return SIM_SUCCESS;
	place = place_of(dst, size, true);
	if (place != PLACE_DEVICE && place != PLACE_PINNED)
		return SIM_INVALID_VALUE;
	e = effect_new(&r, value);
	if (!e)
		return SIM_OUT_OF_MEMORY;
	stream_enqueue(s, LANE_NONE, lane_transfer_ns(size, knob_get()->mem_rate), e);
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	DRIVER_BEGIN(cuMemsetD8_v2);
	DRIVER_END(fill(dstDevice, uc, N, NULL), N);
}

SIM_EXPORT CUresult cuMemsetD8Async(
	CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	DRIVER_BEGIN(cuMemsetD8Async);
	DRIVER_END(fill(dstDevice, uc, N, hStream), N);
}
