/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - see path.h.
 *
 * A row of the ledger is an active part and, where a stay off the CPU ended it, that stay. The active
 * part goes to the lines it was booked on. A stay that a followed thread ended goes to whatever that
 * thread did meanwhile, and so on; one that nobody followed ended stays on its own line, with the
 * waker as its culprit. A stay that a timer ended, and after which the thread at once slept on at the
 * same place, is part of the stay that follows: its waker counts. Shorter stays, of which no row says who
 * ended them, are shared out as the time of whoever is known to have ended them was (path_follow()).
 *
 * A thread or process that began meanwhile was made by somebody: what was before it is the maker's time.
 *
 * What no row covers (lost rows, threads that are not followed) is not known. */

#include "wire/op_kind.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/accounts/path_private.h"
#include "diagnose/rows/place.h"
#include "base/macros.h"

#define RESUME_NS  (500 * NS_PER_US) /* awake for less: it only looked whether it may go on */
#define PASSING_NS ((int64_t)NS_PER_S)

/* Whether @r is of a data loader's worker: by its name, or because it is waited for in the loader. */
static bool is_loader(const struct walk *w, const struct ledger_row *r)
{
	const struct stack *s = path_stack(w, w->waited);

	if (w->t->is_derived || place_is_loader_thread(r->comm))
		return true;
	return w->path->has_loader && (!s || place_is_loader(s));
}

/* Followed are processes that use a GPU, their children and who is waited for: in a loader, one without a GPU is a worker. */
static enum account_owner owner_of(const struct walk *w, const struct ledger_row *r)
{
	if (r->pid == w->path->pid)
		return r->tid == w->path->tid ? OWNER_SELF : OWNER_THREAD;
	return timeline_uses_gpu(w->t, r->pid) || !is_loader(w, r) ? OWNER_PROCESS : OWNER_LOADER;
}

/* Whether process @pid came with the unit, or came and went: one of many alike that a program starts again and
 * again. */
static bool is_passing(const struct walk *w, uint32_t pid)
{
	struct timeline_range rows = timeline_of(w->t, pid);
	const struct event *fork = timeline_fork(w->t, pid, w->to_ns);

	if (fork && fork->start.ns >= w->from_ns)
		return true;
	return rows.count && rows.rows[rows.count - 1]->mark == MARK_EXIT &&
	       ledger_end_ns(rows.rows[rows.count - 1]) - rows.rows[0]->start.ns < PASSING_NS;
}

/* What a thread computes while it holds the lock that the one above wants is why that one waits; who waits for what it
 * computes waits for a condition instead. */
static bool is_wait_for_mutex(const struct walk *w)
{
	const struct stack *s = path_stack(w, w->waited);

	return s && place_is_mutex(s);
}

struct tally_part path_part(
	const struct walk *w, const struct ledger_row *r, enum account_line line, uint64_t ns)
{
	struct tally_part p = {
		.line = (uint8_t)(w->over_socket && line == ACCOUNT_ASLEEP ? ACCOUNT_NETWORK
									   : line),
		.owner = (uint8_t)owner_of(w, r),
		.pid = r->pid,
		.wait_hash = w->waited,
		.ns = ns};
	bool is_asked = p.owner == OWNER_PROCESS && w->asked;

	p.wait_hash = is_asked ? w->asked : p.wait_hash;
	memcpy(p.comm, r->comm, COMM_LEN);
	if (p.owner == OWNER_THREAD && line == ACCOUNT_HOST && is_wait_for_mutex(w)) {
		p.line = ACCOUNT_LOCK;
		p.culprit_pid = r->pid;
		memcpy(p.culprit, r->comm, COMM_LEN);
	}
	if (p.owner > OWNER_THREAD && is_passing(w, r->pid))
		p.pid = 0;
	return p;
}

const struct stack *path_stack(const struct walk *w, uint64_t hash)
{
	return stack_find(w->t->rec->stacks, hash);
}

int path_add(struct walk *w, const struct ledger_row *r, enum account_line line, uint64_t ns)
{
	struct tally_part p = path_part(w, r, line, ns);

	return tally_add(w->out, &p);
}

/* The part of @r's active time that lies in [from, to): each line has its share of it. */
static int add_active(struct walk *w, const struct ledger_row *r, int64_t from_ns, int64_t to_ns)
{
	uint64_t lines[LEDGER_LINES], whole = r->dur_ns - r->stay_ns, part, sum = 0, given = 0;
	int largest = 0, r_add = 0;

	if (to_ns <= from_ns)
		return 0;
	part = (uint64_t)(to_ns - from_ns);
	memcpy(lines, r->ns, sizeof(lines));
	if (r->stay_ns) {
		uint64_t blocked = r->stay_ns - r->stay_wait_ns;
		int waiting =
			r->stay_line == LEDGER_GPU_WAIT ? LEDGER_CPU_WAIT_GPU : LEDGER_CPU_WAIT;

		lines[r->stay_line] -= MIN(lines[r->stay_line], blocked);
		lines[waiting] -= MIN(lines[waiting], r->stay_wait_ns);
	}
	for (int i = 0; i < LEDGER_LINES; i++) {
		sum += lines[i];
		if (lines[i] > lines[largest])
			largest = i;
	}
	if (!sum || !whole)
		return path_add(w, r, ACCOUNT_UNKNOWN, part);
	for (int i = 0; i < LEDGER_LINES; i++) {
		lines[i] = (uint64_t)((__uint128_t)lines[i] * part / sum);
		given += lines[i];
	}
	lines[largest] += part - given;
	for (int i = 0; r_add == 0 && i < LEDGER_LINES; i++)
		r_add = path_line_add(w, r, (enum wire_ledger_line)i, lines[i], from_ns, to_ns);
	return r_add;
}

static int walk_back(struct walk *w, uint32_t tid, int64_t from_ns, int64_t to_ns);

static bool is_awaited(const struct walk *w, uint32_t tid)
{
	for (int i = 0; i < w->depth; i++)
		if (w->above[i] == tid)
			return true;
	return false;
}

bool path_is_poll(const struct walk *w, const struct ledger_row *r)
{
	return w->path->polls && r->tid == w->path->tid;
}

bool path_may_follow(const struct walk *w, enum wire_ledger_line line, const struct waker *waker)
{
	if (waker->kind != WAKER_TASK || !waker->tid || w->depth >= PATH_DEPTH_MAX ||
		is_awaited(w, waker->tid) || timeline_is_idle(w->t, waker->tid))
		return false;
	if (line != LEDGER_LOCK && line != LEDGER_PIPE && line != LEDGER_POLL &&
		line != LEDGER_SOCKET && line != LEDGER_CHILD && line != LEDGER_BLOCKED)
		return false;
	return timeline_of(w->t, waker->tid).count > 0;
}

/* Follows @waker, which ended the stay of @r. */
static int follow(struct walk *w, const struct ledger_row *r, const struct waker *waker,
	int64_t from_ns, int64_t to_ns)
{
	const struct stack *s = path_stack(w, r->stack_hash);
	uint64_t waited = w->waited, asked = w->asked;
	bool over_socket = w->over_socket;
	int ret;

	if (w->depth == 1)
		w->waited = r->stack_hash;
	if (r->pid == w->path->pid && s && stack_user_frame(s))
		w->asked = r->stack_hash;
	w->over_socket |= r->stay_line == LEDGER_SOCKET || r->stay_line == LEDGER_POLL;
	ret = walk_back(w, waker->tid, from_ns, to_ns);
	w->waited = waited;
	w->asked = asked;
	w->over_socket = over_socket;
	return ret;
}

static bool is_of_process(const struct ledger_row *r, const struct waker *waker)
{
	return waker->kind == WAKER_TASK && waker->pid && waker->pid != r->pid && waker->comm[0];
}

/* A wait for another process, of which no more is known than that it ended the wait. */
static int add_foreign(struct walk *w, const struct ledger_row *r, const struct waker *waker,
	enum account_line line, uint64_t ns)
{
	struct tally_part p = {.line = (uint8_t)line,
		.owner = OWNER_PROCESS,
		.pid = waker->pid,
		.wait_hash = r->stack_hash,
		.ns = ns};

	snprintf(p.comm, sizeof(p.comm), "%s", waker->comm);
	return tally_add(w->out, &p);
}

/* A sleep after which the thread looks at the GPU: it works until then or, of the last one, until some moment of it, by half of it on
 * average. */
static int add_poll(struct walk *w, const struct ledger_row *r, struct tally_part *p)
{
	struct tally_part gpu = *p;

	gpu.line = ACCOUNT_GPU;
	gpu.by_clock = false;
	p->by_clock = false;
	p->ns = ledger_end_ns(r) >= w->to_ns ? p->ns / 2 : 0;
	gpu.ns -= p->ns;
	if (p->ns && tally_add(w->out, p) < 0)
		return -ENOMEM;
	return tally_add(w->out, &gpu);
}

/* The blocked part [from, to) of the stay that ends @r, ended by @waker. */
static int add_blocked(struct walk *w, const struct ledger_row *r, const struct waker *waker,
	int64_t from_ns, int64_t to_ns)
{
	enum wire_ledger_line line = (enum wire_ledger_line)r->stay_line;
	const struct stack *s = path_stack(w, r->stack_hash);
	struct tally_part p;

	if (to_ns <= from_ns)
		return 0;
	if (path_lock_is(w, r))
		return path_lock_add(w, r, waker, (uint64_t)(to_ns - from_ns), from_ns, to_ns);
	if (path_may_follow(w, line, waker))
		return follow(w, r, waker, from_ns, to_ns);
	if (line == LEDGER_COPY)
		return path_copy_add(w, r, (uint64_t)(to_ns - from_ns));
	p = path_part(w, r, path_line_plain(r, line), (uint64_t)(to_ns - from_ns));
	if (line == LEDGER_LOCK && waker->kind == WAKER_TIMER)
		p.line = ACCOUNT_ASLEEP; /* it waited for nobody, or in vain */
	if (line == LEDGER_SLEEP && s && place_database(s))
		p.line = ACCOUNT_LOCK;
	p.by_clock = p.line == ACCOUNT_ASLEEP && line != LEDGER_BLOCKED;
	if (p.line == ACCOUNT_LOCK || p.line == ACCOUNT_NETWORK || p.line == ACCOUNT_STOPPED) {
		if (waker->kind == WAKER_TASK) {
			p.culprit_pid = waker->pid;
			snprintf(p.culprit, sizeof(p.culprit), "%s", waker->comm);
		}
		if (p.line != ACCOUNT_STOPPED && p.owner == OWNER_SELF && !w->t->is_derived &&
			is_of_process(r, waker))
			return add_foreign(w, r, waker, (enum account_line)p.line, p.ns);
	}
	p.place = s ? place_key(s) : 0;
	p.stack_hash = p.place ? r->stack_hash : 0;
	if (line == LEDGER_SLEEP && path_is_poll(w, r))
		return add_poll(w, r, &p);
	return tally_add(w->out, &p);
}

/* A recording without a ledger names the process that woke a thread: of its threads it was the one
 * that had most to do meanwhile. 0: none had. */
static uint32_t guess_waker(const struct walk *w, const struct ledger_row *r)
{
	int64_t end = ledger_end_ns(r), start = end - (int64_t)r->stay_ns;
	uint64_t most = 0;
	uint32_t tid = 0;

	for (size_t i = 0; i < w->t->thread_count; i++) {
		const struct timeline_thread *th = &w->t->threads[i];
		struct timeline_range rows;
		uint64_t busy = 0;

		if (th->pid != r->waker_pid || th->tid == r->tid)
			continue;
		rows = timeline_within(w->t, th->tid, start, end);
		for (size_t k = 0; k < rows.count; k++)
			busy += rows.rows[k]->stays + rows.rows[k]->launches;
		if (busy > most) {
			most = busy;
			tid = th->tid;
		}
	}
	return tid;
}

/* Who ended the stay of @r: of one that a timer ended and that went on at once, who ended the next,
 * which is @later. */
static struct waker waker_of(const struct walk *w, const struct ledger_row *r,
	const struct ledger_row *later, const struct waker *later_waker)
{
	uint32_t tid = w->t->is_derived && r->waker_pid ? guess_waker(w, r) : r->waker_tid;

	if (r->mark == MARK_STAY && r->waker == WAKER_TIMER && r->stay_line == LEDGER_LOCK &&
		later && later->mark == MARK_STAY && later->stay_line == LEDGER_LOCK &&
		later->dur_ns - later->stay_ns < RESUME_NS)
		return *later_waker;
	if (r->waker == WAKER_TASK && timeline_is_idle(w->t, tid))
		return (struct waker){.comm = ""};
	return (struct waker){
		r->waker_pid, tid, r->waker_comm, r->mark == MARK_STAY ? r->waker : 0};
}

static int add_row(struct walk *w, const struct ledger_row *r, const struct waker *waker,
	int64_t from_ns, int64_t to_ns)
{
	int64_t end = ledger_end_ns(r), ready = end - (int64_t)r->stay_wait_ns;
	int64_t left = end - (int64_t)r->stay_ns;
	int64_t wait_from = MAX(ready, from_ns);
	int ret = 0;

	if (to_ns > wait_from && r->stay_wait_ns)
		ret = path_line_add(w, r,
			r->stay_line == LEDGER_GPU_WAIT ? LEDGER_CPU_WAIT_GPU : LEDGER_CPU_WAIT,
			(uint64_t)(to_ns - wait_from), wait_from, to_ns);
	if (ret == 0)
		ret = add_blocked(w, r, waker, MAX(left, from_ns), MIN(ready, to_ns));
	if (ret == 0)
		ret = add_active(w, r, from_ns, MIN(left, to_ns));
	return ret;
}

/* Who ended a wait was not waiting when it did. */
static bool is_waiting(const struct tally_part *p)
{
	return p->line == ACCOUNT_LOCK || p->line == ACCOUNT_GIL || p->line == ACCOUNT_ASLEEP ||
	       p->line == ACCOUNT_NETWORK || p->line == ACCOUNT_UNKNOWN;
}

int path_follow(struct walk *w, uint32_t tid, uint64_t ns, int64_t from_ns, int64_t to_ns)
{
	_cleanup_(tally_done) struct tally did = {0};
	struct tally *out = w->out;
	uint64_t busy = 0, left = ns;
	struct tally_part *last = NULL;
	int r;

	w->out = &did;
	r = walk_back(w, tid, from_ns, to_ns);
	w->out = out;
	if (r < 0)
		return r;
	for (size_t i = 0; i < did.count; i++)
		busy += is_waiting(&did.parts[i]) ? 0 : did.parts[i].ns;
	if (!busy)
		return 0;
	for (size_t i = 0; i < did.count; i++) {
		struct tally_part *p = &did.parts[i];

		if (is_waiting(p))
			continue;
		p->ns = (uint64_t)((__uint128_t)ns * p->ns / busy);
		left -= p->ns;
		last = p;
	}
	last->ns += left; /* some nanoseconds */
	for (size_t i = 0; i < did.count; i++)
		if (!is_waiting(&did.parts[i]) && tally_add(out, &did.parts[i]) < 0)
			return -ENOMEM;
	return 1;
}

static int add_unknown(struct walk *w, uint32_t tid, int64_t from_ns, int64_t to_ns)
{
	struct ledger_row nobody = {.pid = w->path->pid, .tid = tid};

	return path_add(w, &nobody, ACCOUNT_UNKNOWN, (uint64_t)(to_ns - from_ns));
}

/* What no row of @tid covers. Before it began there was who made it; once it has ended, the kernel ends what is its,
 * memory and files, until others are told. */
static int add_gap(struct walk *w, uint32_t tid, int64_t from_ns, int64_t to_ns)
{
	struct timeline_range rows = timeline_of(w->t, tid);
	const struct ledger_row *last = rows.count ? rows.rows[rows.count - 1] : NULL;
	int64_t born_ns = INT64_MIN;
	uint32_t maker;

	if (to_ns <= from_ns)
		return 0;
	if (last && last->mark == MARK_EXIT && ledger_end_ns(last) <= from_ns)
		return path_add(w, last, ACCOUNT_HOST, (uint64_t)(to_ns - from_ns));
	maker = timeline_maker(w->t, tid, &born_ns);
	if (born_ns < to_ns || !path_may_follow(w, LEDGER_CHILD,
				       &(struct waker){.tid = maker, .kind = WAKER_TASK}))
		return add_unknown(w, tid, from_ns, to_ns);
	return walk_back(w, maker, from_ns, to_ns);
}

static int walk_back(struct walk *w, uint32_t tid, int64_t from_ns, int64_t to_ns)
{
	struct timeline_range rows = timeline_within(w->t, tid, from_ns, to_ns);
	const struct ledger_row *later = NULL;
	struct waker later_waker = {0};
	int64_t at = to_ns;
	int r = 0;

	w->above[w->depth++] = tid;
	for (size_t i = rows.count; r == 0 && i > 0; i--) {
		const struct ledger_row *row = rows.rows[i - 1];
		struct waker waker = waker_of(w, row, later, &later_waker);
		int64_t end = MIN(ledger_end_ns(row), at), start = MAX(row->start.ns, from_ns);

		r = add_gap(w, tid, MAX(end, from_ns), at);
		at = MAX(end, from_ns);
		if (r == 0 && start < at)
			r = add_row(w, row, &waker, start, at);
		at = MIN(at, MAX(start, from_ns));
		later = row;
		later_waker = waker;
	}
	if (r == 0)
		r = add_gap(w, tid, from_ns, at);
	w->depth--;
	return r;
}

int path_account(struct path *p, int64_t from_ns, int64_t to_ns, struct tally *out)
{
	struct walk w = {
		.path = p, .t = p->timeline, .out = out, .from_ns = from_ns, .to_ns = to_ns};

	return to_ns > from_ns ? walk_back(&w, p->tid, from_ns, to_ns) : 0;
}
