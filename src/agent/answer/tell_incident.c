/* SPDX-License-Identifier: Apache-2.0 */
/* tell_incident.c - the engine's explanation of a time, with how complete the data is that it rests
 * on. Loads what the time holds: the costliest of all answers, so whoever is asked often keeps it.
 */
#include "agent/answer/explain.h"
#include "agent/answer/report_json.h"
#include "agent/answer/tell_private.h"

#define SENTENCE_BYTES 512
#define INCIDENTS      100
#define WHERE_STACKS   4096 /* the heaviest are enough to say where */

static void put_completeness(struct json_writer *w, const struct report_scope *s)
{
	_cleanup_buf_ struct buf why = BUF_INIT(SENTENCE_BYTES);
	double hits = 0, lost = 0;

	if (s->books && accounting_put_unclean(s->books, &why))
		json_string_member(w, "unclean", buf_str(&why));
	json_key(w, "completeness"); /* null: losses of this recording are unknown */
	if (!s->books || s->books->unclean) {
		json_put_null(w);
		return;
	}
	/* While tracing goes on, hits that are neither stored nor lost are on their way. */
	for (unsigned i = 0; i < WIRE_SOURCE_MAX; i++) {
		hits += (double)s->books->source[i].hits;
		lost += (double)account_lost(&s->books->source[i]);
	}
	json_put_double(w, hits > 0 ? MAX(1 - lost / hits, 0.0) : 1.0);
}

static void put_data(struct json_writer *w, const struct report_scope *s)
{
	json_key(w, "data");
	json_begin_object(w);
	json_int_member(w, "first_ns", s->first_ns);
	json_int_member(w, "last_ns", s->last_ns);
	json_uint_member(w, "events", s->events);
	json_uint_member(w, "calls", s->calls);
	json_uint_member(w, "skipped_rows", s->skipped_rows);
	json_uint_member(w, "older_events", s->older_events);
	json_uint_member(w, "thinned_rows", s->thinned_rows);
	json_uint_member(w, "pruned_rows", s->pruned_rows);
	if (s->pruned_before)
		json_int_member(w, "pruned_before_ns", s->pruned_before);
	tell_bool(w, "no_gpu_calls", s->no_gpu_calls);
	put_completeness(w, s);
	json_end_object(w);
}

static bool is_of_pid(const struct incident *i, const struct tell_wish *wish)
{
	for (size_t k = 0; k < wish->pid_count; k++)
		if (i->pid == wish->pids[k])
			return true;
	return !wish->pid_count;
}

int tell_incidents(const struct tell *t, struct json_writer *w, struct errinfo *reterr)
{
	struct nodedb_filter f = {.from_ns = t->scope.from_ns,
		.to_ns = t->scope.to_ns,
		.pids = t->scope.pids,
		.pid_count = t->scope.pid_count,
		.thin = NODEDB_THIN_LARGE,
		.labels = true,
		.stacks = NODEDB_STACKS_USED,
		.stacks_max = WHERE_STACKS};
	size_t limit = tell_limit(t->wish->limit, INCIDENTS, CORRELATE_INCIDENTS_MAX), shown = 0, i;
	uint64_t began = mono_now().ns;
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	_cleanup_(explanation_done) struct explanation e = {0};
	int r;

	if (t->by_default && !t->live)
		f.from_ns = f.to_ns = 0;
	r = nodedb_read(nodedb_look_path(t->look), &f, &c, reterr);
	if (r == 0)
		r = explain_find(&c, false, &e, reterr);
	if (r < 0)
		return r;
	e.scope.with_labels = c.label_count > 0;
	e.scope.with_stacks = t->wish->stacks;
	json_begin_object(w);
	json_key(w, "incidents");
	json_begin_array(w);
	for (i = 0; i < e.count && shown < limit; i++)
		if (is_of_pid(&e.incidents[i], t->wish)) {
			report_json_incident(w, &e.incidents[i], &e.scope);
			shown++;
		}
	json_end_array(w);
	put_data(w, &e.scope);
	json_double_member(w, "computed_ms", (double)(mono_now().ns - began) / (double)NS_PER_MS);
	tell_bool(w, "truncated", i < e.count || e.count == CORRELATE_INCIDENTS_MAX);
	tell_window(t, w);
	json_end_object(w);
	return 0;
}
