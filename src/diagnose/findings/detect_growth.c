/* SPDX-License-Identifier: Apache-2.0 */
/* detect_growth.c - a leak seen by the driver: memory of a GPU grows steadily to the end
 * (growth_find() says what that is), and a traced process allocates it.
 *
 * A framework with a pool of its own asks the driver for few large pieces, and its warm-up is larger
 * than what leaks within seconds: detect_leak.c, which goes by allocations alone, cannot tell that
 * from a pool that fills. The driver's readings can.
 *
 * To blame is a process whose allocations in that time, never freed, are at least half of the growth.
 * GPUs are matched by number first; CUDA_VISIBLE_DEVICES may change numbers, so that a GPU whose
 * growth is that of the process (0.5 to 1.5 times) is taken where its own does not grow.
 * Weights that are loaded also grow steadily, and so do graphs that are captured one after the other:
 * it is no leak unless 8 kernels are launched for each allocation that stays, and if graphs are
 * instantiated in half as many readings as rise.
 *
 * Severity: leak_allocs_judge(). Confidence = straightness of the growth x the
 * share that the allocations account for x n/(n+1) of readings that rise x completeness. */
#include "diagnose/findings/leak_allocs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/contrasts/account_task.h"
#include "base/buf.h"
#include "base/text.h"
#include "wire/op_kind.h"
#include "diagnose/recording.h"
#include "base/macros.h"

/* The growth is the longest stretch up to the last reading in which memory follows a straight line:
 *   no reading is further from the line between its ends than 20 % of the growth (one jump, a few
 *   jumps, doubling and a level that is reached are all further away),
 *   its last fifth, two readings at least, has half of its share (a pool that approaches its level
 *   has not),
 *   at least 5 readings are above the one before, 10 where memory never stood still before: until
 *   then it may be the warm-up,
 *   it is 1 GiB or 5 % of the GPU's memory, whichever is less, and at least half of it is above what
 *   was in use at any time before (the teeth of a saw are not).
 * Readings that stood still at the start are left out of the stretch. Where readings are missing for
 * 10 s, what happened is not known: only what is after that counts, and it must reach to_ns.
 *
 * The last half hour is looked at: O(n^2) of 1800 readings at worst, since most beginnings are given
 * up at their first readings. */

struct memory_growth {
	int64_t first_ns, last_ns; /* the reading before the first rise, and the last reading */
	uint64_t start_bytes;      /* in use at first_ns */
	uint64_t bytes;            /* more at last_ns */
	int64_t free_bytes;        /* at last_ns; -1: not known */
	size_t rises;              /* readings above the one before */
	double bend;               /* largest distance from a straight line, as a share of bytes */
	bool after_level;          /* memory stood still before */
};

#define READINGS_MAX   1800
#define BEND_MAX       0.2
#define END_SHARE      0.2
#define END_READINGS   2
#define STILL_GROWING  0.5
#define RISES_MIN      5
#define RISES_UNLEVEL  10
#define LEVEL_READINGS 3
#define FLAT_SHARE     0.25 /* of the mean rate: as good as none */
#define NEW_SHARE      0.5
#define LEAST_BYTES    ((double)(UINT64_C(1) << 30))
#define LEAST_SHARE    0.05
#define HOLE_S         10.0

struct reading {
	double s; /* since from_ns */
	double used;
	const struct gpu_sample *sample;
};

static double least_of(const struct gpu_sample *g)
{
	return g->mem_total_bytes > 0 ? MIN(LEAST_BYTES, LEAST_SHARE * (double)g->mem_total_bytes)
				      : LEAST_BYTES;
}

static bool growth_is_possible(const struct recording *rec)
{
	int64_t low = INT64_MAX, high = -1;
	double least = LEAST_BYTES;

	for (size_t i = 0; i < rec->gpu_count; i++) {
		if (rec->gpus[i].mem_used_bytes < 0)
			continue;
		low = MIN(low, rec->gpus[i].mem_used_bytes);
		high = MAX(high, rec->gpus[i].mem_used_bytes);
		least = MIN(least, least_of(&rec->gpus[i]));
	}
	return high >= 0 && (double)high - (double)low >= least;
}

/* The newest readings of @gpu in the time, in its order. */
static size_t take_readings(const struct recording *rec, int64_t gpu, int64_t from_ns,
	int64_t to_ns, struct reading *ret)
{
	size_t n = 0;

	for (size_t i = rec->gpu_count; i-- > 0 && n < READINGS_MAX;) {
		const struct gpu_sample *g = &rec->gpus[i];

		if (g->index == gpu && g->mem_used_bytes >= 0 && g->time.ns >= from_ns &&
			g->time.ns <= to_ns)
			ret[READINGS_MAX - ++n] = (struct reading){
				(double)(g->time.ns - from_ns) / 1e9, (double)g->mem_used_bytes, g};
	}
	return n;
}

static double rate_of(const struct reading *a, const struct reading *b)
{
	return (b->used - a->used) / MAX(b->s - a->s, 1e-3);
}

/* More than BEND_MAX: not a straight line. */
static double bend_of(const struct reading *r, size_t n)
{
	double rate = rate_of(&r[0], &r[n - 1]), growth = r[n - 1].used - r[0].used, bend = 0;

	for (size_t i = 1; i < n && bend <= BEND_MAX; i++)
		bend = MAX(bend, fabs(r[i].used - r[0].used - rate * (r[i].s - r[0].s)) / growth);
	return bend;
}

static bool is_still_growing(const struct reading *r, size_t n)
{
	const struct reading *last = &r[n - 1], *since = &r[n - MIN(n, (size_t)END_READINGS + 1)];

	while (since > r && last->s - since->s < END_SHARE * (last->s - r[0].s))
		since--;
	return rate_of(since, last) >= STILL_GROWING * rate_of(&r[0], last);
}

static size_t rises_of(const struct reading *r, size_t n)
{
	size_t rises = 0;

	for (size_t i = 1; i < n; i++)
		rises += r[i].used > r[i - 1].used;
	return rises;
}

/* Whether memory stood still in the readings before @at, against growth by @rate. */
static bool is_level_before(const struct reading *r, size_t at, double rate)
{
	return at >= LEVEL_READINGS &&
	       fabs(rate_of(&r[at - LEVEL_READINGS], &r[at])) <= FLAT_SHARE * rate;
}

/* Judges the stretch of @r from @at to the last of @n. */
static bool grows_from(const struct reading *r, size_t at, size_t n, struct memory_growth *ret)
{
	const struct reading *last = &r[n - 1];
	double bend, peak = 0;
	size_t rises;
	bool level;

	if (last->used - r[at].used < least_of(last->sample) || bend_of(&r[at], n - at) > BEND_MAX)
		return false;
	while (at + 2 < n && rate_of(&r[at], &r[at + 1]) <= FLAT_SHARE * rate_of(&r[at], last))
		at++;
	for (size_t i = 0; i <= at; i++)
		peak = MAX(peak, r[i].used);
	bend = bend_of(&r[at], n - at);
	rises = rises_of(&r[at], n - at);
	level = is_level_before(r, at, rate_of(&r[at], last));
	if (rises < (level ? RISES_MIN : RISES_UNLEVEL) || bend > BEND_MAX ||
		!is_still_growing(&r[at], n - at) ||
		last->used - r[at].used < least_of(last->sample) ||
		last->used - peak < NEW_SHARE * (last->used - r[at].used))
		return false;
	*ret = (struct memory_growth){.first_ns = r[at].sample->time.ns,
		.last_ns = last->sample->time.ns,
		.start_bytes = (uint64_t)r[at].used,
		.bytes = (uint64_t)(last->used - r[at].used),
		.free_bytes = last->sample->mem_free_bytes,
		.rises = rises,
		.bend = bend,
		.after_level = level};
	return true;
}

static int growth_find(const struct recording *rec, int64_t gpu, int64_t from_ns, int64_t to_ns,
	struct memory_growth *ret)
{
	_cleanup_free_ struct reading *all = calloc(READINGS_MAX, sizeof(*all));
	const struct reading *r;
	size_t n, first = 0;

	if (!all)
		return -ENOMEM;
	n = take_readings(rec, gpu, from_ns, to_ns, all);
	r = all + READINGS_MAX - n;
	if (n < 2 || (double)(to_ns - r[n - 1].sample->time.ns) / 1e9 > HOLE_S)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (r[i].s - r[i - 1].s > HOLE_S)
			first = i;
	for (size_t at = first; at + RISES_MIN < n; at++)
		if (grows_from(r, at, n, ret))
			return 1;
	return 0;
}

#define OWN_SHARE         0.5
#define OTHER_SHARE_MAX   1.5 /* of a GPU with another number */
#define LAUNCHES_AN_ALLOC 8
#define LAUNCHES_A_GRAPH  64 /* a graph stands for many */
#define BUCKET_NS         ((int64_t)(5 * NS_PER_S))
#define SURE_STEPS        0.4
#define STEPS_MIN         4
#define READINGS_SHOWN    6
#define PROCESSES_MAX     256

struct finding {
	int64_t gpu;
	struct memory_growth growth;
	struct leak_allocs allocs; /* counted within the growth */
	double bytes_per_s;
	double bytes_per_step;   /* 0: steps are not known */
	enum step_origin origin; /* of the steps */
};

/* The part of a bucket that lies within the growth. */
static double overlap(const struct memory_growth *g, int64_t bucket_ns)
{
	int64_t from = MAX(g->first_ns, bucket_ns), to = MIN(g->last_ns, bucket_ns + BUCKET_NS);

	return to > from ? (double)(to - from) / (double)BUCKET_NS : 0;
}

static double launches_of(unsigned source, unsigned op, unsigned flags)
{
	if (flags & WIRE_NESTED)
		return 0;
	if (op_kind_is_graph_launch(source, op))
		return LAUNCHES_A_GRAPH;
	return op_kind_is_cuda(source) && op_kind_line(source, op) == LEDGER_LAUNCH;
}

/* Aggregates hold all calls; rows do where there are none. */
static double launches_in(const struct recording *rec, uint32_t pid, const struct memory_growth *g)
{
	double n = 0;

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];

		if (a->pid == pid && a->bucket.ns >= 0 && a->bucket.ns < g->last_ns)
			n += launches_of(a->source, a->op, a->flags) * (double)a->sketch.count *
			     overlap(g, a->bucket.ns);
	}
	for (size_t i = 0; !rec->aggregate_count && i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->pid == pid && e->start.ns >= g->first_ns && e->start.ns <= g->last_ns)
			n += launches_of(e->source, e->op, e->flags) * MAX(e->weight, 1U);
	}
	return n;
}

static size_t graphs_made_in(
	const struct recording *rec, uint32_t pid, const struct memory_growth *g)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		n += e->pid == pid && e->source == SOURCE_GRAPH && e->op == GRAPH_INSTANTIATE &&
		     !(e->flags & WIRE_NESTED) && e->start.ns >= g->first_ns &&
		     e->start.ns <= g->last_ns;
	}
	return n;
}

/* Until when the process was there: its last recorded call may be earlier than its last one. */
static int64_t last_seen_ns(const struct recording *rec, uint32_t pid, int64_t last_ns)
{
	for (size_t i = 0; i < rec->ledger_count; i++)
		if (rec->ledger[i].pid == pid)
			last_ns = MAX(last_ns, ledger_end_ns(&rec->ledger[i]));
	return last_ns;
}

/* Whether the growth of GPU f->gpu is that of the process: 1, 0 or -ENOMEM. */
static int grows_by(const struct detector_input *s, const struct device_allocs *l, double share_max,
	struct finding *f)
{
	struct leak_allocs *a = &f->allocs;
	uint32_t pid = l->entries[a->from].pid;
	double share;
	int r = growth_find(
		s->rec, f->gpu, a->called_ns, last_seen_ns(s->rec, pid, a->last_ns), &f->growth);

	if (r <= 0)
		return r;
	leak_allocs_count(l, f->growth.first_ns, f->growth.last_ns, a);
	share = (double)a->left_bytes / (double)f->growth.bytes;
	return share >= OWN_SHARE && share <= share_max && a->unknown < a->left &&
	       launches_in(s->rec, pid, &f->growth) >= LAUNCHES_AN_ALLOC * (double)a->left &&
	       2 * graphs_made_in(s->rec, pid, &f->growth) < f->growth.rises;
}

static int find(const struct detector_input *s, const struct device_allocs *l, struct finding *f)
{
	int64_t own = MAX(s->rec->events[l->entries[f->allocs.end - 1].event].device, 0);
	int64_t gpus[DETECTOR_GPUS_MAX];
	size_t n = detector_gpus(s->rec, gpus);
	int r;

	f->gpu = own;
	r = grows_by(s, l, 1e9, f);
	for (size_t i = 0; r == 0 && i < n; i++) {
		f->gpu = gpus[i];
		if (gpus[i] != own)
			r = grows_by(s, l, OTHER_SHARE_MAX, f);
	}
	return r;
}

/* Steps of the process within the growth. */
static double steps_in(const struct step_account *a, const struct memory_growth *g)
{
	double n = 0;

	for (size_t i = 0; i < a->bar_count; i++) {
		const struct account_bar *b = &a->bars[i];
		int64_t from = MAX(g->first_ns, b->start.ns);
		int64_t to = MIN(g->last_ns, b->start.ns + (int64_t)b->dur_ns);

		if (to > from && b->dur_ns)
			n += b->steps * (double)(to - from) / (double)b->dur_ns;
	}
	return n;
}

static int measure(const struct detector_input *s, uint32_t pid, struct finding *f)
{
	_cleanup_(account_task_done) struct account_task own = {0};
	const struct step_report *accounts = NULL;
	const struct memory_growth *g = &f->growth;
	int r = account_get(s->rec, &own, &accounts);

	f->bytes_per_s = (double)g->bytes / ((double)(g->last_ns - g->first_ns) / 1e9);
	for (size_t i = 0; r == 0 && i < accounts->count; i++) {
		const struct step_account *a = &accounts->items[i];
		double steps = steps_in(a, g);

		if (a->pid == pid && a->origin != STEP_BY_TIME && a->confidence >= SURE_STEPS &&
			steps >= STEPS_MIN) {
			f->bytes_per_step = (double)g->bytes / steps;
			f->origin = a->origin;
		}
	}
	return r;
}

static void explain(const struct finding *f, struct incident *inc)
{
	const struct memory_growth *g = &f->growth;
	_cleanup_buf_ struct buf b = BUF_INIT(sizeof(inc->explanation));

	buf_printf(&b,
		"The driver reports that memory in use on GPU %lld grew in %zu readings%s, and was still growing at the end. Allocations that the process made in that time and never freed account for %.0f %% of it. A framework's pool allocates when it is empty, which need not be where the memory is kept.",
		(long long)f->gpu, g->rises, g->after_level ? " after being stable" : "",
		100 * (double)f->allocs.left_bytes / (double)g->bytes);
	buf_puts(&b, " Work that needs more memory with every step looks the same.");
	if (f->bytes_per_step > 0)
		buf_printf(&b, " Step boundary: %s.", step_origin_text(f->origin));
	if (g->free_bytes < 0)
		buf_puts(&b, " Free memory is not recorded.");
	snprintf(inc->explanation, sizeof(inc->explanation), "%s", buf_str(&b));
}

static void describe(const struct detector_input *s, const struct finding *f, struct incident *inc)
{
	const struct memory_growth *g = &f->growth;
	char rate[TEXT_MAX], step[TEXT_MAX], from[TEXT_MAX], to[TEXT_MAX], took[TEXT_MAX];
	char count[TEXT_PLURAL_MAX], full[LEAK_FULL_MAX], per_step[64] = "";
	double share = (double)f->allocs.left_bytes / (double)g->bytes, n = (double)g->rises;

	leak_allocs_judge(s, &f->allocs, f->bytes_per_s, g->free_bytes,
		(1 - g->bend) * MIN(share, 1.0) * n / (n + 1), inc, full);
	if (f->bytes_per_step > 0)
		snprintf(per_step, sizeof(per_step), ", %s a step",
			text_format_bytes(step, (uint64_t)f->bytes_per_step));
	snprintf(inc->summary, sizeof(inc->summary),
		"GPU memory of %s grows by %s/s%s: from %s to %s in %s, %s never freed%s",
		inc->comm, text_format_bytes(rate, (uint64_t)f->bytes_per_s), per_step,
		text_format_bytes(from, g->start_bytes),
		text_format_bytes(to, g->start_bytes + g->bytes),
		text_format_duration(took, (uint64_t)(g->last_ns - g->first_ns)),
		text_format_plural(count, f->allocs.left, "allocations"), full);
	explain(f, inc);
}

static void add_readings(const struct recording *rec, const struct finding *f, struct incident *inc)
{
	int64_t every = (f->growth.last_ns - f->growth.first_ns) / (READINGS_SHOWN - 1);
	int64_t next = f->growth.first_ns;
	char bytes[TEXT_MAX];

	for (size_t i = 0; i < rec->gpu_count; i++) {
		const struct gpu_sample *g = &rec->gpus[i];

		if (g->index != f->gpu || g->mem_used_bytes < 0 || g->time.ns < next - every / 4 ||
			g->time.ns > f->growth.last_ns)
			continue;
		incident_step(inc, g->time.ns, 0, "GPU", "memory", "GPU %lld: %s in use",
			(long long)f->gpu, text_format_bytes(bytes, (uint64_t)g->mem_used_bytes));
		next += every;
	}
}

/* The name of its main thread is the process's; of a pool's thread it is not. */
static const char *name_of_process(const struct recording *rec, const struct event *row)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->pid == row->pid && e->tid == e->pid && op_kind_is_cuda(e->source))
			return e->comm;
	}
	return row->comm;
}

static int report(const struct detector_input *s, const struct device_allocs *l, struct finding *f,
	struct incident_list *out)
{
	const struct event *row = &s->rec->events[l->entries[f->allocs.newest].event];
	struct incident *inc;
	int r = measure(s, row->pid, f);

	if (r < 0)
		return r;
	inc = incident_begin(out, PROBLEM_MEMORY_LEAK);
	incident_process(inc, row, f->growth.first_ns, f->growth.last_ns);
	snprintf(inc->comm, sizeof(inc->comm), "%s", name_of_process(s->rec, row));
	describe(s, f, inc);
	add_readings(s->rec, f, inc);
	r = leak_allocs_put(s->rec, l, &f->allocs, inc);
	if (r == 0)
		incident_keep(out, inc);
	return r;
}

static bool is_reported(const struct incident_list *out, uint32_t pid)
{
	for (size_t i = 0; i < out->count; i++)
		if (out->items[i].problem == PROBLEM_MEMORY_LEAK && out->items[i].pid == pid)
			return true;
	return false;
}

int detect_growth(const struct detector_input *s, struct incident_list *out)
{
	const struct device_allocs *l = s->allocs;
	size_t end, seen = 0;
	int r = 0;

	if (!growth_is_possible(s->rec))
		return 0;
	for (size_t i = 0; r == 0 && i < l->count && seen++ < PROCESSES_MAX; i = end) {
		struct finding f = {0};

		end = device_allocs_end(l, i);
		leak_allocs_of(s, l, i, end, &f.allocs);
		if (f.allocs.end == i || is_reported(out, l->entries[i].pid))
			continue;
		r = find(s, l, &f);
		if (r > 0)
			r = report(s, l, &f, out);
	}
	return r;
}
