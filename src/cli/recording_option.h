/* SPDX-License-Identifier: Apache-2.0 */
/* recording_option.h - */
#pragma once

#include <limits.h>

#include "answer/answer.h"
#include "base/errinfo.h"
#include "command/option.h"
#include "store/nodedb.h"
#include "wire/names.h"

/* Which time of a recording a command looks at: --from, --to, --since, --all.
 *
 * Without any of them it is the newest run of `ingero trace` in it, unless a trace is writing it: then the
 * last five minutes. If that is not all, it says so. All times are those of the recording, so that a file saved yesterday
 * answers as it did then. */

/* The rows of a command's option table for the field @asked of its struct @settings. */
/* clang-format off */
#define RANGE_OPTIONS(settings, asked) \
	OPTION_ROW(STRING, "from", offsetof(settings, asked.from), "TIME", \
		"only from this time on: 2026-03-24T13:48:44Z, '2026-03-24 13:48:44', 13:48, epoch"), \
	OPTION_ROW(STRING, "to", offsetof(settings, asked.to), "TIME", \
		"only up to this time; times without a zone are local"), \
	OPTION_ROW(DURATION, "since", offsetof(settings, asked.since_ns), "TIME", \
		"only this long before the end of the recording (default: the newest run)"), \
	OPTION_ROW(FLAG, "all", offsetof(settings, asked.all), NULL, \
		"the whole recording: all runs in it, even while it is being written")

/* RANK_OPTION - the row of --rank; the field's default is -1. DB_OPTION, ROLLED_OPTION - of --db and
 * --include-rolled. */
#define RANK_OPTION(settings, rank) \
	OPTION_WITHIN(INT, "rank", offsetof(settings, rank), "N", 0, INT32_MAX, \
		"only the process with this rank of a distributed job")
#define DB_OPTION(settings, db) \
	OPTION_SHORT(STRING, "db", 'd', offsetof(settings, db), "PATH", \
		"recording to read (default: $INGERO_DB, else ~/.ingero/ingero.db)")
#define ROLLED_OPTION(settings, rolled) \
	OPTION_ROW(FLAG, "include-rolled", offsetof(settings, rolled), NULL, \
		"also read the recording's rolled-over databases (`trace --db-rollover-size`)")
/* clang-format on */

struct range_note { /* why less than the whole recording is shown although no time was asked for */
	pid_t writer;   /* it is being written: the last five minutes; 0: it is not */
	uint64_t runs;  /* so many are in it, and this is the newest; 0: all are shown */
	int64_t run_ns; /* when that began */
};

/* range_request - what @asked and @f mean, as the answers (answer) are asked. */
int range_request(const struct time_request *asked, const struct nodedb_filter *f,
	struct answer_request *ret, struct errinfo *reterr);

/* range_resolve - sets the times of @f as the answers do. *ret_note is for range_print(). -EINVAL with a
 * sentence for a bad or contradictory time; what answer_ask() returned. */
int range_resolve(const char *path, const struct time_request *asked, struct nodedb_filter *f,
	struct range_note *ret_note, struct errinfo *reterr);

/* range_processes - --pid and --rank: the processes of @rank (below 0: not asked for) are @pids then. -ESRCH with a
 * sentence if there are none of them. */
int range_processes(const char *path, struct option_pids *pids, int64_t rank, const char *node,
	struct errinfo *reterr);

/* range_pids - -ESRCH with the processes that there are if the recording has none of @pids. */
int range_pids(const char *path, const struct option_pids *pids, struct errinfo *reterr);

struct range_note range_note_of(const struct question *q);

/* range_print - what @note means, on stderr; nothing if all is shown. */
void range_print(const struct range_note *note);

/* What --db means to the commands that read a recording. */

/* db_option_path - the recording to read: @given, or the default one (*ret_default is then the
 * caller's to free). -ENOENT with a sentence if nothing has been recorded there yet. */
int db_option_path(
	const char *given, char **ret_default, const char **ret_path, struct errinfo *reterr);

/* --node NAME: one node of a recording that holds several. */

/* node_option_list - the nodes to look at: @name alone if it is given, else those of the recording;
 * none if it does not name any. *ret is the caller's (free()). -EINVAL with the names that there
 * are if @name is not among them. */
int node_option_list(const char *path, const char *name, struct nodedb_node **ret,
	size_t *ret_count, struct errinfo *reterr);

/* What --op means: cudaMalloc, cuda:cudaMalloc. */

/* op_option_find - the operation that @text names, without regard to case; a source may stand
 * before it (driver:cuMemAlloc). NULL @text: *ret_op is NULL. -EINVAL with examples. */
int op_option_find(const char *text, const struct wire_op_row **ret_op, struct errinfo *reterr);

/* --include-rolled: a recording together with the files that it left when it rolled over
 * (trace --db-rollover-size), merged into one that is deleted again. */

struct rolled {
	char folder[PATH_MAX]; /* ours, below $TMPDIR, else /var/tmp; "": nothing was merged */
	char path[PATH_MAX];   /* what to read: the merged file, or the recording itself */
};

/* rolled_option - if it is @asked for, *path becomes what to read: its rolled files and itself in one, or without
 * such files itself. Without a time all of it is meant. Tells on stderr what is read; rolled_done() gives it back. */
int rolled_option(bool asked, struct rolled *r, struct time_request *range, const char **path,
	struct errinfo *reterr);
void rolled_done(struct rolled *r);
