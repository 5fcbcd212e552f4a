/* SPDX-License-Identifier: Apache-2.0 */
/* debug_offsets.c - the layout that CPython 3.13 and later publish: _Py_DebugOffsets at the start
 * of _PyRuntime, a row of 64-bit words that begins with a cookie, the version, and whether the
 * build is free-threaded. What the later words mean differs between minor versions, and is fixed
 * within one from its first release candidate on.
 *
 * The words are foreign: each offset must lie within the structure it is of, whose size is a word
 * too, and that must be a size such a structure can have.
 *
 * To add a version: its column in words[], tests/unit/record/test_debug_offsets.c, PYTHON_MINOR_MAX. */
#include "record/python/python_private.h"

#define COOKIE        "xdebugpy"
#define COOKIE_WORDS  3 /* cookie, version, free_threaded */
#define MINOR_FIRST   13
#define VERSIONS      (PYTHON_MINOR_MAX - MINOR_FIRST + 1)
#define WORDS_MAX     96        /* behind the last word that is used */
#define STRUCTURE_MAX (4 << 20) /* bytes; an interpreter has some hundred thousand */

#define FIELD(name) offsetof(struct stack_python, name)

/* Which word holds what, in 3.13, 3.14 and 3.15: the size of the structure, the offset in it. */
static const struct {
	uint16_t field;
	uint8_t size[VERSIONS], word[VERSIONS];
} words[] = {
	{FIELD(runtime_interpreters), {3, 3, 3}, {5, 5, 5}},
	{FIELD(interpreter_next), {6, 6, 6}, {8, 8, 8}},
	{FIELD(interpreter_threads), {6, 6, 6}, {9, 9, 9}},
	{FIELD(thread_next), {19, 22, 22}, {21, 24, 24}},
	{FIELD(thread_interpreter), {19, 22, 22}, {22, 25, 25}},
	{FIELD(thread_frame), {19, 22, 22}, {23, 26, 26}},
	{FIELD(thread_id), {19, 22, 22}, {24, 27, 30}},
	{FIELD(thread_native), {19, 22, 22}, {25, 28, 31}},
	{FIELD(frame_back), {28, 31, 39}, {29, 32, 40}},
	{FIELD(frame_code), {28, 31, 39}, {30, 33, 41}},
	{FIELD(frame_lasti), {28, 31, 39}, {31, 34, 42}},
	{FIELD(frame_entry), {28, 31, 39}, {33, 36, 44}},
	{FIELD(code_file), {34, 39, 47}, {35, 40, 48}},
	{FIELD(code_name), {34, 39, 47}, {37, 42, 50}},
	{FIELD(code_lines), {34, 39, 47}, {38, 43, 51}},
	{FIELD(code_first_line), {34, 39, 47}, {39, 44, 52}},
	{FIELD(code_bytes), {34, 39, 47}, {43, 48, 56}},
	{FIELD(bytes_length), {64, 74, 86}, {65, 75, 87}},
	{FIELD(bytes_data), {64, 74, 86}, {66, 76, 88}},
	{FIELD(text_state), {67, 77, 89}, {68, 78, 90}},
	{FIELD(text_length), {67, 77, 89}, {69, 79, 91}},
	{FIELD(text_ascii), {67, 77, 89}, {70, 80, 92}},
};
static const uint8_t text_size[VERSIONS] = {67, 77, 89};

static int version_check(uint64_t version, uint64_t free_threaded, struct errinfo *reterr)
{
	unsigned major = version >> 24 & 0xff, minor = version >> 16 & 0xff;

	if (version >> 32 || major != 3 || minor < MINOR_FIRST)
		return errinfo_set(reterr, -EOPNOTSUPP, "its offset table is invalid");
	if (minor > PYTHON_MINOR_MAX)
		return errinfo_set(reterr, -EOPNOTSUPP, "CPython 3.%u is not supported", minor);
	if ((version >> 4 & 0xf) < 0xc) /* the words still move in alpha and beta versions */
		return errinfo_set(reterr, -EOPNOTSUPP,
			"pre-releases of CPython 3.%u are not supported", minor);
	if (free_threaded)
		return errinfo_set(reterr, -EOPNOTSUPP,
			"free-threaded builds of CPython 3.%u are not supported", minor);
	return 0;
}

static int offsets_take(const uint64_t *w, struct stack_python *p, struct errinfo *reterr)
{
	unsigned version = p->minor - MINOR_FIRST;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		uint64_t size = w[words[i].size[version]], offset = w[words[i].word[version]];
		uint32_t field = (uint32_t)offset;

		if (size > STRUCTURE_MAX || offset >= size)
			return errinfo_set(reterr, -EOPNOTSUPP,
				"word %u of its offset table is invalid", words[i].word[version]);
		memcpy((char *)p + words[i].field, &field, sizeof(field));
	}
	/* a str object ends with a pointer that compact ones do not have */
	p->text_compact = (uint32_t)w[text_size[version]] - 8;
	return 0;
}

int python_debug_offsets(const struct python_memory *m, uint64_t runtime, struct stack_python *ret,
	struct errinfo *reterr)
{
	uint64_t w[WORDS_MAX];
	struct stack_python p = {
		.runtime = runtime,
		.flags = PYTHON_LASTI_POINTER | PYTHON_ENTRY_IS_OWNER,
		.pthread_tid = PYTHON_NONE,
		.cframe_frame = PYTHON_NONE,
		.owner_c_stack =
			3, /* 3.13: the C stack; 3.14: the interpreter, the C stack above it */
		.text_kind_shift = 2,
	};
	int r;

	r = python_bytes(m, runtime, w, COOKIE_WORDS * sizeof(*w));
	if (r < 0)
		return errinfo_set(reterr, r, "cannot read its memory");
	if (memcmp(w, COOKIE, sizeof(*w)) != 0)
		return 0;
	r = version_check(w[1], w[2], reterr);
	if (r < 0)
		return r;
	p.minor = w[1] >> 16 & 0xff;
	if (p.minor >= 14)
		p.flags |= PYTHON_TAGGED;
	r = python_bytes(m, runtime, w, sizeof(w));
	if (r < 0)
		return errinfo_set(reterr, r, "cannot read its memory");
	r = offsets_take(w, &p, reterr);
	if (r < 0)
		return r;
	*ret = p;
	return 1;
}
