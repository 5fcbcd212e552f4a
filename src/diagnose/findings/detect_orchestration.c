/* SPDX-License-Identifier: Apache-2.0 */
/* detect_orchestration.c - processes of the job that did not end by themselves: the kernel's OOM
 * killer, signals, error codes, restarts, and what Kubernetes says about their pods.
 *
 * Only processes that made CUDA or NCCL calls count; what ended elsewhere on the machine is not the
 * job's. One incident for each process that ended badly:
 *   killed by the OOM killer, evicted pod  HIGH
 *   SIGKILL without one, a crash (SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE), an error code  MEDIUM
 *   SIGTERM, SIGINT, SIGHUP, SIGQUIT (somebody asked it to end)  LOW
 *   SIGKILL a moment before another process of that name ends without an error (the job was over)  LOW
 * A process of the same name whose first call comes within 120 s after is told as a restart. An end that is the
 * consequence of another incident is left out by compose. Codes 128 + n are what shells make of signal n.
 * An OOM kill of an untraced process is a LOW note: memory was short, no more is known.
 * Confidence 0.95 for what the kernel reports, 0.7 for an error code (what it means is the
 * program's affair). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/findings/detector.h"
#include "base/text.h"
#include "wire/op_kind.h"

#define PROCESSES_MAX 1024
#define RESTART_NS    ((int64_t)(120 * NS_PER_S))
#define OOM_NS        ((int64_t)(10 * NS_PER_S)) /* between the kill and the exit */
#define OVER_NS       ((int64_t)(2 * NS_PER_S)) /* a job ends those that it has started, then itself */
#define ROWS          "SELECT id, timestamp, pid, op, arg0, arg1, comm FROM events WHERE source = %d AND "

struct job_process {
	uint32_t pid;
	int64_t first_ns, last_ns; /* calls */
	const struct event *call;  /* one of them, for its name */
	const struct event *exit, *oom;
};

struct job {
	struct job_process list[PROCESSES_MAX];
	int count;
	const struct event *foreign_oom;
	uint64_t foreign_ooms;
};

static struct job_process *process_of(struct job *j, uint32_t pid)
{
	for (int i = 0; i < j->count; i++)
		if (j->list[i].pid == pid)
			return &j->list[i];
	return NULL;
}

static void read_calls(const struct recording *rec, struct job *j)
{
	struct job_process *p = NULL;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!op_kind_is_gpu(e->source) || !baseline_is_sane(e))
			continue;
		if (!p || p->pid != e->pid)
			p = process_of(j, e->pid);
		if (!p && j->count < PROCESSES_MAX) {
			p = &j->list[j->count++];
			*p = (struct job_process){.pid = e->pid,
				.first_ns = e->start.ns,
				.last_ns = e->start.ns,
				.call = e};
		}
		if (!p)
			continue;
		p->first_ns = MIN(p->first_ns, e->start.ns);
		p->last_ns = MAX(p->last_ns, event_end_ns(e));
	}
}

static void read_ends(const struct recording *rec, struct job *j)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		struct job_process *p;

		if (e->source != SOURCE_HOST || !baseline_is_sane(e))
			continue;
		if (e->op == HOST_PROCESS_EXIT && !(e->flags & WIRE_THREAD)) {
			p = process_of(j, e->pid);
			if (p && e->start.ns >= p->first_ns)
				p->exit = e;
		} else if (e->op == HOST_OOM_KILL || e->op == HOST_POD_OOM_KILL) {
			p = process_of(j, e->op == HOST_OOM_KILL ? (uint32_t)e->arg1 : e->pid);
			if (p)
				p->oom = e;
			else if (j->foreign_ooms++ == 0)
				j->foreign_oom = e;
		}
	}
}

static const char *signal_name(int number)
{
	switch (number) {
	case SIGKILL: return "SIGKILL";
	case SIGTERM: return "SIGTERM";
	case SIGINT: return "SIGINT";
	case SIGHUP: return "SIGHUP";
	case SIGQUIT: return "SIGQUIT";
	case SIGSEGV: return "SIGSEGV";
	case SIGABRT: return "SIGABRT";
	case SIGBUS: return "SIGBUS";
	case SIGILL: return "SIGILL";
	case SIGFPE: return "SIGFPE";
	default: return "a signal";
	}
}

static bool is_request(int number)
{
	return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

struct ending {
	int number; /* signal; 0: none */
	int code;
	bool by_oom;
};

static struct ending ending_of(const struct job_process *p)
{
	uint32_t status = p->exit ? (uint32_t)p->exit->arg0 : 0;
	struct ending e = {.number = (int)(status & 0x7f), .code = (int)(status >> 8 & 0xff)};

	if (!e.number && e.code > 128 && e.code < 128 + 64)
		e.number = e.code - 128;
	e.by_oom = p->oom && (!p->exit || p->exit->start.ns - p->oom->start.ns <= OOM_NS);
	return e;
}

static const struct job_process *restart_of(const struct job *j, const struct job_process *p)
{
	for (int i = 0; i < j->count; i++) {
		const struct job_process *q = &j->list[i];

		if (q != p && q->first_ns > p->exit->start.ns &&
			q->first_ns - p->exit->start.ns <= RESTART_NS &&
			!strncmp(q->call->comm, p->call->comm, COMM_LEN))
			return q;
	}
	return NULL;
}

/* Whether @p was killed as its job was over: another process of it ended right after, and said that all was well. */
static bool is_over(const struct job *j, const struct job_process *p)
{
	for (int i = 0; p->exit && i < j->count; i++) {
		const struct job_process *q = &j->list[i];

		if (q != p && q->exit && q->exit->arg0 == 0 &&
			q->exit->start.ns >= p->exit->start.ns &&
			q->exit->start.ns - p->exit->start.ns <= OVER_NS &&
			!strncmp(q->call->comm, p->call->comm, COMM_LEN))
			return true;
	}
	return false;
}

static void describe(const struct job *j, const struct job_process *p, const struct ending *e,
	struct incident *inc)
{
	const struct job_process *again = p->exit ? restart_of(j, p) : NULL;
	char how[96], more[96] = "", gap[TEXT_MAX];

	if (e->by_oom)
		snprintf(how, sizeof(how), "was killed by the kernel's OOM killer");
	else if (e->number)
		snprintf(how, sizeof(how), "%s %s (%d)",
			e->code > 128 ? "ended by" : "was killed by", signal_name(e->number),
			e->number);
	else
		snprintf(how, sizeof(how), "exited with code %d", e->code);
	if (again)
		snprintf(more, sizeof(more), "; restarted as pid %u, %s later", again->pid,
			text_format_duration(gap, (uint64_t)(again->first_ns - p->exit->start.ns)));
	snprintf(inc->summary, sizeof(inc->summary), "%s (pid %u) %s%s", p->call->comm, p->pid, how,
		more);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s",
		e->by_oom               ? "the host or the container ran out of memory"
		: is_request(e->number) ? "the process was asked to terminate"
		: e->number == SIGKILL
			? is_over(j, p)
				  ? "the process was killed as its job ended"
				  : "the process was killed, not by the OOM killer as far as recorded"
		: e->number ? "the process crashed"
			    : "the process exited with an error");
	snprintf(inc->explanation, sizeof(inc->explanation),
		"From the kernel's exit event%s. The sender of a signal is not recorded.",
		e->by_oom ? " and the OOM killer's choice" : "");
	incident_step(inc, p->last_ns, 0, "CUDA", "last call", "its last recorded call ended");
	if (e->by_oom)
		incident_step(inc, p->oom->start.ns, 0, "HOST", "oom_kill",
			"OOM killer chose pid %u", p->pid);
	if (p->exit)
		incident_step(inc, p->exit->start.ns, 0, "HOST", "process_exit", "%s %s",
			p->call->comm, how);
	if (again)
		incident_step(inc, again->first_ns, 0, "CUDA", "first call",
			"of pid %u, the same program", again->pid);
}

/* Of one that memory did not end. */
static const char *advice_of(const struct ending *e)
{
	if (is_request(e->number))
		return "Find out who asked it to end: `kubectl describe pod`, the scheduler's log";
	if (e->number == SIGKILL)
		return "Find out who sent it: an operator, a time limit of the scheduler, a failed liveness probe";
	return e->number ? "See where it crashed: its last output, `coredumpctl info`"
			 : "Read its last output: the program ended by itself";
}

static void report(const struct detector_input *s, const struct job *j, const struct job_process *p,
	struct incident_list *out)
{
	struct ending e = ending_of(p);
	struct incident *inc;

	if ((!p->exit && !p->oom) || (!e.by_oom && !e.number && !e.code))
		return;
	inc = incident_begin(out, PROBLEM_ORCHESTRATION);
	incident_process(inc, p->call, p->exit ? p->exit->start.ns : p->oom->start.ns,
		p->exit ? p->exit->start.ns : p->oom->start.ns);
	inc->source = SOURCE_HOST;
	inc->op = p->exit ? p->exit->op : p->oom->op;
	incident_weigh(inc,
		e.by_oom                                                         ? SEVERITY_HIGH
		: is_request(e.number) || (e.number == SIGKILL && is_over(j, p)) ? SEVERITY_LOW
										 : SEVERITY_MEDIUM,
		e.by_oom || e.number ? 0.95 : 0.7, 1, "ends");
	inc->is_willed = !e.by_oom && (e.number == SIGKILL || is_request(e.number));
	inc->completeness = s->completeness;
	describe(j, p, &e, inc);
	if (!e.by_oom) {
		inc->fix_count = 0;
		incident_fix(inc, "%s", advice_of(&e));
	}
	if (p->exit)
		incident_evidence(inc, p->exit);
	if (p->oom)
		incident_evidence(inc, p->oom);
	incident_sql(inc,
		ROWS
		"op IN (%d, %d, %d, %d, %d, %d) AND (pid = %u OR arg1 = %u) ORDER BY timestamp",
		SOURCE_HOST, HOST_OOM_KILL, HOST_PROCESS_EXEC, HOST_PROCESS_EXIT, HOST_POD_RESTART,
		HOST_POD_EVICTION, HOST_POD_OOM_KILL, p->pid, p->pid);
	incident_keep(out, inc);
}

static void report_pod(
	const struct detector_input *s, const struct event *e, struct incident_list *out)
{
	bool evicted = e->op == HOST_POD_EVICTION;
	struct incident *inc = incident_begin(out, PROBLEM_ORCHESTRATION);

	incident_process(inc, e, e->start.ns, e->start.ns);
	incident_weigh(inc, SEVERITY_HIGH, 0.9, 1, evicted ? "evictions" : "restarts");
	inc->completeness = s->completeness;
	snprintf(inc->summary, sizeof(inc->summary), "a pod was %s",
		evicted ? "evicted" : "restarted");
	snprintf(inc->root_cause, sizeof(inc->root_cause), "Kubernetes %s the pod",
		evicted ? "evicted" : "restarted");
	snprintf(inc->explanation, sizeof(inc->explanation), "Reported by Kubernetes.");
	incident_step(inc, e->start.ns, 0, "HOST", evicted ? "pod_eviction" : "pod_restart",
		"pod %s", evicted ? "evicted" : "restarted");
	incident_evidence(inc, e);
	incident_sql(inc, ROWS "op = %u ORDER BY timestamp", SOURCE_HOST, e->op);
	incident_keep(out, inc);
}

static void report_foreign(
	const struct detector_input *s, const struct job *j, struct incident_list *out)
{
	const struct event *e = j->foreign_oom;
	struct incident *inc;

	if (!e)
		return;
	inc = incident_begin(out, PROBLEM_ORCHESTRATION);
	incident_id(inc, (uint32_t)e->arg1, e->start.ns);
	inc->last.ns = e->start.ns;
	inc->source = e->source;
	inc->op = e->op;
	incident_weigh(inc, SEVERITY_LOW, 0.9, j->foreign_ooms, "OOM kills");
	inc->completeness = s->completeness;
	snprintf(inc->summary, sizeof(inc->summary),
		"the OOM killer killed pid %u, which made no CUDA calls in this recording",
		(uint32_t)e->arg1);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "the host was short of memory");
	snprintf(inc->explanation, sizeof(inc->explanation),
		"It is unknown whether it belonged to the job.");
	incident_step(inc, e->start.ns, 0, "HOST", "oom_kill", "OOM killer chose pid %u",
		(uint32_t)e->arg1);
	incident_evidence(inc, e);
	incident_sql(inc, ROWS "op = %u ORDER BY timestamp", SOURCE_HOST, e->op);
	incident_keep(out, inc);
}

int detect_orchestration(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_free_ struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	read_calls(s->rec, j);
	read_ends(s->rec, j);
	for (int i = 0; i < j->count; i++)
		report(s, j, &j->list[i], out);
	report_foreign(s, j, out);
	for (size_t i = 0; i < s->rec->event_count; i++) {
		const struct event *e = &s->rec->events[i];

		if (e->source == SOURCE_HOST && baseline_is_sane(e) &&
			(e->op == HOST_POD_RESTART || e->op == HOST_POD_EVICTION))
			report_pod(s, e, out);
	}
	return 0;
}
