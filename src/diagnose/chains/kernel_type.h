/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_type.h - what the name of a kernel tells about its numbers and its work. */
#pragma once

#include <stdbool.h>

#include "model/incident.h"

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

/* Which kernels the launches were of that an incident is about, in its explanation. The
 * engine knows them by number; names come from whoever has them: the tracer, or the file. */

/* kernel_name_short - without what it returns, its template's arguments and its own:
 * "at::native::vectorized_elementwise_kernel" of 200 characters; cut to @size. Returns @out. */
#define KERNEL_SHORT_MAX 96
const char *kernel_name_short(const char *name, char out[KERNEL_SHORT_MAX]);

/* kernel_note - @e is among what proves @inc: if it is a launch, its kernel is counted. */
void kernel_note(struct incident *inc, const struct event *e);

/* The name of @function of @pid; NULL: not known. */
typedef const char *kernel_namer(void *arg, uint32_t pid, uint64_t function);

/* kernel_sentence_put - adds the names to the explanation; nothing where none is known, or no kernel has half
 * of the launches. */
void kernel_sentence_put(struct incident *inc, kernel_namer *name, void *arg);
