/* SPDX-License-Identifier: Apache-2.0 */
/* op_kind.h - what a CUDA call is for, where that decides whether its row is worth keeping. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

#define OP_BIT(op) (UINT64_C(1) << (op))

/* op_kind_marks - whether single calls of this op tell something even when they are as quick as
 * ever: waits for the GPU mark steps, allocations and frees add up to what is in use. */
static inline bool op_kind_marks(unsigned source, unsigned op)
{
	static const uint64_t runtime =
		OP_BIT(CUDA_STREAM_SYNC) | OP_BIT(CUDA_DEVICE_SYNC) | OP_BIT(CUDA_EVENT_SYNC) |
		OP_BIT(CUDA_MALLOC) | OP_BIT(CUDA_FREE) | OP_BIT(CUDA_MALLOC_MANAGED) |
		OP_BIT(CUDA_MALLOC_ASYNC) | OP_BIT(CUDA_FREE_ASYNC) | OP_BIT(CUDA_HOST_ALLOC) |
		OP_BIT(CUDA_HOST_FREE) | OP_BIT(CUDA_MALLOC_PITCH) | OP_BIT(CUDA_MALLOC_FROM_POOL) |
		OP_BIT(CUDA_MALLOC_ARRAY);
	static const uint64_t driver =
		OP_BIT(DRIVER_CTX_SYNC) | OP_BIT(DRIVER_STREAM_SYNC) | OP_BIT(DRIVER_EVENT_SYNC) |
		OP_BIT(DRIVER_MALLOC) | OP_BIT(DRIVER_FREE) | OP_BIT(DRIVER_MALLOC_MANAGED) |
		OP_BIT(DRIVER_MALLOC_ASYNC) | OP_BIT(DRIVER_FREE_ASYNC) |
		OP_BIT(DRIVER_HOST_ALLOC) | OP_BIT(DRIVER_HOST_FREE) | OP_BIT(DRIVER_MEM_CREATE) |
		OP_BIT(DRIVER_MEM_MAP) | OP_BIT(DRIVER_MEM_UNMAP) | OP_BIT(DRIVER_MEM_RELEASE) |
		OP_BIT(DRIVER_MALLOC_PITCH) | OP_BIT(DRIVER_MALLOC_FROM_POOL);

	return op < WIRE_OP_MAX && ((source == SOURCE_CUDA            ? runtime
					    : source == SOURCE_DRIVER ? driver
								      : 0) >>
						   op &
					   1);
}
