/* SPDX-License-Identifier: Apache-2.0 */
/* python_code.c - what is kept of a code object: its file, its name, its first line and its line
 * table, in the form in which the kernel half sends it.
 *
 * The memory is foreign and may have been freed and used again: kinds, lengths and the first line
 * are checked before they are believed. Longer texts keep their beginning. */
#include "record/python/python_private.h"

#define TEXT_LENGTH_MAX (1 << 20)  /* characters of a file's or function's name */
#define LINES_SIZE_MAX  (64 << 20) /* bytes of a line table */
#define FIRST_LINE_MAX  (1 << 30)

struct text {
	uint8_t *out; /* STACK_TEXT_BYTES */
	uint16_t bytes;
	uint8_t kind, cut;
};

static int text_fetch(const struct python_memory *m, const struct stack_python *p, uint64_t address,
	struct text *t)
{
	uint64_t length, data, bytes;
	uint32_t state;
	int r;

	r = python_u64(m, address + p->text_length, &length);
	if (r < 0)
		return r;
	r = python_u32(m, address + p->text_state, &state);
	if (r < 0)
		return r;
	state >>= p->text_kind_shift;
	t->kind = state & 7;
	if (length > TEXT_LENGTH_MAX || (t->kind != 1 && t->kind != 2 && t->kind != 4) ||
		!(state & 8) || ((state & 16) && t->kind != 1))
		return -EBADMSG;
	data = address + (state & 16 ? p->text_ascii : p->text_compact);
	bytes = MIN(length * t->kind, (uint64_t)STACK_TEXT_BYTES);
	t->bytes = (uint16_t)bytes;
	t->cut = length * t->kind > bytes;
	return bytes ? python_bytes(m, data, t->out, bytes) : 0;
}

static int texts_fetch(
	const struct python_memory *m, const struct stack_python *p, struct stack_record_code *c)
{
	struct text file = {.out = c->file}, name = {.out = c->name};
	uint64_t address;
	int r;

	r = python_u64(m, c->code + p->code_file, &address);
	if (r < 0)
		return r;
	r = text_fetch(m, p, address, &file);
	if (r < 0)
		return r;
	r = python_u64(m, c->code + p->code_name, &address);
	if (r < 0)
		return r;
	r = text_fetch(m, p, address, &name);
	if (r < 0)
		return r;
	c->file_bytes = file.bytes;
	c->file_kind = file.kind;
	c->file_cut = file.cut;
	c->name_bytes = name.bytes;
	c->name_kind = name.kind;
	c->name_cut = name.cut;
	return 0;
}

int python_code_fetch(const struct python_memory *m, const struct stack_python *p, uint64_t code,
	struct stack_record_code **ret)
{
	_cleanup_free_ struct stack_record_code *c = NULL;
	uint64_t lines, size;
	uint16_t kept;
	int r;

	r = python_u64(m, code + p->code_lines, &lines);
	if (r < 0)
		return r;
	r = python_u64(m, lines + p->bytes_length, &size);
	if (r < 0)
		return r;
	if (size > LINES_SIZE_MAX)
		return -EBADMSG;
	kept = (uint16_t)MIN(size, (uint64_t)STACK_LINES_BYTES);
	c = calloc(1, sizeof(*c) + kept);
	if (!c)
		return -ENOMEM;
	c->h = (struct stack_header){
		.size = (uint32_t)sizeof(*c) + kept, .kind = STACK_RECORD_CODE};
	c->code = code;
	c->lines = lines;
	c->lines_size = (uint32_t)size;
	c->minor = (uint8_t)p->minor;
	c->lines_at = (uint8_t)p->bytes_data;
	c->lines_bytes = kept;
	r = kept ? python_bytes(m, lines + p->bytes_data, c->line_table, kept) : 0;
	if (r < 0)
		return r;
	r = python_u32(m, code + p->code_first_line, &c->first_line);
	if (r < 0)
		return r;
	if (c->first_line > FIRST_LINE_MAX)
		return -EBADMSG;
	r = texts_fetch(m, p, c);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}
