/* SPDX-License-Identifier: Apache-2.0 */
/* tell_process.c - the processes of a time: whom they work for, what of them is seen, how much they
 * call; and what a recording can tell at all. */
#include "agent/answer/tell_private.h"

#define PROCESSES     200
#define PROCESSES_MAX 5000

static void put_coverage(struct json_writer *w, const struct sql_table *p, size_t row,
	const struct sql_table *coverage)
{
	int pid = tell_column(coverage, "pid"), start = tell_column(coverage, "start_time");
	int layer = tell_column(coverage, "layer");

	json_key(w, "coverage");
	json_begin_array(w);
	for (size_t i = 0; i < coverage->row_count; i++) {
		if (tell_int(coverage, i, pid) != tell_int(p, row, 1) ||
			tell_int(coverage, i, start) != tell_int(p, row, 2) ||
			strcmp(tell_text(coverage, i, 1), tell_text(p, row, 0)) != 0)
			continue;
		json_begin_object(w);
		for (int c = layer; c < coverage->column_count; c++) {
			json_key(w, sql_table_name(coverage, c));
			tell_cell(w, coverage, i, c);
		}
		json_end_object(w);
	}
	json_end_array(w);
}

/* The row of its calls; -1: it made none. */
static int find_calls(const struct sql_table *p, size_t row, const struct sql_table *calls)
{
	for (size_t i = 0; i < calls->row_count; i++)
		if (tell_int(calls, i, 0) == tell_int(p, row, 1))
			return (int)i;
	return -1;
}

static void put_calls(struct json_writer *w, const struct sql_table *calls, int row)
{
	json_int_member(w, "calls", row < 0 ? 0 : tell_int(calls, (size_t)row, 1));
	tell_us(w, "gpu_us", row < 0 ? 0 : tell_real(calls, (size_t)row, 2));
}

static void put_process(struct json_writer *w, const struct sql_table *p, size_t row,
	const struct sql_table *calls, const struct sql_table *coverage)
{
	json_begin_object(w);
	for (int c = 0; c < p->column_count; c++) {
		json_key(w, sql_table_name(p, c));
		tell_cell(w, p, row, c);
	}
	put_calls(w, calls, find_calls(p, row, calls));
	put_coverage(w, p, row, coverage);
	json_end_object(w);
}

/* Seen in the time, or calling in it: a row is written when a process is found and not again. */
static bool is_there(
	const struct tell *t, const struct sql_table *p, size_t row, const struct sql_table *calls)
{
	return t->scope.from_ns <= t->range.first_ns || find_calls(p, row, calls) >= 0 ||
	       tell_int(p, row, tell_column(p, "last_seen")) >= t->scope.from_ns;
}

int tell_processes(const struct tell *t, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table p = {0};
	_cleanup_(sql_table_done) struct sql_table coverage = {0};
	_cleanup_(sql_table_done) struct sql_table calls = {0};
	size_t limit = tell_limit(t->wish->limit, PROCESSES, PROCESSES_MAX), shown = 0, i;
	struct nodedb_scope scope = t->scope;
	int r;

	scope.from_ns = 0;
	r = nodedb_look_list(t->look, NODEDB_PROCESSES, &scope, &p, reterr);
	if (r == 0)
		r = nodedb_look_list(t->look, NODEDB_COVERAGE, &scope, &coverage, reterr);
	if (r == 0)
		r = nodedb_look_list(t->look, NODEDB_CALLS, &t->scope, &calls, reterr);
	if (r < 0)
		return r;
	json_begin_object(w);
	json_key(w, "processes");
	json_begin_array(w);
	for (i = 0; i < p.row_count && shown < limit; i++)
		if (is_there(t, &p, i, &calls)) {
			put_process(w, &p, i, &calls, &coverage);
			shown++;
		}
	json_end_array(w);
	tell_bool(w, "truncated", p.truncated || i < p.row_count);
	tell_window(t, w);
	json_end_object(w);
	return 0;
}

/* ---- what a recording can tell ---- */

static const struct capability {
	const char *id, *label;
	const char *table;   /* it is there if this has a row */
	const char *tool;    /* what makes it; NULL: nothing can */
	const char *tooltip; /* what it shows, or why not */
} capabilities[] = {
	{"cuda_calls", "CUDA calls", "events", "ingero trace", "slow, rare and failed calls, each"},
	{"latency", "Latency percentiles", "event_aggregates_5s", "ingero trace",
		"of every call, stored or not"},
	{"chains", "Causal chains", "causal_chains", "ingero trace",
		"verdicts that were stored while tracing"},
	{"incidents", "Incidents", "incidents", "ingero trace",
		"their life: first, last, resolved"},
	{"stacks", "Call stacks", "stack_traces", "ingero trace --stack",
		"native and Python frames of calls"},
	{"flame", "Flame graph", "stack_traces", "ingero trace --stack", "time by call stack"},
	{"host", "Host load", "system_snapshots", "ingero trace", "CPU, memory, stalls"},
	{"gpu", "GPU state", "gpu_samples", "NVIDIA driver (NVML)",
		"utilisation, power, temperature, throttling, memory, errors"},
	{"collectives", "NCCL collectives", "collectives", "ingero trace",
		"who was last, who waited"},
	{"processes", "Processes", "processes", "ingero trace", "rank, job, container, coverage"},
	{"losses", "Losses", "accounting", "ingero trace", "hits = stored + aggregated + lost"},
	{"overhead", "Overhead", "overhead", "ingero trace", "what tracing cost"},
	{"annotations", "Annotations", "annotations", "ingero annotate",
		"labels sent by the workload"},
	{"sm_stalls", "SM stall reasons", NULL, "Nsight Compute",
		"needs hardware counters, which slow the kernels that they measure"},
	{"kernel_times", "Kernel times on the GPU", NULL, "torch.profiler or Nsight Systems",
		"calls are traced on the host; kernels on the GPU are not"},
};

int tell_capabilities(const struct tell *t, struct json_writer *w, struct errinfo *reterr)
{
	int r = 0;

	json_begin_object(w);
	json_key(w, "capabilities");
	json_begin_array(w);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(capabilities); i++) {
		const struct capability *c = &capabilities[i];

		r = c->table ? nodedb_look_has(t->look, c->table, reterr) : 0;
		if (r < 0)
			break;
		json_begin_object(w);
		json_string_member(w, "id", c->id);
		json_string_member(w, "label", c->label);
		tell_bool(w, "available", r > 0);
		if (c->table)
			json_string_member(w, "source", c->table);
		if (r == 0)
			json_string_member(w, "required_tool", c->tool);
		json_string_member(w, "tooltip", c->tooltip);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
	return MIN(r, 0);
}
