/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - what the files of the stand-in libcuda share: the process's one context, and how an
 * exported function begins and ends. */
#pragma once

#include "cuda_sim.h"
#include "export.h"
#include "memory.h"
#include "tally.h"
#include "tally_symbols.h"

enum driver_symbol {
#define X(name) TALLY_##name,
	DRIVER_SYMBOLS(X)
#undef X
};

extern struct memory driver_device_memory;
extern struct memory driver_host_memory;   /* pinned */
extern struct memory driver_address_space; /* reserved, not counted */

/* driver_is_ready - cuInit() has succeeded in this very process (not in the one it forked from). */
bool driver_is_ready(void);

/* driver_result - the CUDA number for 0 or a negative errno. */
CUresult driver_result(int r);

struct stream;

/* driver_breaks_capture - true, and the capture is spoilt, if @s is capturing: for what cannot be
 * recorded. */
bool driver_breaks_capture(struct stream *s);

/* What a function and its variant for per-thread default streams share. */
CUresult driver_launch(CUfunction f, dim3 grid, dim3 block, CUstream handle);
CUresult driver_stream_sync(CUstream handle);
CUresult driver_stream_alloc(CUdeviceptr *ret, size_t size, CUstream handle);

#define DRIVER_BEGIN(name) struct tally_call call_ = tally_begin(TALLY_##name, sim_nested != 0)

static inline CUresult driver_end(const struct tally_call *c, CUresult r, uint64_t bytes)
{
	tally_end(c, r != SIM_SUCCESS, bytes);
	return r;
}
#define DRIVER_END(result, bytes) return driver_end(&call_, (result), (bytes))
