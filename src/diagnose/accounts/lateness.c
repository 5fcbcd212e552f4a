/* SPDX-License-Identifier: Apache-2.0 */
/* lateness.c - see lateness.h.
 *
 * Arrival is the start of the host's call. Ranks of one node share a clock; across nodes clocks are
 * not compared: a collective ends for all ranks at once, so who waited least came last, and the
 * arrival is taken as minus the wait.
 *
 * Ranks that share what delays them (a socket, a disk) are late together, and the time between two
 * of them says nothing. So the late ones are those after the earliest wide distance between two
 * arrivals in the second half: wide is one of at least 30 % of the widest there. What they cost is
 * the time from the last of the others to the very last, as far as some other rank waited for it on
 * the host. */
#include "diagnose/accounts/lateness.h"

#include <string.h>

#define LATE_MAX   8 /* that are late together; more are not told apart from a slow job */
#define WIDE_SHARE 0.3

static int64_t arrival_ns(const struct match *m, const struct collective_row *r)
{
	return m->one_node ? r->start.ns : -r->c.wait_ns;
}

struct arrival {
	int64_t ns;
	const struct collective_row *row;
};

/* The latest arrivals of @m, the very last first; how many of them are in @ret. */
static int latest(
	const struct match_table *t, const struct match *m, struct arrival ret[LATE_MAX + 1])
{
	int max = (int)MIN(m->count / 2, (size_t)LATE_MAX) + 1, n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct collective_row *r = match_row(t, m, i);
		struct arrival a = {arrival_ns(m, r), r};
		int at = n;

		while (at > 0 && ret[at - 1].ns < a.ns)
			at--;
		if (at == max)
			continue;
		n = MIN(n + 1, max);
		memmove(&ret[at + 1], &ret[at], (size_t)(n - at - 1) * sizeof(*ret));
		ret[at] = a;
	}
	return n;
}

/* How many of the @n latest are late: those before the last wide distance. */
static int late_count(const struct arrival *a, int n)
{
	int64_t widest = 0;
	int late = 1;

	for (int i = 1; i < n; i++)
		widest = MAX(widest, a[i - 1].ns - a[i].ns);
	for (int i = 1; i < n; i++)
		if ((double)(a[i - 1].ns - a[i].ns) >= WIDE_SHARE * (double)widest)
			late = i;
	return late;
}

static bool is_among(const struct arrival *a, int n, const struct collective_row *row)
{
	for (int i = 0; i < n; i++)
		if (a[i].row == row)
			return true;
	return false;
}

bool lateness_find(const struct match_table *t, const struct match *m, struct lateness *ret)
{
	struct arrival a[LATE_MAX + 2] = {0};
	uint64_t gap, longest = 0;
	bool waits_known = false;
	int n;

	*ret = (struct lateness){.match = m};
	for (size_t i = 0; !m->one_node && i < m->count; i++)
		if (match_row(t, m, i)->c.wait_ns < 0)
			return false;
	n = latest(t, m, a);
	ret->row = a[0].row;
	ret->late = late_count(a, n);
	gap = (uint64_t)(a[0].ns - a[MIN(ret->late, n - 1)].ns);
	for (size_t i = 0; i < m->count; i++) {
		const struct collective_row *r = match_row(t, m, i);

		if (r->c.wait_ns < 0 || is_among(a, ret->late, r))
			continue;
		waits_known = true;
		longest = MAX(longest, (uint64_t)r->c.wait_ns);
		ret->lost_ns += MIN(gap, (uint64_t)r->c.wait_ns);
	}
	ret->gap_ns = waits_known ? MIN(gap, longest) : gap;
	return true;
}
