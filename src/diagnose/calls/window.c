/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - see window.h. The windows are looked at as pauses are (attribute.h), so the same
 * overlaps count, by the same rules. Time inside CUDA calls is counted apart: a thread may be
 * preempted inside a call, so call_ns and the rest may overlap and are never added up. Sleeps are
 * recorded only where they follow a wait for the GPU: time without a row may have been slept as
 * well as computed, and is called neither. */
#include "diagnose/calls/window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/calls/attribute.h"
#include "diagnose/calls/culprit.h"
#include "base/search.h"
#include "base/text.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define TOLD_SHARE 0.25 /* less than that of the time is not the reason for it */

static int attribute(const struct recording *rec, uint32_t pid, const struct span *spans, size_t n,
	struct incident *inc)
{
	_cleanup_(attribute_index_done) struct attribution_index x = {0};
	_cleanup_(part_list_done) struct part_list parts = {0};
	int r = attribute_index_spans(rec, spans, n, &x);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = attribute_pause(rec, &x, &spans[i], i, &parts);
	if (r == 0)
		r = culprit_blame_disk(rec, &x, &parts, pid);
	return r == 0 ? culprit_sum(rec, &parts, inc) : r;
}

static uint64_t *use_of(struct window_use *u, enum cause cause)
{
	switch (cause) {
	case CAUSE_PREEMPTED:
	case CAUSE_RUN_QUEUE: return &u->cpu_ns;
	case CAUSE_BLOCK_IO: return &u->disk_ns;
	case CAUSE_NETWORK: return &u->network_ns;
	case CAUSE_ASLEEP: return &u->asleep_ns;
	default: return NULL;
	}
}

static void sum_causes(const struct incident *inc, struct window_use *u)
{
	for (int i = 0; i < inc->cause_count; i++) {
		uint64_t *use = use_of(u, inc->causes[i].cause);

		if (use)
			*use += inc->causes[i].ns;
	}
	for (int i = 0; i < inc->cause_count && !u->lead.ns; i++) {
		const uint64_t *use = use_of(u, inc->causes[i].cause);

		if (use == (u->disk_ns >= u->cpu_ns ? &u->disk_ns : &u->cpu_ns))
			u->lead = inc->causes[i];
	}
}

static uint64_t overlap_ns(const struct window *w, size_t n, const struct event *e)
{
	int64_t end = event_end_ns(e);
	size_t at = LOWER_BOUND(i, n, w[i].end_ns <= e->start.ns);
	uint64_t sum = 0;

	for (; at < n && w[at].start_ns < end; at++)
		if (w[at].tid == e->tid)
			sum += (uint64_t)(MIN(end, w[at].end_ns) -
					  MAX(e->start.ns, w[at].start_ns));
	return sum;
}

static void sum_calls(const struct recording *rec, uint32_t pid, const struct window *w, size_t n,
	struct window_use *u)
{
	uint64_t by_op[2][WIRE_OP_MAX] = {0}, best = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		uint64_t ns;

		if (e->pid != pid || !op_kind_is_cuda(e->source) || e->flags & WIRE_NESTED ||
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

int window_examine(const struct recording *rec, uint32_t pid, const struct window *windows,
	size_t n, struct window_use *ret)
{
	_cleanup_free_ struct span *spans = calloc(n + 1, sizeof(*spans));
	_cleanup_free_ struct incident *inc = calloc(1, sizeof(*inc));
	int r;

	*ret = (struct window_use){0};
	if (!spans || !inc)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = (uint64_t)(windows[i].end_ns - windows[i].start_ns);

		spans[i] = (struct span){.start_ns = windows[i].start_ns,
			.end_ns = windows[i].end_ns,
			.excess_ns = ns,
			.tid = windows[i].tid,
			.pid = pid};
		ret->total_ns += ns;
	}
	if (!n)
		return 0;
	inc->pid = pid;
	inc->excess_ns = ret->total_ns;
	inc->slow_calls = n;
	r = attribute(rec, pid, spans, n, inc);
	if (r < 0)
		return r;
	sum_causes(inc, ret);
	sum_calls(rec, pid, windows, n, ret);
	return 0;
}

/* The largest use, if it is enough to be named; NULL: none is. */
static const char *largest_use(const struct window_use *u, uint64_t *ret_ns)
{
	const struct {
		uint64_t ns;
		const char *text;
	} uses[] = {{u->disk_ns, "blocked on disk I/O"}, {u->cpu_ns, "waiting for a CPU"},
		{u->network_ns, "waiting for the network"}, {u->asleep_ns, "asleep"}};
	const char *text = NULL;

	*ret_ns = 0;
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++)
		if (uses[i].ns > *ret_ns &&
			(double)uses[i].ns >= TOLD_SHARE * (double)u->total_ns) {
			*ret_ns = uses[i].ns;
			text = uses[i].text;
		}
	return text;
}

void window_describe(const struct window_use *u, uint32_t pid, char *out, size_t size)
{
	double all = (double)MAX(u->total_ns, UINT64_C(1));
	char share[TEXT_MAX], op[32], who[64] = "";
	uint64_t ns;
	const char *text = largest_use(u, &ns);

	if (text && ns >= u->call_ns / 2) {
		if ((ns == u->disk_ns || ns == u->cpu_ns) && u->lead.culprit_pid &&
			u->lead.culprit_pid != pid)
			snprintf(who, sizeof(who), "%s %.15s (pid %u)",
				ns == u->disk_ns ? " beside" : " used by", u->lead.culprit,
				u->lead.culprit_pid);
		snprintf(out, size, "its thread was %s%s for %s of that", text, who,
			text_format_percent(share, (double)ns / all));
	} else if ((double)u->call_ns >= TOLD_SHARE * all) {
		snprintf(out, size, "its thread was in %s for %s of that",
			wire_op_name(u->call_source, u->call_op, op),
			text_format_percent(share, (double)u->call_ns / all));
	} else {
		snprintf(out, size,
			"its thread computed or slept outside CUDA calls; no delay by CPU or disk was recorded");
	}
}
