/* SPDX-License-Identifier: Apache-2.0 */
/* spool.h - records that wait on disk until they are delivered, in order.
 *
 * What spool_append() has taken is in the kernel: it survives the end of this program, also by
 * kill -9. It survives a power cut once spool_sync() has run, which its owner calls every second.
 * After a restart reading goes on behind the last spool_ack(): what was under way comes a second time, after a
 * power cut perhaps more; none is skipped. A record that was being written when the program ended is
 * cut off. At the ceiling the oldest records go, a segment at a time, and are counted.
 *
 * A folder belongs to one spool at a time. One thread. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"

#define SPOOL_BYTES_MIN (1u << 20) /* of settings.bytes_max */

struct spool_settings {
	const char *folder; /* made if missing, for this user alone */
	uint64_t bytes_max; /* on disk; a record may take an eighth of it, and at most 16 MiB */
};

struct spool_stats {
	uint64_t records, bytes; /* that wait */
	uint64_t appended;
	uint64_t dropped_records, dropped_bytes; /* the oldest, at the ceiling */
	uint64_t too_large, write_errors;        /* records that were not taken */
	uint64_t damaged_bytes;                  /* cut off when it was opened, or unreadable */
};

struct spool;

/* spool_open - -EBUSY: another program has it; -EPERM: others can write to the folder; each with a
 * sentence. */
int spool_open(const struct spool_settings *s, struct spool **ret, struct errinfo *reterr);
DECLARE_FREE(struct spool, spool_close) /* after a last spool_sync() */

/* spool_append - 0, -E2BIG, or what write(2) gave: then nothing of it is left. @tag is the caller's. */
int spool_append(struct spool *s, uint32_t tag, const void *data, size_t len);
int spool_sync(struct spool *s);

/* spool_look - whether a record follows those that were taken, what its tag and length are. */
bool spool_look(struct spool *s, uint32_t *ret_tag, size_t *ret_len);

/* spool_take - appends that record to @b. -ENOENT: there is none; b->err. One that cannot be read
 * takes the rest of its segment with it, counted. */
int spool_take(struct spool *s, struct buf *b);

/* spool_send - what was taken is sent together, and would be so again after a restart: a receiver that knows
 * requests by their bytes has it once. spool_bound - whether the next record goes with those taken before. */
void spool_send(struct spool *s);
enum spool_bound {
	SPOOL_FREE,   /* as the caller likes */
	SPOOL_JOINED, /* an earlier run had sent them together, */
	SPOOL_APART,  /* not together */
};
enum spool_bound spool_bound(struct spool *s);

/* spool_ack - what was taken is delivered, and forgotten. */
void spool_ack(struct spool *s);

struct spool_stats spool_stats(const struct spool *s);
