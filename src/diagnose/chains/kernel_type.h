/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_type.h - what the name of a kernel tells about its numbers and its work. */
#pragma once

#include <stdbool.h>

/* X(NAME, text): narrower types first, so that a kernel with several is called after the narrowest. */
#define KERNEL_TYPES(X)                                                                            \
	X(FP8, "fp8")                                                                              \
	X(BF16, "bf16")                                                                            \
	X(FP16, "fp16")                                                                            \
	X(TF32, "tf32")                                                                            \
	X(FP32, "fp32")                                                                            \
	X(FP64, "fp64")                                                                            \
	X(UNKNOWN, "")

enum kernel_type {
#define X(NAME, ...) KERNEL_OF_##NAME,
	KERNEL_TYPES(X)
#undef X
		KERNEL_TYPE_COUNT
};

/* kernel_type_of - of the numbers that @name says it reckons with; NULL: no name. */
enum kernel_type kernel_type_of(const char *name);
const char *kernel_type_text(enum kernel_type t); /* "bf16"; "": not known */

/* kernel_is_matrix - whether @name is of a matrix product, a convolution or attention: where the time goes. */
bool kernel_is_matrix(const char *name);
bool kernel_is_attention(const char *name);
