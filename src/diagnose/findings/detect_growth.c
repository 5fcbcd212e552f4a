/* SPDX-License-Identifier: Apache-2.0 */
/* detect_growth.c - a leak seen by the driver: memory of a GPU grows steadily to the end
 * (growth_find.c says what that is), and a traced process allocates it.
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
#include <errno.h>
#include <stdio.h>

#include "diagnose/contrasts/account_task.h"
#include "diagnose/findings/growth_find.h"
#include "diagnose/findings/leak_allocs.h"
#include "base/buf.h"
#include "base/text.h"
#include "wire/op_kind.h"

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
