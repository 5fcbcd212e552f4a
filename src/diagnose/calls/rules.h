/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h - what is said about each cause: a table, so that a new cause is new rows.
 *
 * To add a cause: a line in CAUSES (model/incident.h), the overlap that proves it (attribute.c),
 * and a row here for each kind of culprit it can have. A cause without a row cannot be named.
 * Causes that only pauses have are told by idle_text.c. */
#pragma once

#include "base/buf.h"
#include "model/incident.h"

enum blame {
	BLAME_OTHER,
	BLAME_OWN,
	BLAME_TRACER,
	BLAME_KERNEL, /* a thread of the kernel: it has no priority to lower */
	BLAME_MANY,
	BLAME_NOBODY,
	BLAME_COUNT
};

struct rule {
	enum cause cause;
	enum blame blame;
	const char *summary; /* ends "op 8.5x slower (...): " */
	const char *root_cause;
	const char *fixes[INCIDENT_FIXES + 1]; /* most useful first; NULL ends */
};

/* In the texts: {culprit} "hog (pid 8821)", {name} "hog", {culprit_pid}, {victim} "python3 (pid
 * 4821)", {victim_pid}, {share} "71 %" of the excess, {lost} what that is: "the extra time", {traffic} "83 %" of the bytes in
 * flight. */
struct rule_words {
	const char *culprit, *name, *culprit_pid, *victim, *victim_pid, *share, *traffic, *lost;
};

/* rule_find - the row for @cause and @blame, for many that of nobody in particular if they have none
 * of their own; NULL if there is none. */
const struct rule *rule_find(enum cause cause, enum blame blame);

/* rule_text - appends @text with its words filled in. */
void rule_text(struct buf *b, const char *text, const struct rule_words *w);
