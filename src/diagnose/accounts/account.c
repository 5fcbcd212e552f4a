/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - see account.h: units found, each accounted for along its path, once. */
#include "diagnose/accounts/account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/accounts/path.h"
#include "base/macros.h"

static int account_units(const struct timeline *t, struct process_account *a)
{
	struct path path = {.timeline = t,
		.pid = a->pid,
		.tid = a->tid,
		.has_loader = boundaries_have(t, a->pid, MARK_LOADER),
		.polls = a->origin == STEP_BY_POLL};
	_cleanup_(tally_done) struct tally one = {0};

	a->part_end = calloc(a->unit_count, sizeof(*a->part_end));
	if (!a->part_end)
		return -ENOMEM;
	for (size_t i = 0; i < a->unit_count; i++) {
		tally_clear(&one);
		path.tid = a->units[i].tid ? a->units[i].tid : a->tid;
		if (path_account(&path, a->units[i].start_ns, a->units[i].end_ns, &one) < 0 ||
			account_end_unit(a, i, &one) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Returns 1 if the process has an account, 0 if not, or -ENOMEM. */
static int account_process(const struct timeline *t, const struct step_table *waits, uint32_t pid,
	struct process_account *ret)
{
	_cleanup_(boundaries_done) struct step_spans spans = {0};
	int r = boundaries_find(t, waits, pid, &spans);

	if (r < 0 || spans.count < BOUNDARY_STEPS_MIN)
		return r;
	*ret = (struct process_account){.pid = spans.pid,
		.tid = spans.tid,
		.origin = spans.origin,
		.confidence = spans.confidence,
		.is_derived = t->is_derived,
		.units = TAKE(spans.items),
		.unit_count = spans.count};
	memcpy(ret->comm, spans.comm, COMM_LEN);
	r = account_units(t, ret);
	idmap_done(&ret->key_numbers);
	return r < 0 ? r : 1;
}

int account_make(const struct recording *rec, struct account_set *ret)
{
	_cleanup_(timeline_done) struct timeline t = {0};
	_cleanup_(steps_done) struct step_table waits = {0};
	int r;

	*ret = (struct account_set){0};
	r = timeline_make(rec, &t);
	ret->overlapping = t.overlapping;
	ret->unfit = t.unfit;
	if (r == 0)
		r = steps_find(rec, &waits);
	if (r < 0)
		return r;
	ret->items = calloc(ACCOUNTS_MAX, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < t.gpu_pid_count && ret->count < ACCOUNTS_MAX; i++) {
		r = account_process(&t, &waits, t.gpu_pids[i], &ret->items[ret->count]);
		if (r < 0) {
			process_account_done(&ret->items[ret->count]);
			return r;
		}
		ret->count += (size_t)r;
	}
	return 0;
}

void process_account_done(struct process_account *a)
{
	free(a->units);
	free(a->part_end);
	free(a->parts);
	free(a->keys);
	idmap_done(&a->key_numbers);
	*a = (struct process_account){0};
}

void account_set_done(struct account_set *s)
{
	for (size_t i = 0; i < s->count; i++)
		process_account_done(&s->items[i]);
	free(s->items);
	*s = (struct account_set){0};
}
