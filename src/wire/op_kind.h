/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* op_kind.h - what an operation is for: the one definition of each kind, for the BPF programs, the
 * engine, the store and its SQL. Freestanding. */
#pragma once

#include "wire/ids.h"
#include "wire/ledger.h"

/* op_kind_is_cuda - a call of CUDA itself, by the runtime or the driver: what can be slow by itself,
 * has an ordinary duration and allocates memory. */
#define OP_KIND_CUDA_SQL "source IN (1, 4)"
static inline __attribute__((always_inline)) _Bool op_kind_is_cuda(unsigned source)
{
	return source == SOURCE_CUDA || source == SOURCE_DRIVER;
}

/* op_kind_is_gpu - a call by which a program uses a GPU: of CUDA, of its graphs, of NCCL. Everything
 * else is an event of the host. */
#define OP_KIND_GPU_SQL "source IN (1, 4, 8, 9)"
static inline __attribute__((always_inline)) _Bool op_kind_is_gpu(unsigned source)
{
	return op_kind_is_cuda(source) || source == SOURCE_GRAPH || source == SOURCE_NCCL;
}

_Static_assert(SOURCE_CUDA == 1 && SOURCE_DRIVER == 4 && SOURCE_GRAPH == 8 && SOURCE_NCCL == 9,
	"the SQL above has the same ids");

/* op_kind_is_gpu_wait - the call returns when the GPU has done what it was given: the thread waits
 * for nothing else. A plain copy also waits, but for its own bytes. */
static inline __attribute__((always_inline)) _Bool op_kind_is_gpu_wait(unsigned source, unsigned op)
{
	if (source == SOURCE_CUDA)
		return op == CUDA_STREAM_SYNC || op == CUDA_DEVICE_SYNC || op == CUDA_EVENT_SYNC;
	return source == SOURCE_DRIVER &&
	       (op == DRIVER_CTX_SYNC || op == DRIVER_STREAM_SYNC || op == DRIVER_EVENT_SYNC);
}

/* op_kind_is_launch - the call gives the GPU a kernel to run; its arg0 is the function. */
#define OP_KIND_LAUNCH_SQL "(source = 1 AND op IN (3, 13, 14) OR source = 4 AND op IN (1, 7, 19))"
_Static_assert(CUDA_LAUNCH == 3 && CUDA_LAUNCH_EXC == 13 && CUDA_LAUNCH_COOP == 14 &&
		       DRIVER_LAUNCH == 1 && DRIVER_LAUNCH_EX == 7 && DRIVER_LAUNCH_COOP == 19,
	"the SQL above has the same ids");
static inline _Bool op_kind_is_launch(unsigned source, unsigned op)
{
	if (source == SOURCE_CUDA)
		return op == CUDA_LAUNCH || op == CUDA_LAUNCH_EXC || op == CUDA_LAUNCH_COOP;
	return source == SOURCE_DRIVER &&
	       (op == DRIVER_LAUNCH || op == DRIVER_LAUNCH_EX || op == DRIVER_LAUNCH_COOP);
}

/* op_kind_is_governed - called so often that under load it is probed only part of the time
 * (COOKIE_GOVERNED): launches, and enqueued fills, of which PyTorch makes one to every four. */
static inline _Bool op_kind_is_governed(unsigned source, unsigned op)
{
	return op_kind_is_launch(source, op) ||
	       (source == SOURCE_CUDA && op == CUDA_MEMSET_ASYNC) ||
	       (source == SOURCE_DRIVER && op == DRIVER_MEMSET_ASYNC);
}

#define OP_BIT(op) (1ull << (op))

/* Allocations and frees, and the driver's calls that map memory. */
#define OP_ALLOCATIONS_RUNTIME                                                                     \
	(OP_BIT(CUDA_MALLOC) | OP_BIT(CUDA_FREE) | OP_BIT(CUDA_MALLOC_MANAGED) |                   \
		OP_BIT(CUDA_MALLOC_ASYNC) | OP_BIT(CUDA_FREE_ASYNC) | OP_BIT(CUDA_HOST_ALLOC) |    \
		OP_BIT(CUDA_HOST_FREE) | OP_BIT(CUDA_MALLOC_PITCH) |                               \
		OP_BIT(CUDA_MALLOC_FROM_POOL) | OP_BIT(CUDA_MALLOC_ARRAY) |                        \
		OP_BIT(CUDA_HOST_REGISTER) | OP_BIT(CUDA_HOST_UNREGISTER))
#define OP_ALLOCATIONS_DRIVER                                                                      \
	(OP_BIT(DRIVER_MALLOC) | OP_BIT(DRIVER_FREE) | OP_BIT(DRIVER_MALLOC_MANAGED) |             \
		OP_BIT(DRIVER_MALLOC_ASYNC) | OP_BIT(DRIVER_FREE_ASYNC) |                          \
		OP_BIT(DRIVER_HOST_ALLOC) | OP_BIT(DRIVER_HOST_FREE) | OP_BIT(DRIVER_MEM_CREATE) | \
		OP_BIT(DRIVER_MEM_MAP) | OP_BIT(DRIVER_MEM_UNMAP) | OP_BIT(DRIVER_MEM_RELEASE) |   \
		OP_BIT(DRIVER_MALLOC_PITCH) | OP_BIT(DRIVER_MALLOC_FROM_POOL) |                    \
		OP_BIT(DRIVER_HOST_REGISTER) | OP_BIT(DRIVER_HOST_UNREGISTER))

/* op_kind_marks - whether single calls of this op tell something even when they are as quick as
 * ever: waits for the GPU mark steps, allocations and frees add up to what is in use. */
static inline _Bool op_kind_marks(unsigned source, unsigned op)
{
	if (!op_kind_is_cuda(source) || op >= WIRE_OP_MAX)
		return 0;
	return op_kind_is_gpu_wait(source, op) ||
	       ((source == SOURCE_CUDA ? OP_ALLOCATIONS_RUNTIME : OP_ALLOCATIONS_DRIVER) >> op & 1);
}

#define OP_LAUNCHES_RUNTIME                                                                        \
	(OP_BIT(CUDA_LAUNCH) | OP_BIT(CUDA_LAUNCH_EXC) | OP_BIT(CUDA_LAUNCH_COOP) |                \
		OP_BIT(CUDA_LAUNCH_MULTI))
#define OP_LAUNCHES_DRIVER                                                                         \
	(OP_BIT(DRIVER_LAUNCH) | OP_BIT(DRIVER_LAUNCH_EX) | OP_BIT(DRIVER_LAUNCH_COOP))

#define OP_COPIES_RUNTIME                                                                          \
	(OP_BIT(CUDA_MEMCPY) | OP_BIT(CUDA_MEMCPY_ASYNC) | OP_BIT(CUDA_MEMCPY_2D) |                \
		OP_BIT(CUDA_MEMCPY_2D_ASYNC) | OP_BIT(CUDA_MEMCPY_PEER) |                          \
		OP_BIT(CUDA_MEMCPY_PEER_ASYNC) | OP_BIT(CUDA_MEMCPY_3D) |                          \
		OP_BIT(CUDA_MEMCPY_3D_ASYNC) | OP_BIT(CUDA_MEMCPY_BATCH) |                         \
		OP_BIT(CUDA_MEMCPY_ATTRIBUTES) | OP_BIT(CUDA_PREFETCH) |                           \
		OP_BIT(CUDA_PREFETCH_BATCH))
#define OP_COPIES_DRIVER                                                                           \
	(OP_BIT(DRIVER_MEMCPY) | OP_BIT(DRIVER_MEMCPY_ASYNC) | OP_BIT(DRIVER_MEMCPY_HTOD) |        \
		OP_BIT(DRIVER_MEMCPY_DTOH) | OP_BIT(DRIVER_MEMCPY_DTOD) |                          \
		OP_BIT(DRIVER_MEMCPY_HTOD_ASYNC) | OP_BIT(DRIVER_MEMCPY_DTOH_ASYNC) |              \
		OP_BIT(DRIVER_MEMCPY_DTOD_ASYNC) | OP_BIT(DRIVER_MEMCPY_3D) |                      \
		OP_BIT(DRIVER_MEMCPY_3D_ASYNC) | OP_BIT(DRIVER_MEMCPY_BATCH) |                     \
		OP_BIT(DRIVER_MEMCPY_2D) | OP_BIT(DRIVER_MEMCPY_2D_ASYNC) |                        \
		OP_BIT(DRIVER_MEMCPY_PEER) | OP_BIT(DRIVER_MEMCPY_PEER_ASYNC) |                    \
		OP_BIT(DRIVER_PREFETCH) | OP_BIT(DRIVER_PREFETCH_BATCH))

/* op_kind_line - the line of the ledger that time in a call of this op is on. */
static inline __attribute__((always_inline)) enum wire_ledger_line op_kind_line(
	unsigned source, unsigned op)
{
	unsigned long long bit = op < WIRE_OP_MAX ? OP_BIT(op) : 0;

	if (source == SOURCE_GRAPH || (source == SOURCE_DRIVER && op == DRIVER_GRAPH_LAUNCH))
		return LEDGER_GRAPH;
	if (source == SOURCE_NCCL)
		return LEDGER_COLLECTIVE;
	if (op_kind_is_gpu_wait(source, op))
		return LEDGER_GPU_WAIT;
	if (bit & (source == SOURCE_CUDA ? OP_LAUNCHES_RUNTIME : OP_LAUNCHES_DRIVER))
		return LEDGER_LAUNCH;
	if (bit & (source == SOURCE_CUDA ? OP_COPIES_RUNTIME : OP_COPIES_DRIVER))
		return LEDGER_COPY;
	if (bit & (source == SOURCE_CUDA ? OP_ALLOCATIONS_RUNTIME : OP_ALLOCATIONS_DRIVER))
		return LEDGER_ALLOC;
	return LEDGER_CALL;
}

/* op_kind_is_workless - the call gives the GPU nothing to compute or to copy: if it was idle before, it is
 * so afterwards. */
static inline __attribute__((always_inline)) _Bool op_kind_is_workless(unsigned source, unsigned op)
{
	return op_kind_is_cuda(source) &&
	       (op_kind_line(source, op) == LEDGER_ALLOC ||
		       (source == SOURCE_CUDA && op == CUDA_EVENT_RECORD));
}

/* op_kind_is_read - a copy of cudaMemcpyKind @kind from the GPU that its caller has when it returns: what the GPU was given before
 * is done by then. */
static inline __attribute__((always_inline)) _Bool op_kind_is_read(
	unsigned source, unsigned op, unsigned long long kind)
{
	if (source == SOURCE_CUDA)
		return (op == CUDA_MEMCPY || op == CUDA_MEMCPY_2D) && kind == 2;
	return source == SOURCE_DRIVER && op == DRIVER_MEMCPY_DTOH;
}

/* op_kind_is_graph_launch - an executable graph is given to the GPU. */
static inline __attribute__((always_inline)) _Bool op_kind_is_graph_launch(
	unsigned source, unsigned op)
{
	return (source == SOURCE_GRAPH && op == GRAPH_LAUNCH) ||
	       (source == SOURCE_DRIVER && op == DRIVER_GRAPH_LAUNCH);
}
