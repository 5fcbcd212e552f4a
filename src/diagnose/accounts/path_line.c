/* SPDX-License-Identifier: Apache-2.0 */
/* path_line.c - active time of a thread, from the lines of its ledger to those of the account: host code by
 * samples, time without a CPU by who had it, calls by where they were made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/accounts/path_private.h"
#include "diagnose/rows/place.h"
#include "diagnose/accounts/tracer_name.h"
#include "base/macros.h"
#include "wire/op_kind.h"

#define SLOW_COPY_BPS  1500000000ull /* no copy is slower for its bytes' sake */
#define COPY_CALL_NS   (20 * NS_PER_US)
#define SMALL_COPY     (64u << 10)       /* bytes: one that sleeps does so for the work before it */
#define LEAST_LINK_BPS 100000000ull      /* of any link: half of PCIe 1 with one lane */
#define PLACED_STAY_NS (200 * NS_PER_US) /* shorter ones are too many to look for what ran */
#define LAST_STAY_NS   (200 * NS_PER_US) /* from the end of a stay to the return it delayed */

/* While the GPU is never idle, launching is not what a step waits for. */
static enum account_line sampled_line(const struct walk *w, const struct stack *s, int64_t ns)
{
	enum account_line line = place_line(s);

	return line == ACCOUNT_LAUNCH && timeline_gpu_is_full(w->t, ns) ? ACCOUNT_GPU : line;
}

/* Time on the CPU on line @on, as the samples of that time share it out. What no sample shows has no
 * place. */
static int add_sampled(struct walk *w, const struct ledger_row *r, enum wire_ledger_line on,
	int64_t from_ns, int64_t to_ns, uint64_t ns)
{
	enum account_line line = on == LEDGER_COLLECT ? ACCOUNT_GC : ACCOUNT_HOST;
	const struct recording *rec = w->t->rec;
	const uint32_t *at;
	size_t n = timeline_events(
		w->t, w->t->samples, w->t->sample_count, r->tid, from_ns, to_ns, &at);
	uint64_t weights = 0, left = ns;

	if (w->t->is_derived)
		return path_add(w, r, ACCOUNT_UNKNOWN, ns);
	for (size_t i = 0; i < n; i++)
		if (rec->events[at[i]].arg0 == on)
			weights += MAX(rec->events[at[i]].weight, 1u);
	for (size_t i = 0; weights && i < n; i++) {
		const struct event *e = &rec->events[at[i]];
		const struct stack *s = path_stack(w, e->stack_hash);
		struct tally_part p;

		if (e->arg0 != on)
			continue;
		p = path_part(w, r, s && on == LEDGER_RUN ? sampled_line(w, s, e->start.ns) : line,
			(uint64_t)((__uint128_t)ns * MAX(e->weight, 1u) / weights));
		p.place = s ? place_key(s) : 0;
		p.stack_hash = p.place ? e->stack_hash : 0;
		left -= p.ns;
		if (tally_add(w->out, &p) < 0)
			return -ENOMEM;
	}
	return path_add(w, r, line, left);
}

/* Time runnable without a CPU, shared out among those that had it, by the recorded stays. Of followed
 * threads it is known what they ran. */
static int add_cpu(
	struct walk *w, const struct ledger_row *r, int64_t from_ns, int64_t to_ns, uint64_t ns)
{
	const struct event *events = w->t->rec->events;
	const uint32_t *at;
	size_t n = timeline_events(w->t, w->t->switches, w->t->switch_count, r->tid,
		from_ns - (int64_t)r->stay_ns, to_ns, &at);
	uint64_t waited = 0, left = ns;

	for (size_t i = 0; i < n; i++)
		waited += events[at[i]].wait_ns;
	for (size_t i = 0; waited && i < n; i++) {
		const struct event *e = &events[at[i]];
		struct tally_part p = path_part(
			w, r, ACCOUNT_CPU, (uint64_t)((__uint128_t)ns * e->wait_ns / waited));

		if (!e->wait_ns)
			continue;
		p.culprit_pid = e->peer_pid;
		if (e->peer_pid)
			snprintf(p.culprit, COMM_LEN, "%s", tracer_fold(e->peer_comm));
		if (!w->t->is_derived && e->wait_ns >= PLACED_STAY_NS &&
			timeline_follows(w->t, e->peer_pid))
			p.stack_hash = path_rival_stack(w, r, e, &p.place);
		left -= p.ns;
		if (tally_add(w->out, &p) < 0)
			return -ENOMEM;
	}
	return path_add(w, r, ACCOUNT_CPU, left);
}

/* The stack of a sample that was taken in a call of @line within [from, to); 0: none. */
static uint64_t sampled_stack(const struct walk *w, const struct ledger_row *r,
	enum wire_ledger_line line, int64_t from_ns, int64_t to_ns)
{
	const struct event *events = w->t->rec->events;
	const uint32_t *at;
	size_t n = timeline_events(
		w->t, w->t->samples, w->t->sample_count, r->tid, from_ns, to_ns, &at);

	for (size_t i = 0; i < n; i++)
		if (events[at[i]].arg0 == line && events[at[i]].stack_hash)
			return events[at[i]].stack_hash;
	return 0;
}

/* Looks at the recorded calls of @r's thread within [from, to), once for all lines. */
static const struct calls_seen *see_calls(
	struct walk *w, const struct ledger_row *r, int64_t from_ns, int64_t to_ns)
{
	const struct event *events = w->t->rec->events;
	struct calls_seen *c = &w->calls;
	const uint32_t *at;
	size_t n;

	if (c->tid == r->tid && c->from_ns == from_ns && c->to_ns == to_ns)
		return c;
	*c = (struct calls_seen){.tid = r->tid, .from_ns = from_ns, .to_ns = to_ns};
	n = timeline_events(w->t, w->t->calls, w->t->call_count, r->tid, from_ns, to_ns, &at);
	for (size_t i = 0; i < n; i++) {
		const struct event *e = &events[at[i]];
		int line = op_kind_line(e->source, e->op);

		c->lines[line].sum_ns += e->dur_ns;
		if (e->stack_hash &&
			(!c->lines[line].longest || e->dur_ns > c->lines[line].longest->dur_ns))
			c->lines[line].longest = e;
	}
	return c;
}

/* The stack of the longest recorded call of @line within [from, to), else of a sample; 0: none. */
static uint64_t call_stack(struct walk *w, const struct ledger_row *r, enum wire_ledger_line line,
	int64_t from_ns, int64_t to_ns)
{
	const struct event *longest = see_calls(w, r, from_ns, to_ns)->lines[line].longest;

	return longest ? longest->stack_hash : sampled_stack(w, r, line, from_ns, to_ns);
}

/* How much of the calls of @line within [from, to) of @r's thread took long: a launch that waits for
 * room in the queue waits for the GPU. */
static uint64_t long_calls(struct walk *w, const struct ledger_row *r, enum wire_ledger_line line,
	int64_t from_ns, int64_t to_ns)
{
	return see_calls(w, r, from_ns, to_ns)->lines[line].sum_ns;
}

/* What copies of so many bytes may take for their own sake. */
static uint64_t copy_needs_ns(uint64_t bytes, uint64_t copies)
{
	return (uint64_t)((__uint128_t)bytes * NS_PER_S / SLOW_COPY_BPS) + copies * COPY_CALL_NS;
}

/* How much of the time that @r's copies took was waiting for the GPU: a copy that reads a result waits for the work
 * before it, whatever others that were only queued have moved. Of long calls it is known what they copied. */
static uint64_t copy_waits_ns(const struct walk *w, const struct ledger_row *r)
{
	const struct event *events = w->t->rec->events;
	uint64_t rest_ns = r->ns[LEDGER_COPY], rest_bytes = r->copy_bytes, rest = r->copies;
	uint64_t waited = 0;
	const uint32_t *at;
	size_t n = timeline_events(
		w->t, w->t->calls, w->t->call_count, r->tid, r->start.ns, ledger_end_ns(r), &at);

	for (size_t i = 0; i < n; i++) {
		const struct event *e = &events[at[i]];
		uint64_t needs, ns = MIN(e->dur_ns, rest_ns); /* one may end in the next row */

		if (op_kind_line(e->source, e->op) != LEDGER_COPY || !ns)
			continue;
		needs = copy_needs_ns(e->arg0, 1);
		if (e->dur_ns > needs)
			waited += (uint64_t)((__uint128_t)ns * (e->dur_ns - needs) / e->dur_ns);
		rest_ns -= ns;
		rest_bytes -= MIN(e->arg0, rest_bytes);
		rest -= MIN(rest, UINT64_C(1));
	}
	if (rest_ns > copy_needs_ns(rest_bytes, rest))
		waited += rest_ns - copy_needs_ns(rest_bytes, rest);
	return waited;
}

/* Whether the wait for the GPU that @r ends in went on: ends of short ones have no row, and the next one's stay may be in the
 * row that follows. */
static bool is_last_stay(const struct walk *w, const struct ledger_row *r)
{
	const struct ledger_row *next = timeline_next(w->t, r);
	uint64_t waited, later;

	if (!next || (next->mark != MARK_WAIT && !next->waits))
		return false;
	waited = next->ns[LEDGER_GPU_WAIT] + next->ns[LEDGER_CPU_WAIT_GPU];
	later = next->mark == MARK_STAY && next->stay_line == LEDGER_GPU_WAIT ? next->stay_ns : 0;
	return waited - MIN(waited, later) < LAST_STAY_NS;
}

/* How much of the time without a CPU inside a wait for the GPU delayed its return: only the last stay
 * can, and only if nothing was waited for after it. */
static uint64_t delaying_stay(const struct walk *w, const struct ledger_row *r)
{
	const struct event *events = w->t->rec->events;
	int64_t end = ledger_end_ns(r);
	const uint32_t *at;
	size_t n = timeline_events(
		w->t, w->t->switches, w->t->switch_count, r->tid, r->start.ns, end, &at);

	if (r->mark == MARK_STAY && r->stay_line == LEDGER_GPU_WAIT && is_last_stay(w, r))
		return r->stay_wait_ns;
	if (r->mark != MARK_WAIT || !n)
		return 0;
	if (end - event_end_ns(&events[at[n - 1]]) > (int64_t)LAST_STAY_NS)
		return 0;
	return events[at[n - 1]].wait_ns;
}

/* Time in calls: @other_ns of it is on line @other. Where it was is known of the longest call. */
static int add_calls(struct walk *w, const struct ledger_row *r, enum account_line line,
	uint64_t stack, enum account_line other, uint64_t ns, uint64_t other_ns)
{
	const struct stack *s = path_stack(w, stack);
	struct tally_part p = path_part(w, r, line, ns - MIN(ns, other_ns));

	p.place = s ? place_key(s) : 0;
	p.stack_hash = p.place ? stack : 0;
	if (tally_add(w->out, &p) < 0)
		return -ENOMEM;
	p.line = (uint8_t)other;
	p.ns = MIN(ns, other_ns);
	return tally_add(w->out, &p);
}

static int class_of(uint64_t ns)
{
	return ns ? 63 - __builtin_clzll(ns) : 0;
}

/* How long a copy that slept did so for the work before it: what is longer than a slow link takes. Sleep for a disk that it
 * reads from is on the disk's line. */
static uint64_t sleep_waits_ns(const struct event *e)
{
	__uint128_t link_ns = (__uint128_t)e->arg0 * NS_PER_S / LEAST_LINK_BPS;

	if (e->arg0 <= SMALL_COPY)
		return e->dur_ns;
	return e->dur_ns > link_ns ? e->dur_ns - (uint64_t)link_ns : 0;
}

static void look_at_copies(struct walk *w)
{
	struct path *p = w->path;

	if (p->knows_copies)
		return;
	p->knows_copies = true;
	for (size_t i = 0; i < w->t->call_count; i++) {
		const struct event *e = &w->t->rec->events[w->t->calls[i]];

		if (e->pid != p->pid || op_kind_line(e->source, e->op) != LEDGER_COPY)
			continue;
		p->copy_ns[class_of(e->dur_ns)] += e->dur_ns;
		p->copy_wait_ns[class_of(e->dur_ns)] += sleep_waits_ns(e);
	}
}

/* The share of the time of recorded copies that take about as long as @ns in which they waited for the GPU. */
static double copies_wait(struct walk *w, uint64_t ns)
{
	int class = class_of(ns);
	uint64_t all, waited;

	look_at_copies(w);
	all = w->path->copy_ns[class] + w->path->copy_ns[class + 1];
	waited = w->path->copy_wait_ns[class] + w->path->copy_wait_ns[class + 1];
	return all ? (double)waited / (double)all : 0;
}

int path_copy_add(struct walk *w, const struct ledger_row *r, uint64_t ns)
{
	double share = copies_wait(w, r->stay_ns);

	return add_calls(
		w, r, ACCOUNT_COPY, r->stack_hash, ACCOUNT_GPU, ns, (uint64_t)(share * (double)ns));
}

enum account_line path_line_plain(const struct ledger_row *r, enum wire_ledger_line line)
{
	if (line == LEDGER_POLL && place_is_driver_thread(r->comm))
		return ACCOUNT_GPU;
	switch (line) {
	case LEDGER_COLLECT: return ACCOUNT_GC;
	case LEDGER_GPU_WAIT: return ACCOUNT_GPU;
	case LEDGER_LAUNCH: return ACCOUNT_LAUNCH;
	case LEDGER_COPY: return ACCOUNT_COPY;
	case LEDGER_ALLOC: return ACCOUNT_ALLOCATION;
	case LEDGER_GRAPH: return ACCOUNT_GRAPH;
	case LEDGER_COLLECTIVE: return ACCOUNT_COLLECTIVE;
	case LEDGER_CALL:
	case LEDGER_DEVICE: return ACCOUNT_CALL;
	case LEDGER_LOCK:
	case LEDGER_PIPE:
	case LEDGER_CHILD: return ACCOUNT_LOCK;
	case LEDGER_POLL:
	case LEDGER_SOCKET: return ACCOUNT_NETWORK;
	case LEDGER_DISK: return ACCOUNT_DISK;
	case LEDGER_MEMORY: return ACCOUNT_MEMORY;
	case LEDGER_SLEEP:
	case LEDGER_BLOCKED: return ACCOUNT_ASLEEP;
	case LEDGER_STOPPED: return ACCOUNT_STOPPED;
	default: return ACCOUNT_HOST;
	}
}

int path_line_add(struct walk *w, const struct ledger_row *r, enum wire_ledger_line line,
	uint64_t ns, int64_t from_ns, int64_t to_ns)
{
	uint64_t moved;

	if (!ns)
		return 0;
	switch (line) {
	case LEDGER_RUN:
	case LEDGER_COLLECT: return add_sampled(w, r, line, from_ns, to_ns, ns);
	case LEDGER_CPU_WAIT: return add_cpu(w, r, from_ns, to_ns, ns);
	case LEDGER_CPU_WAIT_GPU:
		moved = MIN(delaying_stay(w, r), ns);
		if (moved && add_cpu(w, r, from_ns, to_ns, moved) < 0)
			return -ENOMEM;
		return path_add(w, r, ACCOUNT_GPU, ns - moved);
	case LEDGER_LAUNCH:
	case LEDGER_GRAPH:
	case LEDGER_CALL:
		moved = line == LEDGER_CALL ? 0 : long_calls(w, r, line, from_ns, to_ns);
		return add_calls(w, r, path_line_plain(r, line),
			call_stack(w, r, line, from_ns, to_ns), ACCOUNT_GPU, ns,
			timeline_gpu_is_full(w->t, from_ns) ? ns : moved);
	case LEDGER_GPU_WAIT:
	case LEDGER_ALLOC:
		return add_calls(w, r, path_line_plain(r, line),
			call_stack(w, r, line, from_ns, to_ns), ACCOUNT_GPU, ns, 0);
	case LEDGER_COPY:
		if (w->path->copied != r)
			w->path->copied_wait_ns = copy_waits_ns(w, r);
		w->path->copied = r;
		moved = w->path->copied_wait_ns;
		return add_calls(w, r, ACCOUNT_COPY, call_stack(w, r, line, from_ns, to_ns),
			ACCOUNT_GPU, ns, moved);
	case LEDGER_LOCK:
		if (path_lock_is(w, r)) /* shorter stays before the long one */
			return path_lock_add(w, r, &(struct waker){0}, ns, from_ns, to_ns);
		return path_short_add(w, r, line, ns, from_ns, to_ns);
	case LEDGER_SLEEP:
		return path_add(w, r, path_is_poll(w, r) ? ACCOUNT_GPU : ACCOUNT_ASLEEP, ns);
	case LEDGER_PIPE:
	case LEDGER_CHILD:
	case LEDGER_POLL:
	case LEDGER_SOCKET: return path_short_add(w, r, line, ns, from_ns, to_ns);
	default: return path_add(w, r, path_line_plain(r, line), ns);
	}
}
