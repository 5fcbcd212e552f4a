/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - completes the attach cookie of a table row. */
#include "agent/probe/function.h"

union wire_cookie probe_cookie(const struct probe_library *lib, int row, unsigned library)
{
	union wire_cookie k = lib->functions[row].cookie;

	k.function = (uint8_t)row;
	k.library = (uint8_t)library;
	return k;
}
