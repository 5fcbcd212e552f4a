/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb.h - the node's event store: a SQLite file with the published tables and ours.
 *
 * One writer (store/write/writer.h owns the thread); readers open read-only and never change the
 * file, whatever schema it has. SQL lives in this folder and in sql/; nobody else knows it. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "base/idmap.h"
#include "model/accounting.h"
#include "model/collective.h"
#include "model/event.h"
#include "model/identity.h"
#include "model/incident.h"
#include "model/kernel.h"
#include "model/sample.h"
#include "model/stack.h"
#include "model/step_account.h"

/* A call stack as the store's columns hold it, there and back.
 *
 * frames: [{"s": function, "f": file or library, "l": line, "pf": Python file, "pfn": function,
 * "pl": line, "i": "0x…"}, …], innermost first, only keys that have a value, i only without s.
 * ips: ["0x…", …], only for a stack in which nothing has a name; else "". */

#define STACK_JSON_MAX (64 << 10) /* longer frames are never written, and ignored in a file */

struct stack_row { /* texts end with a NUL, but their length is what counts */
	uint64_t hash;
	const char *ips, *frames, *stop;
	size_t ips_len, frames_len, stop_len;
};

/* stack_json_frames - appends the frames to @out, at most STACK_JSON_MAX bytes: names are cut for
 * that, and if need be the outermost frames left out. @stop gets where the walk ended, and how many
 * were left out. */
void stack_json_frames(const struct stack *s, struct buf *out, struct buf *stop);
void stack_json_ips(const struct stack *s, struct buf *out);

/* stack_json_read - the stack in @row, one block that the caller frees with free(). Names of C++ and
 * Rust are demangled.
 * -EFBIG over STACK_JSON_MAX or STACK_FRAMES_MAX; -EBADMSG not such JSON; -ENOMEM. */
int stack_json_read(const struct stack_row *row, struct stack **ret);

/* Which part of a recording is meant: one description of it for loaders, short questions
 * and exports, and one place where it becomes SQL. */

struct scope {
	int64_t from_ns, to_ns; /* inclusive, of the start; 0: open */
	const uint32_t *pids;   /* any of these, or all if pid_count is 0. sched_switch rows of
				   published files carry a thread's id here */
	size_t pid_count;
	const char *node; /* NULL: any. Tables without nodes know nothing of it */
	uint8_t source;   /* 0: any */
	uint16_t op;      /* of that source; 0: any */
};

struct scope_columns {          /* which of a table's columns a scope applies to */
	const char *time, *pid; /* NULL: none */
	int64_t width_ns;       /* a row is a bucket of this width; 0: a moment */
	bool op;                /* it has source and op */
	bool node;              /* it has node */
};

/* scope_where - appends " WHERE 1" and what @s asks of columns @c: a complete condition to which
 * " AND …" may be added. Check sql->err. */
void scope_where(const struct scope *s, const struct scope_columns *c, struct buf *sql);

/* scope_accepts - whether a row of that time and process belongs to @s: as scope_where() says it. */
bool scope_accepts(const struct scope *s, int64_t time_ns, int64_t pid);

/* scope_bucket_ns - of which buckets calls of @s are summed up: of 5 s for a time of up to half an
 * hour, where they are few; else of minutes. */
int64_t scope_bucket_ns(const struct scope *s);
const char *scope_bucket_table(int64_t width_ns);

struct nodedb;
struct buf;
struct sql_guard_rules;
struct sql_table;

#define NODEDB_BUCKET_FINE   (5 * NS_PER_S)
#define NODEDB_BUCKET_COARSE (60 * NS_PER_S)

/* nodedb_open - open @path for writing, creating file and parent directory if needed.
 * Refuses, leaving the file alone: not a database or damaged (-EBADMSG), a newer schema (-EBADMSG),
 * a published agent's file (-EBADMSG: evidence is never migrated in place), a folder (-EISDIR),
 * another writer (-EBUSY), no permission (-EACCES), read-only media (-EROFS), no space (-ENOSPC).
 * The file, its -wal and -shm are for their owner alone (0600): under sudo the invoking user, in a
 * folder of somebody else's that user, with whose rights root makes and opens them.
 */
int nodedb_open(const char *path, const char *node, struct nodedb **ret_db, struct errinfo *reterr);

/* nodedb_checkpoint - moves the log into the file as far as readers let it, and frees its space. */
int nodedb_checkpoint(struct nodedb *db, struct errinfo *reterr);

/* nodedb_close - checkpoint and close; the -wal and -shm files are gone afterwards. */
int nodedb_close(struct nodedb *db, struct errinfo *reterr);

int nodedb_session_begin(
	struct nodedb *db, struct session *s, struct errinfo *reterr); /* sets id */
int nodedb_session_end(struct nodedb *db, int64_t id, wall_time stopped, struct errinfo *reterr);

/* nodedb_session_gpu - what the driver said after the session began; "" leaves a version as it is.
 */
int nodedb_session_gpu(struct nodedb *db, int64_t id, const char *model, const char *driver,
	const char *cuda, struct errinfo *reterr);

/* nodedb_batch_begin/_commit - writes in between are one transaction; after a failed commit
 * nothing of the batch is stored. */
int nodedb_batch_begin(struct nodedb *db, struct errinfo *reterr);
/* nodedb_batch_begin_durable - once such a batch is committed, it and all before it outlast a power
 * cut. Others outlast the end of this process; a power cut may take the last of them. */
int nodedb_batch_begin_durable(struct nodedb *db, struct errinfo *reterr);
int nodedb_batch_commit(struct nodedb *db, struct errinfo *reterr);
void nodedb_batch_rollback(struct nodedb *db);

/* nodedb_put_event - write one event; sets e->seq ("node:seq" is its id). */
int nodedb_put_event(struct nodedb *db, struct event *e, struct errinfo *reterr);

/* nodedb_add_aggregate - adds to the bucket's row (never replaces): call with what is new. */
int nodedb_add_aggregate(
	struct nodedb *db, bool coarse, const struct aggregate *a, struct errinfo *reterr);

/* nodedb_put - a row that is all in its struct; of a control group only what was not known of it yet is new. */
enum nodedb_row {
	NODEDB_ROW_HOST,
	NODEDB_ROW_GPU,
	NODEDB_ROW_CONTAINER,
	NODEDB_ROW_OVERHEAD,
	NODEDB_ROW_CGROUP,
	NODEDB_ROW_TEXT
};
#define NODEDB_ROW(row)                                                                            \
	_Generic(*(row), struct host_sample                                                        \
		 : NODEDB_ROW_HOST, struct gpu_sample                                              \
		 : NODEDB_ROW_GPU, struct container_sample                                         \
		 : NODEDB_ROW_CONTAINER, struct overhead                                           \
		 : NODEDB_ROW_OVERHEAD, struct cgroup_row                                          \
		 : NODEDB_ROW_CGROUP, struct text_row                                              \
		 : NODEDB_ROW_TEXT)
#define nodedb_put(db, row, reterr) nodedb_put_of(db, NODEDB_ROW(row), row, reterr)
int nodedb_put_of(
	struct nodedb *db, enum nodedb_row which, const void *row, struct errinfo *reterr);

int nodedb_put_ledger(struct nodedb *db, const struct ledger_row *row, struct errinfo *reterr);
int nodedb_put_collective(struct nodedb *db, const struct event *e, const struct collective *c,
	struct errinfo *reterr);

/* nodedb_put_process - a process, or what is newly known of it; @cmdline NULL or "" keeps the
 * stored one, everything else is replaced. */
int nodedb_put_process(
	struct nodedb *db, const struct process *p, const char *cmdline, struct errinfo *reterr);

/* nodedb_put_kernel - launches are added to what is there; a name replaces an unknown one. Names are
 * demangled here. */
int nodedb_put_kernel(struct nodedb *db, const struct kernel_row *k, struct errinfo *reterr);

/* nodedb_put_stack - a stack, or a better-named version of it, which replaces the stored one. */
int nodedb_put_stack(struct nodedb *db, const struct stack_row *row, struct errinfo *reterr);

/* nodedb_put_layers - the process's rows of `coverage` in this session; replaces older ones. */
int nodedb_put_layers(struct nodedb *db, int64_t session, uint32_t pid, uint64_t start_ticks,
	const struct process_layers *l, struct errinfo *reterr);

/* nodedb_session_place - the place in a distributed job that all traced processes share. */
int nodedb_session_place(
	struct nodedb *db, int64_t session, struct placement place, struct errinfo *reterr);

/* nodedb_put_call_gap - a row of `call_gaps` in this session. */
int nodedb_put_call_gap(
	struct nodedb *db, int64_t session, const struct call_gap *g, struct errinfo *reterr);

/* nodedb_put_cpu_losses - this session's rows of `losses_by_cpu`, as they stand. */
int nodedb_put_cpu_losses(
	struct nodedb *db, int64_t session, const struct cpu_losses *l, struct errinfo *reterr);

/* nodedb_put_accounting - replaces this session's rows of `accounting` and `losses`. */
int nodedb_put_accounting(
	struct nodedb *db, int64_t session, const struct accounting *a, struct errinfo *reterr);
int nodedb_put_incident(
	struct nodedb *db, const struct incident *i, wall_time detected, struct errinfo *reterr);

/* nodedb_put_annotation - *ret_id is the row's id. */
int nodedb_put_annotation(
	struct nodedb *db, const struct annotation *a, int64_t *ret_id, struct errinfo *reterr);

/* nodedb_put_pruned - adds @rows deleted rows of @table, from times oldest_ns to newest_ns, to what
 * @session has pruned. */
int nodedb_put_pruned(struct nodedb *db, int64_t session, const char *table, uint64_t rows,
	int64_t oldest_ns, int64_t newest_ns, struct errinfo *reterr);

/* nodedb_pruned - rows booked so since the store was opened. */
uint64_t nodedb_pruned(const struct nodedb *db);

/* nodedb_roll - move the file to @rolled (a name not in use in the same folder) and go on in a new
 * one under the old name, with seq going on; the lock is held throughout. Outside a batch, with the
 * session ended; the caller begins a new one, also after a failure, because the store then goes on
 * in the old file. nodedb_roll_ready() says beforehand whether it can be done now: 1, or 0 while a
 * reader is using the log (then nodedb_roll() is -EAGAIN). */
int nodedb_roll_ready(struct nodedb *db, struct errinfo *reterr);
int nodedb_roll(struct nodedb *db, const char *rolled, struct errinfo *reterr);
const char *nodedb_path(const struct nodedb *db);

/* nodedb_has_name - whether the file that is written still has its name: 1; 0: nothing has; -EEXIST: another has.
 * nodedb_renew - as nodedb_roll() where nothing has: what was written is where somebody else has put it. After a failure it
 * can be tried again; nodedb_renew_ready() as nodedb_roll_ready(). */
int nodedb_has_name(const struct nodedb *db);
int nodedb_renew_ready(struct nodedb *db, struct errinfo *reterr);
int nodedb_renew(struct nodedb *db, struct errinfo *reterr);

/* nodedb_size - bytes of the file, -wal and -shm together. */
uint64_t nodedb_size(const struct nodedb *db);

/* ---- reading ----
 *
 * A reader holds what it selects: sizeof(struct event) (160 bytes) an event, 24 bytes more while
 * they are put in order, and 4.8 kB an aggregate, up to these ceilings (0.8 GB and 160 MB); beyond
 * them the newest are kept and the rest is counted. `last` and the time range use the index, so a
 * small part of a large file is quick.
 *
 * Of a large file most rows are ordinary calls, which its aggregates describe better than a
 * selection of rows: `thin` leaves them out (see ordinary.h) while all rows are looked at, on two
 * threads if nobody is writing. Then 2 M rows are kept by each half of the file. */
#define NODEDB_EVENTS_MAX      (4u << 20)
#define NODEDB_WHOLE_MAX       (512u << 10) /* NODEDB_THIN_LARGE: up to here all rows are loaded */
#define NODEDB_THINNED_MAX     (2u << 20)
#define NODEDB_AGGREGATES_MAX  (32u << 10)
#define NODEDB_SAMPLES_MAX     (1u << 20)
#define NODEDB_GPU_MAX         (256u << 10) /* 100 MB: 9 hours of 8 GPUs */
#define NODEDB_COLLECTIVES_MAX (512u << 10) /* 100 MB: 18 hours of 8 calls a second */
#define NODEDB_LEDGER_MAX      (1u << 20)   /* 340 MB: 17 minutes of 1000 rows a second */
#define NODEDB_CONTAINERS_MAX  (256u << 10) /* 32 MB: 9 hours of 8 groups */
#define NODEDB_HOMES_MAX       (32u << 10)
#define NODEDB_CHAINS_MAX      10000u
#define NODEDB_LABELS_MAX      (64u << 10) /* 0.4 kB each */
#define NODEDB_STACKS_MAX      (64u << 10)
#define NODEDB_STACKS_BYTES    (128u << 20) /* of all together */

enum nodedb_stacks { NODEDB_STACKS_NONE, NODEDB_STACKS_USED, NODEDB_STACKS_ALL };

enum nodedb_thin { NODEDB_THIN_NEVER, NODEDB_THIN_LARGE, NODEDB_THIN_ALWAYS };

struct nodedb_filter {
	struct scope scope;    /* collectives come of all nodes and processes, whatever it says, the
			       ledger and control groups of all processes; of source and op both or
			       none */
	size_t last;           /* only the newest n events; 0: all */
	enum nodedb_thin thin; /* not with `last`, nor for files without aggregates */
	bool labels;           /* load annotations too, and NVTX ranges as such */
	bool names;            /* load what launches launched and ranges are called */
	bool ledger;           /* load the ledger and samples of control groups too */
	bool kernels;          /* load which kernels were launched, and how often, too */
	enum nodedb_stacks stacks; /* USED: those of the selected events and of the ledger, most
				      time first */
	size_t stacks_max;         /* USED: no more than so many; 0: NODEDB_STACKS_MAX */
};

struct nodedb_content { /* what a reader loaded; arrays in order of time */
	struct event *events;
	size_t event_count;
	struct aggregate *aggregates; /* 5 s buckets; empty for published files */
	size_t aggregate_count;
	struct host_sample *samples;
	size_t sample_count;
	struct gpu_sample *gpu_samples;
	size_t gpu_sample_count;
	struct collective_row *collectives; /* of all processes, whatever the filter's pids */
	size_t collective_count;
	struct ledger_row *ledger; /* if asked for: of all processes, likewise */
	size_t ledger_count;
	struct container_sample *containers; /* likewise */
	size_t container_count;
	struct process_home *homes; /* by pid; of a pid used twice the later one */
	size_t home_count;
	struct incident_row *chains; /* stored verdicts: see below */
	size_t chain_count;
	struct annotation_label *labels; /* of annotations up to the range's end, by their time */
	size_t label_count;
	uint64_t older_labels;      /* beyond the newest NODEDB_LABELS_MAX */
	struct name_book *names;    /* read/nodedb_reader.h; NULL: not asked for */
	struct kernel_use *kernels; /* by pid, function and since; those that have a name */
	size_t kernel_count;
	struct intern kernel_names;
	struct stack_list stacks; /* each freed with free(); see nodedb_filter */
	uint64_t skipped_stacks;  /* not to be understood, or over STACK_JSON_MAX: say so */
	uint64_t other_stacks;    /* beyond NODEDB_STACKS_MAX or _BYTES: likewise */
	struct accounting books;
	bool has_books;
	uint64_t pruned_rows;      /* events deleted to keep the file small: not in it any more */
	int64_t pruned_before;     /* they started before this; 0: none were pruned */
	int64_t first_ns, last_ns; /* range of the events: first start, last end */
	uint64_t total_calls;      /* by aggregates, without calls inside others; events are a
				      selection of these. Without aggregates: the selected events */
	uint64_t skipped_rows;     /* damaged rows that were left out: say so */
	uint64_t older_events;     /* selected, but older than the newest that are kept: say so */
	uint64_t thinned_rows; /* of ordinary calls, left out: say so. They are in the aggregates */
	uint64_t older_aggregates; /* likewise */
	uint64_t older_gpu_samples;
	uint64_t older_collectives;
	uint64_t older_ledger;
	uint64_t older_containers;
	char node[256];  /* a merged file: its nodes, separated by commas */
	char schema[16]; /* "0.8" … "0.11" */
};

struct incident_row { /* one row of causal_chains */
	char id[128];
	int64_t detected_ns;
	char severity[12];
	char summary[512], root_cause[512];
	char fixes[1024]; /* one per line */
	char explanation[1024];
	char timeline[2048]; /* one per line: layer, tab, detail, tab, microseconds or nothing */
	double tail_ratio;   /* p99 over p50 as stored; 0: not known */
	char op[64];         /* the name of the slow call; "": not known */
	/* Of our own recordings alone; last_ns 0: not known. */
	int64_t last_ns, resolved_ns;
	uint32_t pid;
	char problem[32], place[160];
};

/* nodedb_read - open read-only (also from read-only media), load what @f selects, close.
 * Schemas 0.8 to 0.11: start times are right for every source. Damaged or hostile content never
 * crashes: rows that make no sense are counted in skipped_rows.
 * -ENOENT no such file; -EBADMSG not a database, newer schema, or not an ingero database. */
int nodedb_read(const char *path, const struct nodedb_filter *f, struct nodedb_content *ret,
	struct errinfo *reterr);
void nodedb_content_done(struct nodedb_content *c);

/* nodedb_range - first and last moment of the recording, quickly; 0, 0 if it has no events. */
struct nodedb_range {
	int64_t first_ns, last_ns; /* start of the oldest row, end of the newest */
};
int nodedb_range(const char *path, struct nodedb_range *ret, struct errinfo *reterr);

/* nodedb_nodes - the nodes that the recording's sessions name, in their order: none for an old file
 * of one node, several for a merged one. The caller frees *ret. */
#define NODEDB_NODES_MAX 4096
struct nodedb_node {
	char name[256];
};
int nodedb_nodes(
	const char *path, struct nodedb_node **ret, size_t *ret_count, struct errinfo *reterr);

/* One process and op over the selected time, by the aggregates: every call, stored or not. Calls of
 * the driver made inside runtime calls are rows of their own. */
struct nodedb_usage {
	uint32_t pid;
	uint8_t source;
	uint16_t op;
	bool nested;
	uint64_t count, sum_ns, max_ns;
	char comm[16]; /* the pid's last name; "": not known */
};
#define NODEDB_USAGE_MAX 65536u

/* nodedb_usage - by pid, the busiest first, each with its ops by calls; the caller frees *ret.
 * Files without aggregates give none. */
int nodedb_usage(const char *path, const struct nodedb_filter *f, struct nodedb_usage **ret,
	size_t *ret_count, struct errinfo *reterr);

/* nodedb_ask - runs one SQL statement that a stranger wrote, in a process of its own: see
 * sql_worker.h, whose results these are. The program's main() must know that process. */
int nodedb_ask(const char *path, const char *text, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr);

/* nodedb_read_sql - as nodedb_read() from a text of SQL statements run in memory (a dump of a
 * store, as `sqlite3 FILE .dump` writes it). */
int nodedb_read_sql(const char *sql, const struct nodedb_filter *f, struct nodedb_content *ret,
	struct errinfo *reterr);

struct nodedb_packed { /* such a text, packed by gzip */
	const unsigned char *data;
	uint64_t size;
};

/* nodedb_read_packed - likewise of a recording that travels inside the program (demo). -EBADMSG: it
 * is damaged. */
int nodedb_read_packed(const struct nodedb_packed *p, const struct nodedb_filter *f,
	struct nodedb_content *ret, struct errinfo *reterr);
