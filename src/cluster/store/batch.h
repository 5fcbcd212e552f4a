/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - rows of the tables as bytes: what a request becomes, what the journal holds and what engines
 * are filled from.
 *
 * A row is: number of its table (1 byte), columns that are there (4 bytes, a bit each), then their values
 * in order: integers, times and reals 8 bytes, texts 4 bytes of length and the text. Little-endian. */
#pragma once

#include "base/buf.h"
#include "sql/sql.h"
#include "model/episode_field.h"
#include "model/incident.h"

enum column_type { COLUMN_TIME, COLUMN_INT, COLUMN_REAL, COLUMN_TEXT };

/* X(NAME, name, type, help) */
#define EVENTS_COLUMNS(X)                                                                          \
	X(TS, "ts_ns", TIME, "when, by the sender's clock")                                        \
	X(RECEIVED, "recv_ns", TIME, "when it was received, by the cluster's clock")               \
	X(CLUSTER, "cluster_id", TEXT, "cluster")                                                  \
	X(NODE, "node_id", TEXT, "node")                                                           \
	X(RANK, "rank", INT, "rank in the job")                                                    \
	X(NRANKS, "nranks", INT, "ranks of the job")                                               \
	X(NAME, "metric_name", TEXT, "name of the metric, log event or span")                      \
	X(KIND, "kind", TEXT, "gauge, counter, delta, histogram, log or span")                     \
	X(REAL, "value_double", REAL, "its number; of a histogram the sum, of a span its seconds") \
	X(INT, "value_int", INT, "its number, if it is an integer; of a histogram the count")      \
	X(UNIT, "unit", TEXT, "unit of the number")                                                \
	X(BODY, "body", TEXT, "text of a log")                                                     \
	X(ATTRIBUTES, "attrs", TEXT, "further attributes as a JSON object")                        \
	X(EVENT, "event_id", TEXT, "id given by the sender")                                       \
	X(CHAIN, "causal_chain_id", TEXT, "causal chain it belongs to")                            \
	X(SEVERITY, "severity", INT, "severity number of a log")

#define CHAINS_COLUMNS(X)                                                                          \
	X(TS, "detected_at", TIME, "when the node found it")                                       \
	X(RECEIVED, "recv_ns", TIME, "when it was received")                                       \
	X(CLUSTER, "cluster_id", TEXT, "cluster")                                                  \
	X(NODE, "node_id", TEXT, "node")                                                           \
	X(ID, "id", TEXT, "id of the chain")                                                       \
	X(SEVERITY, "severity", TEXT, "CRITICAL, HIGH, MEDIUM or LOW")                             \
	X(SUMMARY, "summary", TEXT, "one line")                                                    \
	X(CAUSE, "root_cause", TEXT, "why")                                                        \
	X(EXPLANATION, "explanation", TEXT, "in full")                                             \
	X(FIX, "recommendations", TEXT, "what to do, as a JSON array")                             \
	X(OP, "cuda_op", TEXT, "call that was slow")                                               \
	X(P99, "p99_us", REAL, "its p99")                                                          \
	X(P50, "p50_us", REAL, "its median")                                                       \
	X(RATIO, "tail_ratio", REAL, "p99 over p50")                                               \
	X(TIMELINE, "timeline", TEXT, "steps as a JSON array")

#define METRICS_COLUMNS(X) /* derived by the engines, see store.h */                               \
	X(TS, "bucket_ns", TIME, "start of the minute")                                            \
	X(CLUSTER, "cluster_id", TEXT, "cluster")                                                  \
	X(NODE, "node_id", TEXT, "node")                                                           \
	X(NAME, "metric_name", TEXT, "name of the metric")                                         \
	X(KIND, "kind", TEXT, "as in events")                                                      \
	X(COUNT, "count", INT, "points")                                                           \
	X(MIN, "min", REAL, "minimum")                                                             \
	X(MAX, "max", REAL, "maximum")                                                             \
	X(SUM, "sum", REAL, "sum of the values; meaningless for counters")                         \
	X(LAST, "last", REAL, "the newest value")                                                  \
	X(LAST_TS, "last_ns", TIME, "and its time")

#define COLLECTIVES_COLUMNS(X)                                                                     \
	X(TS, "enter_ns", TIME, "when the call began")                                             \
	X(RECEIVED, "recv_ns", TIME, "when it was received")                                       \
	X(CLUSTER, "cluster_id", TEXT, "cluster")                                                  \
	X(NODE, "node_id", TEXT, "node")                                                           \
	X(LEAVE, "leave_ns", TIME, "when it returned; NULL: it has not")                           \
	X(WAIT, "wait_ns", INT, "of that, spent waiting")                                          \
	X(COMM, "comm_id_hash", TEXT, "communicator, 16 hex digits")                               \
	X(SEQ, "op_seq", INT, "its number in the communicator")                                    \
	X(OP, "op_type", TEXT, "AllReduce, …")                                                     \
	X(RANK, "rank", INT, "rank in the communicator")                                           \
	X(NRANKS, "nranks", INT, "ranks of the communicator")                                      \
	X(WORLD, "world_rank", INT, "rank in the job")                                             \
	X(PEER, "peer", INT, "of a Send or Recv")                                                  \
	X(BYTES, "bytes", INT, "of one rank")                                                      \
	X(PID, "pid", INT, "process")

#define INCIDENTS_COLUMNS(X)                                                                       \
	X(TS, "ts_ns", TIME, "when it was reported")                                               \
	X(RECEIVED, "recv_ns", TIME, "when it was received")                                       \
	X(CLUSTER, "cluster_id", TEXT, "cluster")                                                  \
	X(NODE, "node_id", TEXT, "node; of the cluster as a whole: its name is empty")             \
	X(ID, "id", TEXT, "id of the incident")                                                    \
	X(SOURCE, "source", TEXT, "node: by its agent; fleet: by the cluster")                     \
	X(KIND, "kind", TEXT, "straggler, slow, hang, mismatch, …")                                \
	X(RANK, "rank", INT, "rank in the job")                                                    \
	X(SUMMARY, "summary", TEXT, "one line")                                                    \
	X(CAUSE, "root_cause", TEXT, "why")                                                        \
	X(FIX, "fix", TEXT, "what to do")                                                          \
	X(CONFIDENCE, "confidence", REAL, "0 to 1")                                                \
	X(LOST, "lost_ns", INT, "time that the job lost")                                          \
	X(COST, "cost", REAL, "what that costs; NULL: unpriced")                                   \
	X(RESOLVED, "resolved", INT, "1: it is over")                                              \
	X(SEVERITY, "severity", TEXT, "of a node's own: CRITICAL, HIGH, MEDIUM or LOW")            \
	X(COUNT, "count", INT, "of a node's own: how often so far")                                \
	X(LAST, "last_seen", TIME, "of a node's own: when the last time was")

#define STEPS_COLUMNS(X)                                                                           \
	X(TS, "ts_ns", TIME, "when it was reported")                                               \
	X(RECEIVED, "recv_ns", TIME, "when it was received")                                       \
	X(CLUSTER, "cluster_id", TEXT, "cluster")                                                  \
	X(NODE, "node_id", TEXT, "node")                                                           \
	X(RANK, "rank", INT, "rank in the job")                                                    \
	X(PID, "pid", INT, "process")                                                              \
	X(STEP, "step_ns", INT, "median of the slow steps")                                        \
	X(ORDINARY, "ordinary_ns", INT, "median of the ordinary ones")                             \
	X(LINE, "line", TEXT, "line of the account that grew most")                                \
	X(GREW, "line_ns", INT, "by how much, in a slow step")                                     \
	X(DOING, "doing", TEXT, "what the rank was doing")                                         \
	X(WHERE, "doing_where", TEXT, "where")

/* X(NAME, name, COLUMNS) */
#define STORE_TABLES(X)                                                                            \
	X(EVENTS, "events", EVENTS_COLUMNS)                                                        \
	X(CHAINS, "causal_chains", CHAINS_COLUMNS)                                                 \
	X(METRICS, "node_metrics", METRICS_COLUMNS)                                                \
	X(COLLECTIVES, "collectives", COLLECTIVES_COLUMNS)                                         \
	X(INCIDENTS, "incidents", INCIDENTS_COLUMNS)                                               \
	X(STEPS, "steps", STEPS_COLUMNS)

enum store_table {
#define X(NAME, ...) TABLE_##NAME,
	STORE_TABLES(X)
#undef X
		TABLE_COUNT
};

#define EVENTS_COLUMN(NAME, ...)      EVENTS_##NAME,
#define CHAINS_COLUMN(NAME, ...)      CHAINS_##NAME,
#define METRICS_COLUMN(NAME, ...)     METRICS_##NAME,
#define COLLECTIVES_COLUMN(NAME, ...) COLLECTIVES_##NAME,
#define INCIDENTS_COLUMN(NAME, ...)   INCIDENTS_##NAME,
#define STEPS_COLUMN(NAME, ...)       STEPS_##NAME,
enum events_column { EVENTS_COLUMNS(EVENTS_COLUMN) EVENTS_COLUMN_COUNT };
enum chains_column {
	CHAINS_COLUMNS(CHAINS_COLUMN) INCIDENT_ADDED(CHAINS_COLUMN) CHAINS_COLUMN_COUNT
};
enum metrics_column { METRICS_COLUMNS(METRICS_COLUMN) METRICS_COLUMN_COUNT };
enum collectives_column { COLLECTIVES_COLUMNS(COLLECTIVES_COLUMN) COLLECTIVES_COLUMN_COUNT };
enum incidents_column {
	INCIDENTS_COLUMNS(INCIDENTS_COLUMN) EPISODE_FIELDS(INCIDENTS_COLUMN) INCIDENTS_COLUMN_COUNT
};
enum steps_column { STEPS_COLUMNS(STEPS_COLUMN) STEPS_COLUMN_COUNT };

#define TABLE_COLUMNS_MAX                                                                          \
	31 /* a row has a bit for each, and one more must be there to tell damage */

struct table_column {
	const char *name;
	enum column_type type;
	const char *help;
};

struct table_desc {
	const char *name;
	const struct table_column *columns;
	int column_count;
	int time, cluster, node; /* numbers of these columns: every table has them */
};

extern const struct table_desc store_tables[TABLE_COUNT];

/* ---- rows as bytes ---- */

#define BATCH_TEXT_MAX (64u << 10) /* of one value; a longer one is cut */

struct batch { /* being written; failures stick in bytes */
	struct buf bytes;
	size_t row_count;
	size_t row; /* where the row begins that is being written */
	enum store_table table;
	int column; /* the next one that may be put */
};

/* batch_row - begins a row; its columns are put in ascending order, those left out are NULL. */
void batch_row(struct batch *b, enum store_table t);
void batch_int(struct batch *b, int column, int64_t v); /* COLUMN_INT, COLUMN_TIME */
void batch_real(struct batch *b, int column, double v); /* NaN and infinities are NULL */
/* batch_text - NULL or an empty text is NULL, but for cluster and node; cut at a whole character. */
void batch_text(struct batch *b, int column, const char *text, size_t len);
void batch_text_of(struct batch *b, int column, const char *text);

struct batch_reader {
	const uint8_t *data;
	size_t len;
};

struct batch_row {
	enum store_table table;
	struct sql_value cells[TABLE_COLUMNS_MAX]; /* texts lie in the reader's data */
};

/* batch_next - 1: *ret is the next row; 0: there is none; -EBADMSG. */
int batch_next(struct batch_reader *r, struct batch_row *ret);
