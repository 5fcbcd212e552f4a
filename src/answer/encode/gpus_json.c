/* SPDX-License-Identifier: Apache-2.0 */
/* gpus_json.c - /api/v1/gpus: samples over a time, each GPU with its newest state. */
#include "answer/answer_private.h"
#include "answer/encode/say.h"
#include "answer/gpus.h"
#include "model/gpu_sample.h"

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
		bool mean = shown[i].fold == FOLD_MEAN;

		json_key(w, shown[i].name);
		if (s->known[i])
			json_put_int(w, mean ? s->value[i] / (int64_t)s->known[i] : s->value[i]);
		else
			json_put_null(w);
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
	for (int c = GPUS_TIME; c < t->column_count; c++) {
		json_key(w, sql_table_name(t, c));
		table_cell(w, t, row, c);
	}
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
		json_begin_object_member(w, names[i]);
		json_int_member(w, "min", g.min);
		json_int_member(w, "max", g.max);
		json_double_member(w, "mean", g.mean);
		json_end_object(w);
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
	for (int c = GPUS_NODE; c < GPUS_TIME; c++) {
		json_key(w, sql_table_name(t, c));
		table_cell(w, t, newest, c);
	}
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
