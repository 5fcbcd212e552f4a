/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - the table of copies. */
#include "model/copy.h"

#include <stddef.h>

#include "base/macros.h"

const char *const copy_direction_names[] = {
#define X(NAME, name) [COPY_##NAME] = (name),
	COPY_DIRECTIONS(X)
#undef X
};

static const struct {
	unsigned char source, op, direction;
	bool has_kind;
} copies[] = {
	{SOURCE_CUDA, CUDA_MEMCPY, COPY_UNKNOWN, true},
	{SOURCE_CUDA, CUDA_MEMCPY_ASYNC, COPY_UNKNOWN, true},
	{SOURCE_CUDA, CUDA_MEMCPY_2D, COPY_UNKNOWN, true},
	{SOURCE_CUDA, CUDA_MEMCPY_2D_ASYNC, COPY_UNKNOWN, true},
	{SOURCE_CUDA, CUDA_MEMCPY_PEER, COPY_D2D, false},
	{SOURCE_CUDA, CUDA_MEMCPY_PEER_ASYNC, COPY_D2D, false},
	{SOURCE_CUDA, CUDA_MEMCPY_3D, COPY_UNKNOWN, false},
	{SOURCE_CUDA, CUDA_MEMCPY_3D_ASYNC, COPY_UNKNOWN, false},
	{SOURCE_CUDA, CUDA_MEMCPY_BATCH, COPY_UNKNOWN, false},
	{SOURCE_CUDA, CUDA_MEMCPY_ATTRIBUTES, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_ASYNC, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_HTOD, COPY_H2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_DTOH, COPY_D2H, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_DTOD, COPY_D2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_HTOD_ASYNC, COPY_H2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_DTOH_ASYNC, COPY_D2H, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_DTOD_ASYNC, COPY_D2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_3D, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_3D_ASYNC, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_BATCH, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_2D, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_2D_ASYNC, COPY_UNKNOWN, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_PEER, COPY_D2D, false},
	{SOURCE_DRIVER, DRIVER_MEMCPY_PEER_ASYNC, COPY_D2D, false},
};

int copy_direction(unsigned source, unsigned op)
{
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
		if (copies[i].source == source && copies[i].op == op)
			return copies[i].direction;
	return -1;
}

bool copy_has_kind(unsigned source, unsigned op)
{
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
		if (copies[i].source == source && copies[i].op == op)
			return copies[i].has_kind;
	return false;
}
