/* SPDX-License-Identifier: Apache-2.0 */
/* static_runtime.c - a program with a CUDA runtime of its own inside, as nvcc links it by default:
 * no libcudart is mapped, only libcuda. Usage: static-runtime COUNT GATE: creates GATE.ready, waits
 * for GATE, then makes COUNT launches, an allocation and a free, and a synchronisation, each by one
 * driver call. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda_sim.h"

#define RUNTIME __attribute__((noinline, used))

RUNTIME cudaError_t cudaMalloc(void **out, size_t size)
{
	CUdeviceptr p = 0;
	cudaError_t e = cuMemAlloc_v2(&p, size);

	*out = (void *)(uintptr_t)p;
	return e;
}

RUNTIME cudaError_t cudaFree(void *p)
{
	cudaError_t e = cuMemFree_v2((CUdeviceptr)(uintptr_t)p);

	return e;
}

RUNTIME cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
	size_t shared_bytes, cudaStream_t stream)
{
	cudaError_t e = cuLaunchKernel((CUfunction)(uintptr_t)function, grid.x, grid.y, grid.z,
		block.x, block.y, block.z, (unsigned)shared_bytes, stream, args, NULL);

	return e;
}

RUNTIME cudaError_t cudaDeviceSynchronize(void)
{
	cudaError_t e = cuCtxSynchronize();

	return e;
}

static void gate(const char *file)
{
	char ready[4096];

	snprintf(ready, sizeof(ready), "%s.ready", file);
	close(open(ready, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	while (access(file, F_OK) < 0)
		usleep(2000);
}

int main(int argc, char **argv)
{
	const dim3 one = {1, 1, 1};
	CUcontext context;
	void *p;
	int bad = 0;

	if (argc != 3)
		return 64;
	gate(argv[2]);
	bad |= cuInit(0);
	bad |= cuDevicePrimaryCtxRetain(&context, 0);
	bad |= cudaMalloc(&p, 4096);
	for (int i = atoi(argv[1]); i > 0; i--)
		bad |= cudaLaunchKernel((const void *)gate, one, one, NULL, 0, NULL);
	bad |= cudaDeviceSynchronize();
	bad |= cudaFree(p);
	return bad != 0;
}
