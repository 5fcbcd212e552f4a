/* SPDX-License-Identifier: Apache-2.0 */
/* detect_goodput.c - steps that became slower, and steps that are slow every so many.
 *
 * A lasting shift (stat/changepoint.h) of the durations of a process's steps to at least 1.2 times
 * and 200 us more is an incident: since when, from what to what. What began within 2 s or 5 steps
 * of it is listed as a candidate; candidates of the same process with a known cause are taken to
 * explain as much of the excess as they have themselves. Severity: HIGH from 1.5 times, else
 * MEDIUM; LOW if candidates explain 60 % of it, because then they tell the story. Slow calls
 * without a cause that began then are the same story and left out. LOW, too, if the steps do more
 * (step_work.h).
 *
 * Where candidates explain less than half and longer waits for collectives explain at least half,
 * the process waits for a rank that is not in the recording (rank_wait.h). From one side that
 * cannot be told from a GPU that is slower itself, so confidence is x 0.7.
 *
 * Slow calls of an incident that come back every so many steps give it period_steps. Where slow
 * steps (1.5 times the ordinary, 1 ms) are periodic and no incident of the process has a period,
 * that is an incident of its own: MEDIUM if it costs 5 % of the time, else LOW; the cause is not
 * known.
 *
 * Confidence = that of the shift (or period) x that of the steps. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diagnose/compose/detector.h"
#include "diagnose/units/period.h"
#include "diagnose/calls/rank_wait.h"
#include "diagnose/units/step.h"
#include "diagnose/units/step_work.h"
#include "diagnose/sentences/evidence.h"
#include "base/buf.h"
#include "base/text.h"
#include "stat/changepoint.h"
#include "wire/names.h"

#define SLOWER_RATIO    1.2
#define SLOWER_NS       (200 * NS_PER_US)
#define HIGH_RATIO      1.5
#define SAME_TIME_NS    ((int64_t)(2 * NS_PER_S))
#define SAME_TIME_STEPS 5
#define TOLD_SHARE      0.6
#define WAITED_SHARE    0.5
#define WAITED_SURE     0.7 /* what its own GPU had to do first counts as waiting too */
#define SLOW_STEP_RATIO 1.5
#define SLOW_STEP_NS    NS_PER_MS
#define PERIOD_SHARE    0.05
#define PERIOD_SURE     0.6 /* a busy machine has rhythms of its own */
#define CANDIDATES      4
#define STEPS_SHOWN     6

static uint64_t duration(const struct step_list *l, size_t i)
{
	return (uint64_t)(l->items[i].end_ns - l->items[i].start_ns);
}

static void put_time(struct buf *b, int64_t ns)
{
	time_t seconds = (time_t)(ns / (int64_t)NS_PER_S);
	struct tm tm;
	char text[16] = "?";

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	buf_printf(b, "%s UTC", text);
}

/* Lists what began when the steps changed; returns the excess of those that have a cause. */
static uint64_t put_candidates(const struct incident_list *out, size_t count, uint32_t pid,
	int64_t since_ns, int64_t reach_ns, struct buf *b, int *ret_shown)
{
	uint64_t told = 0;
	int shown = 0;

	for (size_t i = 0; i < count; i++) {
		const struct incident *c = &out->items[i];

		if (c->problem == PROBLEM_GOODPUT || c->first.ns < since_ns - reach_ns ||
			c->first.ns > since_ns + reach_ns)
			continue;
		if (c->pid == pid && c->severity >= SEVERITY_MEDIUM)
			told += (uint64_t)(c->explained * (double)c->excess_ns);
		if (shown++ < CANDIDATES)
			buf_printf(b, "%s%s: %s", shown == 1 ? " Began at the same time: " : "; ",
				problem_row(c->problem)->id, c->summary);
	}
	buf_puts(b, shown ? "." : " No other incident began at the same time.");
	*ret_shown = shown;
	return told;
}

static int put_steps(const struct detector_input *s, const struct step_list *l, const size_t *at,
	size_t n, struct incident *inc)
{
	int64_t from = INT64_MAX, to = 0;

	for (size_t i = 0; i < MIN(n, (size_t)STEPS_SHOWN); i++) {
		const struct step *p = &l->items[at[i]];
		const struct event *e = &s->rec->events[p->event];

		incident_step(inc, p->start_ns, duration(l, at[i]), "CUDA", "step", "step %zu",
			at[i] + 1);
		incident_evidence(inc, e);
		from = MIN(from, e->start.ns);
		to = MAX(to, p->end_ns);
	}
	return evidence_sql_put(s->rec, from, to, inc);
}

static struct incident *incident_of_steps(const struct detector_input *s, const struct step_list *l,
	int64_t first_ns, struct incident_list *out)
{
	const struct event *e = &s->rec->events[l->items[0].event];
	struct incident *inc = incident_begin(out, PROBLEM_GOODPUT);

	if (!inc)
		return NULL;
	incident_id(inc, l->pid, first_ns);
	memcpy(inc->comm, e->comm, COMM_LEN);
	inc->last.ns = l->items[l->count - 1].start_ns;
	inc->source = e->source;
	inc->op = e->op;
	inc->unit = "steps";
	inc->completeness = s->completeness;
	return inc;
}

/* What to do, @others having been named. An older recording, or one of the published agent, knows calls alone. */
static void advise(const struct recording *rec, int others, struct incident *inc)
{
	if (others)
		incident_fix(inc, "Check the incidents that began at the same time");
	else if (!rec->ledger_count)
		incident_fix(inc,
			"Record again with `sudo ingero trace`: this file does not say what threads did between their calls");
}

static void write_shift(const struct step_list *l, const struct changepoint *c, uint64_t told,
	struct buf *b, struct incident *inc)
{
	char before[TEXT_MAX], after[TEXT_MAX], excess[TEXT_MAX], percent[TEXT_MAX];
	_cleanup_buf_ struct buf t = BUF_INIT(1024);

	text_format_duration(before, c->before);
	text_format_duration(after, c->after);
	text_format_percent(percent, inc->tail_ratio - 1);
	buf_puts(&t, "since ");
	put_time(&t, inc->since.ns);
	buf_printf(&t, " steps take %s instead of %s, %s longer", after, before, percent);
	snprintf(inc->summary, sizeof(inc->summary), "%s", buf_str(&t));
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s",
		told ? "see the incidents that began at the same time"
		     : "unknown: steps became slower and no recorded event explains it");
	buf_clear(&t);
	buf_printf(&t,
		"%zu steps of %s (pid %u), found from its waits (confidence %.2f): the median of "
		"the first %zu is %s, of the %zu since then %s. That cost %s. A larger batch or a longer sequence has the same effect.",
		l->count, inc->comm, inc->pid, l->confidence, c->index, before, l->count - c->index,
		after, text_format_duration(excess, inc->excess_ns));
	buf_puts(&t, buf_str(b));
	snprintf(inc->explanation, sizeof(inc->explanation), "%s", buf_str(&t));
}

/* Says that the steps of @inc, of which others explain too little, wait for ranks elsewhere. */
static void describe_rank_wait(const struct rank_wait *w, struct incident *inc)
{
	uint64_t waited = MIN(w->excess_ns, inc->excess_ns);
	double share = (double)waited / (double)MAX(inc->excess_ns, UINT64_C(1));
	char each[TEXT_MAX], percent[TEXT_MAX], op[32], comm[48] = "";
	size_t n = strlen(inc->explanation);

	if (share < WAITED_SHARE || inc->explained >= WAITED_SHARE)
		return;
	if (w->row->c.comm_hash)
		snprintf(comm, sizeof(comm), " (communicator %016" PRIx64 ")", w->row->c.comm_hash);
	inc->explained = share;
	inc->confidence *= WAITED_SURE;
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"waits for other ranks: %s more of each step after %s%s, which is %s of the extra time; the late rank is not in this recording",
		text_format_duration(each, w->step_ns), wire_op_name(SOURCE_NCCL, w->row->op, op),
		comm, text_format_percent(percent, share));
	snprintf(inc->explanation + n, sizeof(inc->explanation) - n,
		" A wait is the synchronisation after a collective: it includes the work that was still queued on this GPU.");
	inc->fix_count = 0;
	incident_fix(inc, "Check whether this GPU became slower: `nvidia-smi -q -d PERFORMANCE`");
	incident_fix(inc, "Find the late rank: `ingero merge` the nodes' recordings and explain "
			  "the result, or query the other nodes: `ingero explain --nodes`");
}

/* Steps that do more take longer: that is no fault. */
static void describe_work(const struct recording *rec, const struct step_list *l,
	const struct changepoint *c, struct incident *inc)
{
	struct step_work w = step_work_compare(rec, l, inc->since.ns, c->before, c->after);
	char before[TEXT_MAX], after[TEXT_MAX];

	if (!w.is_more)
		return;
	inc->severity = SEVERITY_LOW;
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"more work: a step launches %.0f kernels instead of %.0f and copies %s instead of %s",
		w.launches_after, w.launches_before,
		text_format_bytes(after, (uint64_t)w.bytes_after),
		text_format_bytes(before, (uint64_t)w.bytes_before));
}

static int shift_report(const struct detector_input *s, const struct step_list *l,
	const struct changepoint *c, struct incident_list *out)
{
	const struct step *first = &l->items[c->index];
	int64_t reach =
		MAX(SAME_TIME_NS, (int64_t)MIN(c->after, UINT64_C(1) << 50) * SAME_TIME_STEPS);
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	size_t shown[] = {c->index - 1, c->index, l->count - 1};
	struct rank_wait waits;
	struct incident *inc;
	uint64_t told;
	int r, others;

	incident_cover(out, l->pid, first->start_ns - reach, INT64_MAX);
	inc = incident_of_steps(s, l, first->start_ns, out);
	if (!inc)
		return 0;
	told = put_candidates(out, out->count, l->pid, first->start_ns, reach, &b, &others);
	inc->since.ns = first->start_ns;
	inc->count = l->count - c->index;
	inc->baseline_ns = c->before;
	inc->slow_p50_ns = c->after;
	inc->tail_ratio = (double)c->after / (double)MAX(c->before, UINT64_C(1));
	for (size_t i = c->index; i < l->count; i++)
		inc->excess_ns += duration(l, i) > c->before ? duration(l, i) - c->before : 0;
	told = MIN(told, inc->excess_ns);
	inc->explained = (double)told / (double)MAX(inc->excess_ns, UINT64_C(1));
	inc->severity = inc->explained >= TOLD_SHARE    ? SEVERITY_LOW
			: inc->tail_ratio >= HIGH_RATIO ? SEVERITY_HIGH
							: SEVERITY_MEDIUM;
	inc->confidence = c->confidence * l->confidence;
	write_shift(l, c, told, &b, inc);
	advise(s->rec, others, inc);
	describe_work(s->rec, l, c, inc);
	r = rank_wait_find(s->rec, l, c->index, &waits);
	if (r > 0)
		describe_rank_wait(&waits, inc);
	if (r >= 0)
		r = put_steps(s, l, shown, ARRAY_SIZE(shown), inc);
	if (r == 0)
		incident_keep(out, inc);
	return b.err ? b.err : r;
}

static const struct slow_episode *episode_of(const struct detection *d, const struct incident *inc)
{
	for (size_t i = 0; i < d->episode_count; i++) {
		const struct slow_episode *s = &d->slow_episodees[i];
		const struct op_group *g = &d->ops.groups[s->group];

		if (g->pid == inc->pid && g->source == inc->source && g->op == inc->op &&
			d->slow[s->first].start_ns == inc->first.ns)
			return s;
	}
	return NULL;
}

/* Also those that detect_neighbour.c gave their name. */
static bool is_of_slow_calls(const struct incident *inc)
{
	return inc->problem == PROBLEM_SLOW_CALL || inc->problem == PROBLEM_CPU_CONTENTION ||
	       inc->problem == PROBLEM_NOISY_NEIGHBOUR;
}

/* Gives @inc, slow calls of one op, their period. Returns whether it has one. 0, 1 or -ENOMEM. */
static int mark_period(
	const struct detector_input *s, const struct step_list *l, struct incident *inc)
{
	const struct detection *d = s->slow;
	const struct slow_episode *slow_episode = episode_of(d, inc);
	_cleanup_free_ size_t *at = NULL;
	struct periodicity period;
	size_t n;

	if (inc->period_steps)
		return 1;
	if (!is_of_slow_calls(inc) || !slow_episode)
		return 0;
	at = calloc(slow_episode->count + 1, sizeof(*at));
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < slow_episode->count; i++)
		at[i] = step_at(l, d->slow[slow_episode->first + i].start_ns);
	if (!period_of_steps(l, at, slow_episode->count, &period))
		return 0;
	inc->period_steps = (uint32_t)MIN(lround(period.period), 1000000L);
	inc->period_confidence = period.confidence;
	n = strlen(inc->summary);
	snprintf(inc->summary + n, sizeof(inc->summary) - n, "; every %u steps", inc->period_steps);
	return 1;
}

/* A step in the time of slow calls that are told of has its reason there. */
static bool is_covered(const struct incident_list *out, uint32_t pid, int64_t start_ns)
{
	for (size_t i = 0; i < out->count; i++) {
		const struct incident *inc = &out->items[i];

		if (inc->pid == pid && is_of_slow_calls(inc) && inc->severity >= SEVERITY_MEDIUM &&
			start_ns >= inc->first.ns && start_ns <= inc->last.ns)
			return true;
	}
	return false;
}

static int slow_steps_report(
	const struct detector_input *s, const struct step_list *l, struct incident_list *out)
{
	uint64_t limit = MAX((uint64_t)((double)l->ordinary_ns * SLOW_STEP_RATIO),
		l->ordinary_ns + SLOW_STEP_NS);
	_cleanup_free_ size_t *at = calloc(l->count + 1, sizeof(*at));
	char each[TEXT_MAX], usual[TEXT_MAX];
	struct periodicity period;
	struct incident *inc;
	uint64_t excess = 0;
	size_t n = 0;
	int r;

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++)
		if (duration(l, i) > limit && !is_covered(out, l->pid, l->items[i].start_ns)) {
			at[n++] = i;
			excess += duration(l, i) - l->ordinary_ns;
		}
	if (!period_of_steps(l, at, n, &period) || period.confidence < PERIOD_SURE)
		return 0;
	inc = incident_of_steps(s, l, l->items[at[0]].start_ns, out);
	if (!inc)
		return 0;
	inc->count = n;
	inc->excess_ns = excess;
	inc->baseline_ns = l->ordinary_ns;
	inc->slow_p50_ns = l->ordinary_ns + excess / n;
	inc->period_steps = (uint32_t)MIN(lround(period.period), 1000000L);
	inc->period_confidence = period.confidence;
	inc->confidence = period.confidence;
	inc->severity = (double)excess >= PERIOD_SHARE * (double)(l->items[l->count - 1].end_ns -
								  l->items[0].start_ns)
				? SEVERITY_MEDIUM
				: SEVERITY_LOW;
	snprintf(inc->summary, sizeof(inc->summary), "every %u steps one takes %s instead of %s",
		inc->period_steps, text_format_duration(each, inc->slow_p50_ns),
		text_format_duration(usual, l->ordinary_ns));
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"unknown: no other incident covers these steps");
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%zu of %zu steps of %s (pid %u) take more than 1.5 times the usual %s, at regular intervals (confidence %.2f). No other incident of the process is as regular.",
		n, l->count, inc->comm, inc->pid, usual, period.confidence);
	advise(s->rec, 0, inc);
	r = put_steps(s, l, at, n, inc);
	if (r == 0)
		incident_keep(out, inc);
	return r;
}

/* Ranks that wait for a late one have slow steps for that reason: it is told already. */
static bool waits_for_a_rank(
	const struct recording *rec, const struct incident_list *out, uint32_t pid)
{
	bool is_told = false;

	for (size_t i = 0; i < out->count; i++)
		is_told = is_told || ((out->items[i].problem == PROBLEM_STRAGGLER ||
					      out->items[i].problem == PROBLEM_NCCL_HANG) &&
					     out->items[i].severity >= SEVERITY_MEDIUM);
	for (size_t i = 0; is_told && i < rec->collective_count; i++)
		if (rec->collectives[i].pid == pid)
			return true;
	return false;
}

static int process_report(
	const struct detector_input *s, const struct step_list *l, struct incident_list *out)
{
	_cleanup_free_ uint64_t *values = calloc(l->count + 1, sizeof(*values));
	bool has_period = false;
	struct changepoint c;
	int r = 0;

	if (!values)
		return -ENOMEM;
	if (waits_for_a_rank(s->rec, out, l->pid))
		return 0;
	for (size_t i = 0; r >= 0 && i < out->count; i++)
		if (out->items[i].pid == l->pid) {
			r = mark_period(s, l, &out->items[i]);
			has_period = has_period || r > 0;
		}
	if (r >= 0 && !has_period)
		r = slow_steps_report(s, l, out);
	if (r < 0)
		return r;
	for (size_t i = 0; i < l->count; i++)
		values[i] = duration(l, i);
	if (!changepoint_find(values, l->count, &c) || c.after <= c.before ||
		(double)c.after < SLOWER_RATIO * (double)c.before || c.after - c.before < SLOWER_NS)
		return 0;
	return shift_report(s, l, &c, out);
}

int detect_goodput(const struct detector_input *s, struct incident_list *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->steps->count; i++)
		r = process_report(s, &s->steps->lists[i], out);
	return r;
}
