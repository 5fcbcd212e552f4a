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
 * Severity: leak_allocs_judge(), by the last reading of its GPU. Confidence = share of growing windows x n/(n+8) x completeness, n the
 * allocations that were left. */
#include <errno.h>
#include <stdio.h>

#include "diagnose/findings/leak_allocs.h"
#include "base/text.h"

#define WINDOWS       16
#define WARM_WINDOWS  4
#define GROWING_SHARE 0.75
#define STILL_GROWING 0.5
#define LEAST_BYTES   (UINT64_C(16) << 20)
#define LEAST_SHARE   0.05
#define LEAST_ALLOCS  16
#define LEAST_SPAN_NS ((int64_t)NS_PER_S)
#define ALLOCS_HALF   8.0
#define PROCESSES_MAX 256 /* looked at */

struct growth {
	struct leak_allocs allocs; /* counted after the warm-up */
	int64_t warm_ns;
	uint64_t floor[WINDOWS];
	uint64_t bytes; /* growth after the warm-up */
	double growing; /* share of windows */
	double bytes_per_s;
};

static int64_t window_ns(const struct growth *g)
{
	return (g->allocs.last_ns - g->allocs.first_ns) / WINDOWS + 1;
}

static void fill_floors(const struct device_allocs *l, struct growth *g)
{
	const struct leak_allocs *a = &g->allocs;
	uint64_t balance = 0;
	size_t at = a->from;

	for (int w = 0; w < WINDOWS; w++) {
		int64_t end = a->first_ns + (w + 1) * window_ns(g);

		g->floor[w] = balance;
		for (; at < a->end && l->entries[at].ns < end; at++) {
			balance = l->entries[at].balance;
			g->floor[w] = MIN(g->floor[w], balance);
		}
	}
	g->warm_ns = a->first_ns + WARM_WINDOWS * window_ns(g);
}

static bool is_leak(const struct device_allocs *l, struct growth *g)
{
	uint64_t start = g->floor[WARM_WINDOWS], middle = g->floor[12], end = g->floor[15];
	struct leak_allocs *a = &g->allocs;
	double quarters = 0, last;
	int rising = 0;

	if (a->last_ns - a->first_ns < LEAST_SPAN_NS || end <= start || middle < start)
		return false;
	for (int w = WARM_WINDOWS + 1; w < WINDOWS; w++)
		rising += g->floor[w] > g->floor[w - 1];
	g->growing = (double)rising / (WINDOWS - WARM_WINDOWS - 1);
	g->bytes = end - start;
	g->bytes_per_s = (double)g->bytes / ((double)(a->last_ns - g->warm_ns) / 1e9);
	quarters = (double)(middle - start) / 8;              /* a window, in the middle half */
	last = end > middle ? (double)(end - middle) / 3 : 0; /* a window, in the last quarter */
	leak_allocs_count(l, g->warm_ns, a->last_ns, a);
	return g->growing >= GROWING_SHARE && last >= STILL_GROWING * quarters &&
	       g->bytes >= LEAST_BYTES && (double)g->bytes >= LEAST_SHARE * (double)start &&
	       a->left >= LEAST_ALLOCS && a->unknown < a->left;
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

static void describe(const struct detector_input *s, const struct device_allocs *l,
	const struct growth *g, struct incident *inc)
{
	const struct event *row = &s->rec->events[l->entries[g->allocs.newest].event];
	int64_t room = free_at(s->rec, row->device, g->allocs.last_ns);
	double n = (double)g->allocs.left;
	char bytes[TEXT_MAX], rate[TEXT_MAX], count[TEXT_PLURAL_MAX], full[LEAK_FULL_MAX];

	leak_allocs_judge(
		s, &g->allocs, g->bytes_per_s, room, g->growing * n / (n + ALLOCS_HALF), inc, full);
	snprintf(inc->summary, sizeof(inc->summary),
		"GPU memory of %s grows by %s/s: %s more after warm-up in %s never freed%s",
		row->comm, text_format_bytes(rate, (uint64_t)g->bytes_per_s),
		text_format_bytes(bytes, g->bytes),
		text_format_plural(count, g->allocs.left, "allocations"), full);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Allocations minus frees, by address. Memory in use, without temporary allocations, grew in %.0f %% of the windows after the first quarter of the time, and was still growing at the end. A growing framework pool looks the same: its contents are not traced.%s",
		100 * g->growing, room < 0 ? " Free memory is not recorded." : "");
}

static void add_steps(const struct growth *g, struct incident *inc)
{
	char bytes[TEXT_MAX];

	for (int w = WARM_WINDOWS; w < WINDOWS; w += w == 12 ? 3 : 4)
		incident_step(inc, g->allocs.first_ns + w * window_ns(g), 0, "CUDA", "balance",
			"%s allocated and not freed", text_format_bytes(bytes, g->floor[w]));
}

static int report(const struct detector_input *s, const struct device_allocs *l,
	const struct growth *g, struct incident_list *out)
{
	const struct event *row = &s->rec->events[l->entries[g->allocs.newest].event];
	struct incident *inc = incident_begin(out, PROBLEM_MEMORY_LEAK);

	incident_process(inc, row, g->warm_ns, g->allocs.last_ns);
	describe(s, l, g, inc);
	add_steps(g, inc);
	if (leak_allocs_put(s->rec, l, &g->allocs, inc) < 0)
		return -ENOMEM;
	incident_keep(out, inc);
	return 0;
}

int detect_leak(const struct detector_input *s, struct incident_list *out)
{
	const struct device_allocs *l = s->allocs;
	size_t end, seen = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->count && seen++ < PROCESSES_MAX; i = end) {
		struct growth g = {0};

		end = device_allocs_end(l, i);
		leak_allocs_of(s, l, i, end, &g.allocs);
		if (!device_allocs_is_usable(l, i, end) || g.allocs.end == i)
			continue;
		fill_floors(l, &g);
		if (is_leak(l, &g))
			r = report(s, l, &g, out);
	}
	return r;
}
