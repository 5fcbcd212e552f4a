/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json.h - what the cluster service says, as JSON: one function a question. No I/O.
 *
 * Names in the answers came from agents; the writer makes valid JSON of whatever they hold. Times are
 * nanoseconds of the cluster's clock since 1970, communicators 16 hexadecimal digits. A list that is
 * longer than its limit says how many there are in "total". */
#pragma once

#include "base/text.h"
#include "cluster/detect/fleet.h"
#include "json/writer.h"
#include "model/metric.h"

#define FLEET_JSON_NODES_MAX       10000
#define FLEET_JSON_EPISODES_MAX    1000
#define FLEET_JSON_RANKS_MAX       16384
#define FLEET_JSON_JOBS_MAX        1000
#define FLEET_JSON_COLLECTIVES_MAX 1000
#define FLEET_JSON_HEATMAP_RANKS   1024
#define FLEET_JSON_HEATMAP_COLUMNS 200
#define FLEET_JSON_BLAME_MAX       16  /* sentences */
#define FLEET_METRICS_EPISODES     200 /* of nodes and ranks that cost something now */

struct fleet_json_query {
	char cluster[PUSH_ID_MAX]; /* "": all, or the only one */
	char cohort[PUSH_ID_MAX];  /* "": the cluster's */
	uint64_t comm, seq;        /* 0: not asked */
	bool has_comm, has_seq;
	char node[PUSH_ID_MAX]; /* ranks: only of this node; "": of all */
	uint64_t rank;          /* ranks: only this one, in the job */
	uint64_t after;         /* heatmap: only collectives with a higher number */
	bool has_rank, has_after, has_limit;
	uint64_t limit; /* 0: the answer's own */
	int64_t now_ns;
	const char
		*node_page; /* version: address of a node's own page, with {node}; NULL: not told */
};

/* An answer writes one value. -ENOENT: there is no such thing; then nothing was written. */
typedef int fleet_json_fn(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q);

fleet_json_fn fleet_json_threshold;
fleet_json_fn fleet_json_clusters;
fleet_json_fn fleet_json_cost;
fleet_json_fn fleet_json_blame;
fleet_json_fn fleet_json_episodes;
fleet_json_fn fleet_json_nodes;
fleet_json_fn fleet_json_ranks; /* latest first; with a rank or a node: their accounts too */
fleet_json_fn fleet_json_jobs;
fleet_json_fn fleet_json_collectives; /* with a communicator and a number: who came when */
fleet_json_fn fleet_json_heatmap;
fleet_json_fn fleet_json_hangs;
fleet_json_fn fleet_json_mismatches;
fleet_json_fn fleet_json_version;

/* fleet_metrics - everything that the core knows as metrics. Series of ranks and episodes are bounded: those that
 * make nobody wait have none. */
void fleet_metrics(struct metric_set *s, struct fleet *f);

/* ---- parts ---- */

/* fleet_json_cost_members - the members of @c into an object that is open. Money is null where nothing
 * has a price. */
void fleet_json_cost_members(struct json_writer *w, const struct fleet_cost *c);

/* FLEET_JSON_TEXT - null for "". */
#define FLEET_JSON_TEXT(text) ((text)[0] ? (text) : NULL)

/* fleet_json_next_cluster - walks the clusters that @q asks for. */
bool fleet_json_next_cluster(const struct fleet *f, const struct fleet_json_query *q,
	size_t *cursor, const char **ret_cluster);

/* fleet_json_one_cluster - the cluster that is asked for, or the only one; NULL: neither. */
const char *fleet_json_one_cluster(const struct fleet *f, const struct fleet_json_query *q);

/* fleet_json_median - the middle one of the arrivals that have come; @scratch has room for @count. */
int64_t fleet_json_median(const int64_t *at, size_t count, int64_t *scratch);

/* fleet_json_limit - how many rows: what is asked for, at most @max. */
size_t fleet_json_limit(const struct fleet_json_query *q, size_t max);

/* ---- who the workers of a cluster are ---- */

/* A view of one is large, so that they are walked once for an answer. */
struct worker_entry {
	uint32_t worker, pid;
	int32_t rank; /* in the job; -1: not known */
	const char *node;
};

struct worker_directory {
	struct worker_entry *who; /* by worker */
	size_t count;
};

/* worker_directory_list - of @c, until its next change; released with worker_directory_done(). -ENOMEM: also then. */
int worker_directory_list(const struct calls *c, struct worker_directory *ret);
void worker_directory_done(struct worker_directory *p);

/* worker_directory_find - NULL: it has been forgotten. */
const struct worker_entry *worker_directory_find(const struct worker_directory *p, uint32_t worker);
