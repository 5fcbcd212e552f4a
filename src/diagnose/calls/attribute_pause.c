/* SPDX-License-Identifier: Apache-2.0 */
/* attribute_pause.c - what a thread did in a pause between its calls. See attribute_pause().
 *
 * Stays off the CPU are told apart as in attribute.c; sleeps inside a socket call are waits for the
 * network; time that is in no recorded stay the thread was running. That errs where stays are not
 * recorded: in pauses the probes keep sleeps from 1 ms on and waits for a CPU or a disk from 50 us
 * on, so many shorter sleeps pass as host code. */
#include "diagnose/calls/part.h"

#include <errno.h>

/* [start, end) of @key that intervals of @list cover, as parts of @cause; the time covered. */
static int add_covered(struct part_list *l, const struct interval_list *list, uint32_t key,
	enum cause cause, size_t call, int64_t start_ns, int64_t end_ns, uint64_t *covered)
{
	for (size_t i = interval_seek(list, key, start_ns); i < list->count; i++) {
		const struct interval *v = &list->items[i];
		struct part p = {.call = call, .event = v->event, .cause = cause};

		if (v->key != key || v->start_ns >= end_ns)
			break;
		p.start_ns = MAX(v->start_ns, start_ns);
		p.end_ns = MIN(v->end_ns, end_ns);
		p.ns = (uint64_t)(p.end_ns - p.start_ns);
		*covered += p.ns;
		if (part_add(l, &p) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A sleep inside a socket call is a wait for the network; any other is just a sleep. */
static int add_sleep(struct part_list *l, const struct attribution_index *x,
	const struct interval *v, size_t call, int64_t start_ns, int64_t end_ns)
{
	struct part p = {.call = call,
		.event = v->event,
		.cause = CAUSE_ASLEEP,
		.start_ns = start_ns,
		.end_ns = end_ns};
	uint64_t covered = 0;
	int r = add_covered(
		l, &x->sockets, v->key, CAUSE_NETWORK, call, start_ns, end_ns, &covered);

	p.ns = (uint64_t)(end_ns - start_ns) - covered;
	return r < 0 || !p.ns ? r : part_add(l, &p);
}

/* In D state: for a disk or a file system. Where its process has requests under way in the pause, as
 * fsync() has it, they are the proof: part of the wait is for requests that the file system makes in
 * other names. */
static int add_disk_wait(struct part_list *l, const struct attribution_index *x,
	const struct span *s, const struct interval *v, size_t call, int64_t start_ns,
	int64_t end_ns)
{
	size_t at = interval_seek(&x->by_process, s->pid, s->start_ns);
	bool is_disk = at < x->by_process.count && x->by_process.items[at].key == s->pid &&
		       x->by_process.items[at].start_ns < s->end_ns;
	struct part p = {.call = call,
		.event = is_disk ? x->by_process.items[at].event : v->event,
		.cause = CAUSE_BLOCK_IO,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.ns = (uint64_t)(end_ns - start_ns)};

	return part_add(l, &p);
}

static int add_running(struct part_list *l, const struct attribution_index *x, const struct span *s,
	size_t call, uint64_t away_ns)
{
	uint64_t whole = (uint64_t)(s->end_ns - s->start_ns), reclaimed = 0;
	struct part p = {.call = call,
		.event = SIZE_MAX,
		.cause = CAUSE_HOST_CODE,
		.start_ns = s->start_ns,
		.end_ns = s->end_ns};
	int r = add_covered(
		l, &x->reclaims, s->tid, CAUSE_RECLAIM, call, s->start_ns, s->end_ns, &reclaimed);

	if (r < 0 || !interval_has(&x->off_cpu, s->tid) || away_ns + reclaimed >= whole)
		return r;
	p.ns = whole - away_ns - reclaimed;
	return part_add(l, &p);
}

int attribute_pause(const struct recording *rec, const struct attribution_index *x,
	const struct span *s, size_t call, struct part_list *l)
{
	size_t first = l->count;
	uint64_t away = 0;
	int r = 0;

	for (size_t i = interval_seek(&x->off_cpu, s->tid, s->start_ns); i < x->off_cpu.count;
		i++) {
		const struct interval *v = &x->off_cpu.items[i];
		int64_t start, end;

		if (v->key != s->tid || v->start_ns >= s->end_ns)
			break;
		start = MAX(v->start_ns, s->start_ns);
		end = MIN(v->end_ns, s->end_ns);
		away += (uint64_t)(end - start);
		if (v->kind == INTERVAL_ASLEEP)
			r = add_sleep(l, x, v, call, start, end);
		else if (v->kind == INTERVAL_DISK_WAIT)
			r = add_disk_wait(l, x, s, v, call, start, end);
		else
			r = part_add_cpu(l, v, &rec->events[v->event], call, start, end);
		if (r < 0)
			return r;
	}
	r = add_running(l, x, s, call, away);
	if (r == 0 && l->count > first)
		part_scale(l->items + first, l->count - first, s->excess_ns);
	return r;
}
