/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - a library with the CUDA runtime inside, as nvcc links it into one: engine.so exports one
 * function and keeps its symbol table. */
#include <dlfcn.h>
#include <stddef.h>

#include "cuda_sim.h"

/* engine_run - an allocation, @count launches, a synchronisation and a free. Returns the calls that
 * failed. */
__attribute__((visibility("default"))) int engine_run(int count);
int engine_run(int count)
{
	const dim3 one = {1, 1, 1};
	void *p = NULL;
	int bad = !dlsym(RTLD_DEFAULT, "cuInit"); /* the runtime looks for its driver itself */

	bad += cudaMalloc(&p, 4096) != 0;
	for (int i = 0; i < count; i++)
		bad += cudaLaunchKernel((const void *)engine_run, one, one, NULL, 0, NULL) != 0;
	bad += cudaDeviceSynchronize() != 0;
	bad += cudaFree(p) != 0;
	return bad;
}
