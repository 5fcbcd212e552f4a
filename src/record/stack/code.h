/* SPDX-License-Identifier: Apache-2.0 */
/* code.h - Python code objects that the kernel half has sent: names and line tables.
 *
 * Named by process, address and the address of the line table, as in the frames that refer to them.
 * A ceiling; the oldest go first. */
#pragma once

#include "base/idmap.h"
#include "model/stack.h"
#include "record/python/python.h"

struct stack_codes;

struct stack_code {
	const char *file, *name; /* interned, UTF-8 */
	uint32_t first_line;
	uint8_t minor, lines_at; /* see struct stack_record_code */
	uint32_t lines_size;     /* of the whole table */
	uint32_t lines_bytes;    /* that are here */
	bool is_filled;          /* by stack_codes_fill() */
	uint8_t lines[];
};

int stack_codes_new(struct intern *texts, struct stack_codes **ret);
void stack_codes_free(struct stack_codes *c);

/* stack_codes_take - enter the record of @len bytes. -EBADMSG if it makes no sense. */
int stack_codes_take(struct stack_codes *c, const void *record, size_t len);

/* stack_codes_fill - the whole line table, of lines_size bytes, of a code object of which only its
 * beginning was sent. Returns the code object with it; NULL: there is no room for it. What
 * stack_codes_find() has returned of it is gone. */
const struct stack_code *stack_codes_fill(
	struct stack_codes *c, uint32_t pid, uint64_t code, uint64_t lines, const uint8_t *table);

/* stack_codes_find - NULL: it was never sent, or has been forgotten. */
const struct stack_code *stack_codes_find(
	const struct stack_codes *c, uint32_t pid, uint64_t code, uint64_t lines);

/* Native and Python frames as one stack.
 *
 * Each native frame of the interpreter's loop stands for the Python functions it was running: they
 * take its place, up to the one that C called. So a Python function called from C called from
 * Python appears where it was. What Python has left over when the native walk ended early follows
 * at the end; where no loop is seen, Python's frames stand before the interpreter's first frame.
 * Pure. */

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
