/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/gpu_other.h"

#include <string.h>

#include "base/macros.h"
#include "base/search.h"

#define OTHERS_MAX 32
#define CALLS_MORE 0.1 /* of the time that passed */
#define RATE_MORE  3e9 /* bytes/s: a quarter of what PCIe 3 can do */
#define NEW_PARTS  4   /* it did so much less before */

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

static struct gpu_other *other_get(struct gpu_other *others, int *used, const struct ledger_row *r)
{
	int k = 0;

	while (k < *used && others[k].pid != r->pid)
		k++;
	if (k == OTHERS_MAX)
		return NULL;
	if (k == *used) {
		others[k].pid = r->pid;
		memcpy(others[k].comm, r->comm, COMM_LEN);
		(*used)++;
	}
	return &others[k];
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
	return calls_more(o) > CALLS_MORE || rate_more(o) > RATE_MORE;
}

static bool is_new(const struct gpu_other *o)
{
	return (calls_more(o) > CALLS_MORE &&
		       o->calls[PACE_SLOW] > NEW_PARTS * o->calls[PACE_ORDINARY]) ||
	       (rate_more(o) > RATE_MORE &&
		       o->rate[PACE_SLOW] > NEW_PARTS * o->rate[PACE_ORDINARY]);
}

static void add(const struct gpu_other *o, struct gpu_others *ret)
{
	int at = MIN(ret->count, GPU_OTHERS_NAMED);

	ret->count++;
	ret->rate += o->rate[PACE_SLOW];
	while (at && calls_more(&ret->named[at - 1]) < calls_more(o)) {
		if (at < GPU_OTHERS_NAMED)
			ret->named[at] = ret->named[at - 1];
		at--;
	}
	if (at < GPU_OTHERS_NAMED)
		ret->named[at] = *o;
}

void gpu_others_find(
	const struct recording *rec, const struct step_account *a, struct gpu_others *ret)
{
	struct gpu_other others[OTHERS_MAX] = {0};
	double passed[2] = {0};
	int used = 0;

	*ret = (struct gpu_others){0};
	for (size_t i = 0; i < a->bar_count; i++) {
		enum pace pace = pace_at(a, a->bars[i].start.ns);

		if (pace != PACE_MIXED)
			passed[pace] += (double)a->bars[i].dur_ns;
	}
	if (!(passed[PACE_ORDINARY] > 0 && passed[PACE_SLOW] > 0))
		return;
	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *r = &rec->ledger[i];
		enum pace pace = pace_at(a, r->start.ns + (int64_t)(r->dur_ns / 2));
		struct gpu_other *o;

		if (r->pid == a->pid || pace == PACE_MIXED || (!in_calls(r) && !r->copy_bytes))
			continue;
		o = other_get(others, &used, r);
		if (!o)
			continue;
		o->calls[pace] += (double)in_calls(r) / passed[pace];
		o->rate[pace] += (double)r->copy_bytes / passed[pace] * (double)NS_PER_S;
	}
	for (int k = 0; k < used; k++)
		if (uses_more(&others[k]))
			add(&others[k], ret);
	ret->is_new = ret->count && is_new(&ret->named[0]);
}
