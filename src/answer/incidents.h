/* SPDX-License-Identifier: Apache-2.0 */
/* incidents.h - what went wrong in a part of a recording, for whoever shows it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer/explain.h"
#include "model/event.h"
#include "model/incident.h"
#include "model/stack.h"

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

struct where {
	const struct stack_frame *frame; /* belongs to the list */
	uint64_t ns;                     /* excess of the calls from there */
	double share;                    /* of the incident's excess, 0..1 */
};

/* where_find - the place (stack_place()) with the most excess; stacks that share it count together.
 * False if no stack of the incident is in @stacks or none names a place. */
bool where_find(const struct incident *inc, const struct stack_list *stacks, struct where *ret);

struct chain_step { /* texts end where their length says */
	const char *layer, *detail;
	size_t layer_len, detail_len;
	bool has_us;
	uint64_t us; /* UINT64_MAX: more than that */
};

/* chain_step_next - reads one step from the lines of struct incident_row; returns what follows it,
 * NULL if there was none. */
const char *chain_step_next(const char *lines, struct chain_step *ret);

/* Which labels of annotations held during an incident or a call.
 *
 * A label is about the whole trace or about the incident's process. Set at a moment, it holds until
 * it is set again; set over a span, it holds inside it. */

#define LABELS_KEYS_MAX   32
#define LABELS_VALUES_MAX 8

struct label_range { /* one key during the incident; points into the labels */
	const char *key;
	const char
		*values[LABELS_VALUES_MAX]; /* in order: the first ones, and at the end the last */
	int value_count;
	size_t total; /* values it had; may be more than are kept */
};

struct labels_span { /* of a process: an incident, a call */
	uint32_t pid;
	int64_t first_ns, last_ns;
};

/* labels_during - fills @ret for @incident from @labels (@count, by time). Returns the number of
 * keys, in the order in which they were first set; *ret_more counts keys that did not fit. */
int labels_during(const struct annotation_label *labels, size_t count,
	const struct incident *incident, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more);
int labels_within(const struct annotation_label *labels, size_t count,
	const struct labels_span *span, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more);
