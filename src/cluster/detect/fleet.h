/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.h - the cluster service's core: what agents push goes in with a time, answers and notices come
 * out. No I/O and no clock, so that simulation runs the very same code. One thread. */
#pragma once

#include "cluster/detect/calls.h"
#include "cluster/detect/nodes.h"
#include "rates/rates.h"

struct fleet_settings {
	struct nodes_settings nodes;
	struct calls_settings calls;
	const struct rates *rates; /* the caller's */
	const char *provider;      /* of nodes that do not say theirs; NULL: not known */
	uint32_t clusters_max;     /* 256 */
	uint64_t seed;             /* of the episodes' UUIDs */
};
extern const struct fleet_settings fleet_defaults;

struct fleet;
int fleet_new(const struct fleet_settings *s, struct fleet **ret);
DECLARE_FREE(struct fleet, fleet_free)

enum nodes_refusal fleet_take_health(struct fleet *f, const struct push_health *h, uint64_t token,
	int64_t now_ns, struct threshold *ret);
int fleet_take_calls(
	struct fleet *f, const struct push_calls *b, int64_t now_ns, struct calls_taken *ret);
int fleet_take_report(struct fleet *f, const struct push_report *r, int64_t now_ns);
/* fleet_take_straggler - what a node says of itself, when it begins and when it ends. A node that has pushed
 * no health is not heard. 0. */
int fleet_take_straggler(struct fleet *f, const struct push_who *who,
	const struct push_straggler *s, int64_t now_ns);
/* fleet_set_rates - other prices from now on; the caller's, as in the settings. */
void fleet_set_rates(struct fleet *f, const struct rates *r);
void fleet_tick(struct fleet *f, int64_t now_ns); /* about every 250 ms */

struct nodes *fleet_nodes(struct fleet *f);
/* fleet_calls - of @cluster; NULL: none. */
const struct calls *fleet_calls(const struct fleet *f, const char *cluster);
bool fleet_cluster_next(const struct fleet *f, size_t *cursor, const char **ret_cluster);
/* fleet_report - what the agent of a process said of it in the last two minutes; NULL: nothing. Until the
 * next change. */
const struct push_report *fleet_report(
	const struct fleet *f, const char *cluster, const char *node, uint32_t pid, int32_t rank);

/* X(NAME, id) */
#define FLEET_PROBLEMS(X)                                                                          \
	X(STRAGGLER, "straggler") /* a rank or several are late for their collectives */           \
	X(STAGE, "slow_stage")                                                                     \
	X(UNEVEN, "uneven_load")                                                                   \
	X(LINK, "slow_link")             /* between two ranks that are both on time */             \
	X(COLLECTIVE, "slow_collective") /* all ranks are on time */                               \
	X(NODE, "slow_node")             /* by its health or its peers */                          \
	X(SILENT, "silent_node")                                                                   \
	X(HANG, "hang")                                                                            \
	X(MISMATCH, "mismatch")
enum fleet_problem {
#define X(NAME, ...) FLEET_##NAME,
	FLEET_PROBLEMS(X)
#undef X
};

struct fleet_cost {
	bool priced;     /* false: at least one GPU model has no price; money is then of the rest */
	bool is_middle;  /* a price is the middle of several providers' */
	bool is_guess;   /* likewise, because the provider is not known */
	double gpu_hour; /* price of one GPU, on average; 0: none */
	double per_hour; /* at the present rate */
	double total;    /* since the episode began */
	double gpu_seconds; /* lost, since the episode began */
	double watt_hours;  /* likewise; 0: not known */
	char currency[8], symbol[8];
	char unpriced[PUSH_MODEL_MAX]; /* the first model without a price; "": none */
};

struct fleet_episode {              /* one incident of the cluster, from its beginning to its end */
	uint64_t id;                /* counts up, the same while it lasts */
	char event[PUSH_EVENT_MAX]; /* UUID of it */
	char cluster[PUSH_ID_MAX];
	enum fleet_problem problem;
	char node[PUSH_ID_MAX]; /* "": not one node */
	int32_t rank;           /* -1: not one rank */
	uint32_t ranks;         /* STRAGGLER: all of the node, so many; 0: one rank */
	int32_t stage;
	uint32_t pid;
	double share; /* of the job's time since it began */
	double confidence;
	uint64_t lag_ns;
	uint32_t late, seen, period; /* as blame_suspect; late 0: its calls are on time */
	uint64_t comm, seq;
	uint16_t op;
	uint32_t waiting;           /* STRAGGLER, STAGE: ranks that wait for it; 0: not known */
	uint64_t waited_ns;         /* likewise: how long each of them does in a late step */
	int32_t from_rank, to_rank; /* LINK; else -1. Neither is to blame */
	char from_node[PUSH_ID_MAX], to_node[PUSH_ID_MAX];
	uint64_t bytes, took_ns, usual_ns; /* LINK, COLLECTIVE: of one; usual on peers */
	bool by_past;                      /* likewise: usual_ns is its own before */
	char signal[PUSH_WORD_MAX];        /* NODE: dominant one */
	double score, threshold;
	bool is_own;      /* NODE: it says so of itself, by its own past */
	bool provisional; /* it happened just now; nobody is told before it happens again */
	int64_t since_ns, until_ns; /* until_ns 0: it lasts */
	int64_t late_ns; /* STRAGGLER, STAGE: the end of its last late step; 0: not known */
	char text[1024]; /* one sentence: who, what for, why, what it costs */
	char cause[PUSH_TEXT_MAX]; /* the agent's own words; "": not told */
	char fix[PUSH_TEXT_MAX];
	char place[PUSH_TEXT_MAX]; /* line of code of the late rank; "": not told */
	struct fleet_cost cost;
};

/* fleet_episode_end - up to when it is known of: when it ended, the last late step that was seen of it, or @now_ns. A
 * recording that is sent afterwards, or a job that ends, is not late until somebody notices. */
int64_t fleet_episode_end(const struct fleet_episode *e, int64_t now_ns);

/* fleet_sentence - sets @e->text from its other fields: what is said of a fault is said here alone. */
void fleet_sentence(struct fleet_episode *e);

/* fleet_received - what calls tell of the cause, where the others send a rank @times as much as before: sets @e->cause, and
 * @e->fix. Unless its agent knows better. */
void fleet_received(struct fleet_episode *e, double times);

/* The fields that model/episode_field.h lists, for whoever writes them down. */
struct fleet_field {
	const char *name, *meaning;
	enum fleet_form {
		FLEET_FORM_U32,
		FLEET_FORM_U64,
		FLEET_FORM_TIME,
		FLEET_FORM_REAL,
		FLEET_FORM_TEXT,
		FLEET_FORM_OP,
		FLEET_FORM_COMM,
	} form;
	size_t offset;
};
extern const struct fleet_field fleet_fields[]; /* ended by a name of NULL */

struct fleet_value { /* of one; text: NULL if it is a number */
	bool known, is_real;
	int64_t i;
	double d;
	const char *text;
	char scratch[32];
};
void fleet_field_get(
	const struct fleet_field *f, const struct fleet_episode *e, struct fleet_value *ret);

/* fleet_episode_next - those that last and the last 1000 that ended, worst first (by cost, then share); of
 * provisional ones those that last. */
bool fleet_episode_next(
	const struct fleet *f, const char *cluster, size_t *cursor, struct fleet_episode *ret);

/* X(NAME, id) */
#define FLEET_NOTICES(X)                                                                           \
	X(BEGAN, "began")                                                                          \
	X(CHANGED, "changed") /* its cause or severity is another now */                           \
	X(ENDED, "ended")
enum fleet_notice_kind {
#define X(NAME, ...) FLEET_NOTICE_##NAME,
	FLEET_NOTICES(X)
#undef X
};
struct fleet_notice {
	enum fleet_notice_kind kind;
	struct fleet_episode episode;
};
/* fleet_notice - the next one, in order; false: none. At most 4096 wait; the rest is counted. */
bool fleet_notice(struct fleet *f, struct fleet_notice *ret);

/* fleet_late - processes of @node that others wait for now, told of or only shown; of a job that has become slower though
 * nobody is late, all: no more than @max. How many. */
size_t fleet_late(
	const struct fleet *f, const char *cluster, const char *node, uint32_t *pids, size_t max);

/* fleet_cost - what @cluster loses at its barriers now; false: nothing is known. */
bool fleet_cost(const struct fleet *f, const char *cluster, struct fleet_cost *ret);

const char *fleet_problem_id(enum fleet_problem p);
const char *fleet_notice_id(enum fleet_notice_kind k);

struct fleet_stats {
	uint64_t health, calls, reports, notices_lost, clusters_refused;
	uint64_t blame_failed; /* for want of memory */
};
struct fleet_stats fleet_stats(const struct fleet *f);
