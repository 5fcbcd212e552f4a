/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/gpu_other.h"

#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "diagnose/rows/rank_jobs.h"
#include "diagnose/thresholds.h"

#define OTHERS_MAX 32

enum pace pace_at(const struct step_account *a, int64_t ns)
{
	size_t at = LOWER_BOUND(i, a->bar_count, a->bars[i].start.ns <= ns);
	const struct account_bar *b = at ? &a->bars[at - 1] : NULL;

	if (!b || ns >= b->start.ns + (int64_t)b->dur_ns)
		return PACE_MIXED;
	if (b->slow_steps * 2 >= b->steps)
		return PACE_SLOW;
	return b->slow_steps ? PACE_MIXED : PACE_ORDINARY;
}

static uint64_t in_calls(const struct ledger_row *r)
{
	return r->ns[LEDGER_LAUNCH] + r->ns[LEDGER_GPU_WAIT] + r->ns[LEDGER_COPY] +
	       r->ns[LEDGER_GRAPH] + r->ns[LEDGER_COLLECTIVE];
}

struct others {
	struct gpu_other items[OTHERS_MAX];
	int used;
	struct rank_jobs jobs;
};

/* NULL: @r is no use of the GPU by another process, or there are too many. */
static struct gpu_other *other_get(const struct recording *rec, const struct step_account *a,
	struct others *others, const struct ledger_row *r)
{
	struct gpu_other *o;
	int k = 0;

	if (r->pid == a->pid || (!in_calls(r) && !r->copy_bytes))
		return NULL;
	while (k < others->used && others->items[k].pid != r->pid)
		k++;
	if (k == OTHERS_MAX)
		return NULL;
	o = &others->items[k];
	if (k == others->used) {
		o->pid = r->pid;
		o->is_rank = rank_jobs_same(rec, &others->jobs, a->pid, r->pid);
		memcpy(o->comm, r->comm, COMM_LEN);
		others->used++;
	}
	return o;
}

static double calls_more(const struct gpu_other *o)
{
	return o->calls[PACE_SLOW] - o->calls[PACE_ORDINARY];
}

static double rate_more(const struct gpu_other *o)
{
	return o->rate[PACE_SLOW] - o->rate[PACE_ORDINARY];
}

static bool uses_more(const struct gpu_other *o)
{
	return !o->is_rank &&
	       (calls_more(o) > THRESHOLD(FEW) || rate_more(o) > THRESHOLD(GPU_RATE_MORE));
}

static bool is_new(const struct gpu_other *o)
{
	return (calls_more(o) > THRESHOLD(FEW) &&
		       o->calls[PACE_SLOW] > THRESHOLD(FAR_MORE) * o->calls[PACE_ORDINARY]) ||
	       (rate_more(o) > THRESHOLD(GPU_RATE_MORE) &&
		       o->rate[PACE_SLOW] > THRESHOLD(FAR_MORE) * o->rate[PACE_ORDINARY]);
}

static void add(const struct gpu_other *o, struct gpu_others *ret)
{
	int at = MIN(ret->count, GPU_OTHERS_NAMED);

	ret->count++;
	while (at && calls_more(&ret->named[at - 1]) < calls_more(o)) {
		if (at < GPU_OTHERS_NAMED)
			ret->named[at] = ret->named[at - 1];
		at--;
	}
	if (at < GPU_OTHERS_NAMED)
		ret->named[at] = *o;
}

/* Of the steps of @a by their pace, or with @is_whole of all of them as if they were slow; @passed is how long they took. */
static void find_others(const struct recording *rec, const struct step_account *a, bool is_whole,
	const double passed[2], struct gpu_others *ret)
{
	struct others others = {0};

	rank_jobs_find(rec, &others.jobs);
	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *r = &rec->ledger[i];
		/* times of a stranger's recording may be beyond all bounds */
		int64_t at = (int64_t)((uint64_t)r->start.ns + r->dur_ns / 2);
		enum pace pace = !is_whole                              ? pace_at(a, at)
				 : at < a->first.ns || at >= a->last.ns ? PACE_MIXED
									: PACE_SLOW;
		struct gpu_other *o;

		o = pace == PACE_MIXED ? NULL : other_get(rec, a, &others, r);
		if (!o)
			continue;
		o->calls[pace] += (double)in_calls(r) / passed[pace];
		o->rate[pace] += (double)r->copy_bytes / passed[pace] * (double)NS_PER_S;
	}
	for (int k = 0; k < others.used; k++) {
		struct gpu_other *o = &others.items[k];

		if (!uses_more(o))
			continue;
		o->relation = gpu_relation_of(rec, a->pid, o->pid);
		if (o->relation != GPU_RELATION_OTHER)
			add(o, ret);
	}
}

enum gpu_relation gpu_others_relation(const struct gpu_others *o)
{
	enum gpu_relation surest = GPU_RELATION_UNKNOWN;

	for (int i = 0; i < MIN(o->count, GPU_OTHERS_NAMED); i++)
		surest = MAX(surest, o->named[i].relation);
	return surest;
}

void gpu_others_find(
	const struct recording *rec, const struct step_account *a, struct gpu_others *ret)
{
	double passed[2] = {0};

	*ret = (struct gpu_others){0};
	for (size_t i = 0; i < a->bar_count; i++) {
		enum pace pace = pace_at(a, a->bars[i].start.ns);

		if (pace != PACE_MIXED)
			passed[pace] += (double)a->bars[i].dur_ns;
	}
	if (passed[PACE_ORDINARY] > 0 && passed[PACE_SLOW] > 0)
		find_others(rec, a, false, passed, ret);
	ret->is_new = ret->count && is_new(&ret->named[0]);
}

/* Whether readings say that one process alone has the GPU; they need not tell. */
static bool is_alone(const struct recording *rec, const struct step_account *a)
{
	size_t alone = 0, beside = 0;

	for (size_t i = 0; i < rec->gpu_count; i++) {
		const struct gpu_sample *g = &rec->gpus[i];

		if (g->time.ns < a->first.ns || g->time.ns >= a->last.ns)
			continue;
		alone += g->processes == 1;
		beside += g->processes > 1;
	}
	return alone > beside;
}

void gpu_others_all(
	const struct recording *rec, const struct step_account *a, struct gpu_others *ret)
{
	const double passed[2] = {[PACE_SLOW] = (double)(a->last.ns - a->first.ns)};

	*ret = (struct gpu_others){0};
	if (passed[PACE_SLOW] > 0 && !is_alone(rec, a))
		find_others(rec, a, true, passed, ret);
}
