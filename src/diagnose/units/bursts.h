/* SPDX-License-Identifier: Apache-2.0 */
/* bursts.h - when each process used each GPU, as stretches of calls without a long pause. */
#pragma once

#include "diagnose/compose/correlate.h"

struct burst {
	int64_t start_ns, end_ns;
	uint32_t pid;
	int32_t device;
};

struct bursts {
	struct burst *items; /* by device, then by start */
	size_t count, room;
};

/* bursts_run - fills @ret (released with bursts_done(), also after a failure). 0 or -ENOMEM. */
int bursts_run(const struct recording *rec, struct bursts *ret);

/* bursts_add_untraced - if all bursts are of one process, adds those of process 0: the seconds in
 * which the driver counted more than one process on its device. 0 or -ENOMEM. */
int bursts_add_untraced(const struct recording *rec, struct bursts *b);
void bursts_done(struct bursts *b);
