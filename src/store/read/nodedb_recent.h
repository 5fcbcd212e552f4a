/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_recent.h - what a recording gained lately, for those who pass it on while it is being
 * written. Ours only: of a published file there is nothing (-ENOTSUP with a sentence).
 *
 * A callback that returns negative ends it. Rows that make no sense are left out; where rows are
 * counted by their number, they are given as NULL so that they can be counted too. */
#pragma once

#include "store/read/nodedb_snapshot.h"

#define NODEDB_RECENT_PROCESSES 4096 /* the last seen */

struct recent_calls { /* of one process and op in a bucket of 5 s */
	int64_t bucket_ns;
	uint32_t pid;
	uint8_t source;
	uint16_t op;
	bool nested;
	uint64_t count, sum_ns, bytes;
};
typedef int recent_calls_fn(void *arg, const struct recent_calls *c);
int nodedb_recent_calls(struct nodedb_snapshot *l, int64_t from_ns, recent_calls_fn *fn, void *arg,
	struct errinfo *reterr);

struct recent_process {
	uint32_t pid;
	uint64_t start_ticks;
	int64_t last_seen_ns;
	int32_t rank;        /* -1: not known */
	uint32_t world_size; /* 0: not known */
	char comm[16];
	char job[128];
	char cgroup[1024];
};
typedef int recent_process_fn(void *arg, const struct recent_process *p);
/* nodedb_recent_processes - the last seen one first. */
int nodedb_recent_processes(
	struct nodedb_snapshot *l, recent_process_fn *fn, void *arg, struct errinfo *reterr);

struct recent_mark { /* a row of the ledger */
	int64_t row;
	int64_t end_ns;
	uint32_t pid, tid;
	uint8_t mark;      /* enum wire_mark */
	uint64_t stall_ns; /* able to run, without a CPU */
};
typedef int recent_mark_fn(void *arg, const struct recent_mark *m);
/* nodedb_recent_marks - the rows after number @after, in order, no more than @max. */
int nodedb_recent_marks(struct nodedb_snapshot *l, int64_t after, size_t max, recent_mark_fn *fn,
	void *arg, struct errinfo *reterr);

/* nodedb_recent_collectives - likewise; @c NULL: a damaged row. */
typedef int recent_collective_fn(void *arg, int64_t row, const struct collective_row *c);
int nodedb_recent_collectives(struct nodedb_snapshot *l, int64_t after, size_t max,
	recent_collective_fn *fn, void *arg, struct errinfo *reterr);

/* nodedb_recent_row - the number of the last row of @table ("ledger", "collectives") that began before
 * @before_ns; 0: none. nodedb_recent_last_row - of all. */
int nodedb_recent_row(struct nodedb_snapshot *l, const char *table, int64_t before_ns, int64_t *ret,
	struct errinfo *reterr);
int nodedb_recent_last_row(
	struct nodedb_snapshot *l, const char *table, int64_t *ret, struct errinfo *reterr);
/* nodedb_recent_row_time - when row @row of @table began; 0: those that are left come after it; -1: it was
 * never there. */
int nodedb_recent_row_time(struct nodedb_snapshot *l, const char *table, int64_t row, int64_t *ret,
	struct errinfo *reterr);

/* nodedb_recent_stopped - when the newest run of the tracer stopped in order; 0: it runs, or was killed. */
int nodedb_recent_stopped(struct nodedb_snapshot *l, int64_t *ret, struct errinfo *reterr);

struct recent_points { /* how many Sends or Recvs there were up to a row */
	uint32_t pid;
	uint64_t comm;
	bool is_send;
	int32_t peer;
	uint64_t count;
};
typedef int recent_points_fn(void *arg, const struct recent_points *p);
int nodedb_recent_points(struct nodedb_snapshot *l, int64_t up_to_row, recent_points_fn *fn,
	void *arg, struct errinfo *reterr);

struct recent_readings { /* means since a moment; -1: not known */
	double cpu_pct, psi_memory_pct, mem_avail_share;
	double gpu_busy_pct, sm_clock_mhz; /* the clock of samples in which it was busy */
	uint32_t gpus;
	char gpu_model[96];     /* "": not known */
	uint64_t failed_allocs; /* calls of CUDA that found no memory */
	int64_t newest_ns;      /* when the tracer wrote last; 0: not known */
};
int nodedb_recent_readings(struct nodedb_snapshot *l, int64_t from_ns, struct recent_readings *ret,
	struct errinfo *reterr);

struct recent_incident {
	char id[128];
	uint32_t pid;
	int64_t last_ns;
	bool is_over;
	double confidence;
	uint64_t ordinary_ns, slow_ns, slow_count;
	char summary[512], root_cause[512], fix[512];
	char cause[32]; /* the name of the first; "": none */
	uint64_t cause_ns;
};
/* nodedb_recent_chains - the rows of causal_chains that were found, seen again or over since @from_ns, the
 * newest first, no more than @max. Columns: detected_at, resolved_at (0: it is not over), then what a chain is
 * told with, under the names of that, the fields that incidents got later (model/incident.h) at the end.
 * What is no number and no text of at most RECENT_TEXT_MAX characters is NULL. */
#define RECENT_TEXT_MAX 4096
int nodedb_recent_chains(struct nodedb_snapshot *l, int64_t from_ns, size_t max,
	struct sql_table *ret, struct errinfo *reterr);

/* nodedb_recent_incident - the worst one seen since @from_ns, those that are not over first. 1, or 0:
 * there is none. */
int nodedb_recent_incident(struct nodedb_snapshot *l, int64_t from_ns, struct recent_incident *ret,
	struct errinfo *reterr);
