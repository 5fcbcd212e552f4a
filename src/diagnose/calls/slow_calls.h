/* SPDX-License-Identifier: Apache-2.0 */
/* slow_calls.h - finds stretches of slow calls. Says nothing about why: that is attribute.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diagnose/calls/baseline.h"

struct slow_call {
	int64_t start_ns, end_ns;
	uint64_t excess_ns; /* duration - baseline */
	size_t event;       /* index in the recording */
	uint32_t tid;
	uint32_t group;
};

struct slow_episode { /* slow calls of one op without a long pause: slow[first .. first + count) */
	size_t first, count;
	uint64_t excess_ns; /* wall time: what threads lost at the same time counts once */
	uint64_t sum_ns;    /* of its calls' excess: as often as there were threads */
	uint32_t group;
};

/* episode_wall_ns - what @ns of the calls' excess are of the episode's. */
static inline uint64_t episode_wall_ns(const struct slow_episode *s, uint64_t ns)
{
	return s->sum_ns > s->excess_ns
		       ? (uint64_t)((double)ns * ((double)s->excess_ns / (double)s->sum_ns))
		       : ns;
}

struct detection {
	struct op_table ops;
	struct slow_call *slow; /* by group, then by start */
	size_t slow_count, slow_room;
	struct slow_episode *slow_episodees; /* material ones, most excess first */
	size_t episode_count;
	uint64_t ignored; /* rows whose times make no sense */
};

/* detect_run - fills @ret (released with detect_done(), also after a failure). 0 or -ENOMEM. */
int detect_run(const struct recording *rec, struct detection *ret);
void detect_done(struct detection *d);

/* detect_span_ns - how long the process of @g was observed. */
uint64_t detect_span_ns(const struct detection *d, const struct op_group *g);
