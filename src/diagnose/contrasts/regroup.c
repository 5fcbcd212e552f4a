/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/contrasts/regroup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diagnose/thresholds.h"
#include "base/macros.h"

/* It copies a model: a checkpoint is written, or another model is loaded. */
static bool moves_model(const struct step_account *a)
{
	return a->slow_bytes >= THRESHOLD(SWAP_BYTES) &&
	       a->slow_bytes >= THRESHOLD(SWAP_RATIO) * a->ordinary_bytes;
}

/* Launches are counted in a part of the units alone, waits in all; those for a model's copies are no work. */
static bool has_more_work(const struct step_account *a)
{
	return (a->ordinary_launches > 0 &&
		       a->slow_launches > THRESHOLD(MORE) * a->ordinary_launches + 1) ||
	       (!moves_model(a) && a->slow_waits > THRESHOLD(MORE) * a->ordinary_waits +
							   THRESHOLD(REGROUP_WAITS));
}

/* They take turns: long rows of either are states. */
static bool alternates(const struct step_account *a)
{
	size_t rows = 0;

	for (size_t i = 0; i < a->mark_count; i++)
		rows += a->marks[i].is_slow && (!i || !a->marks[i - 1].is_slow);
	return rows * 2 >= MIN(a->slow_steps, a->ordinary_steps);
}

/* There are many of them, and the others are hardly anything: pieces of a unit. */
static bool has_all_the_time(const struct step_account *a)
{
	double slow = (double)a->slow_step_ns * a->slow_steps;
	double rest = (double)a->ordinary_step_ns * a->ordinary_steps;

	return rest <= THRESHOLD(FEW) * (slow + rest) &&
	       (double)a->slow_steps >= THRESHOLD(REGROUP_OFTEN) * (double)a->ordinary_steps &&
	       alternates(a);
}

static bool has_rhythm(const struct step_account *a)
{
	return a->period_steps > 1 && a->period_confidence >= THRESHOLD(MOST);
}

bool regroup_is_needed(const struct step_account *found)
{
	return found->mark_count == found->steps &&
	       (double)found->slow_steps >= THRESHOLD(REGROUP_UNITS) &&
	       (has_all_the_time(found) || (has_rhythm(found) && has_more_work(found)));
}

static void add_unit(struct step_span *to, const struct step_span *u)
{
	if (!to->end_ns)
		to->start_ns = u->start_ns;
	to->end_ns = u->end_ns;
	to->launches += u->launches;
	to->copy_bytes += u->copy_bytes;
	to->waits += u->waits;
	to->launches_off |= u->launches_off;
	to->probed_ns += u->probed_ns;
	to->backwards += u->backwards;
	to->executes += u->executes;
	to->loads += u->loads;
}

int regroup(const struct process_account *a, const struct step_account *found,
	struct process_account *ret)
{
	struct step_span u = {0};

	*ret = *a;
	ret->unit_count = 0;
	ret->units = calloc(a->unit_count + 1, sizeof(*ret->units));
	ret->part_end = calloc(a->unit_count + 1, sizeof(*ret->part_end));
	if (!ret->units || !ret->part_end)
		return -ENOMEM;
	for (size_t i = 0; i < a->unit_count; i++) {
		add_unit(&u, &a->units[i]);
		if (!found->marks[i].is_slow)
			continue;
		ret->units[ret->unit_count] = u;
		ret->part_end[ret->unit_count++] = a->part_end[i];
		u = (struct step_span){0};
	}
	return 0;
}

void regroup_done(struct process_account *a)
{
	free(a->units);
	free(a->part_end);
	*a = (struct process_account){0};
}

/* The first step that is slow; @n: none is, or ordinary ones come later. */
static size_t first_slow(const struct step_facts *steps, size_t n)
{
	size_t first = n;

	for (size_t i = 0; i < n; i++)
		if (steps[i].class == STEP_SLOW)
			first = MIN(first, i);
		else if (steps[i].class == STEP_ORDINARY && first < n)
			return n;
	return first;
}

/* The length between those of the two classes, by their means; 0: they are not far apart. */
static uint64_t limit_of(const struct step_facts *steps, size_t n, const struct classification *c)
{
	double ordinary = 0, slow = 0;

	for (size_t i = 0; i < n; i++)
		if (steps[i].class != STEP_OTHER)
			*(steps[i].class == STEP_SLOW ? &slow : &ordinary) +=
				(double)steps[i].dur_ns;
	ordinary /= (double)MAX(c->ordinary, (size_t)1);
	slow /= (double)MAX(c->slow, (size_t)1);
	return slow >= THRESHOLD(HALF_MORE) * ordinary ? (uint64_t)sqrt(slow * ordinary) : 0;
}

static size_t first_long(const struct step_facts *steps, size_t n, size_t from, uint64_t limit)
{
	size_t run = 0, in_a_row = (size_t)THRESHOLD(AGAIN);

	for (size_t i = from; i < n; i++) {
		if (steps[i].class != STEP_SLOW)
			continue;
		run = steps[i].dur_ns >= limit ? run + 1 : 0;
		if (run == in_a_row)
			return i + 1 - in_a_row;
	}
	return from;
}

void border_settle(struct step_facts *steps, size_t n, struct classification *found)
{
	size_t from = first_slow(steps, n), to;
	uint64_t limit = from < n && found->group == 1 ? limit_of(steps, n, found) : 0;
	double ordinary = 0, slow = 0;

	if (!limit || !found->ordinary)
		return;
	to = first_long(steps, n, from, limit);
	for (size_t i = from; i < to; i++)
		if (steps[i].class == STEP_SLOW && steps[i].dur_ns < limit) {
			steps[i].class = STEP_ORDINARY;
			found->ordinary++;
			found->slow--;
		}
	for (size_t i = 0; i < n; i++)
		if (steps[i].class != STEP_OTHER)
			*(steps[i].class == STEP_SLOW ? &slow : &ordinary) +=
				(double)steps[i].dur_ns;
	found->lost_ns =
		(uint64_t)MAX(slow - ordinary / (double)found->ordinary * (double)found->slow, 0.0);
}
