/* SPDX-License-Identifier: Apache-2.0 */
/* polls.c - see unit_finder.h. */
#include "diagnose/units/unit_finder.h"

#include <errno.h>

#include "diagnose/thresholds.h"

#define LONGER    1.5 /* times the sleep before it: sleeps that grow */
#define POLLS_MIN 12

static bool is_work(const struct ledger_row *r)
{
	return r->launches || r->copies || r->ns[LEDGER_LAUNCH] || r->ns[LEDGER_GRAPH] ||
	       r->ns[LEDGER_COPY] || r->ns[LEDGER_COLLECTIVE];
}

static uint64_t slept_ns(const struct ledger_row *r)
{
	bool is_sleep = r->mark == MARK_STAY && r->stay_line == LEDGER_SLEEP;

	return is_sleep ? r->stay_ns - r->stay_wait_ns : 0;
}

/* How many rows from @at on are a poll: work for the GPU, then nothing but sleeps. The first may be in the row of the work. */
static size_t poll_rows(struct timeline_range rows, size_t at)
{
	size_t n = 0;

	if (!is_work(rows.rows[at]))
		return 0;
	for (n = 1; at + n < rows.count && slept_ns(rows.rows[at + n]); n++)
		if (is_work(rows.rows[at + n]) || rows.rows[at + n]->waits)
			break;
	return slept_ns(rows.rows[at + n - 1]) ? n : 0;
}

/* Whether most polls of the thread end with a longer sleep than came before, and most of its time is in them; calls that wait
 * for the GPU would be what it waits by. */
static bool is_polling(struct timeline_range rows)
{
	size_t polls = 0, growing = 0;
	int64_t in_polls = 0, first = 0, last = 0;

	for (size_t i = 0, n; i < rows.count; i += n ? n : 1) {
		const struct ledger_row *end;
		uint64_t before_ns;

		n = poll_rows(rows, i);
		if (polls && (rows.rows[i]->waits || rows.rows[i]->ns[LEDGER_GPU_WAIT]))
			return false;
		if (n < 2)
			continue;
		end = rows.rows[i + n - 1];
		first = polls++ ? first : rows.rows[i]->start.ns;
		last = ledger_end_ns(end);
		in_polls += last - rows.rows[i]->start.ns;
		before_ns = slept_ns(rows.rows[i + n - 2]);
		growing += before_ns && (double)slept_ns(end) >= LONGER * (double)before_ns;
	}
	return polls >= POLLS_MIN && (double)growing >= THRESHOLD(MOST) * (double)polls &&
	       (double)in_polls >= THRESHOLD(MOST) * (double)(last - first);
}

int polls_find(const struct unit_search *in, struct step_spans *s)
{
	const struct timeline *t = in->timeline;
	struct timeline_range rows = {0};
	int64_t last = 0;

	for (size_t i = 0; i < t->thread_count && !s->tid; i++) {
		const struct timeline_thread *th = &t->threads[i];

		rows = timeline_of(t, th->tid);
		if (th->pid == s->pid && th->feeds && !th->is_idle && is_polling(rows))
			s->tid = th->tid;
	}
	for (size_t i = 0, n; s->tid && i < rows.count; i += n ? n : 1) {
		n = poll_rows(rows, i);
		if (!n)
			continue;
		if (last && unit_add(s, last, ledger_end_ns(rows.rows[i + n - 1]), 0) < 0)
			return -ENOMEM;
		last = ledger_end_ns(rows.rows[i + n - 1]);
	}
	return 0;
}
