/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tool.c - see mcp_tool.h. */
#include "agent/serve/mcp_tool.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "agent/serve/mcp_clean.h"
#include "agent/serve/mcp_tsc.h"
#include "agent/store/lock.h"
#include "base/text.h"
#include "mcp/rpc.h"
#include "wire/names.h"

#define LIVE_NS        (300 * (int64_t)NS_PER_S)
#define TEXT_MAX_BYTES (1u << 20)

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t freed;
	unsigned running;
} reads = {.mutex = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

json_int_t mcp_arg_int(const json_t *arguments, const char *key, json_int_t otherwise)
{
	const json_t *v = json_object_get(arguments, key);

	return json_is_number(v) ? (json_int_t)json_number_value(v) : otherwise;
}

const char *mcp_arg_text(const json_t *arguments, const char *key)
{
	return json_string_value(json_object_get(arguments, key));
}

bool mcp_arg_compact(const json_t *arguments)
{
	const json_t *tsc = json_object_get(arguments, "tsc");

	return tsc ? json_is_true(tsc) : !json_object_get(arguments, "id");
}

static int find_pids(const json_t *arguments, struct mcp_part *p, struct errinfo *reterr)
{
	const json_t *list = json_object_get(arguments, "pids"), *one;
	json_int_t pid = mcp_arg_int(arguments, "pid", 0);
	size_t i;

	if (pid)
		p->pids[p->filter.pid_count++] = (uint32_t)pid;
	json_array_foreach (list, i, one) {
		if (p->filter.pid_count == MCP_PIDS_MAX)
			return errinfo_set(
				reterr, -EINVAL, "no more than %d processes", MCP_PIDS_MAX);
		p->pids[p->filter.pid_count++] = (uint32_t)json_number_value(one);
	}
	p->filter.pids = p->pids;
	return 0;
}

static int find_op(const json_t *arguments, struct mcp_part *p, struct errinfo *reterr)
{
	const char *name = mcp_arg_text(arguments, "op");
	const struct wire_op_row *op = name ? wire_op_by_name(name) : NULL;

	if (!name)
		return 0;
	if (!op)
		return errinfo_set(reterr, -EINVAL,
			"unknown op: use for example cudaLaunchKernel, "
			"cudaMemcpyAsync, cudaStreamSync, cuMemAlloc, ncclAllReduce");
	p->filter.source = op->source;
	p->filter.op = op->op;
	return 0;
}

static int find_time(
	const char *db, const json_t *arguments, struct mcp_part *p, struct errinfo *reterr)
{
	const char *text = mcp_arg_text(arguments, "since");
	struct nodedb_range range = {0};
	uint64_t since = LIVE_NS;
	int r;

	if (text && text_parse_duration(text, &since) < 0)
		return errinfo_set(reterr, -EINVAL,
			"since: give a duration such as 30s, 5m, 1h30m or 2d, or 0s for all");
	if (!text)
		p->writer = store_lock_holder(db);
	if ((!text && !p->writer) || !since)
		return 0;
	r = nodedb_range(db, &range, reterr);
	if (r == 0 && range.last_ns)
		p->filter.from_ns =
			MAX(range.last_ns - (int64_t)MIN(since, (uint64_t)INT64_MAX), INT64_C(1));
	return r;
}

int mcp_part_find(
	const char *db, const json_t *arguments, struct mcp_part *ret, struct errinfo *reterr)
{
	int r = find_pids(arguments, ret, reterr);

	if (r == 0)
		r = find_op(arguments, ret, reterr);
	return r < 0 ? r : find_time(db, arguments, ret, reterr);
}

static int take_turn(struct errinfo *reterr)
{
	struct timespec end;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (time_t)(MCP_READS_WAIT / NS_PER_S);
	pthread_mutex_lock(&reads.mutex);
	while (reads.running == MCP_READS_MAX && r == 0)
		r = pthread_cond_timedwait(&reads.freed, &reads.mutex, &end);
	if (r == 0)
		reads.running++;
	pthread_mutex_unlock(&reads.mutex);
	return r == 0 ? 0
		      : errinfo_set(reterr, -EBUSY,
				"%d requests are in progress: try again, or send fewer at once",
				MCP_READS_MAX);
}

void mcp_part_done(struct mcp_part *part)
{
	if (!part->turn)
		return;
	part->turn = false;
	pthread_mutex_lock(&reads.mutex);
	reads.running--;
	pthread_cond_signal(&reads.freed);
	pthread_mutex_unlock(&reads.mutex);
}

int mcp_part_read(const char *db, const json_t *arguments, struct mcp_part *part,
	struct nodedb_content *ret, struct errinfo *reterr)
{
	int r = mcp_part_find(db, arguments, part, reterr);

	if (r == 0)
		r = take_turn(reterr);
	if (r < 0)
		return r;
	part->turn = true;
	return nodedb_read(db, &part->filter, ret, reterr);
}

json_t *mcp_range(const struct nodedb_content *c, const struct mcp_part *part)
{
	_cleanup_json_ json_t *raw = json_pack("{s:I, s:I}", "first_seen_ns",
		(json_int_t)c->first_ns, "last_seen_ns", (json_int_t)c->last_ns);
	_cleanup_json_ json_t *times = mcp_tsc_full(raw);
	json_t *range =
		json_pack("{s:o, s:O, s:O, s:I}", "node", mcp_clean_string(c->node, MCP_CLEAN_NAME),
			"from", json_object_get(times, "first_seen"), "to",
			json_object_get(times, "last_seen"), "events", (json_int_t)c->event_count);

	if (c->skipped_rows)
		json_object_set_new(
			range, "damaged_rows", json_integer((json_int_t)c->skipped_rows));
	if (c->older_events)
		json_object_set_new(
			range, "older_events", json_integer((json_int_t)c->older_events));
	if (part && part->writer)
		json_object_set_new(range, "note",
			json_string("a trace is recording: these are its last 5 minutes; since "
				    "\"0s\" asks for all"));
	return range;
}

void mcp_reply_value(struct answer *a, json_t *value, const char *prose)
{
	_cleanup_buf_ struct buf text = BUF_INIT(2 * TEXT_MAX_BYTES);
	_cleanup_free_ char *json = NULL;

	if (value && !prose)
		json = json_dumps(value, RPC_DUMP);
	if (!json && !prose) {
		json_decref(value);
		answer_fail(a, "not enough memory for the answer");
		return;
	}
	a->structured = value;
	mcp_clean_block(&text, json ? json : prose);
	if (text.err)
		answer_fail(
			a, "the answer is too large: give a shorter `since`, a `pid` or a `limit`");
	else
		answer_text(a, buf_str(&text));
}

void mcp_reply(struct answer *a, const json_t *arguments, json_t *full, const char *prose)
{
	_cleanup_buf_ struct buf body = BUF_INIT(2 * TEXT_MAX_BYTES);

	if (full && mcp_arg_compact(arguments)) {
		json_t *compact = mcp_tsc_pack(full);

		json_decref(full);
		mcp_reply_value(a, compact, NULL);
		return;
	}
	if (full && !prose)
		mcp_tsc_outline(&body, full);
	mcp_reply_value(a, full, prose ? prose : buf_str(&body));
}

void mcp_reply_error(struct answer *a, int err, const struct errinfo *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2048);

	mcp_clean_put(&b, e->text, strlen(e->text), sizeof(e->text), false);
	answer_fail(a, "%s", b.len ? buf_str(&b) : strerror(-err));
}
