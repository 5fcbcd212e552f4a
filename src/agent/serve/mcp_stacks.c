/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_stacks.c - get_stacks: from where calls were made, those with most time first. Only times are
 * summed: the arguments of many operations are addresses, whose sum says nothing. */
#include "agent/serve/mcp_tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answer/stack_text.h"
#include "agent/answer/stack_total.h"
#include "agent/serve/mcp_clean.h"
#include "mcp/rpc.h"

#define LIMIT         10
#define PROCESSES_MAX 8
#define FRAMES_MAX    64
#define FRAME_BYTES   8192

struct stack_sum {
	struct stack_total total;
	uint64_t min_ns, max_ns;
	uint32_t pids[PROCESSES_MAX];
	char comms[PROCESSES_MAX][COMM_LEN];
	size_t process_count;
};

static int by_key(const void *a, const void *b)
{
	const struct stack_total *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

static int by_time(const void *a, const void *b)
{
	const struct stack_sum *x = a, *y = b;

	if (x->total.ns != y->total.ns)
		return x->total.ns > y->total.ns ? -1 : 1;
	return by_key(a, b);
}

static void add_process(struct stack_sum *r, const struct event *e)
{
	for (size_t i = 0; i < r->process_count; i++)
		if (r->pids[i] == e->pid)
			return;
	if (r->process_count == PROCESSES_MAX)
		return;
	r->pids[r->process_count] = e->pid;
	memcpy(r->comms[r->process_count++], e->comm, COMM_LEN);
}

/* The rows with most time, then their extremes and processes by another look at the events. */
static size_t collect(const struct nodedb_content *c, const struct stack_total *totals,
	size_t count, const char *source, struct stack_sum *rows, size_t limit)
{
	size_t n = 0;

	for (size_t i = 0; i < count && n < limit; i++)
		if (totals[i].hash &&
			(!source || !strcmp(source, wire_source_name(totals[i].source))))
			rows[n++] = (struct stack_sum){.total = totals[i], .min_ns = UINT64_MAX};
	qsort(rows, n, sizeof(*rows), by_key);
	for (size_t i = 0; i < c->event_count; i++) {
		const struct event *e = &c->events[i];
		struct stack_total key = {.hash = e->stack_hash, .source = e->source, .op = e->op};
		struct stack_sum *r = bsearch(&key, rows, n, sizeof(*rows), by_key);

		if (!e->stack_hash || !r)
			continue;
		r->min_ns = MIN(r->min_ns, e->dur_ns);
		r->max_ns = MAX(r->max_ns, e->dur_ns);
		add_process(r, e);
	}
	qsort(rows, n, sizeof(*rows), by_time);
	return n;
}

static json_t *frames_json(const struct stack_list *stacks, uint64_t hash)
{
	const struct stack *s = stack_find(stacks, hash);
	json_t *frames = json_array();

	for (size_t i = 0; s && i < s->count && i < FRAMES_MAX; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(FRAME_BYTES);

		stack_text_frame(&b, &s->frames[i]);
		json_array_append_new(
			frames, mcp_clean_string_len(buf_str(&b), b.len, MCP_CLEAN_TEXT));
	}
	return frames;
}

static double us(uint64_t ns)
{
	return (double)(ns / 100) / 10;
}

static json_t *row_json(const struct stack_sum *r, const struct stack_list *stacks)
{
	json_t *processes = json_array();
	char scratch[32];

	for (size_t i = 0; i < r->process_count; i++)
		json_array_append_new(processes,
			json_pack("{s:I, s:o}", "pid", (json_int_t)r->pids[i], "process_name",
				mcp_clean_string(r->comms[i], MCP_CLEAN_NAME)));
	return json_pack("{s:o, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:o, s:o}", "hash",
		json_sprintf("%lld", (long long)r->total.hash), "source",
		wire_source_name(r->total.source), "operation",
		wire_op_name(r->total.source, r->total.op, scratch), "count",
		(json_int_t)r->total.calls, "total_us", us(r->total.ns), "avg_us",
		us(r->total.calls ? r->total.ns / r->total.calls : 0), "min_us",
		us(r->min_ns == UINT64_MAX ? 0 : r->min_ns), "max_us", us(r->max_ns), "processes",
		processes, "frames", frames_json(stacks, r->total.hash));
}

json_t *mcp_stack_list(const struct nodedb_content *content, const json_t *arguments, size_t limit,
	struct errinfo *reterr)
{
	const char *name = mcp_arg_text(arguments, "op");
	_cleanup_free_ struct stack_total *totals = NULL;
	_cleanup_free_ struct stack_sum *rows = calloc(limit + 1, sizeof(*rows));
	json_t *list;
	size_t count, n;

	if (!rows || stack_total_run(content->events, content->event_count,
			     name ? wire_op_by_name(name) : NULL, &totals, &count) < 0) {
		errinfo_set(reterr, -ENOMEM, "not enough memory");
		return NULL;
	}
	n = collect(content, totals, count, mcp_arg_text(arguments, "source"), rows, limit);
	list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, row_json(&rows[i], &content->stacks));
	return list;
}

void mcp_stacks(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = {.filter = {.stacks = NODEDB_STACKS_USED}};
	struct errinfo e = {0};
	json_t *list = NULL, *full;
	int r = mcp_part_read(mcp_settings_of(c)->db, arguments, &part, &content, &e);

	if (r == 0)
		list = mcp_stack_list(
			&content, arguments, (size_t)mcp_arg_int(arguments, "limit", LIMIT), &e);
	if (!list) {
		mcp_reply_error(a, r < 0 ? r : -ENOMEM, &e);
		return;
	}
	full = json_pack("{s:o, s:o}", "stacks", list, "range", mcp_range(&content, &part));
	if (!json_array_size(list))
		json_object_set_new(full, "note",
			json_string("no call of this selection was recorded with its stack"));
	else if (content.older_events)
		json_object_set_new(full, "warning",
			json_string("there are more events than are looked at: the oldest are "
				    "left out; give a shorter `since`"));
	mcp_reply(a, arguments, full, NULL);
}
