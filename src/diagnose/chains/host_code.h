/* SPDX-License-Identifier: Apache-2.0 */
/* host_code.h - what host code does: drive the GPU, or something else while the GPU has nothing to do. */
#pragma once

#include "model/stack.h"
#include "diagnose/recording.h"

/* host_code_drives_gpu - whether the thread prepares or starts work for the GPU there: it is in a framework's layers,
 * its dispatcher or the CUDA libraries. Work that a framework does on the CPU (transforms of images, kernels for the
 * CPU) is not. */
bool host_code_drives_gpu(const struct stack *s);

/* Which function of a program began to run when something else began. */

struct new_code {
	const struct stack_frame *frame; /* of the recording's stacks; NULL: none */
	uint64_t rows;                   /* whose stacks show it */
};

/* new_code_find - the function of the program's own files that stacks of @pid show since @since_ns
 * and never before. None, if several are as new as each other, or if the process was seen less before
 * than since. 0 or -ENOMEM. */
int new_code_find(
	const struct recording *rec, uint32_t pid, int64_t since_ns, struct new_code *ret);
