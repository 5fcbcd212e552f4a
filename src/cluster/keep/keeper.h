/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.h - from a request of OTLP to rows that are kept: decoded, on disk in the journal, acknowledged,
 * then filled into the store by a thread.
 *
 * Every point, record and span becomes a row of events; what our agents push besides becomes rows of the
 * other tables (rows.h). A request that comes again counts once: known by its bytes, if all in it carries a
 * time, and a batch of calls by (cluster, node, boot, number), whatever request it comes in. That is known
 * for at least KEEPER_SEEN_NS, of the last SEEN_KEYS_MAX at least, and over restarts.
 *
 * Who sends may only send for its clusters: points of others are refused, the rest is taken. */
#pragma once

#include "cluster/journal/journal.h"
#include "cluster/store/store.h"
#include "otlp/otlp_response.h"
#include "base/buf.h"
#include "cluster/keep/seen.h"

#define KEEPER_SEEN_NS (15 * 60 * NS_PER_S)
#define KEEPER_BACKLOG 100000
#define KEEPER_LARGE   (128u << 10) /* bytes from which on a thread makes the rows of a request */
#define KEEPER_QUEUE   64           /* such requests that wait */

struct keeper;

struct keeper_settings {
	struct journal *journal;
	struct store *store;
	/* journal entries that the store may lag behind: then -EAGAIN; 0: KEEPER_BACKLOG */
	uint64_t backlog_max;
};

/* keeper_new - reads what the journal says of duplicates; the store is filled from then on, beginning after
 * store_durable(). What the journal should have and has not is told to the store (store_lose()) and logged. */
int keeper_new(struct loop *l, const struct keeper_settings *s, struct keeper **ret,
	struct errinfo *reterr);
/* keeper_free - ends its thread; journal and store are the caller's, to be freed after it. What waits is told
 * -ECANCELED, though it may come to be on disk. */
DECLARE_FREE(struct keeper, keeper_free)

struct keeper_request { /* data is the caller's until keeper_done */
	enum otlp_signal signal;
	bool json;
	const void *data;
	size_t len;
	/* Whether @sender may write to a cluster, on the loop's thread, until keeper_done; NULL: to all. */
	bool (*may_write)(void *arg, uint64_t sender, const char *cluster, size_t len);
	void *may_write_arg;
	uint64_t sender; /* whose right that is; 0: everybody's */
};

struct keeper_result {
	int err; /* 0; -EBADMSG, -E2BIG: not OTLP; -EACCES: none of it may be written; -EAGAIN,
				  * -ENOBUFS, -ENOSPC, -EIO, …: not now, come again */
	size_t taken, rejected; /* points, records, spans; of a duplicate they are not counted */
	bool duplicate;         /* it was there already */
	char why[256];          /* of the rejected ones, or of err */
};

/* keeper_take - @done on the loop's thread, once, also before this returns. */
typedef void keeper_done(void *arg, const struct keeper_result *r);
void keeper_take(struct keeper *k, const struct keeper_request *q, keeper_done *done, void *arg);

/* keeper_take_rows - rows that this process makes itself (the fleet's incidents). */
void keeper_take_rows(struct keeper *k, const struct batch *b, keeper_done *done, void *arg);

struct keeper_stats {
	uint64_t requests, points, rejected, duplicates, refused; /* refused: requests as a whole */
	uint64_t backlog; /* journal entries not yet in the store */
	uint64_t lost;  /* acknowledged ones that the journal has lost, as found since the start */
	bool replaying; /* what was acknowledged before the start cannot all be read yet */
	struct journal_stats journal;
	bool degraded; /* journal or store cannot write */
	char why[256];
};
struct keeper_stats keeper_stats(struct keeper *k);

/* keeper_finish - nothing more is taken; @done when the journal has all and the store is filled and
 * sealed, or cannot be. */
void keeper_finish(struct keeper *k, loop_fn *done, void *arg);

enum entry_kind { ENTRY_ROWS = 1, ENTRY_SEEN = 2 };

struct entry {
	enum entry_kind kind;
	uint64_t covered;
	const struct seen_key *keys;
	size_t key_count;
	const void *batch;
	size_t len;
};

/* entry_put - appends all of it, but for the batch and keys that the caller appends: @key_count of them. */
void entry_put(struct buf *b, enum entry_kind kind, uint64_t covered, size_t key_count);

/* entry_get - -EBADMSG. What it points to lies in @data. */
int entry_get(const void *data, size_t len, struct entry *ret);
