/* SPDX-License-Identifier: Apache-2.0 */
/* method.h - the ways to probe library functions. */
#pragma once

enum probe_method {    /* best first */
	PROBE_SESSION, /* one link and one program for entry and return: kernel 6.13 */
	PROBE_MULTI,   /* a link for entries and one for returns: kernel 6.6 */
	PROBE_PERF, /* a perf event for each function and direction: any kernel; slow to detach */
};

/* probe_method_name - "session", "multi", "perf". */
const char *probe_method_name(enum probe_method m);
