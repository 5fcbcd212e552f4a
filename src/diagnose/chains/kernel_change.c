/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/kernel_change.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "wire/op_kind.h"
#include "diagnose/thresholds.h"

#define NAMES_MAX 16384
#define SOON_NS   ((int64_t)(6 * NS_PER_S)) /* counts are read every five seconds, or oftener */

static uint64_t template_of(const struct kernel_use *k)
{
	char name[KERNEL_SHORT_MAX];

	kernel_name_short(k->name, name);
	return hash_bytes(name, strlen(name));
}

/* The functions that rows show to be launched before steps were slow: counts are read every few seconds, so that
 * they show a kernel later than it came. */
static int find_launched(
	const struct recording *rec, const struct step_account *a, struct idmap *launched)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		int r = 0;

		if (e->pid == a->pid && e->start.ns < a->slow_first.ns && e->arg0 &&
			op_kind_is_launch(e->source, e->op))
			r = idmap_put(launched, e->arg0, (void *)e);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_of_before(
	const struct step_account *a, const struct kernel_use *k, const struct idmap *launched)
{
	return k->first.ns <= a->slow_first.ns || idmap_get(launched, k->function);
}

static double in_step(const struct step_account *a, const struct kernel_use *k)
{
	return (double)k->launches / (double)MAX(a->slow_steps, 1u);
}

/* Whether it came with the slow steps and is in every other of them. */
static bool has_come(const struct step_account *a, const struct kernel_use *k)
{
	return k->pid == a->pid && k->name && k->first.ns > a->slow_first.ns &&
	       k->first.ns <= a->slow_first.ns + SOON_NS &&
	       in_step(a, k) >= THRESHOLD(ADDED_IN_STEP) &&
	       in_step(a, k) * a->ordinary_steps >= THRESHOLD(ADDED_SURE);
}

static void name_it(
	const struct step_account *a, const struct kernel_use *k, struct kernel_change *ret)
{
	int at = ret->added_count;

	while (at && ret->added[at - 1].in_step < in_step(a, k)) {
		if (at < KERNELS_NAMED)
			ret->added[at] = ret->added[at - 1];
		at--;
	}
	if (at == KERNELS_NAMED)
		return;
	ret->added[at] = (struct kernel_share){.name = k->name, .in_step = in_step(a, k)};
	ret->added_count = MIN(ret->added_count + 1, KERNELS_NAMED);
}

struct products { /* launches of matrix products, by type */
	uint64_t before[KERNEL_TYPE_COUNT], come[KERNEL_TYPE_COUNT];
};

static enum kernel_type most_of(const uint64_t launches[KERNEL_TYPE_COUNT])
{
	enum kernel_type most = KERNEL_OF_UNKNOWN;

	for (int t = 0; t < KERNEL_OF_UNKNOWN; t++)
		if (launches[t] && (most == KERNEL_OF_UNKNOWN || launches[t] > launches[most]))
			most = (enum kernel_type)t;
	return most;
}

/* A few of the type that has come may have been there before: no model is of one type throughout. */
static void find_types(const struct products *p, struct kernel_change *ret)
{
	enum kernel_type from = most_of(p->before), to = most_of(p->come);

	if (from == KERNEL_OF_UNKNOWN || to == KERNEL_OF_UNKNOWN ||
		(double)p->before[to] > THRESHOLD(FEW) * (double)p->before[from])
		return;
	ret->from = from;
	ret->to = to;
}

static bool is_added(
	const struct kernel_use *k, const struct idmap *before, const struct kernel_change *found)
{
	if (kernel_is_matrix(k->name))
		return found->to != KERNEL_OF_UNKNOWN && kernel_type_of(k->name) == found->to;
	return !idmap_get(before, template_of(k));
}

int kernel_change_find(
	const struct recording *rec, const struct step_account *a, struct kernel_change *ret)
{
	_cleanup_(idmap_done) struct idmap before = IDMAP_INIT(NAMES_MAX);
	_cleanup_(idmap_done) struct idmap launched = IDMAP_INIT(NAMES_MAX);
	struct products products = {0};
	int r;

	*ret = (struct kernel_change){.from = KERNEL_OF_UNKNOWN, .to = KERNEL_OF_UNKNOWN};
	if (!rec->kernel_count || !a->slow_steps)
		return 0;
	r = find_launched(rec, a, &launched);
	for (size_t i = 0; r >= 0 && i < rec->kernel_count; i++) {
		const struct kernel_use *k = &rec->kernels[i];
		bool is_old = k->pid == a->pid && is_of_before(a, k, &launched);

		if (is_old && !k->name) /* one that came may be of its template */
			return 0;
		if (is_old)
			r = idmap_put(&before, template_of(k), (void *)k);
		if (kernel_is_matrix(k->name) && (is_old || has_come(a, k)))
			*(is_old ? &products.before[kernel_type_of(k->name)]
				 : &products.come[kernel_type_of(k->name)]) += k->launches;
	}
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	find_types(&products, ret);
	for (size_t i = 0; i < rec->kernel_count; i++)
		if (has_come(a, &rec->kernels[i]) && is_added(&rec->kernels[i], &before, ret))
			name_it(a, &rec->kernels[i], ret);
	return 0;
}
