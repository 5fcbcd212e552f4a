/* SPDX-License-Identifier: Apache-2.0 */
/* coverage_beside.c - probes of launches that come and go, and those of files that were given back, by a few threads
 * beside: the kernel waits for each. */
#include <errno.h>

#include "record/attach/coverage_private.h"
#include "base/log.h"

#define THREADS 4 /* that attach and detach: they wait, mostly */

struct retired { /* probes that are removed in the background */
	struct pool_job job;
	struct uprobe *uprobe;
};

void coverage_turned(struct probed *p)
{
	struct turn *t = TAKE(p->turn);

	p->launches = t->uprobe;
	p->has_no_launches = t->error < 0;
	free(t);
}

struct pool *coverage_pool(struct coverage *c)
{
	const struct pool_settings s = {
		.threads = THREADS, .queue_max = 8 * COVERAGE_MAX, .leaves_room = true};

	if (!c->pool && !atomic_load(&c->is_stopping) && pool_new(&s, &c->pool) < 0)
		log_warning("cannot start threads for probes: those of launches stay as they are");
	return c->pool;
}

static bool turn_run(void *arg, bool brief)
{
	struct turn *t = arg;
	struct coverage *c = t->coverage;

	if (atomic_load(&c->is_stopping))
		t->error = -ECANCELED;
	else if (t->on)
		t->error = coverage_attach(c, t->at, c->probed[t->at].points,
			c->probed[t->at].point_count, &t->uprobe, NULL);
	else
		uprobe_detach_all((struct uprobe *[]){TAKE(t->uprobe)}, 1);
	atomic_store(&t->is_done, true);
	return true;
}

static void turn_begin(struct coverage *c, size_t at, bool on)
{
	struct probed *p = &c->probed[at];
	struct turn *t = calloc(1, sizeof(*t));

	if (!t)
		return; /* the next look tries again */
	*t = (struct turn){.job = {.fn = turn_run, .arg = t, .asker = p->owner},
		.coverage = c,
		.at = at,
		.on = on,
		.uprobe = TAKE(p->launches)};
	if (coverage_pool(c) && pool_push(c->pool, &t->job) == 0) {
		p->turn = t;
		return;
	}
	p->launches = t->uprobe;
	free(t);
}

void coverage_launches(struct coverage *c, bool on)
{
	c->launches_off = !on;
}

bool coverage_turn(struct coverage *c)
{
	bool on = !c->launches_off, is_settled = true;

	for (size_t i = 0; i < COVERAGE_MAX; i++) {
		struct probed *p = &c->probed[i];

		if (p->arrival)
			continue;
		if (p->turn && !atomic_load(&p->turn->is_done)) {
			is_settled = false;
			continue;
		}
		if (p->turn) {
			coverage_turned(p);
			if (p->has_no_launches)
				log_warning(
					"launches in %s are not seen any more: its probes could "
					"not be attached again",
					c->files[i].library.path);
		}
		if (!p->used || !p->point_count || p->has_no_launches ||
			on == (p->launches != NULL))
			continue;
		turn_begin(c, i, on);
		is_settled = false;
	}
	return is_settled;
}

static bool retired_run(void *arg, bool brief)
{
	struct retired *r = arg;

	uprobe_detach_all(&r->uprobe, 1);
	free(r);
	return true;
}

void coverage_retire(struct coverage *c, struct uprobe **list, size_t count)
{
	bool here = !c->probe || probe_method(c->probe) == PROBE_PERF;

	for (size_t i = 0; i < count; i++) {
		struct retired *r = here ? NULL : calloc(1, sizeof(*r));

		if (r) {
			*r = (struct retired){
				.job = {.fn = retired_run, .arg = r, .asker = UINT64_MAX},
				.uprobe = list[i]};
			if (coverage_pool(c) && pool_push(c->pool, &r->job) == 0)
				continue;
			free(r);
		}
		uprobe_detach_all(&list[i], 1);
	}
}
