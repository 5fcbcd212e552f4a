/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* op_kind.h - what an operation is for: the one definition of each kind, for the BPF programs, the
 * engine, the store and its SQL. Freestanding. */
#pragma once

#include "wire/ids.h"

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

#define OP_BIT(op) (1ull << (op))

/* op_kind_marks - whether single calls of this op tell something even when they are as quick as
 * ever: waits for the GPU mark steps, allocations and frees add up to what is in use. */
static inline _Bool op_kind_marks(unsigned source, unsigned op)
{
	const unsigned long long runtime =
		OP_BIT(CUDA_MALLOC) | OP_BIT(CUDA_FREE) | OP_BIT(CUDA_MALLOC_MANAGED) |
		OP_BIT(CUDA_MALLOC_ASYNC) | OP_BIT(CUDA_FREE_ASYNC) | OP_BIT(CUDA_HOST_ALLOC) |
		OP_BIT(CUDA_HOST_FREE) | OP_BIT(CUDA_MALLOC_PITCH) | OP_BIT(CUDA_MALLOC_FROM_POOL) |
		OP_BIT(CUDA_MALLOC_ARRAY);
	const unsigned long long driver =
		OP_BIT(DRIVER_MALLOC) | OP_BIT(DRIVER_FREE) | OP_BIT(DRIVER_MALLOC_MANAGED) |
		OP_BIT(DRIVER_MALLOC_ASYNC) | OP_BIT(DRIVER_FREE_ASYNC) |
		OP_BIT(DRIVER_HOST_ALLOC) | OP_BIT(DRIVER_HOST_FREE) | OP_BIT(DRIVER_MEM_CREATE) |
		OP_BIT(DRIVER_MEM_MAP) | OP_BIT(DRIVER_MEM_UNMAP) | OP_BIT(DRIVER_MEM_RELEASE) |
		OP_BIT(DRIVER_MALLOC_PITCH) | OP_BIT(DRIVER_MALLOC_FROM_POOL);

	if (!op_kind_is_cuda(source) || op >= WIRE_OP_MAX)
		return 0;
	return op_kind_is_gpu_wait(source, op) ||
	       ((source == SOURCE_CUDA ? runtime : driver) >> op & 1);
}
