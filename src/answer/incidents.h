/* SPDX-License-Identifier: Apache-2.0 */
/* incidents.h - what went wrong in a part of a recording, for whoever shows it. */
#pragma once

#include "answer/explain.h"

struct incidents_node { /* process ids of different nodes have nothing in common */
	struct nodedb_content content;
	struct explanation e;
};

struct incidents_row {
	const struct incident *incident;
	const struct report_scope *scope; /* of its node */
};

struct incidents_answer {
	struct incidents_node *nodes; /* one, or each of a merged recording by itself */
	size_t node_count;
	struct incidents_row *rows; /* of all nodes: by severity, then by the time lost */
	size_t count;
};

/* incidents_filter - which rows an incident may rest on: those of the scope, without the ordinary
 * ones of a large file, which its aggregates speak for. With @stacks none are left out, because the
 * time by stack is summed up over them. */
struct nodedb_filter incidents_filter(const struct scope *s, bool stacks);

/* incidents_load - reads and explains what @f selects. incidents_answer_done() releases it. */
int incidents_load(const char *path, const struct nodedb_filter *f, bool stacks,
	struct incidents_answer *ret, struct errinfo *reterr);

/* incidents_explain - the same of what is loaded already; @c is taken. */
int incidents_explain(
	struct nodedb_content *c, struct incidents_answer *ret, struct errinfo *reterr);
void incidents_answer_done(struct incidents_answer *a);

/* incidents_scope - what was looked at, of all nodes together. */
struct report_scope incidents_scope(const struct incidents_answer *a);
