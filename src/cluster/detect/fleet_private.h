/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_private.h - the parts of the core as they see each other.
 *
 *	fleet.c		clusters, what comes in, the tick
 *	report.c	what agents say about their own ranks, kept for a while
 *	episode.c	one incident from its beginning to its end, and the notices of it
 *	suspect.c	what blame finds, as episodes
 *	link.c		links and collectives that are slow themselves, as episodes
 *	price.c		what waiting costs
 *	slower.c	jobs that have become slower though nobody is late
 *	stall.c		hangs and mismatches, as episodes
 *	sentence.c	the sentence about an episode */
#pragma once

#include "base/idmap.h"
#include "cluster/detect/fleet.h"

#define EPISODES_MAX 4096 /* that last at once, of all clusters */
#define ENDED_MAX    1000 /* that are remembered */
#define NOTICES_MAX  4096
#define JOBS_MAX     64    /* of a cluster that are remembered */
#define REPORTS_MAX  65536 /* of a cluster */

struct episode {
	struct fleet_episode e;
	uint64_t key; /* what it is about: the same while it lasts */
	struct cluster *cluster;
	uint64_t cluster_key; /* hash of its name */
	int64_t born_ns;      /* when it was first found */
	int64_t seen_ns;      /* and last */
	double lost_rate;     /* GPU-seconds lost a second */
	int64_t rated_ns;     /* up to when that is known; 0: it goes on */
	int64_t paid_ns;      /* up to when what it costs is counted; 0: nothing yet */
	double rate_hourly;   /* of a GPU that waits; 0: unpriced */
	double watts;
	uint64_t told_cause;                  /* hash of the cause that was told */
	uint32_t looks;                       /* in which it was found */
	int64_t looked_ns;                    /* the first of them */
	int64_t looked_at_ns;                 /* of a node's ranks: the last */
	uint32_t sightings;                   /* it was late by far */
	int64_t first_sighted_ns, sighted_ns; /* the first and last of these */
	uint64_t sightings_apart_ns;          /* the longest time between two */
	uint64_t sightings_lag_ns;            /* by how much, in all of them */
	bool told;                            /* that it began */
	bool is_agents;                       /* it is known by what an agent says: slower.c */
};

struct suspect_job {          /* of one job, between two looks at it */
	uint64_t comm;        /* its largest communicator; 0: none */
	enum blame_kind kind; /* what the answer was, and since when */
	int64_t kind_ns;
	int64_t seen_ns;
	uint64_t step_ns;      /* how long its steps are; while too few were seen, at least */
	uint32_t steps;        /* of them, in the last look */
	int64_t step_since_ns; /* since when they are about that long */
	int64_t born_ns;       /* it was looked at for the first time */
	int64_t steady_ns;     /* since when blame calls its steps whole ones; 0: it does not */
	bool is_steady;        /* for long enough: it is not asked again */
	uint64_t span_ns;      /* while it is not steady: that was seen of it */
};

struct cluster {
	char name[PUSH_ID_MAX];
	int64_t heard_ns; /* something came of it */
	uint64_t token;   /* that told its health first; 0: none yet */
	size_t episodes;  /* of it that last */
	struct calls *calls;
	struct idmap reports;              /* (node, pid) -> struct push_report with its time */
	int64_t blame_ns;                  /* when it was last asked who makes the job wait */
	uint64_t settled;                  /* calls_settled() then */
	bool is_settled;                   /* the answer is known: it need not be asked so often */
	int64_t pace_due_ns;               /* the length of steps is looked for again */
	struct suspect_job jobs[JOBS_MAX]; /* that were looked at last */
};

struct fleet {
	struct fleet_settings settings;
	struct nodes *nodes;
	struct idmap clusters; /* hash of the name -> struct cluster */
	struct episode **live,
		**ended; /* live: worst first after a tick; ended: the oldest first */
	size_t live_count, ended_count;
	struct idmap ended_of;        /* hash of a cluster's name -> how many of ended are its */
	struct fleet_notice *notices; /* a ring */
	size_t notice_first, notice_count;
	uint64_t next_id;
	struct fleet_stats stats;
	int64_t now_ns;
};

/* cluster_find - NULL: there is none. */
struct cluster *cluster_find(const struct fleet *f, const char *name);

/* ---- report.c ---- */

int report_keep(struct cluster *c, const struct push_report *r, int64_t now_ns);
/* report_find - of process @pid of @node, by its rank where the pid is not known; NULL: none, or an
 * old one. */
const struct push_report *report_find(
	const struct cluster *c, const char *node, uint32_t pid, int32_t rank, int64_t now_ns);
void report_expire(struct cluster *c, int64_t now_ns);
void reports_done(struct cluster *c);

/* ---- episode.c ---- */

/* episode_get - the one that lasts with @key, or a new one, which is told of once its fields are set
 * (episode_tell()). NULL: there are too many, no memory, or @c is NULL: a cluster that there was no room for. */
struct episode *episode_get(
	struct fleet *f, struct cluster *c, enum fleet_problem problem, uint64_t key);
void episode_tell(struct fleet *f, struct episode *e);
void episode_end(struct fleet *f, struct episode *e);
void episode_set_cluster(struct episode *e, struct cluster *c); /* of one that has none */
void episodes_forget(struct fleet *f, const struct cluster *c); /* ends all of it */
/* episode_end_unseen - ends those of @c (NULL: any) and @problem that were not found for @after_ns. */
void episode_end_unseen(
	struct fleet *f, const struct cluster *c, enum fleet_problem problem, uint64_t after_ns);
struct episode *episode_find(
	const struct fleet *f, const char *cluster, enum fleet_problem problem, uint64_t key);
/* episode_of_node - one of @problem that lasts on @node; NULL: none. */
struct episode *episode_of_node(
	const struct fleet *f, enum fleet_problem problem, const char *cluster, const char *node);
/* episode_is_late - it is of a rank that is late now: told of, or seen a moment ago. */
bool episode_is_late(const struct fleet *f, const struct episode *e);
/* episode_account - adds what was lost since the last tick. */
void episode_account(struct fleet *f, uint64_t elapsed_ns);
void episode_sort(struct fleet *f);
void episodes_done(struct fleet *f);

/* ---- pace.c ---- */

/* pace_note - what blame says of the steps of @j. */
void pace_note(struct suspect_job *j, const struct blame *b, int64_t now_ns);
/* pace_look - likewise, whether they are whole ones: each time that it is asked. */
void pace_look(struct suspect_job *j, const struct blame *b, int64_t now_ns);
/* pace_is_steady - what is found may be told: it is not of parts of the first steps. */
bool pace_is_steady(const struct suspect_job *j, int64_t now_ns);
/* pace_is_known - steps have been about as long for a while: in the first of a job, parts of one look like
 * steps. */
bool pace_is_known(const struct suspect_job *j, int64_t now_ns);
/* pace_set - the calls of @c are kept, and waited for, by the steps of its slowest job. */
void pace_set(struct fleet *f, struct cluster *c);

/* ---- suspect.c, link.c, stall.c, price.c, sentence.c ---- */

void suspect_look(struct fleet *f, struct cluster *c);
/* episode_key - of @who in @c. */
uint64_t episode_key(const struct cluster *c, enum fleet_problem problem, uint64_t who);
void slower_look(struct fleet *f, struct cluster *c);
/* uneven_take - the load of the job of @comm moves, unless somebody is late: NULL. */
struct episode *uneven_take(
	struct fleet *f, struct cluster *c, uint64_t comm, double share, double confidence);
/* slower_pids - processes of @node whose job has become slower, nobody knows why; fewer than @max. How many. */
size_t slower_pids(const struct fleet *f, const struct cluster *c, const char *node, uint32_t *pids,
	size_t max);
void stall_look(struct fleet *f, struct cluster *c);
/* link_look - what blame says of transfers; link_end - ends what is not found any more. */
void link_look(struct fleet *f, struct cluster *c, const struct suspect_job *j,
	const struct blame *b, const struct blame_worker *workers, size_t count);
void link_end(struct fleet *f, const struct cluster *c);

struct price { /* of the GPUs of a cluster, on average */
	double hourly, watts;
	struct fleet_cost cost; /* its currency, priced and unpriced */
};
struct price price_of(const struct fleet *f, const char *cluster);
/* episode_waits - others wait because of it: @lost_rate GPU-seconds a second. */
void episode_waits(struct episode *e, double lost_rate, const struct price *p);
/* episode_explain - takes over what the agent of the rank says about it; false: it has said nothing. */
bool episode_explain(struct fleet *f, struct episode *e);
