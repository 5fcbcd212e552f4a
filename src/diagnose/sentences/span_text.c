/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/sentences/span_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macros.h"
#include "diagnose/findings/detector.h"
#include "base/text.h"

#define NEAR_NOTHING 0.03 /* of a unit: nobody promises less */

static const struct span_unit {
	const char *name;
	uint64_t ns, from_ns;
} units[] = {
	{"h", 3600 * NS_PER_S, 2 * 3600 * NS_PER_S},
	{"min", 60 * NS_PER_S, 120 * NS_PER_S},
	{"s", NS_PER_S, NS_PER_S},
	{"ms", NS_PER_MS, NS_PER_MS},
	{"µs", NS_PER_US, 0},
};

static const struct span_unit *unit_for(uint64_t ns)
{
	const struct span_unit *u = units;

	while (ns < u->from_ns)
		u++;
	return u;
}

/* Two digits, or all of those before the point. */
static void put_number(char out[SPAN_TEXT_MAX], uint64_t ns, const struct span_unit *u)
{
	double v = (double)ns / (double)u->ns;

	snprintf(out, SPAN_TEXT_MAX, "%.*f", v > 0 && v < 9.95, v);
}

const char *span_text_one(char out[SPAN_TEXT_MAX], uint64_t ns)
{
	const struct span_unit *u = unit_for(ns);
	char number[SPAN_TEXT_MAX];

	put_number(number, ns, u);
	snprintf(out, SPAN_TEXT_MAX, "%s %s", number, u->name);
	return out;
}

const char *span_text(char out[SPAN_TEXT_MAX], const char *between, uint64_t a_ns, uint64_t b_ns)
{
	const struct span_unit *ua = unit_for(a_ns), *ub = unit_for(b_ns);
	bool unit_is_last = !strcmp(between, " of ") || !strcmp(between, " → about ");
	char a[SPAN_TEXT_MAX], b[SPAN_TEXT_MAX];

	put_number(a, a_ns, ua);
	put_number(b, b_ns, ub);
	if (ua != ub)
		snprintf(out, SPAN_TEXT_MAX, "%s %s%s%s %s", a, ua->name, between, b, ub->name);
	else if (unit_is_last)
		snprintf(out, SPAN_TEXT_MAX, "%s%s%s %s", a, between, b, ua->name);
	else
		snprintf(out, SPAN_TEXT_MAX, "%s %s%s%s", a, ua->name, between, b);
	return out;
}

const char *span_text_gain(char out[SPAN_GAIN_MAX], uint64_t unit_ns, uint64_t fixed_ns,
	uint64_t least_ns, uint64_t most_ns)
{
	const struct span_unit *u = unit_for(fixed_ns);
	char change[SPAN_TEXT_MAX], least[SPAN_TEXT_MAX], most[SPAN_TEXT_MAX];

	span_text(change, " → about ", unit_ns, fixed_ns);
	if (unit_for(least_ns) == u && unit_for(most_ns) == u) {
		put_number(least, least_ns, u);
		put_number(most, most_ns, u);
	} else {
		span_text_one(least, least_ns);
		span_text_one(most, most_ns);
	}
	if ((double)least_ns < NEAR_NOTHING * (double)unit_ns && strcmp(least, most))
		snprintf(out, SPAN_GAIN_MAX, "%s (at most %s)", change,
			span_text_one(most, most_ns));
	else if (strcmp(least, most))
		snprintf(out, SPAN_GAIN_MAX, "%s (%s–%s)", change, least, most);
	else
		snprintf(out, SPAN_GAIN_MAX, "%s", change);
	return out;
}

#define STEPS_SHOWN 6
#define NAMED_SHARE 0.25 /* of what is not known of a step: less is not worth a word */

static bool is_slow(const struct step_account *a)
{
	return a->lost_ns > 0;
}

/* What the steps of @b have more of than an ordinary one; where there is nothing to compare with, what they consist
 * of. What is known is named first, if it is not next to nothing. */
static enum account_line line_of(
	const struct step_account *a, const struct account_bar *b, uint64_t *ret_ns)
{
	int64_t more[ACCOUNT_LINES];
	int line = 0;

	for (int k = 0; k < ACCOUNT_LINES; k++) {
		more[k] = (int64_t)(b->ns[k] / MAX(b->steps, 1u)) -
			  (is_slow(a) ? (int64_t)a->ordinary_ns[k] : 0);
		if (k != ACCOUNT_UNKNOWN && more[k] > more[line])
			line = k;
	}
	if ((double)more[line] < NAMED_SHARE * (double)more[ACCOUNT_UNKNOWN])
		line = ACCOUNT_UNKNOWN;
	*ret_ns = (uint64_t)MAX(more[line], INT64_C(0));
	return (enum account_line)line;
}

/* A recording without a ledger has the calls alone. */
static void put_sql(const struct recording *rec, const struct step_account *a, struct incident *inc)
{
	int64_t from = inc->first.ns, to = inc->last.ns;

	if (rec->ledger_count)
		incident_sql(inc,
			"SELECT timestamp, duration, tid, mark, run, gpu_wait, copy, alloc, cpu_wait, lock, "
			"disk, sleep FROM ledger WHERE pid = %u AND timestamp BETWEEN %" PRId64
			" AND %" PRId64 " ORDER BY timestamp LIMIT 200",
			a->pid, from, to);
	else
		incident_sql(inc,
			"SELECT id, timestamp, duration, pid, tid, source, op, arg0, arg1 FROM events WHERE pid = %u "
			"AND timestamp BETWEEN %" PRId64 " AND %" PRId64
			" ORDER BY duration DESC LIMIT 200",
			a->pid, from, to);
}

void steps_show(const struct recording *rec, const struct step_account *a, struct incident *inc)
{
	int shown = 0;

	for (size_t i = 0; i < a->bar_count && shown < STEPS_SHOWN; i++) {
		const struct account_bar *b = &a->bars[i];
		char count[TEXT_PLURAL_MAX], text[TEXT_MAX];
		enum account_line top;
		uint64_t ns;

		if (is_slow(a) ? !b->slow_steps : b->slow_steps > 0)
			continue;
		top = line_of(a, b, &ns);
		incident_step(inc, b->start.ns, b->dur_ns, "HOST", "steps", "%s: %s%s %s%s",
			text_format_plural(count, b->steps, "steps"), is_slow(a) ? "+" : "",
			text_format_duration(text, ns), account_line_title(top),
			b->steps > 1 ? " in each" : "");
		shown++;
	}
	put_sql(rec, a, inc);
}
