/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_handles.c - a library as nvcc 13 makes it: each kernel's handle is in a static variable of its
 * stub, from the kernel's first launch on. The handles are the stand-in's own (kernels that last a
 * moment), on the heap as the real ones are. */
#include <stdint.h>
#include <stdlib.h>

#include "cuda_sim.h"

#define HANDLE(name, symbol) static struct sim_kernel *name __asm__(symbol) __attribute__((used))

HANDLE(mul, "_ZZ31__device_stub__Z9mul_floatPfS_iPfS_iE8__handle");
HANDLE(scale, "_ZZL51__device_stub__ZN2at6native10scale_rowsILi4EEEvPKfiPKfiE8__handle");
HANDLE(never, "_ZZ23__device_stub__Z5nevervvE8__handle"); /* not launched: it stays 0 */
HANDLE(other, "other_handle");                            /* a handle that no stub keeps */

static void launch(struct sim_kernel **kernel)
{
	const dim3 one = {1, 1, 1};

	if (!*kernel) {
		*kernel = calloc(1, sizeof(**kernel));
		**kernel = (struct sim_kernel){.magic = SIM_KERNEL_MAGIC, .dur_ns = 1000};
	}
	cudaLaunchKernel(*kernel, one, one, NULL, 0, NULL);
}

/* launch_all - each @times; kernels that are launched, by their handles, are in ret_handles. */
void launch_all(int times, uint64_t ret_handles[4]);
void launch_all(int times, uint64_t ret_handles[4])
{
	for (int i = 0; i < times; i++) {
		launch(&mul);
		launch(&scale);
		launch(&other);
	}
	ret_handles[0] = (uint64_t)(uintptr_t)mul;
	ret_handles[1] = (uint64_t)(uintptr_t)scale;
	ret_handles[2] = (uint64_t)(uintptr_t)never;
	ret_handles[3] = (uint64_t)(uintptr_t)other;
}
