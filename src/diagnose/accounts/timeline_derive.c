/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_derive.c - a ledger from the events of a recording that has none.
 *
 * Each thread with recorded calls or stays gets rows that end with its waits for the GPU and its
 * stays of 1 ms or more. A call is on its line, less what the thread was runnable without a CPU;
 * everything between is RUN, which here means no more than "not recorded". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/rows/timeline.h"
#include "base/array.h"
#include "base/macros.h"
#include "base/search.h"
#include "wire/op_kind.h"

#define STAY_NS NS_PER_MS

struct piece { /* of a thread's time */
	uint32_t tid;
	uint32_t event;
	int64_t start_ns, end_ns;
};

/* What contains comes first. */
ORDER(by_thread_and_time, struct piece,
	ASCENDING(tid) ?: ASCENDING(start_ns) ?: DESCENDING(end_ns) ?: ASCENDING(event))

static bool is_wanted(const struct event *e)
{
	if (e->start.ns <= 0 || e->start.ns > INT64_MAX / 2 || e->dur_ns > (uint64_t)INT64_MAX / 4)
		return false;
	if (e->source == SOURCE_HOST)
		return e->op == HOST_SCHED_SWITCH;
	return op_kind_is_gpu(e->source) && !(e->flags & WIRE_NESTED);
}

static enum wire_ledger_line blocked_line(const struct event *e)
{
	return e->flags & WIRE_UNINTERRUPTIBLE ? LEDGER_DISK : LEDGER_BLOCKED;
}

struct writer { /* of one thread's rows */
	struct timeline *t;
	struct ledger_row row; /* what is not written yet */
	int64_t at_ns;         /* booked up to here */
	enum wire_ledger_line in_call;
	int64_t call_end_ns; /* of the call under way; 0: none */
};

/* Books the time up to @to, of a call or of nothing known. */
static void book_until(struct writer *w, int64_t to_ns)
{
	if (w->call_end_ns && w->at_ns < w->call_end_ns && w->at_ns < to_ns) {
		int64_t end = MIN(to_ns, w->call_end_ns);

		w->row.ns[w->in_call] += (uint64_t)(end - w->at_ns);
		w->at_ns = end;
	}
	if (w->call_end_ns && w->at_ns >= w->call_end_ns)
		w->call_end_ns = 0;
	if (w->at_ns < to_ns) {
		w->row.ns[LEDGER_RUN] += (uint64_t)(to_ns - w->at_ns);
		w->at_ns = to_ns;
	}
}

static int write_row(struct writer *w, enum wire_mark mark)
{
	struct ledger_row next;
	int r = 0;

	w->row.mark = (uint8_t)mark;
	w->row.dur_ns = (uint64_t)(w->at_ns - w->row.start.ns);
	if (w->row.dur_ns)
		r = timeline_add(w->t, &w->row);
	next = (struct ledger_row){.start.ns = w->at_ns, .pid = w->row.pid, .tid = w->row.tid};
	memcpy(next.comm, w->row.comm, COMM_LEN);
	w->row = next;
	return r;
}

static int book_stay(struct writer *w, const struct event *e)
{
	int64_t end = event_end_ns(e), start = MAX(e->start.ns, w->at_ns);
	uint64_t length, wait;
	bool in_wait;

	if (end <= start)
		return 0;
	book_until(w, start);
	length = (uint64_t)(end - start);
	wait = MIN(e->wait_ns, length);
	in_wait = w->call_end_ns > start;
	w->row.ns[in_wait ? w->in_call : blocked_line(e)] += length - wait;
	w->row.ns[in_wait && w->in_call == LEDGER_GPU_WAIT ? LEDGER_CPU_WAIT_GPU
							   : LEDGER_CPU_WAIT] += wait;
	w->row.stays++;
	w->at_ns = end;
	if (length < STAY_NS || in_wait)
		return 0;
	w->row.stay_ns = length;
	w->row.stay_wait_ns = wait;
	w->row.stay_line = (uint8_t)(wait == length ? LEDGER_CPU_WAIT : blocked_line(e));
	w->row.waker = e->stream ? WAKER_TASK : WAKER_NOBODY;
	w->row.waker_pid = (uint32_t)e->stream;
	w->row.stack_hash = e->stack_hash;
	return write_row(w, MARK_STAY);
}

static int book_call(struct writer *w, const struct event *e)
{
	enum wire_ledger_line line = op_kind_line(e->source, e->op);
	int r = 0;

	book_until(w, e->start.ns);
	w->in_call = line;
	w->call_end_ns = MAX(event_end_ns(e), w->at_ns);
	w->row.launches += line == LEDGER_LAUNCH;
	w->row.copies += line == LEDGER_COPY;
	w->row.allocs += line == LEDGER_ALLOC;
	if (line == LEDGER_COPY)
		w->row.copy_bytes += e->arg0;
	if (line == LEDGER_GPU_WAIT)
		w->row.waits++;
	return r;
}

static int write_thread(struct timeline *t, const struct piece *pieces, size_t n)
{
	const struct event *events = t->rec->events;
	struct writer w = {.t = t, .at_ns = pieces[0].start_ns};
	int r = 0;

	w.row = (struct ledger_row){
		.start.ns = w.at_ns, .pid = events[pieces[0].event].pid, .tid = pieces[0].tid};
	memcpy(w.row.comm, events[pieces[0].event].comm, COMM_LEN);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct event *e = &events[pieces[i].event];
		bool was_wait = w.call_end_ns && w.in_call == LEDGER_GPU_WAIT;

		if (was_wait && e->start.ns >= w.call_end_ns) {
			book_until(&w, w.call_end_ns);
			r = write_row(&w, MARK_WAIT);
		}
		if (r == 0)
			r = e->source == SOURCE_HOST ? book_stay(&w, e) : book_call(&w, e);
	}
	if (r == 0 && w.call_end_ns)
		book_until(&w, w.call_end_ns);
	return r == 0 ? write_row(&w, MARK_STOP) : r;
}

int timeline_derive(struct timeline *t)
{
	const struct recording *rec = t->rec;
	_cleanup_free_ struct piece *pieces = NULL;
	size_t n = 0, room = 0;
	int r = 0;

	for (size_t i = 0; i < rec->event_count && i < UINT32_MAX; i++) {
		const struct event *e = &rec->events[i];

		if (!is_wanted(e))
			continue;
		if (ARRAY_RESERVE(pieces, room, n + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		pieces[n++] = (struct piece){e->tid, (uint32_t)i, e->start.ns, event_end_ns(e)};
	}
	if (n)
		SORT_DEALT(pieces, n, by_thread_and_time, offsetof(struct piece, tid));
	for (size_t i = 0, end; r == 0 && i < n; i = end) {
		for (end = i; end < n && pieces[end].tid == pieces[i].tid;)
			end++;
		r = write_thread(t, pieces + i, end - i);
	}
	return r;
}
