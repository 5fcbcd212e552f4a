/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up interpreter whose memory is partly the input's: words at addresses, two at a time. The
 * first byte is the version, the second how the layout is learned. */
#include <errno.h>

#include "../unit/python_fake.h"
#include "fuzz.h"

#define PATCHES_MAX 256

static struct fake process;

/* A patch is a place and a word. The word is taken as it is, or as a distance from the memory's
 * start, so that pointers into it come about. */
static void patch(struct fuzz_input *in)
{
	for (int i = 0; i < PATCHES_MAX && in->size >= 6; i++) {
		uint32_t at = fuzz_u32(in) % (FAKE_END - FAKE_BASE - 8);
		uint8_t kind = fuzz_u8(in);
		uint64_t value = kind & 1 ? fuzz_u64(in) : FAKE_BASE + fuzz_u32(in) % 0xa0000;

		memcpy(process.bytes + at, &value, kind & 2 ? 4 : 8);
	}
}

static void check_code(const struct stack_python *p, uint64_t code, uint32_t lasti)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4 * STACK_TEXT_BYTES);
	_cleanup_free_ struct stack_record_code *c = NULL;
	struct python_lines lines = {.minor = p->minor};

	if (python_code_fetch(&process.memory, p, code, &c) < 0) {
		MUST(!c);
		return;
	}
	MUST(c->lines_bytes <= STACK_LINES_BYTES && c->lines_bytes <= c->lines_size);
	MUST(c->file_bytes <= STACK_TEXT_BYTES && c->name_bytes <= STACK_TEXT_BYTES);
	MUST(c->h.size == sizeof(*c) + c->lines_bytes);
	MUST(python_text(c->file, c->file_bytes, c->file_kind, &text) == 0);
	lines.first_line = c->first_line;
	lines.table = c->line_table;
	lines.size = c->lines_bytes;
	lines.is_cut = c->lines_bytes < c->lines_size;
	MUST(python_line(&lines, lasti) >= (lines.is_cut ? -ENODATA : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	unsigned minor = 9 + fuzz_u8(&in) % 4, how = fuzz_u8(&in);
	struct stack_python_frame frames[STACK_PYTHON_MAX];
	struct stack_python p = *python_table(minor), found = {.minor = 99};
	struct python_symbols symbols = {.runtime = FAKE_RUNTIME,
		.code_type = how & 1 ? FAKE_CODE_TYPE : 0,
		.unicode_type = how & 1 ? FAKE_TEXT_TYPE : 0,
		.version = how & 2 ? fuzz_u32(&in) : 0x03000000 | minor << 16};
	struct errinfo e = {0};
	int count;

	p.runtime = FAKE_RUNTIME;
	if (how & 4 && p.thread_native == PYTHON_NONE)
		p.pthread_tid = 0x2d0;
	fake_init(&process, &p);
	patch(&in);
	count = python_walk(&process.memory, &process.p, FAKE_TID, frames, ARRAY_SIZE(frames));
	MUST(count <= (int)ARRAY_SIZE(frames));
	for (int i = 0; i < count; i++)
		check_code(&process.p, frames[i].code, frames[i].lasti);
	/* The proof may be of another thread than the one that was named. */
	if (python_layout(&process.memory, &symbols, FAKE_TID, &found, &e) < 0)
		MUST(found.minor == 99); /* untouched */
	else
		MUST(found.runtime == FAKE_RUNTIME && found.minor >= PYTHON_MINOR_MIN &&
			found.minor <= PYTHON_MINOR_MAX);
	return 0;
}
