/* SPDX-License-Identifier: Apache-2.0 */
/* chain_compile.c - compilers: which one, for which line of the program, in how many steps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "diagnose/accounts/compiler.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/thresholds.h"

const char *chain_compiler_of(const struct recording *rec, const struct account_entry *e)
{
	return compiler_of_part(
		rec->stacks, e->wait_hash, e->stack_hash, e->owner > OWNER_THREAD ? e->comm : NULL);
}

#define COMPILERS_MAX 16

struct compiling {
	const char *name;
	uint64_t ns;
};

/* The program's own line that had code made; NULL: none is known. */
static const struct stack_frame *user_line(
	const struct recording *rec, const struct account_entry *e)
{
	const struct stack *wait = stack_find(rec->stacks, e->wait_hash);
	const struct stack *own = stack_find(rec->stacks, e->stack_hash);
	const struct stack_frame *f = wait ? stack_user_frame(wait) : NULL;

	return f || !own ? f : stack_user_frame(own);
}

/* For each stack of the recording whether it is a compiler's, found out once: 0 not yet, 1 no, 2 yes. */
static bool is_compiling(const struct recording *rec, uint8_t *known, uint64_t hash)
{
	size_t at;

	if (!hash || !rec->stacks || !known)
		return false;
	at = LOWER_BOUND(i, rec->stacks->count, rec->stacks->items[i]->hash < hash);
	if (at == rec->stacks->count || rec->stacks->items[at]->hash != hash)
		return false;
	if (!known[at])
		known[at] = compiler_of_stack(rec->stacks->items[at]) ? 2 : 1;
	return known[at] == 2;
}

static bool is_evidence(const struct chain *c, uint8_t *known, const struct event *e)
{
	if (e->source == SOURCE_HOST && e->op == HOST_PROCESS_EXEC)
		return compiler_of_process(e->comm) != NULL;
	return e->pid == c->a->pid && is_compiling(c->rec, known, e->stack_hash);
}

/* In how many steps a compiler was seen, by rows of the job and by compilers that were started. */
static uint32_t steps_with(const struct chain *c)
{
	const struct step_account *a = c->a;
	_cleanup_free_ uint8_t *known =
		calloc(c->rec->stacks ? c->rec->stacks->count + 1 : 1, sizeof(*known));
	const struct event *events = c->rec->events;
	size_t first = LOWER_BOUND(k, c->rec->event_count, events[k].start.ns < c->from_ns);
	uint32_t steps = 0;
	size_t last = SIZE_MAX;

	for (size_t i = first; i < c->rec->event_count && events[i].start.ns < c->to_ns; i++) {
		const struct event *e = &events[i];
		size_t at = LOWER_BOUND(k, a->mark_count, a->marks[k].start.ns <= e->start.ns);

		if (!at || at == last || !is_evidence(c, known, e))
			continue;
		last = at;
		steps++;
	}
	return steps;
}

static void describe(const struct chain *c, const struct stack_frame *f, struct resource_use *ret)
{
	uint32_t steps = steps_with(c);
	int n = 0;

	if (f)
		n = snprintf(ret->detail, sizeof(ret->detail), "for %s:%" PRIu32,
			stack_base_name(f->py_file), f->py_line);
	n = MIN(n, (int)sizeof(ret->detail) - 1);
	if (steps)
		snprintf(ret->detail + n, sizeof(ret->detail) - (size_t)n, "%sin %u of %u steps",
			f ? ", " : "", steps, c->a->steps);
}

/* Whether @e is a part of the delay; what compiling is made of was put together from several lines. */
static bool is_of_delay(const struct chain *c, const struct account_entry *e)
{
	switch (c->d->kind) {
	case DELAY_BY_COMPILE: return true;
	case DELAY_BY_LOADER: return e->owner == OWNER_LOADER;
	case DELAY_BY_PROCESS: return e->owner == OWNER_PROCESS;
	default: return e->owner <= OWNER_THREAD && e->line == c->line;
	}
}

bool chain_compile(const struct chain *c, struct resource_use *ret)
{
	uint64_t grown = c->d->slow_ns - MIN(c->d->slow_ns, c->d->ordinary_ns);
	struct compiling found[COMPILERS_MAX] = {0};
	const struct account_entry *largest = NULL;
	uint64_t all = 0;
	int best = 0;

	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];
		const char *name = chain_compiler_of(c->rec, e);
		int k = 0;

		if (e->slow_ns <= e->ordinary_ns || !is_of_delay(c, e) || !name)
			continue;
		while (k < COMPILERS_MAX - 1 && found[k].name && strcmp(found[k].name, name) != 0)
			k++;
		found[k].name = found[k].name ? found[k].name : name;
		found[k].ns += account_entry_more(e);
		all += account_entry_more(e);
		best = found[k].ns > found[best].ns ? k : best;
		if (!largest || (user_line(c->rec, e) && !user_line(c->rec, largest)))
			largest = e;
	}
	if (!largest || (c->d->kind != DELAY_BY_COMPILE &&
				(double)all < THRESHOLD(CHAIN_MOST) * (double)grown))
		return false;
	ret->resource = RESOURCE_COMPILER;
	snprintf(ret->who, sizeof(ret->who), "%s", found[best].name);
	describe(c, user_line(c->rec, largest), ret);
	ret->share = (double)found[best].ns / (double)all;
	return true;
}
