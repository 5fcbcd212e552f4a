/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - entries that are on disk before anybody is told that they are kept.
 *
 * A folder of segments. An entry has a position: 1, 2, 3, … over all segments and restarts. Entries that
 * are appended while a write is under way go to disk together, with one fdatasync. A tail that was not
 * written to its end (a crash) is cut off when the journal is opened. Entries that were acknowledged and are
 * damaged or gone are told to readers as a gap, and nothing of their file is removed: how far entries were
 * acknowledged is noted beside the folder, too, in FOLDER.acknowledged.
 *
 * After a write or sync that failed nothing of that segment is trusted beyond what was acknowledged: what
 * was under way fails, the segment is cut back to its last acknowledged entry, and the next append begins
 * a new one. A disk that cannot be written is tried again, each second, also if nobody appends.
 *
 * Threads: append and the results belong to the loop's thread; one thread of the journal's writes and
 * syncs; readers may be used by any thread, each by one. */
#pragma once

#include "base/errinfo.h"
#include "base/macros.h"
#include "net/loop.h"

#define JOURNAL_ENTRY_MAX   (48u << 20)  /* bytes of an entry */
#define JOURNAL_SEGMENT     (64u << 20)  /* a segment is closed beyond that */
#define JOURNAL_PENDING_MAX (128u << 20) /* bytes that wait for the disk */

struct journal;

struct journal_settings {
	const char *folder;   /* made if it is missing, for its owner alone */
	size_t segment_bytes; /* 0: JOURNAL_SEGMENT */
	uint64_t bytes_max;   /* of all segments: then appends fail with -ENOSPC; 0: none */
	uint64_t first;       /* no new entry has a lower position; 0: 1 */
};

int journal_open(struct loop *l, const struct journal_settings *s, struct journal **ret,
	struct errinfo *reterr);
/* journal_open_to_read - as somebody else has left it: nothing is changed, and nothing can be appended. */
int journal_open_to_read(const char *folder, struct journal **ret, struct errinfo *reterr);
/* journal_free - after journal_finish(), or what waits is lost, unacknowledged. */
DECLARE_FREE(struct journal, journal_free)

/* @err 0: it is on disk, at @position; else a negative errno: it is not, and never will be. Once for each
 * entry; at the latest from journal_free(), with -ECANCELED. */
typedef void journal_done(void *arg, int err, uint64_t position);

/* journal_append - @data is copied. -ENOBUFS: too much waits already; -ENOSPC; -E2BIG; @done is not
 * called then. */
int journal_append(struct journal *j, const void *data, size_t len, journal_done *done, void *arg);

/* journal_append_beyond - as journal_append(), but bytes_max does not count: for an entry by which others
 * can be trimmed. */
int journal_append_beyond(
	struct journal *j, const void *data, size_t len, journal_done *done, void *arg);

/* journal_finish - @done on the loop when all that waits has its result. */
void journal_finish(struct journal *j, loop_fn *done, void *arg);

/* journal_trim - entries up to @position are not needed any more: segments that hold nothing else are
 * removed, but for the newest. From any thread. */
void journal_trim(struct journal *j, uint64_t position);

struct journal_stats {
	uint64_t first; /* position of the oldest entry on disk; 0: there is none */
	uint64_t
		durable; /* and of the newest, also if it has been trimmed: the next one follows it */
	uint64_t segments, bytes;
	size_t pending; /* bytes that wait */
	uint64_t appended, failed, syncs;
	int fault; /* of the last write; 0: it went well */
};
struct journal_stats journal_stats(struct journal *j);

/* ---- reading ---- */

struct journal_reader;

struct journal_entry {
	uint64_t position;
	int64_t wall_ns;  /* when it was written */
	const void *data; /* NULL: a gap, entries first to position cannot be read */
	size_t len;
	uint64_t first; /* of an entry: position */
	int64_t since_ns; /* of a gap: when the entry before it was written; 0: not known. wall_ns: the one
			   * after it, or 0 */
};

/* journal_reader_new - begins after @position. */
int journal_reader_new(
	struct journal *j, uint64_t position, struct journal_reader **ret, struct errinfo *reterr);
DECLARE_FREE(struct journal_reader, journal_reader_free)

/* journal_next - 1: the next entry that is on disk, or a gap, valid until the next call; 0: none came within
 * @timeout_ns, or journal_wake(); -EIO. */
int journal_next(struct journal_reader *r, uint64_t timeout_ns, struct journal_entry *ret,
	struct errinfo *reterr);
void journal_wake(struct journal *j);

/* journal_preserve - the file that should hold the entry at @position has a second name from now on, which
 * journal_trim() leaves alone: FILE.damaged. */
void journal_preserve(struct journal *j, uint64_t position);

/* journal_verify - tells, a sentence each, what is damaged or gone in a journal that nobody has open. Entries up
 * to @sealed are in the store. How many sentences it told, or a negative errno. */
int journal_verify(const char *folder, uint64_t sealed,
	void (*tell)(void *arg, const char *sentence), void *arg, struct errinfo *reterr);
