/* SPDX-License-Identifier: Apache-2.0 */
/* paragraph.h - text for people, broken between words and escaped for a terminal. */
#pragma once

#include "base/buf.h"
#include "store/nodedb.h"

#define PARAGRAPH_WIDTH 100 /* columns */

/* paragraph_wrap - @text broken at @width columns (SIZE_MAX: never), with @indent columns before
 * each line but the first, which has them already; and a newline. */
void paragraph_wrap(struct buf *b, size_t indent, size_t width, const char *text);

/* paragraph_put - @label, and @text in the columns behind it. */
void paragraph_put(struct buf *b, size_t width, const char *label, const char *text);

/* stored_incidents_text - appends those of @c. Check b->err. */
void stored_incidents_text(struct buf *b, const struct nodedb_content *c);
