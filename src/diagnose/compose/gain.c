/* SPDX-License-Identifier: Apache-2.0 */
/* gain.c - see gain.h. The range has three reasons: units differ among themselves, a part of the time is not known and
 * may or may not belong to the delay, and work of the GPU may lie hidden beneath it. What is not known cannot be mended. */
#include "diagnose/compose/gain.h"

#include <string.h>

#include "diagnose/chains/delay_weight.h"
#include "diagnose/chains/whole.h"
#include "diagnose/sentences/delay_subject.h"
#include "diagnose/thresholds.h"
#include "base/macros.h"

#define LINK_BYTES_NS                                                                              \
	12.0 /* bytes/ns: a copy from pinned memory over a common link; copies that do not block still
			      take so long */

/* How far an ordinary unit is from their mean, on average. */
static double spread_ns(const struct step_account *a)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < a->mark_count; i++) {
		double d = (double)a->marks[i].dur_ns - (double)a->ordinary_step_ns;

		if (a->lost_ns && a->marks[i].is_slow)
			continue;
		sum += d < 0 ? -d : d;
		n++;
	}
	return n ? sum / (double)n : 0;
}

/* The GPU does the work of a unit in no more than a short one takes, however long others are. */
static double short_ns(const struct step_account *a)
{
	const size_t n = (size_t)THRESHOLD(AGAIN);
	double least[16];
	size_t count = 0;

	for (size_t i = 0; i < a->mark_count; i++) {
		double ns = (double)a->marks[i].dur_ns;
		size_t at = count;

		while (at && least[at - 1] > ns)
			at--;
		if (at == n)
			continue;
		count = MIN(count + 1, n);
		memmove(least + at + 1, least + at, (count - 1 - at) * sizeof(*least));
		least[at] = ns;
	}
	return count == n && a->group <= 1 ? least[n - 1] : (double)a->ordinary_step_ns;
}

static uint64_t clamp(double ns, uint64_t from, uint64_t to)
{
	return ns <= (double)from ? from : ns >= (double)to ? to : (uint64_t)ns;
}

/* Whether what ordinary units have of it is of the same making, and may go along: waits for others, and waste. */
static bool may_go_whole(enum delay_kind kind)
{
	return delay_stands_alone(kind) || kind == DELAY_BY_NETWORK || kind == DELAY_BY_ASLEEP ||
	       kind == DELAY_BY_LOCK || kind == DELAY_BY_PROCESS;
}

/* What grew beside the delays that are told is taken to come with them; at worst it is none of theirs. At best ordinary
 * units get shorter, too. */
static void of_slow(
	const struct step_account *a, const struct delay *l, double told, struct gain *ret)
{
	double slow = (double)a->slow_step_ns;
	double span = MAX(slow - (double)a->ordinary_step_ns, 0.0), spread = spread_ns(a);
	double fixed = told > 0 ? slow - MIN(l->share / told, 1.0) * span : slow;
	double best = fixed - spread;

	ret->unit_ns = a->slow_step_ns;
	ret->fixed_ns = clamp(fixed, 0, ret->unit_ns);
	if (may_go_whole(l->kind))
		best -= (double)l->ordinary_ns;
	ret->least_ns = clamp(best, 0, ret->fixed_ns);
	ret->most_ns = clamp(slow - l->share * span + spread, ret->fixed_ns, ret->unit_ns);
}

/* How much of the delay goes with what it leads to: work of the GPU's own gets shorter, it does not go, and of host code
 * only what runs at the place that is named. */
static double removable(const struct delay *l, const struct gain_facts *facts)
{
	bool is_known = l->end.resource != RESOURCE_NONE && l->end.share > 0;

	if (l->kind == DELAY_BY_HOST)
		return facts->here;
	return l->kind == DELAY_BY_GPU && is_known ? MIN(l->end.share, 1.0) : 1;
}

static void of_every(const struct step_account *a, const struct delay *l,
	const struct gain_facts *facts, struct gain *ret)
{
	double unit = (double)a->ordinary_step_ns, beside = (double)facts->beside_ns;
	double exposed = (double)l->slow_ns * (1 - delay_hidden(a, l));
	double whole = MIN(exposed + beside, unit);
	double part = MIN(exposed * removable(l, facts) + beside, unit);
	double rest = unit - part, spread = spread_ns(a);
	bool is_of_gpu = l->kind == DELAY_BY_GPU; /* then that is what gets shorter */
	/* Whose work is done meanwhile is hardly waited for afterwards. */
	bool is_hidden = (double)a->ordinary_ns[ACCOUNT_GPU] <=
			 MIN(THRESHOLD(FEW) * unit, THRESHOLD(PART) * rest);
	double busy = (double)facts->busy_ns, work = busy, most;
	double most_busy = short_ns(a);

	if (a->ordinary_open_ns > 0)
		most_busy = MIN(most_busy, a->ordinary_open_ns);
	if (!is_of_gpu && !facts->busy_ns) /* where nobody waits for it, it may work all the time */
		work = MIN(rest + (is_hidden ? 1 : THRESHOLD(CHAIN_MOST)) * part, most_busy);
	if (!is_of_gpu && !facts->busy_ns && is_hidden) /* and nothing says for how long */
		busy = (rest + MAX(rest, work)) / 2;
	most = MAX(rest, work + (double)facts->busy_error_ns);
	most = (is_of_gpu ? rest + THRESHOLD(CHAIN_MOST) * part : most) + spread;
	if (l->kind == DELAY_BY_HOST) /* what it does is still to be done, in another way */
		most += THRESHOLD(FEW) * part;
	if (l->kind == DELAY_BY_COPY)
		most += a->ordinary_bytes / LINK_BYTES_NS;
	ret->unit_ns = a->ordinary_step_ns;
	ret->fixed_ns = clamp(is_of_gpu ? rest : MAX(rest, busy), 0, ret->unit_ns);
	ret->least_ns = clamp(unit - whole - (double)facts->unplaced_ns - spread, 0, ret->fixed_ns);
	ret->most_ns = clamp(most, ret->fixed_ns, ret->unit_ns);
}

void gain_of(const struct step_account *a, const struct delay *l, double told,
	const struct gain_facts *facts, struct gain *ret)
{
	*ret = (struct gain){0};
	if (l->kind == DELAY_BY_UNKNOWN)
		return;
	if (a->lost_ns)
		of_slow(a, l, told, ret);
	else
		of_every(a, l, facts, ret);
}

void gain_find(const struct recording *rec, const struct step_account *a, const struct delay *l,
	uint32_t kinds, struct gain_facts *ret)
{
	struct gpu_use use = gpu_use_of(rec, a);
	double unit = (double)a->ordinary_step_ns;
	struct code_place p;

	*ret = (struct gain_facts){.here = 1,
		.busy_ns = (uint64_t)(use.busy * unit),
		.busy_error_ns = (uint64_t)(use.error * unit)};
	if (!line_time_is_own(l->kind) || !delay_subject_place(rec, a, l, NULL, &p))
		return;
	ret->here = p.share;
	ret->beside_ns = line_time_ns(rec, a, &p, kinds, &ret->unplaced_ns);
}

void gain_put(const struct gain *g, struct incident *inc)
{
	inc->unit_ns = g->unit_ns;
	inc->fixed_ns = g->fixed_ns;
	inc->fixed_least_ns = g->least_ns;
	inc->fixed_most_ns = g->most_ns;
}

/* Of the loop itself only the one line counts. The places of a line's largest
 * entries stand for all of its time. */

#define KIND(NAME) (UINT32_C(1) << DELAY_BY_##NAME)
#define LINE(NAME) (UINT32_C(1) << ACCOUNT_##NAME)

bool line_time_is_own(enum delay_kind kind)
{
	const uint32_t kinds = KIND(HOST) | KIND(COPY) | KIND(SYNC) | KIND(NETWORK) | KIND(ASLEEP) |
			       KIND(LOCK) | KIND(PROCESS) | KIND(DISK) | KIND(CHECKPOINT) |
			       KIND(ALLOCATION) | KIND(CALL) | KIND(GC);

	return kinds >> kind & 1;
}

static bool is_frame_of(const struct stack_frame *f, const struct code_place *p, uint32_t line)
{
	const char *file = stack_frame_is_python(f) ? f->py_file : f->file;
	const char *func = stack_frame_is_python(f) ? f->py_func : f->symbol;
	uint32_t at = stack_frame_is_python(f) ? f->py_line : f->line;

	return file && func && !strcmp(file, p->file) && !strcmp(func, p->func) &&
	       (!line || at == line);
}

static bool passes(
	const struct recording *rec, uint64_t hash, const struct code_place *p, uint32_t line)
{
	const struct stack *s = stack_find(rec->stacks, hash);

	for (size_t i = 0; s && i < s->count; i++)
		if (is_frame_of(&s->frames[i], p, line))
			return true;
	return false;
}

static bool is_under(const struct recording *rec, const struct account_entry *e,
	const struct code_place *p, uint32_t line)
{
	return passes(rec, e->stack_hash, p, line) || passes(rec, e->wait_hash, p, line);
}

/* Whether @e is spent in another function of the program's own that @p's function calls from another line. */
static bool is_called(
	const struct recording *rec, const struct account_entry *e, const struct code_place *p)
{
	const struct stack *s = stack_find(rec->stacks, e->stack_hash);
	const struct stack_frame *inner = s ? stack_user_frame(s) : NULL;

	return inner && !is_frame_of(inner, p, 0) && passes(rec, e->stack_hash, p, 0) &&
	       !passes(rec, e->stack_hash, p, p->line);
}

bool line_is_of_loop(
	const struct recording *rec, const struct step_account *a, const struct code_place *p)
{
	const uint32_t lines = LINE(LAUNCH) | LINE(GRAPH) | LINE(COLLECTIVE);
	uint64_t all = 0, here = 0;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];

		if (is_called(rec, e, p))
			return true;
		if (!(lines >> e->line & 1))
			continue;
		all += e->slow_ns;
		here += is_under(rec, e, p, 0) ? e->slow_ns : 0;
	}
	return here * 2 > all;
}

static bool is_of_kinds(const struct recording *rec, uint32_t kinds, const struct account_entry *e)
{
	for (int k = 0; k < DELAY_KINDS; k++)
		if (kinds >> k & 1 && delay_has(rec, (enum delay_kind)k, e))
			return true;
	return false;
}

struct placed { /* of one line of the account, of one owner: its entries with a place */
	uint64_t known, here;
};

uint64_t line_time_ns(const struct recording *rec, const struct step_account *a,
	const struct code_place *p, uint32_t kinds, uint64_t *ret_unplaced)
{
	const uint32_t waits = LINE(NETWORK) | LINE(ASLEEP) | LINE(LOCK) | LINE(DISK);
	uint32_t line = line_is_of_loop(rec, a, p) ? p->line : 0;
	struct placed by[ACCOUNT_OWNERS][ACCOUNT_LINES] = {0};
	double ns = 0;

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];
		struct placed *of = &by[e->owner][e->line];

		of->known += e->stack_hash || e->wait_hash ? e->slow_ns : 0;
		if (e->line != ACCOUNT_GPU && !is_of_kinds(rec, kinds, e))
			of->here += is_under(rec, e, p, line) ? e->slow_ns : 0;
	}
	*ret_unplaced = 0;
	for (int o = 0; o < ACCOUNT_OWNERS; o++)
		for (int l = 0; l < ACCOUNT_LINES; l++) {
			const struct placed *of = &by[o][l];
			uint64_t all = a->ordinary_by[o][l];

			if (of->known)
				ns += (double)all * (double)of->here / (double)of->known;
			else if (o == OWNER_SELF && waits >> l & 1 && !(kinds >> l & 1))
				*ret_unplaced += all;
		}
	return (uint64_t)ns;
}
