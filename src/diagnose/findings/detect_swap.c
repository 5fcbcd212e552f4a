/* SPDX-License-Identifier: Apache-2.0 */
/* detect_swap.c - a step that loads a model: many times the ordinary bytes go to the GPU in it.
 *
 * A step is one if it takes at least twice the ordinary time, copies at least 64 MiB to the GPU and
 * 8 times as much as the median step, and if these copies and the pauses before them (reading,
 * unpacking; not those for writes or the network) make up half of the time that it took longer. A
 * job that copies as much in every step is a matter of its batches. Copies are counted from stored
 * rows: large ones are stored because they are slower than usual; what is missing can only hide a
 * swap.
 *
 * Severity by the share of the process's time: HIGH from 25 %, MEDIUM from 2 %, else LOW (one swap
 * in a day is nothing to fix). Confidence = share of the excess found x n / (n + 1) x steps'
 * confidence. */
#include "diagnose/findings/detect_swap.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/units/period.h"
#include "diagnose/sentences/evidence.h"
#include "base/text.h"
#include "stat/robust.h"
#include "wire/names.h"

#define STEP_RATIO   2
#define LEAST_BYTES  (UINT64_C(64) << 20)
#define BYTES_RATIO  8
#define FOUND_SHARE  0.5
#define MEDIUM_SHARE 0.02
#define HIGH_SHARE   0.25
#define KIND_HTOD    1
#define BYTES_MOST   (UINT64_C(1) << 50) /* of one copy: sums cannot overflow */

struct load { /* what one step moves */
	uint64_t copied, copy_ns, read, pause_ns;
	size_t largest; /* row of its largest copy */
	uint64_t largest_bytes;
};

struct swaps {
	size_t *steps; /* that load */
	size_t count;
	uint64_t excess_ns, found_ns, copied, read;
};

static bool is_load(const struct event *e)
{
	if ((e->flags & WIRE_NESTED) || e->ret || !baseline_is_sane(e))
		return false;
	if (e->source == SOURCE_CUDA)
		return (e->op == CUDA_MEMCPY || e->op == CUDA_MEMCPY_ASYNC) && e->arg1 == KIND_HTOD;
	return e->source == SOURCE_DRIVER &&
	       (e->op == DRIVER_MEMCPY_HTOD || e->op == DRIVER_MEMCPY_HTOD_ASYNC);
}

/* @all has a place for each step of the table. */
static struct load *load_at(const struct step_table *t, struct load *all, uint32_t pid, int64_t ns)
{
	const struct step_list *l = steps_of(t, pid);
	size_t at = l ? step_at(l, ns) : SIZE_MAX;

	return at == SIZE_MAX ? NULL : &all[l->items - t->steps + (ptrdiff_t)at];
}

static void loads_count(const struct recording *rec, const struct step_table *t,
	const struct gap_list *gaps, struct load *all)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		uint64_t bytes = MIN(e->arg0, BYTES_MOST);
		struct load *l = is_load(e) ? load_at(t, all, e->pid, e->start.ns) : NULL;

		if (!l)
			continue;
		l->copied += bytes;
		l->copy_ns += e->dur_ns;
		if (bytes > l->largest_bytes) {
			l->largest_bytes = bytes;
			l->largest = i;
		}
	}
	for (size_t i = 0; i < gaps->count; i++) {
		const struct gap *g = &gaps->items[i];
		struct load *l = load_at(t, all, g->span.pid, g->span.end_ns);

		if (!l || g->idle == IDLE_NETWORK || g->idle == IDLE_WRITE)
			continue;
		l->read += g->read;
		l->pause_ns += g->span.excess_ns;
	}
}

static bool is_swap(const struct step_list *steps, size_t i, const struct load *l, uint64_t median)
{
	uint64_t dur = (uint64_t)(steps->items[i].end_ns - steps->items[i].start_ns);

	return dur >= STEP_RATIO * steps->ordinary_ns && l->copied >= LEAST_BYTES &&
	       l->copied / BYTES_RATIO >= median &&
	       (double)(l->copy_ns + l->pause_ns) >=
		       FOUND_SHARE * (double)(dur - steps->ordinary_ns);
}

/* Bytes that an ordinary step copies. Not every copy is a row: of those that are, the median of the
 * steps that have any; of all, half the mean by the aggregates, which know no direction. */
static uint64_t usual_bytes(const struct recording *rec, const struct step_list *steps,
	const struct load *loads, uint64_t *scratch)
{
	double all = 0;
	size_t n = 0;

	for (size_t i = 0; i < steps->count; i++)
		if (loads[i].copied)
			scratch[n++] = loads[i].copied;
	robust_sort(scratch, n);
	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];
		const struct event as = {
			.source = a->source, .op = a->op, .flags = a->flags, .arg1 = KIND_HTOD};

		if (a->pid == steps->pid && is_load(&as))
			all += (double)a->sum_arg0;
	}
	return MAX(robust_median(scratch, n),
		(uint64_t)MIN(all / (double)steps->count / 2, (double)BYTES_MOST));
}

static int swaps_find(const struct recording *rec, const struct step_list *steps,
	const struct load *loads, struct swaps *ret)
{
	_cleanup_free_ uint64_t *scratch = calloc(steps->count + 1, sizeof(*scratch));
	uint64_t median;

	ret->steps = calloc(steps->count + 1, sizeof(*ret->steps));
	if (!scratch || !ret->steps)
		return -ENOMEM;
	median = usual_bytes(rec, steps, loads, scratch);
	for (size_t i = 0; i < steps->count; i++) {
		uint64_t excess = (uint64_t)(steps->items[i].end_ns - steps->items[i].start_ns) -
				  steps->ordinary_ns;

		if (!is_swap(steps, i, &loads[i], median))
			continue;
		ret->steps[ret->count++] = i;
		ret->excess_ns += excess;
		ret->found_ns += MIN(loads[i].copy_ns + loads[i].pause_ns, excess);
		ret->copied += loads[i].copied;
		ret->read += loads[i].read;
	}
	return 0;
}

static void write_words(const struct step_list *steps, const struct swaps *w, uint64_t span_ns,
	struct incident *inc)
{
	char each[TEXT_MAX], copied[TEXT_MAX], read[TEXT_MAX], usual[TEXT_MAX], share[TEXT_MAX];
	char n[TEXT_PLURAL_MAX];

	text_format_duration(each, w->excess_ns / w->count);
	text_format_duration(usual, steps->ordinary_ns);
	text_format_bytes(copied, w->copied / w->count);
	text_format_bytes(read, w->read / w->count);
	text_format_percent(share, (double)w->excess_ns / (double)span_ns);
	snprintf(inc->summary, sizeof(inc->summary),
		"%s %s %s longer (usually %s) because %s are loaded to the GPU, %s of "
		"the time",
		text_format_plural(n, w->count, "steps"), w->count == 1 ? "takes" : "take", each,
		usual, copied, share);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"model loaded between steps: %s copied to the GPU and %s read from "
		"disk each time",
		copied, read);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Of %zu steps of %s (pid %u), %zu copy at least 8 times as much to the GPU as the "
		"median step: %s each, and read %s from disk. Copies and the pauses before them "
		"take %.0f %% of the time by which these steps are longer.",
		steps->count, inc->comm, inc->pid, w->count, copied, read,
		100 * (double)w->found_ns / (double)MAX(w->excess_ns, UINT64_C(1)));
}

static int swaps_describe(const struct detector_input *s, const struct step_list *steps,
	const struct load *loads, struct swaps *w, struct incident_list *out)
{
	const struct step *first = &steps->items[w->steps[0]];
	const struct step *last = &steps->items[w->steps[w->count - 1]];
	const struct event *copy = &s->rec->events[loads[w->steps[0]].largest];
	uint64_t span =
		(uint64_t)(steps->items[steps->count - 1].end_ns - steps->items[0].start_ns);
	double share = (double)w->excess_ns / (double)MAX(span, UINT64_C(1));
	struct periodicity period;
	struct incident *inc;
	char op[32];

	incident_cover(out, steps->pid, first->start_ns, last->end_ns);
	inc = incident_begin(out, PROBLEM_MODEL_SWAP);
	if (!inc)
		return 0;
	incident_id(inc, steps->pid, first->start_ns);
	memcpy(inc->comm, copy->comm, COMM_LEN);
	inc->last.ns = last->start_ns;
	inc->source = copy->source;
	inc->op = copy->op;
	inc->count = w->count;
	inc->unit = "loads";
	inc->excess_ns = w->excess_ns;
	inc->baseline_ns = steps->ordinary_ns;
	inc->severity = share >= HIGH_SHARE     ? SEVERITY_HIGH
			: share >= MEDIUM_SHARE ? SEVERITY_MEDIUM
						: SEVERITY_LOW;
	inc->explained = (double)w->found_ns / (double)MAX(w->excess_ns, UINT64_C(1));
	inc->confidence =
		inc->explained * (double)w->count / ((double)w->count + 1) * steps->confidence;
	inc->completeness = s->completeness;
	write_words(steps, w, MAX(span, UINT64_C(1)), inc);
	incident_step(inc, first->start_ns, (uint64_t)(first->end_ns - first->start_ns), "CUDA",
		"step", "the first of them");
	for (size_t i = 0; i < w->count && i < INCIDENT_TIMELINE - 1; i++) {
		const struct load *l = &loads[w->steps[i]];
		const struct event *e = &s->rec->events[l->largest];

		incident_evidence(inc, e);
		incident_step(inc, e->start.ns, e->dur_ns, "CUDA",
			wire_op_name(e->source, e->op, op), "%llu MiB to the GPU in one copy",
			(unsigned long long)(l->largest_bytes >> 20));
	}
	if (period_of_steps(steps, w->steps, w->count, &period)) {
		inc->period_steps = (uint32_t)MIN(lround(period.period), 1000000L);
		inc->period_confidence = period.confidence;
	}
	if (evidence_sql_put(s->rec, first->start_ns, last->end_ns, inc) < 0)
		return -ENOMEM;
	incident_keep(out, inc);
	return 0;
}

static void swaps_mark(const struct swaps *w, uint32_t pid, struct gap_list *gaps)
{
	for (size_t i = 0; i < gaps->count; i++)
		for (size_t k = 0; k < w->count && gaps->items[i].span.pid == pid; k++)
			if (gaps->items[i].step == w->steps[k])
				gaps->items[i].idle = IDLE_SWAP;
}

int swap_report(const struct detector_input *s, const struct step_table *steps,
	struct gap_list *gaps, struct incident_list *out)
{
	_cleanup_free_ struct load *all = NULL;
	size_t count = 0;

	for (size_t i = 0; i < steps->count; i++)
		count += steps->lists[i].count;
	all = calloc(count + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	loads_count(s->rec, steps, gaps, all);
	for (size_t i = 0; i < steps->count; i++) {
		const struct step_list *l = &steps->lists[i];
		const struct load *loads = all + (l->items - steps->steps);
		_cleanup_free_ size_t *chosen = NULL;
		struct swaps w = {0};
		int r = swaps_find(s->rec, l, loads, &w);

		chosen = w.steps;
		if (r == 0 && w.count) {
			swaps_mark(&w, l->pid, gaps);
			r = swaps_describe(s, l, loads, &w, out);
		}
		if (r < 0)
			return r;
	}
	return 0;
}
