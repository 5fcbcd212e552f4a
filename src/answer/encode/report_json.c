/* SPDX-License-Identifier: Apache-2.0 */
/* report_json.c - see report_json.h. The published keys (id, severity, summary, root_cause,
 * detected_at) keep their names; everything else an incident knows is there too. */
#include "answer/encode/report_json.h"

#include "answer/encode/say.h"
#include "diagnose/compose/diagnose.h"

#define OF_CAUSE(...) ROW(struct incident_cause, __VA_ARGS__)
static const struct row_field cause_fields[] = {
	ROW_NAMED(struct incident_cause, "cause", cause, cause_name),
	ROW_NAMED(struct incident_cause, "layer", cause, cause_layer),
	OF_CAUSE("culprit_pid", culprit_pid),
	OF_CAUSE("culprit", culprit),
	OF_CAUSE("culprit_count", culprit_count),
	OF_CAUSE("culprit_share", culprit_share),
	OF_CAUSE("ns", ns),
	OF_CAUSE("calls", calls),
	ROW_END,
};

#define OF_STEP(...) ROW(struct incident_step, __VA_ARGS__)
static const struct row_field step_fields[] = {
	OF_STEP("timestamp_ns", time),
	OF_STEP("duration_ns", dur_ns),
	OF_STEP("layer", layer),
	OF_STEP("op", op),
	OF_STEP("detail", detail),
	ROW_END,
};

static void put_causes(struct json_writer *w, const struct incident *i)
{
	json_begin_array_member(w, "causes");
	for (int k = 0; k < i->cause_count; k++) {
		double ns = (double)i->causes[k].ns;

		json_begin_object(w);
		row_json(w, cause_fields, &i->causes[k], 0);
		json_double_member(w, "share", i->excess_ns ? ns / (double)i->excess_ns : 0);
		json_end_object(w);
	}
	json_end_array(w);
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
	json_begin_array_member(w, "annotations");
	for (int k = 0; k < n; k++) {
		json_begin_object(w);
		json_string_member(w, "key", ranges[k].key);
		json_begin_array_member(w, "values"); /* the first ones and the last */
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
		JSON_PUT(w, JSON_S("py_file", where.frame->py_file),
			JSON_S("py_func", where.frame->py_func),
			JSON_U("py_line", where.frame->py_line));
	} else {
		JSON_PUT(w, JSON_S("symbol", where.frame->symbol),
			JSON_S("file", where.frame->file), JSON_U("line", where.frame->line));
	}
	JSON_PUT(w, JSON_U("ns", where.ns), JSON_R("share", where.share));
	json_end_object(w);
}

static struct steps_row account_row(const struct report_scope *scope, size_t i)
{
	struct steps_row row = {.account = &scope->accounts.items[i], .stacks = &scope->stacks};

	snprintf(row.node, sizeof(row.node), "%s", scope->node ? scope->node : "");
	return row;
}

/* Of the incident's process, if it runs steps. */
static void put_account(
	struct json_writer *w, const struct incident *i, const struct report_scope *scope)
{
	for (size_t k = 0; k < scope->accounts.count; k++) {
		struct steps_row row = account_row(scope, k);

		if (row.account->pid != i->pid)
			continue;
		json_key(w, "account");
		steps_put_account(w, &row, STEPS_FEW);
		return;
	}
}

static void put_timeline(struct json_writer *w, const struct incident *i)
{
	row_json_list(w, "timeline", step_fields, i->timeline, sizeof(i->timeline[0]),
		(size_t)i->step_count, 0);
}

static void put_evidence(struct json_writer *w, const struct incident *i)
{
	json_begin_array_member(w, "evidence");
	for (int k = 0; k < i->evidence_count; k++)
		json_put_uint(w, i->evidence[k]);
	json_end_array(w);
}

static void put_fixes(struct json_writer *w, const struct incident *i)
{
	json_begin_array_member(w, "fixes");
	for (int k = 0; k < i->fix_count; k++)
		json_put_string(w, i->fixes[k]);
	json_end_array(w);
}

/* Only of several processes. */
static void put_pids(struct json_writer *w, const struct incident *i)
{
	if (!i->pid_total)
		return;
	json_begin_array_member(w, "pids");
	for (int k = 0; k < i->pid_count; k++)
		json_put_uint(w, i->pids[k]);
	json_end_array(w);
}

static void (*const lists[INCIDENT_FIELD_COUNT])(
	struct json_writer *w, const struct incident *i) = {
	[INCIDENT_F_PIDS] = put_pids,
	[INCIDENT_F_CAUSES] = put_causes,
	[INCIDENT_F_TIMELINE] = put_timeline,
	[INCIDENT_F_EVIDENCE] = put_evidence,
	[INCIDENT_F_FIXES] = put_fixes,
};

static void put_field(struct json_writer *w, enum incident_field_id id, const struct incident *i)
{
	const struct incident_field *f = &incident_fields[id];
	struct incident_value v;

	if (lists[id]) {
		lists[id](w, i);
		return;
	}
	incident_field_get(f, i, true, &v);
	switch (v.type) {
	case INCIDENT_UINT: json_uint_member(w, f->key, v.u); break;
	case INCIDENT_INT: json_int_member(w, f->key, v.i); break;
	case INCIDENT_REAL: json_double_member(w, f->key, v.d); break;
	case INCIDENT_TEXT: json_string_member(w, f->key, v.s); break;
	case INCIDENT_NOTHING:
		if (f->absent == INCIDENT_NULL_BELOW_0)
			json_string_member(w, f->key, NULL);
		break;
	}
}

void report_json_fields(struct json_writer *w, const struct incident *i, enum incident_show show)
{
	/* The answer comes first, for who reads a line. */
	static const enum incident_field_id head[] = {INCIDENT_F_ID, INCIDENT_F_SEVERITY,
		INCIDENT_F_PROBLEM, INCIDENT_F_SUMMARY, INCIDENT_F_ROOT_CAUSE};
	bool is_written[INCIDENT_FIELD_COUNT] = {false};

	for (size_t n = 0; n < ARRAY_SIZE(head); n++) {
		put_field(w, head[n], i);
		is_written[head[n]] = true;
	}
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++)
		if (incident_fields[n].key && incident_fields[n].show <= show && !is_written[n])
			put_field(w, (enum incident_field_id)n, i);
}

void report_json_incident(struct json_writer *w, const struct incident *i,
	const struct report_scope *scope, enum incident_show show)
{
	json_begin_object(w);
	report_json_fields(w, i, show);
	if (show == INCIDENT_FULL)
		json_string_member(w, "node", scope->node ? scope->node : "");
	put_where(w, i, scope);
	if (show == INCIDENT_FULL)
		put_account(w, i, scope);
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
		report_json_incident(w, &incidents[i], scope, INCIDENT_FULL);
}

/* An object of incidents, stacks and accounts. */
static void put_both(struct json_writer *w, const struct incident *incidents, size_t count,
	const struct report_scope *scope, bool node)
{
	struct stack_report stacks = {.stacks = &scope->stacks,
		.totals = scope->totals,
		.total_count = scope->total_count};

	json_begin_object(w);
	if (node)
		json_string_member(w, "node", scope->node);
	json_begin_array_member(w, "incidents");
	put_incidents(w, incidents, count, scope);
	json_end_array(w);
	json_key(w, "stacks");
	stack_report_totals(w, &stacks);
	json_begin_array_member(w, "accounts");
	for (size_t k = 0; k < scope->accounts.count; k++) {
		struct steps_row row = account_row(scope, k);

		steps_put_account(w, &row, STEPS_FULL);
	}
	json_end_array(w);
	json_key(w, "examined");
	all_clear_json(w, scope);
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

	json_begin_array_member(w, "timeline");
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
	json_begin_array_member(w, key);
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		json_put_string_len(w, lines, len);
		lines += len + (lines[len] == '\n');
	}
	json_end_array(w);
}

#define OF_CHAIN(...) ROW(struct incident_row, __VA_ARGS__)
static const struct row_field chain_fields[] = {
	OF_CHAIN("id", id),
	OF_CHAIN("severity", severity),
	OF_CHAIN("summary", summary),
	OF_CHAIN("root_cause", root_cause),
	OF_CHAIN("detected_at", detected_ns),
	OF_CHAIN("explanation", explanation),
	OF_CHAIN("op", op),
	OF_CHAIN("tail_ratio", tail_ratio),
	ROW_END,
};

void report_json_add_chains(struct json_writer *w, const struct incident_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		json_begin_object(w);
		row_json(w, chain_fields, &rows[i], 0);
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

/* /api/v1/incidents: the engine's explanation of a time, with how complete the
 * data is that it rests on. Loads what the time holds: the costliest of all answers, so whoever is
 * asked often keeps it. */

#define INCIDENTS      100
#define INCIDENTS_FEW  10
#define INCIDENTS_SAID 3

/* incidents_find - NULL: there is none with that id. */
static const struct incident *incidents_find(const struct incidents_answer *a, const char *id)
{
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->rows[i].incident->id, id) == 0)
			return a->rows[i].incident;
	return NULL;
}

void incidents_put(struct json_writer *w, const struct incidents_answer *a,
	const struct answer_request *request)
{
	size_t few = request->brief ? INCIDENTS_FEW : INCIDENTS;
	size_t limit = answer_limit(request->limit, few, DIAGNOSE_INCIDENTS_MAX), shown = 0;
	struct report_scope sum = incidents_scope(a);

	json_begin_array_member(w, "incidents");
	for (size_t i = 0; i < a->count && shown < limit; i++) {
		struct report_scope s = *a->rows[i].scope;

		if (request->text[0] && strcmp(a->rows[i].incident->id, request->text) != 0)
			continue;
		shown++;
		s.with_labels = s.label_count > 0;
		s.with_stacks = request->stacks;
		report_json_incident(w, a->rows[i].incident, &s,
			request->brief ? INCIDENT_BRIEF : INCIDENT_FULL);
	}
	json_end_array(w);
	json_uint_member(w, "total", request->text[0] ? shown : a->count);
	if (!request->brief || !a->count) {
		json_begin_array_member(w, "examined");
		for (size_t i = 0; i < a->node_count; i++)
			all_clear_json(w, &a->nodes[i].e.scope);
		json_end_array(w);
	}
	report_looked_at_json(w, &sum);
	if (request->say && request->text[0])
		say_incident(request->say, incidents_find(a, request->text));
	else if (request->say)
		say_incidents(request->say, a, INCIDENTS_SAID);
}

int incidents_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct nodedb_filter f = incidents_filter(&q->scope, false);
	size_t limit = answer_limit(q->request->limit, INCIDENTS, DIAGNOSE_INCIDENTS_MAX);
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	uint64_t began = mono_now().ns;
	int r;

	if (!q->request->to[0])
		f.scope.to_ns =
			0; /* an incident may be found after the last event that it is about */
	r = incidents_load(nodedb_snapshot_path(q->snapshot), &f, false, &a, reterr);
	if (r < 0)
		return r;
	if (q->request->text[0] && !incidents_find(&a, q->request->text))
		return errinfo_set(reterr, -ENOENT,
			"id: there is no such incident; ask without an id to list them");
	json_begin_object(w);
	incidents_put(w, &a, q->request);
	json_double_member(w, "computed_ms", (double)(mono_now().ns - began) / (double)NS_PER_MS);
	return answer_end(q, w, a.count > limit || a.count >= DIAGNOSE_INCIDENTS_MAX);
}
