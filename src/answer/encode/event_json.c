/* SPDX-License-Identifier: Apache-2.0 */
/* event_json.c - see event_json.h. Names of traced processes go through the writer, which escapes.
 */
#include "answer/encode/event_json.h"

#include <time.h>

#include "answer/encode/report_json.h"
#include "answer/row.h"
#include "base/text.h"
#include "wire/names.h"

void event_json_time(struct json_writer *w, wall_time t)
{
	char text[WHEN_UTC_MAX];

	json_string_member(w, "timestamp", when_utc(text, t));
}

static void put_head(
	struct json_writer *w, wall_time t, const char *node, const char *source, const char *op)
{
	event_json_time(w, t);
	JSON_PUT(w, JSON_S("node", node), JSON_S("source", source), JSON_S("op", op));
}

static void put_kind_fields(struct json_writer *w, const struct event *e)
{
	char peer[EVENT_PEER_MAX];

	if (e->source == SOURCE_NET)
		json_uint_member(w, "wait_ns", e->wait_ns);
	if (e->source == SOURCE_TCP || (e->source == SOURCE_NET && e->family))
		json_string_member(w, "peer", event_peer(e, peer));
	if (e->source == SOURCE_CUDA || e->source == SOURCE_DRIVER || e->source == SOURCE_GRAPH)
		JSON_PUT(w, JSON_U("stream", e->stream), JSON_B("nested", e->flags & WIRE_NESTED));
	if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH)
		JSON_PUT(w,
			JSON_S("state", e->flags & WIRE_PREEMPTED         ? "preempted"
					: e->flags & WIRE_UNINTERRUPTIBLE ? "blocked"
									  : "sleeping"),
			JSON_U("wait_ns", e->wait_ns), JSON_U("peer_pid", e->peer_pid),
			JSON_S("peer_comm", e->peer_comm));
	if (e->source == SOURCE_HOST && e->op == HOST_SHORT_STAYS)
		JSON_PUT(w, JSON_U("blocked_ns", e->arg1), JSON_U("peer_pid", e->peer_pid),
			JSON_S("peer_comm", e->peer_comm));
	if (e->source == SOURCE_IO) {
		char dev[32];

		snprintf(dev, sizeof(dev), "%u:%u", e->dev >> 20, e->dev & 0xfffff);
		json_string_member(w, "device", dev);
	}
}

static void put_present(struct json_writer *w, const char *key, int64_t v)
{
	if (v >= 0)
		json_int_member(w, key, v);
}

static void put_nccl(struct json_writer *w, const struct event *e, const struct collective *c)
{
	JSON_PUT(w, JSON_S("comm", TEXT_HEX(c->comm_hash)), JSON_U("stream", e->stream));
	put_present(w, "comm_rank", c->rank);
	put_present(w, "comm_size", c->nranks);
	if (!collective_is_one(e))
		return;
	if (e->op != NCCL_SEND && e->op != NCCL_RECV)
		json_uint_member(w, "seq", c->seq);
	JSON_PUT(w, JSON_U("bytes", c->bytes), JSON_U("count", c->count));
	put_present(w, "datatype", c->datatype);
	put_present(w, "reduce_op", c->reduce_op);
	put_present(w, "root", c->root);
	put_present(w, "peer", c->peer);
}

static const struct row_field frame_fields[] = {
	ROW(struct stack_frame, "symbol", symbol, 0, ROW_SET),
	ROW(struct stack_frame, "file", file, 0, ROW_SET),
	ROW(struct stack_frame, "line", line, 0, ROW_SET),
	ROW(struct stack_frame, "py_file", py_file, 0, ROW_SET),
	ROW(struct stack_frame, "py_func", py_func, 0, ROW_SET),
	ROW(struct stack_frame, "py_line", py_line, 0, ROW_SET),
	ROW_END,
};

void event_json_frame(struct json_writer *w, const struct stack_frame *f)
{
	char ip[32];

	json_begin_object(w);
	if (f->ip && !f->symbol) {
		snprintf(ip, sizeof(ip), "0x%llx", (unsigned long long)f->ip);
		json_string_member(w, "ip", ip);
	}
	row_json(w, frame_fields, f, 0);
	json_end_object(w);
}

void event_json_stack(struct json_writer *w, const struct stack *s)
{
	json_begin_array(w);
	for (size_t i = 0; i < s->count; i++)
		event_json_frame(w, &s->frames[i]);
	json_end_array(w);
}

void event_json_frames(struct json_writer *w, const struct stack *s)
{
	if (!s) {
		json_null_member(w, "frames");
		return;
	}
	json_key(w, "frames");
	event_json_stack(w, s);
	if (s->stop && s->stop[0])
		json_string_member(w, "stop", s->stop);
}

static const struct row_field call_fields[] = {
	ROW(struct event, "pid", pid),
	ROW(struct event, "tid", tid),
	ROW_NAMED(struct event, "source", source, wire_source_name),
	ROW_OP_NAMED(struct event, "op"),
	ROW(struct event, "duration_ns", dur_ns),
	ROW_END,
};

void event_json_call(struct json_writer *w, const struct event *e, const struct stack *stack)
{
	event_json_time(w, e->start);
	row_json(w, call_fields, e, 0);
	json_string_member(w, "duration", TEXT_DURATION(e->dur_ns));
	json_begin_array_member(w, "args");
	json_put_uint(w, e->arg0);
	json_put_uint(w, e->arg1);
	json_end_array(w);
	if (e->cgroup_id > 1)
		json_uint_member(w, "cgroup_id", e->cgroup_id);
	if (e->stack_hash)
		json_int_member(w, "stack_hash", (int64_t)e->stack_hash);
	if (stack) {
		json_key(w, "stack");
		event_json_stack(w, stack);
	}
}

void event_json(struct json_writer *w, const struct event *e, const struct collective *c,
	const char *node, const char *container_id, const struct stack *stack)
{
	json_begin_object(w);
	event_json_call(w, e, stack);
	JSON_PUT(w, JSON_S("node", node), JSON_S("process_name", e->comm),
		JSON_I("gpu_id", e->device), JSON_I("return_code", e->ret));
	if (container_id[0])
		json_string_member(w, "container_id", container_id);
	if (e->place.known & PLACEMENT_RANK)
		json_uint_member(w, "rank", (uint64_t)e->place.rank);
	if (e->place.known & PLACEMENT_LOCAL_RANK)
		json_uint_member(w, "local_rank", (uint64_t)e->place.local_rank);
	if (e->place.known & PLACEMENT_WORLD_SIZE)
		json_uint_member(w, "world_size", (uint64_t)e->place.world_size);
	JSON_PUT(w, JSON_U("cpu", e->cpu), JSON_B("anomaly", e->flags & WIRE_SLOW),
		JSON_B("sample", e->flags & WIRE_SAMPLE));
	put_kind_fields(w, e);
	if (c)
		put_nccl(w, e, c);
	json_end_object(w);
	json_finish(w);
}

void event_json_new_stack(
	struct json_writer *w, const struct stack *s, wall_time now, const char *node)
{
	json_begin_object(w);
	put_head(w, now, node, "ingero", "stack");
	JSON_PUT(w, JSON_I("stack_hash", (int64_t)s->hash), JSON_S("stop", s->stop));
	json_key(w, "stack");
	event_json_stack(w, s);
	json_end_object(w);
	json_finish(w);
}

void event_json_books(struct json_writer *w, const struct accounting *books,
	const struct cpu_losses *cpu_losses, wall_time now, const char *node, bool final)
{
	_cleanup_buf_ struct buf launches = BUF_INIT(256);
	char unseen[CALL_GAP_SENTENCE_MAX];

	json_begin_object(w);
	put_head(w, now, node, "ingero", "accounting");
	json_bool_member(w, "final", final);
	json_begin_object_member(w, "sources");
	for (const struct wire_source_row *s = wire_sources; s->json; s++) {
		if (!books->source[s->id].hits)
			continue;
		json_key(w, s->json);
		json_begin_object(w);
		JSON_PUT(w, JSON_U("hits", books->source[s->id].hits),
			JSON_U("stored", books->source[s->id].stored),
			JSON_U("aggregated", books->source[s->id].aggregated));
		json_begin_object_member(w, "lost");
		for (int i = 0; i < LOSS_COUNT; i++)
			if (books->source[s->id].lost[i])
				json_uint_member(
					w, wire_losses[i].name, books->source[s->id].lost[i]);
		json_end_object(w);
		json_end_object(w);
	}
	json_end_object(w);
	json_begin_array_member(w, "lost_by_cpu");
	for (uint32_t i = 0; cpu_losses && i < cpu_losses->count; i++)
		JSON_PUT_OBJECT(w, JSON_S("source", wire_source_name(cpu_losses->rows[i].source)),
			JSON_S("reason", wire_losses[cpu_losses->rows[i].reason].name),
			JSON_U("cpu", cpu_losses->rows[i].cpu),
			JSON_U("count", cpu_losses->rows[i].count));
	json_end_array(w);
	if (accounting_put_launches(books, &launches))
		json_string_member(w, "launches", buf_str(&launches));
	json_uint_member(w, "unseen_processes", books->unseen.processes);
	if (books->unseen.processes)
		json_string_member(
			w, "unseen", call_gap_sentence(&books->unseen, unseen, sizeof(unseen)));
	json_end_object(w);
	json_finish(w);
}

void event_json_coverage(struct json_writer *w, wall_time now, const char *node, uint32_t pid,
	const char *comm, const struct process_layers *l)
{
	json_begin_object(w);
	put_head(w, now, node, "ingero", "coverage");
	JSON_PUT(w, JSON_U("pid", pid), JSON_S("process_name", comm),
		JSON_B("complete", !layer_has_gap(l)));
	json_begin_object_member(w, "layers");
	for (int i = 0; i < LAYER_COUNT; i++)
		JSON_PUT_INTO(w, layer_name((enum layer)i),
			JSON_S("state", layer_state_name(l->rows[i].state)),
			JSON_S("detail", l->rows[i].detail));
	json_end_object(w);
	json_end_object(w);
	json_finish(w);
}

void event_json_gpu(struct json_writer *w, const struct gpu_sample *s, const char *node)
{
	json_begin_object(w);
	put_head(w, s->time, node, "gpu", "sample");
	JSON_PUT(w, JSON_KNOWN("gpu_id", s->index != GPU_UNKNOWN, s->index),
		JSON_S("uuid", s->uuid), JSON_S("name", s->name), JSON_S("pci", s->pci));
#define X(field, meaning) json_known_member(w, #field, s->field != GPU_UNKNOWN, s->field);
	GPU_FIELDS(X)
#undef X
	json_begin_array_member(w, "throttle");
	for (const struct gpu_throttle *t = gpu_throttles; t->bit; t++)
		if (s->throttle_reasons > 0 && (uint64_t)s->throttle_reasons & t->bit)
			json_put_string(w, t->name);
	json_end_array(w);
	json_end_object(w);
	json_finish(w);
}

void event_json_gpu_state(
	struct json_writer *w, const char *state, const char *text, wall_time now, const char *node)
{
	json_begin_object(w);
	put_head(w, now, node, "gpu", "state");
	JSON_PUT(w, JSON_S("state", state), JSON_S("text", text));
	json_end_object(w);
	json_finish(w);
}

void event_json_incident(struct json_writer *w, const struct incident *i, const char *state,
	wall_time now, const char *node)
{
	json_begin_object(w);
	put_head(w, now, node, "ingero", "incident");
	JSON_PUT(w, JSON_S("state", state), JSON_S("process_name", i->comm));
	if (i->source)
		json_string_member(w, "call", WIRE_OP_NAME(i->source, i->op));
	report_json_fields(w, i, INCIDENT_LINE);
	json_known_member(w, "resolved_at_ns", i->resolved.ns, i->resolved.ns);
	json_end_object(w);
	json_finish(w);
}
