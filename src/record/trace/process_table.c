/* SPDX-License-Identifier: Apache-2.0 */
/* process_table.c - see process_table.h.
 *
 * Invariants:
 *  1. The map has the latest process of each pid; an older one hangs on it as `before`, has ended,
 *     and goes before it or with it.
 *  2. Every entry is in the list once, oldest first. A stage hears of each entry: enter, then any
 *     number of execs, then one exit, then one drop.
 *  3. An entry is dropped two ticks after its end: records of calls travel in other rings than those
 *     of exec and exit, and are taken out of them later. */
#include "record/trace/process_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/idmap.h"
#include "base/log.h"
#include "base/macros.h"
#include "record/discover/discover.h"

#define GRACE 2 /* ticks */

struct process_table {
	const char *root;
	struct idmap by_pid; /* -> struct process_entry */
	TAILQ_HEAD(process_entries, process_entry) all;
	size_t alive;
	bool is_full; /* and that was said */
	size_t stage_count;
	struct {
		const struct process_stage *calls;
		void *arg;
	} stages[PROCESS_TABLE_STAGES];
};

#define TELL(t, i, call, ...)                                                                      \
	((t)->stages[i].calls->call ? (t)->stages[i].calls->call((t)->stages[i].arg, __VA_ARGS__)  \
				    : (void)0)

int process_table_new(const char *root, struct process_table **ret)
{
	struct process_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->root = root;
	t->by_pid = IDMAP_INIT(PROCESS_TABLE_MAX);
	TAILQ_INIT(&t->all);
	*ret = t;
	return 0;
}

void process_table_add(struct process_table *t, const struct process_stage *stage, void *arg)
{
	assert(t->stage_count < PROCESS_TABLE_STAGES);
	t->stages[t->stage_count].calls = stage;
	t->stages[t->stage_count++].arg = arg;
}

static void entry_drop(struct process_table *t, struct process_entry *p)
{
	for (size_t i = 0; i < t->stage_count; i++)
		TELL(t, i, on_drop, p);
	TAILQ_REMOVE(&t->all, p, link);
	free(p);
}

void process_table_free(struct process_table *t)
{
	struct process_entry *p;

	while ((p = TAILQ_FIRST(&t->all)))
		entry_drop(t, p);
	idmap_done(&t->by_pid);
	free(t);
}

/* ---- who it is ---- */

/* When the process that has @pid now began; 0: there is none, or it is ending. */
static uint64_t read_start(const struct process_table *t, uint32_t pid)
{
	struct discover_process p;

	return discover_process_stat(t->root, pid, &p) == 0 && p.vsize_bytes ? p.start_ticks : 0;
}

/* Has the pid passed on from @p to the process that began at @start (0: ended before it could be
 * read) and did something at @at? */
static bool is_another(const struct process_entry *p, uint64_t start, wall_time at)
{
	if (start)
		return p->start_ticks != start;
	return p->ended && at.ns > p->end.ns;
}

struct process_entry *process_table_get(const struct process_table *t, uint32_t pid)
{
	return idmap_get(&t->by_pid, pid);
}

struct process_entry *process_table_at(const struct process_table *t, uint32_t pid, wall_time at)
{
	struct process_entry *p = process_table_get(t, pid);

	return p && p->before && at.ns < p->since.ns ? p->before : p;
}

bool process_table_has(const struct process_table *t, uint32_t pid, uint64_t start_ticks)
{
	const struct process_entry *p = process_table_get(t, pid);

	return p && !p->ended && (!start_ticks || p->start_ticks == start_ticks);
}

size_t process_table_alive(const struct process_table *t)
{
	return t->alive;
}

struct process_entry *process_table_next(const struct process_table *t, struct process_entry *p)
{
	return p ? TAILQ_NEXT(p, link) : TAILQ_FIRST(&t->all);
}

/* ---- life ---- */

static void entry_end(struct process_table *t, struct process_entry *p, wall_time at)
{
	p->ended = 1;
	p->end = at;
	t->alive--;
	for (size_t i = 0; i < t->stage_count; i++)
		TELL(t, i, on_exit, p);
}

/* @old (NULL: nobody) had the pid. Of its own predecessor nothing comes any more. */
static struct process_entry *entry_new(struct process_table *t, struct process_entry *old,
	uint32_t pid, uint64_t start, wall_time at)
{
	struct process_entry *p = calloc(1, sizeof(*p));

	if (!p || idmap_put(&t->by_pid, pid, p) < 0) {
		if (!t->is_full)
			log_warning(
				"more than %d traced processes: some are not shown, their rank and coverage are unknown",
				PROCESS_TABLE_MAX);
		t->is_full = true;
		free(p);
		return NULL;
	}
	p->pid = pid;
	p->start_ticks = start;
	p->since = at;
	TAILQ_INSERT_TAIL(&t->all, p, link);
	t->alive++;
	if (!old)
		return p;
	if (!old->ended)
		entry_end(t, old, at); /* nobody reported it */
	if (old->before)
		entry_drop(t, TAKE(old->before));
	p->before = old;
	return p;
}

static void tell_enter(struct process_table *t, struct process_entry *p, uint32_t parent,
	wall_time at, bool to_slow)
{
	for (size_t i = 0; i < t->stage_count; i++)
		if (t->stages[i].calls->is_slow == to_slow)
			TELL(t, i, on_enter, p, parent, at);
	p->is_complete |= to_slow;
}

/* The entry of the process that did something at @at, which is reported to those who want it soon. */
static struct process_entry *enter(
	struct process_table *t, uint32_t pid, uint32_t parent, uint64_t start, wall_time at)
{
	struct process_entry *p = process_table_get(t, pid);

	if (p && !is_another(p, start, at))
		return p;
	p = entry_new(t, p, pid, start, at);
	if (p)
		tell_enter(t, p, parent, at, false);
	return p;
}

static struct process_entry *enter_complete(
	struct process_table *t, uint32_t pid, uint32_t parent, uint64_t start, wall_time at)
{
	struct process_entry *p = enter(t, pid, parent, start, at);

	if (p && !p->is_complete && !p->ended)
		tell_enter(t, p, parent, at, true);
	return p;
}

struct process_entry *process_table_found(
	struct process_table *t, uint32_t pid, uint64_t start_ticks, wall_time at)
{
	uint64_t start = read_start(t, pid);

	return enter_complete(t, pid, 0, start ? start : start_ticks, at);
}

struct process_entry *process_table_fork(
	struct process_table *t, uint32_t parent, uint32_t child, wall_time at)
{
	return enter_complete(t, child, parent, read_start(t, child), at);
}

struct process_entry *process_table_enter(struct process_table *t, uint32_t pid, wall_time at)
{
	return enter(t, pid, 0, read_start(t, pid), at);
}

void process_table_complete(struct process_table *t, uint32_t pid, wall_time at)
{
	struct process_entry *p = process_table_get(t, pid);

	if (p && !p->is_complete && !p->ended)
		tell_enter(t, p, 0, at, true);
}

struct process_entry *process_table_exec(struct process_table *t, uint32_t pid, wall_time at)
{
	uint64_t start = read_start(t, pid);
	struct process_entry *p = process_table_get(t, pid);

	if (!p || is_another(p, start, at))
		return enter_complete(
			t, pid, 0, start, at); /* read after the exec, so all is known */
	if (p->ended)
		return p;
	for (size_t i = 0; i < t->stage_count; i++)
		TELL(t, i, on_exec, p, at);
	p->is_complete = true;
	return p;
}

void process_table_exit(struct process_table *t, uint32_t pid, wall_time at)
{
	struct process_entry *p = process_table_at(t, pid, at), unknown = {.pid = pid, .ended = 1};

	if (p && !p->ended)
		entry_end(t, p, at);
	for (size_t i = 0; !p && i < t->stage_count; i++)
		TELL(t, i, on_exit, &unknown);
}

struct process_entry *process_table_called(struct process_table *t, uint32_t pid, wall_time at)
{
	struct process_entry *p = process_table_at(t, pid, at);

	if (p)
		return p;
	p = process_table_enter(t, pid, at);
	if (p && !p->start_ticks)
		entry_end(t, p, at); /* nobody will tell any more */
	return p;
}

void process_table_tick(struct process_table *t)
{
	struct process_entry *p, *next;

	for (p = TAILQ_FIRST(&t->all); p; p = next) {
		struct process_entry *latest;

		next = TAILQ_NEXT(p, link);
		if (!p->ended || p->ended++ < GRACE)
			continue;
		latest = process_table_get(t, p->pid);
		if (latest == p)
			idmap_remove(&t->by_pid, p->pid);
		else
			latest->before = NULL;
		entry_drop(t, p);
		t->is_full = false;
	}
}

/* See process_table.h. Rows are found by looking at all: there are a few dozen. */

void live_ops_clear(struct live_ops *t)
{
	t->count = 0;
}

static struct tracer_op *row_of(struct live_ops *t, unsigned source, unsigned op, bool nested)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].source == source && t->rows[i].op == op &&
			t->rows[i].nested == nested)
			return &t->rows[i];
	if (t->count == LIVE_OPS_MAX)
		return NULL;
	t->rows[t->count] =
		(struct tracer_op){.source = (uint8_t)source, .op = (uint16_t)op, .nested = nested};
	return &t->rows[t->count++];
}

void live_ops_add(
	struct live_ops *t, unsigned source, unsigned op, bool nested, const struct sketch *calls)
{
	struct tracer_op *row = row_of(t, source, op, nested);

	if (!row)
		return;
	sketch_merge(&row->sketch, calls);
	row->count = row->sketch.count;
}

void live_ops_count(struct live_ops *t, unsigned source, unsigned op, uint64_t count)
{
	struct tracer_op *row = row_of(t, source, op, false);

	if (row)
		row->count = count;
}

static int compare(const void *a, const void *b)
{
	const struct tracer_op *x = a, *y = b;

	if (x->nested != y->nested)
		return x->nested - y->nested;
	return x->sketch.sum < y->sketch.sum ? 1 : x->sketch.sum > y->sketch.sum ? -1 : 0;
}

void live_ops_sort(struct live_ops *t)
{
	qsort(t->rows, t->count, sizeof(t->rows[0]), compare);
}
