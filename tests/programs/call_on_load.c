// SPDX-License-Identifier: Apache-2.0
/* call_on_load.c - a library that calls the CUDA runtime as soon as it is loaded: preloaded into any
 * program it makes that program a CUDA process, with CALLS allocations. */
#include <stddef.h>

#include "cuda_sim.h"

#define CALLS 7

__attribute__((constructor)) static void call(void)
{
	for (int i = 0; i < CALLS; i++) {
		void *p = NULL;

		if (cudaMalloc(&p, 4096) == 0)
			cudaFree(p);
	}
}
