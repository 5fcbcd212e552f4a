/* SPDX-License-Identifier: Apache-2.0 */
/* stack_report.h - the stacks that matter: what `explain --stacks` adds to the report. */
#pragma once

#include "answer/stacks.h"
#include "base/buf.h"
#include "json/writer.h"
#include "model/incident.h"
#include "model/stack.h"

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
