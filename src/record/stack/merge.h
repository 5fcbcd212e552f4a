/* SPDX-License-Identifier: Apache-2.0 */
/* merge.h - native and Python frames as one stack.
 *
 * Each native frame of the interpreter's loop stands for the Python functions it was running: they
 * take its place, up to the one that C called. So a Python function called from C called from
 * Python appears where it was. What Python has left over when the native walk ended early follows
 * at the end; where no loop is seen, Python's frames stand before the interpreter's first frame.
 * Pure. */
#pragma once

#include "model/stack.h"

struct merge_native {
	struct stack_frame frame;
	bool is_interpreter; /* it is in a file that may hold a Python interpreter */
	bool is_inlined;     /* not a frame of its own: inlined into the next one */
};

struct merge_python {
	struct stack_frame frame;
	bool is_entry; /* called from C */
};

/* merge_frames - returns how many of @max were written. */
size_t merge_frames(const struct merge_native *native, size_t native_count,
	const struct merge_python *python, size_t python_count, struct stack_frame *out,
	size_t max);
