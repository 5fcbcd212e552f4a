/* SPDX-License-Identifier: Apache-2.0 */
/* detect_steps.c - incidents from the accounts of steps.
 *
 * Slow steps: what grew from ordinary to slow ones is what they lost their time to; each cause that
 * has a quarter of the growth is an incident with its share of the lost time. A longer wait for the
 * GPU is a matter of the GPU's clocks, of another process on it, of more work in a step (said as
 * such, LOW), or has no known cause.
 *
 * No slow steps, and no doubt that they are steps: a cause that is waste by any standard and takes
 * 15 % of every step is an incident of its own, also where it was there from the first step to the
 * last. A program that does not train may be idle between its requests: then waiting for input is
 * nobody's fault.
 *
 * Severity follows the wall time lost: HIGH from 10 % of the time in steps (in every step: 30 %),
 * MEDIUM from 3 %, LOW from 1 %. Confidence = that of the steps x n/(n+3) of slow ones x the share of
 * the growth that is known x completeness.
 *
 * Where steps are known by more than recurring waits, the account says all there is to say about lost
 * time: other detectors' incidents about slow calls, pauses and slower steps of that process are
 * dropped. Elsewhere theirs stand, and the account speaks where they are silent. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/correlate/account/account_task.h"
#include "agent/correlate/account/gpu_change.h"
#include "agent/correlate/account/delay.h"
#include "agent/correlate/account/delay_text.h"
#include "agent/correlate/account/delay_weight.h"
#include "agent/correlate/engine/detector.h"
#include "agent/correlate/engine/tracer_name.h"
#include "base/buf.h"
#include "base/text.h"

#define CAUSE_SHARE 0.25
#define LOW_SHARE   0.01
#define LEAST_NS    (20 * NS_PER_MS) /* a few short steps are no job */
#define SURE_STEPS  0.4
#define LESS_SHARE  0.5
#define STEPS_HALF  3.0
#define STEPS_SHOWN 6
#define QUOTA_SHARE 0.3 /* of the time without a CPU: all its threads are stopped together */
#define READING_NS  ((int64_t)(1200 * NS_PER_MS))
#define NAMED_SHARE 0.25 /* of what is not known of a step: less is not worth a word */

struct finding {
	const struct detector_input *in;
	const struct step_account *account;
	struct gpu_change gpu;
	struct delay_list delays;
	bool is_sure; /* by marks of the program itself */
};

static uint64_t observed_ns(const struct step_account *a)
{
	return (uint64_t)MAX(a->last.ns - a->first.ns, (int64_t)1);
}

static enum problem problem_of(const struct finding *f, const struct delay *l)
{
	if (l->kind == DELAY_BY_PROCESS && l->lead && l->lead->line == ACCOUNT_NETWORK)
		return PROBLEM_TOOL_CALLS;
	if (l->kind != DELAY_BY_GPU || !f->account->lost_ns)
		return delay_problem(l->kind);
	switch (f->gpu.reason) {
	case GPU_BY_CLOCK: return PROBLEM_THROTTLE;
	case GPU_BY_NEIGHBOUR: return PROBLEM_GPU_SHARING;
	default: return PROBLEM_GOODPUT;
	}
}

/* What the steps of @b have more of than an ordinary one; where there is nothing to compare with, what they consist
 * of. What is known is named first, if it is not next to nothing. */
static enum account_line line_of(
	const struct step_account *a, const struct account_bar *b, uint64_t *ret_ns)
{
	int64_t more[ACCOUNT_LINES];
	int line = 0;

	for (int k = 0; k < ACCOUNT_LINES; k++) {
		more[k] = (int64_t)(b->ns[k] / MAX(b->steps, 1u)) -
			  (a->lost_ns ? (int64_t)a->ordinary_ns[k] : 0);
		if (k != ACCOUNT_UNKNOWN && more[k] > more[line])
			line = k;
	}
	if ((double)more[line] < NAMED_SHARE * (double)more[ACCOUNT_UNKNOWN])
		line = ACCOUNT_UNKNOWN;
	*ret_ns = (uint64_t)MAX(more[line], INT64_C(0));
	return (enum account_line)line;
}

/* A recording without a ledger has the calls alone. */
static void put_sql(const struct recording *rec, const struct step_account *a, struct incident *inc)
{
	int64_t from = a->lost_ns ? a->slow_first.ns : a->first.ns;
	int64_t to = a->lost_ns ? a->slow_last.ns : a->last.ns;

	if (rec->ledger_count)
		incident_sql(inc,
			"SELECT timestamp, duration, tid, mark, run, gpu_wait, copy, alloc, cpu_wait, lock, "
			"disk, sleep FROM ledger WHERE pid = %u AND timestamp BETWEEN %" PRId64
			" AND %" PRId64 " ORDER BY timestamp LIMIT 200",
			a->pid, from, to);
	else
		incident_sql(inc,
			"SELECT id, timestamp, duration, pid, tid, source, op, arg0, arg1 FROM events WHERE pid = %u "
			"AND timestamp BETWEEN %" PRId64 " AND %" PRId64
			" ORDER BY duration DESC LIMIT 200",
			a->pid, from, to);
}

static void put_steps(
	const struct recording *rec, const struct step_account *a, struct incident *inc)
{
	int shown = 0;

	for (size_t i = 0; i < a->bar_count && shown < STEPS_SHOWN; i++) {
		const struct account_bar *b = &a->bars[i];
		char count[TEXT_PLURAL_MAX], text[TEXT_MAX];
		enum account_line top;
		uint64_t ns;

		if (a->lost_ns && !b->slow_steps)
			continue;
		top = line_of(a, b, &ns);
		incident_step(inc, b->start.ns, b->dur_ns, "HOST", "steps", "%s: %s%s %s%s",
			text_format_plural(count, b->steps, "steps"), a->lost_ns ? "+" : "",
			text_format_duration(text, ns), account_line_title(top),
			b->steps > 1 ? " in each" : "");
		shown++;
	}
	put_sql(rec, a, inc);
}

static void put_stacks(
	const struct finding *f, const struct delay *l, uint64_t steps, struct incident *inc)
{
	const struct account_entry *e = l->lead;
	uint64_t hash = !e                                            ? 0
			: l->kind == DELAY_BY_PROCESS && e->wait_hash ? e->wait_hash
								      : e->stack_hash;

	if (!hash)
		return;
	inc->stacks[0] = (struct incident_stack){.hash = hash,
		.ns = (e->slow_ns - MIN(e->slow_ns, e->ordinary_ns)) * steps,
		.calls = (uint32_t)steps};
	inc->stack_count = 1;
	inc->stack_total = 1;
	inc->stack_ns = inc->stacks[0].ns;
}

static void put_cause(const struct finding *f, const struct delay *l, uint64_t ns, uint64_t steps,
	struct incident *inc)
{
	struct incident_cause *c = &inc->causes[0];

	*c = (struct incident_cause){.cause = delay_cause(l->kind),
		.ns = ns,
		.calls = (uint32_t)steps,
		.culprit_share = 1};
	if (l->lead && l->lead->culprit[0]) {
		c->culprit_pid = l->lead->culprit_pid;
		memcpy(c->culprit, l->lead->culprit, COMM_LEN);
	} else if (l->lead && l->kind == DELAY_BY_PROCESS) {
		c->culprit_pid = l->lead->pid;
		memcpy(c->culprit, l->lead->comm, COMM_LEN);
	} else if (problem_of(f, l) == PROBLEM_GPU_SHARING) {
		c->culprit_pid = f->gpu.other_pid;
		memcpy(c->culprit, f->gpu.other_comm, COMM_LEN);
	}
	inc->cause_count = 1;
}

static struct incident *begin(const struct finding *f, const struct delay *l, uint64_t lost_ns,
	uint64_t steps, struct incident_list *out)
{
	const struct step_account *a = f->account;
	struct incident *inc = incident_begin(out, problem_of(f, l));

	if (!inc)
		return NULL;
	incident_id(inc, a->pid, a->lost_ns ? a->slow_first.ns : a->first.ns);
	snprintf(inc->id + strlen(inc->id), sizeof(inc->id) - strlen(inc->id), "-%s",
		account_line_id((enum account_line)MIN((int)l->kind, ACCOUNT_UNKNOWN)));
	memcpy(inc->comm, a->comm, COMM_LEN);
	inc->last.ns = a->lost_ns ? a->slow_last.ns : a->last.ns;
	inc->source = SOURCE_HOST;
	inc->op = HOST_LEDGER;
	inc->unit = "steps";
	inc->count = steps;
	inc->calls = a->steps;
	inc->baseline_ns = a->ordinary_step_ns;
	inc->slow_p50_ns = a->lost_ns ? a->slow_step_ns : a->ordinary_step_ns;
	inc->tail_ratio = (double)inc->slow_p50_ns / (double)MAX(inc->baseline_ns, UINT64_C(1));
	inc->excess_ns = lost_ns;
	inc->explained = l->kind == DELAY_BY_UNKNOWN ? 0 : 1;
	inc->completeness = f->in->completeness;
	inc->period_steps = a->period_steps;
	inc->period_confidence = a->period_confidence;
	if (a->lost_ns && delay_is_lasting(a))
		inc->since = a->slow_first;
	inc->confidence = a->confidence * (double)steps / ((double)steps + STEPS_HALF) *
			  (1 - f->delays.unknown) * completeness_weight(f->in->completeness);
	put_cause(f, l, lost_ns, steps, inc);
	put_stacks(f, l, steps, inc);
	put_steps(f->in->rec, a, inc);
	return inc;
}

/* How long control groups were kept from running by their quota in the time of slow steps (or in all of
 * it); *ret_cpus is the tightest quota, 0: not known. */
static uint64_t throttled_ns(
	const struct recording *rec, const struct step_account *a, double *ret_cpus)
{
	int64_t from = a->lost_ns ? a->slow_first.ns : a->first.ns;
	int64_t to = a->lost_ns ? a->slow_last.ns : a->last.ns;
	uint64_t most = 0;

	*ret_cpus = 0;
	for (size_t i = 0; i < rec->container_count; i++) {
		const struct container_sample *first = &rec->containers[i], *last = first;

		if (first->time.ns < from - READING_NS || first->throttled_us < 0)
			continue;
		if (first->time.ns > to)
			break;
		for (size_t k = i; k < rec->container_count; k++)
			if (rec->containers[k].cgroup_id == first->cgroup_id &&
				rec->containers[k].time.ns <= to + READING_NS)
				last = &rec->containers[k];
		if (last->throttled_us <= first->throttled_us ||
			(uint64_t)(last->throttled_us - first->throttled_us) * NS_PER_US <= most)
			continue;
		most = (uint64_t)(last->throttled_us - first->throttled_us) * NS_PER_US;
		if (last->quota_us > 0 && last->period_us > 0)
			*ret_cpus = (double)last->quota_us / (double)last->period_us;
	}
	return most;
}

static void explain_cpu(
	const struct finding *f, const struct delay *l, uint64_t lost_ns, struct incident *inc)
{
	double cpus;
	uint64_t ns;

	if (l->kind != DELAY_BY_CPU)
		return;
	ns = throttled_ns(f->in->rec, f->account, &cpus);
	if ((double)ns > QUOTA_SHARE * (double)lost_ns)
		delay_text_quota(ns, cpus, inc);
}

static void report_slow(const struct finding *f, struct incident_list *out)
{
	const struct step_account *a = f->account;

	for (int i = 0; i < f->delays.count; i++) {
		const struct delay *l = &f->delays.items[i];
		uint64_t lost = (uint64_t)(l->share * (double)a->lost_ns);
		double share = (double)lost / (double)observed_ns(a);
		struct incident *inc;

		if (l->share < CAUSE_SHARE || share < LOW_SHARE || lost < LEAST_NS ||
			(delay_is_idle(a, l) && !delay_is_lasting(a)) ||
			(l->kind == DELAY_BY_UNKNOWN && i > 0)) /* the others' texts say it */
			continue;
		inc = begin(f, l, lost, a->slow_steps, out);
		if (!inc)
			return;
		inc->severity = MIN(delay_severity(f->in->rec, a, &f->gpu, l, share),
			problem_row(inc->problem)->worst);
		delay_text_slow(f->in->rec, a, &f->delays, l, &f->gpu, inc);
		explain_cpu(f, l, lost, inc);
		incident_keep(out, inc);
	}
}

static void report_waste(const struct finding *f, struct incident_list *out)
{
	const struct step_account *a = f->account;

	for (int i = 0; i < f->delays.count; i++) {
		const struct delay *l = &f->delays.items[i];
		struct incident *inc;

		if (!delay_is_waste(a, l))
			continue;
		inc = begin(f, l, l->slow_ns * a->ordinary_steps, a->ordinary_steps, out);
		if (!inc)
			return;
		inc->severity =
			MIN(delay_waste_severity(l->share), problem_row(inc->problem)->worst);
		if (delay_is_of_tracer(l))
			inc->severity = MIN(inc->severity, (enum severity)SEVERITY_MEDIUM);
		delay_text_waste(f->in->rec, a, l, inc);
		explain_cpu(f, l, inc->excess_ns, inc);
		incident_keep(out, inc);
	}
}

/* Problems that are about lost time of one process, which its account is about, too. */
static bool is_about_time(enum problem p)
{
	switch (p) {
	case PROBLEM_SLOW_CALL:
	case PROBLEM_STARVATION:
	case PROBLEM_AGENT_COST:
	case PROBLEM_CPU_CONTENTION:
	case PROBLEM_TOOL_CALLS:
	case PROBLEM_GOODPUT:
	case PROBLEM_THROTTLE:
	case PROBLEM_NOISY_NEIGHBOUR:
	case PROBLEM_COLD_START:
	case PROBLEM_GPU_SHARING:
	case PROBLEM_CHECKPOINT:
	case PROBLEM_PCIE:
	case PROBLEM_MODEL_SWAP: return true;
	default: return false;
	}
}

static bool has_cause(const struct incident *inc)
{
	return (inc->severity >= SEVERITY_MEDIUM || tracer_is_blamed(inc)) &&
	       (inc->problem != PROBLEM_GOODPUT || inc->explained > 0.5);
}

/* Whether @inc knows the cause of less than half of what the account's first cause took. */
static bool knows_less(const struct finding *f, const struct incident *inc)
{
	double told = f->delays.count ? f->delays.items[0].share * (double)f->account->lost_ns : 0;

	return (double)inc->excess_ns * inc->explained < LESS_SHARE * told;
}

/* detect_contention.c has added up the whole recording: what slow steps lost to the CPU says more. */
static bool says_less(const struct finding *f, const struct incident *inc)
{
	return inc->source == SOURCE_HOST && inc->op == HOST_SCHED_SWITCH && f->account->lost_ns &&
	       f->delays.count && f->delays.items[0].kind == DELAY_BY_CPU;
}

/* What is said of pauses between calls, while the account knows in which of them the time went, and where. */
static bool says_where(const struct finding *f, const struct incident *inc)
{
	const struct delay *first = f->delays.count ? &f->delays.items[0] : NULL;

	return inc->problem == PROBLEM_STARVATION && f->account->lost_ns && first &&
	       first->kind == DELAY_BY_HOST && first->lead && first->lead->stack_hash &&
	       delay_is_lasting(f->account);
}

static bool has_named_cause(const struct finding *f, const struct incident_list *l, uint32_t pid)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].pid == pid && is_about_time(l->items[i].problem) &&
			!says_less(f, &l->items[i]) && !says_where(f, &l->items[i]) &&
			!knows_less(f, &l->items[i]) && has_cause(&l->items[i]))
			return true;
	return false;
}

/* Drops what others said about the lost time of @pid: all of it, or what has no cause. */
static void drop_others(const struct finding *f, struct incident_list *l, uint32_t pid, bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct incident *inc = &l->items[i];
		bool dropped = inc->pid == pid && is_about_time(inc->problem) &&
			       (all || inc->problem == PROBLEM_GOODPUT || says_less(f, inc) ||
				       inc->problem == PROBLEM_STARVATION ||
				       inc->problem == PROBLEM_TOOL_CALLS ||
				       (inc->problem == PROBLEM_PCIE && !has_cause(inc)) ||
				       (inc->problem == PROBLEM_SLOW_CALL && !has_cause(inc)));

		if (!dropped && kept != i)
			l->items[kept] = *inc;
		kept += !dropped;
	}
	l->count = kept;
}

/* Whether the account knows more than that steps take longer: a cause. */
static bool is_named(const struct finding *f)
{
	enum delay_kind kind = f->delays.count ? f->delays.items[0].kind : DELAY_BY_UNKNOWN;

	if (kind == DELAY_BY_GPU && f->account->lost_ns)
		return f->gpu.reason != GPU_BY_NOTHING;
	if (kind == DELAY_BY_UNKNOWN || f->delays.unknown >= 0.5)
		return false;
	return !delay_is_idle(f->account, &f->delays.items[0]) || delay_is_lasting(f->account);
}

static void report(struct finding *f, struct incident_list *out)
{
	const struct step_account *a = f->account;

	f->is_sure = a->origin <= STEP_BY_LOADER && a->confidence >= SURE_STEPS &&
		     f->in->rec->ledger_count;
	if (a->origin == STEP_BY_TIME || a->confidence < SURE_STEPS)
		return;
	delays_find(f->in->rec, a, &f->delays);
	gpu_change_find(f->in->rec, a, &f->gpu);
	if (!f->is_sure && !a->lost_ns)
		return;
	if (!f->is_sure && (has_named_cause(f, out, a->pid) || !is_named(f)))
		return;
	drop_others(f, out, a->pid, f->is_sure);
	if (a->lost_ns)
		report_slow(f, out);
	else
		report_waste(f, out);
}

int detect_steps(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(account_task_done) struct account_task own = {0};
	const struct step_report *accounts = NULL;
	int r = account_get(s->rec, &own, &accounts);

	for (size_t i = 0; r == 0 && i < accounts->count; i++) {
		struct finding f = {.in = s, .account = &accounts->items[i]};

		report(&f, out);
	}
	return r;
}
