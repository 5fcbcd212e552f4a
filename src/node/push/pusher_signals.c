/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_signals.c - see pusher_signals.h. */
#include "node/push/pusher_signals.h"

#include <math.h>

#include "wire/op_kind.h"

#define LOW_MEMORY     0.05 /* share of the host's memory below which it is short */
#define FAILED_ALLOC   0.5  /* pressure that one failed allocation shows */
#define FAILED_FURTHER 0.1  /* and each further one */

bool pusher_is_launch(const struct recent_calls *c)
{
	return !c->nested && (op_kind_is_graph_launch(c->source, c->op) ||
				     (op_kind_is_cuda(c->source) &&
					     op_kind_line(c->source, c->op) == LEDGER_LAUNCH));
}

uint64_t pusher_activity_add(struct pusher_activity *a, const struct recent_calls *c)
{
	int64_t end = c->bucket_ns + (int64_t)NODEDB_BUCKET_FINE;

	if (c->bucket_ns < a->from_ns || end > a->to_ns + 2 * (int64_t)NODEDB_BUCKET_FINE ||
		!c->count || !pusher_is_launch(c))
		return 0;
	a->to_ns = MAX(a->to_ns, end); /* it is written already */
	a->launches += c->count;
	if (!a->busy_buckets || a->last_busy_ns != c->bucket_ns)
		a->busy_buckets++;
	a->last_busy_ns = c->bucket_ns;
	return c->count;
}

static int64_t window_of(const struct pusher_activity *a)
{
	return MAX(a->to_ns - a->from_ns, (int64_t)NODEDB_BUCKET_FINE);
}

double pusher_launch_rate(const struct pusher_activity *a, uint64_t launches)
{
	return (double)launches * (double)NS_PER_S / (double)window_of(a);
}

static double share(double v)
{
	return fmin(fmax(v, 0), 1);
}

static double memory_pressure(const struct recent_readings *r)
{
	double pressure = 0;

	if (r->psi_memory_pct >= 0)
		pressure = r->psi_memory_pct / 100;
	else if (r->mem_avail_share >= 0)
		pressure = (LOW_MEMORY - r->mem_avail_share) / LOW_MEMORY;
	if (r->failed_allocs)
		pressure = fmax(
			pressure, FAILED_ALLOC + FAILED_FURTHER * (double)(r->failed_allocs - 1));
	return pressure;
}

void pusher_signals_make(const struct pusher_activity *a, const struct recent_readings *r,
	double ret[HEALTH_SIGNAL_COUNT])
{
	double buckets = (double)(window_of(a) / (int64_t)NODEDB_BUCKET_FINE);

	ret[HEALTH_THROUGHPUT] = pusher_launch_rate(a, a->launches);
	ret[HEALTH_COMPUTE] = share(
		r->gpu_busy_pct >= 0 ? r->gpu_busy_pct / 100 : (double)a->busy_buckets / buckets);
	ret[HEALTH_MEMORY] = share(1 - memory_pressure(r));
	ret[HEALTH_CPU] = r->cpu_pct >= 0 ? share(1 - r->cpu_pct / 100) : 1;
}
