/* SPDX-License-Identifier: Apache-2.0 */
/* labels.c - see labels.h. Pure. */
#include "answer/labels.h"

#include <stdbool.h>
#include <string.h>

#include "answer/answer.h"

/* The processes of a time: whom they work for, what of them is seen, how much they
 * call; and which data a recording has. */

#define PROCESSES     200
#define PROCESSES_MAX 5000

static void put_coverage(struct json_writer *w, const struct sql_table *p, size_t row,
	const struct sql_table *coverage)
{
	int pid = table_column(coverage, "pid"), start = table_column(coverage, "start_time");
	int layer = table_column(coverage, "layer");

	json_begin_array_member(w, "coverage");
	for (size_t i = 0; i < coverage->row_count; i++) {
		if (table_int(coverage, i, pid) != table_int(p, row, 1) ||
			table_int(coverage, i, start) != table_int(p, row, 2) ||
			strcmp(table_text(coverage, i, 1), table_text(p, row, 0)) != 0)
			continue;
		json_begin_object(w);
		for (int c = layer; c < coverage->column_count; c++) {
			json_key(w, sql_table_name(coverage, c));
			table_cell(w, coverage, i, c);
		}
		json_end_object(w);
	}
	json_end_array(w);
}

/* The row of its calls; -1: it made none. */
static int find_calls(const struct sql_table *p, size_t row, const struct sql_table *calls)
{
	for (size_t i = 0; i < calls->row_count; i++)
		if (table_int(calls, i, 0) == table_int(p, row, 1))
			return (int)i;
	return -1;
}

static void put_calls(struct json_writer *w, const struct sql_table *calls, int row)
{
	json_int_member(w, "calls", row < 0 ? 0 : table_int(calls, (size_t)row, 1));
	put_us(w, "gpu_us", row < 0 ? 0 : table_real(calls, (size_t)row, 2));
}

static void put_process(struct json_writer *w, const struct sql_table *p, size_t row,
	const struct sql_table *calls, const struct sql_table *coverage)
{
	json_begin_object(w);
	for (int c = 0; c < p->column_count; c++) {
		json_key(w, sql_table_name(p, c));
		table_cell(w, p, row, c);
	}
	put_calls(w, calls, find_calls(p, row, calls));
	put_coverage(w, p, row, coverage);
	json_end_object(w);
}

/* Seen in the time, or calling in it: a row is written when a process is found and not again. */
static bool is_there(const struct question *q, const struct sql_table *p, size_t row,
	const struct sql_table *calls)
{
	return q->scope.from_ns <= q->range.first_ns || find_calls(p, row, calls) >= 0 ||
	       table_int(p, row, table_column(p, "last_seen")) >= q->scope.from_ns;
}

int processes_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table p = {0};
	_cleanup_(sql_table_done) struct sql_table coverage = {0};
	_cleanup_(sql_table_done) struct sql_table calls = {0};
	size_t limit = answer_limit(q->request->limit, PROCESSES, PROCESSES_MAX), shown = 0, i;
	struct scope scope = q->scope;
	int r;

	scope.from_ns = 0;
	r = nodedb_snapshot_list(q->snapshot, NODEDB_PROCESSES, &scope, 0, &p, reterr);
	if (r == 0)
		r = nodedb_snapshot_list(
			q->snapshot, NODEDB_COVERAGE, &scope, 0, &coverage, reterr);
	if (r == 0)
		r = nodedb_snapshot_list(q->snapshot, NODEDB_CALLS, &q->scope, 0, &calls, reterr);
	if (r < 0)
		return r;
	json_begin_object(w);
	json_begin_array_member(w, "processes");
	for (i = 0; i < p.row_count && shown < limit; i++)
		if (is_there(q, &p, i, &calls)) {
			put_process(w, &p, i, &calls, &coverage);
			shown++;
		}
	json_end_array(w);
	return answer_end(q, w, p.truncated || i < p.row_count);
}

/* ---- which data a recording has ---- */

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
		"incidents stored while tracing"},
	{"incidents", "Incidents", "incidents", "ingero trace",
		"when they began, were last seen and were resolved"},
	{"stacks", "Call stacks", "stack_traces", "ingero trace --stack",
		"native and Python frames of calls"},
	{"flame", "Flame graph", "stack_traces", "ingero trace --stack", "time by call stack"},
	{"host", "Host load", "system_snapshots", "ingero trace", "CPU, memory, stalls"},
	{"gpu", "GPU state", "gpu_samples", "NVIDIA driver (NVML)",
		"utilisation, power, temperature, throttling, memory, errors"},
	{"collectives", "NCCL collectives", "collectives", "ingero trace",
		"late and waiting ranks"},
	{"processes", "Processes", "processes", "ingero trace", "rank, job, container, coverage"},
	{"losses", "Losses", "accounting", "ingero trace", "hits = stored + aggregated + lost"},
	{"overhead", "Overhead", "overhead", "ingero trace", "overhead of tracing"},
	{"annotations", "Annotations", "annotations", "ingero annotate",
		"labels sent by the workload"},
	{"sm_stalls", "SM stall reasons", NULL, "Nsight Compute",
		"needs hardware counters, which slow the kernels that they measure"},
	{"kernel_times", "Kernel times on the GPU", NULL, "torch.profiler or Nsight Systems",
		"calls are traced on the host; kernels on the GPU are not"},
};

int capabilities_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	int r = 0;

	json_begin_object(w);
	json_begin_array_member(w, "capabilities");
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(capabilities); i++) {
		const struct capability *c = &capabilities[i];

		r = c->table ? nodedb_snapshot_has(q->snapshot, c->table, reterr) : 0;
		if (r < 0)
			break;
		json_begin_object(w);
		json_string_member(w, "id", c->id);
		json_string_member(w, "label", c->label);
		json_bool_member(w, "available", r > 0);
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

static bool is_span(const struct annotation_label *l)
{
	return l->span_end_ns != 0;
}

static bool holds(const struct annotation_label *l, const struct labels_span *i)
{
	if (l->pid && l->pid != i->pid)
		return false;
	if (is_span(l))
		return l->span_start_ns <= i->last_ns && l->span_end_ns >= i->first_ns;
	return l->time_ns <= i->last_ns;
}

static struct label_range *range_of(
	const char *key, struct label_range *ranges, int *count, size_t *more)
{
	for (int k = 0; k < *count; k++)
		if (!strcmp(ranges[k].key, key))
			return &ranges[k];
	if (*count == LABELS_KEYS_MAX) {
		++*more;
		return NULL;
	}
	ranges[*count] = (struct label_range){.key = key};
	return &ranges[(*count)++];
}

static void add_value(struct label_range *r, const char *value)
{
	if (r->value_count && !strcmp(r->values[r->value_count - 1], value))
		return;
	if (r->value_count == LABELS_VALUES_MAX)
		r->value_count--; /* the last place is for the last value */
	r->values[r->value_count++] = value;
	r->total++;
}

int labels_within(const struct annotation_label *labels, size_t count,
	const struct labels_span *span, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more)
{
	int keys = 0;

	*ret_more = 0;
	for (size_t n = 0; n < count; n++) {
		struct label_range *r;

		if (!holds(&labels[n], span))
			continue;
		r = range_of(labels[n].key, ret, &keys, ret_more);
		if (!r)
			continue;
		if (!is_span(&labels[n]) && labels[n].time_ns <= span->first_ns)
			r->total = (size_t)(r->value_count = 0); /* replaced before it began */
		add_value(r, labels[n].value);
	}
	return keys;
}

int labels_during(const struct annotation_label *labels, size_t count,
	const struct incident *incident, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more)
{
	struct labels_span span = {incident->pid, incident->first.ns, incident->last.ns};

	return labels_within(labels, count, &span, ret, ret_more);
}
