/* SPDX-License-Identifier: Apache-2.0 */
/* query_json.c - events of a recording as lines of JSON: see query.h. The writer escapes what came
 * from traced processes. */
#include <string.h>

#include "store/read/name_book.h"
#include "base/text.h"
#include "answer/encode/event_json.h"
#include "answer/labels.h"
#include "answer/encode/query_text.h"
#include "wire/names.h"

static void put_labels(struct json_writer *w, const struct query_view *v, const struct event *e)
{
	struct labels_span span = {e->pid, e->start.ns, event_end_ns(e)};
	struct label_range ranges[LABELS_KEYS_MAX];
	size_t more;
	int n = labels_within(v->content->labels, v->content->label_count, &span, ranges, &more);

	json_begin_object_member(w, "labels"); /* the newest value of each key */
	for (int k = 0; k < n; k++)
		json_string_member(w, ranges[k].key, ranges[k].values[ranges[k].value_count - 1]);
	json_end_object(w);
}

static void put_event(struct json_writer *w, const struct query_view *v, const struct event *e)
{
	const char *name;

	json_begin_object(w);
	event_json_call(
		w, e, e->stack_hash ? stack_find(&v->content->stacks, e->stack_hash) : NULL);
	json_uint_member(w, "timestamp_ns", (uint64_t)e->start.ns);
	if (e->comm[0])
		json_string_member(w, "comm", e->comm);
	if (e->device)
		json_int_member(w, "gpu_id", e->device);
	if (e->ret)
		json_int_member(w, "return_code", e->ret);
	if (v->node)
		json_string_member(w, "node", v->node);
	json_uint_member(w, "seq", e->seq);
	if (e->weight > 1)
		json_uint_member(w, "weight", e->weight);
	if (e->flags & WIRE_NESTED) {
		json_bool_member(w, "nested", true);
	}
	if (e->source == SOURCE_HOST && (e->op == HOST_SCHED_SWITCH || e->op == HOST_SHORT_STAYS)) {
		json_uint_member(w, "wait_ns", e->wait_ns);
		if (e->peer_pid) {
			json_uint_member(w, "peer_pid", e->peer_pid);
			json_string_member(w, "peer_comm", e->peer_comm);
		}
	}
	name = name_book_find(v->content->names, e, v->node, v->node ? strlen(v->node) : 0);
	if (name)
		json_string_member(w, name_book_kind(e), name);
	if (v->labels)
		put_labels(w, v, e);
	json_end_object(w);
	json_finish(w);
}

void query_json(struct buf *b, const struct query_view *v)
{
	struct json_writer w = json_writer_to_buf(b);

	for (size_t i = 0; i < v->content->event_count && !b->err; i++)
		put_event(&w, v, &v->content->events[i]);
}
