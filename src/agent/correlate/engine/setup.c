/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/correlate/engine/setup.h"

#include "base/search.h"
#include "stat/robust.h"

#define SETUP_SHARE 0.05 /* of the launches of a step */

/* What the ledger's rows that end in each of the first steps have launched; returns how many steps were probed until
 * the thread's launches were left out for the first time. */
static size_t count_launches(const struct recording *rec, uint32_t pid, uint32_t tid,
	const struct step *steps, size_t n, uint64_t *ret)
{
	size_t probed = n;

	for (size_t i = 0; i < n; i++)
		ret[i] = 0;
	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *r = &rec->ledger[i];
		int64_t end = ledger_end_ns(r);
		size_t at;

		if (r->pid != pid || end <= steps[0].start_ns)
			continue;
		at = LOWER_BOUND(k, n, steps[k].end_ns < end);
		if (at == n)
			continue;
		ret[at] += r->launches;
		if (r->tid == tid && r->launches_off)
			probed = MIN(probed, at);
	}
	return probed;
}

/* Half of the steps that launch anything launch at least so much. */
static uint64_t usual_launches(const uint64_t *launches, size_t n, uint64_t *room)
{
	size_t some = 0;

	for (size_t i = 0; i < n; i++)
		if (launches[i])
			room[some++] = launches[i];
	robust_sort(room, some);
	return some ? robust_median(room, some) : 0;
}

size_t setup_count(const struct recording *rec, uint32_t pid, uint32_t tid,
	const struct step *steps, size_t n, uint64_t *scratch)
{
	size_t probed = n ? count_launches(rec, pid, tid, steps, n, scratch) : 0, count = 0;
	uint64_t usual = usual_launches(scratch, probed, scratch + n);

	while (count < probed && (double)scratch[count] < SETUP_SHARE * (double)usual)
		count++;
	return count;
}
