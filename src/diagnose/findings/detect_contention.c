/* SPDX-License-Identifier: Apache-2.0 */
/* detect_contention.c - a process whose calling thread is kept from the CPU all the time.
 *
 * Slow calls are slow against what is ordinary; contention that lasts from the first to the last
 * second is the ordinary. So here nothing is compared: counted is the time in which the thread that
 * makes most of the process's GPU calls was ready to run and others had the CPU, between its calls
 * and in them. In a wait for the GPU only the stays before its return count (attribute_tail_ns()).
 * Stays that the probes leave out (below 50 us) are missing, so the share is too low rather than
 * too high.
 *
 * HIGH from 25 % of the time the process was observed, MEDIUM from 10 % (LOW behind processes of its own
 * name or threads of theirs: ranks of one job that share too few CPUs), nothing below. Nothing
 * either where incidents of the process that are mostly about the CPU already tell of half of that time; where they tell of less,
 * those of slow calls that waited for a CPU are dropped for this one.
 *
 * Confidence = share of the lost time that the named culprit, or the crowd, had x n/(n+3) x
 * completeness, n the stays. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/compose/told.h"
#include "diagnose/calls/culprit.h"
#include "diagnose/compose/detector.h"
#include "diagnose/calls/lead.h"
#include "diagnose/calls/part.h"
#include "diagnose/accounts/tracer_name.h"
#include "diagnose/sentences/evidence.h"
#include "base/array.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/text.h"
#include "wire/op_kind.h"

#define HIGH_SHARE    0.25
#define MEDIUM_SHARE  0.10
#define TOLD_SHARE    0.5
#define STAYS_HALF    3.0
#define STAYS_SHOWN   5
#define PROCESSES_MAX 1024
#define SENTENCE_MAX  1024

struct call {
	int64_t start_ns, end_ns;
	size_t event;
	uint32_t pid, tid;
	bool is_wait;
};

struct calls {
	struct call *items; /* by process, thread and time */
	size_t count;
};

struct caller { /* the thread that makes most calls of its process: calls[first .. first + count) */
	size_t first, count;
	struct span span; /* from its process's first call to the last one's end */
};

static bool is_call(const struct event *e)
{
	return op_kind_is_gpu(e->source) && !(e->flags & WIRE_NESTED) && baseline_is_sane(e);
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static void calls_done(struct calls *c)
{
	free(c->items);
}

static int calls_collect(const struct recording *rec, struct calls *ret)
{
	size_t room = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!is_call(e))
			continue;
		if (ARRAY_RESERVE(ret->items, room, ret->count + 1, CORRELATE_ROWS_MAX) < 0)
			return -ENOMEM;
		ret->items[ret->count++] = (struct call){e->start.ns, event_end_ns(e), i, e->pid,
			e->tid, op_kind_is_gpu_wait(e->source, e->op)};
	}
	SORT_DEALT(ret->items, ret->count, by_thread_and_time, offsetof(struct call, pid),
		offsetof(struct call, tid));
	return 0;
}

/* The caller of the process whose calls begin at @first; returns where the next process begins. */
static size_t caller_find(const struct calls *c, size_t first, struct caller *ret)
{
	size_t next, end;

	*ret = (struct caller){
		.span = {.start_ns = INT64_MAX, .end_ns = INT64_MIN, .pid = c->items[first].pid}};
	for (size_t i = first; i < c->count && c->items[i].pid == ret->span.pid; i = end) {
		for (end = i; end < c->count && c->items[end].pid == ret->span.pid &&
			      c->items[end].tid == c->items[i].tid;
			end++) {
			ret->span.start_ns = MIN(ret->span.start_ns, c->items[end].start_ns);
			ret->span.end_ns = MAX(ret->span.end_ns, c->items[end].end_ns);
		}
		if (end - i > ret->count) {
			ret->first = i;
			ret->count = end - i;
			ret->span.tid = c->items[i].tid;
		}
	}
	for (next = first; next < c->count && c->items[next].pid == ret->span.pid;)
		next++;
	return next;
}

/* Stays of the caller within [from, to) in which it could have run. */
static int add_stays(const struct recording *rec, const struct attribution_index *x, uint32_t tid,
	int64_t from_ns, int64_t to_ns, struct part_list *l)
{
	for (size_t i = interval_seek(&x->off_cpu, tid, from_ns); i < x->off_cpu.count; i++) {
		const struct interval *v = &x->off_cpu.items[i];

		if (v->key != tid || v->start_ns >= to_ns)
			break;
		if ((v->kind == INTERVAL_PREEMPTED || v->kind == INTERVAL_RUN_QUEUE) &&
			part_add_cpu(l, v, &rec->events[v->event], i, MAX(v->start_ns, from_ns),
				MIN(v->end_ns, to_ns)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* All of the caller's time but what precedes the last stays of its waits for the GPU. */
static int caller_stays(const struct recording *rec, const struct attribution_index *x,
	const struct calls *c, const struct caller *who, struct part_list *l)
{
	int64_t from = who->span.start_ns;
	int r = 0;

	for (size_t i = who->first; r == 0 && i < who->first + who->count; i++) {
		const struct call *w = &c->items[i];

		if (!w->is_wait || w->end_ns <= from)
			continue;
		r = add_stays(rec, x, who->span.tid, from, w->start_ns, l);
		from = attribute_tail_ns(x, who->span.tid, MAX(w->start_ns, from), w->end_ns);
	}
	return r == 0 ? add_stays(rec, x, who->span.tid, from, who->span.end_ns, l) : r;
}

static uint64_t cpu_ns(const struct incident *inc)
{
	uint64_t ns = 0;

	for (int i = 0; i < inc->cause_count; i++)
		if (inc->causes[i].cause == CAUSE_PREEMPTED ||
			inc->causes[i].cause == CAUSE_RUN_QUEUE)
			ns += inc->causes[i].ns;
	return ns;
}

/* Mostly, so that whoever reads it reads of the CPU: as a smaller cause of something else it is not told. */
static bool is_of_cpu(const struct incident *inc)
{
	return (double)cpu_ns(inc) >= TOLD_SHARE * (double)inc->excess_ns;
}

static bool is_told(const struct incident_list *out, uint32_t pid, uint64_t lost_ns)
{
	uint64_t told = 0;

	for (size_t i = 0; i < out->count; i++)
		if (out->items[i].pid == pid && out->items[i].severity > SEVERITY_LOW &&
			is_of_cpu(&out->items[i]))
			told += cpu_ns(&out->items[i]);
	return (double)told >= TOLD_SHARE * (double)lost_ns;
}

/* Slow calls of the process that mostly waited for a CPU are views of the same, and less of it. */
static bool is_view(const struct incident *inc, const void *pid)
{
	if (inc->pid != *(const uint32_t *)pid)
		return false;
	return inc->problem == PROBLEM_SLOW_CALL ? is_of_cpu(inc)
						 : told_leads(inc, UINT32_C(1) << DELAY_BY_CPU);
}

static int parts_by_length(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Sorts @l by length. */
static int put_evidence(const struct recording *rec, struct part_list *l, struct incident *inc)
{
	int64_t from = INT64_MAX, to = 0;

	qsort(l->items, l->count, sizeof(*l->items), parts_by_length);
	for (size_t i = 0; i < MIN(l->count, (size_t)STAYS_SHOWN); i++) {
		const struct part *p = &l->items[i];
		const struct event *e = &rec->events[p->event];

		incident_step(inc, p->start_ns, (uint64_t)(p->end_ns - p->start_ns), "HOST",
			"sched_switch", "thread %u ready, waiting for a CPU%s%s", e->tid,
			p->culprit_pid ? " used by " : "", p->culprit_pid ? p->culprit : "");
		incident_evidence(inc, e);
		from = MIN(from, e->start.ns);
		to = MAX(to, event_end_ns(e));
	}
	return evidence_sql_put(rec, from, to, inc);
}

static int put_words(
	const struct verdict *v, const struct caller *who, double share, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SENTENCE_MAX);
	char part[TEXT_MAX], lost[TEXT_MAX], all[TEXT_MAX], n[TEXT_PLURAL_MAX];

	text_format_percent(part, share);
	buf_printf(&b, "%s was ready to run and had no CPU for %s of the time: ", inc->comm, part);
	incident_text_blame(&b, v, "that time", inc);
	snprintf(inc->summary, sizeof(inc->summary), "%s", buf_str(&b));
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Thread %u, which makes most GPU calls of %s (pid %u), was ready to run and others had "
		"the CPU for %s of %s observed, in %s. Nothing was compared with a better time: there "
		"may be none in the recording. In waits for the GPU only the stays right before their "
		"return count. Stays shorter than 50 us are not recorded.",
		who->span.tid, inc->comm, inc->pid, text_format_duration(lost, inc->excess_ns),
		text_format_duration(all, (uint64_t)(who->span.end_ns - who->span.start_ns)),
		text_format_plural(n, inc->count, "stays"));
	return b.err;
}

/* Mostly behind processes of its own name, or threads of theirs: ranks of one job that share too few CPUs. */
static bool is_of_own_name(
	const struct detector_input *s, const struct calls *c, const struct incident *inc)
{
	const struct incident_cause *lead = &inc->causes[0];
	size_t own;

	if (!inc->cause_count || !lead->culprit[0])
		return false;
	if (!strncmp(lead->culprit, inc->comm, COMM_LEN))
		return true;
	own = LOWER_BOUND(i, c->count, c->items[i].pid < lead->culprit_pid);
	return own < c->count && c->items[own].pid == lead->culprit_pid &&
	       !strncmp(s->rec->events[c->items[own].event].comm, inc->comm, COMM_LEN);
}

/* A job that stands still loses nothing by ranks that take each other's CPUs. */
static bool job_hangs(const struct incident_list *out)
{
	for (size_t i = 0; i < out->count; i++)
		if (out->items[i].problem == PROBLEM_NCCL_HANG)
			return true;
	return false;
}

static int report(const struct detector_input *s, const struct calls *c, const struct caller *who,
	struct part_list *l, uint64_t lost_ns, struct incident_list *out)
{
	double share = (double)lost_ns / (double)(who->span.end_ns - who->span.start_ns);
	struct incident *inc = incident_begin(out, PROBLEM_CPU_CONTENTION);
	const struct part *last = &l->items[l->count - 1];
	struct verdict v = {0};
	int r;

	if (!inc)
		return 0;
	incident_process(inc, &s->rec->events[c->items[who->first].event], l->items[0].start_ns,
		last->start_ns);
	inc->source = SOURCE_HOST;
	inc->op = HOST_SCHED_SWITCH; /* by which others know it: it is about no call */
	inc->severity = share >= HIGH_SHARE ? SEVERITY_HIGH : SEVERITY_MEDIUM;
	inc->excess_ns = lost_ns;
	inc->count = l->count;
	inc->unit = "stays";
	r = culprit_sum(s->rec, l, inc);
	if (r < 0)
		return r;
	if ((share < HIGH_SHARE || job_hangs(out)) && is_of_own_name(s, c, inc))
		inc->severity = SEVERITY_LOW;
	lead_choose(inc, &v);
	if (!v.is_crowd && tracer_is(v.lead->culprit)) /* it ends with the recording */
		inc->severity = MIN(inc->severity, (enum severity)SEVERITY_MEDIUM);
	inc->completeness =
		completeness_of_sources(s->rec->books, OF_CALLS | OF_SOURCE(SOURCE_HOST));
	inc->confidence = MAX(v.layer_share, v.lead_share) * (double)l->count /
			  ((double)l->count + STAYS_HALF) * completeness_weight(inc->completeness);
	r = put_words(&v, who, share, inc);
	if (r == 0)
		r = put_evidence(s->rec, l, inc);
	if (r == 0)
		incident_keep(out, inc);
	return r;
}

static int judge(const struct detector_input *s, const struct calls *c,
	const struct attribution_index *x, const struct caller *who, struct incident_list *out)
{
	_cleanup_(part_list_done) struct part_list l = {0};
	int64_t whole = who->span.end_ns - who->span.start_ns;
	uint64_t lost = 0;
	int r = caller_stays(s->rec, x, c, who, &l);

	for (size_t i = 0; i < l.count; i++)
		lost += l.items[i].ns;
	if (r < 0 || !lost || (double)lost < MEDIUM_SHARE * (double)whole ||
		is_told(out, who->span.pid, lost))
		return r;
	incident_drop(out, is_view, &who->span.pid);
	for (size_t i = 0; i < out->count; i++)
		if (out->items[i].pid == who->span.pid && !is_of_cpu(&out->items[i]) &&
			out->items[i].problem != PROBLEM_SLOW_CALL) /* its name comes later */
			told_cede(&out->items[i], UINT32_C(1) << DELAY_BY_CPU);
	return report(s, c, who, &l, lost, out);
}

int detect_contention(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(calls_done) struct calls c = {0};
	_cleanup_(attribute_index_done) struct attribution_index x = {0};
	_cleanup_free_ struct caller *callers = calloc(PROCESSES_MAX, sizeof(*callers));
	_cleanup_free_ struct span *spans = calloc(PROCESSES_MAX, sizeof(*spans));
	size_t n = 0;
	int r;

	if (!callers || !spans || calls_collect(s->rec, &c) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < c.count && n < PROCESSES_MAX; n++) {
		i = caller_find(&c, i, &callers[n]);
		spans[n] = callers[n].span;
	}
	r = attribute_index_spans(s->rec, spans, n, &x);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = judge(s, &c, &x, &callers[i], out);
	return r;
}
