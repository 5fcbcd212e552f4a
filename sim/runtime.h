/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - what the files of the stand-in libcudart share: how an exported function begins,
 * calls the driver and ends. */
#pragma once

#include "cuda_sim.h"
#include "export.h"
#include "tally.h"
#include "tally_symbols.h"

enum runtime_symbol {
#define X(name) TALLY_##name,
	RUNTIME_SYMBOLS(X)
#undef X
};

/* runtime_init - initialise driver and context at the first call of the process. */
cudaError_t runtime_init(void);

/* runtime_end - counts the call's end, remembers an error for cudaGetLastError(), returns @r. */
cudaError_t runtime_end(const struct tally_call *c, cudaError_t r, uint64_t bytes);

/* Begins a function that needs the device. */
#define RUNTIME_BEGIN(name, bytes)                                                                 \
	struct tally_call call_ = tally_begin(TALLY_##name, false);                                \
	cudaError_t init_ = runtime_init();                                                        \
	if (init_ != SIM_SUCCESS)                                                                  \
	return runtime_end(&call_, init_, (bytes))

#define RUNTIME_END(result, bytes) return runtime_end(&call_, (result), (bytes))

/* An exported driver function, called as the runtime's own. */
#define DRIVER(driver_call)                                                                        \
	({                                                                                         \
		CUresult driver_r_;                                                                \
		sim_nested = 1;                                                                    \
		driver_r_ = (driver_call);                                                         \
		sim_nested = 0;                                                                    \
		driver_r_;                                                                         \
	})

/* runtime_context - the context of @device, or an error. */
cudaError_t runtime_context(int device, CUcontext *ret);

/* runtime_side_type - the memory type of a copy's side; @device_kind is the other kind besides D2D
 * that has it on the device. */
int runtime_side_type(enum cudaMemcpyKind kind, enum cudaMemcpyKind device_kind);
