/* SPDX-License-Identifier: Apache-2.0 */
/* detect_steps.c - incidents from the accounts of steps.
 *
 * Slow steps: what grew from ordinary to slow ones is what they lost their time to; each cause that
 * has a quarter of the growth, or is one by itself and has a tenth that costs 5 % of the time, is an incident with
 * its share of the lost time. A longer wait for the
 * GPU is a matter of the GPU's clocks, of another process on it, of more work in a step or of work that varies
 * (said as such, LOW), of other kernels than ordinary steps run, or has no known cause.
 *
 * No slow steps, and no doubt that they are steps: a cause that is waste by any standard and takes
 * 15 % of every step is an incident of its own, also where it was there from the first step to the
 * last. So it is beside slow steps, if it is a cause by itself and these are not slow for the same one. A program that does not train
 * may be idle between its requests: then waiting for input is nobody's fault.
 *
 * Severity follows the wall time lost: HIGH from 10 % of the time in steps (in every step: 30 %),
 * MEDIUM from 3 %, LOW from 1 %. Confidence = that of the steps x n/(n+3) of slow ones x the share of
 * the growth that is known x completeness.
 *
 * Where steps are known by more than recurring waits, the account says all there is to say about lost
 * time: other detectors' incidents about slow calls, pauses and slower steps of that process are
 * dropped. Elsewhere theirs stand, and the account speaks of each cause of which they are silent (told.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/accounts/account_task.h"
#include "diagnose/chains/gpu_change.h"
#include "diagnose/chains/delay.h"
#include "diagnose/sentences/delay_text.h"
#include "diagnose/compose/delay_weight.h"
#include "diagnose/chains/quota.h"
#include "diagnose/sentences/steps_show.h"
#include "diagnose/compose/told.h"
#include "diagnose/compose/detector.h"
#include "base/buf.h"
#include "base/text.h"

#define CAUSE_SHARE 0.25
#define OTHER_SHARE 0.10 /* beside a larger one */
#define OTHER_TIME  0.05 /* of the time in steps */
#define LOW_SHARE   0.01
#define LEAST_NS    (20 * NS_PER_MS) /* a few short steps are no job */
#define SURE_STEPS  0.4
#define LESS_SHARE  0.5
#define STEPS_HALF  3.0
#define QUOTA_SHARE 0.3 /* of the time without a CPU: all its threads are stopped together */

struct finding {
	const struct detector_input *in;
	const struct step_account *account;
	struct gpu_change gpu;
	struct delay_list delays;
	bool is_sure; /* by marks of the program itself */
	uint32_t own; /* causes that it tells of, bits by enum delay_kind */
};

static uint64_t observed_ns(const struct step_account *a)
{
	return (uint64_t)MAX(a->last.ns - a->first.ns, (int64_t)1);
}

static bool is_slow(const struct finding *f)
{
	return f->account->lost_ns > 0;
}

static int64_t first_ns(const struct finding *f)
{
	return is_slow(f) ? f->account->slow_first.ns : f->account->first.ns;
}

static int64_t last_ns(const struct finding *f)
{
	return is_slow(f) ? f->account->slow_last.ns : f->account->last.ns;
}

/* Whether the GPU is why @l grew: copies wait for it, too. */
static bool is_gpu(const struct finding *f, const struct delay *l)
{
	return l->kind == DELAY_BY_GPU ||
	       (l->kind == DELAY_BY_COPY && gpu_change_holds_copies(f->account, &f->gpu));
}

static enum problem problem_of(const struct finding *f, const struct delay *l)
{
	if (l->kind == DELAY_BY_PROCESS && l->lead && l->lead->line == ACCOUNT_NETWORK)
		return PROBLEM_TOOL_CALLS;
	if (!is_slow(f) || !is_gpu(f, l))
		return delay_problem(l->kind);
	switch (f->gpu.reason) {
	case GPU_BY_CLOCK: return PROBLEM_THROTTLE;
	case GPU_BY_NEIGHBOUR: return PROBLEM_GPU_SHARING;
	default: return PROBLEM_GOODPUT;
	}
}

static void put_stacks(
	const struct finding *f, const struct delay *l, uint64_t steps, struct incident *inc)
{
	const struct account_entry *e = l->lead;
	uint64_t hash = !e || l->kind == DELAY_BY_STOPPED             ? 0
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

/* Each of the other processes on the GPU has its part in it. */
static void put_others(const struct gpu_others *o, struct incident *inc)
{
	int n = MIN(o->count, GPU_OTHERS_NAMED);
	struct incident_cause whole = inc->causes[0];

	for (int i = 0; i < n; i++) {
		struct incident_cause *c = &inc->causes[i];

		*c = whole;
		c->ns = whole.ns / (uint64_t)n;
		c->culprit_pid = o->named[i].pid;
		memcpy(c->culprit, o->named[i].comm, COMM_LEN);
	}
	inc->cause_count = MAX(n, 1);
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
	}
	inc->cause_count = 1;
	if (problem_of(f, l) == PROBLEM_GPU_SHARING)
		put_others(&f->gpu.others, inc);
}

static struct incident *begin(const struct finding *f, const struct delay *l, uint64_t lost_ns,
	uint64_t steps, struct incident_list *out)
{
	const struct step_account *a = f->account;
	struct incident *inc = incident_begin(out, problem_of(f, l));

	if (!inc)
		return NULL;
	incident_id(inc, a->pid, first_ns(f));
	snprintf(inc->id + strlen(inc->id), sizeof(inc->id) - strlen(inc->id), "-%s%s",
		is_slow(f) ? "" : "every-", delay_id(l->kind));
	memcpy(inc->comm, a->comm, COMM_LEN);
	inc->last.ns = last_ns(f);
	inc->source = SOURCE_HOST;
	inc->op = HOST_LEDGER;
	inc->unit = "steps";
	inc->count = steps;
	inc->calls = a->steps;
	inc->baseline_ns = a->ordinary_step_ns;
	inc->slow_p50_ns = is_slow(f) ? a->slow_step_ns : a->ordinary_step_ns;
	inc->tail_ratio = (double)inc->slow_p50_ns / (double)MAX(inc->baseline_ns, UINT64_C(1));
	inc->excess_ns = lost_ns;
	inc->explained = l->kind == DELAY_BY_UNKNOWN ? 0 : 1;
	inc->completeness = f->in->completeness;
	inc->period_steps = is_slow(f) ? a->period_steps : 0;
	inc->period_confidence = is_slow(f) ? a->period_confidence : 0;
	if (is_slow(f) && delay_is_lasting(a))
		inc->since = a->slow_first;
	inc->confidence = a->confidence * (double)steps / ((double)steps + STEPS_HALF) *
			  (1 - f->delays.unknown) * completeness_weight(f->in->completeness);
	put_cause(f, l, lost_ns, steps, inc);
	put_stacks(f, l, steps, inc);
	steps_show(f->in->rec, a, inc);
	return inc;
}

static void explain_cpu(
	const struct finding *f, const struct delay *l, uint64_t lost_ns, struct incident *inc)
{
	const struct step_account *a = f->account;
	struct quota_stop stop;

	if (l->kind != DELAY_BY_CPU)
		return;
	stop = quota_find(f->in->rec, a->pid, first_ns(f), last_ns(f));
	if ((double)stop.ns > QUOTA_SHARE * (double)lost_ns)
		delay_text_quota(stop.ns, stop.cpus, inc);
}

static uint64_t lost_to(const struct finding *f, const struct delay *l)
{
	return (uint64_t)(l->share * (double)f->account->lost_ns);
}

/* Whether the @i-th delay has a part of what slow steps lost that is worth a word of its own: a large one, or a
 * smaller one of a large loss. */
static bool is_large(const struct finding *f, int i)
{
	const struct delay *l = &f->delays.items[i];
	uint64_t lost = lost_to(f, l);
	double share = (double)lost / (double)observed_ns(f->account);

	if (l->share < CAUSE_SHARE &&
		(l->share < OTHER_SHARE || share < OTHER_TIME || !delay_stands_alone(l->kind)))
		return false;
	return share >= LOW_SHARE && lost >= LEAST_NS &&
	       (!delay_is_idle(f->account, l) || delay_is_lasting(f->account)) &&
	       (l->kind != DELAY_BY_UNKNOWN || i == 0); /* else the others' texts say it */
}

static void report_slow(const struct finding *f, struct incident_list *out)
{
	const struct step_account *a = f->account;

	for (int i = 0; i < f->delays.count; i++) {
		const struct delay *l = &f->delays.items[i];
		uint64_t lost = lost_to(f, l);
		double share = (double)lost / (double)observed_ns(a);
		struct incident *inc;

		if (!(f->own >> l->kind & 1))
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

/* What every ordinary step has too much of. What slow ones have even more of is told with them. */
static void report_waste(const struct finding *slow, struct incident_list *out)
{
	struct step_account a;
	struct finding f = {.in = slow->in, .account = &a, .is_sure = slow->is_sure};

	step_account_ordinary(slow->account, &a);
	delays_find(f.in->rec, &a, &f.delays);
	for (int i = 0; i < f.delays.count; i++) {
		const struct delay *l = &f.delays.items[i];
		struct incident *inc;

		if (!delay_is_waste(&a, l) || slow->own >> l->kind & 1 ||
			(is_slow(slow) && !delay_stands_alone(l->kind)))
			continue;
		inc = begin(&f, l, l->slow_ns * a.ordinary_steps, a.ordinary_steps, out);
		if (!inc)
			return;
		inc->severity =
			MIN(delay_waste_severity(l->share), problem_row(inc->problem)->worst);
		if (delay_is_of_tracer(l))
			inc->severity = MIN(inc->severity, (enum severity)SEVERITY_MEDIUM);
		delay_text_waste(f.in->rec, &a, l, inc);
		explain_cpu(&f, l, inc->excess_ns, inc);
		incident_keep(out, inc);
	}
}

/* detect_contention.c has added up the whole recording: if slow steps lost most of that, they say more. */
static bool says_less(const struct finding *f, const struct incident *inc)
{
	if (inc->source != SOURCE_HOST || inc->op != HOST_SCHED_SWITCH ||
		inc->problem == PROBLEM_NOISY_NEIGHBOUR) /* which the account does not know of */
		return false;
	for (int i = 0; i < f->delays.count; i++)
		if (f->delays.items[i].kind == DELAY_BY_CPU)
			return (double)lost_to(f, &f->delays.items[i]) >=
			       LESS_SHARE * (double)inc->excess_ns;
	return false;
}

/* What is said of pauses between calls, while the account knows in which of them the time went, and where. */
static bool says_where(const struct finding *f, const struct delay *l, const struct incident *inc)
{
	return inc->problem == PROBLEM_STARVATION && l->kind == DELAY_BY_HOST && l->lead &&
	       l->lead->stack_hash && delay_is_lasting(f->account);
}

/* What is said of all copies of the process, while the account knows who makes them longer. */
static bool says_how_much(
	const struct finding *f, const struct delay *l, const struct incident *inc)
{
	return inc->problem == PROBLEM_PCIE && l->kind == DELAY_BY_COPY && is_gpu(f, l);
}

/* Whether others say of half of what @l took that it was this: then it is told. What is one of the smaller
 * causes of another incident is not. */
static bool is_told(const struct finding *f, const struct delay *l, const struct incident_list *out)
{
	uint64_t told = 0;

	for (size_t i = 0; i < out->count; i++) {
		const struct incident *inc = &out->items[i];

		if (inc->pid == f->account->pid && told_is_about_time(inc->problem) &&
			told_has_cause(inc) && !says_less(f, inc) && !says_where(f, l, inc) &&
			!says_how_much(f, l, inc))
			told += told_ns(inc, l->kind);
	}
	return (double)told >= LESS_SHARE * (double)lost_to(f, l);
}

/* Whether the account knows more than that steps take longer: a cause. */
static bool is_named(const struct finding *f, const struct delay *l)
{
	if (l->kind == DELAY_BY_GPU)
		return f->gpu.reason != GPU_BY_NOTHING;
	if (l->kind == DELAY_BY_UNKNOWN || f->delays.unknown >= 0.5)
		return false;
	return !delay_is_idle(f->account, l) || delay_is_lasting(f->account);
}

/* The causes of slow steps that the account tells of. Where steps are not known by marks of the program, others
 * may know better: a cause is the account's if it is named and nobody tells of it. */
static uint32_t find_own(const struct finding *f, const struct incident_list *out)
{
	uint32_t own = 0;

	for (int i = 0; i < f->delays.count; i++) {
		const struct delay *l = &f->delays.items[i];

		if (is_large(f, i) && (f->is_sure || (is_named(f, l) && !is_told(f, l, out))))
			own |= UINT32_C(1) << l->kind;
	}
	return own;
}

/* Problems that are told of calls or pauses alone, also where nobody knows what made them long. */
static bool is_vague(enum problem p)
{
	return p == PROBLEM_STARVATION || p == PROBLEM_TOOL_CALLS || p == PROBLEM_PCIE ||
	       p == PROBLEM_SLOW_CALL;
}

/* What was so before a change that lasts is told after the change. */
static void put_behind(const struct finding *f, struct incident *inc)
{
	if (f->own && delay_is_lasting(f->account) &&
		told_is_of_before(inc, f->account->slow_first.ns))
		inc->severity = MIN(inc->severity, (enum severity)SEVERITY_MEDIUM);
}

static bool tells_of_sharing(const struct finding *f)
{
	for (int i = 0; i < f->delays.count; i++)
		if (f->own >> f->delays.items[i].kind & 1 &&
			problem_of(f, &f->delays.items[i]) == PROBLEM_GPU_SHARING)
			return true;
	return false;
}

/* That a GPU is shared and nothing is slower because of it is not so if the account tells what is. */
static bool is_refuted(const struct finding *f, const struct incident *inc)
{
	return inc->problem == PROBLEM_GPU_SHARING && !inc->excess_ns && tells_of_sharing(f);
}

/* Drops what others said about the lost time of the process: all of it where the account is sure, else what
 * has no cause or is about the same time as a cause that the account tells of. */
static void drop_others(const struct finding *f, struct incident_list *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct incident *inc = &l->items[i];
		bool dropped = inc->pid == f->account->pid && told_is_about_time(inc->problem) &&
			       (f->is_sure || inc->problem == PROBLEM_GOODPUT ||
				       (!told_has_cause(inc) && is_vague(inc->problem)) ||
				       told_is_view(inc, f->own) || told_leads(inc, f->own));

		if (dropped || is_refuted(f, inc))
			continue;
		if (kept != i)
			l->items[kept] = *inc;
		if (inc->pid == f->account->pid) {
			told_cede(&l->items[kept], f->own);
			put_behind(f, &l->items[kept]);
		}
		kept++;
	}
	l->count = kept;
}

static int report(struct finding *f, struct incident_list *out)
{
	const struct step_account *a = f->account;
	int r;

	f->is_sure = a->origin <= STEP_BY_LOADER && a->confidence >= SURE_STEPS &&
		     f->in->rec->ledger_count;
	if (a->origin == STEP_BY_TIME || a->confidence < SURE_STEPS)
		return 0;
	delays_find(f->in->rec, a, &f->delays);
	r = gpu_change_find(f->in->rec, a, &f->gpu);
	if (r < 0)
		return r;
	if (is_slow(f))
		f->own = find_own(f, out);
	if (f->is_sure || f->own)
		drop_others(f, out);
	report_slow(f, out);
	if (f->is_sure)
		report_waste(f, out);
	return 0;
}

int detect_steps(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(account_task_done) struct account_task own = {0};
	const struct step_report *accounts = NULL;
	int r = account_get(s->rec, &own, &accounts);

	for (size_t i = 0; r == 0 && i < accounts->count; i++) {
		struct finding f = {.in = s, .account = &accounts->items[i]};

		r = report(&f, out);
	}
	return r;
}
