/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_second.c - what the tracer does once a second: read the kernel's aggregates, hand full
 * buckets to the store, set limits, take samples, look for new processes.
 */
#include "record/trace/slow_limits.h"
#include "record/trace/tracer_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FLUSH_TRIES   100 /* of 10 ms */
#define SWEEP_BUCKETS 12  /* of 5 s */
#define WAIT_SECONDS  2   /* a collective that nobody waits for to its end is told of by then */

/* A new file, or one whose old rows were pruned, needs again what is reported only once. */
void tracer_renew_rows(struct tracer *t)
{
	uint64_t generation = t->store ? store_writer_generation(t->store) : 0;

	if (generation != t->store_generation) {
		t->store_generation = generation;
		t->gpu_named = false;
		roster_renew(t->roster, wall_now());
		neighbours_renew(t->neighbours);
		if (t->stacks)
			stacks_renew(t->stacks);
		tracer_renew_names(t);
		t->renewed_due = true;
	}
	if (t->renewed_due)
		t->renewed_due = !store_writer_push_renewed(t->store, generation);
}

static bool push_aggregate(void *arg, const struct aggregate *a)
{
	struct tracer *t = arg;

	if (t->store && !store_writer_push_aggregate(t->store, a))
		return false; /* it comes again with the next bucket */
	explainer_aggregate(t->explainer, a);
	return true;
}

static void set_limits(struct tracer *t)
{
	struct slow_limits limits = {0};
	const struct total *v;
	size_t cursor = 0;

	while ((v = totals_next(t->totals, &cursor))) {
		struct sketch calls = {0};

		sparse_merge(&calls, &v->all);
		slow_limits_add(&limits, v->key.source, v->key.op, &calls);
	}
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++)
		for (unsigned op = 0; op < WIRE_OP_MAX; op++)
			if (limits.ns[s][op])
				probe_limit_set(t->probe, s, op, limits.ns[s][op]);
}

void tracer_books(struct tracer *t, struct accounting *ret)
{
	struct launch_sum launches;

	if (t->stopped) {
		*ret = t->final;
		return;
	}
	*ret = t->own;
	launch_watch_sum(t->launches, &launches);
	ret->launch_watched = launches.watched;
	ret->launch_error = launch_sum_share(&launches);
	for (unsigned s = 0; s < CALIBRATE_SOURCE; s++) {
		struct account *a = &ret->source[s];
		struct wire_tally k;

		probe_tally(t->probe, s, &k);
		a->hits = k.hits;
		a->aggregated += k.aggregated;
		for (int i = 0; i < LOSS_COUNT; i++)
			a->lost[i] += k.lost[i];
		a->lost[LOSS_BAD_RECORD] += reader_bad(t->reader, s);
		if (t->store) {
			uint64_t bare = store_writer_unaggregated(t->store, s);

			a->stored = store_writer_stored(t->store, s);
			a->aggregated -= bare;
			a->lost[LOSS_WRITE_FAILED] += store_writer_failed(t->store, s) + bare;
		}
	}
}

static int flush_bucket(struct tracer *t)
{
	return totals_flush(
		t->totals, (wall_time){t->bucket * (int64_t)NODEDB_BUCKET_FINE}, push_aggregate, t);
}

/* At the end nothing may be refused for want of room: the writer is given time to make some. What
 * it still refuses is a loss. */
int tracer_flush_rest(struct tracer *t)
{
	const struct timespec wait_briefly = {.tv_nsec = 10 * (long)NS_PER_MS};
	const struct total *v;
	size_t cursor = 0;
	int r = flush_bucket(t);

	for (int i = 0; r > 0 && i < FLUSH_TRIES; i++) {
		nanosleep(&wait_briefly, NULL);
		r = flush_bucket(t);
	}
	while (r > 0 && (v = totals_next(t->totals, &cursor))) {
		uint64_t bare = v->bucket.count - v->bucket_stored;

		t->own.source[v->key.source].aggregated -= bare;
		t->own.source[v->key.source].lost[LOSS_QUEUE_FULL] += bare;
	}
	return r < 0 ? r : 0;
}

static void add_launches(void *arg, uint32_t pid, double share)
{
	struct tracer *t = arg;

	if (totals_more(t->totals, pid, share) < 0)
		log_warning("out of memory for aggregates: counts are too low");
}

int tracer_read_totals(struct tracer *t)
{
	mono_time now = mono_now();
	int r;

	launch_watch_weigh(t->launches);
	r = totals_read(t->totals);
	if (r < 0)
		return r;
	launch_watch_more(t->launches, add_launches, t);
	tracer_govern(t, now);
	return r;
}

/* Losses by CPU go to the store when there are any. */
void tracer_cpu_losses(struct tracer *t)
{
	probe_cpu_losses(t->probe, &t->cpu_losses);
	if (t->store && t->cpu_losses.count &&
		!store_writer_push_cpu_losses(t->store, &t->cpu_losses))
		log_warning("the store's queue is full: its losses by CPU are out of date");
}

int tracer_second(struct tracer *t, wall_time now)
{
	struct accounting books;
	int64_t bucket = now.ns / (int64_t)NODEDB_BUCKET_FINE;
	int r = tracer_read_totals(t);

	if (r < 0)
		return r;
	if (bucket != t->bucket) {
		r = flush_bucket(t);
		if (r < 0)
			return r;
		t->bucket = bucket;
		tracer_read_kernels(t);
		tracer_flush_kernels(t);
		tracer_explain_look(t);
		tracer_overhead(t, now);
		if (bucket % SWEEP_BUCKETS == 0)
			tracer_sweep_totals(t);
	} else {
		tracer_read_few_kernels(t); /* so that it is known when each came */
	}
	if (clock_map_refresh(&t->clock))
		log_warning(
			"the wall clock was stepped; times before and after are not comparable");
	t->has_host = host_read(&t->host, now, &t->host_now) == 0;
	if (t->has_host)
		explainer_sample(t->explainer, &t->host_now);
	if (t->store && t->has_host && deadband_admits(&t->deadband, &t->host_now))
		store_writer_push_sample(t->store, &t->host_now);
	tracer_read_containers(t, now);
	tracer_cpu_losses(t);
	if (t->store) {
		tracer_books(t, &books);
		store_writer_push_accounting(t->store, &books);
	}
	waits_expire(t->waits, (wall_time){now.ns - WAIT_SECONDS * (int64_t)NS_PER_S}, now);
	set_limits(t);
	t->map_wakes = 0;
	tracer_sweep_registered(t);
	roster_tick(t->roster);
	process_table_tick(t->processes);
	neighbours_tick(t->neighbours);
	if (t->samples)
		sample_clocks_renew(t->samples);
	return t->settings.cuda_lib ? 0 : tracer_scan(t);
}

static void take_gpu_sample(void *arg, const struct gpu_sample *s)
{
	struct tracer *t = arg;

	if (t->settings.gpu_sink)
		t->settings.gpu_sink(t->settings.event_arg, s);
	explainer_gpu(t->explainer, s);
	if (t->metric_state)
		metric_state_gpu(t->metric_state, s);
	neighbours_share(t->neighbours, s, t->processes, t->store);
	if (t->store && !store_writer_push_gpu_sample(t->store, s))
		log_warning("the store's queue is full: GPU samples are lost");
}

void tracer_poll_gpu(struct tracer *t)
{
	const struct gpu_identity *g;

	gpu_sampler_poll(t->gpu, take_gpu_sample, t);
	g = t->store && !t->gpu_named ? gpu_sampler_identity(t->gpu) : NULL;
	if (g)
		t->gpu_named = store_writer_push_gpu(t->store, g->model, g->driver, g->cuda);
}

enum gpu_state tracer_gpu_state(const struct tracer *t, char *text, size_t size)
{
	return gpu_sampler_state(t->gpu, text, size);
}
