/* SPDX-License-Identifier: Apache-2.0 */
/* event_json.h - one event, or the books, as one line of JSON: the output of `trace --json`. */
#pragma once

#include "json/writer.h"
#include "model/accounting.h"
#include "model/event.h"

/* event_json - the published keys (timestamp, pid, tid, process_name, source, op, duration_ns,
 * duration, gpu_id, args, return_code, cgroup_id, anomaly) and ours (node, cpu, nested, stream,
 * wait_ns, peer_pid, peer_comm, device, sample: an ordinary call kept as an example). */
void event_json(struct json_writer *w, const struct event *e, const char *node);

/* event_json_time - the key "timestamp", RFC 3339 in UTC with nanoseconds. */
void event_json_time(struct json_writer *w, wall_time t);

/* event_json_books - {"source":"ingero","op":"accounting",…}: hits, stored, aggregated and losses
 * by reason for every source that had any. */
void event_json_books(struct json_writer *w, const struct accounting *books, wall_time now,
	const char *node, bool final);
