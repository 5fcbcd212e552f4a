/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/sentences/steps_show.h"

#include <inttypes.h>

#include "diagnose/findings/detector.h"
#include "base/macros.h"
#include "base/text.h"

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
