/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_table.h - what nodes.c, its stages and its snapshot share: the table's rows. Private to them.
 *
 * Invariants
 * 1. A node is in nodes->by_name, in nodes->order (by cluster and name) and in each cohort that its
 *    `in` names; a cohort exists while it has members, so there are at most four for each node.
 * 2. The cohort COHORT_CLUSTER stands for its cluster: it lists the others of the cluster, and all of
 *    them are computed at once, when it is due.
 * 3. nodes->values has room for one number of every node: computing allocates nothing. */
#pragma once

#include <sys/queue.h>

#include "base/idmap.h"
#include "cluster/detect/nodes.h"
#include "cluster/detect/spread.h"
#include "cluster/detect/threshold.h"

/* X(NAME, what its members have in common besides the cluster) */
#define COHORT_KINDS(X)                                                                            \
	X(CLUSTER, "")                                                                             \
	X(WORKLOAD, "workload type")                                                               \
	X(HASH, "cgroup_path_hash")                                                                \
	X(PEERS, "workload type, GPU model and world size")

enum cohort_kind {
#define X(NAME, ...) COHORT_##NAME,
	COHORT_KINDS(X)
#undef X
		COHORT_KIND_COUNT
};

/* What a node is judged by: its raw signals, and its score behind them. */
#define MEASURE_SCORE PUSH_SIGNAL_COUNT
#define MEASURE_COUNT (PUSH_SIGNAL_COUNT + 1)

struct measure { /* of a cohort */
	struct spread spread;
	double sigma;  /* spread's over time, as a part of the median (scores: as it is) */
	double noise;  /* how much it moves from push to push at a typical node, as sigma */
	double chance; /* a deviation from the median beyond this is no chance, */
	double limit;  /* and beyond this worth telling of itself */
	uint32_t seen; /* computations */
	bool is_known; /* false: too few nodes, or half of them deviate */
};

struct measure_trace {    /* of a node: how far it has been from its peers */
	double deviation; /* in the bad direction: a part of the median; of scores, the difference */
	double noise;     /* average distance between two in a row */
	double level;     /* where it usually is */
	double most;      /* while that is not known, the most that it was */
	double sum;       /* CUSUM of what is beyond level and slack */
	uint32_t seen;    /* observations */
	uint32_t run;     /* of them since sum was 0 */
	uint8_t bad, good; /* in a row */
	uint8_t more;      /* likewise: beyond chance on the other side, and further than usual */
};

struct cohort {
	enum cohort_kind kind;
	char cluster[PUSH_ID_MAX];
	char name[PUSH_WORD_MAX + PUSH_MODEL_MAX + 16];
	uint64_t hash;
	struct cohort *same_hash;
	struct cohort *parent; /* that of the cluster; itself */
	LIST_HEAD(, node) members;
	uint32_t count;
	LIST_HEAD(, cohort) others; /* of a cluster */
	LIST_ENTRY(cohort) sibling; /* among the clusters, or among others */
	struct threshold threshold;
	struct threshold_average average;
	double usual[4]; /* medians of throughput, compute, memory, cpu */
	struct measure measures[MEASURE_COUNT];
	/* of a cluster: */
	int64_t due_ns;
	uint32_t unjudged; /* pushes since it was computed */
	int64_t heard_ns;  /* last push of any node */
	int64_t deaf_ns; /* until then nobody is called silent: it was this side that did not hear */
};

struct node {
	struct push_health last;
	uint64_t hash, token;
	struct node *same_hash;
	struct cohort *in[COHORT_KIND_COUNT]; /* HASH may be NULL */
	LIST_ENTRY(node) with[COHORT_KIND_COUNT];
	int64_t first_ns, last_ns;
	uint64_t gap_ns;        /* between its last two pushes */
	uint64_t former, rival; /* boots: replaced by last.who.boot; of a second agent, refused */
	bool is_fresh;          /* has pushed since it was judged */
	bool is_gone;           /* is being forgotten */
	unsigned reasons;       /* 1 << nodes_reason: a straggler by these */
	unsigned signals[2];    /* 1 << push_signal: by which; [0] PEERS, [1] DRIFT */
	enum nodes_reason reason;
	int64_t since_ns;
	uint64_t episode;
	struct measure_trace traces[MEASURE_COUNT];
};

struct change {
	TAILQ_ENTRY(change) link;
	struct push_health last;
	struct nodes_change told; /* node.last points to last */
};

struct nodes {
	struct nodes_settings settings;
	struct idmap by_name, cohorts;
	struct idmap tokens; /* how many nodes each has brought, in place of a pointer */
	struct node **order;
	size_t count, room;
	double *values;
	size_t values_room;
	LIST_HEAD(, cohort) clusters;
	TAILQ_HEAD(, change) changes;
	size_t changes_count;
	struct change *shown; /* what nodes_change() gave last */
	uint64_t changes_lost, episodes;
	uint64_t refused[NODES_REFUSAL_COUNT];
	int64_t ticked_ns;   /* INT64_MIN: never */
	nodes_work_fn *work; /* NULL: nobody knows */
	void *work_arg;
};

static inline uint64_t nodes_ttl_ns(const struct nodes *n)
{
	return n->settings.interval_ns * n->settings.ttl_multiplier;
}

/* node_counts - it takes part in medians. */
static inline bool node_counts(const struct nodes *n, const struct node *d, int64_t now_ns)
{
	return d->last.state == PUSH_ACTIVE && !(d->reasons & 1u << NODES_SILENT_REASON) &&
	       now_ns - d->last_ns <= (int64_t)nodes_ttl_ns(n);
}

/* cohort_of_score - the one whose threshold is @d's: of its cgroup where that has quorum, else of all
 * with its workload type. */
static inline struct cohort *cohort_of_score(const struct node *d)
{
	struct cohort *hash = d->in[COHORT_HASH];

	return hash && (hash->threshold.quorum_met || hash->threshold.half_bad)
		       ? hash
		       : d->in[COHORT_WORKLOAD];
}

/* nodes.c */
enum nodes_refusal push_refusal(const struct push_health *h); /* whatever the time is */

/* nodes_table.c */
struct node *node_find(const struct nodes *n, const char *cluster, const char *node);
/* node_add - with its name and token, in no cohort; NULL: there is no room. */
struct node *node_add(struct nodes *n, const struct push_who *who, uint64_t token);
/* node_join - puts @d in the cohorts that its last push names. -ENOMEM: not in all of them. */
int node_join(struct nodes *n, struct node *d);
void nodes_forget_gone(struct nodes *n); /* frees those that are marked so */
void nodes_clear(struct nodes *n);       /* all of them; queued changes stay */
struct cohort *cohort_find(
	const struct nodes *n, enum cohort_kind kind, const char *cluster, const char *name);
/* node_set_token - false: @token has brought as many as it may. */
bool node_set_token(struct nodes *n, struct node *d, uint64_t token);
bool token_has_room(const struct nodes *n, uint64_t token);

/* nodes_episode.c */
void node_begin(struct nodes *n, struct node *d, enum nodes_reason reason, int64_t now_ns);
void node_end(struct nodes *n, struct node *d, enum nodes_reason reason);
void node_end_all(struct nodes *n, struct node *d); /* and all that led to it */
void node_show(const struct node *d, struct node_view *ret);

/* peers.c */
void cohort_measure(struct nodes *n, struct cohort *c, int64_t now_ns);
/* node_judge - @d has pushed since it was judged, and its cohorts are measured. */
void node_judge(struct nodes *n, struct node *d, int64_t now_ns);
/* node_more_launches - than its peers, as a part of theirs, since lately; 0: no more. */
double node_more_launches(const struct node *d);
