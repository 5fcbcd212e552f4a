/* SPDX-License-Identifier: Apache-2.0 */
/* incident_tracker.c - see incident_tracker.h.
 *
 * Two findings are one case if problem, a process, op and what time was lost to are the same and their times overlap or
 * leave a pause of at most INCIDENT_TRACKER_QUIET_NS: a stretch whose beginning has left the memory, or
 * that was joined to a later one, stays one case. If several cases fit, the one with most time in
 * common is meant, then the older. */
#include "diagnose/live/incident_tracker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/macros.h"

const char *incident_change_name(enum incident_change c)
{
	static const char *const names[] = {"new", "grown", "resolved"};

	return names[c];
}

static bool has_pid(const struct incident *i, uint32_t pid)
{
	for (int k = 0; k < i->pid_count; k++)
		if (i->pids[k] == pid)
			return true;
	return i->pid == pid;
}

/* Of several processes the first one may have left the memory. */
static bool share_process(const struct incident *a, const struct incident *b)
{
	for (int k = 0; k < a->pid_count; k++)
		if (has_pid(b, a->pids[k]))
			return true;
	return has_pid(b, a->pid);
}

/* What time was lost to, which ids of such incidents end with; "" of others, whose ids end with a time. */
static const char *lost_to(const struct incident *i)
{
	const char *end = strrchr(i->id, '-');

	return end && end[1] >= 'a' && end[1] <= 'z' ? end + 1 : "";
}

static bool is_same_kind(const struct incident *a, const struct incident *b)
{
	return a->problem == b->problem && share_process(a, b) && a->source == b->source &&
	       a->op == b->op && !strcmp(lost_to(a), lost_to(b));
}

static bool share_culprit(const struct incident *a, const struct incident *b)
{
	const struct incident_cause *x = a->causes, *y = b->causes;

	return a->cause_count && b->cause_count && x->culprit[0] && !strcmp(x->culprit, y->culprit);
}

/* Two that hold each other up are told as one, of either. */
static bool is_blamed(const struct incident *said, const struct incident *by)
{
	return said->problem == by->problem && by->cause_count && said->pid &&
	       by->causes[0].culprit_pid == said->pid;
}

bool incident_is_told(const struct incident *said, const struct incident *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_blamed(said, &list[i]))
			return true;
		else if (share_process(said, &list[i]) &&
			 (said->problem == list[i].problem || share_culprit(said, &list[i]) ||
				 (lost_to(said)[0] && !strcmp(lost_to(said), lost_to(&list[i]))) ||
				 (said->place[0] && !strcmp(said->place, list[i].place))))
			return true;
	return false;
}

/* Time in common, plus one; less than one: a pause of that length; times of any value. */
static double overlap_ns(const struct incident *a, const struct incident *b)
{
	return (double)MIN(a->last.ns, b->last.ns) - (double)MAX(a->first.ns, b->first.ns) + 1;
}

static struct incident_entry *entry_find(const struct incident_tracker *b, const struct incident *i)
{
	struct incident_entry *best = NULL;
	double most = 0;

	for (size_t k = 0; k < b->count; k++) {
		struct incident_entry *e = &b->entries[k];
		double common;

		if (!is_same_kind(&e->incident, i))
			continue;
		common = overlap_ns(&e->incident, i);
		if (common < -(double)INCIDENT_TRACKER_QUIET_NS || (best && common <= most))
			continue;
		best = e;
		most = common;
	}
	return best;
}

static void entry_remove(struct incident_tracker *b, size_t k)
{
	memmove(&b->entries[k], &b->entries[k + 1], (b->count - k - 1) * sizeof(*b->entries));
	b->count--;
}

/* Makes room for one more. 1, 0 if all INCIDENT_TRACKER_MAX are open, or -ENOMEM. */
static int make_room(struct incident_tracker *b)
{
	if (b->count == INCIDENT_TRACKER_MAX) {
		size_t oldest = INCIDENT_TRACKER_MAX;

		for (size_t k = 0; k < b->count; k++)
			if (b->entries[k].incident.resolved.ns &&
				(oldest == INCIDENT_TRACKER_MAX ||
					b->entries[k].incident.resolved.ns <
						b->entries[oldest].incident.resolved.ns))
				oldest = k;
		if (oldest == INCIDENT_TRACKER_MAX)
			return 0;
		entry_remove(b, oldest);
	}
	return ARRAY_RESERVE(b->entries, b->room, b->count + 1, INCIDENT_TRACKER_MAX) < 0 ? -ENOMEM
											  : 1;
}

/* @e becomes what @i says, but never less than it was. Returns whether there is something new. */
static bool entry_grow(struct incident_entry *e, const struct incident *i)
{
	struct incident was = e->incident;
	bool is_worth_reporting = i->last.ns > was.last.ns || i->severity > was.severity;

	e->was_found = true;
	if (!is_worth_reporting)
		return false; /* a look that sees less of it, because it has left the memory */
	e->incident = *i;
	memcpy(e->incident.id, was.id, sizeof(was.id));
	e->incident.first.ns = MIN(was.first.ns, i->first.ns);
	e->incident.last.ns = MAX(was.last.ns, i->last.ns);
	e->incident.severity = MAX(was.severity, i->severity);
	e->incident.calls = MAX(was.calls, i->calls);
	e->incident.slow_calls = MAX(was.slow_calls, i->slow_calls);
	e->incident.count = MAX(was.count, i->count);
	e->incident.excess_ns = MAX(was.excess_ns, i->excess_ns);
	return true;
}

static int check_at(struct incident_tracker *b, const struct incident *i, wall_time now,
	incident_tracker_sink *sink, void *arg)
{
	struct incident_entry *e = entry_find(b, i);
	int r;

	if (e) {
		if (entry_grow(e, i)) { /* also what was taken to be over */
			e->incident.resolved.ns = 0;
			sink(arg, &e->incident, e->detected, INCIDENT_GROWN);
		}
		return 0;
	}
	if (i->severity == SEVERITY_LOW)
		return 0;
	r = make_room(b);
	if (r < 0)
		return r;
	if (r == 0) {
		b->left_out++;
		return 0;
	}
	e = &b->entries[b->count++];
	*e = (struct incident_entry){.incident = *i, .detected = now, .was_found = true};
	e->incident.resolved.ns = 0;
	sink(arg, &e->incident, now, INCIDENT_NEW);
	return 0;
}

int incident_tracker_update(struct incident_tracker *b, const struct incident *found, size_t count,
	wall_time now, wall_time forget_before, incident_tracker_sink *sink, void *arg)
{
	int r = 0;

	for (size_t k = 0; k < b->count; k++)
		b->entries[k].was_found = false;
	for (size_t k = 0; r == 0 && k < count; k++)
		r = check_at(b, &found[k], now, sink, arg);
	for (size_t k = b->count; k-- > 0;) {
		struct incident_entry *e = &b->entries[k];
		bool is_quiet = !e->was_found || (double)now.ns - (double)e->incident.last.ns >
							 (double)INCIDENT_TRACKER_QUIET_NS;

		e->quiet_looks = is_quiet ? e->quiet_looks + 1 : 0;
		if (!e->incident.resolved.ns && e->quiet_looks >= INCIDENT_TRACKER_UPDATES) {
			e->incident.resolved = now;
			sink(arg, &e->incident, e->detected, INCIDENT_RESOLVED);
		}
		if (e->incident.resolved.ns && e->incident.last.ns < forget_before.ns)
			entry_remove(b, k);
	}
	return r;
}

void incident_tracker_done(struct incident_tracker *b)
{
	free(b->entries);
	*b = (struct incident_tracker){0};
}
