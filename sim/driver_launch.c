// SPDX-License-Identifier: Apache-2.0
/* driver_launch.c - the stand-in libcuda: kernel launches. A kernel is a duration and nothing else,
 * a gate a duration that is not known yet.
 *
 * The function handle may point at a struct sim_kernel or sim_gate, or be anything. Before a
 * pointer is followed for the first time it is tried with process_vm_readv(), which fails where a
 * load would crash; each thread remembers the pointers that proved readable, so a launch costs no
 * system call.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "driver.h"
#include "knob.h"
#include "stream.h"
#include "share.h"

#define REMEMBERED 64 /* a direct-mapped table of 512 bytes a thread */

static bool is_readable(const void *p)
{
	struct sim_kernel copy;
	struct iovec to = {&copy, sizeof(copy)}, from = {(void *)p, sizeof(copy)};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof(copy);
}

/* What @func points at; NULL if that cannot be read. */
static const struct sim_kernel *kernel_of(const void *func)
{
	static _Thread_local const void *known[REMEMBERED];
	const void **slot = &known[((uintptr_t)func >> 4) % REMEMBERED];

	if ((uintptr_t)func % _Alignof(struct sim_kernel) != 0)
		return NULL;
	if (*slot != func) {
		if (!is_readable(func))
			return NULL;
		*slot = func;
	}
	return func;
}

static bool dim_is_valid(dim3 d)
{
	return d.x && d.y && d.z;
}

static CUresult gate(struct stream *s, struct sim_gate *g)
{
	int r = stream_enqueue_gate(s, g);

	return r == -EBUSY ? SIM_CAPTURE_UNSUPPORTED : driver_result(r);
}

/* The launches that are told to fail, counted over all threads. */
static bool is_to_fail(void)
{
	static atomic_ullong launches;
	uint64_t from = knob_get()->fail_launch;

	return from && atomic_fetch_add(&launches, 1) + 1 >= from;
}

CUresult driver_launch(CUfunction f, dim3 grid, dim3 block, CUstream handle)
{
	struct stream *s = stream_of(handle);
	const struct sim_kernel *k;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!f || !dim_is_valid(grid) || !dim_is_valid(block))
		return SIM_INVALID_VALUE;
	if (!s)
		return SIM_INVALID_HANDLE;
	if (is_to_fail())
		return (CUresult)knob_get()->fail_code;
	k = kernel_of(f);
	if (k && k->magic == SIM_GATE_MAGIC)
		return gate(s, (struct sim_gate *)(void *)f);
	stream_enqueue(s, LANE_COMPUTE,
		share_stretch_ns(
			k && k->magic == SIM_KERNEL_MAGIC ? k->dur_ns : knob_get()->kernel_ns),
		NULL);
	return SIM_SUCCESS;
}

static CUresult new_kernel(CUfunction *function)
{
	struct sim_kernel *k = malloc(sizeof(*k));

	if (!k)
		return SIM_OUT_OF_MEMORY;
	*k = (struct sim_kernel){SIM_KERNEL_MAGIC, 0};
	*function = (CUfunction)(void *)k;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuModuleGetFunction(CUfunction *function, void *module, const char *name)
{
	return function && name ? new_kernel(function) : SIM_INVALID_VALUE;
}

SIM_EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUfunction kernel)
{
	static CUfunction alias;
	static uint64_t calls;

	if (!function || !kernel)
		return SIM_INVALID_VALUE;
	if (calls++ % SIM_ALIAS_CALLS == 0 && new_kernel(&alias) != SIM_SUCCESS)
		return SIM_OUT_OF_MEMORY;
	*function = alias;
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY,
	unsigned gridDimZ, unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ,
	unsigned sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
	dim3 grid = {gridDimX, gridDimY, gridDimZ}, block = {blockDimX, blockDimY, blockDimZ};
	DRIVER_BEGIN(cuLaunchKernel);

	DRIVER_END(driver_launch(f, grid, block, hStream), 0);
}

SIM_EXPORT CUresult cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	const CUlaunchConfig *c = config;
	DRIVER_BEGIN(cuLaunchKernelEx);

	if (!c)
		DRIVER_END(SIM_INVALID_VALUE, 0);
	DRIVER_END(driver_launch(f, (dim3){c->gridDimX, c->gridDimY, c->gridDimZ},
			   (dim3){c->blockDimX, c->blockDimY, c->blockDimZ}, c->hStream),
		0);
}

SIM_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gridDimX, unsigned gridDimY,
	unsigned gridDimZ, unsigned blockDimX, unsigned blockDimY, unsigned blockDimZ,
	unsigned sharedMemBytes, CUstream hStream, void **kernelParams)
{
	dim3 grid = {gridDimX, gridDimY, gridDimZ}, block = {blockDimX, blockDimY, blockDimZ};
	DRIVER_BEGIN(cuLaunchCooperativeKernel);

	DRIVER_END(driver_launch(f, grid, block, hStream), 0);
}

struct host_effect {
	struct stream_effect effect;
	cudaHostFn_t fn;
	void *arg;
};

static void host_run(struct stream_effect *e)
{
	((struct host_effect *)e)->fn(((struct host_effect *)e)->arg);
}

/* The function runs on the stream's thread when the work before it has ended. */
static CUresult host_launch(CUstream handle, cudaHostFn_t fn, void *arg)
{
	struct stream *s = stream_of(handle);
	struct host_effect *e;

	if (!driver_is_ready())
		return SIM_NOT_INITIALIZED;
	if (!fn)
		return SIM_INVALID_VALUE;
	if (!s)
		return SIM_INVALID_HANDLE;
	e = malloc(sizeof(*e));
	if (!e)
		return SIM_OUT_OF_MEMORY;
	*e = (struct host_effect){.effect.run = host_run, .fn = fn, .arg = arg};
	stream_enqueue(s, LANE_NONE, 0, &e->effect);
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuLaunchHostFunc_v2(
	CUstream hStream, cudaHostFn_t fn, void *userData, unsigned syncMode)
{
	DRIVER_BEGIN(cuLaunchHostFunc_v2);
	DRIVER_END(host_launch(hStream, fn, userData), 0);
}

SIM_EXPORT CUresult cuLaunchHostFunc(CUstream hStream, cudaHostFn_t fn, void *userData)
{
	DRIVER_BEGIN(cuLaunchHostFunc);
	DRIVER_END(host_launch(hStream, fn, userData), 0);
}
