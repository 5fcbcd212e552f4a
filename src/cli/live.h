/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - the table that `ingero trace` shows: redrawn in place on a terminal, printed once at the
 * end elsewhere. */
#pragma once

#include <stdbool.h>

#include "agent/tracer.h"
#include "base/buf.h"

struct live_style {
	bool unicode; /* box lines and bars; else ASCII */
	bool colour;
};

/* live_style_detect - what the terminal behind @fd and the locale can show. */
struct live_style live_style_detect(int fd);

/* live_header - what is traced and how. */
void live_header(struct buf *b, const struct tracer_view *v, const char *db_path);

/* live_table - system line, one table per source with events, losses. */
void live_table(struct buf *b, const struct tracer_view *v, struct live_style style);

/* live_gpus - a line for each GPU, or one that says why there is none; nothing on a machine without
 * an NVIDIA driver. */
void live_gpus(struct buf *b, const struct tracer_view *v);

/* live_losses - one line for each source and reason with losses; nothing if there are none. */
void live_losses(struct buf *b, const struct accounting *books);
