/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `ingero export`: a recording as a trace for viewers (export_fleet.c), or its call
 * stacks as a flame graph or as folded lines. */
#include <sys/stat.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/recording_option.h"
#include "command/program.h"
#include "export/export.h"
#include "cli/export_fleet.h"
#include "cli/fleet.h"
#include "base/output.h"
#include "cli/progress.h"

#define OUTPUT_MAX    (512u << 20)
#define NODES_TIMEOUT (10 * NS_PER_S) /* many rows */
#define FORMATS       "perfetto, perfetto-proto, flamegraph or folded"

struct export_settings {
	const char *format, *db, *output, *op, *value, *node;
	struct option_pids pids;
	int64_t rank;
	struct time_request range;
	int64_t limit;
	bool stacks;
	struct fleet_options fleet;
};

#define OPTION(field) offsetof(struct export_settings, field)
static const struct option_row export_options[] = {
	OPTION_SHORT(STRING, "format", 'f', OPTION(format), "NAME",
		"perfetto (JSON), perfetto-proto (the same, smaller), flamegraph (SVG) or folded (input of flame graph tools) (default: by the end of --output)"),
	DB_OPTION(struct export_settings, db),
	OPTION_SHORT(STRING, "output", 'o', OPTION(output), "FILE",
		"output file; - is standard output (default for flamegraph and folded)"),
	OPTION_WITHIN(INT, "limit", OPTION(limit), "N", -1, INT32_MAX,
		"perfetto: only the newest N events, -1: all (default: 1000000; 10000 per node)"),
	OPTION_ROW(FLAG, "stacks", OPTION(stacks), NULL,
		"perfetto: include the call stack of each call"),
	OPTION_ROW(STRING, "node", OPTION(node), "NAME",
		"only this node of a merged recording (default: all)"),
	OPTION_ROW(STRING, "value", OPTION(value), "NAME",
		"width of a frame: time or count of calls (default: time)"),
	OPTION_SHORT(PIDS, "pid", 'p', OPTION(pids), "N", "only these process ids"),
	RANK_OPTION(struct export_settings, rank),
	OPTION_ROW(STRING, "op", OPTION(op), "NAME", "only this operation, like cudaMemcpyAsync"),
	RANGE_OPTIONS(struct export_settings, range),
	OPTION_WITHIN(DURATION, "timeout", OPTION(fleet.timeout_ns), "TIME", 1, 0,
		"nodes: timeout for each (default: 10s)"),
	FLEET_OPTIONS(struct export_settings, fleet),
	OPTION_END,
};

static int resolve(
	const struct export_settings *s, struct export_options *ret, struct errinfo *reterr)
{
	if (!strcmp(s->format, "flamegraph"))
		ret->format = EXPORT_FLAMEGRAPH;
	else if (!strcmp(s->format, "folded"))
		ret->format = EXPORT_FOLDED;
	else
		return errinfo_set(
			reterr, -EINVAL, "--format %.100s: choose one of " FORMATS, s->format);
	if (s->value && strcmp(s->value, "time") != 0 && strcmp(s->value, "count") != 0)
		return errinfo_set(
			reterr, -EINVAL, "--value %.100s: choose time or count", s->value);
	ret->count = s->value && !strcmp(s->value, "count");
	return op_option_find(s->op, &ret->op, reterr);
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int write_output(const char *path, const struct buf *b, struct errinfo *reterr)
{
	_cleanup_(output_done) struct output o = OUTPUT_INIT;
	int r;

	if (!path || !strcmp(path, "-")) {
		fwrite(buf_str(b), 1, b->len, stdout); /* dispatch_flush() sees what failed */
		return 0;
	}
	r = output_open(&o, path, reterr);
	r = r ?: output_write(&o, buf_str(b), b->len, reterr);
	return r < 0 ? r : output_commit(&o, reterr);
}

/* What the output cannot say of itself. */
static void print_notes(const struct export_settings *s, const struct nodedb_content *c,
	const struct export_stats *stats, size_t bytes)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 14);

	if (c->skipped_stacks)
		buf_printf(&b, "ingero: %s omitted: damaged or over 64 KiB\n",
			TEXT_PLURAL(c->skipped_stacks, "call stacks"));
	if (c->other_stacks || stats->left_out)
		buf_puts(&b, "ingero: too many stacks: those with the least time are omitted\n");
	if (c->older_events)
		buf_printf(
			&b, "ingero: %s omitted\n", TEXT_PLURAL(c->older_events, "older events"));
	if (stats->without_stack)
		buf_printf(&b, "ingero: %s of %s %s no stack\n", TEXT_COUNT(stats->without_stack),
			TEXT_PLURAL(stats->calls, "calls"),
			stats->without_stack == 1 ? "has" : "have");
	if (s->output && strcmp(s->output, "-") != 0) {
		buf_printf(&b, "Exported %s of %s to ", TEXT_PLURAL(stats->stacks, "stacks"),
			TEXT_PLURAL(stats->calls, "calls"));
		text_escape_terminal(&b, s->output);
		buf_printf(&b, " (%s)\n", TEXT_SIZE(bytes));
	}
	fputs(buf_str(&b), stderr);
}

static int export_file(const struct export_settings *s, struct export_options *options,
	const char *path, struct errinfo *reterr)
{
	struct nodedb_filter f = {.scope.pids = s->pids.pid,
		.scope.pid_count = s->pids.count,
		.scope.node = s->node,
		.stacks = NODEDB_STACKS_USED};
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT(OUTPUT_MAX);
	struct export_stats stats;
	struct range_note note = {0};
	int r = 0;

	progress_begin(&progress, STDERR_FILENO, "reading the recording");
	options->name = basename(path);
	if (s->output && is_same_file(s->output, path))
		r = errinfo_set(reterr, -EINVAL, "--output is the recording itself");
	r = r ?: range_resolve(path, &s->range, &f, &note, reterr);
	r = r ?: nodedb_read(path, &f, &content, reterr);
	if (r == 0)
		range_print(&note);
	r = r ?: export_stacks(&content, options, &b, &stats, reterr);
	progress_done(&progress);
	r = r ?: write_output(s->output, &b, reterr);
	if (r == 0)
		print_notes(s, &content, &stats, b.len);
	return r;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

/* What the end of the output's name says; NULL: nothing. */
static const char *format_of_name(const char *output)
{
	static const char *const ends[][2] = {{".json", "perfetto"}, {".pftrace", "perfetto-proto"},
		{".svg", "flamegraph"}, {".folded", "folded"}};

	for (size_t i = 0; output && i < ARRAY_SIZE(ends); i++)
		if (ends_with(output, ends[i][0]))
			return ends[i][1];
	return NULL;
}

/* 1 if the wish is a trace for a viewer, of which *ret_proto says the form. */
static int is_trace(const struct export_settings *s, bool *ret_proto, struct errinfo *reterr)
{
	if (!s->format)
		return errinfo_set(reterr, -EINVAL,
			"--format is required: " FORMATS
			"; or an --output that ends in .json, .pftrace, .svg or .folded");
	*ret_proto = !strcmp(s->format, "perfetto-proto") ||
		     (s->output && ends_with(s->output, ".pftrace"));
	return !strcmp(s->format, "perfetto") || *ret_proto;
}

static int write_trace(
	const struct export_settings *s, const char *path, bool proto, struct errinfo *reterr)
{
	struct export_trace_options options = {.output = s->output,
		.range = &s->range,
		.filter = {.scope.pids = s->pids.pid,
			.scope.pid_count = s->pids.count,
			.scope.node = s->node},
		.limit = s->limit,
		.form = {.proto = proto, .stacks = s->stacks}};
	const struct wire_op_row *op = NULL;
	int r = op_option_find(s->op, &op, reterr);

	if (r < 0)
		return r;
	if (s->value)
		return errinfo_set(
			reterr, -EINVAL, "--value requires --format flamegraph or folded");
	if (s->output && is_same_file(s->output, path))
		return errinfo_set(reterr, -EINVAL, "--output is the recording itself");
	if (op) {
		options.filter.scope.source = op->source;
		options.filter.scope.op = op->op;
	}
	return export_trace(path, &options, reterr);
}

static int check_nodes_flags(const struct export_settings *s, int trace, struct errinfo *reterr)
{
	if (!trace)
		return errinfo_set(reterr, -EINVAL, "--nodes requires --format perfetto");
	if (s->op || s->node || s->stacks || s->value || s->range.from || s->range.to)
		return errinfo_set(reterr, -EINVAL,
			"--op, --node, --stacks, --value, --from and --to cannot be combined with --nodes");
	if (s->limit > FANOUT_ROWS_MAX)
		return errinfo_set(
			reterr, -EINVAL, "--limit: at most %d events per node", FANOUT_ROWS_MAX);
	return 0;
}

/* The trace of many nodes; the exit code, or a negative errno. */
static int export_nodes(const struct export_settings *s, struct fleet *f, int trace, bool proto,
	struct errinfo *reterr)
{
	struct export_trace_options options = {.output = s->output,
		.range = &s->range,
		.filter = {.scope.pids = s->pids.pid, .scope.pid_count = s->pids.count},
		.limit = s->limit,
		.form = {.proto = proto}};
	int r = check_nodes_flags(s, trace, reterr);

	return r < 0 ? r : export_fleet(f, &options, reterr);
}

static int check_node(const char *path, const char *name, struct errinfo *reterr)
{
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	size_t count;

	return node_option_list(path, name, &nodes, &count, reterr);
}

static int export_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	struct export_settings *s = settings;
	_cleanup_free_ char *default_path = NULL;
	const char *path = NULL;
	struct errinfo e = {0};
	struct export_options options = {0};
	bool proto = false;
	_cleanup_(fleet_done) struct fleet fleet = {0};
	int trace, r;

	s->format = s->format ?: format_of_name(s->output);
	trace = is_trace(s, &proto, &e);
	r = trace ? MIN(trace, 0) : resolve(s, &options, &e);

	if (r == 0 && (trace || s->fleet.nodes.count)) /* stacks are of recordings alone */
		r = fleet_open(&s->fleet, s->db, &fleet, &e);
	if (r == 0 && fleet.fanout) {
		r = export_nodes(s, &fleet, trace, proto, &e);
		return r < 0 ? dispatch_fail(&e, r) : r;
	}
	r = r ?: db_option_path(s->db, &default_path, &path, &e);
	if (r == 0 && s->node)
		r = check_node(path, s->node, &e);
	r = r ?: range_processes(path, &s->pids, s->rank, s->node, &e);
	r = r ?: trace ? write_trace(s, path, proto, &e) : export_file(s, &options, path, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_export = {
	.name = "export",
	.synopsis = "export [--format NAME] [flags]",
	.summary = "Write a trace for Perfetto, or a flame graph of the call stacks",
	.details = "  ingero export --format perfetto -o trace.json    open it in ui.perfetto.dev\n"
		   "  ingero export -o trace.pftrace                   the same, smaller\n"
		   "  ingero export --nodes gpu-1,gpu-2 -o trace.pftrace   of many nodes\n"
		   "  ingero export --format flamegraph -o calls.svg   open it in a browser\n"
		   "  ingero export --format folded --op cudaMalloc    one line per stack",
	.options = export_options,
	.settings_size = sizeof(struct export_settings),
	.defaults = &(const struct export_settings){.rank = -1,
		.fleet = {.skew_ns = CONFIG_UNSET, .require_tls = true, .usual_ns = NODES_TIMEOUT}},
	.run = export_run,
};
