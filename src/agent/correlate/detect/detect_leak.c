/* SPDX-License-Identifier: Apache-2.0 */
/* detect_leak.c - device memory of a process that only ever grows.
 *
 * The time from the process's first allocation to its last call (or to its first failed allocation:
 * a full memory cannot grow) is cut into 16 windows; the least balance of each is what stays after
 * its temporary allocations are gone. The first quarter is warm-up. It is a leak if, after that,
 *   at least 3 of 4 windows end higher than the one before,
 *   the last quarter grew at least half as much as the middle two did on average (a pool that
 *   reaches its level stops growing), and
 *   all together grew by at least 16 MiB, by 5 % of what was there, and in 16 allocations.
 * Frees of memory allocated before the recording are no growth, but a process that makes as many of
 * them as it leaves allocations is replacing memory, not leaking it: nothing is said.
 *
 * HIGH: it ran out of memory, will within an hour (by the last reading of its GPU), or grows by
 * 10 MiB/s or more. Else MEDIUM; LOW if more than 10 % of the calls were lost, since lost frees
 * look like a leak. Confidence = share of growing windows x n/(n+8) x completeness, n the
 * allocations that were left. */
#include <errno.h>
#include <stdio.h>

#include "agent/correlate/engine/detector.h"
#include "agent/correlate/engine/device_allocs.h"
#include "agent/correlate/report/incident_stacks.h"
#include "base/text.h"

#define WINDOWS       16
#define WARM_WINDOWS  4
#define GROWING_SHARE 0.75
#define STILL_GROWING 0.5
#define LEAST_BYTES   (UINT64_C(16) << 20)
#define LEAST_SHARE   0.05
#define LEAST_ALLOCS  16
#define LEAST_SPAN_NS ((int64_t)NS_PER_S)
#define FAST_BYTES_S  (10.0 * (1 << 20))
#define SOON_S        3600.0
#define LOSSY         0.9
#define ALLOCS_HALF   8.0
#define PROCESSES_MAX 256 /* looked at */

struct growth {
	size_t from, end; /* entries, up to the first failure */
	int64_t first_ns, last_ns, warm_ns;
	uint64_t floor[WINDOWS];
	bool ran_out;
	uint64_t left, left_bytes; /* allocations after the warm-up that were not freed */
	uint64_t bytes;            /* growth after the warm-up */
	double growing;            /* share of windows */
	double bytes_per_s;
	size_t biggest; /* last unfreed allocation */
};

static void fill_floors(const struct device_allocs *l, struct growth *g)
{
	int64_t width = (g->last_ns - g->first_ns) / WINDOWS + 1;
	uint64_t balance = 0;
	size_t at = g->from;

	for (int w = 0; w < WINDOWS; w++) {
		int64_t end = g->first_ns + (w + 1) * width;

		g->floor[w] = balance;
		for (; at < g->end && l->entries[at].ns < end; at++) {
			balance = l->entries[at].balance;
			g->floor[w] = MIN(g->floor[w], balance);
		}
	}
	g->warm_ns = g->first_ns + WARM_WINDOWS * width;
}

static void count_left(const struct device_allocs *l, struct growth *g, uint64_t *ret_unknown)
{
	*ret_unknown = 0;
	for (size_t i = g->from; i < g->end; i++) {
		const struct device_allocs_entry *e = &l->entries[i];

		*ret_unknown += e->kind == DEVICE_ALLOCS_FREE && e->unknown;
		if (e->kind != DEVICE_ALLOCS_ALLOC || e->freed || e->ns < g->warm_ns)
			continue;
		g->left++;
		g->left_bytes += e->bytes;
		g->biggest = i;
	}
}

static bool is_leak(const struct device_allocs *l, struct growth *g)
{
	uint64_t start = g->floor[WARM_WINDOWS], middle = g->floor[12], end = g->floor[15], unknown;
	double quarters = 0, last;
	int rising = 0;

	if (g->last_ns - g->first_ns < LEAST_SPAN_NS || end <= start || middle < start)
		return false;
	for (int w = WARM_WINDOWS + 1; w < WINDOWS; w++)
		rising += g->floor[w] > g->floor[w - 1];
	g->growing = (double)rising / (WINDOWS - WARM_WINDOWS - 1);
	g->bytes = end - start;
	g->bytes_per_s = (double)g->bytes / ((double)(g->last_ns - g->warm_ns) / 1e9);
	quarters = (double)(middle - start) / 8;              /* a window, in the middle half */
	last = end > middle ? (double)(end - middle) / 3 : 0; /* a window, in the last quarter */
	count_left(l, g, &unknown);
	return g->growing >= GROWING_SHARE && last >= STILL_GROWING * quarters &&
	       g->bytes >= LEAST_BYTES && (double)g->bytes >= LEAST_SHARE * (double)start &&
	       g->left >= LEAST_ALLOCS && unknown < g->left;
}

/* Memory that was free on the GPU at the last reading of the time in question; -1: not known. */
static int64_t free_at(const struct recording *rec, int32_t device, int64_t ns)
{
	int64_t bytes = -1;

	for (size_t i = 0; i < rec->gpu_count && rec->gpus[i].time.ns <= ns; i++)
		if (rec->gpus[i].index == MAX(device, 0) && rec->gpus[i].mem_free_bytes >= 0)
			bytes = rec->gpus[i].mem_free_bytes;
	return bytes;
}

static int add_stacks(const struct recording *rec, const struct device_allocs *l,
	const struct growth *g, struct incident *inc)
{
	_cleanup_free_ struct incident_stack *list = calloc(g->left + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = g->from; i < g->end; i++) {
		const struct device_allocs_entry *e = &l->entries[i];
		uint64_t hash = rec->events[e->event].stack_hash;

		if (e->kind != DEVICE_ALLOCS_ALLOC || e->freed || e->ns < g->warm_ns)
			continue;
		incident_evidence(inc, &rec->events[e->event]);
		if (hash && n < g->left)
			list[n++] = (struct incident_stack){hash, e->bytes, 1};
	}
	incident_stacks_merge(list, n, inc);
	return 0;
}

static void describe(const struct detector_input *s, const struct device_allocs *l,
	const struct growth *g, struct incident *inc)
{
	const struct event *row = &s->rec->events[l->entries[g->biggest].event];
	int64_t room = free_at(s->rec, row->device, g->last_ns);
	double until_s = room < 0 ? -1 : (double)room / g->bytes_per_s;
	char bytes[TEXT_MAX], rate[TEXT_MAX], each[TEXT_MAX], n[TEXT_PLURAL_MAX], until[TEXT_MAX];
	char full[64] = "";

	text_format_bytes(rate, (uint64_t)g->bytes_per_s);
	if (g->ran_out)
		snprintf(full, sizeof(full), "; it ran out of memory");
	else if (until_s >= 0 && until_s < 1e9)
		snprintf(full, sizeof(full), "; full in %s",
			text_format_duration(until, (uint64_t)(until_s * 1e9)));
	snprintf(inc->summary, sizeof(inc->summary),
		"GPU memory of %s grows by %s/s: %s more after warm-up in %s never freed%s",
		row->comm, rate, text_format_bytes(bytes, g->bytes),
		text_format_plural(n, g->left, "allocations"), full);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"memory leak: %s (pid %u) allocates %s at a time and does not free it", row->comm,
		row->pid, text_format_bytes(each, g->left_bytes / g->left));
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Allocations minus frees, by address. Memory in use, without temporary allocations, grew in %.0f %% of the windows after the first quarter of the time, and was still growing at the end. A growing framework pool looks the same: its contents are not traced.%s",
		100 * g->growing, room < 0 ? " Free memory is not recorded." : "");
	if (g->ran_out || g->bytes_per_s >= FAST_BYTES_S || (until_s >= 0 && until_s < SOON_S))
		inc->severity = SEVERITY_HIGH;
	else
		inc->severity = SEVERITY_MEDIUM;
	if (s->completeness >= 0 && s->completeness < LOSSY)
		inc->severity = SEVERITY_LOW;
	inc->confidence = g->growing * (double)g->left / ((double)g->left + ALLOCS_HALF) *
			  completeness_weight(s->completeness);
}

static void add_steps(const struct growth *g, struct incident *inc)
{
	int64_t width = (g->last_ns - g->first_ns) / WINDOWS + 1;
	char bytes[TEXT_MAX];

	for (int w = WARM_WINDOWS; w < WINDOWS; w += w == 12 ? 3 : 4)
		incident_step(inc, g->first_ns + w * width, 0, "CUDA", "balance",
			"%s allocated and not freed", text_format_bytes(bytes, g->floor[w]));
}

static void sql_of(const struct event *row, const struct growth *g, struct incident *inc)
{
	_cleanup_buf_ struct buf freed = BUF_INIT(sizeof(inc->evidence_sql));

	device_allocs_freed_sql(row->source, &freed);
	incident_sql(inc,
		"SELECT id, timestamp, arg0 AS bytes, arg1 AS pointer, stack_hash FROM events a "
		"WHERE pid = %u AND source = %u AND op = %u AND ret_code = 0 AND timestamp BETWEEN "
		"%lld AND %lld AND NOT EXISTS (SELECT 1 FROM events f WHERE f.pid = a.pid AND "
		"f.source = a.source AND %s AND f.timestamp >= a.timestamp) ORDER BY timestamp",
		row->pid, row->source, row->op, (long long)g->warm_ns, (long long)g->last_ns,
		buf_str(&freed));
}

static int report(const struct detector_input *s, const struct device_allocs *l,
	const struct growth *g, struct incident_list *out)
{
	const struct event *row = &s->rec->events[l->entries[g->biggest].event];
	struct incident *inc = incident_begin(out, PROBLEM_MEMORY_LEAK);

	if (!inc)
		return 0;
	incident_process(inc, row, g->warm_ns, g->last_ns);
	inc->count = g->left;
	inc->unit = "allocations never freed";
	inc->completeness = s->completeness;
	describe(s, l, g, inc);
	add_steps(g, inc);
	sql_of(row, g, inc);
	if (add_stacks(s->rec, l, g, inc) < 0)
		return -ENOMEM;
	incident_keep(out, inc);
	return 0;
}

/* When the process made its last call of any kind. */
static int64_t last_call_ns(const struct detector_input *s, uint32_t pid, int64_t least)
{
	for (size_t i = 0; i < s->slow->ops.count; i++) {
		const struct op_group *g = &s->slow->ops.groups[i];

		if (g->source == 0 && g->pid == pid)
			return MAX(least, g->last_ns);
	}
	return least;
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

int detect_leak(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(device_allocs_done) struct device_allocs l = {0};
	size_t end, seen = 0;
	int r = device_allocs_run(s->rec, &l);

	for (size_t i = 0; r == 0 && i < l.count && seen++ < PROCESSES_MAX; i = end) {
		struct growth g = {.from = i, .first_ns = l.entries[i].ns};

		end = device_allocs_end(&l, i);
		for (g.end = i; g.end < end && l.entries[g.end].kind != DEVICE_ALLOCS_FAIL;)
			g.end++;
		g.ran_out = g.end < end;
		if (!device_allocs_is_usable(&l, i, end) || g.end == i)
			continue;
		g.last_ns = g.ran_out ? l.entries[g.end].ns
				      : last_call_ns(s, l.entries[i].pid, l.entries[end - 1].ns);
		if (!g.ran_out && end - before_teardown(&l, i, end) > 1) {
			g.end = before_teardown(&l, i, end);
			g.last_ns = l.entries[MIN(g.end, end - 1)].ns;
		}
		fill_floors(&l, &g);
		if (is_leak(&l, &g))
			r = report(s, &l, &g, out);
	}
	return r;
}
