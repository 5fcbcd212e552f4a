/* SPDX-License-Identifier: Apache-2.0 */
/* event_column.h - the columns of `events`, in the order in which they are read; the published order is their
 * place. Readers of whole rows and of parts of them name a value COL_X. `node` is last: it is read only where
 * it is asked for. */
#pragma once

/* clang-format off */
/* X(NAME, place, column, otherwise, kind, …): as in tables.c */
#define EVENT_COLUMNS(X) \
	X(TIMESTAMP, 2, "timestamp", NULL, TIME, M(start)) \
	X(DURATION, 7, "duration", NULL, COUNT, .max = EVENT_DURATION_MAX, M(dur_ns)) \
	X(PID, 3, "pid", NULL, COUNT, .max = UINT32_MAX, M(pid)) \
	X(TID, 4, "tid", NULL, COUNT, .max = UINT32_MAX, M(tid)) \
	X(SOURCE, 5, "source", NULL, COUNT, .max = WIRE_SOURCE_MAX - 1, M(source)) \
	X(OP, 6, "op", NULL, COUNT, .max = WIRE_OP_MAX - 1, M(op)) \
	X(ID, 20, "seq", "id", ID) \
	X(GPU, 8, "gpu_id", "0", INT, M(device)) \
	X(ARG0, 9, "arg0", "0", INT, M(arg0)) \
	X(ARG1, 10, "arg1", "0", INT, M(arg1)) \
	X(RET, 11, "ret_code", "0", INT, M(ret)) \
	X(STACK, 12, "stack_hash", "0 AS stack_hash", INT, M(stack_hash)) \
	X(CGROUP, 18, "cgroup_id", "0", INT, M(cgroup_id)) \
	X(COMM, 19, "comm", "''", TEXT, .max = COMM_LEN - 1, M(comm)) \
	X(FLAGS, 21, "flags", "0", COUNT, .max = UINT16_MAX, M(flags)) \
	X(WEIGHT, 22, "weight", "1", COUNT, .max = UINT32_MAX, M(weight)) \
	X(STREAM, 23, "stream", "0", INT, M(stream)) \
	X(WAIT, 24, "wait_ns", "0", INT, M(wait_ns)) \
	X(PEER_PID, 25, "peer_pid", "0", COUNT, .max = UINT32_MAX, M(peer_pid)) \
	X(PEER_COMM, 26, "peer_comm", "''", TEXT, .max = COMM_LEN - 1) \
	X(DETAIL, 29, "detail", "''", TEXT, .max = 55) \
	X(DEV, 27, "dev", "0", COUNT, .max = UINT32_MAX, M(dev)) \
	X(CPU, 28, "cpu", "0", COUNT, .max = UINT32_MAX, M(cpu)) \
	X(RANK, 14, "rank", "NULL", COUNT, .may_lack = true, .max = INT32_MAX, M_RANK(place, 0)) \
	X(LOCAL_RANK, 15, "local_rank", "NULL", COUNT, .may_lack = true, .max = INT32_MAX, M_RANK(place, 1)) \
	X(WORLD_SIZE, 16, "world_size", "NULL", COUNT, .may_lack = true, .max = INT32_MAX, M_RANK(place, 2)) \
	X(NODE, 13, "node", "''", NODE)
/* clang-format on */

#define EVENT_DURATION_MAX (366LL * 24 * 3600 * (int64_t)NS_PER_S) /* a year: longer is nonsense */

enum event_column {
#define X(NAME, ...) COL_##NAME,
	EVENT_COLUMNS(X)
#undef X
		COL_COUNT
};
