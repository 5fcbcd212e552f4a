/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/gpu_change.h"

#include <string.h>

#include "base/macros.h"
#include "diagnose/chains/delay_weight.h"
#include "diagnose/rows/rank_jobs.h"
#include "diagnose/thresholds.h"

#define GPUS_MAX 64

struct mean {
	double sum, most;
	size_t count;
};

static void take(struct mean *m, int64_t value)
{
	if (value < 0)
		return;
	m->sum += (double)value;
	m->most = MAX(m->most, (double)value);
	m->count++;
}

static double value_of(const struct mean *m)
{
	return m->count ? m->sum / (double)m->count : 0;
}

static bool grew(const struct mean of[2])
{
	return value_of(&of[PACE_SLOW]) > THRESHOLD(WORK_RATIO) * value_of(&of[PACE_ORDINARY]) &&
	       of[PACE_ORDINARY].count;
}

/* Whether something more would show in it. */
static bool can_grow(const struct mean *m, double limit)
{
	return THRESHOLD(WORK_RATIO) * m->most < limit;
}

/* Of the GPU @index; @ranks has the job. */
static void compare_readings(const struct recording *rec, const struct step_account *a,
	int64_t index, int64_t ranks, struct gpu_change *ret)
{
	struct mean clocks[2] = {0}, processes[2] = {0}, busy[2] = {0}, power[2] = {0};

	for (size_t i = 0; i < rec->gpu_count; i++) {
		const struct gpu_sample *g = &rec->gpus[i];
		enum pace pace = pace_at(a, g->time.ns);

		if (g->index != index || pace == PACE_MIXED)
			continue;
		take(&processes[pace], rank_jobs_processes(rec, g, ranks));
		take(&busy[pace], g->util_gpu_pct);
		take(&power[pace], g->power_mw);
		if (g->util_gpu_pct == 0 || gpu_sample_is_idle(g))
			continue;
		take(&clocks[pace], g->sm_clock_mhz);
		if (pace == PACE_SLOW)
			ret->readings++;
		else
			ret->ordinary_limit_mw = g->power_limit_mw;
	}
	ret->ordinary_clock_mhz = value_of(&clocks[PACE_ORDINARY]);
	ret->slow_clock_mhz = value_of(&clocks[PACE_SLOW]);
	ret->ordinary_processes = value_of(&processes[PACE_ORDINARY]);
	ret->slow_processes = value_of(&processes[PACE_SLOW]);
	ret->ordinary_mw = value_of(&power[PACE_ORDINARY]);
	ret->slow_mw = value_of(&power[PACE_SLOW]);
	ret->is_busier = grew(busy) || grew(power);
	ret->is_full = !can_grow(&busy[PACE_ORDINARY], 100) &&
		       !can_grow(&power[PACE_ORDINARY], (double)ret->ordinary_limit_mw);
	ret->is_compared = busy[PACE_ORDINARY].count && busy[PACE_SLOW].count;
}

static double clock_drop(const struct gpu_change *g)
{
	return g->slow_clock_mhz > 0 ? g->ordinary_clock_mhz / g->slow_clock_mhz : 0;
}

static bool differs_more(const struct gpu_change *g, const struct gpu_change *than)
{
	if (clock_drop(g) > 1 + THRESHOLD(GPU_CLOCK_DROP) ||
		clock_drop(than) > 1 + THRESHOLD(GPU_CLOCK_DROP))
		return clock_drop(g) > clock_drop(than);
	return g->slow_processes - g->ordinary_processes >
	       than->slow_processes - than->ordinary_processes;
}

int64_t gpu_change_gpus(const struct recording *rec)
{
	int64_t count = 0;

	for (size_t i = 0; i < rec->gpu_count; i++)
		count = MAX(count, rec->gpus[i].index + 1);
	return MIN(count, (int64_t)GPUS_MAX);
}

/* Which GPU is the job's is not in the recording: the one that changed most while its steps were slow counts. One of
 * several that is held back holds back all that work together with it. */
static void compare_gpus(
	const struct recording *rec, const struct step_account *a, struct gpu_change *ret)
{
	const struct gpu_change empty = *ret;
	int64_t count = gpu_change_gpus(rec), ranks;
	struct rank_jobs jobs;

	rank_jobs_find(rec, &jobs);
	ranks = (int64_t)rank_jobs_ranks(rec, &jobs, a->pid);

	for (int64_t k = 0; k < count; k++) {
		struct gpu_change g = empty;

		compare_readings(rec, a, k, ranks, &g);
		if (g.readings && (!ret->readings || differs_more(&g, ret)))
			*ret = g;
	}
}

static bool has_more_bytes(const struct step_account *a)
{
	return a->slow_bytes > THRESHOLD(WORK_RATIO) * a->ordinary_bytes + THRESHOLD(WORK_BYTES);
}

static bool has_more_work(const struct step_account *a)
{
	return (a->ordinary_launches > 0 &&
		       a->slow_launches > THRESHOLD(WORK_RATIO) * a->ordinary_launches +
						  THRESHOLD(WORK_LAUNCHES)) ||
	       has_more_bytes(a);
}

static bool has_more_waits(const struct step_account *a)
{
	return a->slow_waits > 2 * a->ordinary_waits + 1;
}

/* Whether other kernels are the reason, though there is more work: that explains what grows with it, half of it at least. */
static bool kernels_explain(const struct step_account *a, const struct gpu_change *g, double longer)
{
	double launches = a->slow_launches / MAX(a->ordinary_launches, 1.0);
	double bytes = a->slow_bytes / MAX(a->ordinary_bytes, THRESHOLD(WORK_BYTES));

	return g->kernels.added_count && !has_more_waits(a) &&
	       MAX(launches, bytes) - 1 < (longer - 1) / 2;
}

/* The part of another thread in what the steps wait longer for the GPU, if it is most of that; NULL: it is not. That
 * autograd's threads wait in the place of the one that runs the steps is as usual. */
static const struct account_entry *find_thread(const struct step_account *a)
{
	int64_t grown = (int64_t)a->slow_ns[ACCOUNT_GPU] - (int64_t)a->ordinary_ns[ACCOUNT_GPU];

	for (int i = 0; i < a->entry_count; i++) {
		const struct account_entry *e = &a->entries[i];
		int64_t more = account_entry_growth(e);

		if (e->line == ACCOUNT_GPU && e->owner == OWNER_THREAD && 2 * more > grown &&
			(double)e->ordinary_ns * THRESHOLD(FAR_MORE) < (double)e->slow_ns &&
			strncmp(e->comm, "pt_autograd", strlen("pt_autograd")))
			return e;
	}
	return NULL;
}

static bool has_come(const struct gpu_change *g)
{
	return g->ordinary_processes > 0 &&
	       g->slow_processes > g->ordinary_processes + THRESHOLD(GPU_NEIGHBOURS);
}

/* What has been on the GPU all along may have begun to use it. Its calls are not seen, but the GPU is: it draws more power
 * or is busier in steps that ask no more of it than before, since some moment, or it could not be busier. Without
 * readings it is no more than a guess. */
static bool has_begun(const struct step_account *a, const struct gpu_change *g)
{
	return g->slow_processes > 1 + THRESHOLD(GPU_NEIGHBOURS) &&
	       (g->is_busier || g->is_full || !g->is_compared) && !a->is_drift &&
	       delay_is_lasting(a);
}

/* A lower clock makes steps longer in the same ratio at most: where that explains less than half and
 * another process uses the GPU, or the steps have more work or other kernels, that lowers the clock, too (a
 * GPU at its power limit). Nor is a little more work the reason where other kernels run and take far longer. */
static enum gpu_reason reason_of(const struct step_account *a, const struct gpu_change *g)
{
	bool shows = g->is_busier || (g->is_full && !has_more_work(a));
	bool beside = g->others.count || (has_come(g) && shows);
	double longer = (double)a->slow_step_ns / (double)MAX(a->ordinary_step_ns, UINT64_C(1));
	bool explains = clock_drop(g) > 1 + THRESHOLD(GPU_CLOCK_DROP) &&
			clock_drop(g) - 1 >= (longer - 1) / 2;

	if (beside && !explains)
		return GPU_BY_NEIGHBOUR;
	if (explains)
		return GPU_BY_CLOCK;
	if (has_more_work(a) && !kernels_explain(a, g, longer))
		return GPU_BY_WORK;
	if (a->is_varied && !g->thread && !has_more_waits(a))
		return GPU_BY_VARIETY;
	if (g->kernels.added_count && !has_more_waits(a))
		return GPU_BY_KERNELS;
	if (g->call.source && !has_more_waits(a))
		return GPU_BY_CALLS;
	if (has_begun(a, g) &&
		!has_more_waits(a)) /* more likely than a clock that is a little lower */
		return GPU_BY_NEIGHBOUR;
	if (g->thread)
		return GPU_BY_THREAD;
	if (has_more_waits(a))
		return GPU_BY_WAITS;
	/* The same launches may have larger arrays to work on: it does more, and nobody else is there. */
	if (g->is_busier && g->slow_processes > 0)
		return GPU_BY_WORK;
	return a->is_staged ? GPU_BY_VARIETY : GPU_BY_NOTHING;
}

int gpu_change_find(
	const struct recording *rec, const struct step_account *a, struct gpu_change *ret)
{
	int r;

	*ret = (struct gpu_change){.ordinary_limit_mw = -1};
	compare_gpus(rec, a, ret);
	gpu_others_find(rec, a, &ret->others);
	call_added_find(rec, a, &ret->call);
	r = kernel_change_find(rec, a, &ret->kernels);
	ret->thread = find_thread(a);
	ret->reason = reason_of(a, ret);
	return r;
}

bool gpu_change_holds_copies(const struct step_account *a, const struct gpu_change *g)
{
	return g->reason == GPU_BY_NEIGHBOUR && g->others.is_new && !has_more_bytes(a) &&
	       !(g->slow_processes > 0 && g->slow_processes <= 1);
}
