/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_query.c - `ingero query`: a recording's events by filters, the answer to a question of the API, or to an SQL
 * statement, here or of many nodes at once. Never changes the file; a statement runs in a process of its own
 * (sql/sql_worker.h). */
#include <strings.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/recording_option.h"
#include "command/program.h"
#include "cli/fleet.h"
#include "cli/progress.h"
#include "answer/encode/report.h"
#include "answer/encode/report_json.h"
#include "answer/collectives.h"
#include "answer/ops.h"
#include "store/read/nodedb_snapshot.h"
#include "serve/serve.h"
#include "sql/sql_worker.h"

#define TABLE_KERNELS 10
#define LIST_ROWS     10000 /* events printed one by one, unless --limit says otherwise */
#define SQL_ROWS      1000
#define SQL_WORDS     256 /* of one that was not quoted */
#define SQL_MAX       SQL_WORKER_ROWS_MAX
#define OPS_NAMED     8
#define SQL_TIMEOUT   (10 * NS_PER_S)
#define OUTPUT_MAX    (1u << 30)

struct query_settings {
	const char *db, *op, *node;
	struct option_pids pids;
	int64_t rank;
	struct time_request range;
	int64_t limit;
	uint64_t timeout_ns;
	bool json, csv, annotations, rolled;
	struct fleet_options fleet;
};

#define OPTION(field) offsetof(struct query_settings, field)
static const struct option_row query_options[] = {
	DB_OPTION(struct query_settings, db),
	OPTION_SHORT(PIDS, "pid", 'p', OPTION(pids), "N", "only these process ids"),
	RANK_OPTION(struct query_settings, rank),
	OPTION_ROW(STRING, "op", OPTION(op), "NAME",
		"only this operation: cudaMemcpyAsync, or driver:cuMemAlloc"),
	OPTION_ROW(STRING, "node", OPTION(node), "NAME",
		"only this node of a merged recording (default: all)"),
	RANGE_OPTIONS(struct query_settings, range),
	OPTION_WITHIN(INT, "limit", OPTION(limit), "N", -1, INT32_MAX,
		"only the newest N events, -1: all (default: all in tables, 10000 in lists); SQL: at most N rows (default: 1000, maximum: 10000)"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL, "print one JSON object per line"),
	OPTION_ROW(FLAG, "csv", OPTION(csv), NULL, "SQL only: print comma-separated values"),
	OPTION_ROW(FLAG, "annotations", OPTION(annotations), NULL,
		"list events with the labels (`ingero annotate`) in effect"),
	ROLLED_OPTION(struct query_settings, rolled),
	OPTION_WITHIN(DURATION, "timeout", OPTION(timeout_ns), "TIME", 1, 0,
		"SQL only: timeout (default: 10s; 5s per node)"),
	FLEET_OPTIONS(struct query_settings, fleet),
	OPTION_END,
};

static int print(const struct buf *b, struct errinfo *reterr)
{
	if (b->err)
		return errinfo_set(reterr, b->err,
			"the output is too large: give a time range, --op or --limit");
	fwrite(buf_str(b), 1, b->len, stdout); /* dispatch_flush() sees what failed */
	return 0;
}

static int print_events(const struct query_settings *s, const struct nodedb_content *c,
	const struct nodedb_filter *f, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(OUTPUT_MAX);
	struct query_view v = {.content = c,
		.since_ns = s->range.since_ns,
		.pids = s->pids.pid,
		.pid_count = s->pids.count,
		.labels = s->annotations,
		.limit = s->limit > 0 ? (size_t)s->limit : 0,
		.node = f->scope.node};

	if (s->json)
		query_json(&b, &v);
	else
		query_list(&b, &v);
	return print(&b, reterr);
}

/* What lines of events do not say of themselves. */
static void print_rest(const struct query_settings *s, const struct nodedb_content *c, size_t last)
{
	if (last && !s->limit && c->event_count == last)
		fprintf(stderr,
			"ingero: only the newest %s events are shown; --limit -1 shows all\n",
			TEXT_COUNT(last));
	if (s->json && c->skipped_rows)
		fprintf(stderr, "ingero: %s omitted\n",
			TEXT_PLURAL(c->skipped_rows, "damaged rows"));
	if (s->json && c->older_events)
		fprintf(stderr, "ingero: %s omitted\n",
			TEXT_PLURAL(c->older_events, "older events"));
}

static int print_node(const struct query_settings *s, const char *path,
	const struct nodedb_filter *f, struct errinfo *reterr)
{
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	int r;

	progress_begin(&progress, STDERR_FILENO, "reading the recording");
	r = nodedb_read(path, f, &content, reterr);
	progress_done(&progress);
	if (r < 0)
		return r;
	r = print_events(s, &content, f, reterr);
	if (r == 0)
		print_rest(s, &content, f->last);
	return r;
}

/* Lists say whose events they are, so that they come node by node. */
static int print_lists(const struct query_settings *s, const char *path, struct nodedb_filter *f,
	const struct nodedb_node *nodes, size_t node_count, struct errinfo *reterr)
{
	struct range_note note = {0};
	int r;

	f->last = s->limit > 0 ? (size_t)s->limit : s->limit == 0 ? LIST_ROWS : 0;
	f->labels = s->annotations;
	f->names = true;
	f->stacks = s->json ? NODEDB_STACKS_USED : NODEDB_STACKS_NONE;
	r = range_resolve(path, &s->range, f, &note, reterr);
	if (r == 0 && node_count < 2)
		r = print_node(s, path, f, reterr);
	for (size_t i = 0; r == 0 && node_count > 1 && i < node_count; i++) {
		f->scope.node = nodes[i].name;
		r = print_node(s, path, f, reterr);
	}
	if (r == 0)
		range_print(&note);
	return r;
}

/* How fast collectives were, below the table; nothing where there are none, or others were asked for. */
static int put_collectives(const struct question *q, const struct query_settings *s, struct buf *b,
	struct errinfo *reterr)
{
	_cleanup_(collectives_answer_done) struct collectives_answer a = {0};
	int r;

	if (s->op || s->limit)
		return 0;
	r = answer_collectives(q, &a, reterr);
	if (r == 0 && a.calls)
		collectives_text(b, &a);
	return r;
}

/* --op of what nobody called: what was called instead. */
static int put_other_ops(const struct question *q, struct buf *b, struct errinfo *reterr)
{
	_cleanup_(ops_answer_done) struct ops_answer a = {0};
	struct question all = *q;
	int r;

	all.scope.source = all.scope.op = 0;
	r = answer_ops(&all, &a, reterr);
	for (size_t i = 0; r == 0 && i < MIN(a.count, (size_t)OPS_NAMED); i++)
		buf_printf(b, "%s%s", i ? ", " : "  Operations that it has: ",
			WIRE_OP_NAME(a.rows[i].source, a.rows[i].op));
	if (r == 0 && a.count)
		buf_puts(b, a.count > OPS_NAMED ? ", …\n" : "\n");
	return r;
}

static int print_table(const struct question *q, void *arg, struct errinfo *reterr)
{
	const struct query_settings *s = arg;
	struct range_note note = range_note_of(q);
	_cleanup_(ops_answer_done) struct ops_answer a = {0};
	_cleanup_(sql_table_done) struct sql_table kernels = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(OUTPUT_MAX);
	struct query_head head = {.since_ns = s->range.since_ns,
		.pids = s->pids.pid,
		.pid_count = s->pids.count,
		.limit = q->request->last,
		.first_ns = q->scope.from_ns,
		.last_ns = q->scope.to_ns};
	struct host_answer host = {0};
	int r = answer_ops(q, &a, reterr);

	r = r ?: answer_host(q, &host, reterr);
	r = r ?: nodedb_snapshot_count(q->snapshot, &q->scope, UINT64_MAX, &head.events, reterr);
	if (r < 0)
		return r;
	if (head.limit)
		head.events = MIN(head.events, (uint64_t)head.limit);
	head.calls = a.all_calls;
	head.skipped_rows = a.damaged_rows;
	head.older_events = a.older_rows;
	r = answer_kernels(q, TABLE_KERNELS, &kernels, reterr);
	if (r < 0)
		return r;
	query_table(&b, &head, &a, &host);
	if (s->op && !head.events && !head.calls)
		r = put_other_ops(q, &b, reterr);
	if (r < 0)
		return r;
	/* Of processes, whatever the time: nothing where nothing was called in it. */
	if (!q->scope.source && head.calls)
		kernels_text(&b, &kernels);
	r = put_collectives(q, s, &b, reterr) ?: print(&b, reterr);
	if (r == 0)
		range_print(&note);
	return r;
}

static int run_filters(const struct query_settings *s, const char *path, struct errinfo *reterr)
{
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	_cleanup_free_ struct answer_request *request = calloc(1, sizeof(*request));
	struct nodedb_filter f = {.scope.pids = s->pids.pid,
		.scope.pid_count = s->pids.count,
		.scope.node = s->node,
		.last = s->limit > 0 ? (size_t)s->limit : 0};
	const struct wire_op_row *op = NULL;
	size_t count = 0;
	int r = op_option_find(s->op, &op, reterr);

	if (!request)
		return -ENOMEM;
	r = r ?: node_option_list(path, s->node, &nodes, &count, reterr);
	if (r == 0 && op) {
		f.scope.source = op->source;
		f.scope.op = op->op;
	}
	if (r == 0 && (s->json || s->annotations))
		return print_lists(s, path, &f, nodes, count, reterr);
	r = r ?: range_request(&s->range, &f, request, reterr);
	return r < 0 ? r : answer_ask(path, request, 0, print_table, (void *)s, reterr);
}

/* Whoever counts or averages over rows must know that they are a selection. */
static void print_selection(const char *text)
{
	static const char *const stats[] = {"count", "avg", "sum", "total"};
	bool has_stats = false;

	for (size_t i = 0; i < ARRAY_SIZE(stats); i++)
		has_stats = has_stats || strcasestr(text, stats[i]);
	if (has_stats && strcasestr(text, "events") && !strcasestr(text, "event_aggregates"))
		fprintf(stderr,
			"ingero: `events` is sampled; totals are in event_aggregates (count, sum_dur)\n");
}

static int check_sql_flags(const struct query_settings *s, struct errinfo *reterr)
{
	if (s->json && s->csv)
		return errinfo_set(reterr, -EINVAL, "give either --json or --csv");
	if (s->limit < 0 || s->limit > SQL_MAX)
		return errinfo_set(
			reterr, -EINVAL, "--limit: with SQL, from 1 to %d rows", SQL_MAX);
	if (s->op || s->node || s->pids.count || s->rank >= 0 || s->annotations || s->range.from ||
		s->range.to || s->range.since_ns)
		return errinfo_set(reterr, -EINVAL,
			"--op, --node, --pid, --rank, --from, --to, --since and --annotations do not go "
			"with SQL: write them as a WHERE clause");
	return 0;
}

static enum sql_output sql_form(const struct query_settings *s)
{
	return s->json ? SQL_OUTPUT_JSON : s->csv ? SQL_OUTPUT_CSV : SQL_OUTPUT_TABLE;
}

static int run_sql(const struct query_settings *s, const char *path, const char *text,
	struct buf *hint, struct errinfo *reterr)
{
	struct sql_guard_rules rules = {.timeout_ns = s->timeout_ns ? s->timeout_ns : SQL_TIMEOUT,
		.rows_max = s->limit ? (size_t)s->limit : SQL_ROWS};
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	_cleanup_(sql_table_done) struct sql_table table = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(OUTPUT_MAX);
	int r = check_sql_flags(s, reterr);

	if (r < 0)
		return r;
	progress_begin(&progress, STDERR_FILENO, "running the SQL");
	r = nodedb_ask(path, text, &rules, &table, hint, reterr);
	progress_done(&progress);
	if (r == -ETIMEDOUT)
		return errinfo_set_exit(reterr, EXIT_FAILED, r,
			"the SQL timed out after %s: select less, or raise --timeout",
			TEXT_DURATION(rules.timeout_ns));
	if (r < 0)
		return r;
	sql_output_write(&b, &table, sql_form(s), isatty(STDOUT_FILENO));
	r = print(&b, reterr);
	if (r < 0)
		return r;
	if (table.truncated)
		fprintf(stderr,
			"ingero: truncated to the first %zu rows; --limit allows up to %d\n",
			table.row_count, SQL_MAX);
	print_selection(text);
	return 0;
}

/* What the API would say to this, in JSON: its questions and their parameters. */
static int run_question(const struct query_settings *s, const char *path, const char *target,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(OUTPUT_MAX);
	int r;

	if (check_sql_flags(s, NULL) < 0 || s->limit || s->csv || s->timeout_ns)
		return errinfo_set(reterr, -EINVAL,
			"a path of the API takes parameters after a question mark, not flags: '/api/v1/ops?since=5m'");
	r = serve_ask(path, target, &b, reterr);
	buf_putc(&b, '\n');
	return r < 0 ? r : print(&b, reterr);
}

/* The statement's rows of all nodes; the exit code, or a negative errno. */
static int run_fleet(
	const struct query_settings *s, struct fleet *f, const char *text, struct errinfo *reterr)
{
	struct fanout_question q = {.kind = FANOUT_SQL, .sql = text, .limit = (size_t)s->limit};
	_cleanup_(fanout_result_done) struct fanout_result result = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(OUTPUT_MAX);
	int r = check_sql_flags(s, reterr);

	r = r ?: fleet_ask(f, &q, &result, reterr);
	if (r < 0)
		return r;
	if (result.ok_count) {
		sql_output_write(&b, &result.table, sql_form(s), isatty(STDOUT_FILENO));
		r = print(&b, reterr);
		fflush(stdout); /* rows first, then what is said about them */
	}
	if (r < 0)
		return r;
	r = fleet_print(&result);
	if (result.ok_count) {
		fprintf(stderr, "%s%s from %s\n", s->json || s->csv ? "" : "\n  ",
			TEXT_PLURAL(result.table.row_count, "rows"),
			TEXT_PLURAL(result.ok_count, "nodes"));
		print_selection(text);
	}
	return r;
}

/* Whether the question goes to other nodes; then *ret_code is the exit code. */
static int try_fleet(const struct query_settings *s, const char *text, bool *ret_asked,
	int *ret_code, struct errinfo *reterr)
{
	_cleanup_(fleet_done) struct fleet f = {0};
	struct fleet_options options = s->fleet;
	int r;

	options.timeout_ns = s->timeout_ns;
	if (!text && !options.nodes.count)
		return 0; /* filters look at a recording */
	r = fleet_open(&options, s->db, &f, reterr);
	if (r < 0 || !f.fanout)
		return r;
	if (s->rolled)
		return errinfo_set(reterr, -EINVAL,
			"--include-rolled reads files of this machine and cannot be combined with --nodes");
	if (!text)
		return errinfo_set(reterr, -EINVAL,
			"--nodes needs an SQL statement: ingero query --nodes … \"SELECT …\"");
	r = run_fleet(s, &f, text, reterr);
	if (r < 0)
		return r;
	*ret_asked = true;
	*ret_code = r;
	return 0;
}

/* A shell has cut the statement at its spaces, or a file stands where none is expected. */
static int check_words(int argc, char **argv, struct errinfo *reterr)
{
	bool is_sql = argc > 1 && (!strcasecmp(argv[0], "select") || !strcasecmp(argv[0], "with"));

	for (int i = 0; !is_sql && i < argc; i++)
		if (access(argv[i], F_OK) == 0)
			return errinfo_set(reterr, -EINVAL,
				"query: unexpected argument '%.100s': use --db to name a recording",
				argv[i]);
	return argc < 2
		       ? 0
		       : errinfo_set(reterr, -EINVAL,
				 "query takes one SQL statement: put it in quotes, ingero query \"SELECT …\"");
}

static int load_caveats(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	return nodedb_snapshot_caveats(l, arg, reterr);
}

/* Whoever reads rows must know that the last ones may be missing, and which counts are estimates. */
static void print_caveats(const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	struct accounting books = {0};

	if (nodedb_snapshot_read(path, load_caveats, &books, NULL) < 0)
		return;
	if (accounting_put_unclean(&books, &b))
		fprintf(stderr, "ingero: %s\n", buf_str(&b));
	buf_clear(&b);
	if (accounting_put_launches(&books, &b))
		fprintf(stderr, "ingero: %s\n", buf_str(&b));
}

static int query_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	struct query_settings *s = settings;
	_cleanup_buf_ struct buf hint = BUF_INIT(1 << 14);
	_cleanup_(rolled_done) struct rolled rolled = {0};
	bool asked = false;
	int code = EXIT_OK;
	_cleanup_free_ char *default_path = NULL;
	const char *path = NULL;
	struct errinfo e = {0};
	int r = check_words(argc, argv, &e);

	r = r ?: try_fleet(s, argc ? argv[0] : NULL, &asked, &code, &e);
	if (r == 0 && asked)
		return code;
	r = r ?: db_option_path(s->db, &default_path, &path, &e);
	r = r ?: rolled_option(s->rolled, &rolled, &s->range, &path, &e);
	if (r == 0 && argc && strncmp(argv[0], "/api/", 5) == 0)
		r = run_question(s, path, argv[0], &e);
	else if (r == 0 && argc)
		r = run_sql(s, path, argv[0], &hint, &e);
	else if (r == 0 && (s->csv || s->timeout_ns))
		r = errinfo_set(&e, -EINVAL, "--csv and --timeout require an SQL statement");
	else if (r == 0 && (r = range_processes(path, &s->pids, s->rank, s->node, &e)) == 0)
		r = run_filters(s, path, &e);
	if (r >= 0) {
		fflush(stdout); /* rows first, then what is said about them */
		print_caveats(path);
		return EXIT_OK;
	}
	r = dispatch_fail(&e, r);
	if (hint.len)
		fprintf(stderr, "%s\n", buf_str(&hint));
	return r;
}

const struct command cmd_query = {
	.name = "query",
	.synopsis = "query [SQL | QUESTION] [flags]",
	.summary = "Show recorded events by filters or by SQL; read-only",
	.details =
		"  ingero query --since 10m --op cudaMemcpyAsync   statistics of one operation\n"
		"  ingero query --pid 4242 --json                  every event, with its stack\n"
		"  ingero query \"SELECT op, count(*) FROM events GROUP BY op\" --csv\n"
		"  ingero query --nodes gpu-1:8080,gpu-2:8080 \"SELECT …\"   on many nodes\n"
		"  ingero query '/api/v1/losses'                   a question of the API, as JSON\n"
		"One read-only statement. The tables sources, ops and schema_info describe all tables and\ncolumns.",
	.options = query_options,
	.settings_size = sizeof(struct query_settings),
	.defaults = &(const struct query_settings){.rank = -1, .fleet = FLEET_OPTIONS_INIT},
	.max_args = SQL_WORDS,
	.run = query_run,
};
