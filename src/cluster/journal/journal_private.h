/* SPDX-License-Identifier: Apache-2.0 */
/* journal_private.h - the parts of the journal: journal.c has its life and what the loop asks of it,
 * journal_writer.c the queue and the thread, journal_segment.c files and what stands in them,
 * journal_recover.c what is found at the start, journal_read.c readers, journal_mark.c how far was acknowledged.
 *
 * A segment is the file NNNNNNNNNNNNNNNNNNNN.journal, with the position of its first entry as its name:
 *
 *	segment  magic[8] first[8] salt[4] salt[4] salt[4] crc[4] entry*
 *	entry    position[8] group[8] wall_ns[8] len[4] crc[4] data[len]
 *
 * Numbers are little-endian; a CRC-32C is of all that stands before it, of an entry also of its data, and begins
 * with the salt: what a sender puts into its data is not taken for an entry. The salt is random, and that of two
 * of the three; files of older versions have 0. The group is the position of the first entry that was written
 * with it, before one sync. A group is written only after the one before it is on disk, so that a bad entry with
 * a good one of a later group behind it is damage, as is one that is noted as acknowledged; any other bad one is
 * the end of a write that a crash cut short. A segment ends before the first position of the next one, whatever
 * else stands in it: that was never acknowledged. */
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "cluster/journal/journal.h"

#define SEGMENT_HEAD 32
#define SEGMENT_NAME 32 /* room for a file's name */
#define ENTRY_HEAD   32

STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

struct entry_head {
	uint64_t position, group;
	int64_t wall_ns;
	uint32_t len, crc;
};
STATIC_ASSERT(sizeof(struct entry_head) == ENTRY_HEAD);

/* What the thread does to files; tests have one that fails. */
struct journal_io {
	ssize_t (*writev)(int fd, const struct iovec *v, int count, off_t at);
	int (*sync)(int fd);
	int (*truncate)(int fd, off_t len);
};

struct waiting { /* an entry on its way */
	struct waiting *next;
	journal_done *done; /* NULL: journal_finish()'s mark */
	void *arg;
	int err;
	size_t len;             /* of the data */
	struct entry_head head; /* the data follows */
};

struct waiting_list {
	struct waiting *first, **end;
};

struct segment {
	uint64_t first, last; /* last: first - 1 if it is empty */
	uint64_t bytes;
};

struct journal {
	struct loop *loop;
	const struct journal_io *io;
	char *path;     /* of the folder */
	int folder;     /* its descriptor */
	int lock_fd;    /* of the file that says whose it is */
	int results_fd; /* readable: results wait for the loop */
	size_t segment_bytes;
	uint64_t bytes_max;
	pthread_t thread;
	bool has_thread;
	loop_fn *finished;
	void *finished_arg;
	struct waiting finish_mark;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work, news;
	bool stop;
	unsigned wakes;
	struct waiting_list queue, results;
	struct segment *segments; /* in order */
	size_t segment_count, segment_room;
	uint64_t next; /* position */
	struct journal_stats stats;
	bool reads_only;

	/* the thread's alone */
	int fd;        /* of the newest segment; -1: the next group begins one */
	uint64_t at;   /* its acknowledged bytes */
	uint32_t salt; /* its */
	int mark_fd;   /* -1: there is none */
};

/* How far entries were acknowledged, as FOLDER.acknowledged says: it survives the end of the process, and is as
 * old as the kernel's last write-back after a power cut. So what it says is true, but not all there is. */
struct mark {
	char magic[8];
	uint64_t position;
	int64_t wall_ns; /* when that entry was written */
	uint32_t zero, crc;
};
STATIC_ASSERT(sizeof(struct mark) == 32);
/* mark_open - the file, to be written; -1. */
int mark_open(const char *folder);
void mark_write(int fd, uint64_t position, int64_t wall_ns);

void waiting_list_clear(struct waiting_list *l);
void waiting_list_add(struct waiting_list *l, struct waiting *w);

/* waiting_bytes - what it takes on disk; 0 of a mark. */
size_t waiting_bytes(const struct waiting *w);

/* journal_writer_run - the thread; @arg is the journal. */
void *journal_writer_run(void *arg);

/* A part of a file in memory. */
struct window {
	int fd; /* the caller's */
	uint64_t at;
	char *data;
	size_t len, room;
	uint32_t salt; /* of the segment */
};
void window_done(struct window *w);

/* segment_name - of the one that begins at @first. segment_parse - false: it is no segment's name. */
void segment_name(char out[SEGMENT_NAME], uint64_t first);
bool segment_parse(const char *name, uint64_t *ret_first);

/* segment_check - the head, and sets the salt as far as it can be told; -EBADMSG; -ENODATA: it is not all
 * there. */
int segment_check(struct window *w, uint64_t first);

/* segment_entry - the one at @offset: 0; -EBADMSG: there is none that is whole; -EIO, -ENOMEM. */
int segment_entry(
	struct window *w, uint64_t offset, struct journal_entry *ret, uint64_t *ret_group);

/* segment_find - from @offset on the next entry whose position is one of @least to @most and whose group is at
 * least @group: 1, and where; 0: there is none. */
struct segment_seek {
	uint64_t least, most, group, size; /* size: of the file */
};
int segment_find(struct window *w, const struct segment_seek *s, uint64_t *offset,
	struct journal_entry *ret);

/* segment_begin - makes the file for a segment, on disk; *ret_fd is to be written at SEGMENT_HEAD. */
int segment_begin(struct journal *j, uint64_t first, int *ret_fd);

/* entry_seal - fills the head of an entry whose data follows it. */
void entry_seal(struct entry_head *h, uint32_t salt, uint64_t position, uint64_t group,
	int64_t wall_ns, uint32_t len);

/* journal_probe - whether the disk takes a write of some size: 0 or a negative errno. */
int journal_probe(struct journal *j);

/* journal_recover - finds the segments, cuts the tail, sets next, fd, at and salt. */
int journal_recover(struct journal *j, struct errinfo *reterr);

/* journal_open_with - as journal_open(). */
int journal_open_with(struct loop *l, const struct journal_settings *s, const struct journal_io *io,
	struct journal **ret, struct errinfo *reterr);
