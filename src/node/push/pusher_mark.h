/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_mark.h - what has been delivered of a recording, in a file beside it: an agent that is started
 * again, also after kill -9, goes on where it was, so that no call is missing and none comes twice.
 *
 * Before a batch is sent for the first time it is written down whole, with its number and the row it ends
 * with; once it was answered, that there is none. What a start finds is sent again, the same bytes under the
 * same number: the receiver knows whether it had it.
 *
 *	file    slot[2], PUSHER_MARK_SLOT bytes apart; a slot is a head and the batch
 *
 * Slots are written in turn, so that one of them is whole whenever the writer ends; a checksum tells which.
 * A batch is on the disk before it is sent. That it was answered is not synced: after a power cut it is sent
 * again, and the receiver knows it. Rows that the recording itself lost with the power are not sent. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "node/push/pusher_recording.h"

#define PUSHER_MARK_SLOT (16u << 20)

struct pusher_note {
	uint64_t stream;           /* what the numbers count: the boot that batches carry */
	uint64_t number;           /* of the last batch */
	uint64_t count;            /* its calls */
	uint64_t lost;             /* calls that the next batch is to tell of */
	int64_t chain_ns;          /* incidents last seen before were told */
	struct pusher_position at; /* the last row of that batch */
};

struct pusher_mark {
	int fd; /* -1: none is kept */
	uint64_t serial;
	bool has_note; /* of this stream, on disk */
};

/* pusher_mark_open - makes the file if there is none. -EBUSY: another agent has it, also after @wait_ns.
 * Returns 1 and fills in *ret and @ret_batch (empty: nothing was under way); 0: nothing is known, or it is
 * damaged; else why it cannot be used, with a sentence. */
int pusher_mark_open(struct pusher_mark *m, const char *path, uint64_t wait_ns,
	struct pusher_note *ret, struct buf *ret_batch, struct errinfo *reterr);
void pusher_mark_close(struct pusher_mark *m);

/* pusher_mark_peek - the same without touching anything: for who only wants to know. */
int pusher_mark_peek(const char *path, struct pusher_note *ret, struct errinfo *reterr);

/* pusher_mark_write - 0, also if none is kept; or what pwrite(2) or fdatasync(2) gave: then the note before may be what
 * the next start finds. */
int pusher_mark_write(struct pusher_mark *m, const struct pusher_note *n, const struct buf *batch);
