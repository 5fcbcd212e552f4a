/* SPDX-License-Identifier: Apache-2.0 */
/* A map of generated code: every line is a name or a bad line, names have no newline, and an address
 * lies in what was found for it. */
#include "record/symbol/names.h"
#include "fuzz.h"

static size_t lines_of(const uint8_t *data, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n + (size && data[size - 1] != '\n');
}

static void check_at(const struct perfmap *p, uint64_t address)
{
	uint64_t from = 0, again = 0;
	const char *name = perfmap_at(p, address, &from);

	if (!name)
		return;
	MUST(from <= address);
	MUST(!strchr(name, '\n'));
	MUST(perfmap_at(p, address - from, &again)); /* where it begins is code with a name too */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t edges[] = {
		0, 1, 0x1000, 0x10ff, 0x7f0000001000, INT64_MAX, UINT64_MAX};
	int fd = fuzz_file(data, size);
	struct perfmap *p = NULL;

	MUST(perfmap_read(fd, &p) == 0);
	MUST(perfmap_bad_lines(p) <= lines_of(data, size));
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
		check_at(p, edges[i]);
	for (uint64_t at = 0; at < 0x2000; at += 64)
		check_at(p, at);
	perfmap_free(p);
	close(fd);
	return 0;
}
