/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.h - the ops of every process in a recording, and what is ordinary for each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diagnose/recording.h"
#include "base/macros.h"

struct op_group { /* one op of one process; with source 0: the process itself */
	uint32_t pid;
	uint8_t source;
	uint16_t op;
	bool nested;          /* driver calls made inside runtime calls */
	bool has_runtime;     /* process: some CUDA runtime call is known */
	bool from_aggregates; /* the figures below cover all calls, not only stored rows */
	uint32_t process;     /* its process's group */
	size_t rows;          /* stored events */
	size_t durations;     /* used while detecting */
	uint64_t calls;
	int64_t first_ns, last_ns; /* process: first start and last end of its calls */
	int64_t warm_ns;           /* before this, calls may pay for the context */
	uint64_t baseline_ns;
	uint64_t calm_tail_ns; /* p95 in calm buckets; 0 unless from_aggregates */
	uint64_t p50_ns, p99_ns;
};

struct op_table {
	struct op_group *groups;
	size_t count;
	uint32_t *slots; /* open addressing over groups; 0: empty, else 1 + index */
	size_t slot_mask;
	uint64_t ignored; /* rows whose times make no sense */
};

/* baseline_run - fills @ret (released with baseline_done(), also after a failure). 0 or -ENOMEM. */
int baseline_run(const struct recording *rec, struct op_table *ret);
void baseline_done(struct op_table *t);

/* baseline_lookup - the group a call belongs to; false if there is none. */
bool baseline_lookup(const struct op_table *t, uint32_t pid, uint8_t source, uint16_t flags,
	uint16_t op, uint32_t *ret);

/* op_span_ns - how long the process of @g was observed. */
static inline uint64_t op_span_ns(const struct op_table *t, const struct op_group *g)
{
	const struct op_group *p = &t->groups[g->process];

	return p->last_ns > p->first_ns ? (uint64_t)(p->last_ns - p->first_ns) : 1;
}

/* baseline_is_sane - whether the row's times can be reckoned with: start and end are in 1970..2116
 * and it lasted at most 13 days (2^50 ns), so that sums of int64 cannot overflow. */
static inline bool baseline_is_sane(const struct event *e)
{
	return e->start.ns >= 0 && e->start.ns <= INT64_C(1) << 62 &&
	       e->dur_ns <= UINT64_C(1) << 50;
}
