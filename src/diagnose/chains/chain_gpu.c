/* SPDX-License-Identifier: Apache-2.0 */
/* chain_gpu.c - why the GPU keeps steps waiting, as far as a resource is the reason: its clock (by a limit that somebody
 * set, its power or its heat) or another process. That it has more or other work is the program's own doing
 * (gpu_change.h), and leads nowhere further. */
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/rows/home.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/rows/rank_jobs.h"
#include "diagnose/thresholds.h"

#define THROTTLE_POWER (UINT64_C(4) | 128) /* software power cap, hardware power brake */
#define THROTTLE_HEAT  (UINT64_C(32) | 64) /* software and hardware thermal slowdown */
#define THROTTLE_HARD  UINT64_C(8)         /* of either kind */
#define STRANGERS_MAX  32

/* Readings of a GPU at work in the time that counts; of several GPUs those of the one with the lowest clock. */
struct readings {
	size_t count, power, heat, at_limit;
	size_t low; /* of these, with a low clock */
	double clock_mhz, highest_mhz;
	int64_t limit_mw, most_c;
	int64_t usual_mw; /* the power limit that it was made for, or had at another time */
};

static void take(struct readings *r, const struct gpu_sample *g)
{
	uint64_t reasons = g->throttle_reasons > 0 ? (uint64_t)g->throttle_reasons : 0;
	bool is_hot = (double)g->temperature_c >= THRESHOLD(GPU_HOT);

	r->count++;
	r->clock_mhz += (double)g->sm_clock_mhz;
	r->heat += reasons & THROTTLE_HEAT || (reasons & THROTTLE_HARD && is_hot);
	r->power += reasons & THROTTLE_POWER || (reasons & THROTTLE_HARD && !is_hot);
	r->at_limit += g->power_limit_mw > 0 &&
		       (double)g->power_mw >= THRESHOLD(GPU_NEAR) * (double)g->power_limit_mw;
	r->limit_mw = g->power_limit_mw;
	r->most_c = MAX(r->most_c, g->temperature_c);
}

static bool is_at_work(const struct chain *c, const struct gpu_sample *g, int64_t index)
{
	return g->index == index && chain_time(c, g->time.ns) && g->sm_clock_mhz > 0 &&
	       !gpu_sample_is_idle(g) &&
	       (double)g->util_gpu_pct >= (c->has_slow ? 1 : THRESHOLD(GPU_BUSY));
}

static struct readings read_gpu(const struct chain *c, int64_t index)
{
	struct readings r = {.limit_mw = -1, .usual_mw = -1, .most_c = -1};
	int64_t highest = 0;

	for (size_t i = 0; i < c->rec->gpu_count; i++) {
		const struct gpu_sample *g = &c->rec->gpus[i];

		if (g->index != index)
			continue;
		highest = MAX(highest, g->sm_clock_mhz);
		highest = MAX(highest, g->sm_clock_max_mhz);
		r.usual_mw = MAX(r.usual_mw, g->power_limit_mw);
		r.usual_mw = MAX(r.usual_mw, g->power_default_mw);
		if (is_at_work(c, g, index))
			take(&r, g);
	}
	for (size_t i = 0; i < c->rec->gpu_count; i++)
		r.low += is_at_work(c, &c->rec->gpus[i], index) &&
			 (double)c->rec->gpus[i].sm_clock_mhz <
				 THRESHOLD(GPU_LOW_CLOCK) * (double)highest;
	if (r.count) {
		r.clock_mhz /= (double)r.count;
		r.highest_mhz = (double)highest;
	}
	return r;
}

static struct readings read_slowest(const struct chain *c)
{
	struct readings worst = {0};
	int64_t count = gpu_change_gpus(c->rec);

	for (int64_t k = 0; k < count; k++) {
		struct readings r = read_gpu(c, k);

		if (r.count >= (c->has_slow ? 1 : THRESHOLD(AGAIN)) &&
			(!worst.count || r.clock_mhz < worst.clock_mhz))
			worst = r;
	}
	return worst;
}

static bool is_most(const struct readings *r, size_t n)
{
	return (double)n >= THRESHOLD(CHAIN_MOST) * (double)r->count && n;
}

static void clock_text(double now_mhz, double usual_mhz, struct resource_use *ret)
{
	snprintf(ret->detail, sizeof(ret->detail), "%.0f instead of %.0f MHz", now_mhz, usual_mhz);
}

/* What holds the clock down, by its own evidence. A limit that nobody reports as a reason is one that somebody
 * set: neither power nor heat keep it down. */
static enum resource held_by(
	const struct readings *r, int64_t usual_limit_mw, struct resource_use *ret)
{
	size_t n = strlen(ret->detail);
	bool is_lowered = r->limit_mw > 0 && usual_limit_mw > 0 &&
			  (double)r->limit_mw < THRESHOLD(GPU_NEAR) * (double)usual_limit_mw;

	if (is_most(r, r->heat)) {
		snprintf(ret->detail + n, sizeof(ret->detail) - n, ", %lld °C",
			(long long)r->most_c);
		return RESOURCE_GPU_HEAT;
	}
	if (!is_most(r, r->power) && !is_most(r, r->at_limit))
		return RESOURCE_GPU_CLOCK;
	if (is_lowered)
		snprintf(ret->detail + n, sizeof(ret->detail) - n,
			", power limit %.0f instead of %.0f W", (double)r->limit_mw / 1000,
			(double)usual_limit_mw / 1000);
	else if (r->limit_mw > 0)
		snprintf(ret->detail + n, sizeof(ret->detail) - n, ", power limit %.0f W",
			(double)r->limit_mw / 1000);
	return RESOURCE_GPU_POWER;
}

/* The clock was lower while steps were slow. */
static bool by_lower_clock(
	const struct chain *c, const struct gpu_change *g, struct resource_use *ret)
{
	struct readings r = read_slowest(c);
	double ratio = g->slow_clock_mhz > 0 ? g->ordinary_clock_mhz / g->slow_clock_mhz : 0;
	double longer =
		(double)c->a->slow_step_ns / (double)MAX(c->a->ordinary_step_ns, UINT64_C(1));

	clock_text(g->slow_clock_mhz, g->ordinary_clock_mhz, ret);
	ret->resource = RESOURCE_GPU_CLOCK;
	if (r.count)
		ret->resource = held_by(&r, MAX(g->ordinary_limit_mw, r.usual_mw), ret);
	ret->share = longer > 1 && ratio > 1 ? MIN((ratio - 1) / (longer - 1), 1.0) : 0;
	return true;
}

/* The clock is low in all steps, against the highest that the GPU has: had it been low in a part of them alone, these
 * would be slow, or it does not matter. At the power limit that it was made for a GPU
 * lowers its clock under heavy work: that is as it should be. */
static bool by_low_clock(const struct chain *c, struct resource_use *ret)
{
	struct readings r = read_slowest(c);

	if (!r.count || (double)r.low < THRESHOLD(GPU_LASTING) * (double)r.count)
		return false;
	clock_text(r.clock_mhz, r.highest_mhz, ret);
	ret->resource = held_by(&r, r.usual_mw, ret);
	if (ret->resource == RESOURCE_GPU_POWER &&
		!(r.usual_mw > 0 && (double)r.limit_mw < THRESHOLD(GPU_NEAR) * (double)r.usual_mw))
		return false;
	ret->share = 1 - r.clock_mhz / r.highest_mhz;
	return true;
}

/* The process other than the job's that is on the GPU in most readings of steps that count, beyond what it was in
 * others; 0: none is named. */
static uint32_t stranger_of(const struct chain *c)
{
	struct {
		uint32_t pid;
		int64_t more;
	} seen[STRANGERS_MAX] = {0};
	int count = 0, best = 0;
	struct rank_jobs jobs;

	rank_jobs_find(c->rec, &jobs);
	for (size_t i = 0; i < c->rec->gpu_count; i++)
		for (int k = 0; k < GPU_PROCESSES_NAMED; k++) {
			const struct gpu_sample *g = &c->rec->gpus[i];
			uint32_t pid = gpu_sample_process(g, k);
			int at = 0;

			if (!pid || pid == c->a->pid || home_is_mps_server(c->rec, pid) ||
				rank_jobs_same(c->rec, &jobs, c->a->pid, pid))
				continue;
			while (at < count && seen[at].pid != pid)
				at++;
			if (at == STRANGERS_MAX)
				continue;
			count = MAX(count, at + 1);
			seen[at].pid = pid;
			seen[at].more += chain_time(c, g->time.ns) ? 2 : -1;
			best = seen[at].more > seen[best].more ? at : best;
		}
	return seen[best].more > 0 ? seen[best].pid : 0;
}

/* That both are there says nothing where none is slow; where one is slow while the other begins the same number will do. */
static bool is_same_gpu(const struct chain *c, const struct gpu_others *o)
{
	return gpu_others_relation(o) >= (c->has_slow ? GPU_RELATION_NUMBER : GPU_RELATION_SAME);
}

static bool by_others(const struct chain *c, const struct gpu_others *o, struct resource_use *ret)
{
	ret->resource =
		!o->count || is_same_gpu(c, o) ? RESOURCE_GPU_PROCESS : RESOURCE_GPU_PERHAPS;
	ret->is_doubtful =
		o->count && !c->has_slow && gpu_others_relation(o) == GPU_RELATION_UNKNOWN;
	/* Alone it has what it has now and what they have: of n processes that take turns, each 1/n. */
	ret->share = c->has_slow ? 1
				 : MIN(o->named[0].calls[PACE_SLOW],
					   (double)o->count / (double)(o->count + 1));
	if (!o->count) { /* the GPU counts them, but they are not followed */
		ret->pid = stranger_of(c);
		if (ret->pid)
			process_words(c->rec, ret->pid, "", ret->who);
		return true;
	}
	process_words(c->rec, o->named[0].pid, o->named[0].comm, ret->who);
	ret->pid = o->count == 1 ? o->named[0].pid : 0;
	ret->count = (uint32_t)o->count;
	snprintf(ret->detail, sizeof(ret->detail), "in calls %.0f %% of the time",
		100 * o->named[0].calls[PACE_SLOW]);
	return true;
}

bool chain_gpu(const struct chain *c, struct resource_use *ret)
{
	struct gpu_others others;

	if (c->has_slow) {
		if (!c->gpu || (c->line == ACCOUNT_COPY && !gpu_change_holds_copies(c->a, c->gpu)))
			return false;
		if (c->gpu->reason == GPU_BY_NEIGHBOUR)
			return by_others(c, &c->gpu->others, ret);
		return c->gpu->reason == GPU_BY_CLOCK && by_lower_clock(c, c->gpu, ret);
	}
	if (c->line == ACCOUNT_COPY)
		return false;
	if (by_low_clock(c, ret))
		return true;
	*ret = (struct resource_use){0};
	gpu_others_all(c->rec, c->a, &others);
	return others.count && by_others(c, &others, ret);
}
