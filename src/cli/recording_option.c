/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/recording_option.h"

#include <signal.h>
#include <strings.h>

#include "base/path_user.h"
#include "base/text.h"
#include "cli/progress.h"
#include "sql/sql_guard.h"
#include "store/lock.h"
#include "store/merge/nodedb_merge.h"
#include "store/write/retention.h"
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

	r = r ?: answer_ask(path, request, 0, keep_scope, &found, reterr);
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

static int range_rank(const char *path, int64_t rank, const char *node, struct option_pids *pids,
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
	return EXISTS(i, pids->count, u->pid == pids->pid[i]);
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
	r = r ?: answer_ask(path, request, 0, count_events, &events, reterr);
	if (r == 0 && !events)
		r = nodedb_usage(path, &all, &rows, &count, reterr);
	if (r < 0 || events)
		return r;
	if (EXISTS(i, count, has_pid(&rows[i], pids)))
		return 0;
	if (!list_processes(&list, rows, count, true) &&
		!list_processes(&list, rows, count, false) && !list_callers(&list, path))
		return 0; /* the recording names nobody: what follows says so */
	return errinfo_set(reterr, -ESRCH, "process %u is not in this recording, which has %s",
		pids->pid[0], buf_str(&list));
}

int range_processes(const char *path, struct option_pids *pids, int64_t rank, const char *node,
	struct errinfo *reterr)
{
	int r = range_pids(path, pids, reterr);

	return r < 0 ? r : range_rank(path, rank, node, pids, reterr);
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
	char since[WHEN_UTC_MAX];

	if (note->writer)
		fprintf(stderr,
			"ingero: process %ld is recording to this file: showing the last 5m; use --all for all of it\n",
			(long)note->writer);
	if (note->runs) {
		when_utc(since, (wall_time){note->run_ns});
		fprintf(stderr,
			"ingero: showing the newest of %s in this file, from %.10s %.8s UTC; --all shows all of them\n",
			TEXT_PLURAL(note->runs, "runs"), since, since + 11);
	}
}

/* Of ingero-trace.service. Its folder is closed to others; it is nobody's own, so it is never taken unasked. */
#define SERVICE_DB "/var/lib/ingero/ingero.db"

/* Names are typed without their end. */
static int suggest_ending(const char *given, struct errinfo *reterr)
{
	char longer[PATH_MAX];

	if (access(given, F_OK) == 0 || errno != ENOENT ||
		snprintf(longer, sizeof(longer), "%s.db", given) >= (int)sizeof(longer) ||
		access(longer, F_OK) < 0)
		return 0; /* whoever opens it says what is wrong */
	return errinfo_set(reterr, -ENOENT, "%s does not exist: did you mean %s?", given, longer);
}

int db_option_path(
	const char *given, char **ret_default, const char **ret_path, struct errinfo *reterr)
{
	int r;

	if (given) {
		*ret_path = given;
		return suggest_ending(given, reterr);
	}
	r = store_default_path(ret_default, reterr);
	if (r < 0)
		return r;
	*ret_path = *ret_default;
	if (access(*ret_path, F_OK) == 0 || errno != ENOENT)
		return 0;
	if (access(SERVICE_DB, F_OK) == 0 || errno == EACCES)
		return errinfo_set(reterr, -ENOENT,
			"you have no recording of your own (%s does not exist): for the service's, use sudo and --db " SERVICE_DB,
			*ret_path);
	return errinfo_set(reterr, -ENOENT,
		"no recording yet (%s does not exist): start one with `sudo ingero trace`, choose another file with --db, or see an example with `ingero demo`",
		*ret_path);
}

int node_option_list(const char *path, const char *name, struct nodedb_node **ret,
	size_t *ret_count, struct errinfo *reterr)
{
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	size_t count = 0;
	int r = nodedb_nodes(path, &nodes, &count, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; name && i < count; i++)
		if (!strcmp(nodes[i].name, name)) {
			nodes[0] = nodes[i];
			*ret = TAKE(nodes);
			*ret_count = 1;
			return 0;
		}
	if (name) {
		_cleanup_buf_ struct buf b = BUF_INIT(300);

		for (size_t i = 0; i < count; i++) {
			buf_puts(&b, i ? ", " : "");
			text_escape_terminal(&b, nodes[i].name);
		}
		if (!count)
			return errinfo_set(
				reterr, -EINVAL, "--node: the recording has no node names");
		return errinfo_set(reterr, -EINVAL, "--node: the recording has %s%s", buf_str(&b),
			b.err ? "…" : "");
	}
	*ret = TAKE(nodes);
	*ret_count = count;
	return 0;
}

static int source_of(const char *text, size_t len)
{
	for (const struct wire_source_row *s = wire_sources; s->json; s++)
		if ((strlen(s->json) == len && !strncasecmp(s->json, text, len)) ||
			(strlen(s->sql) == len && !strncasecmp(s->sql, text, len)))
			return s->id;
	return -1;
}

int op_option_find(const char *text, const struct wire_op_row **ret_op, struct errinfo *reterr)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	const struct wire_op_row *op = NULL;

	if (!text) {
		*ret_op = NULL;
		return 0;
	}
	op = wire_op_by_name(colon ? colon + 1 : text);
	if (op && (!colon || source_of(text, (size_t)(colon - text)) == op->source)) {
		*ret_op = op;
		return 0;
	}
	return errinfo_set(reterr, -EINVAL,
		"--op %.100s: unknown operation: use for example cudaLaunchKernel, cudaMemcpyAsync, driver:cuMemAlloc, host:sched_switch or ncclAllReduce",
		TEXT_SHOWN(text));
}

/* The merged file has a name while it is read, because SQL runs in a process
 * that opens it; so a signal takes it away before it ends the program. */

#define FILE_NAME "all.db"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
static struct rolled *volatile now; /* what a signal takes away */
static volatile sig_atomic_t is_merging, stopped;

/* Only what a handler may call. The merge's own file has another name: it is told to stop. */
static void take_away(const struct rolled *r)
{
	unlink(r->path);
	rmdir(r->folder);
}

static void on_signal(int number)
{
	stopped = number;
	if (is_merging)
		return;
	if (now)
		take_away(now);
	signal(number, SIG_DFL);
	raise(number);
}

static bool report(void *arg _unused_, size_t source _unused_, uint64_t events _unused_)
{
	return !stopped;
}

static int make_folder(struct rolled *r, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	const char *tmp = getenv("TMPDIR");
	int err;

	snprintf(r->folder, sizeof(r->folder), "%s/ingero-rolled-XXXXXX",
		tmp && tmp[0] == '/' ? tmp : "/var/tmp");
	err = path_user_enter(r->folder, &before, reterr); /* the merge makes its file so, too */
	if (err < 0) {
		r->folder[0] = 0;
		return err;
	}
	if (!mkdtemp(r->folder)) {
		err = errno;
		errinfo_set_exit(reterr, EXIT_NO_CREATE, -err,
			"cannot make a folder for the merged recordings (%s): %s", r->folder,
			strerror(err));
		r->folder[0] = 0;
		return -err;
	}
	if (snprintf(r->path, sizeof(r->path), "%s/" FILE_NAME, r->folder) >= (int)sizeof(r->path))
		return -ENAMETOOLONG;
	return 0;
}

static int merge(const struct rollover_list *files, const char *path, const struct rolled *r,
	struct errinfo *reterr)
{
	_cleanup_(merge_result_done) struct merge_result result = {0};
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	_cleanup_free_ const char **sources = calloc(files->count + 1, sizeof(*sources));
	struct merge_options options = {.sources = sources,
		.source_count = files->count + 1,
		.output = r->path,
		.report = report};

	if (!sources)
		return -ENOMEM;
	for (size_t i = 0; i < files->count; i++)
		sources[i] = files->paths[i];
	sources[files->count] = path;
	progress_begin(&progress, STDERR_FILENO, "merging rolled-over recordings");
	return nodedb_merge(&options, &result, reterr);
}

static int rolled_open(const char *path, struct rolled *ret, struct errinfo *reterr)
{
	_cleanup_(rollover_list_done) struct rollover_list files = {0};
	int r = rollover_list(path, &files, reterr);

	if (r < 0)
		return r;
	fprintf(stderr, "ingero: %s and the present one\n",
		TEXT_PLURAL(files.count, "rolled-over recordings"));
	if (snprintf(ret->path, sizeof(ret->path), "%s", path) >= (int)sizeof(ret->path))
		return -ENAMETOOLONG;
	if (!files.count)
		return 0;
	r = make_folder(ret, reterr);
	if (r < 0)
		return r;
	is_merging = true;
	now = ret;
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		sigaction(ending[i],
			&(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL);
	r = merge(&files, path, ret, reterr);
	is_merging = false;
	if (stopped)
		on_signal(stopped);
	return r;
}

int rolled_option(bool asked, struct rolled *r, struct time_request *range, const char **path,
	struct errinfo *reterr)
{
	int res = asked ? rolled_open(*path, r, reterr) : 0;

	if (!asked || res < 0)
		return res;
	*path = r->path;
	/* each of its files begins a run of its own */
	range->all = range->all || time_request_is_empty(range);
	return 0;
}

void rolled_done(struct rolled *r)
{
	if (!r->folder[0])
		return;
	now = NULL;
	take_away(r);
	r->folder[0] = 0;
}
