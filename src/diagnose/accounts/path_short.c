/* SPDX-License-Identifier: Apache-2.0 */
/* path_short.c - stays too short for a row of their own: the kernel half sums them by the thread that ended
 * them, about once a second, and those on a lock that a time limit ended. A row's time on that line is shared out as
 * that second's was; what the sums do not cover (a timer ended it, or one of too many threads) has no culprit, but is
 * on the interpreter lock's line where nearly all that they do cover is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/accounts/path_private.h"
#include "diagnose/rows/place.h"
#include "base/macros.h"

/* @ns of what @e sums up, within [from, to). */
static int add_sum(struct walk *w, const struct ledger_row *r, const struct event *e, uint64_t ns,
	const struct span *in)
{
	enum wire_ledger_line line = (enum wire_ledger_line)e->arg0;
	const struct stack *s = path_stack(w, e->stack_hash);
	const struct span second = {e->start.ns - (int64_t)e->wait_ns, e->start.ns};
	bool is_interpreters = line == LEDGER_LOCK && s && place_is_interpreter_lock(s);
	struct tally_part p = path_part(w, r, path_line_plain(r, line), ns);

	if (is_interpreters && !e->stream)
		return path_lock_add(w, r, &(struct waker){0}, ns, in->from_ns, in->to_ns);
	if (is_interpreters && e->peer_pid == r->pid)
		return path_lock_held(w, r,
			&(struct waker){e->peer_pid, (uint32_t)e->stream, e->peer_comm, WAKER_TASK},
			ns, in, &second);
	if (!timeline_is_idle(w->t, (uint32_t)e->stream)) {
		p.culprit_pid = e->peer_pid;
		memcpy(p.culprit, e->peer_comm, COMM_LEN);
	}
	p.place = s ? place_key(s) : 0;
	p.stack_hash = p.place ? e->stack_hash : 0;
	return tally_add(w->out, &p);
}

/* Stays that nothing sums up were, as far as is known, ended by whoever ended the long one that followed
 * them. */
static int add_unsummed(struct walk *w, const struct ledger_row *r, enum wire_ledger_line line,
	uint64_t ns, const struct span *in)
{
	const struct waker waker = {r->waker_pid, r->waker_tid, r->waker_comm, r->waker};
	int done = 0;

	if (r->mark == MARK_STAY && r->stay_line == line && path_may_follow(w, line, &waker))
		done = path_follow(w, waker.tid, ns, in->from_ns, in->to_ns);
	return done ? MIN(done, 0) : path_add(w, r, path_line_plain(r, line), ns);
}

/* The sums of the first second that ends in or after [from, to): they are sent at once. */
static size_t sums_of(
	const struct walk *w, uint32_t tid, int64_t from_ns, int64_t to_ns, const uint32_t **ret_at)
{
	const struct timeline *t = w->t;
	const struct event *events = t->rec->events;
	size_t n = timeline_events(t, t->stays, t->stay_count, tid, from_ns,
		to_ns + (int64_t)TIMELINE_STAYS_NS, ret_at);

	while (n && events[(*ret_at)[n - 1]].start.ns != events[(*ret_at)[0]].start.ns)
		n--;
	return n;
}

static bool is_summed(const struct event *e, enum wire_ledger_line line, int64_t to_ns)
{
	return e->arg0 == line && e->start.ns - (int64_t)e->wait_ns < to_ns;
}

bool path_short_is_lock(const struct walk *w, const struct ledger_row *r, uint32_t by_tid,
	int64_t from_ns, int64_t to_ns)
{
	const uint32_t *at;
	size_t n = sums_of(w, r->tid, from_ns, to_ns, &at);
	uint64_t all = 0, interpreters = 0;

	for (size_t i = 0; i < n; i++) {
		const struct event *e = &w->t->rec->events[at[i]];
		const struct stack *s = path_stack(w, e->stack_hash);

		if (!s || !is_summed(e, LEDGER_LOCK, to_ns) || (by_tid && by_tid != e->stream))
			continue;
		all += e->arg1;
		interpreters += place_is_interpreter_lock(s) ? e->arg1 : 0;
	}
	return all && interpreters >= all - all / 10;
}

int path_short_add(struct walk *w, const struct ledger_row *r, enum wire_ledger_line line,
	uint64_t ns, int64_t from_ns, int64_t to_ns)
{
	const struct timeline *t = w->t;
	const struct event *events = t->rec->events;
	const struct span in = {from_ns, to_ns};
	const uint32_t *at;
	size_t n = sums_of(w, r->tid, from_ns, to_ns, &at);
	uint64_t whole = 0, summed = 0, left = ns;

	for (size_t i = 0; i < n; i++) {
		const struct event *e = &events[at[i]];

		if (!is_summed(e, line, to_ns))
			continue;
		summed += MIN(e->arg1, e->wait_ns);
		whole = t->stay_line_ns[at - t->stays + (ptrdiff_t)i];
	}
	if (!summed)
		return add_unsummed(w, r, line, ns, &in);
	whole = MAX(whole, summed);
	for (size_t i = 0; i < n; i++) {
		const struct event *e = &events[at[i]];
		uint64_t part = (uint64_t)((__uint128_t)ns * MIN(e->arg1, e->wait_ns) / whole);

		if (!is_summed(e, line, to_ns))
			continue;
		left -= part;
		if (add_sum(w, r, e, part, &in) < 0)
			return -ENOMEM;
	}
	if (line == LEDGER_LOCK && path_short_is_lock(w, r, 0, from_ns, to_ns))
		return path_lock_add(w, r, &(struct waker){0}, left, from_ns, to_ns);
	return path_add(w, r, path_line_plain(r, line), left);
}
