/* SPDX-License-Identifier: Apache-2.0 */
/* view_json.c - see view_json.h. */
#include "cli/view_json.h"

#include <stdio.h>

#include "cli/event_json.h"
#include "wire/names.h"

static void put_uint(struct json_writer *w, const char *key, uint64_t v)
{
	json_key(w, key);
	json_put_uint(w, v);
}

static void put_double(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	json_put_double(w, v);
}

static void put_string(struct json_writer *w, const char *key, const char *v)
{
	json_key(w, key);
	json_put_string(w, v);
}

static void put_host(struct json_writer *w, const struct host_sample *h)
{
	json_key(w, "system");
	json_begin_object(w);
	put_double(w, "cpu_pct", h->cpu_pct);
	put_double(w, "mem_pct", h->mem_pct);
	put_uint(w, "mem_avail_mb", h->mem_avail_mb);
	put_uint(w, "swap_mb", h->swap_mb);
	put_double(w, "load_avg", h->load1);
	json_end_object(w);
}

static void put_op(struct json_writer *w, const struct tracer_op *o)
{
	char scratch[32];

	json_begin_object(w);
	put_string(w, "source", wire_source_name(o->source));
	put_string(w, "op", wire_op_name(o->source, o->op, scratch));
	json_key(w, "nested");
	json_put_bool(w, o->nested);
	put_uint(w, "count", o->count);
	if (o->sketch.count) { /* else an event without a duration */
		put_uint(w, "p50_ns", sketch_quantile(&o->sketch, 0.50));
		put_uint(w, "p95_ns", sketch_quantile(&o->sketch, 0.95));
		put_uint(w, "p99_ns", sketch_quantile(&o->sketch, 0.99));
		put_uint(w, "max_ns", o->sketch.max);
		put_uint(w, "sum_ns", o->sketch.sum);
	}
	json_end_object(w);
}

void view_json(struct json_writer *w, const struct tracer_view *v, const char *node, bool final)
{
	json_begin_object(w);
	event_json_time(w, v->now);
	put_string(w, "node", node);
	put_string(w, "source", "ingero");
	put_string(w, "op", "table");
	json_key(w, "final");
	json_put_bool(w, final);
	put_uint(w, "duration_ns", (uint64_t)(v->now.ns - v->started.ns));
	put_uint(w, "processes", v->processes);
	put_uint(w, "libraries", v->libraries);
	put_uint(w, "runtime_probes", v->runtime_probes);
	put_uint(w, "driver_probes", v->driver_probes);
	put_string(w, "method", v->method);
	if (v->has_host)
		put_host(w, &v->host);
	json_key(w, "ops");
	json_begin_array(w);
	for (size_t i = 0; i < v->op_count; i++)
		put_op(w, &v->ops[i]);
	json_end_array(w);
	put_uint(w, "db_bytes", v->db_bytes);
	put_string(w, "store_error", v->store_error);
	put_uint(w, "clock_steps", v->clock_steps);
	put_double(w, "overhead", v->overhead);
	put_double(w, "overhead_budget", v->overhead_budget);
	put_uint(w, "launch_weight", v->launch_weight);
	put_uint(w, "coverage_gaps", v->gap_count + v->gaps_more);
	json_end_object(w);
	json_finish(w);
}
