/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - incidents as text for people: about ten lines each, the answer first. A stored verdict of a published
 * agent is printed in its layout.
 *
 * Everything that came from a traced process or a file is escaped here. Times are local, and the
 * zone is printed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/incident.h"
#include "answer/explain.h"

struct report_entry { /* an incident beside a recording: of another node */
	const struct incident *incident;
	const char *node;   /* whose; printed in front of the summary; NULL: not said */
	const char *where;  /* from where its slow calls were made; "": not known */
	double where_share; /* of the excess */
	bool verbose;       /* as in struct report_scope */
	bool brief;         /* the title alone, and where, if that does not say so */
	bool stored;        /* a stored verdict: no figures are known of it */
};

/* report_date - appends "2026-03-21 13:24:50 UTC", in the local zone. */
void report_date(struct buf *b, int64_t ns);

/* report_incident - appends one incident as report_text() does. @columns and @color likewise. */
void report_incident(struct buf *b, const struct report_entry *e, int columns, bool color);

/* report_text - appends the report of @count incidents. With @color, severities and headings carry
 * terminal colours; without, the text holds no escape sequence at all. Check b->err. */
void report_text(struct buf *b, const struct incident *incidents, size_t count,
	const struct report_scope *scope, bool color);
