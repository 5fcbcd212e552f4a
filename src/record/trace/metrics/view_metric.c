/* SPDX-License-Identifier: Apache-2.0 */
/* view_metric.c - the points of a reading: host, calls, copies, incidents, books, the agent itself.
 *
 * What can be 0 is reported as 0 from the beginning, so that a rate or an alert has something to begin
 * with; what is not known is not reported. Counters count since tracing began, except those of one
 * process, which count since it came. */
#include "record/trace/metrics/view_metric.h"

#include <math.h>

#include "base/text.h"
#include "record/trace/metrics/metric_table.h"
#include "wire/names.h"

#define ROW(id) (&metric_table[id])

static struct metric_attribute text_or_none(const char *text)
{
	return *text ? METRIC_TEXT(text) : METRIC_NONE;
}

/* The keys that every series of one process begins with. */
#define PROCESS_KEYS 5
struct process_labels {
	struct metric_attribute list[METRIC_KEYS_MAX];
};

static struct process_labels process_labels(const struct reading *r, uint32_t pid, const char *comm)
{
	struct roster_home h = {"", "", ""};

	if (r->home)
		h = r->home(r->roster, pid);
	return (struct process_labels){{METRIC_NUMBER(pid), METRIC_TEXT(comm), text_or_none(h.pod),
		text_or_none(h.namespace), text_or_none(h.container_id)}};
}

/* The points of the GPUs' state. Told only while the driver answers: an old
 * reading is not a present one. */

/* Values of a sample that are reported as they are, times a factor. */
static const struct {
	enum metric_id id;
	size_t offset;
	double factor;
} values[] = {
#define VALUE(id, field, factor)                                                                   \
	{                                                                                          \
		id, offsetof(struct gpu_sample, field), factor                                     \
	}
	VALUE(M_GPU_MEM_USED, mem_used_bytes, 1),
	VALUE(M_GPU_MEM_FREE, mem_free_bytes, 1),
	VALUE(M_GPU_MEM_TOTAL, mem_total_bytes, 1),
	VALUE(M_GPU_UTIL, util_gpu_pct, 0.01),
	VALUE(M_GPU_MEM_UTIL, util_mem_pct, 0.01),
	VALUE(M_GPU_SM_CLOCK, sm_clock_mhz, 1e6),
	VALUE(M_GPU_MEM_CLOCK, mem_clock_mhz, 1e6),
	VALUE(M_GPU_POWER, power_mw, 1e-3),
	VALUE(M_GPU_POWER_LIMIT, power_limit_mw, 1e-3),
	VALUE(M_GPU_TEMPERATURE, temperature_c, 1),
	VALUE(M_GPU_XID, last_xid, 1),
	VALUE(M_GPU_XID_TIME, last_xid_ns, 1e-9),
	VALUE(M_GPU_PCIE_TX, pcie_tx_kb_s, 1e3),
	VALUE(M_GPU_PCIE_RX, pcie_rx_kb_s, 1e3),
	VALUE(M_GPU_PCIE_GEN, pcie_gen, 1),
	VALUE(M_GPU_PCIE_WIDTH, pcie_width, 1),
	VALUE(M_GPU_PROCESSES, processes, 1),
#undef VALUE
};

static void put_values(const struct gpu_sample *g, struct metric_set *s)
{
	const struct metric_attribute gpu[] = {METRIC_TEXT(g->uuid)};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const struct metric_desc *d = ROW(values[i].id);
		int64_t v = *(const int64_t *)((const char *)g + values[i].offset);

		if (v == GPU_UNKNOWN)
			continue;
		if (d->is_double)
			metric_put_double(s, d, (wall_time){0}, (double)v * values[i].factor, gpu);
		else
			metric_put_int(s, d, (wall_time){0}, v * (int64_t)values[i].factor, gpu);
	}
}

/* The driver counts since it was loaded, at a time that it does not tell. */
static void put_ecc(const struct gpu_sample *g, struct metric_set *s)
{
	const wall_time unknown = {0};

	if (g->ecc_corrected != GPU_UNKNOWN)
		metric_put_int(s, ROW(M_GPU_ECC), unknown, g->ecc_corrected,
			METRIC_OF(METRIC_TEXT(g->uuid), METRIC_TEXT("corrected")));
	if (g->ecc_uncorrected != GPU_UNKNOWN)
		metric_put_int(s, ROW(M_GPU_ECC), unknown, g->ecc_uncorrected,
			METRIC_OF(METRIC_TEXT(g->uuid), METRIC_TEXT("uncorrected")));
}

static void put_throttle(const struct gpu_sample *g, struct metric_set *s)
{
	uint64_t now = (uint64_t)g->throttle_reasons;

	if (g->throttle_reasons == GPU_UNKNOWN)
		return;
	for (const struct gpu_throttle *t = gpu_throttles; t->bit; t++)
		metric_put_int(s, ROW(M_GPU_THROTTLE), (wall_time){0}, !!(now & t->bit),
			METRIC_OF(METRIC_TEXT(g->uuid), METRIC_TEXT(t->name)));
	for (int i = 0; i < THROTTLE_COUNT; i++)
		metric_put_int(s, ROW(M_GPU_THROTTLE_ACTIVE + i), (wall_time){0},
			!!(now & metric_state_throttle_bits[i]), METRIC_OF(METRIC_TEXT(g->uuid)));
}

/* view_metric_gpu - its part on GPUs. */
static void view_metric_gpu(const struct reading *r, struct metric_set *s)
{
	const struct tracer_view *v = r->view;
	const struct metric_state *f = r->metric_state;

	if (v->gpu_state == GPU_KNOWN || v->gpu_state == GPU_NO_ANSWER)
		metric_put_int(
			s, ROW(M_GPU_ANSWERS), (wall_time){0}, v->gpu_state == GPU_KNOWN, NULL);
	for (size_t i = 0; v->gpu_state == GPU_KNOWN && i < v->gpu_count; i++) {
		metric_put_int(s, ROW(M_GPU_INFO), (wall_time){0}, 1,
			METRIC_OF(METRIC_TEXT(v->gpus[i].sample.uuid),
				METRIC_NUMBER(v->gpus[i].sample.index),
				METRIC_TEXT(v->gpus[i].sample.name),
				METRIC_TEXT(v->gpus[i].sample.pci)));
		put_values(&v->gpus[i].sample, s);
		put_ecc(&v->gpus[i].sample, s);
		put_throttle(&v->gpus[i].sample, s);
	}
	for (size_t i = 0; i < f->gpu_count; i++) /* counters do not go away */
		for (int k = 0; k < THROTTLE_COUNT; k++)
			metric_put_int(s, ROW(M_GPU_THROTTLE_EDGES + k), v->started,
				(int64_t)f->gpus[i].edges[k],
				METRIC_OF(METRIC_TEXT(f->gpus[i].uuid)));
}

/* The points of collectives and of the processes that use NCCL. */
static bool is_collective(unsigned op)
{
	struct event e = {.source = SOURCE_NCCL, .op = (uint16_t)op};

	return wire_op_find(SOURCE_NCCL, op) && collective_is_one(&e);
}

static void put_totals(const struct reading *r, struct metric_set *s)
{
	static const struct sketch none;
	wall_time start = r->view->started;

	for (unsigned op = 0; op < WIRE_OP_MAX; op++) {
		const struct sketch *wait =
			r->metric_state->waits[op] ? r->metric_state->waits[op] : &none;

		if (!is_collective(op))
			continue;
		const struct metric_attribute name[] = {METRIC_TEXT(WIRE_NCCL_NAME(op))};

		metric_put_int(
			s, ROW(M_COLL_COUNT), start, (int64_t)r->collectives[op].count, name);
		metric_put_int(s, ROW(M_COLLS), start, (int64_t)r->collectives[op].count, name);
		metric_put_int(
			s, ROW(M_COLL_BYTES), start, (int64_t)r->collectives[op].bytes, name);
		metric_put_int(s, ROW(M_COLL_BARRIERS), start, (int64_t)wait->count, name);
		metric_put_sketch(s, ROW(M_COLL_WAIT), start, wait, name);
		if (r->metric_state->bus_bandwidth[op] > 0)
			metric_put_double(s, ROW(M_COLL_BUS), (wall_time){0},
				r->metric_state->bus_bandwidth[op], name);
	}
}

static struct metric_attribute number_or_none(int32_t v)
{
	return v < 0 ? METRIC_NONE : METRIC_NUMBER(v);
}

/* NCCL's own numbers of types and operations. */
static struct metric_attribute name_or_none(const char *const *names, size_t count, int32_t v)
{
	if (v < 0)
		return METRIC_NONE;
	return (size_t)v < count ? METRIC_TEXT(names[v]) : METRIC_TEXT("unknown");
}

static void put_last(const struct metric_state_collective *l, struct metric_set *s)
{
	static const char *const types[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
		"float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
	static const char *const operations[] = {"sum", "prod", "max", "min", "avg"};
	const struct metric_attribute names[] = {METRIC_TEXT(WIRE_NCCL_NAME(l->op)),
		METRIC_TEXT(TEXT_HEX(l->c.comm_hash)), number_or_none(l->c.rank),
		number_or_none(l->c.nranks), name_or_none(types, ARRAY_SIZE(types), l->c.datatype),
		name_or_none(operations, ARRAY_SIZE(operations), l->c.reduce_op),
		number_or_none(l->c.peer)};

	metric_put_double(
		s, ROW(M_COLL_LAST_MS), (wall_time){0}, (double)l->dur_ns / NS_PER_MS, names);
	if (l->c.wait_ns >= 0)
		metric_put_double(s, ROW(M_COLL_LAST_WAIT_MS), (wall_time){0},
			(double)l->c.wait_ns / NS_PER_MS, names);
	metric_put_int(s, ROW(M_COLL_LAST_BYTES), (wall_time){0}, (int64_t)l->c.bytes, names);
}

static void put_processes(const struct reading *r, struct metric_set *s)
{
	const struct metric_state *f = r->metric_state;

	for (size_t i = 0; i < MIN(f->nccl_count, (size_t)METRIC_STATE_NCCL); i++) {
		const struct metric_state_nccl *n = &f->nccl[i];

		struct process_labels l = process_labels(r, n->pid, n->comm);

		l.list[PROCESS_KEYS] = METRIC_TEXT(n->path);
		l.list[PROCESS_KEYS + 1] = METRIC_TEXT(metric_state_nccl_version(n->path));
		metric_put_int(s, ROW(M_NCCL_LOADED), (wall_time){0}, 1, l.list);
	}
	metric_put_int(
		s, ROW(M_NCCL_PROCESSES_TOTAL), (wall_time){0}, (int64_t)f->nccl_count, NULL);
	metric_put_int(s, ROW(M_NCCL_PROCESSES), (wall_time){0}, (int64_t)f->nccl_count, NULL);
}

/* view_metric_nccl - its part on collectives. */
static void view_metric_nccl(const struct reading *r, struct metric_set *s)
{
	const struct metric_state *f = r->metric_state;

	if (f->has_nccl)
		put_processes(r, s);
	put_totals(r, s);
	for (size_t i = 0; i < f->collective_count; i++)
		put_last(&f->collectives[i], s);
}

static void put_gauge(struct metric_set *s, enum metric_id id, int64_t v)
{
	metric_put_int(s, ROW(id), (wall_time){0}, v, NULL);
}

static void put_share(struct metric_set *s, enum metric_id id, double v)
{
	metric_put_double(s, ROW(id), (wall_time){0}, v, NULL);
}

static void put_counter(
	const struct reading *r, struct metric_set *s, enum metric_id id, uint64_t v)
{
	metric_put_int(s, ROW(id), r->view->started, (int64_t)v, NULL);
}

/* ---- calls ---- */

static void put_percentiles(
	struct metric_set *s, const struct sketch *all, const char *source, const char *op)
{
	static const struct {
		const char *name;
		double q;
	} rows[] = {{"p50", 0.50}, {"p95", 0.95}, {"p99", 0.99}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		metric_put_double(s, ROW(M_OP_PERCENTILE), (wall_time){0},
			(double)sketch_quantile(all, rows[i].q) / NS_PER_US,
			METRIC_OF(METRIC_TEXT(source), METRIC_TEXT(op), METRIC_TEXT(rows[i].name)));
}

static const struct tracer_op *nested_twin(const struct tracer_view *v, const struct tracer_op *o)
{
	for (size_t i = 0; i < v->op_count; i++)
		if (v->ops[i].source == o->source && v->ops[i].op == o->op &&
			v->ops[i].nested != o->nested)
			return &v->ops[i];
	return NULL;
}

/* The published figures do not tell nested calls apart. */
static void put_published_op(
	const struct reading *r, struct metric_set *s, const struct tracer_op *o)
{
	const struct tracer_op *twin = nested_twin(r->view, o);
	const char *source = wire_source_name(o->source);
	struct sketch all = o->sketch;
	char scratch[32];
	const char *op = wire_op_name(o->source, o->op, scratch);

	if (twin && o->nested)
		return; /* it is the twin's */
	if (twin)
		sketch_merge(&all, &twin->sketch);
	metric_put_int(s, ROW(M_OP_COUNT), r->view->started,
		(int64_t)(o->count + (twin ? twin->count : 0)),
		METRIC_OF(METRIC_TEXT(source), METRIC_TEXT(op)));
	if (all.count)
		put_percentiles(s, &all, source, op);
}

static void put_ops(const struct reading *r, struct metric_set *s)
{
	const struct tracer_view *v = r->view;
	char scratch[32];

	for (size_t i = 0; i < v->op_count; i++) {
		const struct tracer_op *o = &v->ops[i];
		const struct metric_attribute names[] = {METRIC_TEXT(wire_source_name(o->source)),
			METRIC_TEXT(wire_op_name(o->source, o->op, scratch)),
			METRIC_TEXT(o->nested ? "true" : "false")};

		put_published_op(r, s, o);
		metric_put_int(s, ROW(M_OPS), v->started, (int64_t)o->count, names);
		if (o->sketch.count)
			metric_put_sketch(s, ROW(M_OP_DURATION), v->started, &o->sketch, names);
	}
	for (size_t i = 0; i < r->launch_count; i++) {
		const struct reading_launches *l = &r->launches[i];

		metric_put_int(s, ROW(M_LAUNCH_COUNT), l->since, (int64_t)l->count,
			METRIC_OF(METRIC_NUMBER(l->pid)));
		metric_put_int(s, ROW(M_LAUNCHES), l->since, (int64_t)l->count,
			process_labels(r, l->pid, l->comm).list);
	}
}

/* ---- steps ---- */

static void put_steps(const struct reading *r, struct metric_set *s)
{
	for (size_t i = 0; i < r->step_count; i++) {
		const struct step_count *c = &r->steps[i];
		struct process_labels l = process_labels(r, c->pid, c->comm);

		metric_put_double(s, ROW(M_STEPS), c->since, c->steps, l.list);
		metric_put_double(s, ROW(M_SLOW_STEPS), c->since, c->slow_steps, l.list);
		for (int k = 0; k < ACCOUNT_LINES; k++) {
			l.list[PROCESS_KEYS] = METRIC_TEXT(account_line_id((enum account_line)k));
			metric_put_double(
				s, ROW(M_STEP_SECONDS), c->since, c->ns[k] / NS_PER_S, l.list);
		}
	}
}

/* ---- incidents ---- */

/* A problem is reported with the worst severity it may have from the beginning, with others once one of
 * these was found. */
static void put_incidents(const struct reading *r, struct metric_set *s)
{
	const struct metric_state *f = r->metric_state;
	uint64_t sum = 0;

	for (int p = 0; p < PROBLEM_COUNT; p++)
		for (int v = 0; v < SEVERITY_COUNT; v++) {
			const struct problem_row *row = problem_row((enum problem)p);
			const struct metric_attribute names[] = {
				METRIC_TEXT(row->id), METRIC_TEXT(severity_name((enum severity)v))};

			sum += f->found[p][v];
			if (!f->found[p][v] && !f->open[p][v] && (int)row->worst != v)
				continue;
			metric_put_int(s, ROW(M_INCIDENTS), r->view->started,
				(int64_t)f->found[p][v], names);
			metric_put_int(
				s, ROW(M_INCIDENTS_ACTIVE), (wall_time){0}, f->open[p][v], names);
		}
	put_counter(r, s, M_ANOMALIES, sum);
}

/* ---- the books ---- */

static const char *loss_stage(enum wire_loss reason)
{
	switch (reason) {
	case LOSS_BAD_RECORD:
	case LOSS_AT_STOP: return "capture";
	case LOSS_QUEUE_FULL:
	case LOSS_WRITE_FAILED: return "store";
	default: return "kernel";
	}
}

static void put_account(
	const struct reading *r, struct metric_set *s, const struct wire_source_row *source)
{
	const struct account *a = &r->view->books.source[source->id];
	const struct metric_attribute name[] = {METRIC_TEXT(source->json)};
	wall_time start = r->view->started;

	metric_put_int(s, ROW(M_HITS), start, (int64_t)a->hits, name);
	metric_put_int(s, ROW(M_STORED), start, (int64_t)a->stored, name);
	metric_put_int(s, ROW(M_AGGREGATED), start, (int64_t)a->aggregated, name);
	for (int i = 0; i < LOSS_COUNT; i++)
		metric_put_int(s, ROW(M_DROPPED), start, (int64_t)a->lost[i],
			METRIC_OF(METRIC_TEXT(loss_stage((enum wire_loss)i)), name[0],
				METRIC_TEXT(wire_losses[i].name)));
}

/* ---- the agent itself ---- */

static void put_stacks(const struct reading *r, struct metric_set *s)
{
	const struct stacks_report *k = &r->view->stacks;
	uint64_t lost = k->dropped;

	if (!r->view->has_stacks)
		return;
	for (int i = 0; i < STACK_LOSS_COUNT; i++)
		lost += k->tally.lost[i];
	put_counter(r, s, M_STACKS, k->tally.taken);
	put_counter(r, s, M_STACKS_LOST, lost);
}

static void put_agent(const struct reading *r, struct metric_set *s)
{
	const struct tracer_view *v = r->view;

	put_share(s, M_OVERHEAD, v->overhead);
	put_share(s, M_OVERHEAD_LOW, v->overhead_low);
	put_share(s, M_OVERHEAD_HIGH, v->overhead_high);
	put_share(s, M_OVERHEAD_BUDGET, v->overhead_budget);
	put_share(s, M_HIT_COST, v->hit_ns / NS_PER_S);
	metric_put_double(s, ROW(M_OWN_CPU), v->started, v->own_cpu_ns / NS_PER_S, NULL);
	put_gauge(s, M_OWN_MEMORY, (int64_t)v->own_bytes);
	put_counter(r, s, M_NAMES_LOST, v->names_lost);
	put_gauge(s, M_LAUNCH_WEIGHT, (int64_t)lrint(1 / fmax(v->launches.watched, 1e-3)));
	put_gauge(s, M_PROCESSES, (int64_t)v->processes);
	put_gauge(s, M_LIBRARIES, (int64_t)v->libraries);
	metric_put_int(s, ROW(M_PROBES), (wall_time){0}, (int64_t)v->runtime_probes,
		METRIC_OF(METRIC_TEXT("runtime")));
	metric_put_int(s, ROW(M_PROBES), (wall_time){0}, (int64_t)v->driver_probes,
		METRIC_OF(METRIC_TEXT("driver")));
	put_gauge(s, M_GAPS, (int64_t)(v->gap_count + v->gaps_more));
	put_stacks(r, s);
	if (r->has_store) {
		put_gauge(s, M_DB_BYTES, (int64_t)v->db_bytes);
		put_counter(r, s, M_DB_PRUNED, r->pruned_rows);
	}
	put_counter(r, s, M_CLOCK_STEPS, v->clock_steps);
	put_counter(r, s, M_ENTRIES_CUT, r->metric_state->cut + r->metric_state->steps.left_out);
}

void view_metric(const struct reading *r, struct metric_set *s)
{
	wall_time start;
	uint64_t overflows;

	metric_put_int(s, ROW(M_INFO), (wall_time){0}, 1,
		METRIC_OF(METRIC_TEXT(r->version), METRIC_TEXT(r->node),
			METRIC_TEXT(r->view->method)));
	put_share(s, M_START_TIME, (double)r->view->started.ns / NS_PER_S);
	if (r->view->has_host) {
		put_share(s, M_CPU, r->view->host.cpu_pct / 100);
		put_share(s, M_MEMORY, r->view->host.mem_pct / 100);
		put_gauge(s, M_MEMORY_AVAILABLE, (int64_t)(r->view->host.mem_avail_mb << 20));
		put_gauge(s, M_MEMORY_AVAILABLE_BYTES, (int64_t)(r->view->host.mem_avail_mb << 20));
		put_share(s, M_LOAD, r->view->host.load1);
	}
	overflows = 0;
	for (const struct wire_source_row *source = wire_sources; source->json; source++) {
		if (source->id == SOURCE_NVIDIA)
			continue; /* reserved: nothing is ever seen of it */
		put_account(r, s, source);
		overflows += r->view->books.source[source->id].lost[LOSS_RING_FULL];
	}
	put_counter(r, s, M_RING_OVERFLOWS, overflows);
	put_agent(r, s);
	put_incidents(r, s);
	view_metric_gpu(r, s);
	start = r->view->started;
	for (int i = 0; i < COPY_DIRECTION_COUNT; i++) {
		const struct metric_attribute name[] = {METRIC_TEXT(copy_direction_names[i])};

		metric_put_int(s, ROW(M_COPY_BYTES), start, (int64_t)r->copies[i].bytes, name);
		metric_put_sketch(s, ROW(M_COPY_MS), start, &r->copies[i].all, name);
		metric_put_sketch(s, ROW(M_COPY_DURATION), start, &r->copies[i].all, name);
	}
	view_metric_nccl(r, s);
	put_steps(r, s);
	put_ops(r, s); /* last: what is cut, if anything, is of the longest lists */
}
