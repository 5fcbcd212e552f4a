/* SPDX-License-Identifier: Apache-2.0 */
/* range.c - see range.h. */
#include "cli/range.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/nodedb.h"
#include "store/lock.h"
#include "store/read/nodedb_snapshot.h"
#include "base/text.h"
#include "base/clock.h"
#include "sql/sql_guard.h"
#include "sql/sql_table.h"
#include "wire/op_kind.h"

#define PIDS_NAMED 8
#define ASK_NS     (10 * NS_PER_S)

/* -EINVAL if the flags contradict each other. */
static int range_check(const struct time_request *asked, struct errinfo *reterr)
{
	if (asked->all && (asked->from || asked->to || asked->since_ns))
		return errinfo_set(
			reterr, -EINVAL, "give either --all or a time (--from, --to, --since)");
	return 0;
}

int range_request(const struct time_request *asked, const struct nodedb_filter *f,
	struct answer_request *ret, struct errinfo *reterr)
{
	int r = range_check(asked, reterr);

	if (r < 0)
		return r;
	*ret = (struct answer_request){.flag = "--",
		.since_ns = asked->since_ns,
		.all = asked->all,
		.last = f->last,
		.source = f->scope.source,
		.op = f->scope.op,
		.pid_count = MIN(f->scope.pid_count, (size_t)ANSWER_PIDS_MAX)};
	for (size_t i = 0; i < ret->pid_count; i++)
		ret->pids[i] = f->scope.pids[i];
	snprintf(ret->from, sizeof(ret->from), "%s", asked->from ? asked->from : "");
	snprintf(ret->to, sizeof(ret->to), "%s", asked->to ? asked->to : "");
	snprintf(ret->node, sizeof(ret->node), "%s", f->scope.node ? f->scope.node : "");
	return 0;
}

struct resolved {
	struct scope scope;
	struct range_note note;
};

static int keep_scope(const struct question *q, void *arg, struct errinfo *reterr)
{
	struct resolved *ret = arg;

	*ret = (struct resolved){q->scope, range_note_of(q)};
	return 0;
}

int range_resolve(const char *path, const struct time_request *asked, struct nodedb_filter *f,
	struct range_note *ret_note, struct errinfo *reterr)
{
	_cleanup_free_ struct answer_request *request = calloc(1, sizeof(*request));
	struct resolved found = {0};
	int r = request ? range_request(asked, f, request, reterr) : -ENOMEM;

	if (r == 0)
		r = answer_ask(path, request, 0, keep_scope, &found, reterr);
	if (r < 0)
		return r;
	f->scope.from_ns = found.scope.from_ns;
	/* an incident may be found after the last event that it is about */
	f->scope.to_ns = request->to[0] ? found.scope.to_ns : 0;
	*ret_note = found.note;
	return 0;
}

static int keep_pids(const struct question *q, void *arg, struct errinfo *reterr)
{
	struct option_pids *ret = arg;

	ret->count = q->scope.pid_count;
	memcpy(ret->pid, q->scope.pids, ret->count * sizeof(ret->pid[0]));
	return 0;
}

int range_rank(const char *path, int64_t rank, const char *node, struct option_pids *pids,
	struct errinfo *reterr)
{
	_cleanup_free_ struct answer_request *request = calloc(1, sizeof(*request));

	if (rank < 0 || !request)
		return rank < 0 ? 0 : -ENOMEM;
	if (pids->count)
		return errinfo_set(reterr, -EINVAL, "give either --pid or --rank");
	request->has_rank = true;
	request->rank = (int32_t)rank;
	snprintf(request->node, sizeof(request->node), "%s", node ? node : "");
	return answer_ask(path, request, 0, keep_pids, pids, reterr);
}

static int count_events(const struct question *q, void *arg, struct errinfo *reterr)
{
	return nodedb_snapshot_count(q->snapshot, &q->scope, 1, arg, reterr);
}

static bool has_pid(const struct nodedb_usage *u, const struct option_pids *pids)
{
	for (size_t i = 0; i < pids->count; i++)
		if (u->pid == pids->pid[i])
			return true;
	return false;
}

/* The busiest, those that use a GPU or all; false: there are none. */
static bool list_processes(
	struct buf *b, const struct nodedb_usage *rows, size_t count, bool gpu_only)
{
	uint32_t last = 0;
	int listed = 0;

	for (size_t i = 0; i < count; i++) {
		if (rows[i].pid == last || !rows[i].pid ||
			(gpu_only && !op_kind_is_gpu(rows[i].source)))
			continue;
		last = rows[i].pid;
		if (listed == PIDS_NAMED) {
			buf_puts(b, ", …");
			break;
		}
		buf_printf(b, "%s%u", listed++ ? ", " : "", last);
		if (rows[i].comm[0]) {
			buf_puts(b, " (");
			text_escape_terminal(b, rows[i].comm);
			buf_puts(b, ")");
		}
	}
	return listed > 0;
}

/* Of files without counts (the published agent's, short ones). */
static bool list_callers(struct buf *b, const char *path)
{
	static const struct sql_guard_rules rules = {.rows_max = PIDS_NAMED, .timeout_ns = ASK_NS};
	_cleanup_(sql_table_done) struct sql_table t = {0};

	if (nodedb_ask(path,
		    "SELECT pid, count(*) FROM events WHERE " OP_KIND_GPU_SQL
		    " GROUP BY 1 ORDER BY 2 DESC",
		    &rules, &t, NULL, NULL) < 0)
		return false;
	for (size_t i = 0; i < t.row_count; i++)
		buf_printf(b, "%s%lld", i ? ", " : "", (long long)sql_table_cell(&t, i, 0)->i);
	return t.row_count > 0;
}

int range_pids(const char *path, const struct option_pids *pids, struct errinfo *reterr)
{
	_cleanup_free_ struct answer_request *request = calloc(1, sizeof(*request));
	_cleanup_free_ struct nodedb_usage *rows = NULL;
	_cleanup_buf_ struct buf list = BUF_INIT(4096);
	const struct nodedb_filter f = {.scope = {.pids = pids->pid, .pid_count = pids->count}};
	const struct nodedb_filter all = {0};
	uint64_t events = 0;
	size_t count = 0;
	int r;

	if (!pids->count || !request)
		return pids->count ? -ENOMEM : 0;
	r = range_request(&(const struct time_request){.all = true}, &f, request, reterr);
	if (r == 0)
		r = answer_ask(path, request, 0, count_events, &events, reterr);
	if (r == 0 && !events)
		r = nodedb_usage(path, &all, &rows, &count, reterr);
	if (r < 0 || events)
		return r;
	for (size_t i = 0; i < count; i++)
		if (has_pid(&rows[i], pids))
			return 0;
	if (!list_processes(&list, rows, count, true) &&
		!list_processes(&list, rows, count, false) && !list_callers(&list, path))
		return 0; /* the recording names nobody: what follows says so */
	return errinfo_set(reterr, -ESRCH, "process %u is not in this recording, which has %s",
		pids->pid[0], buf_str(&list));
}

struct range_note range_note_of(const struct question *q)
{
	return (struct range_note){
		.writer = q->live && q->by_default
				  ? store_lock_holder(nodedb_snapshot_path(q->snapshot))
				  : 0,
		.runs = q->runs,
		.run_ns = q->scope.from_ns};
}

void range_print(const struct range_note *note)
{
	char since[WHEN_UTC_MAX], runs[TEXT_PLURAL_MAX];

	if (note->writer)
		fprintf(stderr,
			"ingero: process %ld is recording to this file: showing the last 5m; use --all for all of it\n",
			(long)note->writer);
	if (note->runs)
		fprintf(stderr,
			"ingero: this file holds %s of ingero trace: showing the newest, since %.19sZ; use --all for all of them\n",
			text_format_plural(runs, note->runs, "runs"),
			when_utc(since, (wall_time){note->run_ns}));
}
