/* SPDX-License-Identifier: Apache-2.0 */
/* contrast.c - see contrast.h: units by class, what each class spent, and what of it grew. */
#include "diagnose/contrasts/contrast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "diagnose/contrasts/classify.h"
#include "diagnose/contrasts/regroup.h"
#include "diagnose/contrasts/rhythm.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"

#define ACCOUNT_GROWN 20 /* entries that are kept for what grew most */
#define CLASSES       3
#define UNKNOWN_PARTS 1000 /* less than one in so many is not worth a reason */

struct builder {
	const struct process_account *account;
	struct step_facts *facts;   /* by unit */
	struct tally sums[CLASSES]; /* by enum step_class */
	struct classification found;
};

static void builder_done(struct builder *b)
{
	free(b->facts);
	for (int i = 0; i < CLASSES; i++)
		tally_done(&b->sums[i]);
}

static int put_facts(struct builder *b)
{
	b->facts = calloc(b->account->unit_count + 1, sizeof(*b->facts));
	if (!b->facts)
		return -ENOMEM;
	for (size_t i = 0; i < b->account->unit_count; i++) {
		const struct step_span *s = &b->account->units[i];
		uint64_t lines[ACCOUNT_LINES] = {0};

		account_lines(b->account, i, lines);
		b->facts[i] = (struct step_facts){.dur_ns = (uint64_t)(s->end_ns - s->start_ns) -
							    account_pause_ns(b->account, i),
			.wait_ns = lines[ACCOUNT_GPU],
			.backwards = s->backwards,
			.loads = s->loads,
			.probed = (double)s->probed_ns /
				  (double)MAX(s->end_ns - s->start_ns, INT64_C(1))};
		account_made_ns(b->account, i, b->facts[i].made_ns);
	}
	return 0;
}

static int sum_classes(struct builder *b)
{
	for (size_t i = 0; i < b->account->unit_count; i++)
		if (account_add(b->account, i, &b->sums[b->facts[i].class]) < 0)
			return -ENOMEM;
	return 0;
}

/* Making code that is made once is none of the units' time, nor is a pause. */
static void leave_out(struct tally *t, const bool is_setup[MAKINGS])
{
	for (size_t i = 0; i < t->count; i++)
		if (is_setup[t->parts[i].making] || t->parts[i].is_pause) {
			t->ns[t->parts[i].line] -= t->parts[i].ns;
			t->parts[i].ns = 0;
		}
}

/* Waits for the GPU are timed: what samples show of them is not what is missing. */
static bool is_sampled(const struct tally_part *p)
{
	return p->line == ACCOUNT_HOST || p->line == ACCOUNT_LAUNCH;
}

/* Whether time like @from, of which no place is known, is likely to have been spent at @p's: host code between two
 * samples was where the samples were; calls without a stack where those with one were; and a thread blocks, for less
 * than is recorded with a stack, in the calls in which samples find it. Of locks it is not known which. Compiling takes longer than the time
 * between two samples: none of it was missed. */
static bool may_be_at(const struct tally_part *from, const struct tally_part *p)
{
	if (!p->place || p->making || p->owner != from->owner || p->pid != from->pid)
		return false;
	if (from->line == ACCOUNT_HOST)
		return is_sampled(p);
	return (p->line == from->line && p->line != ACCOUNT_LOCK) || p->blocks >> from->line & 1;
}

/* Who has the CPU or the interpreter's lock says more than where it was waited for. */
static bool is_placeless(const struct tally_part *p)
{
	return !p->place && p->line != ACCOUNT_CPU && p->line != ACCOUNT_GIL &&
	       p->line != ACCOUNT_UNKNOWN;
}

/* Shares out time without a place among the places of the same process where it may have been spent. */
static int place_time(struct tally *t)
{
	size_t n = t->count;

	for (size_t i = 0; i < n; i++) {
		struct tally_part from = t->parts[i];
		uint64_t seen = 0, given = 0;

		if (!is_placeless(&from))
			continue;
		for (size_t k = 0; k < n; k++)
			seen += may_be_at(&from, &t->parts[k]) ? t->parts[k].ns : 0;
		for (size_t k = 0; seen && k < n; k++) {
			const struct tally_part *at = &t->parts[k];
			struct tally_part part = from.line == ACCOUNT_HOST ? *at : from;

			if (!may_be_at(&from, at))
				continue;
			part.place = at->place;
			part.stack_hash = at->stack_hash;
			part.ns = (uint64_t)((__uint128_t)from.ns * at->ns / seen);
			part.ns = MIN(part.ns, from.ns - given);
			part.stack_ns = part.wait_ns = 0;
			given += part.ns;
			if (tally_merge(t, &part) < 0)
				return -ENOMEM;
		}
		t->parts[i].ns -= given;
		t->ns[from.line] -= given;
	}
	return 0;
}

/* Processes that come and go are waited for, for less than is recorded with a stack, where others of them are. */
static void place_waits(struct tally *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct tally_part *p = &t->parts[i];
		const struct tally_part *best = NULL;

		if (p->owner <= OWNER_THREAD || p->pid || p->wait_hash)
			continue;
		for (size_t k = 0; k < t->count; k++) {
			const struct tally_part *at = &t->parts[k];

			if (at->owner == p->owner && at->wait_hash &&
				!memcmp(at->comm, p->comm, COMM_LEN) &&
				(!best || at->wait_ns > best->wait_ns))
				best = at;
		}
		p->wait_hash = best ? best->wait_hash : 0;
	}
}

static uint64_t mean(uint64_t ns, size_t steps)
{
	return steps ? ns / steps : 0;
}

ORDER(by_growth, struct account_entry,
	COMPARE(account_entry_growth(y), account_entry_growth(x)) ?: ASCENDING(line) ?: ASCENDING(pid))

ORDER(by_ordinary, struct account_entry, DESCENDING(ordinary_ns) ?: by_growth(x, y))

static struct account_entry entry_of(const struct tally_part *p)
{
	struct account_entry e = {.line = (enum account_line)p->line,
		.owner = (enum account_owner)p->owner,
		.pid = p->pid,
		.culprit_pid = p->culprit_pid,
		.by_clock = p->by_clock,
		.stack_hash = p->stack_hash,
		.wait_hash = p->wait_hash};

	memcpy(e.comm, p->comm, COMM_LEN);
	memcpy(e.culprit, p->culprit, COMM_LEN);
	return e;
}

/* What of the account grew, by cause; where nothing is slow, all of it. */
static int put_entries(const struct builder *b, bool has_slow, struct step_account *a)
{
	const struct tally *ordinary = &b->sums[STEP_ORDINARY], *slow = &b->sums[STEP_SLOW];
	const struct tally *main = has_slow ? slow : ordinary;
	size_t steps = has_slow ? a->slow_steps : a->ordinary_steps, n = 0;
	_cleanup_free_ struct account_entry *all =
		calloc(ordinary->count + slow->count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < main->count; i++) {
		const struct tally_part *same =
			has_slow ? tally_find(ordinary, &main->parts[i]) : NULL;

		all[n] = entry_of(&main->parts[i]);
		all[n].slow_ns = mean(main->parts[i].ns, steps);
		all[n].ordinary_ns = same ? mean(same->ns, a->ordinary_steps) : 0;
		n++;
	}
	for (size_t i = 0; has_slow && i < ordinary->count; i++) {
		if (tally_find(slow, &ordinary->parts[i]))
			continue;
		all[n] = entry_of(&ordinary->parts[i]);
		all[n++].ordinary_ns = mean(ordinary->parts[i].ns, a->ordinary_steps);
	}
	if (n)
		qsort(all, n, sizeof(*all), by_growth);
	if (has_slow && n > ACCOUNT_ENTRIES) { /* some places are for what every step has most of */
		qsort(all + ACCOUNT_GROWN, n - ACCOUNT_GROWN, sizeof(*all), by_ordinary);
		qsort(all, ACCOUNT_ENTRIES, sizeof(*all), by_growth);
	}
	a->entry_count = (int)MIN(n, (size_t)ACCOUNT_ENTRIES);
	memcpy(a->entries, all, (size_t)a->entry_count * sizeof(*all));
	return 0;
}

static void put_owners(const struct tally *t, size_t steps, uint64_t (*by)[ACCOUNT_LINES])
{
	for (size_t i = 0; i < t->count; i++)
		by[t->parts[i].owner][t->parts[i].line] += t->parts[i].ns;
	for (int o = 0; o < ACCOUNT_OWNERS; o++)
		for (int l = 0; l < ACCOUNT_LINES; l++)
			by[o][l] = mean(by[o][l], steps);
}

static void put_work(const struct builder *b, struct step_account *a)
{
	uint32_t slow_counted = 0, ordinary_counted = 0, slow_open = 0, ordinary_open = 0;

	for (size_t i = 0; i < b->account->unit_count; i++) {
		const struct step_span *s = &b->account->units[i];
		bool is_slow = b->facts[i].class == STEP_SLOW;

		a->executes += (double)s->executes / (double)b->account->unit_count;
		if (b->facts[i].class == STEP_OTHER)
			continue;
		*(is_slow ? &a->slow_launches : &a->ordinary_launches) += (double)s->launches;
		*(is_slow ? &slow_counted : &ordinary_counted) += s->launches > 0;
		*(is_slow ? &a->slow_bytes : &a->ordinary_bytes) += (double)s->copy_bytes;
		*(is_slow ? &a->slow_waits : &a->ordinary_waits) += (double)s->waits;
		*(is_slow ? &a->slow_open_ns : &a->ordinary_open_ns) += (double)s->open_ns;
		*(is_slow ? &slow_open : &ordinary_open) += s->open_ns > 0;
		if (is_slow && !a->slow_first.ns)
			a->slow_first.ns = s->start_ns;
		if (is_slow)
			a->slow_last.ns = s->end_ns;
	}
	/* Launches are not probed all the time: steps without any are not counted. */
	a->ordinary_launches /= MAX(ordinary_counted, 1u);
	a->ordinary_bytes /= MAX(a->ordinary_steps, 1u);
	a->ordinary_waits /= MAX(a->ordinary_steps, 1u);
	a->slow_waits /= MAX(a->slow_steps, 1u);
	a->slow_launches /= MAX(slow_counted, 1u);
	a->slow_bytes /= MAX(a->slow_steps, 1u);
	a->ordinary_open_ns /= MAX(ordinary_open, 1u);
	a->slow_open_ns /= MAX(slow_open, 1u);
}

struct line_sums { /* over units: x: time on a line, y: what goes with it */
	double x, xx, xy;
};

struct unit_sums {
	double n, y, yy;
};

static void line_sums_add(struct line_sums *s, double x, double y)
{
	s->x += x;
	s->xx += x * x;
	s->xy += x * y;
}

static void unit_sums_add(struct unit_sums *u, double y)
{
	u->n++;
	u->y += y;
	u->yy += y * y;
}

/* How much y is more for each that x is more, at most as far as chance allows; 1: nothing is known. */
static double slope_most(const struct line_sums *s, const struct unit_sums *u)
{
	double n = MAX(u->n, 1.0), xx = s->xx - s->x * s->x / n, yy = u->yy - u->y * u->y / n;
	double xy = s->xy - s->x * u->y / n, slope = xx > 0 ? xy / xx : 0;

	if (n < THRESHOLD(WORK_UNITS) || xx <= 0)
		return 1;
	return slope + THRESHOLD(BEYOND) * sqrt(MAX(yy - slope * xy, 0.0) / (n - 2) / xx);
}

static void unit_lines(const struct process_account *a, size_t unit, double (*ret)[ACCOUNT_LINES])
{
	memset(ret, 0, ACCOUNT_OWNERS * sizeof(*ret));
	for (size_t i = unit ? a->part_end[unit - 1] : 0; i < a->part_end[unit]; i++) {
		const struct tally_part *key = &a->keys[a->parts[i].key];

		if (!key->is_pause)
			ret[key->owner][key->line] += (double)a->parts[i].ns;
	}
}

/* What the host does while the GPU works costs nothing as long as the GPU is waited for after it. Both must be seen: the
 * wait is shorter, and the unit no longer. Where no call only waits, a copy and the wait for what it copies are one call: what
 * of it is told as which may vary, and costs the same. */
static void put_hidden(const struct builder *b, struct step_account *a)
{
	struct line_sums waits[ACCOUNT_OWNERS][ACCOUNT_LINES] = {0},
			 lengths[ACCOUNT_OWNERS][ACCOUNT_LINES] = {0};
	struct unit_sums wait = {0}, whole = {0};
	double lines[ACCOUNT_OWNERS][ACCOUNT_LINES];

	for (size_t i = 0; i < b->account->unit_count; i++) {
		const struct step_facts *f = &b->facts[i];

		if (f->class == STEP_OTHER)
			continue;
		unit_sums_add(&wait, (double)f->wait_ns);
		unit_sums_add(&whole, (double)f->dur_ns);
		unit_lines(b->account, i, lines);
		for (int o = 0; o < ACCOUNT_OWNERS; o++)
			for (int l = 0; l < ACCOUNT_LINES; l++) {
				double x = lines[o][l];

				if (x <= 0)
					continue;
				line_sums_add(&waits[o][l], x, (double)f->wait_ns);
				line_sums_add(&lengths[o][l], x, (double)f->dur_ns);
			}
	}
	for (int o = 0; o < ACCOUNT_OWNERS; o++)
		for (int l = 0; l < ACCOUNT_LINES; l++) {
			double less = -slope_most(&waits[o][l], &wait);
			double same = 1 - slope_most(&lengths[o][l], &whole);
			double hidden = MIN(less, same);
			bool is_one_call = l == ACCOUNT_COPY && a->ordinary_waits <= 0;

			if (is_one_call)
				continue;
			a->hidden_by[o][l] = hidden < 0 ? 0 : MIN(hidden, 1.0);
		}
}

static int put_rhythm(const struct builder *b, struct step_account *a)
{
	struct rhythm found;
	int r = rhythm_find(
		b->account->units, b->facts, b->account->unit_count, b->found.group, &found);

	if (r < 0)
		return r;
	a->period_steps = found.period_steps;
	a->period_confidence = found.period_confidence;
	a->is_varied = found.is_varied;
	a->is_staged = found.is_staged;
	a->is_proportional = found.is_proportional;
	return 0;
}

static int put_bars(const struct builder *b, struct step_account *a)
{
	size_t each = (b->account->unit_count + ACCOUNT_BARS - 1) / ACCOUNT_BARS;

	a->bars = calloc(ACCOUNT_BARS, sizeof(*a->bars));
	if (!a->bars)
		return -ENOMEM;
	for (size_t i = 0; i < b->account->unit_count; i++) {
		struct account_bar *bar = &a->bars[i / each];

		if (!bar->steps)
			bar->start.ns = b->account->units[i].start_ns;
		bar->steps++;
		bar->slow_steps += b->facts[i].class == STEP_SLOW;
		bar->dur_ns += b->facts[i].dur_ns;
		account_lines(b->account, i, bar->ns);
		a->bar_count = i / each + 1;
	}
	return 0;
}

static int put_marks(const struct builder *b, struct step_account *a)
{
	size_t n = MIN(b->account->unit_count, (size_t)ACCOUNT_MARKS),
	       first = b->account->unit_count - n;

	a->marks = calloc(n + 1, sizeof(*a->marks));
	if (!a->marks)
		return -ENOMEM;
	a->mark_count = n;
	for (size_t i = 0; i < n; i++)
		a->marks[i] = (struct step_mark){
			.start.ns = b->account->units[first + i].start_ns +
				    (int64_t)account_pause_ns(b->account, first + i),
			.dur_ns = b->facts[first + i].dur_ns,
			.copy_bytes = b->account->units[first + i].copy_bytes,
			.is_slow = b->facts[first + i].class == STEP_SLOW};
	return 0;
}

static uint64_t length(const struct step_account *a)
{
	return (uint64_t)(a->last.ns - a->first.ns);
}

static int put_account(struct builder *b, struct step_account *a)
{
	bool has_slow = b->found.slow > 0 && b->found.lost_ns > 0;
	const struct tally *o = &b->sums[STEP_ORDINARY], *s = &b->sums[STEP_SLOW];

	*a = (struct step_account){.pid = b->account->pid,
		.tid = b->account->tid,
		.origin = b->account->origin,
		.confidence = b->account->confidence,
		.steps = (uint32_t)b->account->unit_count,
		.ordinary_steps = (uint32_t)b->found.ordinary,
		.slow_steps = (uint32_t)b->found.slow,
		.other_steps = (uint32_t)b->found.other,
		.group = b->found.group,
		.is_clocked = b->account->is_clocked,
		.first.ns = b->account->units[0].start_ns,
		.last.ns = b->account->units[b->account->unit_count - 1].end_ns,
		.is_drift = b->found.trend.is_drift,
		.drift_from_ns = b->found.trend.from_ns,
		.drift_to_ns = b->found.trend.to_ns,
		.lost_ns = b->found.lost_ns,
		.unknown_reason = ""};
	memcpy(a->comm, b->account->comm, COMM_LEN);
	for (int i = 0; i < ACCOUNT_LINES; i++) {
		for (int k = 0; k < CLASSES; k++)
			a->total_ns[i] += b->sums[k].ns[i];
		a->ordinary_ns[i] = mean(o->ns[i], a->ordinary_steps);
		a->slow_ns[i] = mean(s->ns[i], a->slow_steps);
		a->ordinary_step_ns += a->ordinary_ns[i];
		a->slow_step_ns += a->slow_ns[i];
	}
	if (a->total_ns[ACCOUNT_UNKNOWN] * UNKNOWN_PARTS > length(a))
		a->unknown_reason =
			b->account->is_derived
				? "this recording does not say what threads did between calls: record again to find out"
				: "records of what threads did are missing";
	put_owners(o, a->ordinary_steps, a->ordinary_by);
	put_owners(s, a->slow_steps, a->slow_by);
	put_work(b, a);
	put_hidden(b, a);
	if (put_bars(b, a) < 0 || put_marks(b, a) < 0 || put_rhythm(b, a) < 0)
		return -ENOMEM;
	return put_entries(b, has_slow, a);
}

static int contrast_units(const struct process_account *a, struct step_account *ret)
{
	_cleanup_(builder_done) struct builder b = {.account = a};
	int r = put_facts(&b);

	if (r == 0)
		r = classify_steps(b.facts, a->unit_count, &b.found);
	if (r < 0)
		return r;
	if (!b.found.trend.is_drift)
		border_settle(b.facts, a->unit_count, &b.found);
	r = sum_classes(&b);
	for (int i = 0; r == 0 && i < CLASSES; i++) {
		leave_out(&b.sums[i], b.found.is_setup);
		place_waits(&b.sums[i]);
		r = place_time(&b.sums[i]);
	}
	return r < 0 ? r : put_account(&b, ret);
}

static void account_clear(struct step_account *a)
{
	free(a->bars);
	free(a->marks);
	*a = (struct step_account){0};
}

int contrast(const struct process_account *a, struct step_account *ret)
{
	_cleanup_(regroup_done) struct process_account whole = {0};
	int r = contrast_units(a, ret);

	if (r < 0 || !regroup_is_needed(ret))
		return r;
	r = regroup(a, ret, &whole);
	if (r < 0)
		return r;
	account_clear(ret);
	return contrast_units(&whole, ret);
}

ORDER(by_length, struct step_account, COMPARE(length(y), length(x)))

int contrast_all(const struct account_set *s, struct step_report *ret)
{
	*ret = (struct step_report){.items = calloc(s->count + 1, sizeof(*ret->items))};
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++) {
		int r = contrast(&s->items[i], &ret->items[i]);

		ret->count++;
		if (r < 0) {
			step_report_done(ret);
			return r;
		}
	}
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_length);
	return 0;
}
