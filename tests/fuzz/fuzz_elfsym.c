/* SPDX-License-Identifier: Apache-2.0 */
/* A library as a file: where its functions are. */
#include <elf.h>

#include "record/discover/elfsym.h"
#include "fuzz.h"

static const char *const names[] = {
	"cudaFree", "cudaMalloc", "plain", "aliased", "f", "main", "_init", "cudaFree"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t offsets[ARRAY_SIZE(names)], sizes[ARRAY_SIZE(names)], one;
	struct errinfo e = {0};
	struct elfsym *elf = NULL;
	int fd = fuzz_file(data, size), found, count = 0;
	uint8_t byte;

	if (elfsym_open_fd(fd, &elf, &e) < 0) {
		MUST(!elf && e.text[0]);
		close(fd);
		return 0;
	}
	found = elfsym_offsets(elf, names, ARRAY_SIZE(names), offsets);
	for (size_t i = 0; found >= 0 && i < ARRAY_SIZE(names); i++) {
		count += offsets[i] != 0;
		if (offsets[i])
			MUST(elfsym_read(elf, offsets[i], &byte, 1) == 0 &&
				byte == data[offsets[i]]);
	}
	MUST(found < 0 || found == count);
	MUST(found < 0 || offsets[0] == offsets[ARRAY_SIZE(names) - 1]);
	/* One name at a time: the answer is the same. */
	if (found >= 0 && offsets[2])
		MUST(elfsym_offset(elf, names[2], &one) == 0 && one == offsets[2]);
	/* What has a size is exported or in .symtab, so it is a function of the file. */
	for (int exported = 0; exported < 2 && found >= 0; exported++)
		if (elfsym_sizes(elf, names, ARRAY_SIZE(names), exported, sizes) >= 0)
			for (size_t i = 0; i < ARRAY_SIZE(names); i++)
				MUST(!sizes[i] || offsets[i]);
	MUST(elfsym_mentions(elf, names[2]) <= 1);
	MUST(elfsym_read(elf, size, &byte, 1) < 0);
	elfsym_close(elf);
	return 0;
}
