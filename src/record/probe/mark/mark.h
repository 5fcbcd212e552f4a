/* SPDX-License-Identifier: Apache-2.0 */
/* mark.h - places in a program's own libraries that say what a training loop is doing: PyTorch's
 * optimizers, backward passes and data loaders, JAX's computations, Python's garbage collector, NVTX; and places in
 * those of CUDA at which kernels get their names.
 *
 * Nothing is recorded of a call here; the kernel half ends a row of the thread's ledger, or changes
 * the line that its time is on, or notes a name (wire/record.h) or a range. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/probe/mark/hook.h"

struct mark_place {
	enum mark_hook hook;
	uint32_t detail;    /* of NVTX: HOOK_NVTX_DETAIL */
	const char *symbol; /* pattern of elfsym_search() */
	const char *note;   /* or a static probe "provider:name" */
	bool at_return;
};

struct mark_library {
	const char *name;
	const struct mark_place *const *sets; /* the first that is complete is taken; NULL ends */
	const struct mark_place *any;         /* or instead: all of these that are there */
	const char *none;                     /* what to say of a file with none of them */
};

extern const struct mark_library mark_torch;
extern const struct mark_library mark_xla_cuda;
extern const struct mark_library mark_jax;
extern const struct mark_library mark_python;
extern const struct mark_library mark_nvtx;

/* Names of kernels: beside the calls that are probed in the same file. */
extern const struct mark_library mark_cudart_names;
extern const struct mark_library mark_cuda_names;
