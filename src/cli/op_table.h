/* SPDX-License-Identifier: Apache-2.0 */
/* op_table.h - rows of operations: name, count, p50, p95, p99, flags; with or without rules. The
 * name's column takes what a terminal's width leaves, within bounds. */
#pragma once

#include "record/trace/tracer.h"
#include "base/buf.h"
#include "cli/live.h"

enum op_table_edge { OP_TABLE_TOP, OP_TABLE_MIDDLE, OP_TABLE_BOTTOM };

void op_table_rule(struct buf *b, struct live_style style, enum op_table_edge edge);
void op_table_head(struct buf *b, struct live_style style, bool ruled);
void op_table_row(struct buf *b, const struct tracer_op *o, struct live_style style, bool ruled);

/* op_table_width - columns of a line, the margin of two included. */
int op_table_width(struct live_style style);
