/* SPDX-License-Identifier: Apache-2.0 */
/* detect.h - finds stretches of slow calls. Says nothing about why: that is attribute.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/correlate/correlate.h"
#include "base/macros.h"

struct op_group { /* one op of one process; with source 0: the process itself */
	uint32_t pid;
	uint8_t source;
	uint16_t op;
	bool nested;	      /* driver calls made inside runtime calls */
	bool has_runtime;     /* process: some CUDA runtime call is known */
	bool from_aggregates; /* the figures below cover all calls, not only stored rows */
	uint32_t process;     /* its process's group */
	size_t rows;	      /* stored events */
	size_t durations;     /* used while detecting */
	uint64_t calls;
	int64_t first_ns, last_ns; /* process: first start and last end of its calls */
	int64_t first_call_end_ns; /* end of the op's first stored call */
	uint64_t baseline_ns;
	uint64_t calm_tail_ns; /* p95 in calm buckets; 0 unless from_aggregates */
	uint64_t p50_ns, p99_ns;
};

struct slow_call {
	int64_t start_ns, end_ns;
	uint64_t excess_ns; /* duration - baseline */
	size_t event;	    /* index in the recording */
	uint32_t tid;
	uint32_t group;
};

struct stretch { /* slow calls of one op without a long pause: slow[first .. first + count) */
	size_t first, count;
	uint64_t excess_ns;
	uint32_t group;
};

struct detection {
	struct op_group *groups;
	size_t group_count;
	struct slow_call *slow; /* by group, then by start */
	size_t slow_count, slow_cap;
	struct stretch *stretches; /* material ones, most excess first */
	size_t stretch_count;
	uint64_t ignored; /* rows whose times make no sense */
	uint32_t *slots;  /* open addressing over groups; 0: empty, else 1 + index */
	size_t slot_mask;
};

/* detect_run - fills @ret (released with detect_done(), also after a failure). 0 or -ENOMEM. */
int detect_run(const struct recording *rec, struct detection *ret);
void detect_done(struct detection *d);

/* detect_span_ns - how long the process of @g was observed. */
uint64_t detect_span_ns(const struct detection *d, const struct op_group *g);

/* detect_is_sane - whether the row's times can be reckoned with: start and end are in 1970..2116
 * and it lasted at most 13 days (2^50 ns), so that sums of int64 cannot overflow. */
static inline bool detect_is_sane(const struct event *e)
{
	return e->start.ns >= 0 && e->start.ns <= INT64_C(1) << 62 &&
	       e->dur_ns <= UINT64_C(1) << 50;
}
