/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables and texts of code objects. */
#include "agent/python/python.h"
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
	uint32_t first = fuzz_u32(&in) & 0x3fffffff, lasti = fuzz_u32(&in);
	uint32_t line = python_line(minor, first, in.data, in.size, lasti);

	/* The same question has the same answer, and an empty table says the first line. */
	MUST(line == python_line(minor, first, in.data, in.size, lasti));
	MUST(python_line(minor, first, in.data, 0, lasti) == first);
	for (uint32_t i = 0; i < 64; i += 2)
		python_line(minor, first, in.data, in.size, i);
	for (unsigned kind = 0; kind <= 4; kind++)
		check_text(in.data, in.size, kind);
	return 0;
}
