/* SPDX-License-Identifier: Apache-2.0 */
/* folded.h - a tree of stacks as lines "outermost;…;innermost VALUE", which flame graph tools read.
 */
#pragma once

#include "base/buf.h"
#include "answer/flame.h"

/* folded_text - appends a line for every place where calls ended; values are divided by @unit,
 * rounded, and at least 1. Check b->err. */
void folded_text(struct buf *b, const struct flame *f, uint64_t unit);
