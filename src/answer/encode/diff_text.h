/* SPDX-License-Identifier: Apache-2.0 */
/* diff_text.h - what is different between two times, for people. Names are escaped here. */
#pragma once

#include "answer/diff/diff.h"

/* diff_text - @limit rows of operations and of processes. Check b->err. */
void diff_text(struct buf *b, const struct diff_answer *a, size_t limit, bool color);

/* diff_put - members of an open object; @limit operations. */
void diff_put(struct json_writer *w, const struct diff_answer *a, size_t limit);
#define DIFF_LIMIT     50
#define DIFF_LIMIT_MAX 1000
