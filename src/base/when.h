/* SPDX-License-Identifier: Apache-2.0 */
/* when.h - a moment as people write it on a command line.
 *
 * Every form without a zone is local time, the clock-only one too; a zone may follow any of them.
 *   2026-03-24T13:48:44.5Z   2026-03-24 13:48:44+01:00   2026-03-24 13:48   2026-03-24
 *   13:48:44.250   13:48   13:48Z         on the recording's own day
 *   1774360124   1774360124500   1774360124500000000      epoch in s, ms, µs or ns, by its size */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

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
