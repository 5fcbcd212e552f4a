/* SPDX-License-Identifier: Apache-2.0 */
/* method.c - names of the probe methods. */
#include "record/probe/method.h"

const char *probe_method_name(enum probe_method m)
{
	static const char *const names[] = {
		[PROBE_SESSION] = "session",
		[PROBE_MULTI] = "multi",
		[PROBE_PERF] = "perf",
	};

	return names[m];
}
