/* SPDX-License-Identifier: Apache-2.0 */
/* event_json.h - one event, or the accounting, as one line of JSON: the output of `trace --json`. */
#pragma once

#include "json/writer.h"
#include "model/accounting.h"
#include "model/collective.h"
#include "model/identity.h"
#include "model/incident.h"
#include "model/sample.h"
#include "model/stack.h"

/* event_json - the published keys (timestamp, pid, tid, process_name, source, op, duration_ns,
 * duration, gpu_id, args, return_code, cgroup_id, anomaly) and ours (node, cpu, nested, stream,
 * wait_ns, peer_pid, peer_comm, device, sample: an ordinary call kept as an example; rank,
 * local_rank, world_size and container_id where they are known). @c adds what an NCCL call has
 * (comm, comm_rank, seq, …), NULL for others; @stack adds "stack" (event_json_stack), NULL: none,
 * or its names have not come yet. */
void event_json(struct json_writer *w, const struct event *e, const struct collective *c,
	const char *node, const char *container_id, const struct stack *stack);

/* event_json_call - the members of an open object that every form of an event has. */
void event_json_call(struct json_writer *w, const struct event *e, const struct stack *stack);

/* event_json_frame - {ip, symbol, file, line, py_file, py_func, py_line}: only keys that have a
 * value, ip only without symbol. */
void event_json_frame(struct json_writer *w, const struct stack_frame *f);

/* event_json_stack - the array of its frames, innermost first. */
void event_json_stack(struct json_writer *w, const struct stack *s);

/* event_json_frames - the member "frames", null if the recording lacks @s, and why it "stop"s early. */
void event_json_frames(struct json_writer *w, const struct stack *s);

/* event_json_new_stack - {"source":"ingero","op":"stack",…}: a stack whose names have come, for the
 * events before it that have its stack_hash only. */
void event_json_new_stack(
	struct json_writer *w, const struct stack *s, wall_time now, const char *node);

/* event_json_coverage - {"source":"ingero","op":"coverage",…}: state and detail of every layer. */
void event_json_coverage(struct json_writer *w, wall_time now, const char *node, uint32_t pid,
	const char *comm, const struct process_layers *l);

/* event_json_gpu - {"source":"gpu","op":"sample",…}: the fields of gpu_samples, null where unknown,
 * and the names of the throttle reasons. */
void event_json_gpu(struct json_writer *w, const struct gpu_sample *s, const char *node);

/* event_json_gpu_state - {"source":"gpu","op":"state",…}: that the driver answers, or not. */
void event_json_gpu_state(struct json_writer *w, const char *state, const char *text, wall_time now,
	const char *node);

/* event_json_incident - {"source":"ingero","op":"incident",…}: what was found while tracing;
 * "state" is @state: new, or resolved. */
void event_json_incident(struct json_writer *w, const struct incident *i, const char *state,
	wall_time now, const char *node);

/* event_json_time - the key "timestamp", RFC 3339 in UTC with nanoseconds. */
void event_json_time(struct json_writer *w, wall_time t);

/* event_json_books - {"source":"ingero","op":"accounting",…}: hits, stored, aggregated and losses
 * by reason for every source that had any. */
void event_json_books(struct json_writer *w, const struct accounting *books,
	const struct cpu_losses *cpu_losses, wall_time now, const char *node, bool final);
