/* SPDX-License-Identifier: Apache-2.0 */
/* diff_steps.c - the steps of processes beside those of their counterparts: of the same rank, else of the same
 * name and place in the order of time spent in steps. Process ids mean nothing in another recording. */
#include <math.h>

#include "answer/diff/diff.h"
#include "base/macros.h"
#include "answer/stacks.h"
#include "base/search.h"
#include "base/text.h"

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

ORDER(by_difference, struct diff_line,
	COMPARE(fabs(y->ns[1] - y->ns[0]), fabs(x->ns[1] - x->ns[0])) ?: ASCENDING(line))

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

/* whether a fix gave what was promised: incidents of A say what a unit of work would take without them,
 * B's steps say what it takes. Both are means of all steps: an incident of every tenth step promises a tenth. */

#define NEAR_SHARE 0.10 /* of what A's step takes: as near as promises are meant to be */
#define NONE_SHARE 0.10 /* of the promised gain: less is none */

static const struct step_account *account_of(const struct diff_side *a, uint32_t pid)
{
	for (size_t i = 0; i < a->steps.count; i++)
		if (a->accounts[i].account->pid == pid)
			return a->accounts[i].account;
	return NULL;
}

static const struct diff_job *job_of(const struct diff_answer *d, uint32_t pid)
{
	return FIND(x, d->jobs, d->job_count, x->pid[0] == pid);
}

static enum diff_outcome promise_judge(const struct diff_promise *p, const struct diff_job *j)
{
	double near = NEAR_SHARE * p->before_ns;

	if (j->step.verdict != COMPARE_LESS ||
		p->before_ns - p->given_ns < NONE_SHARE * (p->before_ns - p->promised_ns))
		return DIFF_NOTHING;
	if (p->given_ns < p->least_ns - near)
		return DIFF_MORE;
	return p->given_ns <= p->most_ns + near ? DIFF_KEPT : DIFF_PART;
}

/* False: nothing was promised, or there is nothing to compare it with. */
static bool compare(const struct incident *i, const struct diff_side *a,
	const struct diff_answer *d, struct diff_promise *ret)
{
	const struct step_account *account = account_of(a, i->pid);
	const struct diff_job *j = job_of(d, i->pid);
	double steps = account ? (double)account->ordinary_steps + account->slow_steps : 0;
	double part = steps > 0 ? MIN((double)i->count / steps, 1.0) : 0;
	double unit = (double)i->unit_ns;

	if (!j || !(part > 0) || i->severity < SEVERITY_MEDIUM || i->fixed_ns >= i->unit_ns)
		return false;
	*ret = (struct diff_promise){.pid = i->pid,
		.before_ns = j->step.ns[0],
		.promised_ns = j->step.ns[0] - part * (unit - (double)i->fixed_ns),
		.least_ns = j->step.ns[0] - part * (unit - (double)i->fixed_least_ns),
		.most_ns = j->step.ns[0] - part * (unit - (double)i->fixed_most_ns),
		.given_ns = j->step.ns[1]};
	snprintf(ret->what, sizeof(ret->what), "%s", i->summary);
	ret->outcome = promise_judge(ret, j);
	return true;
}

void diff_compare_promises(const struct diff_side sides[2], struct diff_answer *ret)
{
	for (size_t i = 0; i < sides[0].incident_count && ret->promise_count < DIFF_PROMISES; i++)
		ret->promise_count += compare(
			&sides[0].incidents[i], &sides[0], ret, &ret->promises[ret->promise_count]);
}

/* from where more time is spent. Stacks are one if their texts are: hashes know addresses, which
 * another run does not share. What finds none is tried once more without lines, which move when a file is
 * edited. */

#define GROWN_NS_S NS_PER_MS /* a second */
#define NORMAL_99  2.5758

static const struct diff_stack_row *find(const struct diff_side *s, uint64_t key, bool *used)
{
	size_t at = LOWER_BOUND(i, s->stack_count, s->stacks[i].key < key);

	if (at == s->stack_count || s->stacks[at].key != key)
		return NULL;
	used[at] = true;
	return &s->stacks[at];
}

static const struct diff_stack_row *find_moved(
	const struct diff_side *s, uint64_t loose, bool *used)
{
	for (size_t i = 0; i < s->stack_count; i++)
		if (!used[i] && s->stacks[i].loose == loose) {
			used[i] = true;
			return &s->stacks[i];
		}
	return NULL;
}

/* Durations are spread about as far as they are long: a sum of n of them is known to its n-th root, twice. */
static double spread(const struct diff_stack_row *r, double seconds)
{
	return r && r->rows > 0 ? r->ns / seconds * sqrt(2 / r->rows) : 0;
}

static bool has_grown(const struct diff_stack *s, double noise)
{
	double grown = s->ns_s[1] - s->ns_s[0];

	return grown >= GROWN_NS_S && grown > DIFF_SHARE * s->ns_s[0] && grown > NORMAL_99 * noise;
}

static void put(struct diff_answer *ret, const struct diff_stack *s)
{
	double grown = s->ns_s[1] - s->ns_s[0];
	size_t at = ret->stack_count;

	while (at > 0 && grown > ret->stacks[at - 1].ns_s[1] - ret->stacks[at - 1].ns_s[0]) {
		if (at < DIFF_STACKS)
			ret->stacks[at] = ret->stacks[at - 1];
		at--;
	}
	if (at < DIFF_STACKS)
		ret->stacks[at] = *s;
	ret->stack_count = MIN(ret->stack_count + 1, (size_t)DIFF_STACKS);
}

static void put_place(struct diff_stack *s)
{
	const struct stack_frame *f = stack_user_frame(s->stack);
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 14);
	int len;

	f = f ? f : stack_place(s->stack);
	if (f)
		stack_text_place(&b, f);
	len = text_clip(buf_str(&b), DIFF_PLACE / 4 - 1);
	snprintf(s->place, sizeof(s->place), "%.*s%s", len, buf_str(&b),
		buf_str(&b)[len] ? "\xe2\x80\xa6" : "");
}

/* Exact partners first, so that what moved is looked for among the rest. */
int diff_compare_stacks(const struct diff_side sides[2], struct diff_answer *ret)
{
	const struct diff_side *a = &sides[0], *b = &sides[1];
	_cleanup_free_ bool *used = calloc(a->stack_count + 1, sizeof(*used));
	_cleanup_free_ const struct diff_stack_row **other =
		calloc(b->stack_count + 1, sizeof(struct diff_stack_row *));
	double seconds[2];

	if (!used || !other)
		return -ENOMEM;
	for (int i = 0; i < 2; i++)
		seconds[i] = (double)MAX(sides[i].time.to_ns - sides[i].time.from_ns, INT64_C(1)) /
			     (double)NS_PER_S;
	for (size_t i = 0; i < b->stack_count; i++)
		other[i] = find(a, b->stacks[i].key, used);
	for (size_t i = 0; i < b->stack_count; i++) {
		const struct diff_stack_row *row = &b->stacks[i], *o = other[i];
		struct diff_stack s = {.source = row->source,
			.op = row->op,
			.stack = row->stack,
			.ns_s[1] = row->ns / seconds[1]};

		if (!o && (o = find_moved(a, row->loose, used)))
			s.moved = true;
		s.ns_s[0] = o ? o->ns / seconds[0] : 0;
		if (!has_grown(&s, hypot(spread(row, seconds[1]), spread(o, seconds[0]))))
			continue;
		put_place(&s);
		put(ret, &s);
	}
	return 0;
}
