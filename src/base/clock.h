/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - monotonic and wall time as different types, and the one conversion between them.
 *
 * Kernel records carry CLOCK_MONOTONIC; stores, reports and wires carry wall time. The offset is
 * refreshed by clock_map_refresh(); a step of the wall clock is reported, not hidden. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S  1000000000ULL

#define WALL_NS_MAX (7258118400LL * (int64_t)NS_PER_S) /* the year 2200: later is nonsense */

typedef struct {
	uint64_t ns;
} mono_time;

typedef struct {
	int64_t ns; /* since 1970-01-01 UTC */
} wall_time;

struct clock_map {
	int64_t offset_ns;   /* wall = mono + offset */
	int64_t step_ns;     /* sum of the steps seen since clock_map_init() */
	uint64_t largest_ns; /* of the steps, either way */
	uint32_t steps;
};

mono_time mono_now(void);
wall_time wall_now(void);

void clock_map_init(struct clock_map *m);

/* clock_map_refresh - measure the offset again. Drift up to 1 ms is followed quietly; more is a
 * step: it is followed too and counted in steps. Returns whether it is a step larger than all before:
 * a clock that is slewed fast steps every second, and that is worth saying once. */
bool clock_map_refresh(struct clock_map *m);

static inline wall_time clock_map_wall(const struct clock_map *m, mono_time t)
{
	/* Unsigned: a time of a damaged record may be any number. */
	return (wall_time){(int64_t)(t.ns + (uint64_t)m->offset_ns)};
}

/* A moment as people write it on a command line.
 *
 * Every form without a zone is local time, the clock-only one too; a zone may follow any of them. An hour that comes twice, as
 * clocks are set back, is the first one, or as the end of a range the second.
 *   2026-03-24T13:48:44.5Z   2026-03-24 13:48:44+01:00   2026-03-24 13:48   2026-03-24
 *   13:48:44.250   13:48   13:48Z         on the recording's own day
 *   1774360124   1774360124500   1774360124500000000      epoch in s, ms, µs or ns, by its size. */

struct when_span { /* what a clock-only time is relative to: first and last moment */
	int64_t first_ns, last_ns;
};

/* when_parse - *ret_ns is since 1970 UTC. A time of the clock is taken on the first local day of
 * @span on which it lies inside (with @end: on the last such day), else on the span's first (last)
 * day. -EINVAL if it is no time; -ERANGE before 1970 or after 2200. */
int when_parse(const char *s, const struct when_span *span, bool end, int64_t *ret_ns);

#define WHEN_UTC_MAX 64

/* when_utc - @t as RFC 3339 has it, to the nanosecond: "2026-03-24T13:48:44.500000000Z". */
const char *when_utc(char out[WHEN_UTC_MAX], wall_time t);
