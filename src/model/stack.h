/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h - one distinct call stack with its names, as the store keeps it and people read it.
 *
 * Native and Python frames in one list, innermost first. Inlined functions are frames of their own,
 * before the function they were inlined into. A plain value whose texts belong to somebody else:
 * whoever made the frames says for how long. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_FRAMES_MAX 512 /* 127 native with inlines, 128 Python */

struct stack_frame {
	uint64_t ip;        /* native: the address in the process; 0 for Python and inlined frames */
	const char *symbol; /* function, demangled; NULL: not known */
	const char *file;   /* source file if the line is known, else the library's base name; or NULL */
	uint32_t line;      /* 0: not known */
	const char *py_file, *py_func; /* a Python frame: both set; a native one: both NULL */
	uint32_t py_line;              /* the line that was running */
};

struct stack {
	uint64_t hash; /* stored as signed 64 bits; never 0 */
	const struct stack_frame *frames;
	size_t count;
	const char *stop; /* where the walk ended early and why; "" if it reached the outermost frame */
};

static inline bool stack_frame_is_python(const struct stack_frame *f)
{
	return f->py_func != NULL;
}
