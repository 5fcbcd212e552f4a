/* SPDX-License-Identifier: Apache-2.0 */
/* keeper_private.h - the parts of the keeper: keeper_take.c has what comes in, keeper_append.c what is
 * written and answered, keeper.c the rest of what is on the loop's thread; keeper_fill.c the thread that fills the
 * store; entry.c what an entry of the journal looks like. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/idmap.h"
#include "cluster/keep/keeper.h"
#include "cluster/keep/seen.h"
#include "cluster/store/store.h"
#include "net/loop.h"

/* ---- how many clusters rows may come of. Each of them has files of its own in the store, so
 * that one sender who makes names up could otherwise fill it with files. New names are counted for
 * CLUSTER_LIMIT_NS, then anew; a token brings half of them at most, and a cluster that the store has rows of is not
 * new. One thread. */

#define CLUSTER_LIMIT    1000
#define CLUSTER_LIMIT_NS (3600 * NS_PER_S)
#define CLUSTER_KEPT_MAX 65536 /* as many as the store has files */

struct cluster_limit {
	struct idmap names;   /* by their hash; new ones and others */
	struct idmap senders; /* how many new names each has brought */
	size_t new_names;
	uint64_t since_ns;
};

#define CLUSTER_LIMIT_INIT                                                                         \
	((struct cluster_limit){.names = IDMAP_INIT(CLUSTER_LIMIT + CLUSTER_KEPT_MAX),             \
		.senders = IDMAP_INIT(CLUSTER_LIMIT)})

void cluster_limit_done(struct cluster_limit *l);

/* cluster_limit_take - rows of @name come by the token @sender (0: none is asked for); false: it is one too many.
 * @store: NULL, or what rows are kept in. */
bool cluster_limit_take(struct cluster_limit *l, struct store *store, uint64_t sender,
	const char *name, size_t len, uint64_t now_ns);

struct keeper_fill {
	struct journal *journal;
	struct store *store;
	pthread_t thread;
	bool has_thread;
	atomic_bool stop;                  /* at once */
	atomic_bool finish;                /* when the store has all up to @until, or cannot */
	atomic_uint_fast64_t until;        /* position */
	atomic_uint_fast64_t visible;      /* in the store */
	atomic_uint_fast64_t durable;      /* likewise, without the journal */
	atomic_uint_fast64_t replay_until; /* what was on disk when it began, or began again */
	atomic_uint_fast64_t lost;
	void (*finished)(void *arg); /* on the thread, once */
	void *arg;
	pthread_mutex_t lock; /* of the next */
	char why[256];        /* what keeps it from filling; "": nothing */
};

/* keeper_fill_start - begins after store_durable(). */
int keeper_fill_start(struct keeper_fill *f, struct errinfo *reterr);
void keeper_fill_stop(struct keeper_fill *f);
/* keeper_fill_why - false: nothing keeps it from filling. */
bool keeper_fill_why(struct keeper_fill *f, char *ret, size_t size);

struct pending { /* what the journal has, and has not answered for yet */
	TAILQ_ENTRY(pending) link;
	struct keeper *keeper; /* NULL: it is gone */
	keeper_done *done;     /* NULL: an entry of duplicates */
	void *arg;
	struct keeper_result result;
	struct seen_key *keys;
	size_t key_count;
};

struct pending *pending_new(struct keeper *k, keeper_done *done, void *arg);
DECLARE_FREE(struct pending, pending_free)

struct keeper {
	struct loop *loop;
	TAILQ_HEAD(, pending) pending;
	struct aside *aside;          /* makes rows of large requests */
	TAILQ_HEAD(, taking) takings; /* these */
	struct journal *journal;
	struct store *store;
	uint64_t backlog_max;
	struct seen *seen;
	struct cluster_limit clusters;
	struct keeper_fill fill;
	struct loop_timer *timer;
	struct keeper_stats stats;
	/* Duplicates are known from entries of the journal after @covered; what was before is in an entry
	 * of its own. */
	uint64_t covered,
		covering;       /* covering: as the entry that is being written says; 0: none is */
	uint64_t confirmed;     /* position of the newest entry whose keys are in seen */
	uint64_t rows_position; /* of the newest entry with rows */
	bool finishing;
	int finished_fd; /* readable: the thread has finished */
	loop_fn *finished;
	void *finished_arg;
};

/* keeper_reason - the sentence for who sent what failed with @err. */
const char *keeper_reason(int err);
/* keeper_refuse - tells @err and @why, and counts it. */
void keeper_refuse(struct keeper *k, keeper_done *done, void *arg, int err, const char *why);
/* keeper_append - the keys of @p and the rows @b become an entry. @p is the journal's until it has answered;
 * after a failure it stays the caller's. */
int keeper_append(struct keeper *k, struct pending *p, const struct batch *b);
/* keeper_tell - @r with @err and its sentence. */
void keeper_tell(keeper_done *done, void *arg, struct keeper_result *r, int err);
/* keeper_give_up - those of whom rows are being made are told -ECANCELED. */
void keeper_give_up(struct keeper *k);
