/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_episode.c - episodes of nodes: from the first reason to call a node a straggler until none is
 * left. Beginnings and ends wait in a queue, each with a copy of the node, which may be forgotten by
 * the time that it is read. */
#include <math.h>

#include "cluster/detect/nodes_table.h"

/* A tick makes at most two of a node; a reader that falls behind loses the newest, counted. */
static size_t changes_max(const struct nodes *n)
{
	return 4 * (size_t)n->settings.nodes_max;
}

static void change_add(struct nodes *n, const struct node *d, bool began)
{
	struct change *c = n->changes_count < changes_max(n) ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		n->changes_lost++;
		return;
	}
	c->last = d->last;
	c->told.began = began;
	node_show(d, &c->told.node);
	c->told.node.last = &c->last;
	TAILQ_INSERT_TAIL(&n->changes, c, link);
	n->changes_count++;
}

bool nodes_change(struct nodes *n, struct nodes_change *ret)
{
	struct change *c = TAILQ_FIRST(&n->changes);

	if (!c)
		return false;
	TAILQ_REMOVE(&n->changes, c, link);
	n->changes_count--;
	free(n->shown);
	n->shown = c;
	*ret = c->told;
	return true;
}

uint64_t nodes_changes_lost(const struct nodes *n)
{
	return n->changes_lost;
}

void node_begin(struct nodes *n, struct node *d, enum nodes_reason reason, int64_t now_ns)
{
	unsigned before = d->reasons;

	d->reasons |= 1u << reason;
	if (before)
		return;
	d->reason = reason;
	d->since_ns = now_ns;
	d->episode = ++n->episodes;
	change_add(n, d, true);
}

void node_end(struct nodes *n, struct node *d, enum nodes_reason reason)
{
	unsigned before = d->reasons;

	d->reasons &= ~(1u << reason);
	if (!d->reasons && before)
		change_add(n, d, false);
	else if (d->reasons && d->reason == reason)
		d->reason = (enum nodes_reason)__builtin_ctz(d->reasons);
}

void node_end_all(struct nodes *n, struct node *d)
{
	if (d->reasons) {
		d->reasons = 0;
		change_add(n, d, false);
	}
	memset(d->signals, 0, sizeof(d->signals));
	memset(d->traces, 0, sizeof(d->traces));
}

/* The part of the score that lags most behind what is usual in the cohort: like is compared with like. */
static const char *dominant_part(const struct node *d)
{
	static const char *const names[] = {"throughput", "compute", "memory", "cpu"};
	const double parts[] = {d->last.throughput, d->last.compute, d->last.memory, d->last.cpu};
	const double *usual = cohort_of_score(d)->usual;
	const char *dominant = "unknown";
	double worst = 0.05; /* less of a drop explains nothing */

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		double drop = usual[i] > 0 ? (usual[i] - parts[i]) / usual[i] : 0;

		if (drop > worst) {
			worst = drop;
			dominant = names[i];
		}
	}
	return dominant;
}

/* The signal that is furthest off, by its own limit. False: none is. */
static bool worst_signal(const struct node *d, enum push_signal *ret)
{
	const struct measure *all = d->in[COHORT_PEERS]->measures;
	unsigned flagged = d->signals[0] | d->signals[1];
	double worst = -INFINITY;

	for (enum push_signal s = 0; s < PUSH_SIGNAL_COUNT; s++) {
		double by = all[s].limit > 0 ? d->traces[s].deviation / all[s].limit : 0;

		if (!(flagged & 1u << s) || by <= worst)
			continue;
		worst = by;
		*ret = s;
	}
	return flagged;
}

void node_show(const struct node *d, struct node_view *ret)
{
	const struct measure *m;

	*ret = (struct node_view){.last = &d->last,
		.first_ns = d->first_ns,
		.last_ns = d->last_ns,
		.straggler = d->reasons,
		.reason = d->reason,
		.since_ns = d->since_ns,
		.episode = d->episode,
		.threshold = cohort_of_score(d)->threshold.value,
		.more_launches = node_more_launches(d)};
	if (worst_signal(d, &ret->signal)) {
		m = &d->in[COHORT_PEERS]->measures[ret->signal];
		ret->value = d->last.signals[ret->signal];
		ret->peer_median = m->spread.median;
		ret->robust_z = m->spread.sigma > 0
					? fabs(ret->value - ret->peer_median) / m->spread.sigma
					: 0;
		snprintf(ret->dominant, sizeof(ret->dominant), "%s",
			push_signal_metric(ret->signal) + strlen("ingero.node."));
	} else if (d->reasons) {
		snprintf(ret->dominant, sizeof(ret->dominant), "%s", dominant_part(d));
	}
}
