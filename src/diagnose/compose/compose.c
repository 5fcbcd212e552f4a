/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/compose/compose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/chains/delay_weight.h"
#include "diagnose/compose/diagnose.h"
#include "diagnose/compose/gain.h"
#include "diagnose/compose/rank_story.h"
#include "diagnose/compose/severity.h"
#include "diagnose/sentences/delay_subject.h"
#include "diagnose/sentences/delay_text.h"
#include "diagnose/sentences/span_text.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"

#define STORIES_MAX 64
#define STALL_SURE  0.7
#define BIT_OF(k)   (UINT32_C(1) << (k))
#define BIT(NAME)   BIT_OF(DELAY_BY_##NAME)

STATIC_ASSERT((int)DELAY_KINDS < 32);

/* What the time went into that a state finding tells of, whatever the account calls it. */
static uint32_t kinds_of_problem(enum problem p)
{
	switch (p) {
	case PROBLEM_GRAPH_RECAPTURE:
		return BIT(GRAPH) | BIT(CALL) | BIT(ALLOCATION) | BIT(HOST) | BIT(LAUNCH) |
		       BIT(COMPILE);
	case PROBLEM_COLD_START:
		return BIT(CALL) | BIT(LAUNCH) | BIT(ALLOCATION) | BIT(HOST) | BIT(GRAPH) |
		       BIT(COMPILE);
	case PROBLEM_GPU_MEMORY: return BIT(ALLOCATION);
	case PROBLEM_NCCL_HANG: /* who waits for ever spins, sleeps and is preempted: no matter */
		return rank_story_waits() | BIT(CPU) | BIT(HOST) | BIT(ASLEEP);
	case PROBLEM_STRAGGLER: return rank_story_waits();
	default: return 0;
	}
}

/* Where no rank is to blame the load moves between them: what each does of its own is that load. */
static uint32_t kinds_of(const struct incident *i)
{
	bool moves = i->problem == PROBLEM_STRAGGLER && i->culprit_rank < 0;

	return kinds_of_problem(i->problem) | (moves ? BIT(ASLEEP) | BIT(HOST) : 0);
}

static bool is_of(const struct incident *i, uint32_t pid)
{
	if (i->pid == pid)
		return true;
	for (int k = 0; k < i->pid_count; k++)
		if (i->pids[k] == pid)
			return true;
	return false;
}

/* Ranks that wait for one that never comes are told with that, as is what ranks do of their own where load moves. */
static bool is_victim(const struct rank_jobs *jobs, const struct incident *i, uint32_t pid)
{
	bool moves = i->problem == PROBLEM_STRAGGLER && i->culprit_rank < 0;

	return (moves || i->problem == PROBLEM_NCCL_HANG) && i->severity >= SEVERITY_MEDIUM &&
	       (is_of(i, pid) || rank_jobs_meet(jobs, i->pid, pid));
}

struct stories { /* what is told already, or with another */
	struct rank_jobs jobs;
	const struct incident *states;
	size_t state_count;
	const struct time_finding *joined[STORIES_MAX];
	size_t joined_count;
};

/* Whether @f is told with a state finding, or has been joined to one. */
static bool is_told(
	const struct time_findings *all, const struct time_finding *f, const struct stories *t)
{
	for (size_t i = 0; i < t->joined_count; i++)
		if (t->joined[i] == f)
			return true;
	for (size_t i = 0; i < t->state_count; i++) {
		const struct incident *s = &t->states[i];

		if (rank_story_tells(&t->jobs, s, all->account->pid, f))
			return true;
		if (!(kinds_of(s) >> f->delay.kind & 1))
			continue;
		if (is_victim(&t->jobs, s, all->account->pid))
			return true;
		if (s->problem != PROBLEM_STRAGGLER && is_of(s, all->account->pid) &&
			(double)s->excess_ns >= THRESHOLD(CHAIN_MOST) * (double)f->lost_ns)
			return true;
	}
	return false;
}

static uint32_t culprit_of(const struct time_findings *all, const struct time_finding *f)
{
	if (f->problem == PROBLEM_GPU_SHARING && all->gpu.others.count)
		return all->gpu.others.named[0].pid;
	return f->delay.end.pid ? f->delay.end.pid : f->delay.lead ? f->delay.lead->culprit_pid : 0;
}

/* Which of two processes that hold each other up is told: one that knows since when, then who lost more. */
static bool is_before(
	const struct time_finding *g, uint32_t pid, const struct time_finding *than, uint32_t other)
{
	if (g->contrast != than->contrast)
		return g->contrast == CONTRAST_SLOW;
	return g->lost_ns > than->lost_ns || (g->lost_ns == than->lost_ns && pid < other);
}

/* Whether the process that @f blames blames this one for the same, which no state finding tells of, and lost more, or
 * as much and stands before it. */
static bool is_mutual(const struct time_findings *list, size_t n, size_t at,
	const struct time_finding *f, const struct stories *t)
{
	uint32_t other = culprit_of(&list[at], f), own = list[at].account->pid;

	for (size_t i = 0; other && i < n; i++) {
		if (i == at || list[i].account->pid != other)
			continue;
		for (int k = 0; k < list[i].count; k++) {
			const struct time_finding *g = &list[i].items[k];

			if (g->problem == f->problem && !g->is_harmless &&
				culprit_of(&list[i], g) == own && is_before(g, other, f, own) &&
				!is_told(&list[i], g, t))
				return true;
		}
	}
	return false;
}

static int64_t first_ns(const struct step_account *a)
{
	return a->lost_ns ? a->slow_first.ns : a->first.ns;
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

/* How much of the delay is the culprit's: of its chain's end, else of the entry that names it. */
static double culprit_share(const struct delay *d)
{
	double grown = (double)d->slow_ns - (double)d->ordinary_ns;
	double own = d->lead ? (double)d->lead->slow_ns - (double)d->lead->ordinary_ns : 0;

	if (d->end.share > 0)
		return MIN(d->end.share, 1.0) * (d->end.who_share > 0 ? d->end.who_share : 1);
	return grown > 0 && own > 0 ? MIN(own / grown, 1.0) : 1;
}

static bool is_disk(enum resource r)
{
	return r == RESOURCE_DISK_READ || r == RESOURCE_DISK_WRITE;
}

static void put_cause(
	const struct time_findings *all, const struct time_finding *f, struct incident *inc)
{
	const struct account_entry *lead = f->delay.lead;
	struct incident_cause *c = &inc->causes[0];

	*c = (struct incident_cause){.cause = is_disk(f->delay.end.resource)
						      ? CAUSE_BLOCK_IO
						      : delay_cause(f->delay.kind),
		.ns = f->lost_ns,
		.calls = f->units,
		.culprit_share = culprit_share(&f->delay)};
	inc->cause_count = 1;
	if (f->problem == PROBLEM_GPU_SHARING && all->gpu.others.count) {
		put_others(&all->gpu.others, inc);
		return;
	}
	if (resource_is(f->delay.end.resource, RESOURCE_HAS_PROCESS) && f->delay.end.who[0]) {
		c->culprit_pid = f->delay.end.pid;
		if (!c->culprit_pid && lead &&
			!strncmp(lead->culprit, f->delay.end.who, COMM_LEN - 1))
			c->culprit_pid = lead->culprit_pid; /* one of several */
		c->culprit_count = f->delay.end.count > 1 ? f->delay.end.count : 0;
		snprintf(c->culprit, sizeof(c->culprit), "%s", f->delay.end.who);
	} else if (lead && lead->culprit[0]) {
		c->culprit_pid = lead->culprit_pid;
		memcpy(c->culprit, lead->culprit, COMM_LEN);
	} else if (lead && f->delay.kind == DELAY_BY_PROCESS) {
		c->culprit_pid = lead->pid;
		memcpy(c->culprit, lead->comm, COMM_LEN);
	}
}

static void put_figures(
	const struct time_findings *all, const struct time_finding *f, struct incident *inc)
{
	const struct step_account *a = time_finding_account(all, f);
	bool is_slow = f->contrast == CONTRAST_SLOW;

	incident_id(inc, a->pid, first_ns(a));
	snprintf(inc->id + strlen(inc->id), sizeof(inc->id) - strlen(inc->id), "-%s%s",
		is_slow ? "" : "every-", delay_id(f->delay.kind));
	memcpy(inc->comm, a->comm, COMM_LEN);
	inc->last = is_slow ? a->slow_last : a->last;
	inc->source = SOURCE_HOST;
	inc->op = HOST_LEDGER;
	inc->unit = step_origin_units(a->origin);
	inc->count = f->units;
	inc->calls = a->steps;
	inc->baseline_ns = a->ordinary_step_ns;
	inc->slow_p50_ns = is_slow ? a->slow_step_ns : a->ordinary_step_ns;
	inc->tail_ratio = (double)inc->slow_p50_ns / (double)MAX(inc->baseline_ns, UINT64_C(1));
	inc->excess_ns = f->lost_ns;
	inc->explained = f->delay.kind == DELAY_BY_UNKNOWN ? 0
			 : f->delay.end.share > 0          ? MIN(f->delay.end.share, 1.0)
							   : 1;
	inc->period_steps = is_slow ? a->period_steps : 0;
	inc->period_confidence = is_slow ? a->period_confidence : 0;
	if (is_slow && delay_is_lasting(a))
		inc->since = a->slow_first;
	inc->confidence = f->confidence;
	inc->severity = f->is_harmless
				? SEVERITY_LOW
				: severity_of(f->share, f->confidence, !is_slow || f->is_routine);
	inc->severity = MIN(inc->severity, problem_row(inc->problem)->worst);
}

/* The share of what grew in slow units that something can be done about. */
static double told_share(const struct time_findings *all)
{
	double share = 0;

	for (int i = 0; i < all->count; i++)
		if (all->items[i].contrast == CONTRAST_SLOW &&
			all->items[i].delay.kind != DELAY_BY_UNKNOWN)
			share += all->items[i].delay.share;
	return share;
}

/* What is told of all units: each of these has its own promise. */
static uint32_t whole_kinds(const struct time_findings *all)
{
	uint32_t kinds = 0;

	for (int i = 0; i < all->count; i++)
		if (all->items[i].contrast == CONTRAST_WHOLE)
			kinds |= BIT_OF(all->items[i].delay.kind) | all->items[i].with;
	return kinds;
}

/* "…; part of it is copying to and from the GPU" */
static void put_parts(const struct time_finding *f, struct incident *inc)
{
	const char *before = "; part of it is ";

	for (int k = 0; k < DELAY_KINDS; k++) {
		size_t len = strlen(inc->root_cause);

		if (!(f->with >> k & 1))
			continue;
		snprintf(inc->root_cause + len, sizeof(inc->root_cause) - len, "%s%s", before,
			delay_text((enum delay_kind)k));
		before = ", ";
	}
}

static void add(const struct time_findings *all, const struct time_finding *f, double completeness,
	struct incident_list *out)
{
	const struct step_account *a = time_finding_account(all, f);
	struct incident *inc = incident_begin(out, f->problem);
	const struct delay_list alone = {.items = {f->delay}, .count = 1};
	struct gain_facts facts;
	struct gain worth;

	inc->completeness = completeness;
	put_figures(all, f, inc);
	put_cause(all, f, inc);
	steps_show(all->rec, a, inc);
	if (f->contrast == CONTRAST_SLOW) {
		delay_text_write(all->rec, a, &all->slow_delays, &f->delay, &all->gpu, inc);
		gain_of(a, &f->delay, told_share(all), NULL, &worth);
	} else {
		delay_text_write(all->rec, a, &alone, &f->delay, NULL, inc);
		gain_find(all->rec, a, &f->delay, whole_kinds(all), &facts);
		gain_of(a, &f->delay, 1, &facts, &worth);
	}
	gain_put(&worth, inc);
	put_parts(f, inc);
	incident_keep(out, inc);
}

/* What nobody need be told of beside an incident of time: notes that say that the same had no effect. */
static bool is_refuted(const struct incident *note, const struct incident *all, size_t n)
{
	if (note->severity != SEVERITY_LOW || note->excess_ns ||
		(note->problem != PROBLEM_THROTTLE && note->problem != PROBLEM_GPU_SHARING))
		return false;
	for (size_t i = 0; i < n; i++)
		if (&all[i] != note && all[i].problem == note->problem && all[i].excess_ns)
			return true;
	return false;
}

static bool is_blamed(const struct incident *i, uint32_t pid)
{
	for (int k = 0; k < i->cause_count; k++)
		if (i->pid != pid && i->causes[k].culprit_pid == pid &&
			i->severity >= SEVERITY_MEDIUM)
			return true;
	return false;
}

/* Whether it is about lost time, not about a state. */
static bool is_of_time(const struct incident *i)
{
	return i->source == SOURCE_HOST && i->op == HOST_LEDGER;
}

/* Errors after which a process ends. That compiling or allocating takes long is none. */
static bool is_fatal(const struct incident *i)
{
	if (is_of_time(i))
		return false;
	switch (i->problem) {
	case PROBLEM_KERNEL_COMPILER:
	case PROBLEM_DEVICE_ASSERT:
	case PROBLEM_GPU_MEMORY:
	case PROBLEM_VERSION_MISMATCH:
	case PROBLEM_NCCL_HANG:
		return i->severity >= SEVERITY_MEDIUM || i->problem == PROBLEM_KERNEL_COMPILER;
	default: return false;
	}
}

/* Whether the end of a process is part of another story: somebody ended what slowed a job down, or it crashed of an
 * error that is told. */
static bool is_consequence(const struct incident *end, const struct incident *all, size_t n)
{
	if (end->problem != PROBLEM_ORCHESTRATION || end->severity > SEVERITY_MEDIUM)
		return false;
	for (size_t i = 0; i < n; i++)
		if (end->is_willed ? is_blamed(&all[i], end->pid)
				   : is_fatal(&all[i]) && all[i].pid == end->pid)
			return true;
	return false;
}

/* Whether calls of a rank failed because the collectives of its job do not come together any more. */
static bool is_abandoned(const struct rank_jobs *jobs, const struct incident *failed,
	const struct incident *all, size_t n)
{
	if (failed->problem != PROBLEM_DEVICE_ASSERT || failed->source != SOURCE_NCCL)
		return false;
	for (size_t i = 0; i < n; i++)
		if (all[i].problem == PROBLEM_NCCL_HANG && all[i].severity >= SEVERITY_MEDIUM &&
			(all[i].pid == failed->pid ||
				rank_jobs_meet(jobs, all[i].pid, failed->pid)))
			return true;
	return false;
}

/* Whether transfers that take long "though all ranks are in time" are waits for a rank of the same job that is told to be
 * late: its host came in time, its GPU did not. */
static bool is_waited(const struct rank_jobs *jobs, const struct incident *slow,
	const struct incident *all, size_t n)
{
	if (slow->problem != PROBLEM_STRAGGLER || slow->culprit_rank >= 0 || !slow->unit ||
		strcmp(slow->unit, "transfers") != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (all[i].problem == PROBLEM_STRAGGLER && all[i].culprit_rank >= 0 &&
			2 * all[i].excess_ns >= slow->excess_ns &&
			(all[i].pid == slow->pid || rank_jobs_meet(jobs, all[i].pid, slow->pid)))
			return true;
	return false;
}

static void settle(const struct rank_jobs *jobs, struct incident_list *l)
{
	bool dropped[DIAGNOSE_INCIDENTS_MAX];
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++)
		dropped[i] = is_refuted(&l->items[i], l->items, l->count) ||
			     is_consequence(&l->items[i], l->items, l->count) ||
			     is_abandoned(jobs, &l->items[i], l->items, l->count) ||
			     is_waited(jobs, &l->items[i], l->items, l->count);
	for (size_t i = 0; i < l->count; i++) {
		struct incident *inc = &l->items[i];

		if (dropped[i])
			continue;
		inc->severity = severity_sure(inc->severity, inc->confidence);
		if (kept != i)
			l->items[kept] = *inc;
		kept++;
	}
	l->count = kept;
}

/* The incident that @f would be. */
static void write_own(const struct time_findings *all, const struct time_finding *f,
	double completeness, struct incident *ret)
{
	struct incident_list one = {.items = ret, .max = 1};

	add(all, f, completeness, &one);
}

/* A rank that is late in all steps has none that are slow: its account is set against that of its peers. */
static bool join_by_peers(const struct stories *t, const struct time_findings *findings, size_t n,
	double completeness, struct incident *story)
{
	_cleanup_free_ struct time_findings *own = calloc(1, sizeof(*own));
	_cleanup_free_ struct step_account *account = calloc(1, sizeof(*account));
	_cleanup_free_ struct incident *words = calloc(1, sizeof(*words));
	const struct time_findings *of;
	const struct time_finding *f;

	for (size_t i = 0; own && account && words && i < n; i++) {
		if (findings[i].account->pid != story->pid ||
			!rank_story_peers(&t->jobs, &findings[i].whole, findings, n, account) ||
			time_findings_find(findings[i].rec, account, completeness, own) < 0)
			continue;
		f = rank_story_cause(story, own, 1, &of);
		if (!f || f->contrast != CONTRAST_SLOW)
			continue;
		write_own(own, f, completeness, words);
		words->since.ns = 0;
		words->period_steps = 0;
		rank_story_join(story, words);
		return true;
	}
	return false;
}

/* The story of each rank that others wait for has its own cause in it. */
static void join_stories(struct stories *t, const struct time_findings *findings, size_t n,
	double completeness, struct incident *states)
{
	_cleanup_free_ struct incident *words = calloc(1, sizeof(*words));

	for (size_t i = 0; words && i < t->state_count && t->joined_count < STORIES_MAX; i++) {
		const struct time_findings *of = NULL;
		const struct time_finding *f;

		if (states[i].problem != PROBLEM_STRAGGLER || states[i].culprit_rank < 0)
			continue;
		f = rank_story_cause(&states[i], findings, n, &of);
		if (!f) {
			join_by_peers(t, findings, n, completeness, &states[i]);
			continue;
		}
		write_own(of, f, completeness, words);
		rank_story_join(&states[i], words);
		t->joined[t->joined_count++] = f;
	}
}

static bool is_same_wait(const struct time_finding *a, const struct time_finding *b)
{
	return rank_story_is_wait(a->delay.kind) && a->delay.kind == b->delay.kind &&
	       a->contrast == b->contrast && a->problem == b->problem;
}

static bool is_same_function(const struct code_place *a, const struct code_place *b)
{
	return !strcmp(a->file, b->file) && !strcmp(a->func, b->func);
}

static bool is_same_place(const struct code_place *a, const struct code_place *b)
{
	return a->line == b->line && is_same_function(a, b);
}

/* Whether all of a job stood still, @g's process being the first to go on: one that waits may look busy, spinning where
 * the GPU's queue is full. Ranks that do the same at the same place do not wait for each other. */
static bool is_stalled_by(const struct time_findings *of_f, const struct time_finding *f,
	const struct time_findings *of_g, const struct time_finding *g,
	const struct rank_jobs *jobs)
{
	struct code_place p, q;

	return rank_story_is_stall(of_f->account) && rank_story_is_stall(of_g->account) &&
	       !(delay_subject_place(of_f->rec, of_f->account, &f->delay, NULL, &p) &&
		       delay_subject_place(of_g->rec, of_g->account, &g->delay, NULL, &q) &&
		       is_same_place(&p, &q)) &&
	       rank_story_first(of_g->rec, jobs, of_g->account) == of_g->account->pid;
}

/* Whether @g, of a rank of the same job, is why @f waits: it is its own doing, costs as much, and their slow steps are
 * the same. */
static bool is_awaited(const struct time_findings *of_f, const struct time_finding *f,
	const struct time_findings *of_g, const struct time_finding *g,
	const struct rank_jobs *jobs)
{
	return f->contrast == CONTRAST_SLOW && g->contrast == CONTRAST_SLOW &&
	       !rank_story_is_wait(g->delay.kind) &&
	       (rank_story_is_wait(f->delay.kind) || is_stalled_by(of_f, f, of_g, g, jobs)) &&
	       (double)g->lost_ns >= THRESHOLD(CHAIN_MOST) * (double)f->lost_ns &&
	       rank_story_together(of_f->account, of_g->account);
}

/* Ranks of one job that wait alike wait for the same: it is told of the one that lost most, *ret_alike others with
 * it; or of the one that they all wait for. False: it is told of another. */
static bool is_first_of_job(const struct time_findings *list, size_t n, size_t at,
	const struct time_finding *f, const struct stories *t, int *ret_alike)
{
	uint32_t own = list[at].account->pid;

	*ret_alike = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t other = list[i].account->pid;

		if (i == at || !rank_jobs_same(list[at].rec, &t->jobs, own, other))
			continue;
		for (int k = 0; k < list[i].count; k++) {
			const struct time_finding *g = &list[i].items[k];

			if (is_awaited(&list[at], f, &list[i], g, &t->jobs))
				return false;
			if (is_awaited(&list[i], g, &list[at], f, &t->jobs)) {
				++*ret_alike;
				break;
			}
			if (!is_same_wait(f, g) || g->is_harmless != f->is_harmless ||
				is_told(&list[i], g, t))
				continue;
			++*ret_alike;
			if (g->lost_ns > f->lost_ns || (g->lost_ns == f->lost_ns && other < own))
				return false;
			break;
		}
	}
	return true;
}

static void tell(const struct time_findings *list, size_t n, size_t at,
	const struct time_finding *f, double completeness, const struct stories *t,
	struct incident_list *out)
{
	size_t had = out->count, len;
	struct incident *inc;
	int alike;

	if (is_told(&list[at], f, t) || is_mutual(list, n, at, f, t) ||
		!is_first_of_job(list, n, at, f, t, &alike))
		return;
	add(&list[at], f, completeness, out);
	if (!alike || out->count == had)
		return;
	inc = &out->items[had];
	if (!rank_story_is_wait(f->delay.kind)) {
		rank_story_awaited(list[at].rec, alike, inc);
		/* Once is enough where a whole job stood still for it. */
		if (f->contrast == CONTRAST_SLOW && rank_story_is_stall(list[at].account)) {
			inc->confidence = MAX(inc->confidence, STALL_SURE);
			inc->severity = severity_of(f->share, inc->confidence, f->is_routine);
		}
		return;
	}
	len = strlen(inc->explanation);
	snprintf(inc->explanation + len, sizeof(inc->explanation) - len,
		" %d other rank%s of the job wait%s too.", alike, alike == 1 ? "" : "s",
		alike == 1 ? "s" : "");
}

/* What has one cause however it shows: a process, packing for processes, too many threads. */
static bool is_one_cause(const struct delay *f, const struct delay *g)
{
	return resource_is(f->end.resource, RESOURCE_IS_ONE) ||
	       (resource_is(f->end.resource, RESOURCE_IS_ONE_OF) && f->end.who[0] &&
		       !strcmp(f->end.who, g->end.who));
}

/* Whether both are time of another thread of the program that the units wait for at the same place. */
static bool is_same_awaited(
	const struct recording *rec, const struct delay *f, const struct delay *g)
{
	const struct stack *p, *q;

	if (!f->lead || !g->lead || f->lead->owner != OWNER_THREAD ||
		g->lead->owner != OWNER_THREAD)
		return false;
	p = stack_find(rec->stacks, f->lead->wait_hash);
	q = stack_find(rec->stacks, g->lead->wait_hash);
	return p && q && place_key(p) == place_key(q);
}

/* That the program itself is at the disk, or has the lock, is nobody's doing but its own. */
static uint32_t other_culprit_of(const struct time_findings *all, const struct time_finding *f)
{
	uint32_t pid = culprit_of(all, f);

	return pid == all->account->pid ? 0 : pid;
}

/* Whether @g is the same cause as @f, and the smaller part: spent on another thing at the same line, or waited for in another
 * way of the same process. */
static bool is_part_of(
	const struct time_findings *all, const struct time_finding *g, const struct time_finding *f)
{
	const struct step_account *a = time_finding_account(all, f);
	struct code_place p, q;

	if (f->contrast != g->contrast || f->is_harmless)
		return false;
	/* Whoever has the CPUs also slows down what runs beside it, and that may be more. */
	if (f->contrast == CONTRAST_SLOW && f->delay.end.resource == RESOURCE_CPU_PROGRAM &&
		f->delay.kind == DELAY_BY_CPU && delay_is_lasting(a) &&
		delay_is_slowed(all->rec, a, &g->delay))
		return true;
	if (g->is_harmless || f->lost_ns < g->lost_ns || (f->lost_ns == g->lost_ns && f > g))
		return false;
	if (f->delay.end.resource == g->delay.end.resource && is_one_cause(&f->delay, &g->delay))
		return true;
	if (is_same_awaited(all->rec, &f->delay, &g->delay))
		return true;
	return line_time_is_own(f->delay.kind) && line_time_is_own(g->delay.kind) &&
	       other_culprit_of(all, f) == other_culprit_of(all, g) &&
	       delay_subject_place(all->rec, a, &f->delay, NULL, &p) &&
	       delay_subject_place(all->rec, a, &g->delay, NULL, &q) &&
	       (is_same_place(&p, &q) ||
		       (f->contrast == CONTRAST_WHOLE && is_same_function(&p, &q) &&
			       !line_is_of_loop(all->rec, a, &p)));
}

/* One cause is one finding, with all that it costs. */
static void join_parts(struct time_findings *all)
{
	for (int i = 0; i < all->count; i++)
		for (int k = 0; k < all->count; k++) {
			struct time_finding *f = &all->items[i], *g = &all->items[k];

			if (i == k || !is_part_of(all, g, f))
				continue;
			f->lost_ns += g->lost_ns;
			f->share += g->share;
			f->delay.share += g->delay.share;
			f->delay.slow_ns += g->delay.slow_ns;
			f->delay.ordinary_ns += g->delay.ordinary_ns;
			f->with |= BIT_OF(g->delay.kind) | g->with;
			*g = all->items[--all->count];
			i = -1;
			break;
		}
}

int compose(
	const struct time_findings *found, size_t n, double completeness, struct incident_list *out)
{
	struct stories t = {.states = out->items, .state_count = out->count};
	_cleanup_free_ struct time_findings *findings = calloc(n + 1, sizeof(*findings));

	if (!findings)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		findings[i] = found[i];
		join_parts(&findings[i]);
	}
	if (n)
		rank_jobs_find(findings[0].rec, &t.jobs);
	join_stories(&t, findings, n, completeness, out->items);
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < findings[i].count; k++)
			tell(findings, n, i, &findings[i].items[k], completeness, &t, out);
	settle(&t.jobs, out);
	return 0;
}
