/* SPDX-License-Identifier: Apache-2.0 */
/* episode_field.h - what is told of a fault of a job, described once: rank and node, the collective, since when
 * and how often, who waited and how long, line of code. The columns of the cluster's `incidents`, what is
 * written there, the JSON of the service's API, of alerts and of assistants, and their schemas derive from these
 * lines; the sentence is detect/sentence.c's.
 *
 * To add a field: its member in struct fleet_episode (cluster/detect/fleet.h) and a line at the end. Lines never
 * move: columns have their order in every file. */
#pragma once

/* clang-format off */
/* X(NAME, form, member, name, meaning). Forms: U32 and U64 (0: not told), TIME, REAL, TEXT ("": not told), OP (of
 * NCCL, with COMM not 0), COMM (16 hex digits). */
#define EPISODE_FIELDS(X) \
	X(PID, U32, pid, "pid", "process of the rank") \
	X(RANKS, U32, ranks, "ranks", "number of late ranks, if all ranks of the node are late") \
	X(OP, OP, op, "op_type", "collective that it is late for: AllReduce, …") \
	X(COMM, COMM, comm, "comm_id_hash", "its communicator, 16 hex digits") \
	X(LAG, U64, lag_ns, "lag_ns", "how late it is in a late step") \
	X(LATE, U32, late, "late_steps", "steps in which it was late") \
	X(SEEN, U32, seen, "seen_steps", "steps examined; for a hang: ranks that wait") \
	X(PERIOD, U32, period, "period_steps", "period of late steps, in steps") \
	X(SHARE, REAL, share, "share", "share of the job's time lost, 0 to 1") \
	X(SINCE, TIME, since_ns, "since_ns", "when it began") \
	X(WAITING, U32, waiting, "waiting_ranks", "ranks that wait for it") \
	X(WAITED, U64, waited_ns, "waited_ns", "how long each of them waits in a late step") \
	X(PLACE, TEXT, place, "place", "line of code of the late rank")
/* clang-format on */
