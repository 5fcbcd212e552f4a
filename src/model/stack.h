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
	uint64_t ip; /* native: the address in the process; 0 for Python and inlined frames */
	const char *symbol; /* function, demangled; NULL: not known */
	const char
		*file; /* source file if the line is known, else the library's base name; or NULL */
	uint32_t line; /* 0: not known */
	const char *py_file, *py_func; /* a Python frame: both set; a native one: both NULL */
	uint32_t py_line;              /* the line that was running */
};

struct stack {
	uint64_t hash; /* stored as signed 64 bits; never 0 */
	const struct stack_frame *frames;
	size_t count;
	const char *
		stop; /* where the walk ended early and why; "" if it reached the outermost frame */
};

struct stack_list { /* by hash, ascending */
	struct stack **items;
	size_t count;
};

/* stack_find - the stack of @hash; NULL if it is not in @l, which may be NULL, or is 0. */
const struct stack *stack_find(const struct stack_list *l, uint64_t hash);

/* stack_copy - a copy with its texts, one block for the caller to free(); NULL: no memory. ret_bytes
 * may be NULL. */
struct stack *stack_copy(const struct stack *s, size_t *ret_bytes);

/* stack_has_names - whether any frame says more than its address. */
bool stack_has_names(const struct stack *s);

/* stack_symbol_is_std - of C++'s own library: "void std::__introsort_loop<…>(…)". */
bool stack_symbol_is_std(const char *symbol);

/* stack_place - the frame that says best where the call came from: the innermost of Python, else
 * the innermost with a name that is not the CUDA or NCCL library's own, nor C++'s if there is another; NULL if there is none. */
const struct stack_frame *stack_place(const struct stack *s);

/* stack_frame_is_begin - whether it is what a process that Python has started runs first: frames beyond it are of who
 * forked it. */
bool stack_frame_is_begin(const struct stack_frame *f);

/* stack_user_frame - the innermost Python frame of the program's own files: not of the standard
 * library, of installed packages or of PyTorch, nor of who forked the process; NULL if there is none. */
const struct stack_frame *stack_user_frame(const struct stack *s);

/* stack_frame_is_user - whether it is a Python frame of such a file. */
bool stack_frame_is_user(const struct stack_frame *f);

/* stack_frame_is_cuda - whether it is a native frame with a name of the CUDA or NCCL library's own. */
bool stack_frame_is_cuda(const struct stack_frame *f);

/* stack_base_name - the end of a path that tells it apart: "train.py", "torch/__init__.py". */
const char *stack_base_name(const char *path);

static inline bool stack_frame_is_python(const struct stack_frame *f)
{
	return f->py_func != NULL;
}
