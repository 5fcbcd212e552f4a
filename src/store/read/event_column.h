/* SPDX-License-Identifier: Apache-2.0 */
/* event_column.h - the columns of `events`, of any schema, and which of their values make sense: for
 * those who read whole rows (nodedb_event.c) and those who read some of them (nodedb_slice.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/read/nodedb_reader.h"
#include "base/clock.h"
#include "wire/ids.h"

/* name, column, what to select if the table lacks it (NULL: it must be there). `node` is last: it is
 * read only where it is asked for. */
#define EVENT_COLUMNS(X)                                                                           \
	X(TIMESTAMP, "timestamp", NULL)                                                            \
	X(DURATION, "duration", NULL)                                                              \
	X(PID, "pid", NULL)                                                                        \
	X(TID, "tid", NULL)                                                                        \
	X(SOURCE, "source", NULL)                                                                  \
	X(OP, "op", NULL)                                                                          \
	X(ID, "seq", "id")                                                                         \
	X(GPU, "gpu_id", "0")                                                                      \
	X(ARG0, "arg0", "0")                                                                       \
	X(ARG1, "arg1", "0")                                                                       \
	X(RET, "ret_code", "0")                                                                    \
	X(STACK, "stack_hash", "0 AS stack_hash")                                                  \
	X(CGROUP, "cgroup_id", "0")                                                                \
	X(COMM, "comm", "''")                                                                      \
	X(FLAGS, "flags", "0")                                                                     \
	X(WEIGHT, "weight", "1")                                                                   \
	X(STREAM, "stream", "0")                                                                   \
	X(WAIT, "wait_ns", "0")                                                                    \
	X(PEER_PID, "peer_pid", "0")                                                               \
	X(PEER_COMM, "peer_comm", "''")                                                            \
	X(DETAIL, "detail", "''")                                                                  \
	X(DEV, "dev", "0")                                                                         \
	X(CPU, "cpu", "0")                                                                         \
	X(RANK, "rank", "NULL")                                                                    \
	X(LOCAL_RANK, "local_rank", "NULL")                                                        \
	X(WORLD_SIZE, "world_size", "NULL")                                                        \
	X(NODE, "node", "''")

enum event_column {
#define X(name, column, otherwise) COL_##name,
	EVENT_COLUMNS(X)
#undef X
		COL_COUNT
};

extern const struct reader_column event_columns[COL_COUNT];

static inline bool event_in_range(int64_t v, int64_t low, int64_t high)
{
	return v >= low && v <= high;
}

/* What both readers check of a row, and so skip alike. */
struct event_core {
	int64_t timestamp, duration, pid, tid, source, op, flags, weight, peer_pid;
};
bool event_core_makes_sense(const struct event_core *c);

/* event_stamped_at_end - whether published files (0.8 to 0.10) stamp such rows with their end. */
static inline bool event_stamped_at_end(unsigned source, unsigned op)
{
	return source == SOURCE_IO || source == SOURCE_NET ||
	       (source == SOURCE_HOST && op == HOST_SCHED_SWITCH);
}
