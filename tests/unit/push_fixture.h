/* SPDX-License-Identifier: Apache-2.0 */
/* push_fixture.h - a handler that keeps what it is given. */
#pragma once

#include "push/push_wire.h"

struct seen {
	size_t healths, stragglers, batches, reports;
	struct push_health health[4];
	struct push_who who;
	struct push_straggler straggler;
	struct push_calls calls; /* items are gone */
	struct push_call first;
	struct push_report report;
	int answer;
};

static int take_health(void *arg, const struct push_health *h)
{
	struct seen *s = arg;

	s->health[s->healths++ % 4] = *h;
	return s->answer;
}

static int take_straggler(
	void *arg, const struct push_who *who, const struct push_straggler *straggler)
{
	struct seen *s = arg;

	s->stragglers++;
	s->who = *who;
	s->straggler = *straggler;
	return s->answer;
}

static int take_calls(void *arg, const struct push_calls *c)
{
	struct seen *s = arg;

	s->batches++;
	s->calls = *c;
	s->first = c->count ? c->items[0] : (struct push_call){0};
	return s->answer;
}

static int take_report(void *arg, const struct push_report *r)
{
	struct seen *s = arg;

	s->reports++;
	s->report = *r;
	return s->answer;
}

static struct push_handler handler(struct seen *s)
{
	return (struct push_handler){.arg = s,
		.health = take_health,
		.straggler = take_straggler,
		.calls = take_calls,
		.report = take_report};
}
