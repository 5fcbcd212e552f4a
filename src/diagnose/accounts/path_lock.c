/* SPDX-License-Identifier: Apache-2.0 */
/* path_lock.c - waits for Python's interpreter lock: which they are, and who held it. And what a followed
 * thread ran meanwhile. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/accounts/path_private.h"
#include "diagnose/rows/place.h"
#include "base/macros.h"

#define CULPRITS  16
#define AROUND_NS ((int64_t)(20 * NS_PER_MS))
#define SWITCH_NS (5 * NS_PER_MS) /* sys.getswitchinterval() */

/* The stack that thread @tid was seen with most in [from, to); 0: none. */
static uint64_t busiest_stack(
	const struct walk *w, uint32_t tid, int64_t from_ns, int64_t to_ns, uint64_t *ret_place)
{
	const struct recording *rec = w->t->rec;
	struct {
		uint64_t place, hash;
		unsigned count;
	} seen[CULPRITS] = {0};
	const uint32_t *at;
	size_t n =
		timeline_events(w->t, w->t->samples, w->t->sample_count, tid, from_ns, to_ns, &at);
	int best = 0, used = 0;

	for (size_t i = 0; i < n; i++) {
		const struct event *e = &rec->events[at[i]];
		const struct stack *s = path_stack(w, e->stack_hash);
		uint64_t place = s ? place_key(s) : 0;
		int k = 0;

		if (!place)
			continue;
		while (k < used && seen[k].place != place)
			k++;
		if (k == CULPRITS)
			continue;
		used = MAX(used, k + 1);
		seen[k].place = place;
		seen[k].hash = e->stack_hash;
		seen[k].count++;
		if (seen[k].count > seen[best].count)
			best = k;
	}
	*ret_place = seen[best].place;
	return seen[best].hash;
}

/* The thread of @pid other than @r's, of the name @comm (NULL: of any), that was seen on a CPU most in
 * [from, to); NULL: none was. */
static const struct event *busiest_other(const struct walk *w, const struct ledger_row *r,
	uint32_t pid, const char *comm, int64_t from_ns, int64_t to_ns)
{
	const struct event *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < w->t->thread_count; i++) {
		const struct timeline_thread *th = &w->t->threads[i];
		const uint32_t *at;
		size_t n;

		if (th->pid != pid || th->tid == r->tid ||
			(comm && strncmp(w->t->rows[th->first]->comm, comm, COMM_LEN)))
			continue;
		n = timeline_events(
			w->t, w->t->samples, w->t->sample_count, th->tid, from_ns, to_ns, &at);
		if (n > most) {
			most = n;
			best = &w->t->rec->events[at[0]];
		}
	}
	return best;
}

uint64_t path_rival_stack(const struct walk *w, const struct ledger_row *r,
	const struct event *stay, uint64_t *ret_place)
{
	int64_t from = stay->start.ns - AROUND_NS, to = event_end_ns(stay) + AROUND_NS;
	const struct event *other = busiest_other(w, r, stay->peer_pid, stay->peer_comm, from, to);

	*ret_place = 0;
	return other ? busiest_stack(w, other->tid, from, to, ret_place) : 0;
}

int path_lock_held(struct walk *w, const struct ledger_row *r, const struct waker *holder,
	uint64_t ns, const struct span *in, const struct span *seen)
{
	struct tally_part p = path_part(w, r, ACCOUNT_GIL, ns);

	if ((p.owner == OWNER_LOADER || p.owner == OWNER_PROCESS) &&
		path_may_follow(w, LEDGER_LOCK, holder)) {
		int done = path_follow(w, holder->tid, ns, in->from_ns, in->to_ns);

		if (done)
			return MIN(done, 0);
	}
	p.culprit_pid = r->pid;
	snprintf(p.culprit, sizeof(p.culprit), "%s", holder->comm);
	p.stack_hash = busiest_stack(w, holder->tid, seen->from_ns, seen->to_ns, &p.place);
	return tally_add(w->out, &p);
}

int path_lock_add(struct walk *w, const struct ledger_row *r, const struct waker *waker,
	uint64_t ns, int64_t from_ns, int64_t to_ns)
{
	const struct span in = {from_ns, to_ns};
	/* samples are further apart than it takes */
	const struct span around = {from_ns - AROUND_NS, to_ns + AROUND_NS};
	const struct event *other;

	if (waker->kind == WAKER_TASK && waker->pid == r->pid)
		return path_lock_held(w, r, waker, ns, &in, &in);
	other = busiest_other(w, r, r->pid, NULL, around.from_ns, around.to_ns);
	return other ? path_lock_held(w, r,
			       &(struct waker){r->pid, other->tid, other->comm, WAKER_TASK}, ns,
			       &in, &around)
		     : path_add(w, r, ACCOUNT_GIL, ns);
}

bool path_lock_is(const struct walk *w, const struct ledger_row *r)
{
	const struct stack *s = path_stack(w, r->stack_hash);

	if (r->mark != MARK_STAY || r->stay_line != LEDGER_LOCK)
		return false;
	if (s)
		return place_is_interpreter_lock(s);
	if (r->stay_ns - r->stay_wait_ns >= SWITCH_NS * 5 / 4)
		return false; /* it would have woken to ask */
	if (r->waker == WAKER_TASK && r->waker_pid == r->pid)
		return path_short_is_lock(w, r, r->waker_tid, r->start.ns, ledger_end_ns(r));
	return r->waker == WAKER_TIMER && r->stay_ns >= SWITCH_NS;
}
