/* SPDX-License-Identifier: Apache-2.0 */
/* steps_text.h - the account of steps for people. Names are escaped here. */
#pragma once

#include "answer/steps.h"

/* steps_text - the account of every process of @a, or why there is none. @columns of the terminal,
 * 0: none. Check b->err. */
void steps_text(struct buf *b, const struct steps_answer *a, int columns, bool color);

/* steps_text_short - of one process: its head line and the lines that matter, @indent columns in.
 */
void steps_text_short(struct buf *b, const struct steps_row *row, size_t indent);
