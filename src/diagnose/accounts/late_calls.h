/* SPDX-License-Identifier: Apache-2.0 */
/* late_calls.h - rows of `collectives` on communicators that were in use before the trace, brought together with those of
 * other ranks (blame/comm_join.h). */
#pragma once

#include "diagnose/recording.h"

struct late_calls {
	struct collective_row
		*rows; /* copies, with the communicator and number that all ranks share */
	size_t *of;    /* which of the recording's they are, ascending */
	size_t count;
	uint64_t unknown; /* rows that could not be brought together */
};

/* late_calls_find - 0 and *ret (released with late_calls_done()), or -ENOMEM. */
int late_calls_find(const struct recording *rec, struct late_calls *ret);
void late_calls_done(struct late_calls *l);
