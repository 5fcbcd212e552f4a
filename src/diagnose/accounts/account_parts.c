/* SPDX-License-Identifier: Apache-2.0 */
/* account_parts.c - the parts of an account's units and their keys (account.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/accounts/account.h"
#include "diagnose/accounts/compiler.h"
#include "diagnose/rows/place.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/macros.h"
#include "diagnose/thresholds.h"
#include "stat/robust.h"

#define KEYS_ROOM    (ACCOUNT_KEYS_MAX + ACCOUNT_LINES * ACCOUNT_OWNERS)
#define MAKING_SHIFT 62 /* of a place: time in which code is made is none of the line's */

STATIC_ASSERT(sizeof(struct tally_part) % sizeof(uint64_t) == 0);

static struct tally_part key_of(const struct tally_part *p)
{
	struct tally_part key;

	memset(&key, 0, sizeof(key)); /* padding too: keys are hashed as words */
	key.line = p->line;
	key.owner = p->owner;
	key.pid = p->pid;
	key.culprit_pid = p->culprit_pid;
	key.by_clock = p->by_clock;
	key.place = p->place;
	key.stack_hash = p->stack_hash;
	key.wait_hash = p->wait_hash;
	memcpy(key.comm, p->comm, COMM_LEN);
	memcpy(key.culprit, p->culprit, COMM_LEN);
	return key;
}

/* The number of @p's key in @a, which it is added to; where there are too many, that of its line and owner. */
static int intern_key(struct process_account *a, const struct tally_part *p, uint32_t *ret)
{
	struct tally_part key = key_of(p);
	uint64_t id = hash_words(&key, sizeof(key));
	size_t at = (size_t)(uintptr_t)idmap_get(&a->key_numbers, id); /* + 1 */

	if (!at && a->key_count >= ACCOUNT_KEYS_MAX) {
		key = key_of(&(struct tally_part){.line = p->line, .owner = p->owner});
		id = hash_words(&key, sizeof(key));
		at = (size_t)(uintptr_t)idmap_get(&a->key_numbers, id);
	}
	if (!at) {
		if (ARRAY_RESERVE(a->keys, a->key_room, a->key_count + 1, KEYS_ROOM) < 0 ||
			idmap_put(&a->key_numbers, id, (void *)(uintptr_t)(a->key_count + 1)) < 0)
			return -ENOMEM;
		a->keys[a->key_count++] = key;
		at = a->key_count;
	}
	*ret = (uint32_t)at - 1;
	return 0;
}

static int add_part(struct process_account *a, const struct tally_part *p)
{
	struct account_part part = {.stack_ns = (uint32_t)MIN(p->stack_ns, (uint64_t)UINT32_MAX),
		.wait_ns = (uint32_t)MIN(p->wait_ns, (uint64_t)UINT32_MAX),
		.ns = p->ns};

	if (intern_key(a, p, &part.key) < 0 ||
		ARRAY_RESERVE(a->parts, a->part_room, a->part_count + 1, RECORDING_ROWS_MAX) < 0)
		return -ENOMEM;
	a->parts[a->part_count++] = part;
	return 0;
}

int account_end_unit(struct process_account *a, size_t unit, const struct tally *t)
{
	bool is_plain = a->part_count + t->count > ACCOUNT_PARTS_MAX;
	int r = 0;

	a->key_numbers.max = KEYS_ROOM;
	for (size_t i = 0; r == 0 && !is_plain && i < t->count; i++)
		r = add_part(a, &t->parts[i]);
	for (uint8_t i = 0; r == 0 && is_plain && i < ACCOUNT_LINES; i++)
		if (t->ns[i])
			r = add_part(a, &(struct tally_part){.line = i, .ns = t->ns[i]});
	a->part_end[unit] = a->part_count;
	return r;
}

static struct account_part *first_of(const struct process_account *a, size_t unit)
{
	return a->parts + (unit ? a->part_end[unit - 1] : 0);
}

static enum code_making making_of(const struct tally_part *key, const struct stack_list *stacks)
{
	const struct stack *own = stack_find(stacks, key->stack_hash);
	const char *name = compiler_of_part(stacks, key->wait_hash, key->stack_hash,
		key->owner > OWNER_THREAD ? key->comm : NULL);

	if (!name && own && compiler_builds_model(own))
		return MAKING_MODEL;
	return compiler_making(name);
}

/* ---- pauses ---- */

/* Of another process that is waited for, sleep is its answer that does not come. */
static bool is_sleep(const struct tally_part *key)
{
	return key->by_clock && (key->owner == OWNER_PROCESS ? key->line == ACCOUNT_NETWORK
							     : key->owner <= OWNER_THREAD);
}

/* Whether it is a sleep of another process, or of the program itself. */
static bool is_sleep_of(const struct tally_part *key, bool of_process)
{
	return key->is_pause && (key->owner == OWNER_PROCESS) == of_process;
}

struct sleeps { /* of units, one by one */
	uint64_t *ns;
	size_t count;                /* of units that have any */
	uint64_t sum_ns, longest_ns; /* of all; the longest of each unit */
};

static void sum_sleeps(const struct process_account *a, bool of_process, struct sleeps *s)
{
	for (size_t i = 0; i < a->unit_count; i++) {
		uint64_t ns = 0, longest = 0;

		for (const struct account_part *p = first_of(a, i); p < a->parts + a->part_end[i];
			p++) {
			if (!is_sleep_of(&a->keys[p->key], of_process))
				continue;
			ns += p->ns;
			longest = MAX(longest, p->stack_ns ? p->stack_ns : p->ns);
		}
		if (ns)
			s->ns[s->count++] = ns;
		s->sum_ns += ns;
		s->longest_ns += MIN(longest, ns);
	}
}

/* Whether they are as long as it happens: as when somebody asks for something. Many that follow each other wait
 * for something else; what most units do without is not how often they come. */
static bool are_varied(const struct process_account *a, struct sleeps *s)
{
	uint64_t spread;

	if ((double)s->count < THRESHOLD(MOST) * (double)a->unit_count ||
		(double)s->longest_ns < THRESHOLD(MOST) * (double)s->sum_ns)
		return false;
	robust_sort(s->ns, s->count);
	spread = robust_quantile(s->ns, s->count, 1 - THRESHOLD(FEW)) -
		 robust_quantile(s->ns, s->count, THRESHOLD(FEW));
	return (double)spread >= THRESHOLD(PAUSE_SPREAD) * (double)robust_median(s->ns, s->count);
}

/* Whether they are rare, and far longer than units: somebody looks at a result, or waits before the next run. */
static bool are_breaks(const struct process_account *a, const struct sleeps *s, uint64_t *scratch)
{
	if (!s->count || (double)s->count * THRESHOLD(PAUSE) > (double)a->unit_count)
		return false;
	for (size_t i = 0; i < a->unit_count; i++)
		scratch[i] = (uint64_t)(a->units[i].end_ns - a->units[i].start_ns);
	return (double)s->sum_ns / (double)s->count >=
	       THRESHOLD(PAUSE) * (double)robust_median_of(scratch, a->unit_count);
}

/* Whether what a unit is longer the next is shorter: where each begins when it is due nothing adds up, where one begins when
 * the last is done all does. By deviations from the median, of which wild ones count as far as any. */
static bool lengths_make_up(const struct process_account *a, uint64_t *scratch)
{
	double squares = 0, products = 0, last = 0, r;
	uint64_t median, mad;

	for (size_t i = 0; i < a->unit_count; i++)
		scratch[i] = (uint64_t)(a->units[i].end_ns - a->units[i].start_ns);
	median = robust_median_of(scratch, a->unit_count);
	mad = MAX(robust_mad(scratch, a->unit_count), UINT64_C(1));
	for (size_t i = 0; i < a->unit_count; i++) {
		double x = (double)(a->units[i].end_ns - a->units[i].start_ns) - (double)median;

		x = MIN(MAX(x / (double)mad, -THRESHOLD(BEYOND)), THRESHOLD(BEYOND));
		squares += x * x;
		products += x * last;
		last = x;
	}
	r = squares > 0 ? products / squares : 0;
	return r <= -THRESHOLD(CLOCKED) &&
	       r * r * (double)a->unit_count >= THRESHOLD(SLOW_SPREAD) * THRESHOLD(SLOW_SPREAD);
}

/* Ranks wait for each other: whoever sleeps keeps others waiting. */
static bool is_rank(const struct process_account *a)
{
	for (size_t i = 0; i < a->key_count; i++)
		if (a->keys[i].line == ACCOUNT_COLLECTIVE)
			return true;
	return false;
}

/* Whether sleeps of the program, or of another process that it waits for, are pauses: that one may keep to a clock
 * as well, and take long to answer. */
static bool are_pauses(const struct process_account *a, bool of_process, uint64_t *scratch)
{
	struct sleeps s = {.ns = scratch};

	if ((double)a->unit_count < THRESHOLD(DRIFT_UNITS) || is_rank(a))
		return false;
	sum_sleeps(a, of_process, &s);
	return (!of_process && (a->is_clocked || are_breaks(a, &s, scratch))) ||
	       (a->origin > STEP_BY_LOADER && are_varied(a, &s));
}

static int find_pauses(struct process_account *a)
{
	_cleanup_free_ uint64_t *scratch = calloc(a->unit_count + 1, sizeof(*scratch));

	if (!scratch)
		return -ENOMEM;
	a->is_clocked =
		(double)a->unit_count >= THRESHOLD(DRIFT_UNITS) && lengths_make_up(a, scratch);
	for (size_t i = 0; i < a->key_count; i++)
		a->keys[i].is_pause = is_sleep(&a->keys[i]);
	for (int of_process = 0; of_process < 2; of_process++) {
		bool keep = are_pauses(a, of_process, scratch);

		for (size_t i = 0; !keep && i < a->key_count; i++)
			a->keys[i].is_pause &= !is_sleep_of(&a->keys[i], of_process);
	}
	return 0;
}

uint64_t account_pause_ns(const struct process_account *a, size_t unit)
{
	uint64_t ns = 0;

	for (const struct account_part *p = first_of(a, unit); p < a->parts + a->part_end[unit];
		p++)
		ns += a->keys[p->key].is_pause ? p->ns : 0;
	return ns;
}

int account_read_stacks(struct process_account *a, const struct stack_list *stacks)
{
	for (size_t i = 0; i < a->key_count; i++) {
		struct tally_part *key = &a->keys[i];
		const struct stack *s = stack_find(stacks, key->stack_hash);

		key->blocks = s && key->line == ACCOUNT_HOST ? place_blocks(s) : 0;
		key->place ^= (uint64_t)key->making << MAKING_SHIFT; /* read before */
		key->making = (uint8_t)making_of(key, stacks);
		key->place ^= (uint64_t)key->making << MAKING_SHIFT;
	}
	return find_pauses(a);
}

void account_made_ns(const struct process_account *a, size_t unit, uint64_t ns[MAKINGS])
{
	for (const struct account_part *p = first_of(a, unit); p < a->parts + a->part_end[unit];
		p++)
		ns[a->keys[p->key].making] += p->ns;
}

int account_add(const struct process_account *a, size_t unit, struct tally *out)
{
	for (const struct account_part *p = first_of(a, unit); p < a->parts + a->part_end[unit];
		p++) {
		struct tally_part part = a->keys[p->key];

		part.ns = p->ns;
		part.stack_ns = p->stack_ns;
		part.wait_ns = p->wait_ns;
		if (tally_merge(out, &part) < 0)
			return -ENOMEM;
	}
	return 0;
}

void account_lines(const struct process_account *a, size_t unit, uint64_t ns[ACCOUNT_LINES])
{
	for (const struct account_part *p = first_of(a, unit); p < a->parts + a->part_end[unit];
		p++)
		ns[a->keys[p->key].line] += a->keys[p->key].is_pause ? 0 : p->ns;
}
