/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_gpu.c - get_gpu_state: for each GPU its last reading and what the range of them was
 * (answer/gpus.h). */
#include "serve/mcp/mcp_tool.h"

#include <string.h>

#include "answer/gpus.h"
#include "serve/mcp/mcp_clean.h"
#include "serve/mcp/mcp_tsc.h"
#include "model/gpu_sample.h"

static json_t *gauge_json(const struct gpus_answer *a, size_t gpu, const char *column)
{
	struct gpu_gauge g = gpus_gauge(a, gpu, column);

	if (!g.samples)
		return json_null();
	return json_pack("{s:I, s:I, s:f}", "min", (json_int_t)g.min, "max", (json_int_t)g.max,
		"avg", g.mean);
}

static json_t *reading_json(const struct sql_table *t, size_t row)
{
	static const char *const elsewhere[] = {"throttle_reasons", "nvml_error", "last_xid_ns"};
	json_t *o = json_object();

	for (int c = GPUS_TIME + 1; c < t->column_count; c++)
		if (sql_table_cell(t, row, c)->type == SQL_INT)
			json_object_set_new(
				o, sql_table_name(t, c), json_integer(table_int(t, row, c)));
	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
		json_object_del(o, elsewhere[i]);
	return o;
}

static json_t *gpu_json(const struct gpus_answer *a, size_t gpu)
{
	const struct sql_table *t = &a->samples;
	size_t row = a->newest[gpu];
	int throttle = table_column(t, "throttle_reasons");
	_cleanup_json_ json_t *raw =
		json_pack("{s:I}", "timestamp_ns", (json_int_t)table_int(t, row, GPUS_TIME));
	_cleanup_json_ json_t *time = mcp_tsc_full(raw);
	uint64_t samples = 0, throttled = 0, reasons = 0;
	char text[256];

	for (size_t i = row; i < t->row_count; i++) {
		uint64_t bits = gpus_slowing(table_int(t, i, throttle));

		if (!gpus_same(a, i, row))
			continue;
		samples++;
		throttled += bits != 0;
		reasons |= bits;
	}
	return json_pack("{s:I, s:o, s:o, s:I, s:O, s:f, s:s, s:o, s:o, s:o, s:o, s:o}", "gpu",
		(json_int_t)table_int(t, row, GPUS_GPU), "name",
		mcp_clean_string(table_text(t, row, GPUS_NAME), MCP_CLEAN_NAME), "uuid",
		mcp_clean_string(table_text(t, row, GPUS_UUID), MCP_CLEAN_NAME), "samples",
		(json_int_t)samples, "last_at", json_object_get(time, "timestamp"),
		"throttled_percent", 100.0 * (double)throttled / (double)samples, "throttled_by",
		gpu_throttle_text(reasons, text, sizeof(text)), "util_percent",
		gauge_json(a, gpu, "util_gpu_pct"), "power_mw", gauge_json(a, gpu, "power_mw"),
		"temperature_c", gauge_json(a, gpu, "temperature_c"), "sm_clock_mhz",
		gauge_json(a, gpu, "sm_clock_mhz"), "last", reading_json(t, row));
}

static json_t *gpus_value(const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	_cleanup_(gpus_answer_done) struct gpus_answer a = {0};
	int r = answer_gpus(q, &a, reterr);
	json_t *list, *full, *range = r < 0 ? NULL : mcp_range(q, reterr);

	if (!range)
		return NULL;
	list = json_array();
	for (size_t i = 0; i < a.count; i++)
		json_array_append_new(list, gpu_json(&a, i));
	full = json_pack("{s:o, s:o}", "gpus", list, "range", range);
	if (!a.count)
		json_object_set_new(full, "note",
			json_string(
				"the recording has no GPU samples: no NVIDIA driver was found, or it "
				"was made by the published agent"));
	return full;
}

MCP_ANSWERS(mcp_gpu_state, gpus_value)
