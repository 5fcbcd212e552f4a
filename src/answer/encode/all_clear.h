/* SPDX-License-Identifier: Apache-2.0 */
/* all_clear.h - what may be said when no incident was found: what was examined, how, and what could not be
 * judged. Nobody is told that there are no problems because nothing was found to look at. A recording of several
 * nodes has one of each. */
#pragma once

#include "answer/encode/report.h"
#include "json/writer.h"

/* all_clear_verdict - the sentence alone: "No problems found in 512 steps of 1 process." Where there are
 * incidents, nobody asks for it. */
void all_clear_verdict(struct buf *b, const struct report_scope *s);

/* all_clear_put - appends it and what was examined, in lines of @width columns. */
void all_clear_put(struct buf *b, const struct report_scope *s, size_t width);

/* all_clear_processes - where the time of each process went, alone: that is worth a word beside notes, too. */
void all_clear_processes(struct buf *b, const struct report_scope *s, size_t width);

/* all_clear_json - the same as an object: the value of a member that the caller has named. */
void all_clear_json(struct json_writer *w, const struct report_scope *s);
