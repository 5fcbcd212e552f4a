/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose.c - from a recording to incidents: units and accounts (accounts/), what they lost their time to
 * (contrasts/, chains/, findings/), states that are no matter of time alone (findings/detect_*.c), and which of all that
 * are incidents (compose.c). Order: the most severe first, what the tracer cost after what it did not, then most time
 * lost, then earliest, then pid and op. */
#include "diagnose/compose/diagnose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/contrasts/account_task.h"
#include "diagnose/accounts/tracer_name.h"
#include "diagnose/compose/compose.h"
#include "base/search.h"
#include "base/macros.h"

struct engine {
	const struct recording *rec;
	struct op_table ops;
	struct device_allocs allocs;
	struct account_task own_accounts;
	const struct step_report *accounts; /* NULL: none */
	struct time_findings *times;
	size_t time_count;
	double completeness; /* -1: not known */
};

static void engine_done(struct engine *g)
{
	baseline_done(&g->ops);
	device_allocs_done(&g->allocs);
	account_task_done(&g->own_accounts);
	free(g->times);
}

/* Lost are also rows that could not be used, so that they are never dropped in silence. */
static double completeness_of(const struct engine *g)
{
	const struct accounting *books = g->rec->books;
	uint64_t lost = g->ops.ignored, hits = 0;

	if (!books || books->unclean)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(books->source); i++) {
		hits += books->source[i].hits;
		lost += account_lost(&books->source[i]);
	}
	hits = MAX(hits, lost);
	return hits ? 1 - (double)lost / (double)hits : 1;
}

static int find_states(const struct engine *g, struct incident_list *out)
{
	const struct detector_input input = {
		g->rec, &g->ops, &g->allocs, g->completeness, g->accounts};
	static detector *const detectors[] = {
#define X(function) function,
		DETECTORS(X)
#undef X
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(detectors); i++)
		r = detectors[i](&input, out);
	return r;
}

/* Where stays are all that is known of threads, calls do not make up for those that are missing. */
static double completeness_of_times(const struct engine *g)
{
	double of_rows = completeness_of_sources(g->rec->books, OF_CALLS | OF_SOURCE(SOURCE_HOST));

	return g->rec->ledger_count || g->completeness < 0 ? g->completeness
							   : MIN(g->completeness, of_rows);
}

static int find_times(struct engine *g)
{
	double completeness = completeness_of_times(g);
	int r = account_get(g->rec, &g->own_accounts, &g->accounts);

	if (r < 0 || !g->accounts->count)
		return r;
	g->times = calloc(g->accounts->count, sizeof(*g->times));
	if (!g->times)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < g->accounts->count; i++)
		r = time_findings_find(
			g->rec, &g->accounts->items[i], completeness, &g->times[g->time_count++]);
	return r;
}

ORDER(by_weight, struct incident,
	DESCENDING(severity) ?: COMPARE(tracer_is_blamed(x), tracer_is_blamed(y))
			     ?: DESCENDING(excess_ns) ?: ASCENDING(first.ns) ?: ASCENDING(pid)
			     ?: strcmp(x->id, y->id))

int diagnose_run(const struct recording *rec, struct incident **ret, size_t *ret_count)
{
	_cleanup_(engine_done) struct engine g = {.rec = rec};
	_cleanup_free_ struct incident *list = NULL;
	struct incident_list found;
	int r;

	r = baseline_run(rec, &g.ops);
	if (r == 0)
		r = device_allocs_run(rec, &g.allocs);
	if (r < 0)
		return r;
	g.completeness = completeness_of(&g);
	list = calloc(DIAGNOSE_INCIDENTS_MAX, sizeof(*list));
	if (!list)
		return -ENOMEM;
	found = (struct incident_list){.items = list, .max = DIAGNOSE_INCIDENTS_MAX};
	r = find_times(&g);
	if (r == 0)
		r = find_states(&g, &found);
	if (r < 0)
		return r;
	r = compose(g.times, g.time_count, completeness_of_times(&g), &found);
	if (r < 0)
		return r;
	qsort(list, found.count, sizeof(*list), by_weight);
	*ret = TAKE(list);
	*ret_count = found.count;
	return 0;
}
