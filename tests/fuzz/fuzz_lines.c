/* SPDX-License-Identifier: Apache-2.0 */
/* Names, lines and inlined functions of a file with DWARF. libdw reads it too and is not ours: what
 * brings libdw down costs the symbol process and is no defect of this target. */
#include "record/symbol/names.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct names_frame frames[NAMES_INLINE_MAX];
	struct image *image = NULL;
	struct names *names = NULL;
	struct errinfo e = {0};
	int fd = fuzz_file(data, size);

	if (image_open(fd, &image, &e) < 0) {
		close(fd);
		return 0;
	}
	MUST(names_open(image, fd, -1, &names) == 0);
	for (uint64_t at = 0x1000; at < 0x1400; at += 16) {
		int count = names_at(names, at, at & 16, frames);

		MUST(count >= 0 && count <= NAMES_INLINE_MAX);
		for (int i = 0; i < count; i++) {
			MUST(!frames[i].function || strlen(frames[i].function) < NAMES_TEXT_MAX);
			MUST(!frames[i].file || strlen(frames[i].file) < NAMES_TEXT_MAX);
		}
	}
	names_close(names);
	image_close(image);
	close(fd);
	return 0;
}
