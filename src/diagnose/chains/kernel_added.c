/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/kernel_added.h"

#include <errno.h>
#include <string.h>

#include "diagnose/chains/kernel_sentence.h"
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

static bool is_added(
	const struct step_account *a, const struct kernel_use *k, const struct idmap *before)
{
	return k->pid == a->pid && k->name && k->first.ns > a->slow_first.ns &&
	       k->first.ns <= a->slow_first.ns + SOON_NS &&
	       in_step(a, k) >= THRESHOLD(ADDED_IN_STEP) &&
	       in_step(a, k) * a->ordinary_steps >= THRESHOLD(ADDED_SURE) &&
	       !kernel_is_matrix(k->name) && !idmap_get(before, template_of(k));
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

int kernel_added_find(
	const struct recording *rec, const struct step_account *a, struct kernel_change *ret)
{
	_cleanup_(idmap_done) struct idmap before = IDMAP_INIT(NAMES_MAX);
	_cleanup_(idmap_done) struct idmap launched = IDMAP_INIT(NAMES_MAX);
	int r = find_launched(rec, a, &launched);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < rec->kernel_count; i++) {
		const struct kernel_use *k = &rec->kernels[i];

		if (k->pid != a->pid || !is_of_before(a, k, &launched))
			continue;
		if (!k->name) /* one that came may be of its template */
			return 0;
		r = idmap_put(&before, template_of(k), (void *)k);
		if (r < 0)
			return r == -ENOMEM ? r : 0;
	}
	for (size_t i = 0; i < rec->kernel_count; i++)
		if (is_added(a, &rec->kernels[i], &before))
			name_it(a, &rec->kernels[i], ret);
	return 0;
}
