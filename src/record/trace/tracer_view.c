/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_view.c - a run as it stands, for those who show it. Reads only. */

#include "diagnose/chains/kernel_type.h"
#include "record/trace/tracer_private.h"
#include "wire/op_kind.h"

/* Brings the explainer what the tracer sees, and what it finds to the store, the
 * metrics and the caller. Runs on the tracer's thread. */

int tracer_open_explainer(struct tracer *t)
{
	struct explainer_config config = {.node = t->settings.node,
		.wants_steps = t->metric_state != NULL,
		.begin = tracer_confine_explainer,
		.begin_arg = &t->settings};
	int r = explainer_new(&config, &t->explainer);

	return r < 0 ? r : explainer_start(t->explainer);
}

static void hand_on(void *arg, const struct explainer_finding *f)
{
	struct tracer *t = arg;
	struct incident named = f->incident;

	kernel_sentence_put(&named, tracer_kernel_name, t);
	if (t->store && !store_writer_push_incident(t->store, &named, f->detected))
		log_warning("the store's queue is full: an incident is lost");
	if (t->metric_state)
		metric_state_incident(t->metric_state, &named, f->change);
	if (t->settings.incident_sink)
		t->settings.incident_sink(t->settings.event_arg, &named, f->change);
}

void tracer_explain_look(struct tracer *t)
{
	struct accounting books;

	tracer_books(t, &books);
	explainer_look(t->explainer, &books);
}

void tracer_poll_explainer(struct tracer *t)
{
	explainer_poll(t->explainer, hand_on, t);
	if (t->metric_state)
		(void)explainer_steps(t->explainer, &t->metric_state->steps);
}

void tracer_close_explainer(struct tracer *t)
{
	struct explainer *x = TAKE(t->explainer);
	struct explainer_dropped dropped;
	struct accounting books;

	if (!x)
		return;
	tracer_books(t, &books);
	explainer_stop(x, &books);
	explainer_poll(x, hand_on, t);
	dropped = explainer_dropped(x);
	if (dropped.inputs || dropped.findings)
		log_info(
			"%llu events and %llu incidents were not analysed live; `ingero explain` analyses all that was stored",
			(unsigned long long)dropped.inputs, (unsigned long long)dropped.findings);
	explainer_free(x);
}

static void fill_ops(struct tracer *t, bool has_estimates)
{
	const struct total *v;
	size_t cursor = 0;

	live_ops_clear(&t->ops);
	while ((v = totals_next(t->totals, &cursor))) {
		struct sketch calls = {0};

		sparse_merge(&calls, &v->all);
		live_ops_add(&t->ops, v->key.source, v->key.op, v->key.flags & WIRE_NESTED, &calls);
	}
	for (unsigned op = 0; op < WIRE_OP_MAX; op++) /* events that only ever are records */
		if (t->op_counts[SOURCE_HOST][op] && op != HOST_SCHED_SWITCH)
			live_ops_count(&t->ops, SOURCE_HOST, op, t->op_counts[SOURCE_HOST][op]);
	for (size_t i = 0; i < t->ops.count; i++)
		t->ops.rows[i].is_estimate =
			has_estimates &&
			op_kind_is_governed(t->ops.rows[i].source, t->ops.rows[i].op);
	live_ops_sort(&t->ops);
}

static const struct process_entry *first_alive(const struct process_table *table)
{
	struct process_entry *p = process_table_next(table, NULL);

	while (p && p->ended)
		p = process_table_next(table, p);
	return p;
}

static void view_overhead(const struct tracer *t, struct tracer_view *v)
{
	struct cost_felt felt;

	v->overhead_pairs = tracer_cost(t, false, &felt);
	v->overhead = felt.share;
	v->overhead_low = felt.low;
	v->overhead_high = felt.high;
	v->overhead_budget = t->governor.budget;
	v->hit_ns = t->governor.hit_ns;
	launch_watch_sum(t->launches, &v->launches);
}

void tracer_view(struct tracer *t, struct tracer_view *ret)
{
	const char *first_library;
	const struct process_entry *first;

	*ret = (struct tracer_view){
		.started = t->started,
		.now = wall_now(),
		.ran_ns = mono_now().ns - t->began.ns,
		.method = probe_method_name(probe_method(t->probe)),
		.processes = process_table_alive(t->processes),
		.libraries = coverage_probed(t->coverage, &first_library),
		.runtime_probes = coverage_probes(t->coverage, TARGET_CUDART) +
				  coverage_probes(t->coverage, TARGET_EXECUTABLE),
		.driver_probes = coverage_probes(t->coverage, TARGET_CUDA),
		.has_samples = t->samples != NULL,
		.missing = probe_missing(t->probe),
		.host = t->host_now,
		.has_host = t->has_host,
		.clock_steps = t->clock.steps,
		.cpu_losses = &t->cpu_losses,
		.names_lost = tracer_names_lost(t),
	};
	first = first_alive(t->processes);
	if (first) {
		struct discover_process p;

		ret->first_pid = first->pid;
		if (discover_process_stat("", ret->first_pid, &p) == 0)
			memcpy(ret->first_comm, p.comm, sizeof(ret->first_comm));
	}
	snprintf(ret->first_library, sizeof(ret->first_library), "%s", first_library);
	ret->gaps = roster_gaps(t->roster, &ret->gap_count, &ret->gaps_more);
	ret->gpu_state = tracer_gpu_state(t, ret->gpu_text, sizeof(ret->gpu_text));
	ret->gpus = gpu_sampler_rows(t->gpu, &ret->gpu_count);
	ret->has_driver = access("/proc/driver/nvidia/version", F_OK) == 0;
	ret->own_cpu_ns = (double)tracer_own_cpu_ns();
	ret->own_bytes = tracer_own_bytes();
	view_overhead(t, ret);
	tracer_view_stacks(t, ret);
	tracer_books(t, &ret->books);
	fill_ops(t, ret->launches.launches > ret->launches.counted);
	ret->ops = t->ops.rows;
	ret->op_count = t->ops.count;
	if (t->store) {
		struct errinfo e = {0};

		t->db_bytes = store_writer_size(t->store);
		if (store_writer_error(t->store, &e))
			memcpy(t->store_error, e.text, sizeof(t->store_error) - 1);
	}
	ret->db_bytes = t->db_bytes;
	memcpy(ret->store_error, t->store_error, sizeof(ret->store_error));
}

void tracer_launches(struct tracer *t,
	void (*fn)(void *arg, uint32_t pid, const char *comm, uint64_t count), void *arg)
{
	const struct total *v;
	size_t cursor = 0;

	while ((v = totals_next(t->totals, &cursor)))
		if (v->key.pid && !(v->key.flags & WIRE_NESTED) &&
			op_kind_is_launch(v->key.source, v->key.op))
			fn(arg, v->key.pid, v->comm, v->all.count);
}
