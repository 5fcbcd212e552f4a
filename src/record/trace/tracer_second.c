/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_second.c - what the tracer does once a second: read the kernel's aggregates, hand full
 * buckets to the store, set limits, take samples, look for new processes.
 */
#include <time.h>

#include "base/spawn.h"
#include "record/attach/uprobe.h"
#include "record/capture/group_folder.h"
#include "record/trace/process_table.h"
#include "record/trace/tracer_private.h"

/* What threads spent their time on, and what control groups were denied, on their way
 * to the explainer and the store. Runs on the tracer's thread. */

void tracer_ledger(struct tracer *t, const struct ledger_row *row)
{
	struct account *own = &t->own.source[SOURCE_HOST];

	if (row->mark == MARK_OPTIMIZER)
		cost_trial_mark(&t->trial, row->pid, (wall_time){ledger_end_ns(row)});
	if (row->mark == MARK_STAY)
		tracer_enter_waker(t, row);
	explainer_ledger(t->explainer, row);
	if (!t->store)
		own->aggregated++; /* the books: it was seen, and nobody wants it as a row */
	else if (!store_writer_push_ledger(t->store, row))
		own->lost[LOSS_QUEUE_FULL]++;
}

/* The folder of one of its hierarchies; false: there is none, or it cannot be seen from here. */
static bool find_folder(struct tracer *t, const struct roster_group *g, const char *path,
	const char *controller, struct group_folder *ret)
{
	bool is_memory = controller && !strcmp(controller, "memory");
	const struct group_asked asked = {
		.id = g->cgroup_id ^ (uint64_t)is_memory << 62, /* it has two folders */
		.pid = g->pid,
		.path = path,
		.controller = controller,
	};
	const struct group_folder *found =
		path ? group_folders_find(t->group_folders, &asked) : NULL;

	if (found)
		*ret = *found;
	return found;
}

static bool read_group(
	struct tracer *t, const struct roster_group *g, wall_time now, struct container_sample *ret)
{
	struct group_folder folder, memory;
	bool has_folder = find_folder(t, g, g->path, g->is_v1 ? "cpu" : NULL, &folder);
	bool has_memory = find_folder(t, g, g->memory_path, "memory", &memory);

	return (has_folder || has_memory) &&
	       container_read("", has_folder ? &folder : NULL, has_memory ? &memory : NULL,
		       g->cgroup_id, now, ret) == 0;
}

static void tracer_read_containers(struct tracer *t, wall_time now)
{
	struct roster_group groups[CONTAINER_GROUPS_MAX];
	size_t count = roster_groups(t->roster, groups, CONTAINER_GROUPS_MAX);
	bool is_full = false;

	for (size_t i = 0; i < count; i++) {
		struct container_sample s;

		if (!read_group(t, &groups[i], now, &s))
			continue;
		explainer_container(t->explainer, &s);
		if (t->store)
			is_full = !store_writer_push_row(t->store, &s) || is_full;
	}
	if (is_full)
		log_warning("the store's queue is full: samples of control groups are lost");
}

/* Annotations: lines come in by the socket, go to the store, and are acknowledged
 * once they are committed. Runs on the tracer's thread, between records. */

#define ACK_TRIES    50 /* of 10 ms */
#define ACKS_AT_ONCE 64

static bool put_annotation(void *arg, const struct annotation *a, uint64_t ticket)
{
	struct tracer *t = arg;

	return t->store && store_writer_push_annotation(t->store, a, ticket);
}

void tracer_serve_annotations(struct tracer *t)
{
	struct store_ack acks[ACKS_AT_ONCE];
	size_t n;

	if (!t->annotate)
		return;
	while ((n = store_writer_take_acks(t->store, acks, ARRAY_SIZE(acks))))
		for (size_t i = 0; i < n; i++)
			annotate_server_ack(t->annotate, acks[i].ticket, acks[i].id);
	annotate_server_poll(t->annotate);
}

int tracer_open_annotations(struct tracer *t, struct errinfo *reterr)
{
	const struct tracer_settings *s = &t->settings;
	int fd, r;

	if (!s->annotate_path || !t->store)
		return 0;
	r = socket_path_bind(s->annotate_path,
		s->annotate_gid < 0 ? SOCKET_NO_GROUP : (gid_t)s->annotate_gid, &fd, reterr);
	if (r < 0)
		return r;
	r = annotate_server_new(fd, "", put_annotation, t, &t->annotate);
	if (r < 0) {
		close(fd);
		unlink(s->annotate_path);
	}
	return r;
}

/* What was taken is stored; its writers are told so if that takes no longer than half a second. */
void tracer_close_annotations(struct tracer *t)
{
	const struct timespec wait_briefly = {.tv_nsec = 10 * (long)NS_PER_MS};

	if (!t->annotate)
		return;
	if (spawn_server_remove() == -ENOTCONN)
		unlink(t->settings.annotate_path);
	annotate_server_refuse(t->annotate);
	for (int i = 0; t->store && i < ACK_TRIES && annotate_server_waiting(t->annotate); i++) {
		tracer_serve_annotations(t);
		nanosleep(&wait_briefly, NULL);
	}
	if (t->store)
		tracer_serve_annotations(t);
	annotate_server_free(TAKE(t->annotate));
}

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
		/* a call that came between two readings may be in the second only */
		uint64_t bare = v->bucket_hits - MIN(v->bucket_stored, v->bucket_hits);

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
	if (t->store && t->has_host && deadband_admits(&t->deadband, &t->host_now) &&
		!store_writer_push_row(t->store, &t->host_now))
		log_warning("the store's queue is full: a sample of the host is lost");
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
	t->deserted_s = process_table_alive(t->processes) ? 0 : t->deserted_s + 1;
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
	if (t->store && !store_writer_push_row(t->store, s))
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
