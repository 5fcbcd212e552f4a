/* SPDX-License-Identifier: Apache-2.0 */
/* detect_neighbour.c - gives slow calls that somebody else is to blame for their name in the catalogue:
 * the CPU was taken (cpu-contention, which detect_contention.c also finds), and if whoever took it, or the disk, lives in another
 * container or control group than the victim, it is a noisy neighbour.
 *
 * Nothing new is found here and no figure changes: attribute.c and culprit.c have shown who had the
 * CPU or the disk. A process whose home is not known is no neighbour. */
#include <stdio.h>
#include <string.h>

#include "diagnose/compose/detector.h"
#include "diagnose/accounts/home.h"
#include "diagnose/calls/lead.h"

#define APART_SHARE 0.5  /* of what the CPU or the disk explains */
#define NAMED_SHARE 0.25 /* of the excess, as in lead.c */

static bool is_cpu_cause(enum cause c)
{
	return c == CAUSE_PREEMPTED || c == CAUSE_RUN_QUEUE;
}

static bool is_of_layer(const struct incident_cause *c, bool is_cpu)
{
	return is_cpu ? is_cpu_cause(c->cause) : c->cause == CAUSE_BLOCK_IO;
}

/* The culprit that the incident was told with (of many, the largest), if it lives apart and such
 * ones have most of what the layer explains; NULL: none. */
static const struct incident_cause *culprit_apart(const struct recording *rec,
	const struct incident *inc, const struct process_home *victim, const struct verdict *v)
{
	bool is_cpu = is_cpu_cause(v->lead->cause), is_told_apart = false;
	uint64_t apart_ns = 0, layer_ns = 0;

	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];
		const struct process_home *home;

		if (!is_of_layer(c, is_cpu))
			continue;
		layer_ns += c->ns;
		if (!c->culprit_pid || c->culprit_pid == inc->pid)
			continue;
		home = home_of(rec, c->culprit_pid);
		if (home && home_apart(victim, home)) {
			apart_ns += c->ns;
			is_told_apart |= c == v->lead;
		}
	}
	if (!is_told_apart || (double)apart_ns < APART_SHARE * (double)layer_ns ||
		(double)apart_ns < NAMED_SHARE * (double)inc->excess_ns)
		return NULL;
	return v->lead;
}

/* " and burner (pid 9001) in container 0123456789ab", if it is to be named and lives apart. */
static void second_text(const struct recording *rec, const struct process_home *victim,
	const struct verdict *v, char *out, size_t size)
{
	const struct process_home *home = v->second ? home_of(rec, v->second->culprit_pid) : NULL;
	char theirs[160];

	out[0] = 0;
	if (!home || !home_apart(victim, home))
		return;
	home_text(home, theirs, sizeof(theirs));
	snprintf(out, size, " and %.15s (pid %u) in %.40s", v->second->culprit,
		v->second->culprit_pid, theirs);
}

static void name_neighbour(const struct recording *rec, const struct process_home *victim,
	const struct verdict *v, bool is_cpu, struct incident *inc)
{
	const struct incident_cause *lead = v->lead;
	char theirs[160], own[160], second[80];

	home_text(home_of(rec, lead->culprit_pid), theirs, sizeof(theirs));
	home_text(victim, own, sizeof(own));
	second_text(rec, victim, v, second, sizeof(second));
	inc->problem = PROBLEM_NOISY_NEIGHBOUR;
	inc->severity = MIN(inc->severity, problem_row(inc->problem)->worst);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"noisy neighbour: %.15s (pid %u) in %.40s%s used the %s that pid %u in %.40s waited for",
		lead->culprit, lead->culprit_pid, theirs, second, is_cpu ? "CPU" : "disk", inc->pid,
		own);
	if (is_cpu)
		incident_fix(inc,
			"Limit %.100s: cpu.max or a smaller cpu.weight, or separate CPUs (cpuset)",
			theirs);
	else
		incident_fix(
			inc, "Limit %.100s: io.max or a smaller io.weight on that device", theirs);
}

int detect_neighbour(const struct detector_input *s, struct incident_list *out)
{
	for (size_t i = 0; i < out->count; i++) {
		struct incident *inc = &out->items[i];
		const struct process_home *victim;
		const struct incident_cause *culprit = NULL;
		struct verdict v;
		bool is_cpu;

		if ((inc->problem != PROBLEM_SLOW_CALL && inc->problem != PROBLEM_CPU_CONTENTION) ||
			inc->severity == SEVERITY_LOW)
			continue;
		lead_choose(inc, &v);
		is_cpu = is_cpu_cause(v.lead->cause);
		if (is_cpu)
			inc->problem = PROBLEM_CPU_CONTENTION;
		victim = home_of(s->rec, inc->pid);
		if (victim)
			culprit = culprit_apart(s->rec, inc, victim, &v);
		if (culprit)
			name_neighbour(s->rec, victim, &v, is_cpu, inc);
	}
	return 0;
}
