/* SPDX-License-Identifier: Apache-2.0 */
/* detect_errors.c - calls that returned an error: on the device, of a kernel that cannot run as
 * asked, of versions that do not fit, or refused.
 *
 * One incident for each (process, problem, error). device_error.c says what a number means; answers
 * that are no failures (not ready, already enabled, in progress) are left out, and so are errors
 * that other detectors report (memory, graph captures). A sticky error is returned by every call
 * after it: the first one counts, the rest are told as a number; other errors of the process after
 * it are its consequences and are not reported.
 *
 * Severity: device errors MEDIUM, the catalogue's worst; versions MEDIUM; launches and refused
 * calls LOW. Confidence 0.95 (the code was returned), 0.7 for the place if the error is
 * asynchronous (sticky errors come from an earlier call); times completeness. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/correlate/detector.h"
#include "agent/correlate/device_error.h"
#include "agent/correlate/origin.h"
#include "base/text.h"
#include "wire/names.h"

#define GROUPS_MAX 256 /* (process, source, error) that are told apart */

struct error_group {
	uint32_t pid;
	int code;
	bool nccl;
	const struct error_row *row;
	size_t first; /* event */
	int64_t first_ns, last_ns;
	uint64_t count;
};

struct error_list {
	struct error_group groups[GROUPS_MAX];
	int count;
};

static bool is_error(const struct event *e)
{
	bool call = e->source == SOURCE_CUDA || e->source == SOURCE_DRIVER ||
		    e->source == SOURCE_GRAPH || e->source == SOURCE_NCCL;

	return call && e->ret > 0 && !(e->flags & WIRE_NESTED) && baseline_is_sane(e) &&
	       error_find(e->source, e->ret)->class != ERROR_EXPECTED;
}

static bool is_earlier(const struct recording *rec, size_t a, size_t b)
{
	const struct event *x = &rec->events[a], *y = &rec->events[b];

	if (x->start.ns != y->start.ns)
		return x->start.ns < y->start.ns;
	return x->seq < y->seq;
}

static void collect(const struct scene *s, struct error_list *l)
{
	for (size_t i = 0; i < s->rec->event_count; i++) {
		const struct event *e = &s->rec->events[i];
		bool nccl = e->source == SOURCE_NCCL;
		int k = 0;

		if (!is_error(e))
			continue;
		while (k < l->count && (l->groups[k].pid != e->pid || l->groups[k].code != e->ret ||
					       l->groups[k].nccl != nccl))
			k++;
		if (k == GROUPS_MAX)
			continue;
		if (k == l->count)
			l->groups[l->count++] = (struct error_group){.pid = e->pid,
				.code = e->ret,
				.nccl = nccl,
				.row = error_find(e->source, e->ret),
				.first = i,
				.first_ns = e->start.ns,
				.last_ns = e->start.ns};
		l->groups[k].count += MAX(e->weight, 1U);
		l->groups[k].first_ns = MIN(l->groups[k].first_ns, e->start.ns);
		l->groups[k].last_ns = MAX(l->groups[k].last_ns, e->start.ns);
		if (is_earlier(s->rec, i, l->groups[k].first))
			l->groups[k].first = i;
	}
}

static int by_process_and_time(const void *a, const void *b)
{
	const struct error_group *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return (x->code > y->code) - (x->code < y->code);
}

static int add_stacks(const struct scene *s, const struct error_group *g, struct incident *inc)
{
	struct incident_stack list[INCIDENT_STACKS];
	size_t n = 0;

	incident_evidence(inc, &s->rec->events[g->first]);
	for (size_t i = 0; i < s->rec->event_count; i++) {
		const struct event *e = &s->rec->events[i];

		if (e->pid != g->pid || e->ret != g->code || !is_error(e) ||
			(e->source == SOURCE_NCCL) != g->nccl)
			continue;
		if (i != g->first)
			incident_evidence(inc, e);
		if (g->row->sticky && i != g->first)
			continue; /* where it is told again is not where it came from */
		if (e->stack_hash && n < ARRAY_SIZE(list))
			list[n++] = (struct incident_stack){e->stack_hash, 1, 1};
	}
	origin_merge(list, n, inc);
	return 0;
}

static void tell(const struct error_group *g, const struct event *e, struct incident *inc)
{
	char room[32], n[TEXT_MAX], later[96] = "";
	const char *op = wire_op_name(e->source, e->op, room);

	text_format_count(n, g->count - 1);
	if (g->count > 1 && g->row->sticky)
		snprintf(later, sizeof(later), "; %s later calls returned it too", n);
	else if (g->count > 1)
		snprintf(later, sizeof(later), "; %s more calls failed the same way", n);
	snprintf(inc->summary, sizeof(inc->summary), "%s of %s returned %s error %d (%s)%s", op,
		e->comm, g->nccl ? "NCCL" : "CUDA", g->code, g->row->name, later);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s: %s", g->row->name, g->row->meaning);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%s was the first call of the process to return it. %s", op,
		g->row->sticky
			? "CUDA reports such an error from a later call: the failed kernel was launched earlier. The error persists until the process ends."
			: "The call had no effect.");
	incident_step(inc, e->start.ns, e->dur_ns, e->source == SOURCE_DRIVER ? "DRIVER" : "CUDA",
		op, "thread %u: error %d, %s", e->tid, g->code, g->row->name);
	if (g->count > 1)
		incident_step(inc, g->last_ns, 0, "CUDA", "last", "the last call that returned it");
	incident_sql(inc,
		"SELECT id, timestamp, source, op, tid, ret_code, stack_hash FROM events WHERE pid "
		"= %u AND ret_code = %d AND source %s 9 ORDER BY timestamp",
		g->pid, g->code, g->nccl ? "=" : "<>");
}

/* Pinned host memory is the host's: the rest of "out of memory" is told by detect_memory.c. */
static bool is_told_elsewhere(const struct scene *s, const struct error_group *g)
{
	const struct event *e = &s->rec->events[g->first];
	bool host = (e->source == SOURCE_CUDA && e->op == CUDA_HOST_ALLOC) ||
		    (e->source == SOURCE_DRIVER && e->op == DRIVER_HOST_ALLOC);

	return (g->row->class == ERROR_MEMORY && !host) || g->row->class == ERROR_CAPTURE;
}

static int report(const struct scene *s, const struct error_group *g, struct incident_list *out)
{
	static const enum problem problems[] = {
		[ERROR_MEMORY] = PROBLEM_DEVICE_ASSERT,
		[ERROR_REFUSED] = PROBLEM_DEVICE_ASSERT,
		[ERROR_LAUNCH] = PROBLEM_KERNEL_COMPILER,
		[ERROR_VERSION] = PROBLEM_VERSION_MISMATCH,
		[ERROR_DEVICE] = PROBLEM_DEVICE_ASSERT,
	};
	const struct event *e = &s->rec->events[g->first];
	struct incident *inc = incident_begin(out, problems[g->row->class]);

	if (!inc)
		return 0;
	incident_process(inc, e, g->first_ns, g->last_ns);
	inc->severity = g->row->class == ERROR_DEVICE || g->row->class == ERROR_VERSION
				? SEVERITY_MEDIUM
				: SEVERITY_LOW;
	inc->count = g->count;
	inc->unit = "failed calls";
	inc->completeness = s->completeness;
	inc->confidence =
		(g->row->sticky ? 0.7 : 0.95) * (s->completeness < 0 ? 1 : s->completeness);
	tell(g, e, inc);
	if (add_stacks(s, g, inc) < 0)
		return -ENOMEM;
	incident_keep(out, inc);
	return 0;
}

int detect_errors(const struct scene *s, struct incident_list *out)
{
	_cleanup_free_ struct error_list *l = calloc(1, sizeof(*l));
	uint32_t broken_pid = 0;
	bool broken = false;
	int r = 0;

	if (!l)
		return -ENOMEM;
	collect(s, l);
	qsort(l->groups, (size_t)l->count, sizeof(l->groups[0]), by_process_and_time);
	for (int i = 0; r == 0 && i < l->count; i++) {
		const struct error_group *g = &l->groups[i];

		if (is_told_elsewhere(s, g) || (broken && g->pid == broken_pid))
			continue;
		r = report(s, g, out);
		if (g->row->sticky) {
			broken = true;
			broken_pid = g->pid;
		}
	}
	return r;
}
