/* SPDX-License-Identifier: Apache-2.0 */
/* step_counter.c - see step_counter.h. Bars of one look have other edges than those of the next: of a
 * bar that was counted in part, the rest is counted by its share of the bar's time. */
#include "diagnose/live/step_counter.h"

#include <string.h>

#include "base/macros.h"

static void forget_silent(struct step_counter *c, int64_t before_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++)
		if (c->items[i].until.ns >= before_ns)
			c->items[n++] = c->items[i];
	c->count = n;
}

static struct step_count *find(struct step_counter *c, const struct step_account *a)
{
	size_t i = 0;

	while (i < c->count && c->items[i].pid != a->pid)
		i++;
	if (i == STEP_COUNTER_MAX) {
		c->left_out++;
		return NULL;
	}
	if (i == c->count)
		c->items[c->count++] =
			(struct step_count){.pid = a->pid, .since = a->first, .until = a->first};
	if (!c->items[i].comm[0])
		memcpy(c->items[i].comm, a->comm, COMM_LEN);
	return &c->items[i];
}

static void add_bar(struct step_count *s, const struct account_bar *bar)
{
	int64_t end = bar->start.ns + (int64_t)bar->dur_ns, from = MAX(bar->start.ns, s->until.ns);
	double share;

	if (end <= from)
		return;
	share = (double)(end - from) / (double)bar->dur_ns;
	s->steps += share * bar->steps;
	s->slow_steps += share * bar->slow_steps;
	for (int i = 0; i < ACCOUNT_LINES; i++)
		s->ns[i] += share * (double)bar->ns[i];
	s->until.ns = end;
}

void step_counter_update(
	struct step_counter *c, const struct step_report *r, wall_time now, int64_t forget_ns)
{
	int64_t settled = now.ns - STEP_COUNTER_SETTLE_NS;

	forget_silent(c, now.ns - forget_ns);
	for (size_t i = 0; i < r->count; i++) {
		const struct step_account *a = &r->items[i];
		struct step_count *s = find(c, a);

		for (size_t k = 0; s && k < a->bar_count; k++)
			if (a->bars[k].start.ns + (int64_t)a->bars[k].dur_ns <= settled)
				add_bar(s, &a->bars[k]);
	}
}
