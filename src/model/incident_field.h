/* SPDX-License-Identifier: Apache-2.0 */
/* incident_field.h - the fields of an incident, described once.
 *
 * A line says what a field is called in the recording's table `incidents` and in JSON, where it lies in
 * struct incident, in which form, and what it means. The table and what writes, updates and merges it, the
 * JSON of explain, of the API and of assistants, the reader of what other nodes answer, the push to the
 * cluster and the cluster's columns, and the words of schema_info derive from these lines.
 *
 * To add a field: its member in struct incident, a line at the end of INCIDENT_ADDED, and a test that it has
 * a meaning. Lines never move, as columns have the order of the lines in every file; names are published and
 * stay. A recording of before the line gets the column when it is written to (schema_complete()); its rows
 * have NULL there. The schema's number stays 0.11 while it only grows. */
#pragma once

#include <stddef.h>

#include "model/incident.h"

/* clang-format off */
/* X(NAME, form, member, column, key, renew, show, absent, unit, meaning). column, key: NULL, where it is
 * not in the table, not in JSON. The others: see the enums below. */
#define INCIDENT_FIRST(X) \
	X(ID, TEXT, id, "id", "id", KEEP, LINE, NEVER, "", "node:descriptor; the same data give the same id") \
	X(NODE, GIVEN, id, "node", "node", KEEP, FULL, NEVER, "", "where it was found") \
	X(FIRST, TIME, first, "first_seen", "first_seen_ns", LEAST, LINE, NEVER, "ns", "its begin") \
	X(LAST, TIME, last, "last_seen", "last_seen_ns", MOST, LINE, NEVER, "ns", "its end so far") \
	X(SINCE, TIME, since, NULL, "since_ns", KEEP, BRIEF, ZERO, "ns", "a change that lasts since then") \
	X(DETECTED, GIVEN, id, "detected_at", "detected_at", KEEP, FULL, NEVER, "ns", "when it was found first") \
	X(RESOLVED, TIME, resolved, "resolved_at", NULL, NEW, FULL, NEVER, "ns", "when it was over; 0: it is not, or not known") \
	X(COUNT, COUNT, count, "count", "count", MOST, LINE, NEVER, "", "slow calls, or what `unit` says in JSON") \
	X(UNIT, UNIT, unit, NULL, "unit", KEEP, FULL, NEVER, "", "what count counts") \
	X(CALLS, U64, calls, "calls", "calls", MOST, FULL, NEVER, "", "all calls of the operation by the process") \
	X(SLOW_CALLS, U64, slow_calls, NULL, "slow_calls", KEEP, FULL, NEVER, "", "the slow ones of them") \
	X(SEVERITY, SEVERITY, severity, "severity", "severity", NEW, LINE, NEVER, "", "LOW, MEDIUM, HIGH or CRITICAL") \
	X(PID, U32, pid, "pid", "pid", KEEP, LINE, NEVER, "", "whose time it cost; 0: no process in particular") \
	X(PROCESSES, U32, pid_total, NULL, "processes", KEEP, BRIEF, ZERO, "", "how many have it, if several do") \
	X(PIDS, LIST, pids, NULL, "pids", KEEP, BRIEF, NEVER, "", "the first ones of them") \
	X(COMM, TEXT, comm, "comm", "comm", NEW, BRIEF, NEVER, "", "the process's name") \
	X(SOURCE, SOURCE, source, "source", "source", KEEP, FULL, NEVER, "", "of the slow calls: sources.id") \
	X(OP, OP, op, "op", "op", KEEP, BRIEF, NEVER, "", "of the slow calls: ops.op_id") \
	X(BASELINE, U64, baseline_ns, "baseline_ns", "baseline_ns", NEW, BRIEF, NEVER, "ns", "ordinary duration of a call") \
	X(P50, U64, p50_ns, "p50_ns", "p50_ns", NEW, FULL, NEVER, "ns", "median of all calls") \
	X(P99, U64, p99_ns, "p99_ns", "p99_ns", NEW, FULL, NEVER, "ns", "99th percentile of all calls") \
	X(SLOW_P50, U64, slow_p50_ns, "slow_p50_ns", "slow_p50_ns", NEW, BRIEF, NEVER, "ns", "median of the slow calls") \
	X(TAIL_RATIO, REAL, tail_ratio, "tail_ratio", "tail_ratio", NEW, FULL, NEVER, "", "slow_p50_ns over baseline_ns") \
	X(EXCESS, U64, excess_ns, "excess_ns", "excess_ns", MOST, LINE, NEVER, "ns", "time lost; 0: it is not a matter of time") \
	X(EXPLAINED, SHARE, explained, "explained", "explained", NEW, LINE, NEVER, "share", "of excess_ns, that causes account for") \
	X(CONFIDENCE, SHARE, confidence, "confidence", "confidence", NEW, LINE, NEVER, "share", "how sure the cause is") \
	X(COMPLETENESS, SHARE, completeness, "completeness", "completeness", NEW, FULL, NULL_BELOW_0, "share", "of events that were not lost; -1: not known") \
	X(CULPRIT_RANK, I32, culprit_rank, NULL, "culprit_rank", KEEP, BRIEF, BELOW_0, "", "rank of the job that others wait for") \
	X(PERIOD_STEPS, U32, period_steps, NULL, "period_steps", KEEP, BRIEF, ZERO, "", "how many steps lie between two slow ones") \
	X(PERIOD_CONFIDENCE, SHARE, period_confidence, NULL, "period_confidence", KEEP, FULL, ZERO, "share", "how sure that is") \
	X(SUMMARY, TEXT, summary, "summary", "summary", NEW, LINE, NEVER, "", "one line") \
	X(ROOT_CAUSE, TEXT, root_cause, "root_cause", "root_cause", NEW, LINE, NEVER, "", "why") \
	X(EXPLANATION, TEXT, explanation, NULL, "explanation", KEEP, FULL, NEVER, "", "in full") \
	X(CAUSES, LIST, causes, "causes", "causes", NEW, BRIEF, NEVER, "", "what took the time, and who: a JSON array, largest first") \
	X(TIMELINE, LIST, timeline, NULL, "timeline", KEEP, BRIEF, NEVER, "", "what happened, in order") \
	X(EVIDENCE, LIST, evidence, "evidence", "evidence", NEW, FULL, NEVER, "", "rows that show it: a JSON array of events.id") \
	X(EVIDENCE_SQL, TEXT, evidence_sql, "evidence_sql", "evidence_sql", NEW, FULL, NEVER, "", "a query that selects them") \
	X(FIXES, LIST, fixes, "advice", "fixes", NEW, LINE, NEVER, "", "what to do: a JSON array")

/* Fields that came later: NULL in rows of before. The cluster gets them too, under the name of the column. */
#define INCIDENT_ADDED(X) \
	X(PROBLEM, PROBLEM, problem, "problem", "problem", NEW, LINE, NEVER, "", "what kind of problem: docs/detections.md") \
	X(PLACE, TEXT, place, "place", "place", NEW, LINE, ZERO, "", "the user's own line that it comes from") \
	X(UNIT_NS, U64, unit_ns, "unit_ns", "unit_ns", NEW, BRIEF, ZERO, "ns", "what a unit of work (a step, a request) takes") \
	X(FIXED_NS, U64, fixed_ns, "fixed_ns", "fixed_ns", NEW, BRIEF, ZERO, "ns", "what it would take without this, about") \
	X(FIXED_LEAST_NS, U64, fixed_least_ns, "fixed_least_ns", "fixed_least_ns", NEW, BRIEF, ZERO, "ns", "the least that it would take then") \
	X(FIXED_MOST_NS, U64, fixed_most_ns, "fixed_most_ns", "fixed_most_ns", NEW, BRIEF, ZERO, "ns", "the most that it would take then")
/* clang-format on */

#define INCIDENT_FIELDS(X) INCIDENT_FIRST(X) INCIDENT_ADDED(X)

enum incident_field_id {
#define X(NAME, ...) INCIDENT_F_##NAME,
	INCIDENT_FIELDS(X)
#undef X
		INCIDENT_FIELD_COUNT
};

enum incident_form {
	INCIDENT_FORM_TEXT,
	INCIDENT_FORM_U32,
	INCIDENT_FORM_U64,
	INCIDENT_FORM_I32,
	INCIDENT_FORM_REAL,
	INCIDENT_FORM_SHARE,    /* 0..1 */
	INCIDENT_FORM_TIME,     /* since 1970 UTC */
	INCIDENT_FORM_SEVERITY, /* by name */
	INCIDENT_FORM_PROBLEM,  /* by its id in model/problem.h */
	INCIDENT_FORM_SOURCE,   /* a number in the table, a name in JSON */
	INCIDENT_FORM_OP,       /* likewise */
	INCIDENT_FORM_COUNT,    /* of slow calls, or of what `unit` says */
	INCIDENT_FORM_UNIT,     /* NULL: slow calls */
	INCIDENT_FORM_LIST,     /* an array: who writes it knows its members */
	INCIDENT_FORM_GIVEN,    /* not in the struct: who writes it has it */
};

enum incident_renew { /* what becomes of a stored value when the incident is found again */
	INCIDENT_KEEP,
	INCIDENT_NEW,
	INCIDENT_LEAST, /* never of a field that came later, as NULL is less than nothing */
	INCIDENT_MOST,
};

enum incident_show {    /* who is shown it: each also what those before it are shown */
	INCIDENT_LINE,  /* a line of `trace --json` */
	INCIDENT_BRIEF, /* an assistant's list */
	INCIDENT_FULL,
};

enum incident_absent { /* which value says that there is none; NULL in fields that came later */
	INCIDENT_NEVER,
	INCIDENT_ZERO,         /* or "": left out of JSON */
	INCIDENT_BELOW_0,      /* left out of JSON */
	INCIDENT_NULL_BELOW_0, /* null in JSON */
};

struct incident_field {
	const char *column, *key;
	enum incident_form form;
	enum incident_renew renew;
	enum incident_show show;
	enum incident_absent absent;
	size_t offset, size; /* of the member */
	bool is_added;       /* of INCIDENT_ADDED */
	const char *unit, *meaning;
};

extern const struct incident_field incident_fields[INCIDENT_FIELD_COUNT];

/* incident_field_of_key - the field with this name in JSON, in the table; NULL: there is none. */
const struct incident_field *incident_field_of_key(const char *key);
const struct incident_field *incident_field_of_column(const char *column);

struct incident_value {
	enum incident_type {
		INCIDENT_NOTHING, /* a value that is absent, a LIST or GIVEN */
		INCIDENT_UINT,
		INCIDENT_INT,
		INCIDENT_REAL,
		INCIDENT_TEXT,
	} type;
	union {
		uint64_t u;
		int64_t i;
		double d;
		const char *s; /* the incident's, the program's or scratch */
	};
	char scratch[32];
};

/* incident_field_get - the value as the table has it, or, if @named, as people read it: source and op by
 * name. Reals are finite. */
void incident_field_get(const struct incident_field *f, const struct incident *i, bool named,
	struct incident_value *ret);

/* incident_field_set - the member from a value that a stranger sent: what is not of the field's form or out
 * of its range is left alone, texts are cut at a whole character. source, op and unit are left alone, as they
 * are names here and no text of the struct. */
void incident_field_set(
	const struct incident_field *f, struct incident *i, const struct incident_value *v);
