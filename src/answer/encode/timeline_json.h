/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_json.h - what the files that write a time line share. */
#pragma once

#include "answer/timeline/timeline.h"

/* timeline_put_group - the members of a process. */
void timeline_put_group(
	struct json_writer *w, const struct timeline_index *ix, const struct timeline_process *p);

/* timeline_track_id - appends the name by which a track is asked for again. */
void timeline_track_id(
	struct buf *b, const struct timeline_index *ix, const struct timeline_entry *e);
