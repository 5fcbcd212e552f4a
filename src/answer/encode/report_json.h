/* SPDX-License-Identifier: Apache-2.0 */
/* report_json.h - incidents and stored verdicts as JSON arrays, complete. */
#pragma once

#include "store/nodedb.h"
#include "base/buf.h"
#include "answer/encode/report.h"
#include "json/writer.h"
#include "model/incident.h"
#include "answer/answer.h"
#include "answer/incidents.h"

/* report_json - an array of incidents, each with the account of its process's steps; with
 * scope->with_stacks an object of that, of the stacks with most time, of all accounts and of
 * what was examined (all_clear.h). */
void report_json(struct buf *b, const struct incident *incidents, size_t count,
	const struct report_scope *scope);

/* report_json_incident - one of them, as an object; INCIDENT_FULL: also its node and the account of its
 * process's steps. */
void report_json_incident(struct json_writer *w, const struct incident *i,
	const struct report_scope *scope, enum incident_show show);

/* report_json_fields - its members alone, of the incident itself: those that @show says. */
void report_json_fields(struct json_writer *w, const struct incident *i, enum incident_show show);

/* report_json_add - the incidents as elements of an open array; with scope->with_stacks one
 * element, an object of the node, its incidents, stacks and accounts. */
void report_json_add(struct json_writer *w, const struct incident *incidents, size_t count,
	const struct report_scope *scope);
void report_json_add_chains(struct json_writer *w, const struct incident_row *rows, size_t count);
void report_json_chains(struct buf *b, const struct incident_row *rows, size_t count);

/* incidents_put - "incidents" (of @request: the first of them, or the one whose id is its text), "total",
 * "examined" and "data". */
void incidents_put(struct json_writer *w, const struct incidents_answer *a,
	const struct answer_request *request);
