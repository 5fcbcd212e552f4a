/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_gpu.c - get_gpu_state: for each GPU its last reading and what the range of them was. */
#include "agent/serve/mcp_tool.h"

#include <stdio.h>
#include <string.h>

#include "agent/serve/mcp_clean.h"
#include "agent/serve/mcp_tsc.h"
#include "mcp/rpc.h"

#define GPUS_MAX 64

struct gauge {
	int64_t min, max;
	double sum;
	uint64_t n;
};

struct gpu {
	const struct gpu_sample *last;
	uint64_t samples, throttled;
	uint64_t reasons; /* all that were ever seen */
	struct gauge util, power, temperature, clock;
};

static void gauge_add(struct gauge *g, int64_t v)
{
	if (v < 0)
		return;
	g->min = g->n ? MIN(g->min, v) : v;
	g->max = g->n ? MAX(g->max, v) : v;
	g->sum += (double)v;
	g->n++;
}

static uint64_t slowing_bits(int64_t reasons)
{
	uint64_t bits = 0;

	for (const struct gpu_throttle *t = gpu_throttles; reasons > 0 && t->bit; t++)
		if (t->slows)
			bits |= (uint64_t)reasons & t->bit;
	return bits;
}

static void gpu_add(struct gpu *g, const struct gpu_sample *s)
{
	uint64_t bits = slowing_bits(s->throttle_reasons);

	g->last = s;
	g->samples++;
	g->throttled += bits != 0;
	g->reasons |= bits;
	gauge_add(&g->util, s->util_gpu_pct);
	gauge_add(&g->power, s->power_mw);
	gauge_add(&g->temperature, s->temperature_c);
	gauge_add(&g->clock, s->sm_clock_mhz);
}

static size_t collect(const struct nodedb_content *c, struct gpu gpus[GPUS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < c->gpu_sample_count; i++) {
		const struct gpu_sample *s = &c->gpu_samples[i];
		size_t k = 0;

		while (k < n &&
			(gpus[k].last->index != s->index || strcmp(gpus[k].last->uuid, s->uuid)))
			k++;
		if (k == GPUS_MAX)
			continue;
		n = MAX(n, k + 1);
		gpu_add(&gpus[k], s);
	}
	return n;
}

static json_t *gauge_json(const struct gauge *g)
{
	if (!g->n)
		return json_null();
	return json_pack("{s:I, s:I, s:f}", "min", (json_int_t)g->min, "max", (json_int_t)g->max,
		"avg", g->sum / (double)g->n);
}

static json_t *reading_json(const struct gpu_sample *s)
{
	json_t *o = json_object();

#define X(field, meaning)                                                                          \
	if (s->field != GPU_UNKNOWN)                                                               \
		json_object_set_new(o, #field, json_integer((json_int_t)s->field));
	GPU_FIELDS(X)
#undef X
	json_object_del(o, "throttle_reasons"); /* said by name */
	json_object_del(o, "nvml_error");
	json_object_del(o, "last_xid_ns");
	return o;
}

static json_t *gpu_json(const struct gpu *g)
{
	_cleanup_json_ json_t *raw =
		json_pack("{s:I}", "timestamp_ns", (json_int_t)g->last->time.ns);
	_cleanup_json_ json_t *time = mcp_tsc_full(raw);
	char reasons[256];

	return json_pack("{s:I, s:o, s:o, s:I, s:O, s:f, s:s, s:o, s:o, s:o, s:o, s:o}", "gpu",
		(json_int_t)g->last->index, "name", mcp_clean_string(g->last->name, MCP_CLEAN_NAME),
		"uuid", mcp_clean_string(g->last->uuid, MCP_CLEAN_NAME), "samples",
		(json_int_t)g->samples, "last_at", json_object_get(time, "timestamp"),
		"throttled_percent", 100.0 * (double)g->throttled / (double)g->samples,
		"throttled_by", gpu_throttle_text(g->reasons, reasons, sizeof(reasons)),
		"util_percent", gauge_json(&g->util), "power_mw", gauge_json(&g->power),
		"temperature_c", gauge_json(&g->temperature), "sm_clock_mhz", gauge_json(&g->clock),
		"last", reading_json(g->last));
}

void mcp_gpu_state(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = {.filter = {.thin = NODEDB_THIN_LARGE}};
	struct gpu gpus[GPUS_MAX] = {0};
	json_t *list = json_array(), *full;
	struct errinfo e = {0};
	size_t n;
	int r = mcp_part_read(mcp_settings_of(c)->db, arguments, &part, &content, &e);

	if (r < 0) {
		json_decref(list);
		mcp_reply_error(a, r, &e);
		return;
	}
	n = collect(&content, gpus);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, gpu_json(&gpus[i]));
	full = json_pack("{s:o, s:o}", "gpus", list, "range", mcp_range(&content, &part));
	if (!n)
		json_object_set_new(full, "note",
			json_string("the recording holds no readings of GPUs: no driver was there, "
				    "or it is of the published agent"));
	mcp_reply(a, arguments, full, NULL);
}
