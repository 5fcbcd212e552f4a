/* SPDX-License-Identifier: Apache-2.0 */
/* incident.h - an explained slowdown: what got slow, by how much, because of whom, how sure.
 *
 * Made by diagnose from recorded events; stored as `incidents` and, in the published shape, as
 * `causal_chains`; printed by explain. All texts are ready to print, but hold names that came from
 * traced processes: whoever prints escapes them (base/text.h). */
#pragma once

#include "base/clock.h"
#include "model/event.h"

enum severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL, SEVERITY_COUNT };

/* X(NAME, name, layer): what a piece of the lost time was spent on. */
#define CAUSES(X)                                                                                  \
	X(PREEMPTED, "cpu_preempted", "HOST") /* another thread took the CPU */                    \
	X(RUN_QUEUE, "cpu_run_queue", "HOST") /* woken, none was free */                           \
	X(BLOCK_IO, "block_io", "IO")         /* or a file system */                               \
	X(UNEXPLAINED, "unexplained", "CUDA") /* nothing recorded overlaps */                      \
	/* Only of pauses between calls: */                                                        \
	X(NETWORK, "network_wait", "NET")    /* in a send or receive */                            \
	X(RECLAIM, "memory_reclaim", "HOST") /* as the kernel made it do */                        \
	X(ASLEEP, "asleep", "HOST")          /* waited for something no probe covers */            \
	X(HOST_CODE, "host_code", "HOST")    /* the thread was running */                          \
	/* Only of steps: */                                                                       \
	X(CUDA_CALL, "cuda_call", "CUDA") /* waiting, copying, allocating */

enum cause {
#define X(NAME, ...) CAUSE_##NAME,
	CAUSES(X)
#undef X
		CAUSE_COUNT
};

#define INCIDENT_CAUSES   16
#define INCIDENT_TIMELINE 12
#define INCIDENT_EVIDENCE 16
#define INCIDENT_FIXES    4
#define INCIDENT_STACKS   16
#define INCIDENT_PIDS     16

struct incident_cause {
	enum cause cause;
	uint32_t culprit_pid;   /* 0: nobody in particular */
	char culprit[COMM_LEN]; /* "" likewise */
	uint32_t
		culprit_count; /* processes of that name, of which culprit_pid is one; 0: it is alone */
	double culprit_share; /* of ns: the part this culprit had, 0..1; of several: all of them */
	uint64_t ns;          /* excess it accounts for */
	uint32_t calls;       /* slow calls it touched */
};

struct incident_stack { /* from where slow calls were made */
	uint64_t hash;  /* of the call stack */
	uint64_t ns;    /* their excess */
	uint32_t calls; /* slow ones */
};

struct incident_launch { /* of a kernel, known by its number in the process */
	uint64_t function;
	uint32_t calls;
};

struct incident_step { /* one line of the timeline */
	wall_time time;
	uint64_t dur_ns;
	char layer[8]; /* SYSTEM HOST IO CUDA DRIVER */
	char op[24];
	char detail[200];
};

struct incident {
	char id[96];     /* stable: same data, same id */
	uint8_t problem; /* enum problem (model/problem.h) */
	enum severity severity;
	uint32_t pid;
	char comm[COMM_LEN];
	uint8_t source;
	uint16_t op;
	wall_time first, last; /* of its slow calls */
	uint64_t calls;        /* all calls of the op by the process */
	uint64_t slow_calls;
	uint64_t baseline_ns;    /* ordinary duration: the median outside the slow stretch */
	uint64_t p50_ns, p99_ns; /* over all calls */
	uint64_t slow_p50_ns;    /* median of the slow calls */
	double tail_ratio;       /* slow_p50 / baseline */
	uint64_t excess_ns;      /* sum over slow calls of duration - baseline */
	double explained;        /* 0..1 of excess_ns, all causes but UNEXPLAINED */
	double confidence;       /* 0..1, see diagnose.c */
	double completeness;     /* 0..1: share of hits that are in the data; -1: not known */
	/* What has no slow calls of one op (an idle gap, a hang, a leak) has slow_calls 0,
	 * excess_ns the time it cost (0: not a matter of time) and `unit`, what count counts. */
	uint64_t count;
	/* Of several processes: the first ones that had it, `pid` first, and how many had it. 0: only
	 * `pid`. */
	uint32_t pids[INCIDENT_PIDS];
	int pid_count;
	uint32_t pid_total;
	bool is_willed;   /* the end of a process that somebody wanted: not stored, and no crash */
	const char *unit; /* "gaps", "failed calls"; NULL: slow calls */
/* Of jobs all of whose hosts are in time: what a GPU, or load that moves, costs; what carries their collectives. */
#define INCIDENT_UNIT_LOAD "steps"
#define INCIDENT_UNIT_LINK "slow steps"
	int32_t culprit_rank;     /* of a job; -1: none */
	char culprit_node[64];    /* where it runs; "": not known */
	uint32_t period_steps;    /* it comes every so many steps; 0: not periodic */
	double period_confidence; /* 0..1 */
	wall_time since;          /* a change that lasts since then; 0: none */
	/* What a unit of work (a step, a request) takes now, and without this: about, and the range. 0: not
	 * known. */
	uint64_t unit_ns, fixed_ns, fixed_least_ns, fixed_most_ns;
	char place
		[160]; /* the user's own line that it comes from: "train.py:71 (step)"; "": none */
	wall_time resolved; /* followed live: when it was over; 0: it is not, or not known */
	struct incident_cause causes[INCIDENT_CAUSES]; /* largest first */
	int cause_count;
	struct incident_step timeline[INCIDENT_TIMELINE];
	int step_count;
	struct incident_stack stacks[INCIDENT_STACKS]; /* most excess first */
	int stack_count;
	uint32_t stack_total;                 /* different ones; may be more than are kept */
	uint64_t stack_ns;                    /* excess of all slow calls that have a stack */
	uint64_t evidence[INCIDENT_EVIDENCE]; /* seq of the rows that prove it, worst first */
	int evidence_count;
	int unnumbered; /* further rows that prove it and have no number yet: it is live */
	struct incident_launch launches[INCIDENT_EVIDENCE]; /* among those rows, most first */
	int launch_count;
	char summary[256];
	char root_cause[256];
	char explanation[1024];
	char fixes[INCIDENT_FIXES][200];
	int fix_count;
	char evidence_sql[1024];
};

const char *severity_name(enum severity s);     /* "HIGH" */
const char *confidence_word(double confidence); /* "likely" */
const char *cause_name(enum cause c);           /* "cpu_run_queue" */
const char *cause_layer(enum cause c);

/* The fields of an incident, described once.
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

/* clang-format off */
/* X(NAME, form, member, column, key, renew, show, absent, unit, meaning). column, key: NULL, where it is
 * not in the table, not in JSON. The others: see the enums below. */
#define INCIDENT_FIRST(X) \
	X(ID, TEXT, id, "id", "id", KEEP, LINE, NEVER, "", "node:descriptor; the same data give the same id") \
	X(NODE, GIVEN, id, "node", "node", KEEP, FULL, NEVER, "", "where it was found") \
	X(FIRST, TIME, first, "first_seen", "first_seen_ns", LEAST, LINE, NEVER, "ns", "its start") \
	X(LAST, TIME, last, "last_seen", "last_seen_ns", MOST, LINE, NEVER, "ns", "its end so far") \
	X(SINCE, TIME, since, NULL, "since_ns", KEEP, BRIEF, ZERO, "ns", "start of a change that lasts") \
	X(DETECTED, GIVEN, id, "detected_at", "detected_at", KEEP, FULL, NEVER, "ns", "when it was first found") \
	X(RESOLVED, TIME, resolved, "resolved_at", NULL, LATEST, FULL, NEVER, "ns", "when it ended; 0: ongoing, or unknown") \
	X(COUNT, COUNT, count, "count", "count", MOST, LINE, NEVER, "", "slow calls, or what `unit` says in JSON") \
	X(UNIT, UNIT, unit, NULL, "unit", KEEP, FULL, NEVER, "", "what count counts") \
	X(CALLS, U64, calls, "calls", "calls", MOST, FULL, NEVER, "", "all calls of the operation by the process") \
	X(SLOW_CALLS, U64, slow_calls, NULL, "slow_calls", KEEP, FULL, NEVER, "", "slow ones among them") \
	X(SEVERITY, SEVERITY, severity, "severity", "severity", LATEST, LINE, NEVER, "", "LOW, MEDIUM, HIGH or CRITICAL") \
	X(PID, U32, pid, "pid", "pid", KEEP, LINE, NEVER, "", "process that lost the time; 0: none in particular") \
	X(PROCESSES, U32, pid_total, NULL, "processes", KEEP, BRIEF, ZERO, "", "number of processes affected, if several") \
	X(PIDS, LIST, pids, NULL, "pids", KEEP, BRIEF, NEVER, "", "the first of those processes") \
	X(COMM, TEXT, comm, "comm", "comm", LATEST, BRIEF, NEVER, "", "the process's name") \
	X(SOURCE, SOURCE, source, "source", "source", KEEP, FULL, NEVER, "", "of the slow calls: sources.id") \
	X(OP, OP, op, "op", "op", KEEP, BRIEF, NEVER, "", "of the slow calls: ops.op_id") \
	X(BASELINE, U64, baseline_ns, "baseline_ns", "baseline_ns", LATEST, BRIEF, NEVER, "ns", "ordinary duration of a call") \
	X(P50, U64, p50_ns, "p50_ns", "p50_ns", LATEST, FULL, NEVER, "ns", "median of all calls") \
	X(P99, U64, p99_ns, "p99_ns", "p99_ns", LATEST, FULL, NEVER, "ns", "99th percentile of all calls") \
	X(SLOW_P50, U64, slow_p50_ns, "slow_p50_ns", "slow_p50_ns", LATEST, BRIEF, NEVER, "ns", "median of the slow calls") \
	X(TAIL_RATIO, REAL, tail_ratio, "tail_ratio", "tail_ratio", LATEST, FULL, NEVER, "", "slow_p50_ns over baseline_ns") \
	X(EXCESS, U64, excess_ns, "excess_ns", "excess_ns", MOST, LINE, NEVER, "ns", "time lost; 0: not about time") \
	X(EXPLAINED, SHARE, explained, "explained", "explained", LATEST, LINE, NEVER, "share", "share of excess_ns that the causes account for") \
	X(CONFIDENCE, SHARE, confidence, "confidence", "confidence", LATEST, LINE, NEVER, "share", "confidence in the cause") \
	X(COMPLETENESS, SHARE, completeness, "completeness", "completeness", LATEST, FULL, NULL_BELOW_0, "share", "share of events that were not lost; -1: unknown") \
	X(CULPRIT_RANK, I32, culprit_rank, NULL, "culprit_rank", KEEP, BRIEF, BELOW_0, "", "rank of the job that others wait for") \
	X(PERIOD_STEPS, U32, period_steps, NULL, "period_steps", KEEP, BRIEF, ZERO, "", "period of slow steps, in steps") \
	X(PERIOD_CONFIDENCE, SHARE, period_confidence, NULL, "period_confidence", KEEP, FULL, ZERO, "share", "confidence in that period") \
	X(SUMMARY, TEXT, summary, "summary", "summary", LATEST, LINE, NEVER, "", "one line") \
	X(ROOT_CAUSE, TEXT, root_cause, "root_cause", "root_cause", LATEST, LINE, NEVER, "", "why") \
	X(EXPLANATION, TEXT, explanation, NULL, "explanation", KEEP, FULL, NEVER, "", "in full") \
	X(CAUSES, LIST, causes, "causes", "causes", LATEST, BRIEF, NEVER, "", "what took the time, and who: a JSON array, largest first") \
	X(TIMELINE, LIST, timeline, NULL, "timeline", KEEP, BRIEF, NEVER, "", "what happened, in order") \
	X(EVIDENCE, LIST, evidence, "evidence", "evidence", LATEST, FULL, NEVER, "", "rows that show it: a JSON array of events.id") \
	X(EVIDENCE_SQL, TEXT, evidence_sql, "evidence_sql", "evidence_sql", LATEST, FULL, NEVER, "", "a query that selects them") \
	X(FIXES, LIST, fixes, "advice", "fixes", LATEST, LINE, NEVER, "", "what to do: a JSON array")

/* Fields that came later: NULL in rows of before. The cluster gets them too, under the name of the column. */
#define INCIDENT_ADDED(X) \
	X(PROBLEM, PROBLEM, problem, "problem", "problem", LATEST, LINE, NEVER, "", "what kind of problem: docs/detections.md") \
	X(PLACE, TEXT, place, "place", "place", LATEST, LINE, ZERO, "", "the line of the user's own code that causes it") \
	X(UNIT_NS, U64, unit_ns, "unit_ns", "unit_ns", LATEST, BRIEF, ZERO, "ns", "duration of a unit of work (a step, a request)") \
	X(FIXED_NS, U64, fixed_ns, "fixed_ns", "fixed_ns", LATEST, BRIEF, ZERO, "ns", "its estimated duration without this") \
	X(FIXED_LEAST_NS, U64, fixed_least_ns, "fixed_least_ns", "fixed_least_ns", LATEST, BRIEF, ZERO, "ns", "lower bound of that") \
	X(FIXED_MOST_NS, U64, fixed_most_ns, "fixed_most_ns", "fixed_most_ns", LATEST, BRIEF, ZERO, "ns", "upper bound of that") \
	X(CULPRIT, TEXT, causes[0].culprit, "culprit", "culprit", LATEST, LINE, ZERO, "", "process behind the largest cause")
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
	INCIDENT_LATEST,
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
