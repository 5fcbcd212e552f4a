/* SPDX-License-Identifier: Apache-2.0 */
/* python_headers.h - the offsets that an interpreter's own headers give: python_offsets.c is
 * compiled with them and run. */
#pragma once

#include "python_fixture.h"

#ifndef OFFSETS /* the program */
#define OFFSETS "tests/unit/python_offsets.c"
#endif

struct header_offsets {
	struct stack_python p;
	uint32_t compact_bit, ascii_bit;
	size_t count; /* fields that were printed */
};

static inline bool header_take(struct header_offsets *h, const char *name, uint32_t value)
{
	const struct {
		const char *name;
		uint32_t *field;
	} fields[] = {
#define F(x) {#x, &h->p.x}
		F(minor),
		F(runtime_interpreters),
		F(interpreter_next),
		F(interpreter_threads),
		F(thread_next),
		F(thread_interpreter),
		F(thread_id),
		F(thread_native),
		F(thread_frame),
		F(cframe_frame),
		F(frame_code),
		F(frame_back),
		F(frame_lasti),
		F(frame_entry),
		F(owner_c_stack),
		F(code_file),
		F(code_name),
		F(code_first_line),
		F(code_lines),
		F(code_bytes),
		F(text_length),
		F(text_state),
		F(text_ascii),
		F(text_compact),
		F(text_kind_shift),
		F(bytes_length),
		F(bytes_data),
		{"compact_bit", &h->compact_bit},
		{"ascii_bit", &h->ascii_bit},
#undef F
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strcmp(fields[i].name, name) == 0) {
			*fields[i].field = value;
			h->count++;
			return true;
		}
	return false;
}

/* headers_folder - where @i keeps Python.h and the internal headers; false: nowhere. */
static inline bool headers_folder(const struct interpreter *i, char *ret_include, size_t size)
{
	static const char *const beside[] = {"../include", "usr/include"};
	char probe[PATH_MAX + 64];
	int folder = (int)(strrchr(i->path, '/') - i->path);

	for (size_t j = 0; j < ARRAY_SIZE(beside); j++) {
		snprintf(probe, sizeof(probe), "%.*s/%s/python3.%u/internal/pycore_runtime.h",
			folder, i->path, beside[j], i->minor);
		if (access(probe, R_OK) < 0)
			continue;
		snprintf(ret_include, size, "%.*s/%s", folder, i->path, beside[j]);
		return true;
	}
	return false;
}

/* headers_read - false, with a line that says why, if there are no headers or no compiler. */
static inline bool headers_read(const struct interpreter *i, struct header_offsets *ret)
{
	char include[PATH_MAX], program[] = "/tmp/python_headers.XXXXXX", name[64];
	char command[3 * PATH_MAX];
	unsigned value;
	FILE *f;
	int fd;

	if (!headers_folder(i, include, sizeof(include))) {
		printf("# skip: no headers of %s\n", i->path);
		return false;
	}
	if (system("cc --version >/dev/null 2>&1") != 0) {
		printf("# skip: no C compiler for the headers of %s\n", i->path);
		return false;
	}
	fd = mkstemp(program);
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "cc -w '" OFFSETS "' -I'%s/python3.%u' -I'%s' -o %s",
		include, i->minor, include, program);
	assert_int_equal(system(command), 0);

	memset(ret, 0, sizeof(*ret));
	f = popen(program, "r");
	assert_non_null(f);
	while (fscanf(f, "%63s %u", name, &value) == 2)
		assert_true(header_take(ret, name, value));
	assert_int_equal(pclose(f), 0);
	unlink(program);
	return true;
}
