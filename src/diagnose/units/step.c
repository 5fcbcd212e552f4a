/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - steps from waits: the loop of a job waits for the GPU at the same place every time
 * round.
 *
 * Looked at are the waits (stream, device, context, event) of the thread of each process that has the most
 * of them, unless these end when those of another go on. Waits of one kind have the same function, stream
 * and call stack. A kind is regular if 70 % of the distances between its occurrences, counted in waits of
 * any kind, are the same, and if it occurs over at least half of the waits, its longest break left out: a
 * warm-up is no loop, nor is one with what came later, nor is what takes next to no time. One without a
 * break may be half of the time instead: a model that is loaded may be waited for more often than its
 * batches. A step is closed by the rarest regular kind that has at least a sixteenth of the waits of the
 * most frequent one: rarer ones are a logger's or a checkpoint's, those in between are micro-batches. Of
 * several that are equally rare (one wait for each stream) it is the one after which the next wait is
 * furthest away. Stacks are left out of the kind where they differ too much to repeat (more than 64 kinds),
 * and where one has at least 80 % of the waits of its function and stream: the others are the same place
 * before its stack could be walked. Where most waits of a place find nothing to wait for (below 100 us) and
 * the longer ones are regular, those close the steps. Waits that follow each other at once, with all of the
 * time between such bursts, close one step together. Those of a model that is copied to the GPU close none
 * (setup.h).
 *
 * Every wait must be in the recording: a process without aggregates, or whose aggregates say that
 * more than 1 % of its waits were not stored (published files, --stack-samples), has no steps. At
 * least 12 steps are needed.
 *
 * Confidence = share of distances that are the same x n / (n + 5).
 *
 * O(n log n) in waits; at most 256 processes, those with the lowest pid. */
#include "diagnose/units/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/rows/baseline.h"
#include "diagnose/units/setup.h"
#include "base/array.h"
#include "base/search.h"
#include "stat/robust.h"
#include "wire/op_kind.h"

#define KINDS_MAX     64
#define REGULAR_SHARE 0.7
#define RAREST_PARTS  16
#define WAITED_NS     (100 * NS_PER_US)
#define STEPS_MIN     12
#define STEPS_HALF    5.0
#define STORED_SHARE  0.99
#define SAME_PLACE    0.8
#define PHASE_SHARE   0.5
#define BRIEF_SHARE   0.05
#define PROCESSES_MAX 256
#define THREADS_MAX   16   /* of a process: those with most waits */
#define GOING_SHARE   0.25 /* of the time in which any thread of the process waits */
#define BREAK_MAX     16   /* waits of other kinds in a row: more is a break */
#define BURST_NS      (200 * NS_PER_US)
#define BURST_SHARE   0.05 /* of the time: less is no work */

struct wait {
	int64_t start_ns, end_ns;
	uint64_t kind;
	size_t event;
	uint32_t pid, tid;
};

struct kind { /* of one thread's waits */
	uint64_t kind;
	size_t count;
	double regular;  /* share of equal distances */
	double ahead_ns; /* mean time to the next wait */
};

/* Whether @e waits for the GPU, and is not part of another call. */
static bool is_wait(const struct event *e)
{
	return !(e->flags & WIRE_NESTED) && op_kind_is_gpu_wait(e->source, e->op);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

enum detail { BY_PLACE, BY_STACK, BY_LENGTH };

/* The lowest bit says, for BY_LENGTH, that it had to wait. */
static uint64_t kind_of(const struct event *e, enum detail detail)
{
	bool of_event = e->op == (e->source == SOURCE_CUDA ? CUDA_EVENT_SYNC : DRIVER_EVENT_SYNC);
	uint64_t h = mix(e->source, e->op);

	h = mix(h, of_event    ? 0
		   : e->stream ? e->stream
			       : e->arg0); /* events may be new each time */
	if (detail == BY_STACK)
		h = mix(h, e->stack_hash);
	return h << 1 | (detail == BY_LENGTH && e->dur_ns >= WAITED_NS);
}

ORDER(by_thread_and_time, struct wait,
	ASCENDING(pid) ?: ASCENDING(tid) ?: ASCENDING(end_ns) ?: ASCENDING(event))

static int waits_collect(const struct recording *rec, struct wait **ret, size_t *ret_count)
{
	_cleanup_free_ struct wait *waits = NULL;
	size_t n = 0, room = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!is_wait(e) || !baseline_is_sane(e))
			continue;
		if (ARRAY_RESERVE(waits, room, n + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		waits[n++] = (struct wait){e->start.ns, event_end_ns(e), 0, i, e->pid, e->tid};
	}
	SORT_DEALT(waits, n, by_thread_and_time, offsetof(struct wait, pid),
		offsetof(struct wait, tid));
	*ret = TAKE(waits);
	*ret_count = n;
	return 0;
}

/* Whether all waits of @pid are rows, by what its aggregates say. */
static bool is_whole(const struct recording *rec, uint32_t pid)
{
	uint64_t calls = 0, stored = 0;

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];
		const struct event as = {.source = a->source, .op = a->op, .flags = a->flags};

		if (a->pid != pid || !is_wait(&as))
			continue;
		calls += a->sketch.count;
		stored += a->stored;
	}
	return calls && (double)stored >= STORED_SHARE * (double)calls;
}

static struct kind *kind_get(struct kind *kinds, size_t *n, uint64_t kind)
{
	for (size_t i = 0; i < *n; i++)
		if (kinds[i].kind == kind)
			return &kinds[i];
	if (*n == KINDS_MAX)
		return NULL;
	kinds[*n] = (struct kind){.kind = kind};
	return &kinds[(*n)++];
}

/* How many waits of each kind, and how far the next one is. False: too many kinds. */
static bool kinds_count(const struct recording *rec, struct wait *w, size_t n, enum detail detail,
	struct kind *kinds, size_t *ret_count)
{
	*ret_count = 0;
	for (size_t i = 0; i < n; i++) {
		struct kind *k;

		w[i].kind = kind_of(&rec->events[w[i].event], detail);
		k = kind_get(kinds, ret_count, w[i].kind);
		if (!k)
			return false;
		k->count++;
		if (i + 1 < n)
			k->ahead_ns += (double)MAX(w[i + 1].start_ns - w[i].end_ns, INT64_C(0));
	}
	for (size_t i = 0; i < *ret_count; i++)
		kinds[i].ahead_ns /= (double)kinds[i].count;
	return true;
}

/* Whether it occurs, from @first to @last and the longest break left out, in most of the waits or most of the time. */
static bool is_lasting(const struct wait *w, size_t n, size_t first, size_t last, size_t pause)
{
	double all = (double)(w[n - 1].end_ns - w[0].end_ns);
	double time = (double)(w[last].end_ns - w[first].end_ns);

	return ((double)(last - first - pause) >= PHASE_SHARE * (double)n &&
		       time >= BRIEF_SHARE * all) ||
	       (pause <= BREAK_MAX && time >= PHASE_SHARE * all);
}

/* The share of the most frequent distance between waits of kind @k; 0 if they are of a phase only.
 */
static double regularity(const struct wait *w, size_t n, const struct kind *k, uint64_t *scratch)
{
	size_t last = SIZE_MAX, count = 0, same = 0, first = n, pause = 0;
	uint64_t median;

	for (size_t i = 0; i < n; i++) {
		if (w[i].kind != k->kind)
			continue;
		first = MIN(first, i);
		if (last != SIZE_MAX) {
			pause = MAX(pause, i - last);
			scratch[count++] = i - last;
		}
		last = i;
	}
	if (!count || !is_lasting(w, n, first, last, pause))
		return 0;
	median = robust_median_of(scratch, count);
	for (size_t i = 0; i < count; i++)
		same += scratch[i] == median;
	return (double)same / (double)count;
}

static const struct kind *kind_choose(
	const struct wait *w, size_t n, struct kind *kinds, size_t kind_count, uint64_t *scratch)
{
	const struct kind *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < kind_count; i++)
		most = MAX(most, kinds[i].count);
	for (size_t i = 0; i < kind_count; i++) {
		struct kind *k = &kinds[i];
		bool about_equal;

		if (k->count <= STEPS_MIN || k->count < most / RAREST_PARTS)
			continue;
		k->regular = regularity(w, n, k, scratch);
		if (k->regular < REGULAR_SHARE)
			continue;
		/* A recording starts and ends in the middle of a step: one more or less. */
		about_equal = best && k->count + 1 >= best->count && k->count <= best->count + 1;
		if (!best || (about_equal ? k->ahead_ns > best->ahead_ns : k->count < best->count))
			best = k;
	}
	return best;
}

/* The steps of one thread's waits into @out; returns how many. */
static size_t steps_cut(const struct wait *w, size_t n, uint64_t kind, struct step *out)
{
	size_t count = 0;
	int64_t start = INT64_MIN;

	for (size_t i = 0; i < n; i++) {
		if (w[i].kind != kind)
			continue;
		if (start != INT64_MIN)
			out[count++] = (struct step){start, w[i].end_ns, w[i].event};
		start = w[i].end_ns;
	}
	return count;
}

static uint64_t length(const struct step *s)
{
	return (uint64_t)(s->end_ns - s->start_ns);
}

/* Results that were asked for together are waited for one after the other, with nothing done in between: that
 * is one step. So it is where most steps take next to no time. Returns how many are left. */
static size_t bursts_join(struct step *steps, size_t n)
{
	uint64_t all = 0, shorts = 0;
	size_t short_count = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		bool is_short = length(&steps[i]) < BURST_NS;

		all += length(&steps[i]);
		shorts += is_short ? length(&steps[i]) : 0;
		short_count += is_short;
	}
	if (short_count * 2 < n || (double)shorts > BURST_SHARE * (double)all)
		return n;
	for (size_t i = 0; i < n; i++)
		if (kept && length(&steps[i]) < BURST_NS)
			steps[kept - 1] = (struct step){
				steps[kept - 1].start_ns, steps[i].end_ns, steps[i].event};
		else
			steps[kept++] = steps[i];
	return kept;
}

/* The kind of the waits that close a step, in @w; 0 regularity: none. */
static struct kind kind_closing(
	const struct recording *rec, struct wait *w, size_t n, uint64_t *scratch)
{
	static const enum detail details[] = {BY_STACK, BY_PLACE, BY_LENGTH};
	struct kind best[BY_LENGTH + 1] = {0}, kinds[KINDS_MAX];
	enum detail use = BY_STACK;
	size_t count;

	for (size_t i = 0; i < ARRAY_SIZE(details); i++) {
		const struct kind *k = NULL;

		if (kinds_count(rec, w, n, details[i], kinds, &count))
			k = kind_choose(w, n, kinds, count, scratch);
		if (k)
			best[details[i]] = *k;
	}
	if ((double)best[BY_STACK].count >= SAME_PLACE * (double)best[BY_PLACE].count)
		use = BY_PLACE;
	if (!best[BY_STACK].count)
		use = BY_PLACE;
	if (use == BY_PLACE && (best[BY_LENGTH].kind & 1) &&
		best[BY_LENGTH].count * 2 <= best[BY_PLACE].count)
		use = BY_LENGTH;
	if (use == BY_PLACE && !best[BY_PLACE].count)
		use = BY_STACK;
	kinds_count(rec, w, n, use, kinds, &count); /* leaves the kinds in @w */
	return best[use];
}

/* How many of the first waits are those of a set-up. */
static size_t setup_waits(const struct recording *rec, const struct wait *w, size_t n,
	struct step *room, uint64_t *scratch)
{
	for (size_t i = 0; i < n; i++)
		room[i] =
			(struct step){i ? w[i - 1].end_ns : w[0].start_ns, w[i].end_ns, w[i].event};
	return setup_count(rec, w[0].pid, w[0].tid, room, n, scratch);
}

static int list_make(const struct recording *rec, struct wait *w, size_t n, struct step *out,
	uint64_t *scratch, struct step_list *ret)
{
	size_t none = setup_waits(rec, w, n, out, scratch);
	struct kind k;

	if (n - none <= STEPS_MIN)
		return 0;
	w += none;
	n -= none;
	k = kind_closing(rec, w, n, scratch);
	*ret = (struct step_list){.pid = w[0].pid, .tid = w[0].tid, .items = out};
	if (!(k.regular > 0))
		return 0;
	ret->count = bursts_join(out, steps_cut(w, n, k.kind, out));
	for (size_t i = 0; i < ret->count; i++)
		scratch[i] = (uint64_t)(out[i].end_ns - out[i].start_ns);
	ret->ordinary_ns = robust_median_of(scratch, ret->count);
	ret->confidence = k.regular * (double)ret->count / ((double)ret->count + STEPS_HALF);
	return ret->count >= STEPS_MIN;
}

struct thread_waits { /* of one thread of a process */
	size_t first, count;
};

/* The threads of the process at @w with enough waits, those with most first; returns how many. */
static size_t threads_of(const struct wait *w, size_t n, struct thread_waits ret[THREADS_MAX])
{
	size_t used = 0, next;

	for (size_t i = 0; i < n; i = next) {
		size_t at = used;

		for (next = i; next < n && w[next].tid == w[i].tid;)
			next++;
		while (at > 0 && ret[at - 1].count < next - i)
			at--;
		if (next - i <= STEPS_MIN || at == THREADS_MAX)
			continue;
		used = MIN(used + 1, (size_t)THREADS_MAX);
		memmove(ret + at + 1, ret + at, (used - at - 1) * sizeof(*ret));
		ret[at] = (struct thread_waits){i, next - i};
	}
	return used;
}

/* Whether @l goes on for as long as the process waits for the GPU: a thread that sets a model up may wait more
 * often than the one that serves with it. */
static bool is_going_on(const struct step_list *l, const struct wait *w, size_t n)
{
	int64_t first = l->items[0].start_ns, last = first;

	for (size_t i = 0; i < n; i++)
		last = MAX(last, w[i].end_ns);
	return (double)(l->items[l->count - 1].end_ns - first) >=
	       GOING_SHARE * (double)(last - first);
}

/* The steps of the process at @w. 1, or 0: none. */
static int list_choose(const struct recording *rec, struct wait *w, size_t n, struct step *out,
	uint64_t *scratch, struct step_list *ret)
{
	struct thread_waits threads[THREADS_MAX];
	size_t count = is_whole(rec, w[0].pid) ? threads_of(w, n, threads) : 0;
	size_t any = count;

	for (size_t i = 0; i < count; i++) {
		struct thread_waits *t = &threads[i];

		if (!list_make(rec, w + t->first, t->count, out, scratch, ret))
			continue;
		if (is_going_on(ret, w, n))
			return 1;
		any = MIN(any, i);
	}
	return any < count ? list_make(rec, w + threads[any].first, threads[any].count, out,
				     scratch, ret)
			   : 0;
}

int steps_find(const struct recording *rec, struct step_table *ret)
{
	_cleanup_free_ struct wait *waits = NULL;
	_cleanup_free_ uint64_t *scratch = NULL;
	size_t n, next, used = 0;

	*ret = (struct step_table){0};
	if (waits_collect(rec, &waits, &n) < 0)
		return -ENOMEM;
	scratch = calloc(2 * n + 1, sizeof(*scratch));
	ret->steps = calloc(n + 1, sizeof(*ret->steps));
	ret->lists = calloc(PROCESSES_MAX, sizeof(*ret->lists));
	if (!scratch || !ret->steps || !ret->lists)
		return -ENOMEM;
	for (size_t i = 0; i < n && ret->count < PROCESSES_MAX; i = next) {
		for (next = i; next < n && waits[next].pid == waits[i].pid;)
			next++;
		if (list_choose(rec, waits + i, next - i, ret->steps + used, scratch,
			    &ret->lists[ret->count]))
			used += ret->lists[ret->count++].count;
	}
	return 0;
}

void steps_done(struct step_table *t)
{
	free(t->lists);
	free(t->steps);
	*t = (struct step_table){0};
}

const struct step_list *steps_of(const struct step_table *t, uint32_t pid)
{
	size_t at = LOWER_BOUND(i, t->count, t->lists[i].pid < pid);

	return at < t->count && t->lists[at].pid == pid ? &t->lists[at] : NULL;
}
