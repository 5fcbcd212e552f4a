/* SPDX-License-Identifier: Apache-2.0 */
/* serve_confine.h - what a server gives up before it answers its first request. */
#pragma once

#include "record/check/check.h"

struct serve_confine {
	const char *db;             /* the recording; need not be there yet */
	struct check_probes probes; /* set: what the kernel said before, for get_check */
};

/* serve_confine - from here on the process can listen, connect and read; it writes only beside the
 * recording and beside the default one, where certificates are kept, and begins only processes for
 * SQL. To be called while there is one thread, when certificates and tokens are open. What the
 * kernel lacks is a warning. */
void serve_confine(struct serve_confine *c);
