/* SPDX-License-Identifier: Apache-2.0 */
/* corpus_table.c - the columns of each table (corpus.h). A field that is not here reads as 0, as does a column
 * that an older file has not. */
#include "corpus.h"

#define FIELD_SIZE(type, field) sizeof(((type *)0)->field)
#define COLUMN(type, kind, field)                                                                  \
	{                                                                                          \
#field, KIND_##kind, offsetof(type, field), FIELD_SIZE(type, field)                \
	}
#define END_OF_COLUMNS                                                                             \
	{                                                                                          \
		NULL, 0, 0, 0                                                                      \
	}

#define C(kind, field) COLUMN(struct corpus_account, kind, field)
static const struct corpus_column account_columns[] = {C(TIME, start_ns), C(UINT, quantum_ns),
	C(UINT, pid), C(UINT, tid), C(CHARS, comm), C(UINT, origin), C(DOUBLE, confidence),
	C(UINT, is_derived), C(UINT, units), C(UINT, keys), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct corpus_unit, kind, field)
static const struct corpus_column unit_columns[] = {C(UINT, gap), C(UINT, length), C(UINT, probed),
	C(UINT, open), C(NS, launches), C(NS, copy_bytes), C(UINT, waits), C(UINT, launches_off),
	C(UINT, backwards), C(UINT, loads), C(UINT, executes), C(UINT, parts), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct tally_part, kind, field)
static const struct corpus_column key_columns[] = {C(UINT, line), C(UINT, owner), C(UINT, pid),
	C(CHARS, comm), C(UINT, culprit_pid), C(CHARS, culprit), C(UINT, by_clock), C(UINT, place),
	C(UINT, stack_hash), C(UINT, wait_hash), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct corpus_part, kind, field)
static const struct corpus_column part_columns[] = {
	C(UINT, key), C(UINT, length), C(UINT, stack), C(UINT, wait), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct corpus_stack, kind, field)
static const struct corpus_column stack_columns[] = {
	C(UINT, hash), C(TEXT, stop), C(UINT, frames), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct stack_frame, kind, field)
static const struct corpus_column frame_columns[] = {C(TEXT, symbol), C(TEXT, file), C(UINT, line),
	C(TEXT, py_file), C(TEXT, py_func), C(UINT, py_line), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct event, kind, field)
static const struct corpus_column event_columns[] = {C(TIME, start.ns), C(NS, dur_ns), C(UINT, pid),
	C(UINT, tid), C(UINT, source), C(UINT, op), C(UINT, flags), C(UINT, family),
	C(UINT, weight), C(INT, ret), C(INT, device), C(UINT, arg0), C(UINT, arg1), C(UINT, stream),
	C(UINT, cgroup_id), C(UINT, stack_hash), C(NS, wait_ns), C(UINT, peer_pid), C(UINT, dev),
	C(CHARS, comm), C(PEER, peer_comm), C(INT, place.rank), C(INT, place.local_rank),
	C(INT, place.world_size), C(UINT, place.known), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct ledger_row, kind, field)
#define L(i)                                                                                       \
	{                                                                                          \
		"ns" #i, KIND_NS, offsetof(struct ledger_row, ns[i]), sizeof(uint64_t)             \
	}
static const struct corpus_column ledger_columns[] = {C(TIME, start.ns), C(NS, dur_ns),
	C(UINT, pid), C(UINT, tid), C(NS, copy_bytes), C(UINT, launches), C(UINT, waits),
	C(UINT, copies), C(UINT, allocs), C(UINT, stays), C(UINT, mark), C(UINT, launches_off),
	C(CHARS, comm), L(0), L(1), L(2), L(3), L(4), L(5), L(6), L(7), L(8), L(9), L(10), L(11),
	L(12), L(13), L(14), L(15), L(16), L(17), L(18), L(19), L(20), L(21), END_OF_COLUMNS};
_Static_assert(LEDGER_LINES == 22, "a column for each line");
#undef L
#undef C

#define C(kind, field) COLUMN(struct aggregate, kind, field)
static const struct corpus_column aggregate_columns[] = {C(TIME, bucket.ns), C(UINT, pid),
	C(UINT, source), C(UINT, flags), C(UINT, op), C(UINT, stored), C(NS, sum_arg0),
	C(UINT, sketch.count), C(NS, sketch.sum), C(NS, sketch.min), C(NS, sketch.max),
	END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct corpus_bucket, kind, field)
static const struct corpus_column bucket_columns[] = {
	C(UINT, row), C(UINT, bucket), C(UINT, count), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct host_sample, kind, field)
static const struct corpus_column sample_columns[] = {C(TIME, time.ns), C(DOUBLE, cpu_pct),
	C(DOUBLE, mem_pct), C(UINT, mem_avail_mb), C(UINT, mem_total_mb), C(UINT, swap_mb),
	C(DOUBLE, load1), C(DOUBLE, load5), C(DOUBLE, major_faults_per_s), C(DOUBLE, psi_cpu_pct),
	C(DOUBLE, psi_memory_pct), C(DOUBLE, psi_io_pct), C(DOUBLE, busiest_cpu_pct),
	C(INT, busiest_cpu), C(INT, swap_total_mb), C(DOUBLE, steal_pct), C(DOUBLE, iowait_pct),
	END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct gpu_sample, kind, field)
static const struct corpus_column gpu_columns[] = {C(TIME, time.ns), C(INT, index), C(CHARS, uuid),
	C(CHARS, name), C(CHARS, pci),
#define X(field, meaning) C(INT, field),
	GPU_FIELDS(X)
#undef X
		END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct container_sample, kind, field)
static const struct corpus_column container_columns[] = {C(TIME, time.ns), C(UINT, cgroup_id),
#define X(field, meaning) C(INT, field),
	CONTAINER_FIELDS(X)
#undef X
		END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct collective_row, kind, field)
static const struct corpus_column collective_columns[] = {C(TIME, start.ns), C(CHARS, node),
	C(NS, dur_ns), C(UINT, pid), C(UINT, tid), C(UINT, op), C(INT, device), C(INT, ret),
	C(UINT, stream), C(UINT, c.comm), C(UINT, c.comm_hash), C(UINT, c.seq), C(UINT, c.bytes),
	C(UINT, c.count), C(INT, c.rank), C(INT, c.nranks), C(INT, c.datatype), C(INT, c.reduce_op),
	C(INT, c.root), C(INT, c.peer), C(INT, c.wait_ns), C(INT, c.span_ns), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct process_home, kind, field)
static const struct corpus_column home_columns[] = {C(UINT, pid), C(INT, rank),
	C(CHARS, container_id), C(CHARS, pod), C(CHARS, cgroup_path), C(CHARS, comm),
	C(CHARS, script), C(UINT, cpus), C(CHARS, visible_gpus), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct annotation_label, kind, field)
static const struct corpus_column label_columns[] = {C(TIME, time_ns), C(TIME, span_start_ns),
	C(TIME, span_end_ns), C(UINT, start_time), C(UINT, pid), C(CHARS, key), C(CHARS, value),
	END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct kernel_use, kind, field)
static const struct corpus_column kernel_columns[] = {C(UINT, pid), C(UINT, function),
	C(TIME, since.ns), C(TIME, first.ns), C(UINT, launches), C(TEXT, name), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct corpus_book, kind, field)
static const struct corpus_column book_columns[] = {C(TEXT, node), C(TEXT, missing),
	C(UINT, has_books), C(UINT, unclean), C(TIME, unclean_ns), C(DOUBLE, launch_watched),
	C(DOUBLE, launch_error), END_OF_COLUMNS};
#undef C

#define C(kind, field) COLUMN(struct corpus_source, kind, field)
static const struct corpus_column source_columns[] = {C(UINT, source), C(UINT, hits),
	C(UINT, stored), C(UINT, aggregated), C(UINT, lost), END_OF_COLUMNS};
#undef C

static const struct corpus_column *const columns[CORPUS_COUNT] = {
	[CORPUS_ACCOUNT] = account_columns,
	[CORPUS_UNIT] = unit_columns,
	[CORPUS_KEY] = key_columns,
	[CORPUS_PART] = part_columns,
	[CORPUS_STACK] = stack_columns,
	[CORPUS_FRAME] = frame_columns,
	[CORPUS_EVENT] = event_columns,
	[CORPUS_LEDGER] = ledger_columns,
	[CORPUS_AGGREGATE] = aggregate_columns,
	[CORPUS_BUCKET] = bucket_columns,
	[CORPUS_SAMPLE] = sample_columns,
	[CORPUS_GPU] = gpu_columns,
	[CORPUS_CONTAINER] = container_columns,
	[CORPUS_COLLECTIVE] = collective_columns,
	[CORPUS_HOME] = home_columns,
	[CORPUS_LABEL] = label_columns,
	[CORPUS_KERNEL] = kernel_columns,
	[CORPUS_BOOK] = book_columns,
	[CORPUS_SOURCE] = source_columns,
};

struct corpus_table corpus_table(enum corpus_table_id id)
{
	static const struct corpus_table tables[CORPUS_COUNT] = {
#define X(NAME, table, type) {.name = table, .row_size = sizeof(type)},
		CORPUS_TABLES(X)
#undef X
	};
	struct corpus_table t = tables[id];

	t.columns = columns[id];
	return t;
}
