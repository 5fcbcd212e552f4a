/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sample.h"

#include "base/macros.h"

/* The names of throttle reasons, and the empty sample. */

const struct gpu_throttle gpu_throttles[] = {
#define X(bit, name, slows) {bit, name, slows},
	GPU_THROTTLES(X)
#undef X
		{0, NULL, 0},
};

static void append(char *out, size_t size, const char *name)
{
	size_t len = strlen(out);

	snprintf(out + len, size - len, "%s%s", len ? ", " : "", name);
}

const char *gpu_throttle_text(uint64_t bits, char *out, size_t size)
{
	uint64_t rest = bits;

	out[0] = 0;
	for (const struct gpu_throttle *t = gpu_throttles; t->bit; t++) {
		if (bits & t->bit && t->slows)
			append(out, size, t->name);
		rest &= ~t->bit;
	}
	if (rest) {
		append(out, size, FORMATTED(32, "0x%llx", (unsigned long long)rest));
	}
	if (!out[0])
		append(out, size, "none");
	return out;
}

void gpu_sample_init(struct gpu_sample *s)
{
	*s = (struct gpu_sample){
#define X(field, meaning) .field = GPU_UNKNOWN,
		GPU_FIELDS(X)
#undef X
	};
}
