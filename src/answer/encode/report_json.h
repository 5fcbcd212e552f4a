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
#include "answer/stacks.h"
#include "model/stack.h"
#include "sql/sql_table.h"
#include "answer/steps.h"

/* report_json - an array of incidents, each with the account of its process's steps; with
 * scope->with_stacks an object of that, of the stacks with most time, of all accounts and of
 * what was examined (report.h). */
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

/* The stacks that matter: what `explain --stacks` adds to the report. */

struct stack_report {
	const struct stack_list *stacks;
	const struct stack_total *totals; /* of all calls, most time first */
	size_t total_count;
	size_t width; /* of a line; SIZE_MAX: no limit */
	bool color;
};

/* stack_report_text - for each of the @count incidents the stacks of its slow calls, with their
 * share of the excess; without incidents the stacks with most time. */
void stack_report_text(struct buf *b, const struct incident *incidents, size_t count,
	const struct stack_report *r);

/* stack_report_incident - the array of @inc's stacks: [{hash, ns, share, calls, stop, frames}, …].
 * stack_report_totals() - of all calls: [{hash, source, op, ns, share, calls, stop, frames}, …]. */
void stack_report_incident(
	struct json_writer *w, const struct incident *inc, const struct stack_list *stacks);
void stack_report_totals(struct json_writer *w, const struct stack_report *r);

/* The rows of a statement as a table for people, lines of JSON or CSV. */

enum sql_output { SQL_OUTPUT_TABLE, SQL_OUTPUT_JSON, SQL_OUTPUT_CSV };

#define SQL_OUTPUT_CELL 100 /* columns of a table's cell; longer texts are cut, and end in … */

/* sql_output_write - appends @t. Whatever it holds, a table cannot act on a terminal. JSON: one
 * object a line; a name that occurs twice becomes name:2, a blob its hexadecimal digits. CSV: as
 * RFC 4180 says, the names first; with @terminal, control characters are escaped in it too. */
void sql_output_write(
	struct buf *b, const struct sql_table *t, enum sql_output form, bool terminal);

/* The account of steps as JSON: the one encoding of commands, API and tools. */

#define STEPS_ENTRIES_FEW 6 /* an entry beyond these says little */

enum steps_detail {
	STEPS_FEW,    /* lines and the entries that matter */
	STEPS_FULL,   /* all entries, and the course of time */
	STEPS_STACKS, /* and the frames of each entry's stack */
};

/* steps_put_account - one of them, an object. */
void steps_put_account(
	struct json_writer *w, const struct steps_row *row, enum steps_detail detail);

/* steps_put - the members "accounts" (no more than @limit), "truncated" and, where there is none,
 * "reason" of an open object. */
void steps_put(struct json_writer *w, const struct steps_answer *a, size_t limit,
	enum steps_detail detail);
