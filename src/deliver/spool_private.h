/* SPDX-License-Identifier: Apache-2.0 */
/* spool_private.h - what spool.c and spool_open.c share. Nobody else includes it. */
#pragma once

#include "deliver/spool.h"

#define SPOOL_SEGMENT_MAX  (16u << 20)
#define SPOOL_SEGMENTS_MAX (1u << 20)
#define SPOOL_NAME_MAX     32

struct record_head {
	uint32_t len, tag, crc;
} __attribute__((packed));

struct segment {
	uint64_t id, size;
	uint64_t waiting; /* records in it that are not acknowledged */
};

struct cursor {
	uint64_t id, offset;
};

struct position { /* a cursor on disk */
	uint64_t id, offset;
	uint32_t crc;
} __attribute__((packed));
struct position spool_position(const struct cursor *c);

struct spool {
	int dir;
	uint64_t bytes_max, segment_max;
	struct segment *segments;
	size_t count, room;
	int write_fd; /* of the last segment; -1: the next record begins one */
	int read_fd;  /* of segment read_id; -1: none */
	uint64_t read_id;
	struct cursor acked, taken;
	struct cursor sent;  /* until there an earlier run had sent together; id 0: not known */
	uint64_t taken_here; /* of `waiting` of the segment of `taken`: what was taken */
	uint64_t next_id;
	bool dirty;
	uint64_t bytes;
	struct spool_stats stats;
};

void spool_segment_name(char out[SPOOL_NAME_MAX], uint64_t id);
struct segment *spool_segment_find(struct spool *s, uint64_t id);
void spool_remove_first(struct spool *s); /* the oldest segment, which is not needed any more */
void spool_drop_first(struct spool *s);   /* likewise, read or not: what is lost is counted */

/* spool_head_read - the head of the record at @offset, its numbers as the machine has them; false: there
 * is no whole record before @end. spool_data_read - its data into @out, if they are what was written. */
bool spool_head_read(int fd, uint64_t offset, uint64_t end, struct record_head *ret);
bool spool_data_read(int fd, uint64_t offset, const struct record_head *h, char *out);
