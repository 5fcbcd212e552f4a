/* SPDX-License-Identifier: Apache-2.0 */
/* detect_relief.c - the end of a process that another incident blames is part of that story.
 *
 * Whoever reads that a neighbour slows the job and ends it with SIGKILL is not to be told that a process of the
 * job was killed. The end is a line in the timeline of what it was blamed for, and its own incident is LOW.
 * Only an end by somebody's will counts: a crash, an error code and the OOM killer are news about that
 * process, whatever it did to others. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/compose/detector.h"

static const struct event *exit_of(const struct recording *rec, const struct incident *end)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->source == SOURCE_HOST && e->op == HOST_PROCESS_EXIT && e->pid == end->pid &&
			e->start.ns == end->first.ns && !(e->flags & WIRE_THREAD))
			return e;
	}
	return NULL;
}

static bool is_killed(const struct event *e)
{
	uint32_t status = e ? (uint32_t)e->arg0 : 0;

	return (status & 0x7f) == SIGKILL || (status >> 8 & 0xff) == 128 + SIGKILL;
}

static bool blames(const struct incident *inc, const struct incident *end)
{
	if (inc == end || inc->pid == end->pid || inc->severity < SEVERITY_MEDIUM ||
		inc->first.ns > end->first.ns)
		return false;
	for (int i = 0; i < inc->cause_count; i++)
		if (inc->causes[i].culprit_pid == end->pid)
			return true;
	return false;
}

static void tell(struct incident *inc, struct incident *end)
{
	end->severity = SEVERITY_LOW;
	snprintf(end->explanation, sizeof(end->explanation),
		"%s (pid %u) was slowed down by it: whoever ended it has ended that, too. The sender of a signal is not recorded.",
		inc->comm, inc->pid);
	if (inc->step_count == INCIDENT_TIMELINE)
		inc->step_count--; /* the last of many of a kind */
	incident_step(inc, end->first.ns, 0, "HOST", "process_exit", "%s", end->summary);
}

int detect_relief(const struct detector_input *s, struct incident_list *out)
{
	for (size_t i = 0; i < out->count; i++) {
		struct incident *end = &out->items[i], *blamed = NULL;

		if (end->problem != PROBLEM_ORCHESTRATION || end->severity != SEVERITY_MEDIUM ||
			end->op != HOST_PROCESS_EXIT || !is_killed(exit_of(s->rec, end)))
			continue;
		for (size_t k = 0; k < out->count && !blamed; k++)
			if (blames(&out->items[k], end))
				blamed = &out->items[k];
		if (blamed)
			tell(blamed, end);
	}
	return 0;
}
