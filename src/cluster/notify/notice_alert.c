/* SPDX-License-Identifier: Apache-2.0 */
/* notice_alert.c - see notice_alert.h. */
#include "cluster/notify/notice_alert.h"

#include <stdio.h>
#include <string.h>

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

static enum alert_kind kind_of(enum fleet_notice_kind k)
{
	switch (k) {
	case FLEET_NOTICE_BEGAN: return ALERT_BEGAN;
	case FLEET_NOTICE_CHANGED: return ALERT_CHANGED;
	case FLEET_NOTICE_ENDED: break;
	}
	return ALERT_ENDED;
}

void notice_alert(const struct fleet_notice *n, struct alert_notice *ret)
{
	const struct fleet_episode *e = &n->episode;
	const struct fleet_cost *c = &e->cost;
	struct alert_matter *m = &ret->matter;

	*ret = (struct alert_notice){.kind = kind_of(n->kind),
		.matter = {.id = e->id,
			.name = "IngeroStraggler",
			.class = "gpu_straggler",
			.problem = fleet_problem_id(e->problem),
			.rank = e->rank,
			.stage = e->stage,
			.is_job = true,
			.share = e->share,
			.confidence = e->confidence,
			.lag_ns = e->lag_ns,
			.period = e->period,
			.late = e->late,
			.seen = e->seen,
			.waiting = e->waiting,
			.waited_ns = e->waited_ns,
			.score = e->score,
			.threshold = e->threshold,
			.since_ns = e->since_ns,
			.until_ns = e->until_ns,
			.cost = {.priced = c->priced,
				.per_hour = c->per_hour,
				.total = c->total,
				.gpu_seconds = c->gpu_seconds,
				.watt_hours = c->watt_hours}}};
	COPY(m->event, e->event);
	COPY(m->cluster, e->cluster);
	COPY(m->node, e->node);
	COPY(m->signal, e->signal);
	COPY(m->text, e->text);
	COPY(m->cause, e->cause);
	COPY(m->fix, e->fix);
	COPY(m->place, e->place);
	for (const struct fleet_field *f = fleet_fields; f->name; f++) {
		struct fleet_value v;

		if (f->form != FLEET_FORM_OP)
			continue;
		fleet_field_get(f, e, &v);
		COPY(m->op, v.text);
	}
	COPY(m->cost.currency, c->currency);
	COPY(m->cost.symbol, c->symbol);
	COPY(m->cost.unpriced, c->unpriced);
}
