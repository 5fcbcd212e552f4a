/* SPDX-License-Identifier: Apache-2.0 */
/* Names of linkers: the result is a string that fits, and a shorter room keeps its beginning. */
#include "demangle/demangle.h"
#include "record/symbol/names.h"
#include "fuzz.h"

static void check_rust(const char *name, int (*read)(const char *, size_t, struct cut_text *))
{
	char out[512];
	struct cut_text t = cut_text_on(out, sizeof(out));
	size_t len = strlen(name);
	int used = read(name, len, &t);

	MUST(used < 0 || (size_t)used <= len);
	MUST(t.len < t.size && out[t.len] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *name = fuzz_text(data, size), *tight = malloc(24);
	char wide[8192];

	MUST(tight);
	MUST(demangle(name, wide, sizeof(wide)) == wide);
	MUST(strnlen(wide, sizeof(wide)) < sizeof(wide));
	MUST(demangle(name, tight, 24) == tight);
	MUST(strnlen(tight, 24) < 24);
	/* A name that turns out to be none behind what fits is shown as far as it went. */
	if (strcmp(wide, name) != 0 && strlen(wide) < 24)
		MUST(strcmp(wide, tight) == 0);
	check_rust(name, rust_v0_demangle);
	check_rust(name, rust_legacy_demangle);
	return 0;
}
