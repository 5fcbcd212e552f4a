/* SPDX-License-Identifier: Apache-2.0 */
/* all_clear.h - what may be said when no incident was found: what was examined, and what was not. */
#pragma once

#include "agent/answer/encode/report.h"

/* all_clear_put - appends it in lines of @width columns. */
void all_clear_put(struct buf *b, const struct report_scope *s, size_t width);

/* all_clear_put_limit - the same where only trifles were found: what limits the steps, if it is not the GPU. */
void all_clear_put_limit(struct buf *b, const struct report_scope *s, size_t width);
