/* SPDX-License-Identifier: Apache-2.0 */
/* op_stat.h - exact figures of each operation over recorded rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/aggregate.h"
#include "model/event.h"

#define OP_STAT_SPIKE 3 /* times the median */

struct op_stat {
	uint8_t source;
	uint16_t op;
	bool nested; /* calls inside others */
	uint64_t rows;
	uint64_t calls;  /* that they stand for: the sum of weights */
	uint64_t sum_ns; /* of all calls; stops at the largest number */
	uint64_t min_ns, max_ns, p50_ns, p95_ns, p99_ns;
	double avg_ns, share; /* of wall time, more than 1 if threads called at once; see ops.h */
	uint64_t spikes;      /* calls slower than OP_STAT_SPIKE times p50; none if that is 0 */
};

/* op_stat_run - one for each (source, op, nested) of @events, most time first; the caller frees *ret.
 * Percentiles are by nearest rank over calls: the duration of the call at rank ceil(p * calls), a
 * row counting as many times as its weight says. -ENOMEM. */
int op_stat_run(const struct event *events, size_t count, struct op_stat **ret, size_t *ret_count);

/* op_stat_of_sketch - the same of every call that @s knows; percentiles are the sketch's. */
struct op_stat op_stat_of_sketch(
	uint8_t source, uint16_t op, bool nested, uint64_t rows, const struct sketch *s);

/* op_stat_sort - most time first, then by ids. */
void op_stat_sort(struct op_stat *stats, size_t count);
