/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_schema.h - words to write the schemas of mcp_tools.c with. Objects are closed: a member that
 * is not described fails the tests. */
#pragma once

#define S         "{\"type\":\"string\"}"
#define I         "{\"type\":\"integer\"}"
#define N         "{\"type\":\"number\"}"
#define B         "{\"type\":\"boolean\"}"
#define NULL_OR_N "{\"type\":[\"number\",\"null\"]}"
#define NULL_OR_S "{\"type\":[\"string\",\"null\"]}"
#define ANY       "{}"

/* A member; ABOUT has a sentence for the model. */
#define P(name, type)             "\"" name "\":" type
#define ABOUT(name, rules, about) "\"" name "\":{" rules ",\"description\":\"" about "\"}"

#define OBJECT(members)                                                                            \
	"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" members "}}"
#define NEEDS(members, required)                                                                   \
	"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" members             \
	"},\"required\":[" required "]}"
#define LIST(items) "{\"type\":\"array\",\"items\":" items "}"
#define NULL_OR(members)                                                                           \
	"{\"type\":[\"object\",\"null\"],\"additionalProperties\":false,\"properties\":{" members  \
	"}}"

/* Arguments that many tools have. */
#define ARG_SINCE                                                                                  \
	ABOUT("since", "\"type\":\"string\",\"maxLength\":64",                                     \
		"Only this long before the newest event: 30s, 5m, 1h30m, 2d. Default: all of a "   \
		"finished recording, the last 5m of one that is being written; 0s: all.")
#define ARG_TSC                                                                                    \
	ABOUT("tsc", "\"type\":\"boolean\",\"default\":true",                                      \
		"Compact answer with short names (default). false: complete, and prose as text.")
#define ARG_PID                                                                                    \
	ABOUT("pid", "\"type\":\"integer\",\"minimum\":1,\"maximum\":4194304", "Only this process.")
#define ARG_PIDS                                                                                   \
	ABOUT("pids",                                                                              \
		"\"type\":\"array\",\"maxItems\":63,\"items\":{\"type\":\"integer\",\"minimum\":1" \
		",\"maximum\":4194304}",                                                           \
		"Only these processes.")
#define ARG_TOP_N                                                                                  \
	ABOUT("top_n", "\"type\":\"integer\",\"minimum\":-1,\"maximum\":1000,\"default\":10",      \
		"The worst n; -1: all.")
#define ARG_OP                                                                                     \
	ABOUT("op", "\"type\":\"string\",\"maxLength\":64",                                        \
		"Only this operation, for example cudaStreamSync or ncclAllReduce.")

/* Parts of answers. */
#define RANGE                                                                                      \
	OBJECT(P("node", S) "," P("from", NULL_OR_S) "," P("to", NULL_OR_S) "," P(                 \
		"events", I) "," P("damaged_rows", I) "," P("older_events", I) "," P("note", S))
#define PROCESS OBJECT(P("pid", I) "," P("process_name", S))
#define GAUGE   NULL_OR(P("min", I) "," P("max", I) "," P("avg", N))
#define STEP                                                                                       \
	OBJECT(P("timestamp", NULL_OR_S) "," P("duration_us", N) "," P("layer", S) "," P(          \
		"operation", S) "," P("detail", S))
#define CAUSE                                                                                      \
	OBJECT(P("cause", S) "," P("layer", S) "," P("culprit_pid", I) "," P("culprit", S) "," P(  \
		"culprit_share", N) "," P("excess_us", N) "," P("share", N) "," P("calls", I))
#define WHERE                                                                                      \
	NULL_OR(P("py_file", S) "," P("py_func", S) "," P("py_line", I) "," P(                     \
		"symbol", NULL_OR_S) "," P("file", NULL_OR_S) "," P("line", I) "," P("excess_us",  \
		N) "," P("share", N))
#define ANNOTATION OBJECT(P("key", S) "," P("values", LIST(S)) "," P("total", I))
#define INCIDENT_FIGURES                                                                            \
	P("first_seen", NULL_OR_S)                                                                  \
	"," P("last_seen", NULL_OR_S) "," P("calls", I) "," P("slow_calls", I) "," P(               \
		"baseline_us", N) "," P("p50_us", N) "," P("p99_us", N) "," P("slow_p50_us",        \
		N) "," P("tail_ratio", NULL_OR_N) "," P("excess_us", N) "," ABOUT("explained",      \
		"\"type\":[\"number\",\"null\"]",                                                   \
		"share of the lost time that the causes account for, 0..1") "," ABOUT("confidence", \
		"\"type\":[\"number\",\"null\"]",                                                   \
		"0..1") "," ABOUT("completeness", "\"type\":[\"number\",\"null\"]",                 \
		"share of what happened that is in the data, 0..1")
#define INCIDENT_MEMBERS                                                                           \
	P("id", S)                                                                                 \
	"," P("node", S) "," P("severity", S) "," P("problem", S) "," P("summary", S) "," P(       \
		"root_cause", S) "," P("explanation", S) "," P("pid", I) "," P("process_name",     \
		S) "," P("source", S) "," P("operation", S) "," INCIDENT_FIGURES "," P("count",    \
		I) "," P("unit", S) "," P("culprit_rank", I) "," P("period_steps",                 \
		I) "," P("period_confidence", N) "," P("since", NULL_OR_S) "," P("causes",         \
		LIST(CAUSE)) "," P("timeline", LIST(STEP)) "," P("recommendations",                \
		LIST(S)) "," P("evidence", LIST(ANY)) "," P("evidence_sql", S) "," P("where",      \
		WHERE) "," P("annotations", LIST(ANNOTATION))
#define INCIDENT OBJECT(INCIDENT_MEMBERS)
#define INCIDENTS                                                                                  \
	P("incidents", LIST(INCIDENT))                                                             \
	"," P("total", I) "," P("range", RANGE) "," P("completeness", S) "," P("verdict", S)
#define CHAIN OBJECT(INCIDENT_MEMBERS "," P("timestamp", NULL_OR_S))
