/* SPDX-License-Identifier: Apache-2.0 */
/* retention.h - what the store's thread does between transactions so that the store stays within its
 * size: deletes the oldest rows (prune.h), or rolls over to a new file (rollover.h).
 *
 * A file that was rolled over has a session of its own whose books are those of this file: the sum
 * over the files is the whole run. */
#pragma once

#include "store/write/prune.h"
#include "base/clock.h"
#include "base/errinfo.h"

struct retention_config {
	uint64_t max_bytes;            /* prune to this; 0: never */
	uint64_t rollover_bytes;       /* roll over at this; 0: never. Not both */
	unsigned rollover_keep;        /* rolled files to keep */
	const struct session *session; /* identity of the sessions that follow; may be NULL */
};

struct retention {
	struct nodedb *db;
	struct retention_config config;
	struct session session;
	bool session_due; /* the new file has no session yet: its disk was full */
	bool said_busy, said_replaced;
	uint64_t look_ns;         /* monotonic: of the next look whether the file has its name */
	struct prune *prune;      /* NULL: unlimited */
	struct accounting rolled; /* what the files before this one account for */
	uint64_t retry_ns;        /* monotonic: not before */
	uint64_t generation;
	bool hold; /* do not roll over now: the file lacks rows that are on their way */
};

int retention_init(struct retention *u, struct nodedb *db, int64_t session,
	const struct retention_config *config, struct errinfo *reterr);
void retention_done(struct retention *u);

/* retention_step - a bounded portion of what is due; @rows_max as in prune_step(). @books are those of
 * the whole run so far, in which stored is exact. Returns 1 if there is more to do, 0 if not. */
int retention_step(struct retention *u, size_t rows_max, const struct accounting *books,
	struct errinfo *reterr);

/* retention_end - ends the session of the present file at @now, with its part of @run as its books
 * (NULL: it keeps those it has), in one transaction. */
int retention_end(
	struct retention *u, const struct accounting *run, wall_time now, struct errinfo *reterr);

/* retention_books - the part of the run's books that belongs to the present file. */
void retention_books(
	const struct retention *u, const struct accounting *run, struct accounting *ret);

/* retention_session - id of the session in the present file; 0 if it has none yet. */
int64_t retention_session(const struct retention *u);

/* rollover_name - the path under which the database @path is kept. -ENAMETOOLONG. */
int rollover_name(const char *path, wall_time now, uint32_t random, char *out, size_t size);

/* rollover_is_name - whether @name (without folder) is a rolled file of the database @path. */
bool rollover_is_name(const char *path, const char *name);

/* rollover_trim - delete the oldest rolled files of @path beyond @keep, and nothing else.
 * Returns how many were deleted. */
int rollover_trim(const char *path, unsigned keep, struct errinfo *reterr);

struct rollover_list {
	char **paths; /* oldest first */
	size_t count;
};

/* rollover_list - the rolled files of the database @path, as paths; freed by rollover_list_done(). */
int rollover_list(const char *path, struct rollover_list *ret, struct errinfo *reterr);
void rollover_list_done(struct rollover_list *l);
