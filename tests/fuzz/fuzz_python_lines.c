/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables and texts of code objects. */
#include <errno.h>

#include "record/python/python.h"
#include "base/text.h"
#include "fuzz.h"

static void check_text(const uint8_t *data, size_t size, unsigned kind)
{
	_cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
	uint32_t cp;
	int n;

	if (python_text(data, size, kind, &out) < 0)
		return;
	for (size_t i = 0; i < out.len; i += (size_t)n) {
		n = text_utf8_next(out.data + i, out.len - i, &cp);
		MUST(n > 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	unsigned minor =
		PYTHON_MINOR_MIN + fuzz_u8(&in) % (PYTHON_MINOR_MAX - PYTHON_MINOR_MIN + 1);
	struct python_lines whole = {.minor = minor}, cut;
	uint32_t lasti;
	int line;

	whole.first_line = fuzz_u32(&in) & 0x3fffffff;
	lasti = fuzz_u32(&in);
	whole.table = in.data;
	whole.size = in.size;
	line = python_line(&whole, lasti);
	MUST(line >= 0);
	/* What is there of a table that is cut says the same as the whole, or that it does not know. */
	cut = whole;
	cut.is_cut = true;
	for (cut.size = 0; cut.size <= whole.size; cut.size += 1 + cut.size / 4) {
		int known = python_line(&cut, lasti);

		MUST(known == line || known == -ENODATA);
	}
	for (uint32_t i = 0; i < 64; i += 2)
		MUST(python_line(&whole, i) >= 0);
	for (unsigned kind = 0; kind <= 4; kind++)
		check_text(in.data, in.size, kind);
	return 0;
}
