/* SPDX-License-Identifier: Apache-2.0 */
/* casebook.c - see casebook.h.
 *
 * Two findings are one case if problem, a process and op are the same and their times overlap or
 * leave a pause of at most CASEBOOK_QUIET_NS: a stretch whose beginning has left the memory, or
 * that was joined to a later one, stays one case. If several cases fit, the one with most time in
 * common is meant, then the older. */
#include "agent/correlate/casebook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/macros.h"

const char *case_change_name(enum case_change c)
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

static bool is_same_kind(const struct incident *a, const struct incident *b)
{
	return a->problem == b->problem && share_process(a, b) && a->source == b->source &&
	       a->op == b->op;
}

/* Time in common, plus one; less than one: a pause of that length; times of any value. */
static double overlap_ns(const struct incident *a, const struct incident *b)
{
	return (double)MIN(a->last.ns, b->last.ns) - (double)MAX(a->first.ns, b->first.ns) + 1;
}

static struct case_entry *entry_find(const struct casebook *b, const struct incident *i)
{
	struct case_entry *best = NULL;
	double most = 0;

	for (size_t k = 0; k < b->count; k++) {
		struct case_entry *e = &b->entries[k];
		double common;

		if (!is_same_kind(&e->incident, i))
			continue;
		common = overlap_ns(&e->incident, i);
		if (common < -(double)CASEBOOK_QUIET_NS || (best && common <= most))
			continue;
		best = e;
		most = common;
	}
	return best;
}

static void entry_remove(struct casebook *b, size_t k)
{
	memmove(&b->entries[k], &b->entries[k + 1], (b->count - k - 1) * sizeof(*b->entries));
	b->count--;
}

/* Makes room for one more. 1, 0 if all CASEBOOK_MAX are open, or -ENOMEM. */
static int make_room(struct casebook *b)
{
	if (b->count == CASEBOOK_MAX) {
		size_t oldest = CASEBOOK_MAX;

		for (size_t k = 0; k < b->count; k++)
			if (b->entries[k].incident.resolved.ns &&
				(oldest == CASEBOOK_MAX ||
					b->entries[k].incident.resolved.ns <
						b->entries[oldest].incident.resolved.ns))
				oldest = k;
		if (oldest == CASEBOOK_MAX)
			return 0;
		entry_remove(b, oldest);
	}
	return ARRAY_RESERVE(b->entries, b->room, b->count + 1, CASEBOOK_MAX) < 0 ? -ENOMEM : 1;
}

/* @e becomes what @i says, but never less than it was. Returns whether there is something new. */
static bool entry_grow(struct case_entry *e, const struct incident *i)
{
	struct incident was = e->incident;
	bool is_news = i->last.ns > was.last.ns || i->severity > was.severity;

	e->was_found = true;
	if (!is_news)
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

static int look_at(
	struct casebook *b, const struct incident *i, wall_time now, casebook_sink *sink, void *arg)
{
	struct case_entry *e = entry_find(b, i);
	int r;

	if (e) {
		if (entry_grow(e, i)) { /* also what was taken to be over */
			e->incident.resolved.ns = 0;
			sink(arg, &e->incident, e->detected, CASE_GROWN);
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
	*e = (struct case_entry){.incident = *i, .detected = now, .was_found = true};
	e->incident.resolved.ns = 0;
	sink(arg, &e->incident, now, CASE_NEW);
	return 0;
}

int casebook_look(struct casebook *b, const struct incident *found, size_t count, wall_time now,
	wall_time forget_before, casebook_sink *sink, void *arg)
{
	int r = 0;

	for (size_t k = 0; k < b->count; k++)
		b->entries[k].was_found = false;
	for (size_t k = 0; r == 0 && k < count; k++)
		r = look_at(b, &found[k], now, sink, arg);
	for (size_t k = b->count; k-- > 0;) {
		struct case_entry *e = &b->entries[k];
		bool is_quiet = !e->was_found || (double)now.ns - (double)e->incident.last.ns >
							 (double)CASEBOOK_QUIET_NS;

		e->quiet_looks = is_quiet ? e->quiet_looks + 1 : 0;
		if (!e->incident.resolved.ns && e->quiet_looks >= CASEBOOK_LOOKS) {
			e->incident.resolved = now;
			sink(arg, &e->incident, e->detected, CASE_RESOLVED);
		}
		if (e->incident.resolved.ns && e->incident.last.ns < forget_before.ns)
			entry_remove(b, k);
	}
	return r;
}

void casebook_done(struct casebook *b)
{
	free(b->entries);
	*b = (struct casebook){0};
}
