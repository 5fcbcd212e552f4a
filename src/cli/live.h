/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - the table that `ingero trace` shows: redrawn in place on a terminal, printed once at the
 * end elsewhere. */
#pragma once

#include "record/trace/tracer.h"
#include "base/buf.h"

struct live_style {
	bool unicode;      /* box lines and bars; else ASCII */
	int columns, rows; /* of the terminal; 0: not known, or no terminal */
};

/* live_style_detect - what the terminal behind @fd and the locale can show. live_style_resize()
 * asks for its size again and tells whether it has changed. */
struct live_style live_style_detect(int fd);
bool live_style_resize(struct live_style *s, int fd);

/* live_header - what is traced and how. */
void live_header(struct buf *b, const struct tracer_view *v, const char *db_path);

/* live_command_header, live_command_end - the same for a command that is run and traced, whose terminal it is: one
 * line when it begins, one when it has ended. */
void live_command_header(struct buf *b, char *const *argv, uint32_t pid, const char *db_path);
void live_command_end(struct buf *b, const struct tracer_view *v, const char *db_path);

/* live_command_left - which processes that a command has started go on without it and without being traced, if any. */
void live_command_left(struct buf *b, const struct tracer_view *v);

/* live_table - system line, one table per source with events, losses. */
void live_table(struct buf *b, const struct tracer_view *v, struct live_style style);

/* live_screen - the same, made to fit the terminal, so that it can be drawn over: one list instead
 * of tables if those are too high, the ops with least time left out if that is still too high, and
 * no line longer than a row. */
void live_screen(struct buf *b, const struct tracer_view *v, struct live_style style);

/* live_has_calls - has any CUDA call been seen? */
bool live_has_calls(const struct tracer_view *v);

/* live_incident - a line that says what was found, or that it is over. */
void live_incident(struct buf *b, const struct incident *i);

/* live_gpus - a line for each GPU, or one that says why there is none; nothing on a machine without
 * an NVIDIA driver. */
void live_gpus(struct buf *b, const struct tracer_view *v);

/* Rows of operations: name, count, p50, p95, p99, flags. The name's column takes what a terminal's width leaves,
 * within bounds. */

/* op_table_put - a ruled table for each source that has events. */
void op_table_put(struct buf *b, const struct tracer_view *v, struct live_style style);

/* op_table_list - all sources in one list without rules, of each the first @most ops: those with the most time. */
void op_table_list(struct buf *b, const struct tracer_view *v, struct live_style style, int most);
