/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h - who used the GPU how much: `explain --per-process`. */
#pragma once

#include "base/buf.h"
#include "store/nodedb.h"

/* usage_text - processes by calls, each with its operations, and a note if several used CUDA. */
void usage_text(struct buf *b, const struct nodedb_usage *rows, size_t count);

/* usage_json - an array of {pid, op, count, avg_ns, max_ns} as published, and comm, source and
 * nested. */
void usage_json(struct buf *b, const struct nodedb_usage *rows, size_t count);
