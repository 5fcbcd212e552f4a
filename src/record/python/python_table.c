/* SPDX-License-Identifier: Apache-2.0 */
/* python_table.c - the structures of CPython 3.9 to 3.12, which do not describe themselves, and how
 * an interpreter's file is told by its name.
 *
 * The numbers are those of the headers of the release on 64-bit Linux, the same on x86-64 and arm64
 * (tests/unit/record/test_python_table.c compiles them); point releases keep them. */
#include <ctype.h>
#include <stdlib.h>

#include "record/python/python_private.h"

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
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].minor == minor)
			return &rows[i];
	return NULL;
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
