/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - readings of the whole machine from /proc. */
#pragma once

#include "model/sample.h"
#include "model/session.h"

struct host_reader {
	const char *root;     /* prefix of /proc, "" for the real one */
	uint64_t busy, total; /* CPU time at the last reading */
};

void host_reader_init(struct host_reader *h, const char *root);

/* host_read - one sample; the CPU share is that since the previous call. 0 or negative errno. */
int host_read(struct host_reader *h, wall_time now, struct host_sample *ret);

/* host_describe - fill the machine's fields of a session (CPU, memory, kernel, OS). */
void host_describe(const char *root, struct session *s);
