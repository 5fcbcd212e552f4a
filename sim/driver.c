// SPDX-License-Identifier: Apache-2.0
/* driver.c - the stand-in libcuda: initialisation, memory, streams and events. Copies are in
 * driver_copy.c, launches in driver_launch.c.
 *
 * An exported function counts itself, checks its arguments and leaves the work to a static function
 * or another module; none calls another exported function, so that a probe sees exactly the calls
 * that were made. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <sys/mman.h>

#include "driver.h"
#include "event.h"
#include "knob.h"
#include "stream.h"
#include "share.h"

#define DRIVER_VERSION 12080
#define ADDRESS_SPACE  (1ULL << 38) /* that can be reserved */

enum driver_state { DRIVER_NEW, DRIVER_READY, DRIVER_FORKED };

struct memory driver_device_memory, driver_host_memory, driver_address_space;
__attribute__((visibility("default"))) _Thread_local int sim_nested;

static _Atomic enum driver_state state;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static char contexts[16]; /* a context's handle is the address of its device's byte */

static const char *const symbols[] = {
#define X(name) #name,
	DRIVER_SYMBOLS(X)
#undef X
};

const struct tally_library tally_library = {
	.suffix = ".cuda",
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
};

static void before_fork(void)
{
	pthread_mutex_lock(&init_lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&init_lock);
}

/* The workers did not come along; like the real driver, a context does not survive fork. */
static void after_fork_child(void)
{
	pthread_mutex_unlock(&init_lock);
	if (state == DRIVER_READY)
		state = DRIVER_FORKED;
}

__attribute__((constructor)) static void driver_load(void)
{
	tally_start();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

SIM_EXPORT int sim_driver_tally_write(void)
{
	return tally_write();
}

bool driver_is_ready(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == DRIVER_READY;
}

CUresult driver_result(int r)
{
	switch (r) {
	case 0: return SIM_SUCCESS;
	case -ENOMEM:
	case -EAGAIN: return SIM_OUT_OF_MEMORY;
	default: return SIM_INVALID_VALUE;
	}
}

bool driver_breaks_capture(struct stream *s)
{
	if (!stream_is_capturing(s))
		return false;
	stream_capture_break(s);
	return true;
}

static CUresult context_make(void)
{
	uint64_t until = tally_now_ns() + knob_get()->init_ns;
	struct timespec t = {(time_t)(until / 1000000000), (long)(until % 1000000000)};

	if (memory_init(&driver_device_memory, knob_get()->device_mem) < 0)
		return SIM_OUT_OF_MEMORY;
	if (memory_init(&driver_host_memory, knob_get()->host_mem) < 0) {
		memory_done(&driver_device_memory);
		return SIM_OUT_OF_MEMORY;
	}
	if (memory_init(&driver_address_space, ADDRESS_SPACE) < 0 || stream_start() < 0) {
		memory_done(&driver_device_memory);
		memory_done(&driver_host_memory);
		return SIM_OUT_OF_MEMORY;
	}
	while (knob_get()->init_ns &&
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
	return SIM_SUCCESS;
}

static CUresult init(unsigned flags)
{
	CUresult r = SIM_SUCCESS;

	if (flags != 0)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&init_lock);
	if (state == DRIVER_NEW) {
		r = context_make();
		if (r == SIM_SUCCESS)
			state = DRIVER_READY;
	} else if (state == DRIVER_FORKED) {
		r = SIM_NOT_INITIALIZED;
	}
	pthread_mutex_unlock(&init_lock);
	return r;
}

SIM_EXPORT CUresult cuInit(unsigned Flags)
{
	DRIVER_BEGIN(cuInit);
	DRIVER_END(init(Flags), 0);
}

SIM_EXPORT CUresult cuDriverGetVersion(int *driverVersion)
{
	DRIVER_BEGIN(cuDriverGetVersion);
	if (!driverVersion)
		DRIVER_END(SIM_INVALID_VALUE, 0);
	*driverVersion = DRIVER_VERSION;
	DRIVER_END(SIM_SUCCESS, 0);
}

SIM_EXPORT CUresult cuDeviceGetCount(int *count)
{
	DRIVER_BEGIN(cuDeviceGetCount);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	if (!count)
		DRIVER_END(SIM_INVALID_VALUE, 0);
	*count = (int)knob_get()->devices;
	DRIVER_END(SIM_SUCCESS, 0);
}

static bool device_exists(CUdevice dev)
{
	return dev >= 0 && (uint64_t)dev < knob_get()->devices;
}

SIM_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	DRIVER_BEGIN(cuDeviceGetName);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	if (!name || len <= 0)
		DRIVER_END(SIM_INVALID_VALUE, 0);
	if (!device_exists(dev))
		DRIVER_END(SIM_INVALID_DEVICE, 0);
	snprintf(name, (size_t)len, "Stand-in GPU %d", dev);
	DRIVER_END(SIM_SUCCESS, 0);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	DRIVER_BEGIN(cuDevicePrimaryCtxRetain);
	if (!driver_is_ready())
		DRIVER_END(SIM_NOT_INITIALIZED, 0);
	if (!pctx)
		DRIVER_END(SIM_INVALID_VALUE, 0);
	if (!device_exists(dev))
		DRIVER_END(SIM_INVALID_DEVICE, 0);
	share_device(dev);
	*pctx = (CUcontext)&contexts[dev];
	DRIVER_END(SIM_SUCCESS, 0);
}

/* Short times are spent on the CPU, as the driver does; long ones waiting. */
static void alloc_spend(void)
{
	static atomic_ullong count;
	const struct knobs *k = knob_get();
	uint64_t every = k->malloc_slow_every, until = tally_now_ns(), now;

	if (!every && !k->malloc_ns)
		return;
	until += every && (atomic_fetch_add(&count, 1) + 1) % every == 0 ? k->malloc_slow_ns
									 : k->malloc_ns;
	while ((now = tally_now_ns()) < until)
		if (until - now > 1000000)
			nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

static CUresult device_alloc(CUdeviceptr *ret, size_t size)
{
	uintptr_t start;
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!ret)
		return SIM_INVALID_VALUE;
	alloc_spend();
	r = memory_alloc(&driver_device_memory, size, &start);
	if (r == 0)
		*ret = start;
	return driver_result(r);
}

SIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	DRIVER_BEGIN(cuMemAlloc_v2);
	DRIVER_END(device_alloc(dptr, bytesize), bytesize);
}

/* Freeing waits for the device, as the real one does: work under way may use the memory. */
static CUresult memory_release(struct memory *m, uintptr_t start)
{
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	r = memory_retire(m, start);
	if (r == 0) {
		stream_wait_all();
		r = memory_free(m, start);
	}
	return driver_result(r);
}

SIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	DRIVER_BEGIN(cuMemFree_v2);
	DRIVER_END(memory_release(&driver_device_memory, (uintptr_t)dptr), 0);
}

/* The host may write managed memory at any time, so its pages count as touched from the start. */
static CUresult managed_alloc(CUdeviceptr *ret, size_t size)
{
	CUresult r = device_alloc(ret, size);

	if (r == SIM_SUCCESS)
		memory_span(&driver_device_memory, (uintptr_t)*ret, true);
	return r;
}

SIM_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned flags)
{
	DRIVER_BEGIN(cuMemAllocManaged);
	DRIVER_END(managed_alloc(dptr, bytesize), bytesize);
}

/* A stream's pool may reuse what was freed earlier in the same stream: wait for that if need be. */
CUresult driver_stream_alloc(CUdeviceptr *ret, size_t size, CUstream handle)
{
	struct stream *s = stream_of(handle);
	CUresult r;

	if (!s)
		return SIM_INVALID_HANDLE;
	if (driver_breaks_capture(s))
		return SIM_CAPTURE_UNSUPPORTED;
	r = device_alloc(ret, size);
	if (r == SIM_OUT_OF_MEMORY) {
		stream_wait(s, stream_last(s));
		r = device_alloc(ret, size);
	}
	return r;
}

SIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	DRIVER_BEGIN(cuMemAllocAsync);
	DRIVER_END(driver_stream_alloc(dptr, bytesize, hStream), bytesize);
}

struct free_effect {
	struct stream_effect effect;
	uintptr_t start;
};

static void free_run(struct stream_effect *e)
{
	memory_free(&driver_device_memory, ((struct free_effect *)e)->start);
}

static CUresult stream_free(CUdeviceptr dptr, CUstream handle)
{
	struct stream *s = stream_of(handle);
	struct free_effect *e;
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!s)
		return SIM_INVALID_HANDLE;
	if (driver_breaks_capture(s))
		return SIM_CAPTURE_UNSUPPORTED;
	r = memory_retire(&driver_device_memory, (uintptr_t)dptr);
	if (r < 0)
		return driver_result(r);
	e = malloc(sizeof(*e));
	if (!e)
		return SIM_OUT_OF_MEMORY;
	*e = (struct free_effect){.effect.run = free_run, .start = (uintptr_t)dptr};
	stream_enqueue(s, LANE_NONE, 0, &e->effect);
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	DRIVER_BEGIN(cuMemFreeAsync);
	DRIVER_END(stream_free(dptr, hStream), 0);
}

/* Pinned: the pages are there before the call returns. */
static CUresult host_alloc(void **ret, size_t size)
{
	uintptr_t start;
	int r;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!ret)
		return SIM_INVALID_VALUE;
	r = memory_alloc(&driver_host_memory, size, &start);
	if (r < 0)
		return driver_result(r);
	memory_span(&driver_host_memory, start, true);
	for (size_t at = 0; at < size; at += 4096)
		*(volatile char *)(start + at) = 0;
	*ret = (void *)start;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned Flags)
{
	DRIVER_BEGIN(cuMemHostAlloc);
	DRIVER_END(host_alloc(pp, bytesize), bytesize);
}

SIM_EXPORT CUresult cuMemFreeHost(void *p)
{
	DRIVER_BEGIN(cuMemFreeHost);
	DRIVER_END(memory_release(&driver_host_memory, (uintptr_t)p), 0);
}
