/* SPDX-License-Identifier: Apache-2.0 */
/* attribute.c - overlap of slow calls with off-CPU stays and disk requests. See attribute.h.
 *
 * A stay off the CPU is cut in two. Its last wait_ns (all of it when the thread was preempted) the
 * thread could have run: that is the doing of whoever had the CPU, and counts as PREEMPTED or
 * RUN_QUEUE. Before that it was blocked: in D state it waited for a disk or a file system (BLOCK_IO),
 * for its own requests as far as they were under way, else for what is done in other names or over
 * the network, which nobody is blamed for; asleep it waited for something not recorded, the GPU as a
 * rule. Only stays of the call's own thread and only the time inside the call count.
 *
 * A wait for the GPU lasts until the GPU is done, whatever its thread does meanwhile: a stay in the
 * middle of it, after which the thread went on waiting, has delayed nothing. Only the stay after
 * which the wait returned can have: see attribute_tail_ns().
 *
 * Invariants: intervals of one key are disjoint and ascending, also when the rows overlap each
 * other (the later row loses the shared part), so no instant is counted twice; the parts of one
 * call are scaled down together when they exceed its excess. */
#include "diagnose/calls/attribute.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/calls/part.h"
#include "base/array.h"
#include "base/search.h"
#include "base/sort.h"
#include "wire/op_kind.h"

/* What a wait takes to return once its thread has a CPU: a spinning one microseconds, one that was
 * asleep its way out of the driver. Generous, for what it wrongly counts is no longer than that. */
#define LEAVE_NS ((int64_t)NS_PER_MS)

struct wanted { /* threads and processes that have slow calls, ascending */
	uint32_t *tids, *pids;
	size_t tid_count, pid_count;
};

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static size_t unique_sorted(uint32_t *v, size_t n)
{
	size_t kept = 0;

	qsort(v, n, sizeof(*v), by_number);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || v[kept - 1] != v[i])
			v[kept++] = v[i];
	return kept;
}

static void wanted_done(struct wanted *w)
{
	free(w->tids);
	free(w->pids);
}

static int wanted_spans(struct wanted *w, const struct span *spans, size_t n)
{
	w->tids = calloc(n + 1, sizeof(*w->tids));
	w->pids = calloc(n + 1, sizeof(*w->pids));
	if (!w->tids || !w->pids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		w->tids[i] = spans[i].tid;
		w->pids[i] = spans[i].pid;
	}
	w->tid_count = unique_sorted(w->tids, n);
	w->pid_count = unique_sorted(w->pids, n);
	return 0;
}

static int wanted_init(struct wanted *w, const struct detection *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->episode_count; i++)
		n += d->slow_episodees[i].count;
	w->tids = calloc(n + 1, sizeof(*w->tids));
	w->pids = calloc(d->episode_count + 1, sizeof(*w->pids));
	if (!w->tids || !w->pids)
		return -ENOMEM;
	for (size_t i = 0; i < d->episode_count; i++) {
		const struct slow_episode *s = &d->slow_episodees[i];

		w->pids[w->pid_count++] = d->ops.groups[s->group].pid;
		for (size_t k = 0; k < s->count; k++)
			w->tids[w->tid_count++] = d->slow[s->first + k].tid;
	}
	w->tid_count = unique_sorted(w->tids, w->tid_count);
	w->pid_count = unique_sorted(w->pids, w->pid_count);
	return 0;
}

static bool is_wanted(const uint32_t *sorted, size_t n, uint32_t v)
{
	return bsearch(&v, sorted, n, sizeof(*sorted), by_number) != NULL;
}

static int interval_add(struct interval_list *l, uint32_t key, enum interval_kind kind,
	size_t event, int64_t start_ns, int64_t end_ns)
{
	if (start_ns >= end_ns)
		return 0;
	if (ARRAY_RESERVE(l->items, l->room, l->count + 1, CORRELATE_ROWS_MAX) < 0)
		return -ENOMEM;
	l->items[l->count++] = (struct interval){start_ns, end_ns, event, key, kind};
	return 0;
}

static int add_off_cpu(struct attribution_index *x, const struct event *e, size_t event)
{
	int64_t end = event_end_ns(e), woken = end - (int64_t)MIN(e->wait_ns, e->dur_ns);
	bool blocked_in_disk = e->flags & WIRE_UNINTERRUPTIBLE;
	int r;

	if (e->flags & WIRE_PREEMPTED)
		return interval_add(
			&x->off_cpu, e->tid, INTERVAL_PREEMPTED, event, e->start.ns, end);
	r = interval_add(&x->off_cpu, e->tid,
		blocked_in_disk ? INTERVAL_DISK_WAIT : INTERVAL_ASLEEP, event, e->start.ns, woken);
	if (r < 0)
		return r;
	return interval_add(&x->off_cpu, e->tid, INTERVAL_RUN_QUEUE, event, woken, end);
}

static int add_request(
	struct attribution_index *x, const struct wanted *w, const struct event *e, size_t event)
{
	int64_t end = event_end_ns(e);

	if (is_wanted(w->tids, w->tid_count, e->tid) &&
		interval_add(&x->by_thread, e->tid, INTERVAL_REQUEST, event, e->start.ns, end) < 0)
		return -ENOMEM;
	if (is_wanted(w->pids, w->pid_count, e->pid) &&
		interval_add(&x->by_process, e->pid, INTERVAL_REQUEST, event, e->start.ns, end) < 0)
		return -ENOMEM;
	if (ARRAY_RESERVE(x->requests, x->request_room, x->request_count + 1, CORRELATE_ROWS_MAX) <
		0)
		return -ENOMEM;
	x->requests[x->request_count++] = event;
	return 0;
}

static int by_key_and_time(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

static void make_disjoint(struct interval_list *l)
{
	size_t kept = 0;

	if (!l->count)
		return;
	SORT_DEALT(l->items, l->count, by_key_and_time, offsetof(struct interval, key));
	for (size_t i = 0; i < l->count; i++) {
		struct interval v = l->items[i];

		if (kept > 0 && l->items[kept - 1].key == v.key)
			v.start_ns = MAX(v.start_ns, l->items[kept - 1].end_ns);
		if (v.start_ns < v.end_ns)
			l->items[kept++] = v;
	}
	l->count = kept;
}

static int requests_by_device(const void *a, const void *b, void *events)
{
	const size_t *x = a, *y = b;
	const struct event *e = events;

	if (e[*x].dev != e[*y].dev)
		return e[*x].dev < e[*y].dev ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

static int add_row(
	struct attribution_index *x, const struct wanted *w, const struct event *e, size_t event)
{
	bool reclaims = e->source == SOURCE_HOST &&
			(e->op == HOST_DIRECT_RECLAIM || e->op == HOST_COMPACTION);

	if (e->source == SOURCE_IO)
		return add_request(x, w, e, event);
	if (!is_wanted(w->tids, w->tid_count, e->tid))
		return 0;
	if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH)
		return add_off_cpu(x, e, event);
	if (reclaims)
		return interval_add(&x->reclaims, e->tid, INTERVAL_RECLAIM, event, e->start.ns,
			event_end_ns(e));
	if (e->source == SOURCE_NET && e->wait_ns)
		return interval_add(
			&x->sockets, e->tid, INTERVAL_SOCKET, event, e->start.ns, event_end_ns(e));
	return 0;
}

static int index_fill(
	const struct recording *rec, const struct wanted *w, struct attribution_index *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rec->event_count; i++)
		if (baseline_is_sane(&rec->events[i]))
			r = add_row(ret, w, &rec->events[i], i);
	if (r < 0)
		return r;
	make_disjoint(&ret->off_cpu);
	make_disjoint(&ret->by_thread);
	make_disjoint(&ret->by_process);
	make_disjoint(&ret->sockets);
	make_disjoint(&ret->reclaims);
	if (ret->request_count)
		qsort_r(ret->requests, ret->request_count, sizeof(*ret->requests),
			requests_by_device, (void *)rec->events);
	return 0;
}

int attribute_index(
	const struct recording *rec, const struct detection *d, struct attribution_index *ret)
{
	_cleanup_(wanted_done) struct wanted w = {0};
	int r;

	*ret = (struct attribution_index){0};
	if (!d->episode_count)
		return 0;
	r = wanted_init(&w, d);
	return r < 0 ? r : index_fill(rec, &w, ret);
}

int attribute_index_spans(const struct recording *rec, const struct span *spans, size_t n,
	struct attribution_index *ret)
{
	_cleanup_(wanted_done) struct wanted w = {0};
	int r;

	*ret = (struct attribution_index){0};
	if (!n)
		return 0;
	r = wanted_spans(&w, spans, n);
	return r < 0 ? r : index_fill(rec, &w, ret);
}

void attribute_index_done(struct attribution_index *x)
{
	free(x->sockets.items);
	free(x->reclaims.items);
	free(x->off_cpu.items);
	free(x->by_thread.items);
	free(x->by_process.items);
	free(x->requests);
	*x = (struct attribution_index){0};
}

size_t interval_seek(const struct interval_list *l, uint32_t key, int64_t ns)
{
	const struct interval *v = l->items;

	return LOWER_BOUND(i, l->count, v[i].key < key || (v[i].key == key && v[i].end_ns <= ns));
}

bool interval_has(const struct interval_list *l, uint32_t key)
{
	size_t at = interval_seek(l, key, INT64_MIN);

	return at < l->count && l->items[at].key == key;
}

int part_add(struct part_list *l, const struct part *p)
{
	if (ARRAY_RESERVE(l->items, l->room, l->count + 1, CORRELATE_ROWS_MAX) < 0)
		return -ENOMEM;
	l->items[l->count++] = *p;
	return 0;
}

int part_add_cpu(struct part_list *l, const struct interval *v, const struct event *row,
	size_t call, int64_t start_ns, int64_t end_ns)
{
	struct part p = {.call = call,
		.event = v->event,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.ns = (uint64_t)(end_ns - start_ns),
		.culprit_share = 1,
		.culprit_pid = row->peer_pid,
		.cause = CAUSE_RUN_QUEUE};

	if (row->peer_pid) {
		memcpy(p.culprit, row->peer_comm, sizeof(p.culprit));
		p.culprit[COMM_LEN - 1] = 0;
		if (v->kind == INTERVAL_PREEMPTED)
			p.cause = CAUSE_PREEMPTED;
	}
	return part_add(l, &p);
}

static int add_blocked(
	struct part_list *l, size_t call, size_t event, int64_t start_ns, int64_t end_ns)
{
	struct part p = {.call = call,
		.cause = CAUSE_BLOCK_IO,
		.event = event,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.ns = (uint64_t)(end_ns - start_ns)};

	return start_ns < end_ns ? part_add(l, &p) : 0;
}

/* [start, end) of the stay @stay in D state: requests of the thread that were under way, of its
 * process when the thread never made one itself; who slowed them is decided by culprit.c. The rest
 * is proved by the stay alone. */
static int add_disk_parts(struct part_list *l, const struct attribution_index *x, uint32_t tid,
	uint32_t pid, size_t call, size_t stay, int64_t start_ns, int64_t end_ns)
{
	bool own = interval_has(&x->by_thread, tid);
	const struct interval_list *requests = own ? &x->by_thread : &x->by_process;
	uint32_t key = own ? tid : pid;

	for (size_t i = interval_seek(requests, key, start_ns); i < requests->count; i++) {
		const struct interval *v = &requests->items[i];
		int64_t from = MAX(v->start_ns, start_ns), to = MIN(v->end_ns, end_ns);

		if (v->key != key || v->start_ns >= end_ns)
			break;
		if (add_blocked(l, call, stay, start_ns, from) < 0 ||
			add_blocked(l, call, v->event, from, to) < 0)
			return -ENOMEM;
		start_ns = to;
	}
	return add_blocked(l, call, stay, start_ns, end_ns);
}

void part_scale(struct part *parts, size_t n, uint64_t excess_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += parts[i].ns;
	if (sum <= excess_ns)
		return;
	for (size_t i = 0; i < n; i++)
		parts[i].ns = (uint64_t)((double)parts[i].ns * ((double)excess_ns / (double)sum));
}

int64_t attribute_tail_ns(
	const struct attribution_index *x, uint32_t tid, int64_t start_ns, int64_t end_ns)
{
	const struct interval *v = x->off_cpu.items;
	size_t first = interval_seek(&x->off_cpu, tid, start_ns);
	size_t next = LOWER_BOUND(
		i, x->off_cpu.count, v[i].key < tid || (v[i].key == tid && v[i].start_ns < end_ns));
	int64_t tail = end_ns;

	/* Whoever goes to sleep in a wait has found the GPU busy: what was before did not delay it. */
	while (next > first && v[next - 1].kind != INTERVAL_ASLEEP &&
		tail - MIN(v[next - 1].end_ns, end_ns) <= LEAVE_NS)
		tail = v[--next].start_ns;
	return MAX(tail, start_ns);
}

static int attribute_call(const struct recording *rec, const struct detection *d,
	const struct attribution_index *x, size_t call, struct part_list *l)
{
	const struct slow_call *c = &d->slow[call];
	const struct op_group *op = &d->ops.groups[c->group];
	bool is_wait = op_kind_is_gpu_wait(op->source, op->op);
	int64_t from = is_wait ? attribute_tail_ns(x, c->tid, c->start_ns, c->end_ns) : c->start_ns;
	size_t first = l->count;
	int r = 0;

	for (size_t i = interval_seek(&x->off_cpu, c->tid, c->start_ns); i < x->off_cpu.count;
		i++) {
		const struct interval *v = &x->off_cpu.items[i];
		int64_t start, end;

		if (v->key != c->tid || v->start_ns >= c->end_ns)
			break;
		start = MAX(v->start_ns, c->start_ns);
		end = MIN(v->end_ns, c->end_ns);
		if (v->kind == INTERVAL_ASLEEP)
			l->asleep_ns += (uint64_t)(end - start);
		else if (start < from)
			continue; /* in mid-wait */
		else if (v->kind == INTERVAL_DISK_WAIT)
			r = add_disk_parts(l, x, c->tid, op->pid, call, v->event, start, end);
		else
			r = part_add_cpu(l, v, &rec->events[v->event], call, start, end);
		if (r < 0)
			return r;
	}
	if (l->count > first)
		part_scale(l->items + first, l->count - first, c->excess_ns);
	return 0;
}

int attribute_episode(const struct recording *rec, const struct detection *d,
	const struct attribution_index *x, const struct slow_episode *s, struct part_list *ret)
{
	int r;

	ret->count = 0;
	ret->asleep_ns = 0;
	ret->has_switches = false;
	for (size_t i = s->first; i < s->first + s->count; i++) {
		r = attribute_call(rec, d, x, i, ret);
		if (r < 0)
			return r;
		ret->has_switches = ret->has_switches || interval_has(&x->off_cpu, d->slow[i].tid);
	}
	for (size_t i = 0; i < ret->count; i++)
		ret->items[i].ns = episode_wall_ns(s, ret->items[i].ns);
	return 0;
}

void part_list_done(struct part_list *l)
{
	free(l->items);
	*l = (struct part_list){0};
}
