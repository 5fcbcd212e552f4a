/* SPDX-License-Identifier: Apache-2.0 */
/* detect_throttle.c - clocks that were lowered, and what that cost.
 *
 * throttle_find.c says when. The waits of each process for its GPU (synchronisations: all of them are
 * stored) are divided into those that began in such a time and the others. They became slower if
 * mean and median are both 15 % above those outside and 8 waits of each kind are known: less is
 * jitter. Excess = what the waits inside took beyond the mean outside; explained = its share of
 * that of all waits above that mean, inside or not.
 *
 * A clock that is lower by a tenth cannot have cost more than a tenth of the time in which the GPU
 * was busy: of an excess beyond that the rest is something else, a larger batch as a rule. Where
 * the clocks explain less than half of it, they are not the reason.
 *
 * What contention for CPU or disk cost the same waits, by the incidents of slow calls, is taken off
 * first. MEDIUM if what is left is half of the excess and 1 % of the throttled time or more. LOW:
 * throttled, but nothing became slower by it, or nothing can be compared.
 * Confidence = explained x n/(n+8) x completeness, n the waits inside; 0.9 for a LOW note, which
 * claims no effect. GPUs are matched to processes by number (CUDA's and NVML's, which differ where
 * CUDA_VISIBLE_DEVICES renumbers them); a single GPU is everybody's. */
#include <errno.h>
#include <stdio.h>

#include "diagnose/compose/detector.h"
#include "diagnose/calls/baseline.h"
#include "diagnose/units/step.h"
#include "diagnose/findings/throttle_find.h"
#include "base/text.h"
#include "stat/robust.h"

#define SLOWER      1.15
#define LEAST_WAITS 8
#define LEAST_SHARE 0.01
#define WAITS_HALF  8.0
#define GPUS_MAX    64

struct waits {
	uint64_t *in, *out; /* durations */
	size_t in_count, out_count;
	uint64_t in_ns, out_ns;
	const struct event *example; /* the longest inside */
};

static void waits_done(struct waits *w)
{
	free(w->in);
	free(w->out);
}

static bool is_good_wait(const struct event *e)
{
	return step_is_wait(e) && baseline_is_sane(e) && !e->ret;
}

static int by_process(const void *a, const void *b)
{
	const struct event *x = *(const struct event *const *)a;
	const struct event *y = *(const struct event *const *)b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start.ns != y->start.ns)
		return x->start.ns < y->start.ns ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

struct wait_list { /* all waits of the recording, by process */
	const struct event **events;
	size_t count;
};

static void wait_list_done(struct wait_list *l)
{
	free(l->events);
}

static int wait_list_init(struct wait_list *l, const struct recording *rec)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->event_count; i++)
		n += is_good_wait(&rec->events[i]);
	l->events = calloc(n + 1, sizeof(*l->events));
	if (!l->events)
		return -ENOMEM;
	for (size_t i = 0; i < rec->event_count; i++)
		if (is_good_wait(&rec->events[i]))
			l->events[l->count++] = &rec->events[i];
	qsort(l->events, l->count, sizeof(*l->events), by_process);
	return 0;
}

/* @events: the @n waits of one process. */
static int divide_waits(const struct gpu_throttle_spans *g, bool only_gpu,
	const struct event **events, size_t n, struct waits *ret)
{
	*ret = (struct waits){0};
	ret->in = calloc(n + 1, sizeof(*ret->in));
	ret->out = calloc(n + 1, sizeof(*ret->out));
	if (!ret->in || !ret->out)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct event *e = events[i];

		if (!only_gpu && MAX(e->device, 0) != g->index)
			continue;
		if (throttle_at(g, e->start.ns)) {
			ret->in[ret->in_count++] = e->dur_ns;
			ret->in_ns += e->dur_ns;
			if (!ret->example || e->dur_ns > ret->example->dur_ns)
				ret->example = e;
		} else if (e->start.ns >= g->first_ns && e->start.ns < g->last_ns) {
			ret->out[ret->out_count++] = e->dur_ns;
			ret->out_ns += e->dur_ns;
		}
	}
	robust_sort(ret->in, ret->in_count);
	robust_sort(ret->out, ret->out_count);
	return 0;
}

/* What contention cost the waits of @pid within the throttled time. */
static double contended_ns(
	const struct incident_list *l, const struct gpu_throttle_spans *g, uint32_t pid)
{
	double sum = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct incident *x = &l->items[i];
		const struct event like = {.source = x->source, .op = x->op};
		bool slow = x->problem == PROBLEM_SLOW_CALL ||
			    x->problem == PROBLEM_CPU_CONTENTION ||
			    x->problem == PROBLEM_NOISY_NEIGHBOUR;

		if (slow && x->pid == pid && is_good_wait(&like) &&
			x->severity >= SEVERITY_MEDIUM &&
			x->last.ns >= g->throttle_spans[0].start_ns &&
			x->first.ns <= g->throttle_spans[g->count - 1].end_ns)
			sum += x->explained * (double)x->excess_ns;
	}
	return sum;
}

static double above(const uint64_t *v, size_t n, double mean)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)v[i] > mean ? (double)v[i] - mean : 0;
	return sum;
}

static void describe(const struct gpu_throttle_spans *g, const char *effect, struct incident *inc)
{
	char names[96], dur[TEXT_MAX], readings[TEXT_PLURAL_MAX], clocks[96] = "";

	if (g->bits)
		gpu_throttle_text(g->bits, names, sizeof(names));
	else
		snprintf(names, sizeof(names), "no reason given");
	if (g->clock_inside > 0 && g->clock_outside > 0)
		snprintf(clocks, sizeof(clocks), ", clock %lld MHz instead of %lld",
			(long long)g->clock_inside, (long long)g->clock_outside);
	snprintf(inc->summary, sizeof(inc->summary), "GPU %lld throttled for %s (%s%s): %s",
		(long long)g->index, text_format_duration(dur, (uint64_t)g->ns), names, clocks,
		effect);
	if (g->bits)
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"throttling: the driver lowered the clocks (%s)", names);
	else
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"lowered clock: the GPU was busy at %lld MHz instead of %lld; the driver gives no reason, as with locked clocks",
			(long long)g->clock_inside, (long long)g->clock_outside);
	if (!g->bits)
		incident_fix(inc,
			"Look for locked clocks: `nvidia-smi -q -d CLOCK`; `nvidia-smi -rgc` unlocks them");
	inc->count = g->count;
	inc->unit = "throttled readings";
	incident_step(inc, g->throttle_spans[0].start_ns, (uint64_t)g->ns, "GPU", "throttle",
		"GPU %lld: %s%s, in %zu of %s", (long long)g->index, names, clocks, g->count,
		text_format_plural(readings, g->readings, "readings"));
	incident_sql(inc,
		"SELECT timestamp, gpu, throttle_reasons, sm_clock_mhz, power_mw, temperature_c "
		"FROM gpu_samples WHERE gpu = %lld AND timestamp BETWEEN %lld AND %lld ORDER BY "
		"timestamp",
		(long long)g->index, (long long)g->first_ns, (long long)g->last_ns);
}

/* Returns whether the process became slower and that was reported. */
static bool report_slower(const struct detector_input *s, const struct gpu_throttle_spans *g,
	const struct waits *w, struct incident_list *out)
{
	double in, outside, excess, contended, possible;
	char was[TEXT_MAX], is[TEXT_MAX], effect[128];
	char n[TEXT_PLURAL_MAX], others[TEXT_PLURAL_MAX];
	struct incident *inc;
	uint32_t pid;

	if (w->in_count < LEAST_WAITS || w->out_count < LEAST_WAITS)
		return false;
	pid = w->example->pid;
	in = (double)w->in_ns / (double)w->in_count;
	outside = (double)w->out_ns / (double)w->out_count;
	excess = in > outside ? (in - outside) * (double)w->in_count : 0;
	contended = MIN(contended_ns(out, g, pid), excess);
	if (contended > excess / 2)
		return false;
	excess -= contended;
	possible = MIN(throttle_most_ns(g), excess);
	if (possible < excess / 2)
		return false; /* it has more to do, or something else is slower */
	if (in < SLOWER * outside || excess < LEAST_SHARE * (double)g->ns ||
		(double)robust_median(w->in, w->in_count) <
			SLOWER * (double)robust_median(w->out, w->out_count))
		return false;
	incident_cover(out, pid, g->first_ns, g->last_ns);
	inc = incident_begin(out, PROBLEM_THROTTLE);
	if (!inc)
		return true;
	incident_process(inc, w->example, g->throttle_spans[0].start_ns,
		g->throttle_spans[g->count - 1].end_ns);
	text_format_duration(was, (uint64_t)outside);
	text_format_duration(is, (uint64_t)in);
	snprintf(effect, sizeof(effect), "waits of %s take %s instead of %s", w->example->comm, is,
		was);
	describe(g, effect, inc);
	inc->severity = SEVERITY_MEDIUM;
	inc->excess_ns = (uint64_t)excess;
	inc->explained = above(w->in, w->in_count, outside);
	inc->explained *=
		possible / excess / (inc->explained + above(w->out, w->out_count, outside));
	inc->completeness = s->completeness;
	inc->confidence = inc->explained * (double)w->in_count /
			  ((double)w->in_count + WAITS_HALF) * completeness_weight(s->completeness);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%s of pid %u for the GPU began while clocks were lowered and took %s "
		"on average; %s in the same period took %s.",
		text_format_plural(n, w->in_count, "waits"), pid, is,
		text_format_plural(others, w->out_count, "other waits"), was);
	incident_step(inc, w->example->start.ns, w->example->dur_ns, "CUDA", "wait",
		"the longest wait meanwhile");
	incident_evidence(inc, w->example);
	incident_keep(out, inc);
	return true;
}

static void report_note(const struct detector_input *s, const struct gpu_throttle_spans *g,
	bool compared, struct incident_list *out)
{
	struct incident *inc = incident_begin(out, PROBLEM_THROTTLE);

	if (!inc)
		return;
	incident_id(inc, 0, g->throttle_spans[0].start_ns);
	inc->last.ns = g->throttle_spans[g->count - 1].end_ns;
	describe(g,
		compared ? "no traced process became slower because of it"
			 : "nothing to compare with, so the effect is unknown",
		inc);
	snprintf(inc->explanation, sizeof(inc->explanation), "%s The GPU is sampled once a second.",
		compared
			? "The waits of each process during the throttled time were compared with "
			  "its "
			  "other waits."
			: "No process has enough waits both during and outside the throttled time.");
	inc->severity = SEVERITY_LOW;
	inc->confidence = 0.9;
	inc->completeness = s->completeness;
	incident_keep(out, inc);
}

static int judge_gpu(const struct detector_input *s, const struct wait_list *waits, int64_t index,
	bool only_gpu, struct incident_list *out)
{
	_cleanup_(throttle_done) struct gpu_throttle_spans g = {0};
	bool reported = false, compared = false;
	int r = throttle_find(s->rec, index, &g);
	size_t end;

	if (r < 0 || !g.count)
		return r;
	for (size_t i = 0; i < waits->count; i = end) {
		_cleanup_(waits_done) struct waits w = {0};

		for (end = i;
			end < waits->count && waits->events[end]->pid == waits->events[i]->pid;)
			end++;
		r = divide_waits(&g, only_gpu, &waits->events[i], end - i, &w);
		if (r < 0)
			return r;
		compared = compared || (w.in_count >= LEAST_WAITS && w.out_count >= LEAST_WAITS);
		reported = report_slower(s, &g, &w, out) || reported;
	}
	if (!reported && g.bits)
		report_note(s, &g, compared, out);
	return 0;
}

int detect_throttle(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(wait_list_done) struct wait_list waits = {0};
	int64_t seen[GPUS_MAX];
	int count = 0, r;

	if (!s->rec->gpu_count)
		return 0;
	r = wait_list_init(&waits, s->rec);
	for (size_t i = 0; i < s->rec->gpu_count && count < GPUS_MAX; i++) {
		int k = 0;

		while (k < count && seen[k] != s->rec->gpus[i].index)
			k++;
		if (k == count)
			seen[count++] = s->rec->gpus[i].index;
	}
	for (int i = 0; r == 0 && i < count; i++)
		r = judge_gpu(s, &waits, seen[i], count == 1, out);
	return r;
}
