/* SPDX-License-Identifier: Apache-2.0 */
/* lead.c - from the table of causes to the one that names the incident.
 *
 * What one culprit took counts together, whatever it took it of: a process that filled the disk and
 * also had the CPU is one answer to "who?". The culprit with the most is named if it has at least
 * NAMED_SHARE of the excess, "nobody in particular" being one of them; the incident is told by the
 * layer in which it took most. If none has that much, the layer (HOST or IO) with the most time is
 * named if all of it together has NAMED_SHARE: preemption and run-queue delay are two faces of the
 * same contention. Otherwise nothing explains the incident.
 *
 * Another culprit that has NAMED_SHARE too is named beside it.
 *
 * Invariant: no culprit in the table has more than the one that is named. */
#include "diagnose/calls/lead.h"

#include <string.h>

#define NAMED_SHARE 0.25

static bool is_in_layer(enum cause c, const char *layer)
{
	return c != CAUSE_UNEXPLAINED && (!layer || !strcmp(cause_layer(c), layer));
}

static bool is_same_culprit(
	const struct incident *inc, const struct incident_cause *a, const struct incident_cause *b)
{
	if (!a->culprit_pid || !b->culprit_pid)
		return a->culprit_pid == b->culprit_pid && a->is_many == b->is_many;
	return !strcmp(a->culprit, b->culprit) && a->culprit_home == b->culprit_home &&
	       (a->culprit[0] || a->culprit_pid == b->culprit_pid) &&
	       (a->culprit_pid == inc->pid) == (b->culprit_pid == inc->pid);
}

/* Of the excess: what @culprit (NULL: everybody) took of @layer (NULL: of all). */
static double share_of(
	const struct incident *inc, const char *layer, const struct incident_cause *culprit)
{
	uint64_t ns = 0;

	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];

		if (is_in_layer(c->cause, layer) && (!culprit || is_same_culprit(inc, c, culprit)))
			ns += c->ns;
	}
	return inc->excess_ns ? (double)ns / (double)inc->excess_ns : 0;
}

static const struct incident_cause *unexplained_row(const struct incident *inc)
{
	static const struct incident_cause none = {.cause = CAUSE_UNEXPLAINED};

	for (int i = 0; i < inc->cause_count; i++)
		if (inc->causes[i].cause == CAUSE_UNEXPLAINED)
			return &inc->causes[i];
	return &none;
}

/* The first row (rows are in order of size) of the culprit with the most in @layer. NULL, of all
 * layers: there many are no culprit. NULL is also returned if there is no such row. */
static const struct incident_cause *largest_culprit(const struct incident *inc, const char *layer)
{
	const struct incident_cause *best = NULL;
	double most = -1;

	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];
		double share;

		if (!is_in_layer(c->cause, layer) || (!layer && c->is_many))
			continue;
		share = share_of(inc, layer, c);
		if (share > most) {
			best = c;
			most = share;
		}
	}
	return best;
}

/* Its largest row in the layer in which it took most. */
static const struct incident_cause *main_row(
	const struct incident *inc, const struct incident_cause *culprit)
{
	const struct incident_cause *best = culprit;
	double most = -1;

	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];
		double share;

		if (c->cause == CAUSE_UNEXPLAINED || !is_same_culprit(inc, c, culprit))
			continue;
		share = share_of(inc, cause_layer(c->cause), culprit);
		if (share > most) {
			best = c;
			most = share;
		}
	}
	return best;
}

/* The culprit with the most besides the lead, if that is enough to be named beside it. */
static void choose_second(const struct incident *inc, struct verdict *v)
{
	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];
		double share;

		if (c->cause == CAUSE_UNEXPLAINED || !c->culprit_pid ||
			is_same_culprit(inc, c, v->lead))
			continue;
		share = share_of(inc, NULL, c);
		if (share >= NAMED_SHARE && share > v->second_share) {
			v->second = c;
			v->second_share = share;
		}
	}
}

void lead_choose(const struct incident *inc, struct verdict *v)
{
	const struct incident_cause *culprit = largest_culprit(inc, NULL);
	double all = culprit ? share_of(inc, NULL, culprit) : 0;
	double host = share_of(inc, "HOST", NULL), io = share_of(inc, "IO", NULL);
	const char *layer;

	v->is_crowd = false;
	v->other_share = v->second_share = 0;
	v->second = NULL;
	if (all >= NAMED_SHARE) {
		v->lead = main_row(inc, culprit);
		layer = cause_layer(v->lead->cause);
	} else if (MAX(host, io) >= NAMED_SHARE) {
		layer = host >= io ? "HOST" : "IO";
		v->lead = largest_culprit(inc, layer);
		v->is_crowd = v->lead->culprit_pid || v->lead->is_many || culprit->culprit_pid;
	} else {
		v->lead = unexplained_row(inc);
		v->lead_share = v->layer_share = 1 - inc->explained;
		return;
	}
	v->lead_share = share_of(inc, layer, v->lead);
	v->layer_share = share_of(inc, layer, NULL);
	if (v->is_crowd || !v->lead->culprit_pid)
		return;
	v->other_share = all - v->lead_share;
	choose_second(inc, v);
}
