/* SPDX-License-Identifier: Apache-2.0 */
/* line_time.c - see line_time.h. Of the loop itself only the one line counts. The places of a line's largest
 * entries stand for all of its time. */
#include "diagnose/compose/line_time.h"

#include <string.h>

#include "base/macros.h"

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
	const struct stack *s = hash && rec->stacks ? stack_find(rec->stacks, hash) : NULL;

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
	const struct stack *s = e->stack_hash ? stack_find(rec->stacks, e->stack_hash) : NULL;
	const struct stack_frame *inner = s ? stack_user_frame(s) : NULL;

	return inner && !is_frame_of(inner, p, 0) && passes(rec, e->stack_hash, p, 0) &&
	       !passes(rec, e->stack_hash, p, p->line);
}

/* Whether @p's function is the loop itself, from which other things are done as well: most launches come from it, or
 * others of the program's functions are called on other lines. */
static bool is_loop(
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
	uint32_t line = is_loop(rec, a, p) ? p->line : 0;
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
