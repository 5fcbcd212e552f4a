/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - incidents as text for people: about ten lines each, the answer first. A stored verdict of a published
 * agent is printed in its layout.
 *
 * Everything that came from a traced process or a file is escaped here. Times are local, and the
 * zone is printed. */
#pragma once

#include "base/buf.h"
#include "model/incident.h"
#include "answer/explain.h"
#include "store/nodedb.h"
#include "json/writer.h"
#include "answer/steps.h"
#include "answer/diff/diff.h"
#include "answer/ops.h"

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

/* report_range - appends "from 2026-03-21 13:24:50 to 13:25:10 UTC", or "at 2026-03-21 13:24:50 UTC"; @is_sentence: with
 * a capital. */
void report_range(struct buf *b, bool is_sentence, int64_t first_ns, int64_t last_ns);

/* report_incident - appends one incident as report_text() does. @columns and @color likewise. */
void report_incident(struct buf *b, const struct report_entry *e, int columns, bool color);

/* report_text - appends the report of @count incidents. With @color, severities and headings carry
 * terminal colours; without, the text holds no escape sequence at all. Check b->err. */
void report_text(struct buf *b, const struct incident *incidents, size_t count,
	const struct report_scope *scope, bool color);

/* Text for people, broken between words and escaped for a terminal. */

#define PARAGRAPH_WIDTH 100 /* columns */

/* paragraph_put - @label, and @text in the columns behind it. */
void paragraph_put(struct buf *b, size_t width, const char *label, const char *text);

/* stored_incidents_text - appends those of @c. Check b->err. */
void stored_incidents_text(struct buf *b, const struct nodedb_content *c);

/* What may be said when no incident was found: what was examined, how, and what could not be
 * judged. Nobody is told that there are no problems because nothing was found to look at. A recording of several
 * nodes has one of each. */

/* all_clear_is_known - whether a process used a GPU for long enough to be judged. */
bool all_clear_is_known(const struct report_scope *s);

/* all_clear_verdict - the sentence alone: "No problems found in 512 steps of 1 process." Where there are
 * incidents, nobody asks for it. */
void all_clear_verdict(struct buf *b, const struct report_scope *s);

/* all_clear_put - appends it and what was examined, in lines of @width columns. */
void all_clear_put(struct buf *b, const struct report_scope *s, size_t width);

/* all_clear_processes - where the time of each process went, alone: that is worth a word beside notes, too. */
void all_clear_processes(struct buf *b, const struct report_scope *s, size_t width);

/* all_clear_json - the same as an object: the value of a member that the caller has named. */
void all_clear_json(struct json_writer *w, const struct report_scope *s);

/* report_looked_at - how much was looked at, and what is missing: last, because the answer is first.
 * report_looked_at_json - the same as the member "data". */
void report_looked_at(struct buf *b, const struct report_scope *s, size_t width);
void report_looked_at_json(struct json_writer *w, const struct report_scope *s);

/* The account of steps for people. Names are escaped here. */

/* steps_text - the account of every process of @a, or why there is none. @columns of the terminal,
 * 0: none. Check b->err. */
void steps_text(struct buf *b, const struct steps_answer *a, int columns, bool color);

/* steps_text_short - of one process: its head line and the lines that matter, @indent columns in.
 */
void steps_text_short(struct buf *b, const struct steps_row *row, size_t indent);

/* What is different between two times, for people. Names are escaped here. */

/* diff_text - @limit rows of operations and of processes. Check b->err. */
void diff_text(struct buf *b, const struct diff_answer *a, size_t limit, bool color);

/* diff_put - members of an open object; @limit operations. */
void diff_put(struct json_writer *w, const struct diff_answer *a, size_t limit);
#define DIFF_LIMIT     50
#define DIFF_LIMIT_MAX 1000

/* Recorded events as figures per operation, as a list with labels, or as lines of JSON. */

struct query_head {           /* what was asked for, and how much of it there is */
	uint64_t since_ns;    /* 0: not */
	const uint32_t *pids; /* as asked */
	size_t pid_count;
	size_t limit;              /* only the newest so many were asked for; 0: all */
	uint64_t events;           /* in the file */
	uint64_t calls;            /* that they are a selection of; 0: not known */
	int64_t first_ns, last_ns; /* of the time */
	uint64_t skipped_rows, older_events;
};

/* query_table - the header and a table for each group of sources. */
void query_table(struct buf *b, const struct query_head *h, const struct ops_answer *a,
	const struct host_answer *host);

struct query_view { /* a list */
	const struct nodedb_content *content;
	uint64_t since_ns;
	const uint32_t *pids;
	size_t pid_count;
	bool labels;      /* with the labels that held during each event */
	size_t limit;     /* only the newest so many were asked for; 0: all */
	const char *node; /* of a merged recording: JSON says whose; NULL: not */
};

/* query_list - one line an event: time, pid, operation, labels. */
void query_list(struct buf *b, const struct query_view *v);

/* query_json - one object an event with the published keys (timestamp, pid, tid, comm, source, op,
 * duration_ns, duration, gpu_id, args, return_code, cgroup_id, stack) and ours; its timestamp is
 * the start, whatever the file's schema. Stops when @b is full: see b->err. */
void query_json(struct buf *b, const struct query_view *v);
