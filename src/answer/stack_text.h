/* SPDX-License-Identifier: Apache-2.0 */
/* stack_text.h - call stacks as lines for people. Names are escaped here. */
#pragma once

#include "base/buf.h"
#include "model/stack.h"

/* stack_text_frame - "forward() at train.py:142", "launch (ops.cc:31)", "gemm [libfoo.so]", or the
 * address where nothing has a name. */
void stack_text_frame(struct buf *b, const struct stack_frame *f);

/* stack_text_place - the same without the types of a C++ function's arguments, for the end of a sentence. */
void stack_text_place(struct buf *b, const struct stack_frame *f);

/* stack_text - a line for each frame, innermost first, @indent columns in and cut to @width columns
 * (SIZE_MAX: never). Of a deep stack the middle is left out, and a line says how much. */
void stack_text(struct buf *b, const struct stack *s, size_t indent, size_t width);
