/* SPDX-License-Identifier: Apache-2.0 */
/* view_json.c - see view_json.h. */
#include "cli/view_json.h"

#include <math.h>
#include <stdio.h>

#include "answer/encode/event_json.h"
#include "wire/names.h"

static void put_host(struct json_writer *w, const struct host_sample *h)
{
	json_begin_object_member(w, "system");
	json_double_member(w, "cpu_pct", h->cpu_pct);
	json_double_member(w, "mem_pct", h->mem_pct);
	json_uint_member(w, "mem_avail_mb", h->mem_avail_mb);
	json_uint_member(w, "swap_mb", h->swap_mb);
	json_double_member(w, "load_avg", h->load1);
	json_end_object(w);
}

static void put_op(struct json_writer *w, const struct tracer_op *o)
{
	char scratch[32];

	json_begin_object(w);
	json_string_member(w, "source", wire_source_name(o->source));
	json_string_member(w, "op", wire_op_name(o->source, o->op, scratch));
	json_bool_member(w, "nested", o->nested);
	json_uint_member(w, "count", o->count);
	if (o->sketch.count) { /* else an event without a duration */
		json_uint_member(w, "p50_ns", sketch_quantile(&o->sketch, 0.50));
		json_uint_member(w, "p95_ns", sketch_quantile(&o->sketch, 0.95));
		json_uint_member(w, "p99_ns", sketch_quantile(&o->sketch, 0.99));
		json_uint_member(w, "max_ns", o->sketch.max);
		json_uint_member(w, "sum_ns", o->sketch.sum);
	}
	json_end_object(w);
}

static void put_stacks(struct json_writer *w, const struct stacks_report *s)
{
	uint64_t lost = s->dropped;

	for (int i = 0; i < STACK_LOSS_COUNT; i++)
		lost += s->tally.lost[i];
	json_begin_object_member(w, "stacks");
	json_uint_member(w, "taken", s->tally.taken);
	json_uint_member(w, "taken_ns", s->tally.taken_ns);
	json_uint_member(w, "distinct", s->handed_on);
	json_uint_member(w, "complete", s->tally.complete);
	json_uint_member(w, "lost", lost);
	json_uint_member(w, "table_bytes", s->table_bytes);
	json_uint_member(w, "python_processes", s->python_processes);
	json_string_member(w, "python_refused", s->python_refused);
	json_uint_member(w, "symbol_process_ended", s->symbols.deaths);
	json_end_object(w);
}

static void put_missing(struct json_writer *w, const struct parts_missing *missing)
{
	json_begin_array_member(w, "missing");
	for (size_t i = 0; missing && i < missing->count; i++) {
		const struct probe_part_row *part = &probe_parts[missing->rows[i].part];

		json_begin_object(w);
		json_string_member(w, "part", part->name);
		json_string_member(w, "without", part->without);
		json_string_member(w, "since", part->since);
		json_string_member(w, "why", missing->rows[i].why);
		json_end_object(w);
	}
	json_end_array(w);
}

void view_json(struct json_writer *w, const struct tracer_view *v, const char *node, bool final)
{
	json_begin_object(w);
	event_json_time(w, v->now);
	json_string_member(w, "node", node);
	json_string_member(w, "source", "ingero");
	json_string_member(w, "op", "table");
	json_bool_member(w, "final", final);
	json_uint_member(w, "duration_ns", (uint64_t)(v->now.ns - v->started.ns));
	json_uint_member(w, "processes", v->processes);
	json_uint_member(w, "libraries", v->libraries);
	json_uint_member(w, "runtime_probes", v->runtime_probes);
	json_uint_member(w, "driver_probes", v->driver_probes);
	json_string_member(w, "method", v->method);
	put_missing(w, v->missing);
	if (v->has_host)
		put_host(w, &v->host);
	json_begin_array_member(w, "ops");
	for (size_t i = 0; i < v->op_count; i++)
		put_op(w, &v->ops[i]);
	json_end_array(w);
	json_uint_member(w, "db_bytes", v->db_bytes);
	json_string_member(w, "store_error", v->store_error);
	json_uint_member(w, "clock_steps", v->clock_steps);
	json_double_member(w, "overhead", v->overhead);
	json_double_member(w, "overhead_low", v->overhead_low);
	json_double_member(w, "overhead_high", v->overhead_high);
	json_uint_member(w, "overhead_pairs", v->overhead_pairs);
	json_double_member(w, "overhead_budget", v->overhead_budget);
	json_uint_member(w, "launch_weight", (uint64_t)lrint(1 / fmax(v->launches.watched, 1e-3)));
	json_double_member(w, "launches", v->launches.launches);
	json_double_member(w, "launches_error", v->launches.error);
	json_double_member(w, "launches_watched", v->launches.watched);
	json_uint_member(w, "launches_windows", v->launches.windows);
	json_uint_member(w, "names_lost", v->names_lost);
	json_uint_member(w, "coverage_gaps", v->gap_count + v->gaps_more);
	if (v->has_stacks)
		put_stacks(w, &v->stacks);
	json_end_object(w);
	json_finish(w);
}
