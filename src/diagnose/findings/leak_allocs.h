/* SPDX-License-Identifier: Apache-2.0 */
/* leak_allocs.h - the allocations of a process that it never freed. */
#pragma once

#include "diagnose/findings/detector.h"
#include "diagnose/findings/device_allocs.h"

struct leak_allocs {
	size_t from, end;          /* its entries: up to the first failure, without its teardown */
	int64_t called_ns;         /* its first call of any kind */
	int64_t first_ns, last_ns; /* its first allocation; until when its memory could grow */
	bool ran_out;              /* at last_ns an allocation failed */
	/* By leak_allocs_count(), of the allocations in a stretch of that time: */
	int64_t since_ns, until_ns;
	uint64_t left, left_bytes; /* not freed */
	uint64_t unknown;          /* frees of memory allocated before the recording */
	size_t newest;             /* the last one not freed, if any is */
};

/* leak_allocs_of - those of the process whose entries are [from, end) of @l. */
void leak_allocs_of(const struct detector_input *s, const struct device_allocs *l, size_t from,
	size_t end, struct leak_allocs *ret);

/* leak_allocs_count - which of [since_ns, until_ns] are left. */
void leak_allocs_count(
	const struct device_allocs *l, int64_t since_ns, int64_t until_ns, struct leak_allocs *a);

/* leak_allocs_judge - how bad it is that memory grows by @bytes_per_s with @free_bytes left (-1: not known), its cause, and
 * in @full when it is full: "; full in 12 min".
 *
 * HIGH: it ran out of memory, or will within an hour; free memory not known: from 10 MiB/s. Else MEDIUM; LOW if more than
 * 10 % of the calls were lost, since lost frees look like a leak. */
#define LEAK_FULL_MAX 64
void leak_allocs_judge(const struct detector_input *s, const struct leak_allocs *a,
	double bytes_per_s, int64_t free_bytes, double confidence, struct incident *inc,
	char full[LEAK_FULL_MAX]);

/* leak_allocs_put - the counted ones into @inc: rows, stacks by bytes and the query. 0 or -ENOMEM. */
int leak_allocs_put(const struct recording *rec, const struct device_allocs *l,
	const struct leak_allocs *a, struct incident *inc);
