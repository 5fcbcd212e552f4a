/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/compose/rank_story.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/findings/straggler_job.h"
#include "diagnose/rows/home.h"
#include "diagnose/sentences/delay_text.h"
#include "stat/robust.h"

#define COVERED_SHARE 0.5 /* of what a rank lost by waiting: then who is late is the reason */
#define CAUSE_SHARE                                                                                \
	0.25 /* of what the job stood still: less of the rank's own is not why it is late */
#define WAIT_WEIGHT    0.5
#define TOGETHER_SHARE 0.6
#define STALL_STEPS    10
#define STALL_SHARE    0.5 /* of such a step, in which nobody communicates */
#define PEERS_MAX      256

#define BIT(NAME) (UINT32_C(1) << DELAY_BY_##NAME)

uint32_t rank_story_waits(void)
{
	return BIT(GPU) | BIT(SYNC) | BIT(COLLECTIVE) | BIT(COPY) | BIT(LOCK) | BIT(NETWORK) |
	       BIT(PROCESS) | BIT(UNKNOWN);
}

/* How well @f says why its rank is late: 0: not at all. What the rank waits for itself says less than what it does, and why
 * ranks wait for their GPUs is said where no host is late. More work of its GPU is no fault of a rank whose host is. */
static double weight(
	const struct incident *story, const struct time_findings *of, const struct time_finding *f)
{
	bool is_host = !strcmp(story->unit ? story->unit : "", RANK_LATE_UNIT);

	if (!story->excess_ns || (f->delay.kind == DELAY_BY_GPU && (!is_host || f->is_harmless)) ||
		f->delay.kind == DELAY_BY_COLLECTIVE || f->delay.kind == DELAY_BY_UNKNOWN ||
		(f->delay.kind == DELAY_BY_GPU && f->contrast == CONTRAST_SLOW &&
			of->gpu.reason == GPU_BY_NOTHING) ||
		(double)f->lost_ns < CAUSE_SHARE * (double)story->excess_ns)
		return 0;
	return (double)f->lost_ns * (rank_story_is_wait(f->delay.kind) ? WAIT_WEIGHT : 1);
}

const struct time_finding *rank_story_cause(const struct incident *story,
	const struct time_findings *findings, size_t n, const struct time_findings **ret_of)
{
	const struct time_finding *best = NULL;
	double most = 0;

	for (size_t i = 0; i < n; i++) {
		for (int k = 0; findings[i].account->pid == story->pid && k < findings[i].count;
			k++) {
			double w = weight(story, &findings[i], &findings[i].items[k]);

			if (w <= most)
				continue;
			most = w;
			best = &findings[i].items[k];
			*ret_of = &findings[i];
		}
	}
	return best;
}

/* "Host code in augment (train.py:18)" of "Host code in augment (train.py:18): steps take …" */
static void head_of(const struct incident *own, char *out, size_t size)
{
	const char *end = strstr(own->summary, ": ");

	snprintf(out, size, "%.*s", end ? (int)(end - own->summary) : (int)strlen(own->summary),
		own->summary);
}

/* The job gets no faster than by what it stood still, however much of the rank's time its own cause takes. */
static void put_gain(struct incident *story, const struct incident *own)
{
	uint64_t lost = story->count ? story->excess_ns / story->count : 0;
	uint64_t least = own->unit_ns - MIN(lost, own->unit_ns);

	story->unit_ns = own->unit_ns;
	story->fixed_ns = MAX(own->fixed_ns, least);
	story->fixed_least_ns = MAX(own->fixed_least_ns, least);
	story->fixed_most_ns = MAX(own->fixed_most_ns, least);
}

void rank_story_join(struct incident *story, const struct incident *own)
{
	char head[sizeof(own->summary)], was[sizeof(story->summary)];

	head_of(own, head, sizeof(head));
	memcpy(was, story->summary, sizeof(was));
	snprintf(story->summary, sizeof(story->summary), "%s: %s", head, was);
	/* What its thread did is said where there is room for all of it: the finding says so, too. */
	snprintf(was, sizeof(was), "%s", story->root_cause);
	if (strlen(own->root_cause) + strlen(was) + 3 > sizeof(story->root_cause))
		was[strcspn(was, ":")] = 0;
	snprintf(story->root_cause, sizeof(story->root_cause), "%s; %s", own->root_cause, was);
	memcpy(story->place, own->place, sizeof(story->place));
	memcpy(story->causes, own->causes, sizeof(story->causes));
	story->cause_count = own->cause_count;
	memcpy(story->stacks, own->stacks, sizeof(story->stacks));
	story->stack_count = own->stack_count;
	story->stack_total = own->stack_total;
	story->stack_ns = own->stack_ns;
	memcpy(story->fixes, own->fixes, sizeof(story->fixes));
	story->fix_count = own->fix_count;
	story->since = own->since.ns ? own->since : story->since;
	story->baseline_ns = own->baseline_ns;
	story->slow_p50_ns = own->slow_p50_ns;
	put_gain(story, own);
	if (!story->period_steps && own->period_steps > 1 && !own->since.ns) {
		story->period_steps = own->period_steps;
		story->period_confidence = own->period_confidence;
	}
}

static size_t list_peers(const struct rank_jobs *jobs, uint32_t pid,
	const struct time_findings *findings, size_t n, const struct step_account **ret)
{
	size_t count = 0;

	for (size_t i = 0; i < n && count < PEERS_MAX; i++)
		if (findings[i].whole.ordinary_step_ns &&
			rank_jobs_meet(jobs, pid, findings[i].account->pid))
			ret[count++] = &findings[i].whole;
	return count;
}

bool rank_story_peers(const struct rank_jobs *jobs, const struct step_account *late,
	const struct time_findings *findings, size_t n, struct step_account *ret)
{
	const struct step_account *peers[PEERS_MAX];
	uint64_t values[PEERS_MAX], grown = 0;
	size_t count = list_peers(jobs, late->pid, findings, n, peers);

	if (!count || !late->ordinary_steps)
		return false;
	*ret = *late;
	for (int l = 0; l < ACCOUNT_LINES; l++) {
		for (size_t i = 0; i < count; i++)
			values[i] = peers[i]->ordinary_ns[l];
		ret->slow_ns[l] = late->ordinary_ns[l];
		ret->ordinary_ns[l] = robust_median_of(values, count);
		grown += ret->slow_ns[l] > ret->ordinary_ns[l]
				 ? ret->slow_ns[l] - ret->ordinary_ns[l]
				 : 0;
		for (int o = 0; o < ACCOUNT_OWNERS; o++) {
			for (size_t i = 0; i < count; i++)
				values[i] = peers[i]->ordinary_by[o][l];
			ret->slow_by[o][l] = late->ordinary_by[o][l];
			ret->ordinary_by[o][l] = robust_median_of(values, count);
		}
	}
	for (int i = 0; i < ret->entry_count; i++) {
		enum account_line l = ret->entries[i].line;
		double usual =
			ret->slow_ns[l] ? (double)ret->ordinary_ns[l] / (double)ret->slow_ns[l] : 0;

		ret->entries[i].ordinary_ns =
			(uint64_t)(MIN(usual, 1.0) * (double)ret->entries[i].slow_ns);
	}
	ret->slow_steps = late->ordinary_steps;
	ret->slow_step_ns = late->ordinary_step_ns;
	ret->ordinary_step_ns = late->ordinary_step_ns > grown ? late->ordinary_step_ns - grown : 0;
	ret->lost_ns = grown * late->ordinary_steps;
	ret->slow_first = late->first;
	ret->slow_last = late->last;
	ret->slow_launches = late->ordinary_launches;
	ret->slow_bytes = late->ordinary_bytes;
	ret->slow_waits = late->ordinary_waits;
	return grown > 0;
}

bool rank_story_tells(const struct rank_jobs *jobs, const struct incident *story, uint32_t pid,
	const struct time_finding *f)
{
	if (story->problem != PROBLEM_STRAGGLER || !rank_story_is_wait(f->delay.kind) ||
		(story->pid != pid && !rank_jobs_meet(jobs, story->pid, pid)))
		return false;
	if (story->culprit_rank >= 0 && story->pid == pid && f->delay.kind != DELAY_BY_GPU)
		return false; /* what the late one waits for itself is its own */
	return story->severity >= SEVERITY_MEDIUM ||
	       (double)story->excess_ns >= COVERED_SHARE * (double)f->lost_ns;
}

bool rank_story_together(const struct step_account *a, const struct step_account *b)
{
	uint64_t slow = 0, both = 0;

	for (size_t i = 0, k = 0; i < a->mark_count; i++) {
		const struct step_mark *m = &a->marks[i];
		int64_t end = m->start.ns + (int64_t)m->dur_ns;

		if (!m->is_slow)
			continue;
		slow += m->dur_ns;
		while (k < b->mark_count &&
			b->marks[k].start.ns + (int64_t)b->marks[k].dur_ns <= m->start.ns)
			k++;
		for (size_t at = k; at < b->mark_count && b->marks[at].start.ns < end; at++) {
			const struct step_mark *o = &b->marks[at];
			int64_t until = MIN(end, o->start.ns + (int64_t)o->dur_ns);

			int64_t from = MAX(m->start.ns, o->start.ns);

			if (o->is_slow && until > from)
				both += (uint64_t)(until - from);
		}
	}
	return slow && (double)both >= TOGETHER_SHARE * (double)slow;
}

void rank_story_awaited(const struct recording *rec, int waiting, struct incident *inc)
{
	const struct process_home *h = home_of(rec, inc->pid);
	char was[sizeof(inc->summary)], who[32] = "it";

	memcpy(was, inc->summary, sizeof(was));
	inc->culprit_rank = h ? h->rank : -1;
	if (inc->culprit_rank >= 0)
		snprintf(who, sizeof(who), "rank %d", inc->culprit_rank);
	snprintf(inc->summary, sizeof(inc->summary), "%s; %d other rank%s wait%s for %s", was,
		waiting, waiting == 1 ? "" : "s", waiting == 1 ? "s" : "", who);
}

bool rank_story_is_stall(const struct step_account *a)
{
	return a->slow_steps == 1 &&
	       a->slow_step_ns >= STALL_STEPS * MAX(a->ordinary_step_ns, UINT64_C(1));
}

uint32_t rank_story_first(
	const struct recording *rec, const struct rank_jobs *jobs, const struct step_account *a)
{
	int64_t before = a->slow_first.ns,
		longest = (int64_t)(STALL_SHARE * (double)a->slow_step_ns);
	uint32_t first = 0;

	for (size_t i = 0; i < rec->collective_count; i++) {
		const struct collective_row *r = &rec->collectives[i];

		if (r->start.ns < a->slow_first.ns || r->start.ns > a->slow_last.ns ||
			(r->pid != a->pid && !rank_jobs_meet(jobs, a->pid, r->pid)))
			continue;
		if (r->start.ns - before > longest) {
			longest = r->start.ns - before;
			first = r->pid;
		}
		before = MAX(before, r->start.ns);
	}
	return first;
}
