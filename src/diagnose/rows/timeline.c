/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/rows/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/macros.h"
#include "base/search.h"
#include "wire/op_kind.h"

#define READING_NS   ((int64_t)(1200 * NS_PER_MS)) /* readings come every second */
#define FULL_PERCENT 95
#define MAKING_NS    ((int64_t)(2 * NS_PER_MS)) /* from a thread's making to its first row */
#define LONG_CALL_NS (200 * NS_PER_US)          /* shorter ones have not waited for a full queue */

int timeline_add(struct timeline *t, const struct ledger_row *r)
{
	if (ARRAY_RESERVE(t->made, t->made_room, t->made_count + 1, RECORDING_ROWS_MAX) < 0)
		return -ENOMEM;
	t->made[t->made_count++] = *r;
	return 0;
}

static bool is_sane(const struct ledger_row *r)
{
	return r->dur_ns < (uint64_t)INT64_MAX / 4 && r->start.ns > 0 &&
	       r->start.ns < INT64_MAX / 2 && r->stay_ns <= r->dur_ns &&
	       r->stay_wait_ns <= r->stay_ns && r->stay_line < LEDGER_LINES;
}

struct order {
	uint32_t tid, at; /* in the recording */
	int64_t start_ns;
};

ORDER(by_order, struct order, ASCENDING(tid) ?: ASCENDING(start_ns) ?: ASCENDING(at))

ORDER_OF_POINTERS(by_length, struct ledger_row, ASCENDING(dur_ns) ?: COMPARE(x, y))

/* A row may be of no length: it comes before the one that starts with it. */
static void order_lengths(struct timeline *t)
{
	for (size_t i = 0, to; i < t->row_count; i = to) {
		for (to = i + 1; to < t->row_count && t->rows[to]->tid == t->rows[i]->tid &&
				 t->rows[to]->start.ns == t->rows[i]->start.ns;)
			to++;
		if (to - i > 1)
			SORT(t->rows + i, to - i, by_length);
	}
}

#define OVERLAP_MOST ((int64_t)(10 * NS_PER_MS)) /* a clock that is set moves rows a little */

/* What a thread did is told once: a row that begins while the one before it goes on is a stranger's, or of a clock that was
 * set back meanwhile. */
static void drop_overlaps(struct timeline *t)
{
	int64_t end = INT64_MIN;
	size_t kept = 0;

	for (size_t i = 0; i < t->row_count; i++) {
		const struct ledger_row *r = t->rows[i];

		if (!kept || r->tid != t->rows[kept - 1]->tid)
			end = INT64_MIN;
		else if (end > INT64_MIN + OVERLAP_MOST && r->start.ns < end - OVERLAP_MOST)
			continue;
		end = MAX(end, ledger_end_ns(r));
		t->rows[kept++] = r;
	}
	t->overlapping = t->row_count - kept;
	t->row_count = kept;
}

/* Rows are wide: they stay where they are, their places are put in order. */
static int order_rows(struct timeline *t, const struct ledger_row *rows, size_t count)
{
	_cleanup_free_ struct order *places = NULL;
	size_t n = 0;

	count = MIN(count, (size_t)RECORDING_ROWS_MAX);
	places = calloc(count + 1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (t->is_derived || is_sane(&rows[i]))
			places[n++] = (struct order){rows[i].tid, (uint32_t)i, rows[i].start.ns};
		else
			t->unfit++;
	if (n)
		SORT_DEALT(places, n, by_order, offsetof(struct order, tid));
	t->rows = calloc(n + 1, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		t->rows[i] = &rows[places[i].at];
	t->row_count = n;
	order_lengths(t);
	if (!t->is_derived)
		drop_overlaps(t);
	return 0;
}

static int index_threads(struct timeline *t)
{
	size_t room = 0;

	for (size_t i = 0; i < t->row_count; i++) {
		const struct ledger_row *r = t->rows[i];

		if (!i || r->tid != t->rows[i - 1]->tid) {
			if (ARRAY_RESERVE(
				    t->threads, room, t->thread_count + 1, RECORDING_ROWS_MAX) < 0)
				return -ENOMEM;
			t->threads[t->thread_count++] =
				(struct timeline_thread){.tid = r->tid, .pid = r->pid, .first = i};
		}
		t->threads[t->thread_count - 1].count++;
	}
	for (size_t i = 0; i < t->thread_count; i++)
		timeline_judge_thread(t, &t->threads[i]);
	return 0;
}

static const struct timeline_thread *find_thread(const struct timeline *t, uint32_t tid)
{
	size_t at = LOWER_BOUND(i, t->thread_count, t->threads[i].tid < tid);

	return at < t->thread_count && t->threads[at].tid == tid ? &t->threads[at] : NULL;
}

bool timeline_feeds(const struct timeline *t, uint32_t tid)
{
	const struct timeline_thread *th = find_thread(t, tid);

	return th && th->feeds;
}

bool timeline_is_idle(const struct timeline *t, uint32_t tid)
{
	const struct timeline_thread *th = find_thread(t, tid);

	return th && th->is_idle;
}

static bool has_calls(const struct ledger_row *r)
{
	return r->launches || r->waits || r->copies || r->allocs || r->ns[LEDGER_GRAPH] ||
	       r->ns[LEDGER_COLLECTIVE] || r->ns[LEDGER_CALL] || r->mark == MARK_OPTIMIZER ||
	       r->mark == MARK_BACKWARD ||
	       r->mark == MARK_EXECUTE; /* it trains, be it on the CPU */
}

ORDER(by_number, uint32_t, COMPARE(*x, *y))

static int index_gpu_pids(struct timeline *t)
{
	size_t room = 0, n = 0;

	for (size_t i = 0; i < t->row_count; i++) {
		const struct ledger_row *r = t->rows[i];

		if (!has_calls(r) || (n && t->gpu_pids[n - 1] == r->pid))
			continue;
		if (ARRAY_RESERVE(t->gpu_pids, room, n + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		t->gpu_pids[n++] = r->pid;
	}
	if (n)
		qsort(t->gpu_pids, n, sizeof(*t->gpu_pids), by_number);
	for (size_t i = 0; i < n; i++)
		if (!i || t->gpu_pids[i] != t->gpu_pids[t->gpu_pid_count - 1])
			t->gpu_pids[t->gpu_pid_count++] = t->gpu_pids[i];
	return 0;
}

static int index_pids(struct timeline *t)
{
	t->pids = calloc(t->thread_count + 1, sizeof(*t->pids));
	if (!t->pids)
		return -ENOMEM;
	for (size_t i = 0; i < t->thread_count; i++)
		t->pids[i] = t->threads[i].pid;
	t->pid_count = t->thread_count;
	if (t->pid_count)
		qsort(t->pids, t->pid_count, sizeof(*t->pids), by_number);
	return 0;
}

bool timeline_follows(const struct timeline *t, uint32_t pid)
{
	size_t at = LOWER_BOUND(i, t->pid_count, t->pids[i] < pid);

	return at < t->pid_count && t->pids[at] == pid;
}

bool timeline_uses_gpu(const struct timeline *t, uint32_t pid)
{
	size_t at = LOWER_BOUND(i, t->gpu_pid_count, t->gpu_pids[i] < pid);

	return at < t->gpu_pid_count && t->gpu_pids[at] == pid;
}

/* A reading says what was so in the second before it. */
bool timeline_gpu_is_full(const struct timeline *t, int64_t ns)
{
	const struct gpu_sample *g = t->rec->gpus;
	size_t n = t->rec->gpu_count, at = LOWER_BOUND(i, n, g[i].time.ns < ns);
	int64_t busiest = -1;

	for (; at < n && g[at].time.ns < ns + READING_NS; at++)
		busiest = MAX(busiest, g[at].util_gpu_pct);
	return busiest >= FULL_PERCENT;
}

enum list { LIST_SAMPLES, LIST_SWITCHES, LIST_CALLS, LIST_STAYS, LIST_FORKS, LISTS };

static enum list list_of_host(const struct event *e)
{
	switch (e->op) {
	case HOST_CPU_SAMPLE: return LIST_SAMPLES;
	case HOST_SCHED_SWITCH: return LIST_SWITCHES;
	case HOST_SHORT_STAYS:
		return e->arg0 < LEDGER_LINES && e->wait_ns <= TIMELINE_STAYS_NS ? LIST_STAYS
										 : LISTS;
	case HOST_PROCESS_FORK: return e->flags & WIRE_THREAD ? LISTS : LIST_FORKS;
	default: return LISTS;
	}
}

/* LISTS: none. */
static enum list list_of(const struct event *e)
{
	if (e->source == SOURCE_HOST)
		return list_of_host(e);
	return op_kind_is_gpu(e->source) && !(e->flags & WIRE_NESTED) && e->dur_ns >= LONG_CALL_NS
		       ? LIST_CALLS
		       : LISTS;
}

struct orders {
	struct order *items;
	size_t count, room;
};

/* Puts @o in order; *ret are the places in the recording. */
static int settle_order(struct orders *o, uint32_t **ret, size_t *ret_count)
{
	*ret = calloc(o->count + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	if (o->count)
		SORT_DEALT(o->items, o->count, by_order, offsetof(struct order, tid));
	for (size_t i = 0; i < o->count; i++)
		(*ret)[i] = o->items[i].at;
	*ret_count = o->count;
	return 0;
}

static int select_events(struct timeline *t)
{
	struct orders found[LISTS] = {0};
	const struct recording *rec = t->rec;
	int r = 0;

	for (size_t i = 0; r == 0 && i < rec->event_count && i < UINT32_MAX; i++) {
		const struct event *e = &rec->events[i];
		enum list list = list_of(e);
		struct orders *o = &found[list];

		if (list == LISTS)
			continue;
		r = ARRAY_RESERVE(o->items, o->room, o->count + 1, RECORDING_ROWS_MAX);
		if (r == 0)
			o->items[o->count++] =
				(struct order){list == LIST_FORKS ? e->peer_pid : e->tid,
					(uint32_t)i, e->start.ns};
	}
	if (r == 0)
		r = settle_order(&found[LIST_SAMPLES], &t->samples, &t->sample_count);
	if (r == 0)
		r = settle_order(&found[LIST_SWITCHES], &t->switches, &t->switch_count);
	if (r == 0)
		r = settle_order(&found[LIST_CALLS], &t->calls, &t->call_count);
	if (r == 0)
		r = settle_order(&found[LIST_STAYS], &t->stays, &t->stay_count);
	if (r == 0)
		r = settle_order(&found[LIST_FORKS], &t->forks, &t->fork_count);
	for (int i = 0; i < LISTS; i++)
		free(found[i].items);
	return r < 0 ? -ENOMEM : 0;
}

static uint64_t short_ns(const struct ledger_row *r, size_t line)
{
	uint64_t stay = r->stay_line == line ? r->stay_ns - r->stay_wait_ns : 0;

	return r->ns[line] - MIN(r->ns[line], stay);
}

static int measure_stays(struct timeline *t)
{
	t->stay_line_ns = calloc(t->stay_count + 1, sizeof(*t->stay_line_ns));
	if (!t->stay_line_ns)
		return -ENOMEM;
	for (size_t i = 0; i < t->stay_count; i++) {
		const struct event *e = &t->rec->events[t->stays[i]];
		struct timeline_range rows =
			timeline_within(t, e->tid, e->start.ns - (int64_t)e->wait_ns, e->start.ns);

		for (size_t k = 0; k < rows.count; k++)
			t->stay_line_ns[i] += short_ns(rows.rows[k], e->arg0);
	}
	return 0;
}

int timeline_make(const struct recording *rec, struct timeline *ret)
{
	int r;

	*ret = (struct timeline){.rec = rec, .is_derived = rec->ledger_count == 0};
	r = select_events(ret);
	if (r == 0)
		r = ret->is_derived ? timeline_derive(ret) : 0;
	if (r == 0)
		r = ret->is_derived ? order_rows(ret, ret->made, ret->made_count)
				    : order_rows(ret, rec->ledger, rec->ledger_count);
	if (r == 0)
		r = index_threads(ret);
	if (r == 0)
		r = index_pids(ret);
	if (r == 0)
		r = measure_stays(ret);
	return r == 0 ? index_gpu_pids(ret) : r;
}

void timeline_done(struct timeline *t)
{
	free(t->rows);
	free(t->made);
	free(t->threads);
	free(t->samples);
	free(t->switches);
	free(t->calls);
	free(t->stays);
	free(t->forks);
	free(t->stay_line_ns);
	free(t->gpu_pids);
	free(t->pids);
	*t = (struct timeline){0};
}

struct timeline_range timeline_of(const struct timeline *t, uint32_t tid)
{
	const struct timeline_thread *th = find_thread(t, tid);

	return th ? (struct timeline_range){t->rows + th->first, th->count}
		  : (struct timeline_range){0};
}

const struct ledger_row *timeline_next(const struct timeline *t, const struct ledger_row *r)
{
	struct timeline_range all = timeline_of(t, r->tid);
	size_t at = LOWER_BOUND(i, all.count, all.rows[i]->start.ns < r->start.ns);

	while (at < all.count && all.rows[at] != r)
		at++;
	return at + 1 < all.count ? all.rows[at + 1] : NULL;
}

struct timeline_range timeline_within(
	const struct timeline *t, uint32_t tid, int64_t from_ns, int64_t to_ns)
{
	struct timeline_range all = timeline_of(t, tid);
	size_t from = LOWER_BOUND(i, all.count, ledger_end_ns(all.rows[i]) <= from_ns);
	size_t to = LOWER_BOUND(i, all.count, all.rows[i]->start.ns < to_ns);

	if (from >= to)
		return (struct timeline_range){0};
	return (struct timeline_range){all.rows + from, to - from};
}

size_t timeline_events(const struct timeline *t, const uint32_t *list, size_t count, uint32_t tid,
	int64_t from_ns, int64_t to_ns, const uint32_t **ret)
{
	const struct event *events = t->rec->events;
	size_t from = LOWER_BOUND(i, count,
		events[list[i]].tid < tid ||
			(events[list[i]].tid == tid && events[list[i]].start.ns < from_ns));
	size_t to = LOWER_BOUND(i, count,
		events[list[i]].tid < tid ||
			(events[list[i]].tid == tid && events[list[i]].start.ns < to_ns));

	*ret = list + from;
	return to > from ? to - from : 0;
}

const struct event *timeline_fork(const struct timeline *t, uint32_t pid, int64_t before_ns)
{
	const struct event *events = t->rec->events;
	size_t after = LOWER_BOUND(i, t->fork_count,
		events[t->forks[i]].peer_pid < pid ||
			(events[t->forks[i]].peer_pid == pid &&
				events[t->forks[i]].start.ns <= before_ns));

	return after && events[t->forks[after - 1]].peer_pid == pid ? &events[t->forks[after - 1]]
								    : NULL;
}

/* Whether @th was there before @ns, and awake around it. */
static bool is_awake(const struct timeline *t, const struct timeline_thread *th, int64_t ns)
{
	int64_t from = ns - MAKING_NS;
	struct timeline_range rows;

	if (t->rows[th->first]->start.ns >= ns ||
		ledger_end_ns(t->rows[th->first + th->count - 1]) <= from)
		return false;
	rows = timeline_within(t, th->tid, from, ns);
	for (size_t i = 0; i < rows.count; i++) {
		const struct ledger_row *r = rows.rows[i];

		if (r->mark != MARK_STAY || ledger_end_ns(r) - (int64_t)r->stay_ns > from)
			return true;
	}
	return false;
}

uint32_t timeline_maker(const struct timeline *t, uint32_t tid, int64_t *ret_born_ns)
{
	const struct timeline_thread *th = find_thread(t, tid), *leader;
	const struct event *fork;

	if (!th || t->is_derived)
		return 0;
	*ret_born_ns = t->rows[th->first]->start.ns;
	if (th->tid == th->pid) {
		fork = timeline_fork(t, th->pid, *ret_born_ns + MAKING_NS);
		return fork && fork->start.ns >= *ret_born_ns - MAKING_NS ? fork->tid : 0;
	}
	leader = find_thread(t, th->pid);
	if (leader && is_awake(t, leader, *ret_born_ns))
		return leader->tid;
	for (size_t i = 0; i < t->thread_count; i++)
		if (t->threads[i].pid == th->pid && t->threads[i].tid != tid &&
			is_awake(t, &t->threads[i], *ret_born_ns))
			return t->threads[i].tid;
	return 0;
}
