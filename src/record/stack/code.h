/* SPDX-License-Identifier: Apache-2.0 */
/* code.h - Python code objects that the kernel half has sent: names and line tables.
 *
 * Named by process, address and the address of the line table, as in the frames that refer to them.
 * A ceiling; the oldest go first. */
#pragma once

#include "record/python/python.h"
#include "base/idmap.h"

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
DEFINE_CLEANUP(struct stack_codes *, stack_codes_free)

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
