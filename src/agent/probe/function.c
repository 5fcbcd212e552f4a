/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - packs a row of a function table into its attach cookie. */
#include "agent/probe/function.h"

union wire_cookie probe_cookie(const struct probe_library *lib, int row)
{
	const struct probe_function *f = &lib->functions[row];
	union wire_cookie k = {
		.source = lib->source,
		.op = f->op,
		.arg0 = f->arg0 & 15,
		.arg1 = f->arg1 & 15,
		.stream = f->stream & 15,
		.flags = f->flags,
		.function = (uint16_t)row,
	};

	return k;
}
