/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - completes the attach cookie of a table row, and finds rows by what they record. */
#include "record/probe/function.h"

#include "base/macros.h"

const struct probe_function *probe_function_find(unsigned source, unsigned op)
{
	static const struct probe_library *const libraries[] = {&probe_cuda_rt, &probe_cuda_drv};

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		for (const struct probe_function *f = libraries[i]->functions; f->symbols[0]; f++)
			if (f->cookie.source == source && f->cookie.op == op &&
				!(f->cookie.flags & COOKIE_DEVICE))
				return f;
	return NULL;
}

union wire_cookie probe_cookie(const struct probe_library *lib, int row, unsigned library)
{
	union wire_cookie k = lib->functions[row].cookie;

	k.function = (uint8_t)row;
	k.library = (uint8_t)library;
	return k;
}
