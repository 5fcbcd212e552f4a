/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/macros.h"
#include "reduce.h"
#include "wire/op_kind.h"

#define GROUPS_MAX      8192
#define FAILED_PART     4 /* one in so many of a group's rows, if there are as many */
#define LONGEST_PART    8
#define ALLOCATION_MORE 3    /* times as many rows as of other ops */
#define ACCOUNTED_ROWS  4    /* of samples and stays: the account has them */
#define GRAPH_ROWS      2000 /* captures and launches are counted against each other; they pack well */
#define LEDGER_NS       ((int64_t)NS_PER_S)
#define LEDGER_FINE                                                                                \
	240 /* rows of a thread where several processes use the GPU: as many as account bars */

struct group {
	uint32_t pid;
	uint8_t source;
	uint16_t op;
	size_t count, first; /* in `order` */
};

struct selection {
	const struct event *events;
	size_t count;
	struct group groups[GROUPS_MAX];
	size_t group_count;
	uint32_t *group_of; /* by event */
	size_t *order;      /* events by group */
	bool *is_freed;     /* allocations, and the frees that end them */
};

static bool is_allocation(const struct event *e)
{
	return op_kind_is_cuda(e->source) && op_kind_line(e->source, e->op) == LEDGER_ALLOC;
}

static bool is_accounted(const struct group *g)
{
	return g->source == SOURCE_HOST && (g->op == HOST_CPU_SAMPLE || g->op == HOST_SHORT_STAYS);
}

static uint32_t group_get(struct selection *s, const struct event *e)
{
	size_t i = 0;

	while (i < s->group_count &&
		(s->groups[i].pid != e->pid || s->groups[i].source != e->source ||
			s->groups[i].op != e->op))
		i++;
	if (i == s->group_count && i < GROUPS_MAX)
		s->groups[s->group_count++] =
			(struct group){.pid = e->pid, .source = e->source, .op = e->op};
	return (uint32_t)MIN(i, (size_t)GROUPS_MAX - 1);
}

static void order_events(struct selection *s)
{
	size_t at = 0;

	for (size_t i = 0; i < s->count; i++) {
		s->group_of[i] = group_get(s, &s->events[i]);
		s->groups[s->group_of[i]].count++;
	}
	for (size_t g = 0; g < s->group_count; g++) {
		s->groups[g].first = at;
		at += s->groups[g].count;
		s->groups[g].count = 0;
	}
	for (size_t i = 0; i < s->count; i++) {
		struct group *g = &s->groups[s->group_of[i]];

		s->order[g->first + g->count++] = i;
	}
}

/* The allocation that a free ends has its pointer in arg1, the free in arg0. */
static int find_freed(struct selection *s)
{
	struct idmap held = IDMAP_INIT(1u << 20);
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->count; i++) {
		const struct event *e = &s->events[i];
		const struct event *made;

		if (!is_allocation(e))
			continue;
		made = idmap_remove(&held, e->arg0 ^ (uint64_t)e->pid << 48);
		if (made)
			s->is_freed[made - s->events] = s->is_freed[i] = true;
		else if (e->arg1)
			r = idmap_put(
				&held, e->arg1 ^ (uint64_t)e->pid << 48, (void *)(uintptr_t)e);
	}
	idmap_done(&held);
	return r < 0 ? -ENOMEM : 0;
}

static size_t limit_of(const struct group *g, const struct event *e, size_t limit)
{
	if (is_accounted(g))
		return ACCOUNTED_ROWS;
	if (g->source == SOURCE_GRAPH)
		return GRAPH_ROWS;
	return is_allocation(e) ? limit * ALLOCATION_MORE : limit;
}

static size_t total_of(const struct selection *s, size_t limit)
{
	size_t total = 0;

	for (size_t i = 0; i < s->group_count; i++)
		total +=
			s->groups[i].source == SOURCE_GRAPH
				? 0
				: MIN(s->groups[i].count,
					  limit_of(&s->groups[i],
						  &s->events[s->order[s->groups[i].first]], limit));
	return total;
}

static int by_length(const void *a, const void *b, void *arg)
{
	const struct event *events = arg, *x = &events[*(const size_t *)a],
			   *y = &events[*(const size_t *)b];

	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return x < y ? -1 : 1;
}

/* Of pairs that come and go some are kept whole: by their pointer. */
static void keep_allocations(
	const struct selection *s, const struct group *g, size_t limit, bool *keep)
{
	size_t parts = g->count / limit + 1;

	for (size_t i = 0; i < g->count; i++) {
		size_t at = s->order[g->first + i];
		const struct event *e = &s->events[at];
		uint64_t pointer = keep[at] ? 0 : e->arg1 ? e->arg1 : e->arg0;

		pointer = (pointer >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> 40;
		keep[at] = keep[at] || !s->is_freed[at] || pointer % parts == 0;
	}
}

static int keep_group(const struct selection *s, const struct group *g, size_t limit, bool *keep)
{
	_cleanup_free_ size_t *longest = calloc(g->count + 1, sizeof(*longest));
	size_t failed = 0, stride;

	if (!longest)
		return -ENOMEM;
	memcpy(longest, s->order + g->first, g->count * sizeof(*longest));
	qsort_r(longest, g->count, sizeof(*longest), by_length, (void *)(uintptr_t)s->events);
	for (size_t i = 0; i < MIN(g->count, limit / LONGEST_PART); i++)
		keep[longest[i]] = true;
	for (size_t i = 0; i < g->count && failed < limit / FAILED_PART; i++) {
		size_t at = s->order[g->first + i];

		if (s->events[at].ret && op_kind_is_gpu(s->events[at].source)) {
			keep[at] = true;
			failed++;
		}
	}
	if (is_allocation(&s->events[longest[0]])) {
		keep_allocations(s, g, limit, keep);
		return 0;
	}
	stride = g->count > limit ? 2 * g->count / limit : 1;
	for (size_t i = 0; i < g->count; i += stride)
		keep[s->order[g->first + i]] = true;
	keep[s->order[g->first + g->count - 1]] = true;
	return 0;
}

static int select_events(struct selection *s, bool *keep)
{
	size_t limit = 200;
	int r = 0;

	order_events(s);
	if (find_freed(s) < 0)
		return -ENOMEM;
	while (limit > 3 && total_of(s, limit) > REDUCE_EVENTS_MAX)
		limit -= limit / 8 + 1;
	for (size_t i = 0; r == 0 && i < s->group_count; i++) {
		const struct group *g = &s->groups[i];

		if (g->count)
			r = keep_group(
				s, g, limit_of(g, &s->events[s->order[g->first]], limit), keep);
	}
	return r;
}

int reduce_events(const struct event *events, size_t n, bool *keep)
{
	struct selection *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (!s)
		return -ENOMEM;
	s->events = events;
	s->count = n;
	s->group_of = calloc(n + 1, sizeof(*s->group_of));
	s->order = calloc(n + 1, sizeof(*s->order));
	s->is_freed = calloc(n + 1, sizeof(*s->is_freed));
	if (s->group_of && s->order && s->is_freed)
		r = select_events(s, keep);
	free(s->group_of);
	free(s->order);
	free(s->is_freed);
	free(s);
	return r;
}

static uint64_t in_calls(const struct ledger_row *r)
{
	return r->launches + r->waits + r->copies + r->allocs;
}

static void add_to(struct ledger_row *sum, const struct ledger_row *r)
{
	sum->dur_ns = (uint64_t)(ledger_end_ns(r) - sum->start.ns);
	sum->copy_bytes += r->copy_bytes;
	sum->launches += r->launches;
	sum->waits += r->waits;
	sum->copies += r->copies;
	sum->allocs += r->allocs;
	sum->stays += r->stays;
	sum->launches_off |= r->launches_off;
	for (int i = 0; i < LEDGER_LINES; i++)
		sum->ns[i] += r->ns[i];
}

static int by_start(const void *a, const void *b)
{
	const struct ledger_row *x = a, *y = b;

	return (x->start.ns > y->start.ns) - (x->start.ns < y->start.ns);
}

/* How long a row may be: with several processes on a GPU it matters when each used it. */
static int64_t row_length(const struct recording *rec)
{
	uint32_t pid = 0;

	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *r = &rec->ledger[i];

		if (!in_calls(r))
			continue;
		if (pid && r->pid != pid)
			return MIN((rec->ledger[rec->ledger_count - 1].start.ns -
					   rec->ledger[0].start.ns) /
					   LEDGER_FINE,
				LEDGER_NS);
		pid = r->pid;
	}
	return LEDGER_NS;
}

int reduce_ledger(const struct recording *rec, struct corpus *c)
{
	const int64_t longest = row_length(rec);
	struct idmap open = IDMAP_INIT(1u << 16); /* by thread: 1 + index of its last row */
	struct corpus_list *l = &c->tables[CORPUS_LEDGER];
	size_t kept = 0;

	for (size_t i = 0; i < rec->ledger_count; i++) {
		const struct ledger_row *r = &rec->ledger[i];
		uintptr_t at = (uintptr_t)idmap_get(&open, r->tid);
		struct ledger_row *sum = at ? (struct ledger_row *)l->rows + at - 1 : NULL;

		if (!sum || ledger_end_ns(r) - sum->start.ns > longest) {
			sum = corpus_add(c, CORPUS_LEDGER);
			if (!sum || idmap_put(&open, r->tid, (void *)(uintptr_t)l->count) < 0) {
				idmap_done(&open);
				return -ENOMEM;
			}
			*sum = (struct ledger_row){.start = r->start, .pid = r->pid, .tid = r->tid};
			sum->mark = MARK_TICK;
			memcpy(sum->comm, r->comm, COMM_LEN);
		}
		add_to(sum, r);
	}
	idmap_done(&open);
	for (size_t i = 0; i < l->count; i++) {
		struct ledger_row *rows = l->rows;

		if (in_calls(&rows[i]) || rows[i].copy_bytes)
			rows[kept++] = rows[i];
	}
	l->count = kept;
	if (kept)
		qsort(l->rows, kept, sizeof(struct ledger_row), by_start);
	return 0;
}
