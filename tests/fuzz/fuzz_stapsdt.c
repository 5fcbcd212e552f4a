/* SPDX-License-Identifier: Apache-2.0 */
/* The section of static probes: each note lies behind the one before and ends inside. */
#include <errno.h>

#include "record/discover/elfsym.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *section = fuzz_text(data, size); /* its own block: nothing behind it */
	struct stapsdt_note n;
	size_t at = 0, was = 0;
	int r;

	while ((r = stapsdt_next(section, size, &at, &n)) > 0) {
		MUST(at > was && at <= size);
		MUST(n.provider >= section && n.name > n.provider);
		MUST(n.name + strlen(n.name) < section + size);
		was = at;
	}
	MUST(r == 0 || r == -EBADMSG);
	free(section);
	return 0;
}
