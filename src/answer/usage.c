/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - see usage.h. Driver calls made inside runtime calls are listed, but not added to the
 * total, where they would count twice. Published files do not tell them apart: there all count. */
#include "answer/usage.h"

#include "base/text.h"
#include "json/writer.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define PIDS_NAMED 8

static uint64_t average(const struct nodedb_usage *u)
{
	return u->count ? u->sum_ns / u->count : 0;
}

static void put_process(struct buf *b, const struct nodedb_usage *rows, size_t n)
{
	char text[TEXT_PLURAL_MAX], avg[TEXT_MAX], max[TEXT_MAX], scratch[32];
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += rows[i].nested ? 0 : rows[i].count;
	buf_printf(b, "\n  PID %u", rows->pid);
	if (rows->comm[0]) {
		buf_puts(b, " (");
		text_escape_terminal(b, rows->comm);
		buf_puts(b, ")");
	}
	buf_printf(b, ": %s\n", text_format_plural(text, total, "calls"));
	for (size_t i = 0; i < n; i++) {
		buf_printf(b, "    %-27s %13s call%s",
			wire_op_name(rows[i].source, rows[i].op, scratch),
			text_format_count(text, rows[i].count), rows[i].count == 1 ? " " : "s");
		if (rows[i].max_ns)
			buf_printf(b, "   avg %s   max %s",
				text_format_duration(avg, average(&rows[i])),
				text_format_duration(max, rows[i].max_ns));
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
	char text[TEXT_PLURAL_MAX];
	uint32_t gpu_pids[PIDS_NAMED];
	size_t processes = 0, gpu = 0;
	_cleanup_buf_ struct buf list = BUF_INIT(b->max);

	if (!count) {
		buf_puts(b, "No per-process data: the recording holds no counts of all calls "
			    "(aggregates) in this range.\n");
		return;
	}
	for (size_t i = 0, n; i < count; i += n) {
		bool on_gpu = false;

		for (n = 0; i + n < count && rows[i + n].pid == rows[i].pid; n++)
			on_gpu |= op_kind_is_gpu(rows[i + n].source);
		put_process(&list, &rows[i], n);
		if (on_gpu && gpu < PIDS_NAMED)
			gpu_pids[gpu] = rows[i].pid;
		gpu += on_gpu;
		processes++;
	}
	buf_printf(b, "PER PROCESS - %s, %zu with CUDA calls\n",
		text_format_plural(text, processes, "processes"), gpu);
	buf_append(b, buf_str(&list), list.len);
	put_contention(b, gpu_pids, gpu);
}

void usage_json(struct buf *b, const struct nodedb_usage *rows, size_t count)
{
	struct json_writer w = json_writer_to_buf(b);
	char scratch[32];

	w.indent = true;
	json_begin_array(&w);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&w);
		json_uint_member(&w, "pid", rows[i].pid);
		json_string_member(&w, "comm", rows[i].comm);
		json_string_member(&w, "source", wire_source_name(rows[i].source));
		json_string_member(&w, "op", wire_op_name(rows[i].source, rows[i].op, scratch));
		json_uint_member(&w, "count", rows[i].count);
		json_uint_member(&w, "avg_ns", average(&rows[i]));
		json_uint_member(&w, "max_ns", rows[i].max_ns);
		json_bool_member(&w, "nested", rows[i].nested);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_finish(&w);
}
