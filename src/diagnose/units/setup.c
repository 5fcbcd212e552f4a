/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/units/setup.h"

#include "base/search.h"
#include "stat/robust.h"

#define SETUP_SHARE 0.05 /* of the launches of a step */

struct beginning {
	size_t probed;  /* steps until the thread's launches were left out for the first time */
	size_t uploads; /* of these: until it waited for something else than copies */
};

static bool is_upload(const struct ledger_row *r)
{
	return !r->ns[LEDGER_GRAPH] && (r->copies || !r->waits);
}

/* What the ledger's rows that end in each of the steps have launched. */
static struct beginning count_launches(const struct recording *rec, uint32_t pid, uint32_t tid,
	const struct step *steps, size_t n, uint64_t *ret)
{
	struct beginning b = {n, n};

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
			b.probed = MIN(b.probed, at);
		if (r->tid == tid && !is_upload(r))
			b.uploads = MIN(b.uploads, at);
	}
	b.uploads = MIN(b.uploads, b.probed);
	return b;
}

/* Half of the steps that launch anything launch at least so much, as far as launches are counted. */
static uint64_t usual_launches(const uint64_t *launches, size_t n, uint64_t *room)
{
	size_t some = 0;

	for (size_t i = 0; i < n; i++)
		if (launches[i])
			room[some++] = launches[i];
	return robust_median_of(room, some);
}

size_t setup_count(const struct recording *rec, uint32_t pid, uint32_t tid,
	const struct step *steps, size_t n, uint64_t *scratch)
{
	struct beginning b;
	size_t count = 0;
	uint64_t usual;

	if (!n)
		return 0;
	b = count_launches(rec, pid, tid, steps, n, scratch);
	usual = usual_launches(scratch, n, scratch + n);
	while (count < b.uploads && (double)scratch[count] < SETUP_SHARE * (double)usual)
		count++;
	return count;
}
