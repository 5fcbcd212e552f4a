/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - what `ingero straggler-sink` makes of the remediation stream: counts, and who is a
 * straggler now, as Prometheus's text. Pure: the caller brings bytes and times.
 *
 * Lines of types that are not known are counted as "unknown"; a line longer than SINK_LINE_MAX is
 * thrown away up to its end and counted. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/macros.h"

#define SINK_LINE_MAX (64u << 10)

struct sink;

int sink_new(size_t max_tracked_nodes, struct sink **ret);
void sink_free(struct sink *s);

/* sink_feed - @len bytes of the stream came at @now. */
void sink_feed(struct sink *s, const char *data, size_t len, wall_time now);

/* sink_connected - a connection is there, or has ended: what came of an unfinished line is dropped. */
void sink_connected(struct sink *s, bool connected);

/* sink_is_ready - connected, or a message came at most @window_ns before @now. */
bool sink_is_ready(const struct sink *s, wall_time now, uint64_t window_ns);

void sink_metrics(const struct sink *s, struct buf *b);

/* The nodes that are stragglers now, in the order in which they became that.
 * Of more than the table is made for the longest-standing one leaves, and that is told. */

#define STRAGGLER_NAME_MAX 256

struct straggler {
	char cluster[STRAGGLER_NAME_MAX], node[STRAGGLER_NAME_MAX];
};

struct straggler_table;

int straggler_table_new(size_t max, struct straggler_table **ret);
void straggler_table_free(struct straggler_table *t);

/* straggler_table_add - 0; 1 if another one had to leave; -ENOMEM. One that is there stays where it
 * is. */
int straggler_table_add(struct straggler_table *t, const struct straggler *s);
void straggler_table_remove(struct straggler_table *t, const struct straggler *s);

/* straggler_table_next - walks from the oldest on; start with *cursor = NULL. NULL: the end. */
const struct straggler *straggler_table_next(const struct straggler_table *t, const void **cursor);
