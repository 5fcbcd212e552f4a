/* SPDX-License-Identifier: Apache-2.0 */
/* detector.c - incidents under construction. */
#include "diagnose/findings/detector.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "diagnose/chains/kernel_type.h"
#include "base/macros.h"

struct incident *incident_begin(struct incident_list *l, enum problem problem)
{
	const struct problem_text *text = problem_row(problem)->text;
	struct incident *i = l->count < l->max ? &l->items[l->count] : &l->spare;

	*i = (struct incident){.problem = (uint8_t)problem, .culprit_rank = -1, .completeness = -1};
	for (int k = 0; k < INCIDENT_FIXES && text->fixes[k]; k++)
		snprintf(i->fixes[i->fix_count++], sizeof(i->fixes[0]), "%s", text->fixes[k]);
	return i;
}

void incident_id(struct incident *i, uint32_t pid, int64_t first_ns)
{
	i->pid = pid;
	i->first.ns = first_ns;
	snprintf(i->id, sizeof(i->id), "%s-%u-%lld", problem_row(i->problem)->id, pid,
		(long long)first_ns);
}

bool incident_step(struct incident *i, int64_t start_ns, uint64_t dur_ns, const char *layer,
	const char *op, const char *fmt, ...)
{
	struct incident_step *s = &i->timeline[i->step_count];
	va_list ap;

	if (i->step_count == INCIDENT_TIMELINE)
		return false;
	*s = (struct incident_step){.time.ns = start_ns, .dur_ns = dur_ns};
	snprintf(s->layer, sizeof(s->layer), "%s", layer);
	snprintf(s->op, sizeof(s->op), "%s", op);
	va_start(ap, fmt);
	vsnprintf(s->detail, sizeof(s->detail), fmt, ap);
	va_end(ap);
	i->step_count++;
	return true;
}

void incident_evidence(struct incident *i, const struct event *e)
{
	if (i->evidence_count + i->unnumbered == INCIDENT_EVIDENCE)
		return;
	if (e->seq)
		i->evidence[i->evidence_count++] = e->seq;
	else
		i->unnumbered++;
	kernel_note(i, e);
}

void incident_fix(struct incident *i, const char *fmt, ...)
{
	int keep = MIN(i->fix_count, INCIDENT_FIXES - 1);
	va_list ap;

	memmove(i->fixes[1], i->fixes[0], (size_t)keep * sizeof(i->fixes[0]));
	va_start(ap, fmt);
	vsnprintf(i->fixes[0], sizeof(i->fixes[0]), fmt, ap);
	va_end(ap);
	i->fix_count = keep + 1;
}

void incident_process(struct incident *i, const struct event *e, int64_t first_ns, int64_t last_ns)
{
	incident_id(i, e->pid, first_ns);
	i->last.ns = last_ns;
	i->source = e->source;
	i->op = e->op;
	memcpy(i->comm, e->comm, COMM_LEN);
	i->comm[COMM_LEN - 1] = 0;
}

void incident_weigh(struct incident *i, enum severity severity, double confidence, uint64_t count,
	const char *unit)
{
	i->severity = severity;
	i->confidence = confidence;
	i->count = count;
	i->unit = unit;
}

void incident_complete(struct incident *i, double completeness)
{
	i->completeness = completeness;
	i->confidence *= completeness_weight(completeness);
}

size_t detector_gpus(const struct recording *rec, int64_t ret[DETECTOR_GPUS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < rec->gpu_count && n < DETECTOR_GPUS_MAX; i++) {
		size_t k = 0;

		while (k < n && ret[k] != rec->gpus[i].index)
			k++;
		if (k == n)
			ret[n++] = rec->gpus[i].index;
	}
	return n;
}

void incident_sql(struct incident *i, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(i->evidence_sql, sizeof(i->evidence_sql), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(i->evidence_sql))
		i->evidence_sql[0] = 0;
}

double completeness_of_sources(const struct accounting *books, unsigned sources)
{
	double least = 1;

	if (!books || books->unclean)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(books->source); i++) {
		uint64_t lost = account_lost(&books->source[i]);
		uint64_t hits = MAX(books->source[i].hits, lost);

		if (hits && (sources >> i & 1))
			least = MIN(least, 1 - (double)lost / (double)hits);
	}
	return least;
}

void incident_keep(struct incident_list *l, struct incident *i)
{
	if (i == &l->spare)
		l->left_out++;
	else if (i == &l->items[l->count])
		l->count++;
}

/* Stacks are known by their hash alone; whoever prints has the names. */

ORDER(by_hash, struct incident_stack, ASCENDING(hash))

ORDER(by_excess, struct incident_stack, DESCENDING(ns) ?: by_hash(x, y))

void incident_stacks_merge(struct incident_stack *list, size_t n, struct incident *inc)
{
	size_t distinct = 0;

	qsort(list, n, sizeof(*list), by_hash);
	for (size_t i = 0; i < n; i++) {
		inc->stack_ns += list[i].ns;
		if (distinct && list[distinct - 1].hash == list[i].hash) {
			list[distinct - 1].ns += list[i].ns;
			list[distinct - 1].calls++;
		} else {
			list[distinct++] = list[i];
		}
	}
	qsort(list, distinct, sizeof(*list), by_excess);
	inc->stack_total = (uint32_t)distinct;
	inc->stack_count = (int)MIN(distinct, (size_t)INCIDENT_STACKS);
	for (int i = 0; i < inc->stack_count; i++)
		inc->stacks[i] = list[i];
}
