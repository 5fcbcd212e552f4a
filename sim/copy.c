// SPDX-License-Identifier: Apache-2.0
/* copy.c - copies and fills. Every copy is a box (one row of one slice for the plain ones). Its
 * time on the device is size / rate; its bytes really move, at most SIM_COPY_BYTES of them. Where
 * they move:
 * - synchronous: in the call, after all earlier work of the streams has ended, so that the source's
 *   page faults happen in the call;
 * - asynchronous from pageable host memory: in the call (the real driver stages it), time enqueued;
 * - asynchronous to pageable host memory: the call waits, as the real one does;
 * - captured: from wherever to wherever at each launch, on the stream's thread;
 * - asynchronous between pinned and device memory: on the stream's thread when the work ends. */
#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "driver.h"
#include "knob.h"
#include "lane.h"
#include "stream.h"

enum place { PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE, PLACE_BAD };

struct copy_effect {
	struct stream_effect effect;
	struct copy_box box;
	int fill; /* of a fill; -1: copy */
};

static struct copy_box line(uintptr_t dst, uintptr_t src, size_t size)
{
	return (struct copy_box){dst, src, size, size, size, 1, 1, 1, 1};
}

/* Bytes from the first to the last of a side; false if they do not fit a size. */
static bool extent(size_t pitch, size_t rows, const struct copy_box *b, size_t *ret)
{
	size_t slices, lines;

	return b->width <= pitch && (b->height <= rows || b->depth == 1) &&
	       !__builtin_mul_overflow(pitch, rows, &slices) &&
	       !__builtin_mul_overflow(slices, b->depth - 1, &slices) &&
	       !__builtin_mul_overflow(pitch, b->height - 1, &lines) &&
	       !__builtin_add_overflow(slices, lines, &lines) &&
	       !__builtin_add_overflow(lines, b->width, ret);
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
	span = memory_span(&driver_address_space, addr, writes);
	if (span)
		return span >= size ? PLACE_DEVICE : PLACE_BAD;
	span = memory_span(&driver_host_memory, addr, writes);
	if (span)
		return span >= size ? PLACE_PINNED : PLACE_BAD;
	return PLACE_PAGEABLE;
}

/* Row @i of the whole box on a side. */
static uintptr_t row_at(uintptr_t start, size_t pitch, size_t rows, size_t height, size_t i)
{
	return start + (i / height * rows + i % height) * pitch;
}

/* Moves the bytes, or sets them if @fill is not negative. */
static void box_run(const struct copy_box *b, int fill)
{
	uint64_t left = knob_get()->copy_bytes;

	for (size_t i = 0; i < b->height * b->depth && left; i++) {
		size_t n = b->width < left ? b->width : (size_t)left;
		void *dst = (void *)row_at(b->dst, b->dst_pitch, b->dst_rows, b->height, i);

		if (fill >= 0)
			memset(dst, fill, n);
		else
			memmove(dst,
				(void *)row_at(b->src, b->src_pitch, b->src_rows, b->height, i), n);
		left -= n;
	}
}

static void effect_run(struct stream_effect *e)
{
	const struct copy_effect *c = (struct copy_effect *)e;

	box_run(&c->box, c->fill);
}

static struct stream_effect *effect_new(const struct copy_box *b, int fill)
{
	struct copy_effect *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct copy_effect){.effect.run = effect_run, .box = *b, .fill = fill};
	return &c->effect;
}

static enum stream_lane lane_of(enum place dst, enum place src)
{
	if (dst == PLACE_DEVICE)
		return src == PLACE_DEVICE ? LANE_NONE : LANE_TO_DEVICE;
	return src == PLACE_DEVICE ? LANE_TO_HOST : LANE_NONE;
}

static void copy_now(
	struct stream *s, const struct copy_box *b, enum stream_lane lane, uint64_t dur_ns)
{
	uint64_t ticket;

	if (s == stream_of(NULL))
		stream_wait_all();
	else
		stream_wait(s, stream_last(s));
	ticket = stream_enqueue(s, lane, dur_ns, NULL);
	box_run(b, -1);
	stream_wait(s, ticket);
}

CUresult copy_box(const struct copy_box *b, unsigned device, CUstream handle, bool async)
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
	if (b->width == 0 || b->height == 0 || b->depth == 0)
		return SIM_SUCCESS;
	if (!extent(b->dst_pitch, b->dst_rows, b, &dst_size) ||
		!extent(b->src_pitch, b->src_rows, b, &src_size))
		return SIM_INVALID_VALUE;
	dst = place_of(b->dst, dst_size, true);
	src = place_of(b->src, src_size, false);
	if (dst == PLACE_BAD || src == PLACE_BAD ||
		((device & COPY_TO_DEVICE) && dst == PLACE_PAGEABLE) ||
		((device & COPY_FROM_DEVICE) && src == PLACE_PAGEABLE))
		return SIM_INVALID_VALUE;
	lane = lane_of(dst, src);
	dur_ns = lane_transfer_ns((uint64_t)b->width * b->height * b->depth,
		lane == LANE_NONE ? knob_get()->mem_rate : knob_get()->pcie_rate);
	if (!async && driver_breaks_capture(s))
		return SIM_CAPTURE_UNSUPPORTED;
	if (!async || (dst == PLACE_PAGEABLE && !stream_is_capturing(s))) {
		copy_now(s, b, lane, dur_ns);
		return SIM_SUCCESS;
	}
	if (src == PLACE_PAGEABLE && !stream_is_capturing(s)) {
		box_run(b, -1);
		stream_enqueue(s, lane, dur_ns, NULL);
		return SIM_SUCCESS;
	}
	e = effect_new(b, -1);
	if (!e)
		return SIM_OUT_OF_MEMORY;
	stream_enqueue(s, lane, dur_ns, e);
	return SIM_SUCCESS;
}

CUresult copy_line(
	uintptr_t dst, uintptr_t src, size_t size, unsigned device, CUstream handle, bool async)
{
	struct copy_box b = line(dst, src, size);

	return copy_box(&b, device, handle, async);
}

CUresult copy_fill(const struct copy_box *b, unsigned char value, CUstream handle)
{
	struct stream *s = stream_of(handle);
	struct stream_effect *e;
	enum place place;
	size_t size;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s)
		return SIM_INVALID_HANDLE;
	if (b->width == 0 || b->height == 0)
		return SIM_SUCCESS;
	if (!extent(b->dst_pitch, b->height, b, &size))
		return SIM_INVALID_VALUE;
	place = place_of(b->dst, size, true);
	if (place != PLACE_DEVICE && place != PLACE_PINNED)
		return SIM_INVALID_VALUE;
	e = effect_new(b, value);
	if (!e)
		return SIM_OUT_OF_MEMORY;
	stream_enqueue(s, LANE_NONE,
		lane_transfer_ns((uint64_t)b->width * b->height, knob_get()->mem_rate), e);
	return SIM_SUCCESS;
}
