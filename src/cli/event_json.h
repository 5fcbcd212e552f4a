/* SPDX-License-Identifier: Apache-2.0 */
/* event_json.h - one event, or the books, as one line of JSON: the output of `trace --json`. */
#pragma once

#include "json/writer.h"
#include "model/accounting.h"
#include "model/collective.h"

/* event_json - the published keys (timestamp, pid, tid, process_name, source, op, duration_ns,
 * duration, gpu_id, args, return_code, cgroup_id, anomaly) and ours (node, cpu, nested, stream,
 * wait_ns, peer_pid, peer_comm, device, peer); @c adds what an NCCL call has (comm, seq, rank, …),
 * NULL for others. */
void event_json(
	struct json_writer *w, const struct event *e, const struct collective *c, const char *node);

/* event_json_books - {"source":"ingero","op":"accounting",…}: hits, stored, aggregated and losses
 * by reason for every source that had any. */
void event_json_books(struct json_writer *w, const struct accounting *books, wall_time now,
	const char *node, bool final);
