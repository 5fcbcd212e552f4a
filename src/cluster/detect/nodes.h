/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.h - the nodes of all clusters: what each said last, the threshold of each cohort, and which
 * nodes are stragglers by score, by their peers' raw signals, or silent. Pure: the caller brings the
 * time (nanoseconds, any clock that does not go back). */
#pragma once

#include "base/macros.h"
#include "push/push.h"

struct nodes_settings {
	double k;                /* 2.0; 1..4 */
	double ema_alpha;        /* 0.2 */
	uint64_t interval_ns;    /* of pushes: 10 s */
	uint32_t ttl_multiplier; /* 5 */
	uint32_t quorum; /* 5 active nodes; of a job of known size, a majority of it if smaller */
	double coverage; /* 0.80 */
	uint32_t nodes_max;       /* 10000 */
	uint32_t nodes_per_token; /* names that one token may bring: 0 is nodes_max */
	double mad_floor;         /* 0.01 */
	double hysteresis;        /* 0.02 */
};
extern const struct nodes_settings nodes_defaults;

/* Why a push is not taken. X(NAME, id, status of HTTP) */
#define NODES_REFUSALS(X)                                                                          \
	X(NONE, "none", 200)                                                                       \
	X(NOT_FINITE, "not_finite", 400)                                                           \
	X(OUT_OF_RANGE, "out_of_range", 400)                                                       \
	X(FUTURE, "future_time", 400)                                                              \
	X(PAST, "stale_time", 400)                                                                 \
	X(NO_NAME, "no_name", 400)                                                                 \
	X(TOO_MANY_NODES, "too_many_nodes", 429)                                                   \
	X(TOKEN_NODES, "too_many_nodes_of_token", 403)                                             \
	X(TWO_AGENTS, "two_agents_one_name", 409)

enum nodes_refusal {
#define X(NAME, ...) NODES_##NAME,
	NODES_REFUSALS(X)
#undef X
		NODES_REFUSAL_COUNT
};

struct threshold {
	double value; /* 0: none yet */
	bool quorum_met;
	bool half_bad; /* half of the nodes or more are bad: who is ordinary cannot be told */
	bool coverage_low;
	double median, mad; /* of the last computation */
	uint32_t active, known;
};

/* What makes a node a straggler. X(NAME, id) */
#define NODES_REASONS(X)                                                                           \
	X(SCORE, "score")   /* below the cohort's threshold */                                     \
	X(PEERS, "peers")   /* a raw signal far from those of its peers, from boot or for good */  \
	X(DRIFT, "drift")   /* slowly, against its peers */                                        \
	X(SILENT, "silent") /* it has stopped pushing without saying goodbye */

enum nodes_reason {
#define X(NAME, ...) NODES_##NAME##_REASON,
	NODES_REASONS(X)
#undef X
};

struct node_view { /* what is known of a node; texts are the table's, until the next change */
	const struct push_health *last;
	int64_t first_ns, last_ns; /* received */
	bool straggler;
	enum nodes_reason reason;
	enum push_signal signal; /* PEERS, DRIFT: which */
	char dominant
		[PUSH_WORD_MAX]; /* "throughput", "compute", "memory", "cpu", a raw signal, "unknown" */
	double robust_z;         /* of that signal against its peers; 0: not computed */
	double peer_median, value;
	double more_launches; /* than its peers, as a part of theirs, since lately; 0: no more. No fault of a node in itself */
	int64_t since_ns; /* straggler since */
	uint64_t episode; /* counts up; 0: none yet */
	double threshold;
};

/* What has become of a node's work by the calls of its ranks, as the caller knows it. */
enum nodes_work {
	NODES_WORK_GOES_ON, /* or nothing is known of it */
	NODES_WORK_PAUSES, /* nobody has called since it did: it cannot be told yet whether that is the end */
	NODES_WORK_ENDED, /* with all others of their jobs, which another node outlived */
};
typedef enum nodes_work nodes_work_fn(void *arg, const char *cluster, const char *node);

struct nodes;

int nodes_new(const struct nodes_settings *s, struct nodes **ret);
DECLARE_FREE(struct nodes, nodes_free)

/* nodes_take - a push, received at @now_ns from the holder of token @token (0: none). What is refused
 * has no effect on anybody and is counted. *ret is the threshold for its cohort, also of a refusal. */
enum nodes_refusal nodes_take(struct nodes *n, const struct push_health *h, uint64_t token,
	int64_t now_ns, struct threshold *ret);

/* nodes_tick - computes thresholds that are due, forgets the silent, classifies. */
void nodes_tick(struct nodes *n, int64_t now_ns);

/* nodes_threshold - of @cohort ("": of the cluster); false: no such cluster. */
bool nodes_threshold(
	const struct nodes *n, const char *cluster, const char *cohort, struct threshold *ret);

/* nodes_set_work - who knows what nodes work on: one that goes silent when its work has ended is forgotten as if it had
 * said goodbye. Without it all go on. */
void nodes_set_work(struct nodes *n, nodes_work_fn *fn, void *arg);

/* nodes_next - walks nodes (of @cluster, NULL: all) by cluster and name; start with *cursor = 0. */
bool nodes_next(const struct nodes *n, const char *cluster, size_t *cursor, struct node_view *ret);
bool nodes_find(
	const struct nodes *n, const char *cluster, const char *node, struct node_view *ret);
/* nodes_cohort_next - likewise cohorts, a cluster at a time: "" is all of it, then cgroup_path_hash and
 * "workload:TYPE". A node's threshold is that of its cgroup, if that has quorum, else of its workload type.
 */
bool nodes_cohort_next(const struct nodes *n, size_t *cursor, const char **ret_cluster,
	const char **ret_cohort, struct threshold *ret);

struct nodes_change { /* an episode has begun or ended; node_view as it is now */
	struct node_view node;
	bool began;
};
/* nodes_change - the next change since the last call; false: none. */
bool nodes_change(struct nodes *n, struct nodes_change *ret);
uint64_t nodes_changes_lost(const struct nodes *n); /* more waited than there is room for */

uint64_t nodes_refused(const struct nodes *n, enum nodes_refusal r);
const char *nodes_refusal_id(enum nodes_refusal r);
int nodes_refusal_status(enum nodes_refusal r);
const char *nodes_reason_id(enum nodes_reason r);

/* nodes_save/_restore - a small snapshot (versioned, checked): quorum holds through a restart. */
struct buf;
int nodes_save(const struct nodes *n, int64_t now_ns, struct buf *b);
int nodes_restore(struct nodes *n, const void *data, size_t len, int64_t now_ns);
