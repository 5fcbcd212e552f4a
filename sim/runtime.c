// SPDX-License-Identifier: Apache-2.0
/* runtime.c - the stand-in libcudart: initialisation, devices, errors, memory and launches. Copies
 * and waiting are in runtime_copy.c and runtime_sync.c.
 *
 * Like the real one it holds no device state: each function checks what only it knows and calls the
 * exported function of the driver. An exported function calls no other exported one of its own. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime.h"

#define MAX_DEVICES 16

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool initialised;
static int device_count;
static _Atomic CUcontext contexts[MAX_DEVICES];
static _Thread_local int current_device;
static _Thread_local cudaError_t last_error;
static void (*_Atomic callback)(const void *func);

static const char *const symbols[] = {
#define X(name) #name,
	RUNTIME_SYMBOLS(X)
#undef X
};

const struct tally_library tally_library = {
	.suffix = ".cudart",
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
};

__attribute__((constructor)) static void runtime_load(void)
{
	tally_start();
}

SIM_EXPORT int sim_tally_write(void)
{
	int r = tally_write(), d = sim_driver_tally_write();

	return r < 0 ? r : d;
}

SIM_EXPORT void sim_callback_set(void (*fn)(const void *func))
{
	atomic_store(&callback, fn);
}

static cudaError_t init_locked(void)
{
	int version;
	CUresult r = DRIVER(cuInit(0));

	if (r == SIM_SUCCESS)
		r = DRIVER(cuDriverGetVersion(&version));
	if (r == SIM_SUCCESS)
		r = DRIVER(cuDeviceGetCount(&device_count));
	return r;
}

cudaError_t runtime_init(void)
{
	cudaError_t r = SIM_SUCCESS;

	if (atomic_load_explicit(&initialised, memory_order_acquire))
		return SIM_SUCCESS;
	pthread_mutex_lock(&init_lock);
	if (!initialised) {
		r = init_locked();
		if (r == SIM_SUCCESS)
			initialised = true;
	}
	pthread_mutex_unlock(&init_lock);
	return r;
}

cudaError_t runtime_end(const struct tally_call *c, cudaError_t r, uint64_t bytes)
{
	if (r != SIM_SUCCESS)
		last_error = r;
	tally_end(c, r != SIM_SUCCESS, bytes);
	return r;
}

cudaError_t runtime_context(int device, CUcontext *ret)
{
	CUcontext made;
	CUresult r;

	if (device < 0 || device >= device_count || device >= MAX_DEVICES)
		return SIM_INVALID_DEVICE;
	if (!contexts[device]) {
		r = DRIVER(cuDevicePrimaryCtxRetain(&made, device));
		if (r != SIM_SUCCESS)
			return r;
		contexts[device] = made;
	}
	*ret = contexts[device];
	return SIM_SUCCESS;
}

SIM_EXPORT cudaError_t cudaSetDevice(int device)
{
	CUcontext context;
	cudaError_t r;
	RUNTIME_BEGIN(cudaSetDevice, 0);

	r = runtime_context(device, &context);
	if (r == SIM_SUCCESS)
		current_device = device;
	RUNTIME_END(r, 0);
}

SIM_EXPORT cudaError_t cudaGetDevice(int *device)
{
	RUNTIME_BEGIN(cudaGetDevice, 0);
	if (!device)
		RUNTIME_END(SIM_INVALID_VALUE, 0);
	*device = current_device;
	RUNTIME_END(SIM_SUCCESS, 0);
}

SIM_EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
	RUNTIME_BEGIN(cudaGetDeviceCount, 0);
	RUNTIME_END(DRIVER(cuDeviceGetCount(count)), 0);
}

SIM_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	struct tally_call call = tally_begin(TALLY_cudaGetErrorString, false);
	const char *text;

	switch (error) {
	case SIM_SUCCESS: text = "no error"; break;
	case SIM_INVALID_VALUE: text = "invalid argument"; break;
	case SIM_OUT_OF_MEMORY: text = "out of memory"; break;
	case SIM_NOT_INITIALIZED: text = "initialization error"; break;
	case SIM_INVALID_MEMCPY_DIRECTION: text = "invalid copy direction for memcpy"; break;
	case SIM_INVALID_DEVICE: text = "invalid device ordinal"; break;
	case SIM_INVALID_HANDLE: text = "invalid resource handle"; break;
	case SIM_ILLEGAL_STATE:
		text = "the operation cannot be performed in the present state";
		break;
	case SIM_NOT_READY: text = "device not ready"; break;
	case SIM_CAPTURE_UNSUPPORTED:
		text = "operation not permitted when stream is capturing";
		break;
	case SIM_CAPTURE_INVALIDATED:
		text = "operation failed due to a previous error during capture";
		break;
	case SIM_GRAPH_UPDATE_FAILURE:
		text = "the graph update was not performed because it included changes which "
		       "violated constraints specific to instantiated graph update";
		break;
	default: text = "unrecognized error code"; break;
	}
	tally_end(&call, false, 0);
	return text;
}

/* Reporting an earlier error is not an error of this call. */
SIM_EXPORT cudaError_t cudaGetLastError(void)
{
	struct tally_call call = tally_begin(TALLY_cudaGetLastError, false);
	cudaError_t r = last_error;

	last_error = SIM_SUCCESS;
	tally_end(&call, false, 0);
	return r;
}

SIM_EXPORT cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	RUNTIME_BEGIN(cudaMalloc, size);
	RUNTIME_END(DRIVER(cuMemAlloc_v2((CUdeviceptr *)devPtr, size)), size);
}

SIM_EXPORT cudaError_t cudaFree(void *devPtr)
{
	RUNTIME_BEGIN(cudaFree, 0);
	if (!devPtr) /* allowed, and the usual way to make a context */
		RUNTIME_END(SIM_SUCCESS, 0);
	RUNTIME_END(DRIVER(cuMemFree_v2((CUdeviceptr)devPtr)), 0);
}

SIM_EXPORT cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned flags)
{
	RUNTIME_BEGIN(cudaMallocManaged, size);
	RUNTIME_END(DRIVER(cuMemAllocManaged((CUdeviceptr *)devPtr, size, flags)), size);
}

SIM_EXPORT cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaMallocAsync, size);
	RUNTIME_END(DRIVER(cuMemAllocAsync((CUdeviceptr *)devPtr, size, stream)), size);
}

SIM_EXPORT cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaFreeAsync, 0);
	if (!devPtr)
		RUNTIME_END(SIM_SUCCESS, 0);
	RUNTIME_END(DRIVER(cuMemFreeAsync((CUdeviceptr)devPtr, stream)), 0);
}

SIM_EXPORT cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned flags)
{
	RUNTIME_BEGIN(cudaHostAlloc, size);
	RUNTIME_END(DRIVER(cuMemHostAlloc(pHost, size, flags)), size);
}

SIM_EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	RUNTIME_BEGIN(cudaMallocHost, size);
	RUNTIME_END(DRIVER(cuMemHostAlloc(ptr, size, 0)), size);
}

SIM_EXPORT cudaError_t cudaFreeHost(void *ptr)
{
	RUNTIME_BEGIN(cudaFreeHost, 0);
	if (!ptr)
		RUNTIME_END(SIM_SUCCESS, 0);
	RUNTIME_END(DRIVER(cuMemFreeHost(ptr)), 0);
}

SIM_EXPORT void __cudaRegisterFunction(void **module, const char *host, char *device,
	const char *name, int limit, void *tid, void *bid, void *block, void *grid, int *size)
{
}

SIM_EXPORT cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
	size_t sharedMem, cudaStream_t stream)
{
	void (*fn)(const void *) = atomic_load_explicit(&callback, memory_order_relaxed);
	RUNTIME_BEGIN(cudaLaunchKernel, 0);

	if (fn)
		fn(func);
	RUNTIME_END(
		DRIVER(cuLaunchKernel((CUfunction)func, gridDim.x, gridDim.y, gridDim.z, blockDim.x,
			blockDim.y, blockDim.z, (unsigned)sharedMem, stream, args, NULL)),
		0);
}

SIM_EXPORT cudaError_t cudaLaunchKernelExC(
	const cudaLaunchConfig_t *config, const void *func, void **args)
{
	CUlaunchConfig c;
	RUNTIME_BEGIN(cudaLaunchKernelExC, 0);

	if (!config)
		RUNTIME_END(SIM_INVALID_VALUE, 0);
	c = (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes,
		.hStream = config->stream,
		.attrs = config->attrs,
		.numAttrs = config->numAttrs,
	};
	RUNTIME_END(DRIVER(cuLaunchKernelEx(&c, (CUfunction)func, args, NULL)), 0);
}

SIM_EXPORT cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
	void **args, size_t sharedMem, cudaStream_t stream)
{
	RUNTIME_BEGIN(cudaLaunchCooperativeKernel, 0);
	RUNTIME_END(
		DRIVER(cuLaunchCooperativeKernel((CUfunction)func, gridDim.x, gridDim.y, gridDim.z,
			blockDim.x, blockDim.y, blockDim.z, (unsigned)sharedMem, stream, args)),
		0);
}
