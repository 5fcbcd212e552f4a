/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_clock.c - see fanout_clock.h. Foreign times are kept within WALL_NS_MAX, so that no
 * difference of two overflows. */
#include "fanout/fanout_clock.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/macros.h"

static bool makes_sense(const struct fanout_clock_sample *s)
{
	return s->remote_ns >= 0 && s->remote_ns < WALL_NS_MAX && s->sent_ns >= 0 &&
	       s->got_ns >= s->sent_ns && s->got_ns < WALL_NS_MAX;
}

static int by_offset(const void *a, const void *b)
{
	const struct fanout_clock *x = a, *y = b;

	return (x->offset_ns > y->offset_ns) - (x->offset_ns < y->offset_ns);
}

struct fanout_clock fanout_clock_median(const struct fanout_clock_sample *samples, size_t count)
{
	struct fanout_clock found[FANOUT_CLOCK_SAMPLES];
	size_t n = 0;

	for (size_t i = 0; i < MIN(count, (size_t)FANOUT_CLOCK_SAMPLES); i++) {
		const struct fanout_clock_sample *s = &samples[i];
		int64_t way = s->got_ns - s->sent_ns;

		if (!makes_sense(s))
			continue;
		found[n++] = (struct fanout_clock){.known = true,
			.offset_ns = s->remote_ns - (s->sent_ns + way / 2),
			.error_ns = (uint64_t)(way + 1) / 2};
	}
	if (!n)
		return (struct fanout_clock){0};
	if (n == 2)
		return found[found[1].error_ns < found[0].error_ns];
	qsort(found, n, sizeof(*found), by_offset);
	return found[n / 2];
}

struct candidate {
	size_t node;
	struct fanout_clock clock;
};

static int by_clock(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = by_offset(&x->clock, &y->clock);

	return order ? order : (x->node > y->node) - (x->node < y->node);
}

static int by_size(const void *a, const void *b)
{
	const struct fanout_skew *x = a, *y = b;
	uint64_t dx = (uint64_t)llabs(x->by_ns), dy = (uint64_t)llabs(y->by_ns);

	return dx != dy ? (dx < dy) - (dx > dy) : (x->node > y->node) - (x->node < y->node);
}

static bool is_skewed(const struct fanout_skew *s, uint64_t threshold_ns)
{
	uint64_t by = (uint64_t)llabs(s->by_ns);

	return by > s->error_ns && by - s->error_ns > threshold_ns;
}

size_t fanout_clock_skews(const struct fanout_clock *clocks, size_t count, uint64_t threshold_ns,
	struct fanout_skew *ret, size_t max)
{
	_cleanup_free_ struct candidate *list = calloc(MAX(count, (size_t)1), sizeof(*list));
	_cleanup_free_ struct fanout_skew *found = calloc(count + 1, sizeof(*found));
	const struct candidate *middle;
	size_t n = 0, skewed = 0;

	if (!list || !found)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (clocks[i].known)
			list[n++] = (struct candidate){i, clocks[i]};
	if (!n)
		return 0;
	qsort(list, n, sizeof(*list), by_clock);
	middle = &list[(n - 1) / 2];
	for (size_t i = 0; i <= n; i++) {
		const struct candidate *c = i < n ? &list[i] : middle;
		bool us = i == n;
		struct fanout_skew s = {.node = c->node,
			.other = us ? SIZE_MAX : middle->node,
			.by_ns = c->clock.offset_ns - (us ? 0 : middle->clock.offset_ns),
			.error_ns = c->clock.error_ns + (us ? 0 : middle->clock.error_ns)};

		if ((us || c != middle) && is_skewed(&s, threshold_ns))
			found[skewed++] = s;
	}
	qsort(found, skewed, sizeof(*found), by_size);
	for (size_t i = 0; i < MIN(skewed, max); i++)
		ret[i] = found[i];
	return skewed;
}
