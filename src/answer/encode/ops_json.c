/* SPDX-License-Identifier: Apache-2.0 */
/* ops_json.c - /api/v1/ops. */

#include "base/search.h"
#include "answer/answer.h"
#include "answer/encode/say.h"
#include "answer/ops.h"
#include "model/sample.h"

#define OP_ROW(...) ROW(struct op_stat, __VA_ARGS__)
const struct row_field ops_fields[] = {
	ROW_OP_NAMED(struct op_stat, "operation", 0, "OPERATION", -27),
	ROW_NAMED(struct op_stat, "source", source, wire_source_name, OPS_DETAILS),
	OP_ROW("nested", nested, 0, 0),
	OP_ROW("count", calls, ROW_COUNT, 0, "COUNT", 11),
	OP_ROW("stored", rows, 0, OPS_DETAILS),
	OP_ROW("p50_us", p50_ns, ROW_US, OPS_PERCENTILES, "P50", 9),
	OP_ROW("p95_us", p95_ns, ROW_US, OPS_PERCENTILES, "P95", 9),
	OP_ROW("p99_us", p99_ns, ROW_US, OPS_PERCENTILES, "P99", 9),
	OP_ROW("avg_us", avg_ns, ROW_US, OPS_DETAILS),
	OP_ROW("min_us", min_ns, ROW_US, OPS_DETAILS),
	OP_ROW("max_us", max_ns, ROW_US, 0, "MAX", 9),
	OP_ROW("total_us", sum_ns, ROW_US, OPS_DETAILS),
	OP_ROW("wall_percent", share, ROW_PERCENT, 0, "WALL%", 7),
	OP_ROW("anomaly_count", spikes, ROW_COUNT, 0, "SPIKES", 7),
	ROW_END,
};

int ops_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	static const char *const modes[] = {[OPS_NOTHING] = "empty",
		[OPS_SKETCHES] = "percentile",
		[OPS_ROWS] = "percentile",
		[OPS_MINUTES] = "aggregate"};
	_cleanup_(ops_answer_done) struct ops_answer a = {0};
	int r = answer_ops(q, &a, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	row_json_list(w, "ops", ops_fields, a.rows, sizeof(*a.rows), a.count,
		(a.origin == OPS_MINUTES ? OPS_PERCENTILES : 0u) |
			(q->request->brief ? OPS_DETAILS : 0u));
	if (q->request->say)
		say_ops(q->request->say, &a);
	r = put_system(q, w, reterr);
	JSON_PUT(w, JSON_S("mode", modes[a.origin]), JSON_U("total_calls", a.calls),
		JSON_U("total_events", a.all_calls));
	answer_end(q, w, a.truncated);
	return r;
}

/* ---- /api/v1/kernels ---- */

#define KERNELS     50
#define KERNELS_MAX 1000

int kernels_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table k = {0};
	size_t limit = answer_limit(q->request->limit, KERNELS, KERNELS_MAX);
	int r = answer_kernels(q, limit, &k, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	table_put(w, "kernels", &k);
	json_uint_member(w, "sampled_one_in", 16);
	return answer_end(q, w, k.truncated);
}

/* ---- /api/v1/graph-metrics and /api/v1/graph-events ---- */

#define EVENTS     100
#define EVENTS_MAX 1000
#define EVENTS_FEW 200
#define EXECS_MAX  4096

int graph_metrics_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct graphs_answer a;
	uint64_t captures, made, launches;
	int r = answer_graphs(q, &a, reterr);

	if (r < 0)
		return r;
	captures = graphs_captures(&a);
	made = a.calls[GRAPH_INSTANTIATE];
	launches = a.calls[GRAPH_LAUNCH];
	json_begin_object(w);
	JSON_PUT(w, JSON_U("captures", captures), JSON_U("instantiations", made),
		JSON_U("launches", launches), JSON_U("total_events", a.total));
	if (captures)
		JSON_PUT(w,
			JSON_US("avg_capture_dur_us", a.ns[GRAPH_END_CAPTURE] / (double)captures));
	if (made)
		JSON_PUT(w,
			JSON_US("avg_instantiate_dur_us", a.ns[GRAPH_INSTANTIATE] / (double)made));
	if (launches && a.seconds > 0)
		json_double_member(w, "launch_rate_per_sec", (double)launches / a.seconds);
	put_window(q, w);
	json_end_object(w);
	return 0;
}

static void put_handle(struct json_writer *w, const char *key, uint64_t handle)
{
	if (!handle)
		return;
	json_string_member(w, key, FORMATTED(24, "0x%llx", (unsigned long long)handle));
}

static void put_event(struct json_writer *w, const struct sql_table *e, size_t i)
{
	unsigned op = (unsigned)table_int(e, i, table_column(e, "op"));
	const char *comm = table_text(e, i, table_column(e, "comm"));
	struct graph_handles h = graph_handles_of(e, i);

	json_begin_object(w);
	JSON_PUT(w, JSON_I("timestamp", table_int(e, i, table_column(e, "timestamp"))),
		JSON_I("pid", table_int(e, i, table_column(e, "pid"))));
	if (comm[0])
		json_string_member(w, "comm", comm);
	JSON_PUT(w, JSON_S("op", WIRE_OP_NAME(SOURCE_GRAPH, op)),
		JSON_US("duration_us", table_real(e, i, table_column(e, "duration"))));
	put_handle(w, "stream_handle", h.stream);
	put_handle(w, "graph_handle", h.graph);
	put_handle(w, "exec_handle", h.exec);
	if (h.capture_mode >= 0)
		json_int_member(w, "capture_mode", h.capture_mode);
	json_int_member(w, "ret_code", table_int(e, i, table_column(e, "ret_code")));
	json_end_object(w);
}

int graph_events_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table e = {0};
	size_t limit = answer_limit(q->request->limit, EVENTS, EVENTS_MAX);
	int r = answer_graph_events(q, limit, &e, reterr);

	if (r < 0)
		return r;
	json_begin_array(w);
	for (size_t i = 0; i < e.row_count; i++)
		put_event(w, &e, i);
	json_end_array(w);
	return 0;
}

int graph_lifecycle_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table e = {0};
	struct graphs_answer n;
	int r = answer_graphs(q, &n, reterr);

	r = r ?: answer_graph_events(q, 0, &e, reterr);
	if (r < 0)
		return r;
	if (q->request->say)
		say_graphs(q->request->say, &n);
	json_begin_object(w);
	json_begin_array_member(w, "events");
	for (size_t i = e.row_count; i-- > 0 && e.row_count - i <= EVENTS_FEW;)
		put_event(w, &e, i);
	json_end_array(w);
	JSON_PUT(w, JSON_U("captures", graphs_captures(&n)),
		JSON_U("instantiations", n.calls[GRAPH_INSTANTIATE]),
		JSON_U("launches", n.calls[GRAPH_LAUNCH]),
		JSON_U("updates", n.calls[GRAPH_EXEC_UPDATE]),
		JSON_U("destroys", n.calls[GRAPH_DESTROY] + n.calls[GRAPH_EXEC_DESTROY]));
	return answer_end(q, w, e.row_count > EVENTS_FEW);
}

struct exec { /* an executable graph */
	uint64_t handle, launches;
};

struct execs {
	struct exec row[EXECS_MAX];
	size_t count;
};

static struct exec *exec_of(struct execs *x, uint64_t v)
{
	for (size_t i = x->count; i-- > 0;)
		if (x->row[i].handle == v)
			return &x->row[i];
	if (x->count == EXECS_MAX)
		return NULL;
	x->row[x->count] = (struct exec){.handle = v};
	return &x->row[x->count++];
}

ORDER(by_launches, struct exec, DESCENDING(launches))

static void find_execs(const struct sql_table *e, struct execs *x)
{
	int op = table_column(e, "op"), weight = table_column(e, "weight");

	for (size_t i = e->row_count; i-- > 0;) {
		bool launch = table_int(e, i, op) == GRAPH_LAUNCH;
		struct exec *row = launch || table_int(e, i, op) == GRAPH_INSTANTIATE
					   ? exec_of(x, graph_handles_of(e, i).exec)
					   : NULL;

		if (row && launch)
			row->launches += (uint64_t)MAX(table_int(e, i, weight), INT64_C(1));
	}
	qsort(x->row, x->count, sizeof(x->row[0]), by_launches);
}

static void put_execs(struct json_writer *w, const struct execs *x, double seconds)
{
	double median =
		x->count && seconds > 0 ? (double)x->row[x->count / 2].launches / seconds : 0;

	json_begin_array_member(w, "graphs");
	for (size_t i = 0; i < x->count && i < EVENTS_FEW; i++) {
		double rate = seconds > 0 ? (double)x->row[i].launches / seconds : 0;

		json_begin_object(w);
		put_handle(w, "exec_handle", x->row[i].handle);
		JSON_PUT(w, JSON_U("launches", x->row[i].launches),
			JSON_R("launch_rate_per_sec", rate),
			JSON_S("class", !x->row[i].launches            ? "never-launched"
					: rate > median && rate >= 1.0 ? "HOT"
								       : "cold"));
		json_end_object(w);
	}
	json_end_array(w);
}

int graph_frequency_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_free_ struct execs *x = calloc(1, sizeof(*x));
	_cleanup_(sql_table_done) struct sql_table e = {0};
	struct graphs_answer n;
	int r = x ? answer_graphs(q, &n, reterr) : -ENOMEM;

	r = r ?: answer_graph_events(q, 0, &e, reterr);
	if (r < 0)
		return r;
	if (q->request->say)
		say_graphs(q->request->say, &n);
	find_execs(&e, x);
	json_begin_object(w);
	put_execs(w, x, n.seconds);
	JSON_PUT(w, JSON_U("graph_count", x->count), JSON_U("launches", n.calls[GRAPH_LAUNCH]),
		JSON_U("recaptures", graphs_captures(&n) ? graphs_captures(&n) - 1 : 0));
	return answer_end(q, w, x->count > EVENTS_FEW);
}

/* ---- /api/v1/gpus: samples over a time, each GPU with its newest state ---- */

#define POINTS     300
#define POINTS_MAX 2000

/* What a step with several samples shows. */
enum fold { FOLD_MEAN, FOLD_HIGHEST, FOLD_ALL_BITS };
static const struct {
	const char *name;
	enum fold fold;
} shown[] = {{"util_gpu_pct", FOLD_MEAN}, {"util_mem_pct", FOLD_MEAN}, {"sm_clock_mhz", FOLD_MEAN},
	{"mem_clock_mhz", FOLD_MEAN}, {"power_mw", FOLD_MEAN}, {"power_limit_mw", FOLD_HIGHEST},
	{"temperature_c", FOLD_HIGHEST}, {"throttle_reasons", FOLD_ALL_BITS},
	{"mem_used_bytes", FOLD_HIGHEST}, {"mem_total_bytes", FOLD_HIGHEST},
	{"pcie_tx_kb_s", FOLD_MEAN}, {"pcie_rx_kb_s", FOLD_MEAN}, {"ecc_corrected", FOLD_HIGHEST},
	{"ecc_uncorrected", FOLD_HIGHEST}, {"last_xid", FOLD_HIGHEST}, {"processes", FOLD_HIGHEST}};
#define SHOWN ARRAY_SIZE(shown)

struct step {
	int64_t time_ns;
	size_t samples;
	int64_t value[SHOWN];
	size_t known[SHOWN];
};

static void step_add(struct step *s, const struct sql_table *t, size_t row, const int *columns)
{
	s->samples++;
	for (size_t i = 0; i < SHOWN; i++) {
		int64_t v = table_int(t, row, columns[i]);

		if (columns[i] < 0 || sql_table_cell(t, row, columns[i])->type != SQL_INT)
			continue;
		if (!s->known[i]++)
			s->value[i] = v;
		else if (shown[i].fold == FOLD_HIGHEST)
			s->value[i] = MAX(s->value[i], v);
		else if (shown[i].fold == FOLD_ALL_BITS)
			s->value[i] |= v;
		else if (__builtin_add_overflow(s->value[i], v, &s->value[i]))
			s->value[i] = INT64_MAX;
	}
}

static void step_put(struct json_writer *w, const struct step *s)
{
	if (!s->samples)
		return;
	json_begin_object(w);
	json_int_member(w, "timestamp", s->time_ns);
	for (size_t i = 0; i < SHOWN; i++) {
		bool mean = shown[i].fold == FOLD_MEAN && s->known[i];

		json_known_member(w, shown[i].name, s->known[i],
			mean ? s->value[i] / (int64_t)s->known[i] : s->value[i]);
	}
	json_end_object(w);
}

static void put_throttle(struct json_writer *w, int64_t reasons)
{
	uint64_t bits = gpus_slowing(reasons);

	json_begin_array_member(w, "throttle");
	for (const struct gpu_throttle *g = gpu_throttles; g->bit; g++)
		if (bits & g->bit)
			json_put_string(w, g->name);
	json_end_array(w);
}

static void put_last(struct json_writer *w, const struct sql_table *t, size_t row)
{
	json_begin_object_member(w, "last");
	json_int_member(w, "timestamp", table_int(t, row, GPUS_TIME));
	table_put_row(w, t, row, GPUS_PCI + 1, t->column_count);
	put_throttle(w, table_int(t, row, table_column(t, "throttle_reasons")));
	json_end_object(w);
}

/* Its lowest, highest and mean value, of those that say how a GPU is doing. */
static void put_gauges(struct json_writer *w, const struct gpus_answer *a, size_t gpu)
{
	static const char *const names[] = {
		"util_gpu_pct", "power_mw", "temperature_c", "sm_clock_mhz"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct gpu_gauge g = gpus_gauge(a, gpu, names[i]);

		if (!g.samples)
			continue;
		JSON_PUT_INTO(w, names[i], JSON_I("min", g.min), JSON_I("max", g.max),
			JSON_R("mean", g.mean));
	}
}

/* Rows are newest first. */
static void put_gpu(struct json_writer *w, const struct gpus_answer *a, size_t gpu, int64_t from,
	int64_t width, bool brief)
{
	size_t newest = a->newest[gpu];
	const struct sql_table *t = &a->samples;
	struct step step = {0};
	int columns[SHOWN];

	for (size_t i = 0; i < SHOWN; i++)
		columns[i] = table_column(t, shown[i].name);
	json_begin_object(w);
	json_string_member(w, "node", table_text(t, newest, GPUS_NODE));
	table_put_row(w, t, newest, GPUS_GPU, GPUS_PCI + 1);
	put_last(w, t, newest);
	put_gauges(w, a, gpu);
	if (brief) {
		json_end_object(w);
		return;
	}
	json_begin_array_member(w, "samples");
	for (size_t i = t->row_count; i-- > newest;) {
		int64_t time = table_int(t, i, GPUS_TIME);

		if (!gpus_same(a, i, newest))
			continue;
		if (!step.samples || (time - from) / width != (step.time_ns - from) / width) {
			step_put(w, &step);
			step = (struct step){.time_ns = time};
		}
		step_add(&step, t, i, columns);
	}
	step_put(w, &step);
	json_end_array(w);
	json_end_object(w);
}

int gpus_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	int64_t step = answer_step(q, answer_limit(q->request->points, POINTS, POINTS_MAX));
	_cleanup_(gpus_answer_done) struct gpus_answer a = {0};
	int r = answer_gpus(q, &a, reterr);

	if (r < 0)
		return r;
	if (q->request->say)
		say_gpus(q->request->say, &a);
	json_begin_object(w);
	json_int_member(w, "step_ns", step);
	json_begin_array_member(w, "gpus");
	for (size_t i = 0; i < a.count; i++)
		put_gpu(w, &a, i, q->scope.from_ns, step, q->request->brief);
	json_end_array(w);
	return answer_end(q, w, a.truncated);
}
