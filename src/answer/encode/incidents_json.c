/* SPDX-License-Identifier: Apache-2.0 */
/* incidents_json.c - /api/v1/incidents: the engine's explanation of a time, with how complete the
 * data is that it rests on. Loads what the time holds: the costliest of all answers, so whoever is
 * asked often keeps it. */
#include <errno.h>
#include <string.h>

#include "answer/answer_private.h"
#include "answer/incidents.h"
#include "answer/encode/all_clear.h"
#include "answer/encode/incidents_json.h"
#include "answer/encode/report_json.h"
#include "answer/encode/say.h"
#include "diagnose/compose/diagnose.h"

#define INCIDENTS      100
#define INCIDENTS_FEW  10
#define INCIDENTS_SAID 3

static void put_data(struct json_writer *w, const struct report_scope *s)
{
	json_begin_object_member(w, "data");
	json_int_member(w, "first_ns", s->first_ns);
	json_int_member(w, "last_ns", s->last_ns);
	json_uint_member(w, "events", s->events);
	json_uint_member(w, "calls", s->calls);
	json_uint_member(w, "skipped_rows", s->skipped_rows);
	json_uint_member(w, "older_events", s->older_events);
	json_uint_member(w, "older_ledger", s->older_ledger);
	json_uint_member(w, "collectives_without_communicator_id", s->nameless);
	json_uint_member(w, "thinned_rows", s->thinned_rows);
	json_uint_member(w, "pruned_rows", s->pruned_rows);
	if (s->pruned_before)
		json_int_member(w, "pruned_before_ns", s->pruned_before);
	json_bool_member(w, "no_gpu_calls", s->no_gpu_calls);
	put_completeness(w, &s->completeness);
	json_end_object(w);
}

const struct incident *incidents_find(const struct incidents_answer *a, const char *id)
{
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->rows[i].incident->id, id) == 0)
			return a->rows[i].incident;
	return NULL;
}

/* What @id names; "": all. */
static bool is_asked(const struct incidents_row *row, const char *id)
{
	return !id[0] || strcmp(row->incident->id, id) == 0;
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

		if (!is_asked(&a->rows[i], request->text))
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
	put_data(w, &sum);
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
