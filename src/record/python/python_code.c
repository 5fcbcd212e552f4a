/* SPDX-License-Identifier: Apache-2.0 */
/* python_code.c - what is kept of a code object: its file, its name, its first line and its line
 * table, in the form in which the kernel half sends it.
 *
 * The memory is foreign and may have been freed and used again: kinds, lengths and the first line
 * are checked before they are believed. Longer texts keep their beginning. */
#include <ctype.h>

#include "record/python/python.h"
#include "record/python/python_private.h"

/* Which line an instruction is of. Three formats, each a list of ranges of
 * instructions with the difference to the line of the range before:
 *
 * - 3.9: pairs: bytes to the next range (unsigned), lines to it (signed). Long distances take
 *   several pairs, so that a range ends where an address is greater than the instruction's.
 * - 3.10: pairs: the length of this range in bytes, lines from the last one; -128: no line.
 * - 3.11: a byte with the top bit set: code in bits 3 to 6, length in units of two bytes less one
 *   in bits 0 to 2; then bytes without the top bit: what the code asks for, in varints of 6 bits a
 *   byte, the lowest first. Code 15 has no line, 13 and 14 begin with the signed difference, 10 to
 *   12 mean 0 to 2 lines further, those below the same line. Columns are not wanted.
 *
 * The table is foreign: it is read to its end at most, and differences may lead anywhere. */

#define LINES_OF_3_10_NONE (-128)

/* Line numbers are ints in Python; others come from a table that is none. */
static int line_number(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (int)line : 0;
}

/* Behind the last range that is there. */
static int behind(const struct python_lines *l)
{
	return l->is_cut ? -ENODATA : 0;
}

/* varint_signed - the lowest bit is the sign. More bytes than an int needs are left out. */
static int64_t varint_signed(const uint8_t *table, size_t size, size_t i)
{
	uint64_t value = 0;

	for (unsigned shift = 0; i < size && shift <= 30; shift += 6) {
		value |= (uint64_t)(table[i] & 0x3f) << shift;
		if (!(table[i++] & 0x40))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int line_3_11(const struct python_lines *l, uint32_t lasti)
{
	const uint8_t *table = l->table;
	int64_t line = l->first_line;
	uint64_t end = 0;
	size_t next;

	for (size_t i = 0; i < l->size; i = next) {
		unsigned code = table[i] >> 3 & 15;

		for (next = i + 1; next < l->size && !(table[next] & 0x80);)
			next++;
		if (l->is_cut && next == l->size)
			break; /* more of this range may be missing */
		end += ((table[i] & 7) + 1) * 2;
		if (code == 13 || code == 14)
			line += varint_signed(table, next, i + 1);
		else if (code >= 10 && code <= 12)
			line += code - 10;
		if (end > lasti)
			return code == 15 ? 0 : line_number(line);
	}
	return behind(l);
}

int python_line(const struct python_lines *l, uint32_t lasti)
{
	if (l->minor < 10) {
		const uint8_t *table = l->table;
		size_t size = l->size;
		int64_t line = l->first_line;
		uint64_t address = 0;

		for (size_t i = 0; i + 2 <= size; i += 2) {
			address += table[i];
			if (address > lasti)
				return line_number(line);
			line += (int8_t)table[i + 1];
		}
		return l->is_cut ? -ENODATA : line_number(line); /* the last range has no end */
	}
	if (l->minor == 10) {
		const uint8_t *table = l->table;
		size_t size = l->size;
		int64_t line = l->first_line;
		uint64_t end = 0;

		for (size_t i = 0; i + 2 <= size; i += 2) {
			int8_t delta = (int8_t)table[i + 1];

			end += table[i];
			if (delta != LINES_OF_3_10_NONE)
				line += delta;
			if (end > lasti)
				return delta == LINES_OF_3_10_NONE ? 0 : line_number(line);
		}
		return behind(l);
	}
	return line_3_11(l, lasti);
}

/* A str object's characters as UTF-8. Python keeps them in 1, 2 or 4 bytes each,
 * whichever the widest needs; surrogates stand alone in it, so that they are no characters here. */

#define REPLACEMENT 0xfffd

static void utf8_put(uint32_t c, struct buf *out)
{
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = REPLACEMENT;
	if (c < 0x80) {
		buf_putc(out, (char)c);
	} else if (c < 0x800) {
		buf_putc(out, (char)(0xc0 | c >> 6));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_putc(out, (char)(0xe0 | c >> 12));
		buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_putc(out, (char)(0xf0 | c >> 18));
		buf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(out, (char)(0x80 | (c & 0x3f)));
	}
}

int python_text(const uint8_t *data, size_t bytes, unsigned kind, struct buf *out)
{
	if (kind != 1 && kind != 2 && kind != 4) { /* nothing is known of it but that it is there */
		utf8_put(REPLACEMENT, out);
		return out->err;
	}
	for (size_t i = 0; i + kind <= bytes; i += kind) {
		uint32_t c = 0;

		memcpy(&c, data + i, kind); /* the process has this machine's byte order: little */
		utf8_put(c, out);
	}
	return out->err;
}

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
	int r = python_u64(m, address + p->text_length, &length);

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
	int r = python_u64(m, c->code + p->code_file, &address);

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
	int r = python_u64(m, code + p->code_lines, &lines);

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

/* The structures of CPython 3.9 to 3.12, which do not describe themselves, and how
 * an interpreter's file is told by its name.
 *
 * The numbers are those of the headers of the release on 64-bit Linux, the same on x86-64 and arm64
 * (tests/unit/record/test_python_table.c compiles them); point releases keep them. */

const char *const python_symbol_names[4] = {
	"_PyRuntime", "PyCode_Type", "PyUnicode_Type", "Py_Version"};

#define TEXT_BEFORE_3_12                                                                           \
	.text_length = 16, .text_state = 32, .text_ascii = 48, .text_compact = 72,                 \
	.text_kind_shift = 2, .bytes_length = 16, .bytes_data = 32

static const struct stack_python rows[] = {
	{
		.minor = 9,
		.runtime_interpreters = 32,
		.interpreter_next = 0,
		.interpreter_threads = 8,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 176,
		.thread_native = PYTHON_NONE,
		.pthread_tid = PYTHON_NONE,
		.thread_frame = 24,
		.cframe_frame = PYTHON_NONE,
		.frame_code = 32,
		.frame_back = 24,
		.frame_lasti = 104,
		.frame_entry = PYTHON_NONE,
		.code_file = 104,
		.code_name = 112,
		.code_first_line = 40,
		.code_lines = 120,
		.code_bytes = PYTHON_NONE,
		TEXT_BEFORE_3_12,
	},
	{
		.minor = 10,
		.flags = PYTHON_LASTI_UNITS,
		.runtime_interpreters = 32,
		.interpreter_next = 0,
		.interpreter_threads = 8,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 176,
		.thread_native = PYTHON_NONE,
		.pthread_tid = PYTHON_NONE,
		.thread_frame = 24,
		.cframe_frame = PYTHON_NONE,
		.frame_code = 32,
		.frame_back = 24,
		.frame_lasti = 96,
		.frame_entry = PYTHON_NONE,
		.code_file = 104,
		.code_name = 112,
		.code_first_line = 40,
		.code_lines = 120,
		.code_bytes = PYTHON_NONE,
		TEXT_BEFORE_3_12,
	},
	{
		.minor = 11,
		.flags = PYTHON_LASTI_POINTER,
		.runtime_interpreters = 40,
		.interpreter_next = 0,
		.interpreter_threads = 16,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 152,
		.thread_native = 160,
		.pthread_tid = PYTHON_NONE,
		.thread_frame = 56,
		.cframe_frame = 8,
		.frame_code = 32,
		.frame_back = 48,
		.frame_lasti = 56,
		.frame_entry = 68,
		.code_file = 112,
		.code_name = 128,
		.code_first_line = 72,
		.code_lines = 136,
		.code_bytes = 184,
		TEXT_BEFORE_3_12,
	},
	{
		.minor = 12,
		.flags = PYTHON_LASTI_POINTER | PYTHON_ENTRY_IS_OWNER,
		.runtime_interpreters = 40,
		.interpreter_next = 0,
		.interpreter_threads = 72,
		.thread_next = 8,
		.thread_interpreter = 16,
		.thread_id = 136,
		.thread_native = 144,
		.pthread_tid = PYTHON_NONE,
		.thread_frame = 56,
		.cframe_frame = 0,
		.frame_code = 0,
		.frame_back = 8,
		.frame_lasti = 56,
		.frame_entry = 70,
		.owner_c_stack = 3,
		.code_file = 112,
		.code_name = 128,
		.code_first_line = 68,
		.code_lines = 136,
		.code_bytes = 192,
		.text_length = 16,
		.text_state = 32,
		.text_ascii = 40,
		.text_compact = 56,
		.text_kind_shift = 2,
		.bytes_length = 16,
		.bytes_data = 32,
	},
};

const struct stack_python *python_table(unsigned minor)
{
	return FIND(x, rows, ARRAY_SIZE(rows), x->minor == minor);
}

static const char *skip_digits(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return s;
}

/* A hash that a wheel has put into the name of its private copy, before the first dot: "-419a3a08". */
static const char *skip_hash(const char *s)
{
	if (*s != '-' || !isxdigit((unsigned char)s[1]))
		return s;
	for (s++; isxdigit((unsigned char)*s);)
		s++;
	return s;
}

/* Behind "python": nothing, "3", "3.11", or that with letters of the build ("3.13t"). */
static const char *skip_version(const char *s, bool library)
{
	if (*s != '3')
		return s;
	s++;
	if (library)
		s = skip_hash(s);
	if (*s != '.' || !isdigit((unsigned char)s[1]))
		return s;
	s = skip_digits(s + 1);
	while (islower((unsigned char)*s))
		s++;
	return s;
}

bool python_is_file(const char *basename)
{
	bool library = strncmp(basename, "lib", 3) == 0;
	const char *s = basename + (library ? 3 : 0);

	if (strncmp(s, "python", 6) != 0)
		return false;
	s = skip_version(s + 6, library);
	if (!library)
		return *s == '\0';
	if (strncmp(s, ".so", 3) != 0)
		return false;
	for (s += 3; *s == '.' && isdigit((unsigned char)s[1]);)
		s = skip_digits(s + 1);
	return *s == '\0';
}

unsigned python_minor(const struct python_symbols *s)
{
	const char *name = s->path, *slash = s->path ? strrchr(s->path, '/') : NULL;
	unsigned long minor;

	if (s->version >> 24 == 3)
		return s->version >> 16 & 0xff;
	if (slash)
		name = slash + 1;
	name = name ? strstr(name, "python3") : NULL;
	name = name ? skip_hash(name + 7) : NULL;
	if (!name || *name != '.' || !isdigit((unsigned char)name[1]))
		return 0;
	minor = strtoul(name + 1, NULL, 10);
	return minor < 256 ? (unsigned)minor : 0;
}
