/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_search_json.c - what was found in a time line, as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answer/encode/timeline_json.h"
#include "answer/timeline/timeline_event.h"

static void put_hit(
	struct json_writer *w, const struct timeline_hit *h, const struct timeline_index *ix)
{
	_cleanup_buf_ struct buf id = BUF_INIT(512);
	char ref[32];

	buf_printf(&id, "t:%u:%u", h->pid, h->tid);
	if (ix && timeline_index_has_nodes(ix) && h->node[0])
		buf_printf(&id, "@%s", h->node);
	snprintf(ref, sizeof(ref), "e%" PRId64, h->row);
	json_begin_object(w);
	json_string_member(w, "track", buf_str(&id));
	json_int_member(w, "start", h->start_ns - (ix ? ix->lanes.origin_ns : 0));
	json_uint_member(w, "dur", h->dur_ns);
	json_string_member(w, "name", h->name);
	json_string_member(w, "ref", ref);
	json_string_member(w, "node", h->node);
	json_int_member(w, "pid", h->pid);
	json_int_member(w, "tid", h->tid);
	json_end_object(w);
}

static void put_track(
	struct json_writer *w, const struct timeline_entry *e, const struct timeline_index *ix)
{
	_cleanup_buf_ struct buf id = BUF_INIT(512);

	timeline_track_id(&id, ix, e);
	json_begin_object(w);
	json_string_member(w, "id", buf_str(&id));
	json_string_member(w, "kind", timeline_track_names[e->kind]);
	json_string_member(w, "name", e->kind == TRACK_THREAD && e->lane ? e->lane->name : "");
	json_begin_object_member(w, "group");
	timeline_put_group(w, ix, &ix->processes[e->process]);
	json_end_object(w);
	json_end_object(w);
}

int timeline_search_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	const struct timeline_index *ix = q->request->timeline;
	_cleanup_(timeline_hits_done) struct timeline_hits h = {0};
	char origin[32];
	int r = answer_timeline_search(q, ix, &h, reterr);

	if (r < 0)
		return r;
	snprintf(origin, sizeof(origin), "%" PRId64, ix ? ix->lanes.origin_ns : 0);
	json_begin_object(w);
	json_string_member(w, "q", q->request->text);
	json_string_member(w, "origin", origin);
	json_begin_array_member(w, "hits");
	for (size_t i = 0; i < h.count; i++)
		put_hit(w, &h.items[i], ix);
	json_end_array(w);
	json_begin_array_member(w, "tracks");
	for (size_t i = 0; i < h.track_count; i++)
		put_track(w, h.tracks[i], ix);
	json_end_array(w);
	json_uint_member(w, "total", h.total);
	return answer_end(q, w, h.truncated);
}
