/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/findings/leak_allocs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"

/* The process itself; it has a group, since it has calls. */
static const struct op_group *group_of(const struct detector_input *s, uint32_t pid)
{
	for (size_t i = 0; i < s->ops->count; i++)
		if (s->ops->groups[i].source == 0 && s->ops->groups[i].pid == pid)
			return &s->ops->groups[i];
	return NULL;
}

/* The memory of a process that ends is given back in one go: those frees say nothing about a leak,
 * and neither do the calls after them. */
static size_t before_teardown(const struct device_allocs *l, size_t from, size_t end)
{
	size_t at = end;

	while (at > from && l->entries[at - 1].kind == DEVICE_ALLOCS_FREE)
		at--;
	return at;
}

void leak_allocs_of(const struct detector_input *s, const struct device_allocs *l, size_t from,
	size_t end, struct leak_allocs *ret)
{
	const struct op_group *g = group_of(s, l->entries[from].pid);
	struct leak_allocs a = {.from = from,
		.end = from,
		.first_ns = l->entries[from].ns,
		.last_ns = l->entries[end - 1].ns};

	a.called_ns = g ? MIN(g->first_ns, a.first_ns) : a.first_ns;
	a.last_ns = g ? MAX(g->last_ns, a.last_ns) : a.last_ns;
	while (a.end < end && l->entries[a.end].kind != DEVICE_ALLOCS_FAIL)
		a.end++;
	a.ran_out = a.end < end;
	if (a.ran_out) {
		a.last_ns = l->entries[a.end].ns;
	} else if (end - before_teardown(l, from, end) > 1) {
		a.end = before_teardown(l, from, end);
		a.last_ns = l->entries[MIN(a.end, end - 1)].ns;
	}
	*ret = a;
}

static bool is_left(const struct device_allocs_entry *e, const struct leak_allocs *a)
{
	return e->kind == DEVICE_ALLOCS_ALLOC && !e->freed && e->ns >= a->since_ns &&
	       e->ns <= a->until_ns;
}

void leak_allocs_count(
	const struct device_allocs *l, int64_t since_ns, int64_t until_ns, struct leak_allocs *a)
{
	a->since_ns = since_ns;
	a->until_ns = until_ns;
	a->left = a->left_bytes = a->unknown = 0;
	for (size_t i = a->from; i < a->end; i++) {
		const struct device_allocs_entry *e = &l->entries[i];

		a->unknown += e->kind == DEVICE_ALLOCS_FREE && e->unknown;
		if (!is_left(e, a))
			continue;
		a->left++;
		a->left_bytes += e->bytes;
		a->newest = i;
	}
}

#define FAST_BYTES_S (10.0 * (1 << 20))
#define SOON_S       3600.0
#define LOSSY        0.9

void leak_allocs_judge(const struct detector_input *s, const struct leak_allocs *a,
	double bytes_per_s, int64_t free_bytes, double confidence, struct incident *inc,
	char full[LEAK_FULL_MAX])
{
	double until_s = free_bytes < 0 ? -1 : (double)free_bytes / bytes_per_s;
	bool is_high = a->ran_out || (until_s < 0 ? bytes_per_s >= FAST_BYTES_S : until_s < SOON_S);
	char each[TEXT_MAX], until[TEXT_MAX];

	incident_weigh(inc,
		s->completeness >= 0 && s->completeness < LOSSY ? SEVERITY_LOW
		: is_high                                       ? SEVERITY_HIGH
								: SEVERITY_MEDIUM,
		confidence, a->left, "allocations never freed");
	incident_complete(inc, s->completeness);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"memory leak: %s (pid %u) allocates %s at a time and does not free it", inc->comm,
		inc->pid, text_format_bytes(each, a->left_bytes / a->left));
	full[0] = 0;
	if (a->ran_out)
		snprintf(full, LEAK_FULL_MAX, "; it ran out of memory");
	else if (until_s >= 0 && until_s < 1e9)
		snprintf(full, LEAK_FULL_MAX, "; full in %s",
			text_format_duration(until, (uint64_t)(until_s * 1e9)));
}

static void put_sql(const struct event *row, const struct leak_allocs *a, struct incident *inc)
{
	_cleanup_buf_ struct buf freed = BUF_INIT(sizeof(inc->evidence_sql));

	device_allocs_freed_sql(row->source, &freed);
	incident_sql(inc,
		"SELECT id, timestamp, arg0 AS bytes, arg1 AS pointer, stack_hash FROM events a "
		"WHERE pid = %u AND source = %u AND op = %u AND ret_code = 0 AND timestamp BETWEEN "
		"%lld AND %lld AND NOT EXISTS (SELECT 1 FROM events f WHERE f.pid = a.pid AND "
		"f.source = a.source AND %s AND f.timestamp >= a.timestamp) ORDER BY timestamp",
		row->pid, row->source, row->op, (long long)a->since_ns, (long long)a->until_ns,
		buf_str(&freed));
}

int leak_allocs_put(const struct recording *rec, const struct device_allocs *l,
	const struct leak_allocs *a, struct incident *inc)
{
	_cleanup_free_ struct incident_stack *list = calloc(a->left + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	put_sql(&rec->events[l->entries[a->newest].event], a, inc);
	for (size_t i = a->from; i < a->end; i++) {
		const struct device_allocs_entry *e = &l->entries[i];
		uint64_t hash = rec->events[e->event].stack_hash;

		if (!is_left(e, a))
			continue;
		incident_evidence(inc, &rec->events[e->event]);
		if (hash && n < a->left)
			list[n++] = (struct incident_stack){hash, e->bytes, 1};
	}
	incident_stacks_merge(list, n, inc);
	return 0;
}
