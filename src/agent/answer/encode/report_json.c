/* SPDX-License-Identifier: Apache-2.0 */
/* report_json.c - see report_json.h. The published keys (id, severity, summary, root_cause,
 * detected_at) keep their names; everything else an incident knows is there too. */
#include "agent/answer/encode/report_json.h"

#include <string.h>

#include "agent/answer/chain_step.h"
#include "agent/answer/labels.h"
#include "agent/answer/encode/stack_report.h"
#include "agent/answer/where.h"
#include "json/writer.h"
#include "model/problem.h"
#include "wire/names.h"

static void put_causes(struct json_writer *w, const struct incident *i)
{
	json_key(w, "causes");
	json_begin_array(w);
	for (int k = 0; k < i->cause_count; k++) {
		const struct incident_cause *c = &i->causes[k];

		json_begin_object(w);
		json_string_member(w, "cause", cause_name(c->cause));
		json_string_member(w, "layer", cause_layer(c->cause));
		json_uint_member(w, "culprit_pid", c->culprit_pid);
		json_string_member(w, "culprit", c->culprit);
		json_double_member(w, "culprit_share", c->culprit_share);
		json_uint_member(w, "ns", c->ns);
		json_double_member(
			w, "share", i->excess_ns ? (double)c->ns / (double)i->excess_ns : 0);
		json_uint_member(w, "calls", c->calls);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_timeline(struct json_writer *w, const struct incident *i)
{
	json_key(w, "timeline");
	json_begin_array(w);
	for (int k = 0; k < i->step_count; k++) {
		json_begin_object(w);
		json_key(w, "timestamp_ns");
		json_put_int(w, i->timeline[k].time.ns);
		json_uint_member(w, "duration_ns", i->timeline[k].dur_ns);
		json_string_member(w, "layer", i->timeline[k].layer);
		json_string_member(w, "op", i->timeline[k].op);
		json_string_member(w, "detail", i->timeline[k].detail);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_stats(struct json_writer *w, const struct incident *i)
{
	json_key(w, "first_seen_ns");
	json_put_int(w, i->first.ns);
	json_key(w, "last_seen_ns");
	json_put_int(w, i->last.ns);
	json_uint_member(w, "calls", i->calls);
	json_uint_member(w, "slow_calls", i->slow_calls);
	json_uint_member(w, "baseline_ns", i->baseline_ns);
	json_uint_member(w, "p50_ns", i->p50_ns);
	json_uint_member(w, "p99_ns", i->p99_ns);
	json_uint_member(w, "slow_p50_ns", i->slow_p50_ns);
	json_double_member(w, "tail_ratio", i->tail_ratio);
	json_uint_member(w, "excess_ns", i->excess_ns);
	json_double_member(w, "explained", i->explained);
	json_double_member(w, "confidence", i->confidence);
	json_key(w, "completeness"); /* null: losses of this recording are unknown */
	if (i->completeness < 0)
		json_put_null(w);
	else
		json_put_double(w, i->completeness);
}

/* Only if annotations were asked for. */
static void put_labels(
	struct json_writer *w, const struct incident *i, const struct report_scope *scope)
{
	struct label_range ranges[LABELS_KEYS_MAX];
	size_t more;
	int n;

	if (!scope->with_labels)
		return;
	n = labels_during(scope->labels, scope->label_count, i, ranges, &more);
	json_key(w, "annotations");
	json_begin_array(w);
	for (int k = 0; k < n; k++) {
		json_begin_object(w);
		json_string_member(w, "key", ranges[k].key);
		json_key(w, "values"); /* the first ones and the last */
		json_begin_array(w);
		for (int v = 0; v < ranges[k].value_count; v++)
			json_put_string(w, ranges[k].values[v]);
		json_end_array(w);
		json_uint_member(w, "total", ranges[k].total);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_where(
	struct json_writer *w, const struct incident *i, const struct report_scope *scope)
{
	struct where where;

	json_key(w, "where"); /* null: no stack says it */
	if (!where_find(i, &scope->stacks, &where)) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	if (stack_frame_is_python(where.frame)) {
		json_string_member(w, "py_file", where.frame->py_file);
		json_string_member(w, "py_func", where.frame->py_func);
		json_uint_member(w, "py_line", where.frame->py_line);
	} else {
		json_string_member(w, "symbol", where.frame->symbol);
		json_string_member(w, "file", where.frame->file);
		json_uint_member(w, "line", where.frame->line);
	}
	json_uint_member(w, "ns", where.ns);
	json_double_member(w, "share", where.share);
	json_end_object(w);
}

/* Of several processes: the first ones, and how many they are. */
static void put_pids(struct json_writer *w, const struct incident *i)
{
	json_uint_member(w, "pid", i->pid);
	if (!i->pid_total)
		return;
	json_key(w, "pids");
	json_begin_array(w);
	for (int k = 0; k < i->pid_count; k++)
		json_put_uint(w, i->pids[k]);
	json_end_array(w);
	json_uint_member(w, "processes", i->pid_total);
}

/* What is not slow calls of one op: how often, whose rank, how regular, since when. */
static void put_course(struct json_writer *w, const struct incident *i)
{
	json_uint_member(w, "count", i->unit ? i->count : i->slow_calls);
	json_string_member(w, "unit", i->unit ? i->unit : "slow calls");
	if (i->culprit_rank >= 0)
		json_int_member(w, "culprit_rank", i->culprit_rank);
	if (i->period_steps) {
		json_uint_member(w, "period_steps", i->period_steps);
		json_double_member(w, "period_confidence", i->period_confidence);
	}
	if (i->since.ns)
		json_int_member(w, "since_ns", i->since.ns);
}

void report_json_incident(
	struct json_writer *w, const struct incident *i, const struct report_scope *scope)
{
	char scratch[32];

	json_begin_object(w);
	json_string_member(w, "id", i->id);
	json_string_member(w, "node", scope->node ? scope->node : "");
	json_string_member(w, "severity", severity_name(i->severity));
	json_string_member(w, "problem", problem_row(i->problem)->id);
	json_string_member(w, "summary", i->summary);
	json_string_member(w, "root_cause", i->root_cause);
	json_string_member(w, "explanation", i->explanation);
	put_pids(w, i);
	json_string_member(w, "comm", i->comm);
	json_string_member(w, "source", wire_source_name(i->source));
	json_string_member(w, "op", wire_op_name(i->source, i->op, scratch));
	put_stats(w, i);
	put_course(w, i);
	put_causes(w, i);
	put_timeline(w, i);
	json_key(w, "fixes");
	json_begin_array(w);
	for (int k = 0; k < i->fix_count; k++)
		json_put_string(w, i->fixes[k]);
	json_end_array(w);
	json_key(w, "evidence");
	json_begin_array(w);
	for (int k = 0; k < i->evidence_count; k++)
		json_put_uint(w, i->evidence[k]);
	json_end_array(w);
	json_string_member(w, "evidence_sql", i->evidence_sql);
	put_where(w, i, scope);
	if (scope->with_stacks) {
		json_key(w, "stacks");
		stack_report_incident(w, i, &scope->stacks);
	}
	put_labels(w, i, scope);
	json_end_object(w);
}

static void put_incidents(struct json_writer *w, const struct incident *incidents, size_t count,
	const struct report_scope *scope)
{
	for (size_t i = 0; i < count; i++)
		report_json_incident(w, &incidents[i], scope);
}

/* An object of incidents and stacks. */
static void put_both(struct json_writer *w, const struct incident *incidents, size_t count,
	const struct report_scope *scope, bool node)
{
	struct stack_report stacks = {.stacks = &scope->stacks,
		.totals = scope->totals,
		.total_count = scope->total_count};

	json_begin_object(w);
	if (node)
		json_string_member(w, "node", scope->node);
	json_key(w, "incidents");
	json_begin_array(w);
	put_incidents(w, incidents, count, scope);
	json_end_array(w);
	json_key(w, "stacks");
	stack_report_totals(w, &stacks);
	json_end_object(w);
}

void report_json_add(struct json_writer *w, const struct incident *incidents, size_t count,
	const struct report_scope *scope)
{
	if (scope->with_stacks)
		put_both(w, incidents, count, scope, true);
	else
		put_incidents(w, incidents, count, scope);
}

void report_json(struct buf *b, const struct incident *incidents, size_t count,
	const struct report_scope *scope)
{
	struct json_writer w = json_writer_to_buf(b);

	w.indent = true;
	if (scope->with_stacks) {
		put_both(&w, incidents, count, scope, false);
	} else {
		json_begin_array(&w);
		put_incidents(&w, incidents, count, scope);
		json_end_array(&w);
	}
	json_finish(&w);
}

static void put_chain_timeline(struct json_writer *w, const char *lines)
{
	struct chain_step step;

	json_key(w, "timeline");
	json_begin_array(w);
	while ((lines = chain_step_next(lines, &step))) {
		json_begin_object(w);
		json_key(w, "layer");
		json_put_string_len(w, step.layer, step.layer_len);
		json_key(w, "detail");
		json_put_string_len(w, step.detail, step.detail_len);
		if (step.has_us)
			json_uint_member(w, "dur_us", step.us);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_lines(struct json_writer *w, const char *key, const char *lines)
{
	json_key(w, key);
	json_begin_array(w);
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		json_put_string_len(w, lines, len);
		lines += len + (lines[len] == '\n');
	}
	json_end_array(w);
}

void report_json_add_chains(struct json_writer *w, const struct incident_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		json_begin_object(w);
		json_string_member(w, "id", rows[i].id);
		json_string_member(w, "severity", rows[i].severity);
		json_string_member(w, "summary", rows[i].summary);
		json_string_member(w, "root_cause", rows[i].root_cause);
		json_int_member(w, "detected_at", rows[i].detected_ns);
		json_string_member(w, "explanation", rows[i].explanation);
		json_string_member(w, "op", rows[i].op);
		json_double_member(w, "tail_ratio", rows[i].tail_ratio);
		put_chain_timeline(w, rows[i].timeline);
		put_lines(w, "fixes", rows[i].fixes);
		json_end_object(w);
	}
}

void report_json_chains(struct buf *b, const struct incident_row *rows, size_t count)
{
	struct json_writer w = json_writer_to_buf(b);

	w.indent = true;
	json_begin_array(&w);
	report_json_add_chains(&w, rows, count);
	json_end_array(&w);
	json_finish(&w);
}
