/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - see window.h. The windows are handed to attribute.c as if they were slow calls, so the
 * same overlaps count, by the same rules. Time inside CUDA calls is counted apart: a thread may be
 * preempted inside a call, so cpu_ns and call_ns may overlap and are never added up. */
#include "agent/correlate/window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/correlate/attribute.h"
#include "agent/correlate/culprit.h"
#include "base/text.h"
#include "wire/names.h"

#define TOLD_SHARE 0.25 /* less than that of the time is not the reason for it */

static int attribute(const struct recording *rec, uint32_t pid, struct slow_call *slow, size_t n,
	struct incident *inc)
{
	struct op_group group = {.pid = pid};
	struct stretch all = {.count = n};
	struct detection d = {.ops = {.groups = &group, .count = 1},
		.slow = slow,
		.slow_count = n,
		.stretches = &all,
		.stretch_count = 1};
	_cleanup_(attribute_index_done) struct attribution_index x = {0};
	_cleanup_(part_list_done) struct part_list parts = {0};
	int r = attribute_index(rec, &d, &x);

	if (r == 0)
		r = attribute_stretch(rec, &d, &x, &all, &parts);
	if (r == 0)
		r = culprit_blame_disk(rec, &x, &parts, pid);
	return r == 0 ? culprit_sum(&parts, inc) : r;
}

static void sum_causes(const struct incident *inc, struct window_use *u)
{
	uint64_t largest;

	for (int i = 0; i < inc->cause_count; i++) {
		const struct incident_cause *c = &inc->causes[i];

		if (c->cause == CAUSE_UNEXPLAINED)
			continue;
		*(c->cause == CAUSE_BLOCK_IO ? &u->disk_ns : &u->cpu_ns) += c->ns;
	}
	largest = MAX(u->cpu_ns, u->disk_ns);
	for (int i = 0; i < inc->cause_count && largest && !u->lead.ns; i++)
		if (inc->causes[i].cause != CAUSE_UNEXPLAINED &&
			(inc->causes[i].cause == CAUSE_BLOCK_IO) == (largest == u->disk_ns))
			u->lead = inc->causes[i];
}

static uint64_t overlap_ns(const struct window *w, size_t n, const struct event *e)
{
	int64_t end = event_end_ns(e);
	size_t low = 0, high = n;
	uint64_t sum = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w[middle].end_ns <= e->start.ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n && w[low].start_ns < end; low++)
		if (w[low].tid == e->tid)
			sum += (uint64_t)(MIN(end, w[low].end_ns) -
					  MAX(e->start.ns, w[low].start_ns));
	return sum;
}

static void sum_calls(const struct recording *rec, uint32_t pid, const struct window *w, size_t n,
	struct window_use *u)
{
	uint64_t by_op[2][WIRE_OP_MAX] = {0}, best = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		uint64_t ns;

		if (e->pid != pid || !baseline_is_call(e->source) || e->flags & WIRE_NESTED ||
			e->op >= WIRE_OP_MAX || !baseline_is_sane(e))
			continue;
		ns = overlap_ns(w, n, e);
		u->call_ns += ns;
		by_op[e->source == SOURCE_DRIVER][e->op] += ns;
		if (by_op[e->source == SOURCE_DRIVER][e->op] > best) {
			best = by_op[e->source == SOURCE_DRIVER][e->op];
			u->call_source = e->source;
			u->call_op = e->op;
		}
	}
	u->call_ns = MIN(u->call_ns, u->total_ns);
}

int window_look(const struct recording *rec, uint32_t pid, const struct window *windows, size_t n,
	struct window_use *ret)
{
	_cleanup_free_ struct slow_call *slow = calloc(n + 1, sizeof(*slow));
	_cleanup_free_ struct incident *inc = calloc(1, sizeof(*inc));
	int r;

	*ret = (struct window_use){0};
	if (!slow || !inc)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = (uint64_t)(windows[i].end_ns - windows[i].start_ns);

		slow[i] = (struct slow_call){.start_ns = windows[i].start_ns,
			.end_ns = windows[i].end_ns,
			.excess_ns = ns,
			.tid = windows[i].tid};
		ret->total_ns += ns;
	}
	if (!n)
		return 0;
	inc->pid = pid;
	inc->excess_ns = ret->total_ns;
	inc->slow_calls = n;
	r = attribute(rec, pid, slow, n, inc);
	if (r < 0)
		return r;
	sum_causes(inc, ret);
	sum_calls(rec, pid, windows, n, ret);
	return 0;
}

void window_tell(const struct window_use *u, uint32_t pid, char *out, size_t size)
{
	double all = (double)MAX(u->total_ns, UINT64_C(1));
	const char *layer = u->disk_ns >= u->cpu_ns ? "blocked on the disk" : "kept from the CPU";
	uint64_t host_ns = MAX(u->disk_ns, u->cpu_ns);
	char share[TEXT_MAX], op[32], who[64] = "";

	if ((double)host_ns >= TOLD_SHARE * all) {
		if (u->lead.culprit_pid && u->lead.culprit_pid != pid)
			snprintf(who, sizeof(who), "%s %.15s (pid %u)",
				u->disk_ns >= u->cpu_ns ? " beside" : " by", u->lead.culprit,
				u->lead.culprit_pid);
		snprintf(out, size, "its thread was %s%s for %s of that", layer, who,
			text_format_percent(share, (double)host_ns / all));
	} else if ((double)u->call_ns >= TOLD_SHARE * all) {
		snprintf(out, size, "its thread was in %s for %s of that",
			wire_op_name(u->call_source, u->call_op, op),
			text_format_percent(share, (double)u->call_ns / all));
	} else {
		snprintf(out, size,
			"its thread computed or slept outside CUDA calls, no delay by the CPU or "
			"the disk was recorded");
	}
}
