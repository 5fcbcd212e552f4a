/* SPDX-License-Identifier: Apache-2.0 */
/* diff_steps.c - the steps of processes beside those of their counterparts: of the same rank, else of the same
 * name and place in the order of time spent in steps. Process ids mean nothing in another recording. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/diff/diff_private.h"
#include "base/macros.h"

#define LINE_SHARE  0.01 /* of a step: a line that changes by less says nothing */
#define PLACE_SHARE 0.5  /* of a line's difference: so much of it at one place names it */

/* Of the steps that are like others: those of another phase are compared with nothing. */
static double mean_of(const struct step_account *a, uint64_t ordinary_ns, uint64_t slow_ns)
{
	double ordinary = a->ordinary_steps, slow = a->slow_steps;

	if (ordinary + slow == 0)
		return 0;
	return ((double)ordinary_ns * ordinary + (double)slow_ns * slow) / (ordinary + slow);
}

static double line_ns(const struct step_account *a, enum account_line line)
{
	if (a->ordinary_steps + a->slow_steps)
		return mean_of(a, a->ordinary_ns[line], a->slow_ns[line]);
	return a->steps ? (double)a->total_ns[line] / a->steps : 0;
}

static double step_ns(const struct step_account *a)
{
	double ns = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++)
		ns += line_ns(a, (enum account_line)i);
	return ns;
}

/* An entry's slow_ns is of any step where none is slow. */
static double entry_ns(const struct step_account *a, const struct account_entry *e)
{
	return a->slow_steps ? mean_of(a, e->ordinary_ns, e->slow_ns) : (double)e->slow_ns;
}

static size_t bars_of(
	const struct step_account *a, enum account_line line, double values[ACCOUNT_BARS])
{
	size_t n = 0;

	for (size_t i = 0; i < MIN(a->bar_count, (size_t)ACCOUNT_BARS); i++) {
		const struct account_bar *bar = &a->bars[i];
		uint64_t ns = line == ACCOUNT_LINES ? bar->dur_ns : bar->ns[line];

		if (bar->steps)
			values[n++] = (double)ns / bar->steps;
	}
	return n;
}

static enum compare_verdict judge(const struct step_account *a, const struct step_account *b,
	const struct diff_line *l, double least)
{
	double one[ACCOUNT_BARS], two[ACCOUNT_BARS];
	size_t n = bars_of(a, l->line, one), m = bars_of(b, l->line, two);
	enum compare_verdict v = compare_values(one, n, two, m, least).verdict;
	double difference = l->ns[1] - l->ns[0];

	if ((v == COMPARE_MORE && difference < least) || (v == COMPARE_LESS && -difference < least))
		return COMPARE_NOISE;
	return v;
}

static double at_place(
	const struct diff_account *a, const struct account_entry *e, const char *place)
{
	double ns = 0;

	for (int i = 0; i < a->account->entry_count; i++) {
		const struct account_entry *o = &a->account->entries[i];

		if (o->line == e->line && o->owner == e->owner && !strcmp(a->places[i], place))
			ns += entry_ns(a->account, o);
	}
	return ns;
}

/* The place with most of the line's difference. */
static void find_place(
	const struct diff_account *a, const struct diff_account *b, struct diff_line *l)
{
	const struct diff_account *sides[] = {a, b};
	double difference = l->ns[1] - l->ns[0], most = PLACE_SHARE;

	for (int s = 0; s < 2; s++)
		for (int i = 0; i < sides[s]->account->entry_count; i++) {
			const struct account_entry *e = &sides[s]->account->entries[i];
			const char *place = sides[s]->places[i];
			double share;

			if (e->line != l->line || !place[0])
				continue;
			share = (at_place(b, e, place) - at_place(a, e, place)) / difference;
			if (share > most) {
				most = share;
				snprintf(l->place, sizeof(l->place), "%s", place);
			}
		}
}

static int by_difference(const void *a, const void *b)
{
	const struct diff_line *x = a, *y = b;
	double p = fabs(x->ns[1] - x->ns[0]), q = fabs(y->ns[1] - y->ns[0]);

	return p != q ? (p > q ? -1 : 1) : (int)x->line - (int)y->line;
}

static void compare_job(
	const struct diff_account *a, const struct diff_account *b, struct diff_job *j)
{
	const struct step_account *x = a->account, *y = b->account;

	*j = (struct diff_job){.pid = {x->pid, y->pid},
		.rank = b->rank,
		.steps = {x->steps, y->steps},
		.slow_steps = {x->slow_steps, y->slow_steps},
		.step = {.line = ACCOUNT_LINES, .ns = {step_ns(x), step_ns(y)}}};
	memcpy(j->comm, y->comm, sizeof(j->comm));
	j->step.verdict = judge(x, y, &j->step, DIFF_SHARE * j->step.ns[0]);
	for (int i = 0; i < ACCOUNT_LINES; i++) {
		struct diff_line *l = &j->lines[j->line_count];
		double least;

		*l = (struct diff_line){.line = (enum account_line)i,
			.ns = {line_ns(x, (enum account_line)i), line_ns(y, (enum account_line)i)}};
		if (l->ns[0] + l->ns[1] <= 0)
			continue;
		least = MAX(DIFF_SHARE * l->ns[0], LINE_SHARE * j->step.ns[0]);
		l->verdict = judge(x, y, l, least);
		if (l->verdict == COMPARE_MORE || l->verdict == COMPARE_LESS)
			find_place(a, b, l);
		j->line_count++;
	}
	qsort(j->lines, (size_t)j->line_count, sizeof(j->lines[0]), by_difference);
}

/* How well they match: a rank is a rank anywhere, a process id only in its own recording. */
enum { MATCH_RANK, MATCH_PROCESS, MATCH_NAME, MATCH_ALONE, MATCHES };

static bool is_match(
	const struct diff_account *a, const struct diff_account *b, int how, bool alone)
{
	bool ranked = a->rank >= 0 && b->rank >= 0;
	bool named = !strcmp(a->account->comm, b->account->comm);

	switch (how) {
	case MATCH_RANK: return ranked && a->rank == b->rank;
	case MATCH_PROCESS: return !ranked && named && a->account->pid == b->account->pid;
	case MATCH_NAME: return !ranked && named;
	default: return alone;
	}
}

/* A counterpart that no other has yet; equal pieces of time are no steps. */
static const struct diff_account *find_other(
	const struct diff_side *s, const struct diff_account *a, bool alone, bool *used)
{
	for (int how = 0; how < MATCHES; how++)
		for (size_t i = 0; i < s->steps.count; i++) {
			const struct diff_account *b = &s->accounts[i];

			if (!used[i] && b->account->origin != STEP_BY_TIME &&
				is_match(a, b, how, alone)) {
				used[i] = true;
				return b;
			}
		}
	return NULL;
}

int diff_compare_steps(const struct diff_side sides[2], struct diff_answer *ret)
{
	_cleanup_free_ bool *used = calloc(sides[1].steps.count + 1, sizeof(*used));
	size_t fewer = MIN(sides[0].steps.count, sides[1].steps.count);
	size_t most = MIN(fewer, (size_t)DIFF_JOBS);
	bool alone = sides[0].steps.count == 1 && sides[1].steps.count == 1;

	ret->jobs = calloc(most + 1, sizeof(*ret->jobs));
	if (!used || !ret->jobs)
		return -ENOMEM;
	for (size_t i = 0; i < sides[0].steps.count && ret->job_count < most; i++) {
		const struct diff_account *a = &sides[0].accounts[i], *b = NULL;

		if (a->account->origin != STEP_BY_TIME)
			b = find_other(&sides[1], a, alone, used);
		if (b)
			compare_job(a, b, &ret->jobs[ret->job_count++]);
	}
	return 0;
}
