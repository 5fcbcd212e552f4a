/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/contrasts/era.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"

#define ERA_UNITS   8   /* in a row, at least */
#define ERA_SLOW    0.8 /* of the units in it are slow */
#define ERA_SHARE   0.2 /* of what was lost, inside and outside */
#define ERA_PATIENT 4   /* so many units that are not slow end it */

/* Lines that show one cause: code that runs, whatever it runs. */
static int family_of(int line)
{
	return line == ACCOUNT_LAUNCH || line == ACCOUNT_CALL ? ACCOUNT_HOST : line;
}

struct sums { /* of slow units, beyond ordinary ones */
	int64_t grown[ACCOUNT_LINES];
	int64_t lost_ns;
};

static int lead_of(const struct sums *s)
{
	int lead = 0;

	for (int i = 0; i < ACCOUNT_LINES; i++)
		if (s->grown[i] > s->grown[lead])
			lead = i;
	return lead;
}

static void add_unit(
	const struct process_account *a, size_t unit, const uint64_t *ordinary, struct sums *s)
{
	uint64_t ns[ACCOUNT_LINES] = {0};

	account_lines(a, unit, ns);
	for (int i = 0; i < ACCOUNT_LINES; i++) {
		s->grown[family_of(i)] += (int64_t)ns[i] - (int64_t)ordinary[i];
		s->lost_ns += (int64_t)ns[i] - (int64_t)ordinary[i];
	}
}

static size_t ordinary_lines(
	const struct process_account *a, const struct step_facts *facts, uint64_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < a->unit_count; i++)
		if (facts[i].class == STEP_ORDINARY) {
			account_lines(a, i, ret);
			n++;
		}
	for (int i = 0; n && i < ACCOUNT_LINES; i++)
		ret[i] /= n;
	return n;
}

/* The longest stretch that begins and ends with slow units and has hardly any others. */
static struct era longest(const struct step_facts *facts, size_t n)
{
	struct era best = {0};

	for (size_t i = 0; i < n;) {
		size_t slow = 0, compared = 0, missed = 0, end = i;

		for (size_t k = i; k < n && missed < ERA_PATIENT; k++) {
			if (facts[k].class == STEP_OTHER)
				continue;
			compared++;
			missed = facts[k].class == STEP_SLOW ? 0 : missed + 1;
			if (facts[k].class != STEP_SLOW)
				continue;
			slow++;
			if ((double)slow >= ERA_SLOW * (double)compared)
				end = k + 1;
		}
		if (end > i && end - i > best.to - best.from)
			best = (struct era){i, end};
		i = MAX(end, i + 1);
	}
	return best.to - best.from >= ERA_UNITS ? best : (struct era){0};
}

int era_find(const struct process_account *a, const struct step_facts *facts, struct era *ret)
{
	uint64_t ordinary[ACCOUNT_LINES] = {0};
	struct sums in = {0}, out = {0};
	double all;

	*ret = longest(facts, a->unit_count);
	if (ret->from == ret->to || !ordinary_lines(a, facts, ordinary)) {
		*ret = (struct era){0};
		return 0;
	}
	for (size_t i = 0; i < a->unit_count; i++)
		if (facts[i].class == STEP_SLOW)
			add_unit(a, i, ordinary, i >= ret->from && i < ret->to ? &in : &out);
	all = (double)in.lost_ns + (double)out.lost_ns;
	if ((double)in.lost_ns < ERA_SHARE * all || (double)out.lost_ns < ERA_SHARE * all ||
		lead_of(&in) == lead_of(&out))
		*ret = (struct era){0};
	return 0;
}
