/* SPDX-License-Identifier: Apache-2.0 */
/* report_json.c - see report_json.h. The published keys (id, severity, summary, root_cause,
 * detected_at) keep their names; everything else an incident knows is there too. */
#include "cli/report_json.h"

#include "cli/labels.h"
#include "json/writer.h"
#include "wire/names.h"

static void put_string(struct json_writer *w, const char *key, const char *v)
{
	json_key(w, key);
	json_put_string(w, v);
}

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

static void put_causes(struct json_writer *w, const struct incident *i)
{
	json_key(w, "causes");
	json_begin_array(w);
	for (int k = 0; k < i->cause_count; k++) {
		const struct incident_cause *c = &i->causes[k];

		json_begin_object(w);
		put_string(w, "cause", cause_name(c->cause));
		put_string(w, "layer", cause_layer(c->cause));
		put_uint(w, "culprit_pid", c->culprit_pid);
		put_string(w, "culprit", c->culprit);
		put_double(w, "culprit_share", c->culprit_share);
		put_uint(w, "ns", c->ns);
		put_double(w, "share", i->excess_ns ? (double)c->ns / (double)i->excess_ns : 0);
		put_uint(w, "calls", c->calls);
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
		put_uint(w, "duration_ns", i->timeline[k].dur_ns);
		put_string(w, "layer", i->timeline[k].layer);
		put_string(w, "op", i->timeline[k].op);
		put_string(w, "detail", i->timeline[k].detail);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_figures(struct json_writer *w, const struct incident *i)
{
	json_key(w, "first_seen_ns");
	json_put_int(w, i->first.ns);
	json_key(w, "last_seen_ns");
	json_put_int(w, i->last.ns);
	put_uint(w, "calls", i->calls);
	put_uint(w, "slow_calls", i->slow_calls);
	put_uint(w, "baseline_ns", i->baseline_ns);
	put_uint(w, "p50_ns", i->p50_ns);
	put_uint(w, "p99_ns", i->p99_ns);
	put_uint(w, "slow_p50_ns", i->slow_p50_ns);
	put_double(w, "tail_ratio", i->tail_ratio);
	put_uint(w, "excess_ns", i->excess_ns);
	put_double(w, "explained", i->explained);
	put_double(w, "confidence", i->confidence);
	json_key(w, "completeness"); /* null: the recording does not say what it lost */
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
		put_string(w, "key", ranges[k].key);
		json_key(w, "values"); /* the first ones and the last */
		json_begin_array(w);
		for (int v = 0; v < ranges[k].value_count; v++)
			json_put_string(w, ranges[k].values[v]);
		json_end_array(w);
		put_uint(w, "total", ranges[k].total);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_incident(
	struct json_writer *w, const struct incident *i, const struct report_scope *scope)
{
	char scratch[32];

	json_begin_object(w);
	put_string(w, "id", i->id);
	put_string(w, "severity", severity_name(i->severity));
	put_string(w, "summary", i->summary);
	put_string(w, "root_cause", i->root_cause);
	put_string(w, "explanation", i->explanation);
	put_uint(w, "pid", i->pid);
	put_string(w, "comm", i->comm);
	put_string(w, "source", wire_source_name(i->source));
	put_string(w, "op", wire_op_name(i->source, i->op, scratch));
	put_figures(w, i);
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
	put_string(w, "evidence_sql", i->evidence_sql);
	put_labels(w, i, scope);
	json_end_object(w);
}

void report_json(struct buf *b, const struct incident *incidents, size_t count,
	const struct report_scope *scope)
{
	struct json_writer w = json_writer_to_buf(b);

	w.indent = true;
	json_begin_array(&w);
	for (size_t i = 0; i < count; i++)
		put_incident(&w, &incidents[i], scope);
	json_end_array(&w);
	json_finish(&w);
}

void report_json_chains(struct buf *b, const struct incident_row *rows, size_t count)
{
	struct json_writer w = json_writer_to_buf(b);

	w.indent = true;
	json_begin_array(&w);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&w);
		put_string(&w, "id", rows[i].id);
		put_string(&w, "severity", rows[i].severity);
		put_string(&w, "summary", rows[i].summary);
		put_string(&w, "root_cause", rows[i].root_cause);
		json_key(&w, "detected_at");
		json_put_int(&w, rows[i].detected_ns);
		put_string(&w, "fixes", rows[i].fixes);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_finish(&w);
}
