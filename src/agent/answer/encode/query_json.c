/* SPDX-License-Identifier: Apache-2.0 */
/* query_json.c - events of a recording as lines of JSON: see query.h. The writer escapes what came
 * from traced processes. */
#include "base/text.h"
#include "agent/answer/encode/event_json.h"
#include "agent/answer/labels.h"
#include "agent/answer/query.h"
#include "wire/names.h"

static void put_labels(struct json_writer *w, const struct query_view *v, const struct event *e)
{
	struct labels_span span = {e->pid, e->start.ns, event_end_ns(e)};
	struct label_range ranges[LABELS_KEYS_MAX];
	size_t more;
	int n = labels_within(v->content->labels, v->content->label_count, &span, ranges, &more);

	json_key(w, "labels"); /* the newest value of each key */
	json_begin_object(w);
	for (int k = 0; k < n; k++)
		json_string_member(w, ranges[k].key, ranges[k].values[ranges[k].value_count - 1]);
	json_end_object(w);
}

static void put_call(struct json_writer *w, const struct event *e)
{
	char scratch[32], duration[TEXT_MAX];

	event_json_time(w, e->start);
	json_uint_member(w, "timestamp_ns", (uint64_t)e->start.ns);
	json_uint_member(w, "pid", e->pid);
	json_uint_member(w, "tid", e->tid);
	if (e->comm[0])
		json_string_member(w, "comm", e->comm);
	json_string_member(w, "source", wire_source_name(e->source));
	json_string_member(w, "op", wire_op_name(e->source, e->op, scratch));
	json_uint_member(w, "duration_ns", e->dur_ns);
	json_string_member(w, "duration", text_format_duration(duration, e->dur_ns));
	if (e->device)
		json_int_member(w, "gpu_id", e->device);
	json_key(w, "args");
	json_begin_array(w);
	json_put_uint(w, e->arg0);
	json_put_uint(w, e->arg1);
	json_end_array(w);
	if (e->ret)
		json_int_member(w, "return_code", e->ret);
	if (e->cgroup_id > 1)
		json_uint_member(w, "cgroup_id", e->cgroup_id);
}

static void put_event(struct json_writer *w, const struct query_view *v, const struct event *e)
{
	const struct stack *stack =
		e->stack_hash ? stack_find(&v->content->stacks, e->stack_hash) : NULL;

	json_begin_object(w);
	put_call(w, e);
	if (v->node)
		json_string_member(w, "node", v->node);
	json_uint_member(w, "seq", e->seq);
	if (e->weight > 1)
		json_uint_member(w, "weight", e->weight);
	if (e->flags & WIRE_NESTED) {
		json_key(w, "nested");
		json_put_bool(w, true);
	}
	if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH) {
		json_uint_member(w, "wait_ns", e->wait_ns);
		if (e->peer_pid) {
			json_uint_member(w, "peer_pid", e->peer_pid);
			json_string_member(w, "peer_comm", e->peer_comm);
		}
	}
	if (e->stack_hash)
		json_int_member(w, "stack_hash", (int64_t)e->stack_hash);
	if (stack) {
		json_key(w, "stack");
		event_json_stack(w, stack);
	}
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
