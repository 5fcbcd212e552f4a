/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/delay.h"

#include "diagnose/chains/chain.h"
#include "diagnose/chains/whole.h"

#include <stdlib.h>
#include <string.h>

#include "diagnose/accounts/tracer_name.h"
#include "diagnose/thresholds.h"
#include "base/search.h"
#include "base/macros.h"

#define SECTORS_MAX (UINT64_C(1) << 32)

const struct resource_row resource_rows[] = {
#define X(NAME, anybody, evidence, traits)                                                         \
	[RESOURCE_##NAME] = {anybody, EVIDENCE_##evidence, traits},
	RESOURCES(X)
#undef X
};

static const char *const texts[] = {
#define X(NAME, text) [DELAY_BY_##NAME] = text,
	DELAYS(X)
#undef X
};

const char *delay_id(enum delay_kind k)
{
	static const char *const several[] = {[DELAY_BY_LOADER] = "loader",
		[DELAY_BY_PROCESS] = "process",
		[DELAY_BY_CHECKPOINT] = "checkpoint",
		[DELAY_BY_COMPILE] = "compile",
		[DELAY_BY_SYNC] = "sync"};

	if (k >= DELAY_KINDS)
		return "";
	return (int)k < ACCOUNT_LINES ? account_line_id((enum account_line)k) : several[k];
}

const char *delay_text(enum delay_kind k)
{
	return k < DELAY_KINDS ? texts[k] : "";
}

STATIC_ASSERT((int)DELAY_BY_UNKNOWN == (int)ACCOUNT_UNKNOWN);
STATIC_ASSERT((int)DELAY_BY_CPU == (int)ACCOUNT_CPU);
STATIC_ASSERT((int)DELAY_BY_GPU == (int)ACCOUNT_GPU);

/* A process that waits for a CPU does not take its time: who has the CPU does. */
static enum delay_kind kind_of(enum account_owner owner, enum account_line line)
{
	if (owner == OWNER_LOADER)
		return DELAY_BY_LOADER;
	if (owner == OWNER_PROCESS && line != ACCOUNT_CPU)
		return DELAY_BY_PROCESS;
	return (enum delay_kind)line;
}

bool delay_is_of_tracer(const struct delay *l)
{
	if (l->kind != DELAY_BY_CPU)
		return false;
	return l->end.who[0] ? tracer_is(l->end.who) : l->lead && tracer_is(l->lead->culprit);
}

bool delay_is_foreign(const struct account_entry *e)
{
	return e->owner == OWNER_PROCESS && !e->stack_hash && !e->culprit[0] &&
	       (e->line == ACCOUNT_LOCK || e->line == ACCOUNT_NETWORK);
}

static bool has_part(const char *text, const char *const *parts)
{
	for (; text && *parts; parts++)
		if (strstr(text, *parts))
			return true;
	return false;
}

/* What the program was doing, where its stack tells: writing a checkpoint, or compiling. */
static enum delay_kind purpose_of(const struct recording *rec, const struct account_entry *e)
{
	static const char *const saver_files[] = {
		"torch/serialization.py", "torch/distributed/checkpoint/", "safetensors/", NULL};
	static const char *const saver_functions[] = {"save_checkpoint", "checkpoint_save", NULL};
	const struct stack *s = stack_find(rec->stacks, e->stack_hash);

	if (chain_compiler_of(rec, e))
		return DELAY_BY_COMPILE;
	for (size_t i = 0; s && i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_python(f) && (has_part(f->py_file, saver_files) ||
							has_part(f->py_func, saver_functions)))
			return DELAY_BY_CHECKPOINT;
	}
	return DELAY_KINDS;
}

struct sums {
	uint64_t ordinary_ns[DELAY_KINDS], slow_ns[DELAY_KINDS];
};

static void move(struct sums *s, enum delay_kind from, enum delay_kind to)
{
	s->ordinary_ns[to] += s->ordinary_ns[from];
	s->slow_ns[to] += s->slow_ns[from];
	s->ordinary_ns[from] = s->slow_ns[from] = 0;
}

/* If enough of the growth is of @purpose by its stacks, what goes along with it is too. */
static void apply_purpose(const struct recording *rec, const struct step_account *a,
	enum delay_kind purpose, const enum delay_kind *along, struct sums *s)
{
	int64_t of_purpose = 0;
	uint64_t grown = 0;

	for (int k = 0; k < DELAY_KINDS; k++)
		if (k != DELAY_BY_UNKNOWN && s->slow_ns[k] > s->ordinary_ns[k])
			grown += s->slow_ns[k] - s->ordinary_ns[k];
	for (int i = 0; i < a->entry_count; i++)
		if (purpose_of(rec, &a->entries[i]) == purpose)
			of_purpose += account_entry_growth(&a->entries[i]);
	if (of_purpose <= 0 || (double)of_purpose < THRESHOLD(CHAIN_PART) * (double)grown)
		return;
	for (; *along != DELAY_KINDS; along++)
		move(s, *along, purpose);
}

/* Time in which code was made, whatever line it is on: that of each entry, no more. */
static void apply_compiling(
	const struct recording *rec, const struct step_account *a, struct sums *s)
{
	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];
		enum delay_kind from = kind_of(e->owner, e->line);
		uint64_t ordinary = MIN(e->ordinary_ns, s->ordinary_ns[from]);
		uint64_t slow = MIN(e->slow_ns, s->slow_ns[from]);

		if (purpose_of(rec, e) != DELAY_BY_COMPILE)
			continue;
		s->ordinary_ns[from] -= ordinary;
		s->ordinary_ns[DELAY_BY_COMPILE] += ordinary;
		s->slow_ns[from] -= slow;
		s->slow_ns[DELAY_BY_COMPILE] += slow;
	}
}

/* Whether the process wrote to the disk in slow steps, and more than it read. Writes of others in its name are not
 * seen, but who waits for them asks for them. */
static bool is_writing(const struct recording *rec, const struct step_account *a)
{
	uint64_t written = 0, read = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->source != SOURCE_IO || e->pid != a->pid ||
			!step_account_is_slow(a, e->start.ns))
			continue;
		written += e->op == IO_WRITE ? MIN(e->arg0, SECTORS_MAX) : 0;
		read += e->op == IO_READ ? MIN(e->arg0, SECTORS_MAX) : 0;
	}
	return written > read;
}

/* Every so many steps, or now and then, the thread itself waits for what it writes: a checkpoint, in whatever language it is written
 * and whatever it calls before. */
static void apply_writing(const struct recording *rec, const struct step_account *a, struct sums *s)
{
	static const enum delay_kind along[] = {DELAY_BY_DISK, DELAY_BY_HOST, DELAY_BY_MEMORY};
	double lost = (double)a->slow_step_ns - (double)a->ordinary_step_ns;
	uint64_t disk = a->slow_by[OWNER_SELF][ACCOUNT_DISK];

	if ((!a->period_steps && a->slow_steps * THRESHOLD(RARELY) > a->steps) ||
		s->slow_ns[DELAY_BY_CHECKPOINT] || (double)disk < THRESHOLD(CHAIN_PART) * lost ||
		a->ordinary_by[OWNER_SELF][ACCOUNT_DISK] * 2 > disk ||
		(double)a->ordinary_by[OWNER_SELF][ACCOUNT_DISK] >=
			THRESHOLD(WASTE) * (double)a->ordinary_step_ns || /* all do it */
		!is_writing(rec, a))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(along); i++)
		move(s, along[i], DELAY_BY_CHECKPOINT);
}

/* Whether slow steps wait for the GPU where ordinary ones do not. */
static bool waits_anew(const struct account_entry *e)
{
	return e->owner == OWNER_SELF && e->line == ACCOUNT_GPU && e->stack_hash &&
	       (double)e->ordinary_ns < THRESHOLD(LITTLE) * (double)e->slow_ns;
}

/* A wait in the middle of a step (an item() in the loop, say) ends the CPU's lead: what it did while
 * the GPU was busy is now done while the GPU idles, and the wait at the end of the step gets
 * shorter by as much as the new one takes. So the GPU's line as a whole need not grow, and host code
 * and launches, which do no more than before, do. */
static void apply_sync(const struct step_account *a, struct sums *s)
{
	static const enum delay_kind along[] = {
		DELAY_BY_GPU, DELAY_BY_HOST, DELAY_BY_LAUNCH, DELAY_BY_COPY, DELAY_BY_CALL};
	double lost = (double)a->slow_step_ns - (double)a->ordinary_step_ns;
	int64_t anew = 0;

	if (s->slow_ns[DELAY_BY_GPU] > s->ordinary_ns[DELAY_BY_GPU] ||
		a->slow_waits < a->ordinary_waits + 1)
		return;
	for (int i = 0; i < a->entry_count; i++)
		if (waits_anew(&a->entries[i]))
			anew += account_entry_growth(&a->entries[i]);
	if ((double)anew < THRESHOLD(CHAIN_PART) * lost)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(along); i++)
		move(s, along[i], DELAY_BY_SYNC);
}

/* How long the GPU idles in a unit that waits for it again and again: by its readings; without any it is known to where it gets
 * its work in pieces. */
static double idle_between_waits(const struct recording *rec, const struct step_account *a)
{
	const uint64_t *own = a->ordinary_by[OWNER_SELF];
	bool in_pieces = gpu_gets_pieces(rec, a);
	double idle = gpu_idle_share(rec, a) * (double)a->ordinary_step_ns, least;

	if (!in_pieces && a->ordinary_waits < THRESHOLD(SYNCS_MANY))
		return 0;
	if (in_pieces && !rec->gpu_count)
		idle = (double)(own[ACCOUNT_HOST] + own[ACCOUNT_LAUNCH] + own[ACCOUNT_CALL]);
	least = in_pieces ? THRESHOLD(WASTE) : THRESHOLD(PART);
	return idle >= least * (double)a->ordinary_step_ns ? idle : 0;
}

/* Hundreds of waits in every unit, each for little (an item() for each parameter, a result for each row), and the GPU idles
 * between them: they cost what is waited and copied, as far as the GPU idles. Copies that are much by themselves are told as
 * such. */
static void apply_many_syncs(
	const struct recording *rec, const struct step_account *a, struct sums *s)
{
	double least = THRESHOLD(PART) * (double)a->ordinary_step_ns;
	double copies = (double)a->ordinary_by[OWNER_SELF][ACCOUNT_COPY];
	double own = (double)a->ordinary_by[OWNER_SELF][ACCOUNT_GPU] + copies;
	double idle = 0;
	uint64_t rest;

	if (own >= least && copies < THRESHOLD(WASTE) * (double)a->ordinary_step_ns)
		idle = idle_between_waits(rec, a);
	if (idle <= 0)
		return;
	move(s, DELAY_BY_GPU, DELAY_BY_SYNC);
	move(s, DELAY_BY_COPY, DELAY_BY_SYNC);
	rest = s->slow_ns[DELAY_BY_SYNC] - MIN(s->slow_ns[DELAY_BY_SYNC], (uint64_t)idle);
	s->slow_ns[DELAY_BY_GPU] = rest;
	s->slow_ns[DELAY_BY_SYNC] -= rest;
}

bool delay_has(const struct recording *rec, enum delay_kind kind, const struct account_entry *e)
{
	if (kind == DELAY_BY_CHECKPOINT || kind == DELAY_BY_COMPILE)
		return purpose_of(rec, e) == kind;
	if (kind == DELAY_BY_SYNC)
		return waits_anew(e);
	return kind_of(e->owner, e->line) == kind;
}

/* The entry to name: the largest, but for one that has a place and is not much smaller. */
static const struct account_entry *lead_of(
	const struct recording *rec, const struct step_account *a, enum delay_kind kind)
{
	const struct account_entry *largest = NULL;

	for (int i = 0; i < a->entry_count && account_entry_growth(&a->entries[i]) > 0; i++) {
		const struct account_entry *e = &a->entries[i];

		if (!delay_has(rec, kind, e))
			continue;
		if (!largest)
			largest = e;
		if ((double)account_entry_growth(e) <
			THRESHOLD(LITTLE) * (double)account_entry_growth(largest))
			break;
		if (e->stack_hash)
			return e;
	}
	return largest;
}

ORDER(by_growth, struct delay, COMPARE(y->slow_ns - y->ordinary_ns, x->slow_ns - x->ordinary_ns))

void delays_find(const struct recording *rec, const struct step_account *a, struct delay_list *ret)
{
	static const enum delay_kind saving[] = {DELAY_BY_HOST, DELAY_BY_DISK, DELAY_BY_COPY,
		DELAY_BY_GPU, DELAY_BY_MEMORY, DELAY_BY_ALLOCATION, DELAY_KINDS};
	bool has_slow = a->lost_ns > 0;
	struct sums s = {0};

	*ret = (struct delay_list){0};
	for (int o = 0; o < ACCOUNT_OWNERS; o++)
		for (int l = 0; l < ACCOUNT_LINES; l++) {
			enum delay_kind k = kind_of((enum account_owner)o, (enum account_line)l);

			s.ordinary_ns[k] += has_slow ? a->ordinary_by[o][l] : 0;
			s.slow_ns[k] += has_slow ? a->slow_by[o][l] : a->ordinary_by[o][l];
		}
	apply_purpose(rec, a, DELAY_BY_CHECKPOINT, saving, &s);
	apply_compiling(rec, a, &s);
	if (has_slow) {
		apply_writing(rec, a, &s);
		apply_sync(a, &s);
	} else {
		apply_many_syncs(rec, a, &s);
	}
	for (int k = 0; k < DELAY_KINDS; k++) {
		if (s.slow_ns[k] <= s.ordinary_ns[k])
			continue;
		ret->items[ret->count++] = (struct delay){.kind = (enum delay_kind)k,
			.ordinary_ns = s.ordinary_ns[k],
			.slow_ns = s.slow_ns[k],
			.lead = lead_of(rec, a, (enum delay_kind)k)};
		if (k == DELAY_BY_CHECKPOINT && !ret->items[ret->count - 1].lead)
			ret->items[ret->count - 1].lead = lead_of(rec, a, DELAY_BY_DISK);
		ret->grown_ns += s.slow_ns[k] - s.ordinary_ns[k];
	}
	qsort(ret->items, (size_t)ret->count, sizeof(ret->items[0]), by_growth);
	for (int i = 0; i < ret->count; i++) {
		struct delay *l = &ret->items[i];

		l->share = (double)(l->slow_ns - l->ordinary_ns) / (double)ret->grown_ns;
		if (l->kind == DELAY_BY_UNKNOWN)
			ret->unknown = l->share;
	}
}
