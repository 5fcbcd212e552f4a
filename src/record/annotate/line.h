/* SPDX-License-Identifier: Apache-2.0 */
/* line.h - one line of the annotation socket, and one line of its answer.
 *
 *   {"labels":{"phase":"train","step":"1200"},"ts":N,"pid":N,"start_time":N,
 *    "span_start":N,"span_end":N,"v":1}                       only labels must be there
 *   {"ok":true,"id":N}   {"ok":false,"error":"why"}
 *
 * Times are Unix nanoseconds, start_time clock ticks since boot. Values may be strings, whole
 * numbers or booleans; they are stored as strings. Pure: no I/O. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "model/event.h"

/* annotate_line_parse - @line without its newline. A missing ts is @now. -EINVAL with a sentence;
 * the peer fields of *ret are 0. */
int annotate_line_parse(const char *line, size_t len, wall_time now, struct annotation *ret,
	struct errinfo *reterr);

/* annotate_line_compose - appends the line for @labels ("key=value" each) and a newline. */
int annotate_line_compose(const char *const *labels, size_t count, uint32_t pid, wall_time now,
	struct buf *out, struct errinfo *reterr);

/* annotate_line_answer - appends an answer: an id, or the error if @error is not NULL. */
void annotate_line_answer(struct buf *out, int64_t id, const char *error);

/* annotate_line_parse_answer - 0 with the id, -EREMOTEIO with the other side's error in @reterr,
 * -EBADMSG if it is no answer. */
int annotate_line_parse_answer(
	const char *line, size_t len, int64_t *ret_id, struct errinfo *reterr);
