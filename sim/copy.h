/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - copies and fills of the stand-in driver: a box of bytes from here to there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_sim.h"

/* depth slices of height rows of width bytes. A slice is pitch bytes for each of `rows` rows. */
struct copy_box {
	uintptr_t dst, src;
	size_t dst_pitch, src_pitch, width, height, depth, dst_rows, src_rows;
};

/* Sides that the called function says are on the device. */
enum { COPY_FROM_DEVICE = 1, COPY_TO_DEVICE = 2 };

CUresult copy_box(const struct copy_box *b, unsigned device, CUstream handle, bool async);

/* copy_line - @size bytes in one row. */
CUresult copy_line(
	uintptr_t dst, uintptr_t src, size_t size, unsigned device, CUstream handle, bool async);

/* copy_fill - dst, dst_pitch, width and height of @b set to @value. Never blocks the caller. */
CUresult copy_fill(const struct copy_box *b, unsigned char value, CUstream handle);
