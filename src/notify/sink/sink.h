/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - what `ingero straggler-sink` makes of the remediation stream: counts, and who is a
 * straggler now, as Prometheus's text. Pure: the caller brings bytes and times.
 *
 * Lines of types that are not known are counted as "unknown"; a line longer than SINK_LINE_MAX is
 * thrown away up to its end and counted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/macros.h"

#define SINK_LINE_MAX (64u << 10)

struct sink;

int sink_new(size_t max_tracked_nodes, struct sink **ret);
void sink_free(struct sink *s);
DEFINE_CLEANUP(struct sink *, sink_free)

/* sink_feed - @len bytes of the stream came at @now. */
void sink_feed(struct sink *s, const char *data, size_t len, wall_time now);

/* sink_connected - a connection is there, or has ended: what came of an unfinished line is dropped. */
void sink_connected(struct sink *s, bool connected);

/* sink_is_ready - connected, or a message came at most @window_ns before @now. */
bool sink_is_ready(const struct sink *s, wall_time now, uint64_t window_ns);

void sink_metrics(const struct sink *s, struct buf *b);
