/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_stacks.c - get_stacks: from where calls were made, those with most time first
 * (answer/stacks.h). */
#include "serve/mcp/mcp_tool.h"

#include "answer/stack_text.h"
#include "answer/stacks.h"
#include "serve/mcp/mcp_clean.h"
#include "wire/names.h"

#define LIMIT         10
#define PROCESSES_MAX 8
#define FRAMES_MAX    64
#define FRAME_BYTES   8192

static json_t *frames_json(const struct question *q, int64_t hash, struct errinfo *reterr)
{
	_cleanup_free_ struct stack *s = NULL;
	json_t *frames;

	if (nodedb_snapshot_stack(q->snapshot, (uint64_t)hash, &s, reterr) < 0)
		return NULL;
	frames = json_array();
	for (size_t i = 0; s && i < s->count && i < FRAMES_MAX; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(FRAME_BYTES);

		stack_text_frame(&b, &s->frames[i]);
		json_array_append_new(
			frames, mcp_clean_string_len(buf_str(&b), b.len, MCP_CLEAN_TEXT));
	}
	return frames;
}

static json_t *process_list(const char *text)
{
	json_t *list = json_array();
	const char *name;
	uint32_t pid;
	size_t len;

	while (json_array_size(list) < PROCESSES_MAX &&
		stacks_next_process(&text, &pid, &name, &len))
		json_array_append_new(
			list, json_pack("{s:I, s:o}", "pid", (json_int_t)pid, "process_name",
				      mcp_clean_string_len(name, len, MCP_CLEAN_NAME)));
	return list;
}

static json_t *stack_json(const struct sql_table *t, size_t i, json_t *frames)
{
	unsigned source = (unsigned)table_int(t, i, STACKS_SOURCE);
	json_int_t calls = table_int(t, i, STACKS_CALLS);
	double ns = table_real(t, i, STACKS_NS);
	char scratch[32];

	return json_pack("{s:o, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "hash",
		json_sprintf("%lld", (long long)table_int(t, i, STACKS_HASH)), "source",
		wire_source_name(source), "operation",
		wire_op_name(source, (unsigned)table_int(t, i, STACKS_OP), scratch), "count", calls,
		"total_us", mcp_us(ns), "avg_us", mcp_us(calls ? ns / (double)calls : 0), "min_us",
		mcp_us(table_real(t, i, STACKS_MIN)), "max_us",
		mcp_us(table_real(t, i, STACKS_LONGEST)), "processes",
		process_list(table_text(t, i, STACKS_PROCESSES)), "frames", frames);
}

static json_t *list_of(const struct question *q, const struct stacks_answer *a, size_t limit,
	struct errinfo *reterr)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->totals.row_count && json_array_size(list) < limit; i++) {
		int64_t hash = table_int(&a->totals, i, STACKS_HASH);
		json_t *frames = hash ? frames_json(q, hash, reterr) : NULL;

		if (frames)
			json_array_append_new(list, stack_json(&a->totals, i, frames));
	}
	return list;
}

json_t *mcp_stack_list(const struct question *q, size_t limit, struct errinfo *reterr)
{
	_cleanup_(stacks_answer_done) struct stacks_answer a = {0};

	return answer_stacks(q, &a, reterr) < 0 ? NULL : list_of(q, &a, limit, reterr);
}

static json_t *stacks_value(
	const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	_cleanup_(stacks_answer_done) struct stacks_answer a = {0};
	int r = answer_stacks(q, &a, reterr);
	json_t *list, *full, *range = r < 0 ? NULL : mcp_range(q, reterr);

	if (!range)
		return NULL;
	list = list_of(q, &a, (size_t)mcp_arg_int(arguments, "limit", LIMIT), reterr);
	full = json_pack("{s:o, s:o}", "stacks", list, "range", range);
	if (!json_array_size(list))
		json_object_set_new(full, "note",
			json_string("no call of this selection was recorded with its stack"));
	else if (a.totals.truncated)
		json_object_set_new(full, "warning",
			json_string("too many call stacks: those with the least time are omitted"));
	return full;
}

MCP_ANSWERS(mcp_stacks, stacks_value)
