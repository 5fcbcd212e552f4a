/* SPDX-License-Identifier: Apache-2.0 */
/* push_report.c - an agent's account of its rank as a log record with attributes, and back. The body
 * says the cause once more, for receivers that show only that. */

#include "push/push_private.h"

#define KEY_PID        "process.pid"
#define KEY_WORLD_RANK "ingero.world_rank"
#define KEY_DOING      "ingero.doing"
#define KEY_WHERE      "ingero.doing_where"
#define KEY_STEP       "ingero.step_ns"
#define KEY_ORDINARY   "ingero.ordinary_step_ns"
#define KEY_LINE       "ingero.account_line"
#define KEY_LINE_NS    "ingero.account_line_ns"
#define KEY_CAUSE      "ingero.cause"
#define KEY_FIX        "ingero.fix"
#define KEY_PLACE      "ingero.place"
#define KEY_INCIDENT   "ingero.incident.id"
#define KEY_CONFIDENCE "ingero.confidence"

#define SEVERITY_INFO 9

static void put_text(struct otlp_attributes *a, const char *key, const char *text)
{
	if (text[0])
		otlp_put_text(a, key, text);
}

static void put_time(struct otlp_attributes *a, const char *key, uint64_t ns)
{
	if (ns)
		otlp_put_int(a, key, push_time(ns));
}

void push_report_write(struct buf *b, const struct push_report *r, bool json)
{
	struct otlp_attributes resource, a;
	struct otlp_writer w;
	struct otlp_record record = {.attributes = &a,
		.time_ns = (uint64_t)r->sent_ns,
		.severity = SEVERITY_INFO,
		.event = PUSH_SCOPE_REPORT,
		.event_len = strlen(PUSH_SCOPE_REPORT)};

	resource.count = a.count = 0;
	push_who_put(&resource, &r->who);
	otlp_put_int(&a, KEY_PID, r->pid);
	if (r->world_rank >= 0)
		otlp_put_int(&a, KEY_WORLD_RANK, r->world_rank);
	otlp_put_text(&a, KEY_DOING, push_doing_id(r->doing));
	put_text(&a, KEY_WHERE, r->doing_where);
	put_time(&a, KEY_STEP, r->step_ns);
	put_time(&a, KEY_ORDINARY, r->ordinary_ns);
	put_text(&a, KEY_LINE, r->line);
	put_time(&a, KEY_LINE_NS, r->line_ns);
	put_text(&a, KEY_CAUSE, r->cause);
	put_text(&a, KEY_FIX, r->fix);
	put_text(&a, KEY_PLACE, r->place);
	put_text(&a, KEY_INCIDENT, r->incident);
	otlp_put_double(&a, KEY_CONFIDENCE, r->confidence);
	if (r->cause[0])
		record.body = (struct otlp_value){
			.kind = OTLP_TEXT, .text = r->cause, .len = strlen(r->cause)};
	otlp_write_begin(&w, b, json, true, &resource, PUSH_SCOPE_REPORT, PUSH_SCOPE_VERSION);
	otlp_write_record(&w, &record);
	otlp_write_end(&w);
}

static uint64_t get_time(const struct otlp_attributes *a, const char *key)
{
	int64_t ns = push_int_get(a, key, 0);

	return ns > 0 ? (uint64_t)ns : 0;
}

bool push_report_get(const struct otlp_record *r, struct push_report *ret)
{
	const struct otlp_attributes *a = r->attributes;
	int64_t pid = push_int_get(a, KEY_PID, 0), rank = push_int_get(a, KEY_WORLD_RANK, -1);
	char doing[PUSH_WORD_MAX];

	if (pid < 0 || pid > UINT32_MAX || rank < -1 || rank > INT32_MAX)
		return false;
	if (!push_word_get(a, KEY_DOING, doing, sizeof(doing)) ||
		!push_word_get(a, KEY_LINE, ret->line, sizeof(ret->line)) ||
		!push_word_get(a, KEY_INCIDENT, ret->incident, sizeof(ret->incident)))
		return false;
	if (!push_doing_parse(doing, &ret->doing))
		ret->doing = PUSH_DOING_UNKNOWN; /* a word of a later version */
	ret->pid = (uint32_t)pid;
	ret->world_rank = (int32_t)rank;
	ret->step_ns = get_time(a, KEY_STEP);
	ret->ordinary_ns = get_time(a, KEY_ORDINARY);
	ret->line_ns = get_time(a, KEY_LINE_NS);
	push_text_get(a, KEY_WHERE, ret->doing_where, sizeof(ret->doing_where));
	push_text_get(a, KEY_CAUSE, ret->cause, sizeof(ret->cause));
	push_text_get(a, KEY_FIX, ret->fix, sizeof(ret->fix));
	push_text_get(a, KEY_PLACE, ret->place, sizeof(ret->place));
	ret->confidence = push_double_get(a, KEY_CONFIDENCE, 0);
	return true;
}

/* An episode of a node as a span. One that is over has an event with outcome=resolved at its
 * end; one that the agent's own end cut off has none. */

#define NAME_STRAGGLER "ingero.detection.straggler"
#define NAME_DEGRADED  "ingero.detection.degradation"
#define EVENT_OUTCOME  "outcome"
#define KEY_OUTCOME    "outcome"
#define KIND_INTERNAL  1

void push_span_protobuf(struct buf *b, const struct push_span *s)
{
	const char *name = s->is_straggler ? NAME_STRAGGLER : NAME_DEGRADED;
	struct otlp_attributes resource, a, outcome;
	struct otlp_writer w;
	struct otlp_span span = {.attributes = &a,
		.name = name,
		.name_len = strlen(name),
		.start_ns = (uint64_t)s->start_ns,
		.end_ns = (uint64_t)s->end_ns,
		.kind = KIND_INTERNAL};
	const struct otlp_span_event event = {
		.name = EVENT_OUTCOME, .time_ns = (uint64_t)s->end_ns, .attributes = &outcome};

	resource.count = a.count = outcome.count = 0;
	push_who_put(&resource, &s->who);
	otlp_put_text(&a, PUSH_KEY_CLUSTER, s->who.cluster);
	otlp_put_text(&a, PUSH_KEY_COHORT, s->cohort);
	otlp_put_text(&a, PUSH_KEY_WORKLOAD, s->workload);
	if (s->gpu_model[0])
		otlp_put_text(&a, PUSH_KEY_MODEL, s->gpu_model);
	otlp_put_text(&a, PUSH_KEY_EVENT, s->event);
	otlp_put_text(&outcome, KEY_OUTCOME, "resolved");
	memcpy(span.trace, s->trace, sizeof(span.trace));
	memcpy(span.id, s->id, sizeof(span.id));
	otlp_write_begin(&w, b, false, false, &resource, PUSH_SCOPE_HEALTH, PUSH_SCOPE_VERSION);
	otlp_write_span(&w, &span, s->resolved ? &event : NULL);
	otlp_write_end(&w);
}

/* Explained incidents as log records with attributes. The body says the summary once more, for
 * receivers that show only that. */

#define SEVERITY_WARN 13

void push_chains_protobuf(
	struct buf *b, const struct push_who *who, const struct push_chain *chains, size_t count)
{
	struct otlp_attributes resource, a;
	struct otlp_writer w;

	resource.count = 0;
	push_who_put(&resource, who);
	otlp_write_begin(&w, b, false, true, &resource, PUSH_SCOPE_CHAIN, PUSH_SCOPE_VERSION);
	for (size_t i = 0; i < count; i++) {
		const struct push_chain *c = &chains[i];

		a.count = 0;
		for (size_t k = 0; k < c->attribute_count; k++) {
			const struct push_attribute *p = &c->attributes[k];

			if (p->kind == PUSH_TEXT && p->text[0])
				otlp_put_text(&a, p->key, p->text);
			else if (p->kind == PUSH_INT && p->i)
				otlp_put_int(&a, p->key, p->i);
			else if (p->kind == PUSH_REAL && p->d > 0)
				otlp_put_double(&a, p->key, p->d);
		}
		otlp_put_text(&a, "causal_chain_id", c->id); /* the event's, too */
		otlp_write_record(&w, &(struct otlp_record){.attributes = &a,
					      .time_ns = (uint64_t)c->detected_ns,
					      .severity = SEVERITY_WARN,
					      .body = {.kind = OTLP_TEXT,
						      .text = c->summary,
						      .len = strlen(c->summary)},
					      .event = PUSH_SCOPE_CHAIN,
					      .event_len = strlen(PUSH_SCOPE_CHAIN)});
	}
	otlp_write_end(&w);
}
