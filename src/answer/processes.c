/* SPDX-License-Identifier: Apache-2.0 */
/* processes.c - the processes of a time: whom they work for, what of them is seen, how much they call; and who used
 * the GPU how much (explain.h).
 *
 * Driver calls made inside runtime calls are listed, but not added to the total, where they would count twice.
 * Published files do not tell them apart: there all count. */

#include "answer/answer.h"
#include "answer/explain.h"
#include "base/text.h"
#include "model/sample.h"
#include "wire/op_kind.h"

#define PROCESSES     200
#define PROCESSES_MAX 5000

static void put_coverage(struct json_writer *w, const struct sql_table *p, size_t row,
	const struct sql_table *coverage)
{
	int pid = table_column(coverage, "pid"), start = table_column(coverage, "start_time");
	int layer = table_column(coverage, "layer");

	json_begin_array_member(w, "coverage");
	for (size_t i = 0; i < coverage->row_count; i++) {
		if (table_int(coverage, i, pid) != table_int(p, row, 1) ||
			table_int(coverage, i, start) != table_int(p, row, 2) ||
			strcmp(table_text(coverage, i, 1), table_text(p, row, 0)) != 0)
			continue;
		json_begin_object(w);
		table_put_row(w, coverage, i, layer, coverage->column_count);
		json_end_object(w);
	}
	json_end_array(w);
}

/* The row of its calls; -1: it made none. */
static int find_calls(const struct sql_table *p, size_t row, const struct sql_table *calls)
{
	for (size_t i = 0; i < calls->row_count; i++)
		if (table_int(calls, i, 0) == table_int(p, row, 1))
			return (int)i;
	return -1;
}

static void put_calls(struct json_writer *w, const struct sql_table *calls, int row)
{
	JSON_PUT(w, JSON_I("calls", row < 0 ? 0 : table_int(calls, (size_t)row, 1)),
		JSON_US("gpu_us", row < 0 ? 0 : table_real(calls, (size_t)row, 2)));
}

/* Seen in the time, or calling in it: a row is written when a process is found and not again. */
static bool is_there(const struct question *q, const struct sql_table *p, size_t row,
	const struct sql_table *calls)
{
	return q->scope.from_ns <= q->range.first_ns || find_calls(p, row, calls) >= 0 ||
	       table_int(p, row, table_column(p, "last_seen")) >= q->scope.from_ns;
}

int processes_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table p = {0};
	_cleanup_(sql_table_done) struct sql_table coverage = {0};
	_cleanup_(sql_table_done) struct sql_table calls = {0};
	size_t limit = answer_limit(q->request->limit, PROCESSES, PROCESSES_MAX), shown = 0, i;
	struct scope scope = q->scope;
	int r;

	scope.from_ns = 0;
	r = nodedb_snapshot_list(q->snapshot, NODEDB_PROCESSES, &scope, 0, &p, reterr);
	r = r ?: nodedb_snapshot_list(q->snapshot, NODEDB_COVERAGE, &scope, 0, &coverage, reterr);
	r = r ?: nodedb_snapshot_list(q->snapshot, NODEDB_CALLS, &q->scope, 0, &calls, reterr);
	if (r < 0)
		return r;
	json_begin_object(w);
	json_begin_array_member(w, "processes");
	for (i = 0; i < p.row_count && shown < limit; i++)
		if (is_there(q, &p, i, &calls)) {
			json_begin_object(w);
			table_put_row(w, &p, i, 0, p.column_count);
			put_calls(w, &calls, find_calls(&p, i, &calls));
			put_coverage(w, &p, i, &coverage);
			json_end_object(w);
			shown++;
		}
	json_end_array(w);
	return answer_end(q, w, p.truncated || i < p.row_count);
}

/* ---- who used the GPU how much ---- */

#define PIDS_NAMED   8
#define OTHERS_SHOWN 5 /* processes without CUDA calls, those with most */

static uint64_t average(const struct nodedb_usage *u)
{
	return u->count ? u->sum_ns / u->count : 0;
}

static void put_process(struct buf *b, const struct nodedb_usage *rows, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += rows[i].nested ? 0 : rows[i].count;
	buf_printf(b, "\n  PID %u", rows->pid);
	if (rows->comm[0]) {
		buf_puts(b, " (");
		text_escape_terminal(b, rows->comm);
		buf_puts(b, ")");
	}
	buf_printf(b, ": %s\n", TEXT_PLURAL(total, "calls"));
	for (size_t i = 0; i < n; i++) {
		buf_printf(b, "    %-27s %13s call%s", WIRE_OP_NAME(rows[i].source, rows[i].op),
			TEXT_COUNT(rows[i].count), rows[i].count == 1 ? " " : "s");
		if (rows[i].max_ns)
			buf_printf(b, "   avg %s   max %s", TEXT_DURATION(average(&rows[i])),
				TEXT_DURATION(rows[i].max_ns));
		buf_puts(b, rows[i].nested ? "   inside runtime calls\n" : "\n");
	}
}

static void put_contention(struct buf *b, const uint32_t pids[PIDS_NAMED], size_t count)
{
	if (count < 2)
		return;
	buf_printf(b, "\n  %zu processes made CUDA calls and may share a GPU: pids", count);
	for (size_t i = 0; i < MIN(count, (size_t)PIDS_NAMED); i++)
		buf_printf(b, "%s %u", i ? "," : "", pids[i]);
	buf_puts(b, count > PIDS_NAMED ? ", …\n" : "\n");
}

void usage_text(struct buf *b, const struct nodedb_usage *rows, size_t count)
{
	uint32_t gpu_pids[PIDS_NAMED];
	size_t processes = 0, gpu = 0, others = 0;
	_cleanup_buf_ struct buf list = BUF_INIT(b->max), rest = BUF_INIT(b->max);

	if (!count) {
		buf_puts(b, "No per-process data: the recording holds no counts of all calls "
			    "(aggregates) in this range.\n");
		return;
	}
	for (size_t i = 0, n; i < count; i += n) {
		bool on_gpu = false;

		for (n = 0; i + n < count && rows[i + n].pid == rows[i].pid; n++)
			on_gpu |= op_kind_is_gpu(rows[i + n].source);
		if (on_gpu || others++ < OTHERS_SHOWN)
			put_process(on_gpu ? &list : &rest, &rows[i], n);
		if (on_gpu && gpu < PIDS_NAMED)
			gpu_pids[gpu] = rows[i].pid;
		gpu += on_gpu;
		processes++;
	}
	buf_printf(b, "PER PROCESS - %s, %zu with CUDA calls\n",
		TEXT_PLURAL(processes, "processes"), gpu);
	buf_append(b, buf_str(&list), list.len);
	buf_append(b, buf_str(&rest), rest.len);
	if (others > OTHERS_SHOWN)
		buf_printf(b, "\n  %s without CUDA calls: --json lists them\n",
			TEXT_PLURAL(others - OTHERS_SHOWN, "more processes"));
	put_contention(b, gpu_pids, gpu);
}

void usage_json(struct buf *b, const struct nodedb_usage *rows, size_t count)
{
	struct json_writer w = json_writer_to_buf(b);

	w.indent = true;
	json_begin_array(&w);
	for (size_t i = 0; i < count; i++)
		JSON_PUT_OBJECT(&w, JSON_U("pid", rows[i].pid), JSON_S("comm", rows[i].comm),
			JSON_S("source", wire_source_name(rows[i].source)),
			JSON_S("op", WIRE_OP_NAME(rows[i].source, rows[i].op)),
			JSON_U("count", rows[i].count), JSON_U("avg_ns", average(&rows[i])),
			JSON_U("max_ns", rows[i].max_ns), JSON_B("nested", rows[i].nested));
	json_end_array(&w);
	json_finish(&w);
}

bool gpus_same(const struct gpus_answer *a, size_t x, size_t y)
{
	const struct sql_table *t = &a->samples;

	return table_int(t, x, GPUS_GPU) == table_int(t, y, GPUS_GPU) &&
	       !strcmp(table_text(t, x, GPUS_NODE), table_text(t, y, GPUS_NODE));
}

uint64_t gpus_slowing(int64_t reasons)
{
	uint64_t bits = 0;

	for (const struct gpu_throttle *t = gpu_throttles; reasons > 0 && t->bit; t++)
		if (t->slows)
			bits |= (uint64_t)reasons & t->bit;
	return bits;
}

int answer_gpus(const struct question *q, struct gpus_answer *ret, struct errinfo *reterr)
{
	struct gpus_answer a = {.count = 0};
	int r = nodedb_snapshot_list(
		q->snapshot, NODEDB_GPU_SAMPLES, &q->scope, 0, &a.samples, reterr);

	if (r < 0)
		return r;
	a.truncated = a.samples.truncated;
	for (size_t i = 0; i < a.samples.row_count; i++) {
		size_t k = 0;

		while (k < a.count && !gpus_same(&a, a.newest[k], i))
			k++;
		if (k == GPUS_MAX)
			a.truncated = true;
		else if (k == a.count)
			a.newest[a.count++] = i;
	}
	*ret = a;
	return 0;
}

void gpus_answer_done(struct gpus_answer *a)
{
	sql_table_done(&a->samples);
}

struct gpu_gauge gpus_gauge(const struct gpus_answer *a, size_t gpu, const char *column)
{
	const struct sql_table *t = &a->samples;
	int c = table_column(t, column);
	struct gpu_gauge g = {0};
	double sum = 0;

	for (size_t i = a->newest[gpu]; c >= 0 && i < t->row_count; i++) {
		int64_t v = table_int(t, i, c);

		if (!gpus_same(a, i, a->newest[gpu]) || sql_table_cell(t, i, c)->type != SQL_INT ||
			v < 0)
			continue;
		g.min = g.samples ? MIN(g.min, v) : v;
		g.max = g.samples ? MAX(g.max, v) : v;
		sum += (double)v;
		g.samples++;
	}
	g.mean = g.samples ? sum / (double)g.samples : 0;
	return g;
}
