/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - `ingero explain`: reads a recording, read-only, and says why the GPU waited; or
 * asks nodes, which say it of theirs.
 *
 * Which part of it: cli/recording_option.h. */

#include "answer/encode/report.h"
#include "answer/encode/report_json.h"
#include "answer/explain.h"
#include "answer/incidents.h"
#include "answer/steps.h"
#include "base/buf.h"
#include "base/search.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/explain.h"
#include "cli/fleet.h"
#include "cli/progress.h"
#include "cli/recording_option.h"
#include "command/program.h"
#include "json/writer.h"
#include "store/nodedb.h"

struct explain_settings {
	const char *db;
	struct option_pids pids;
	int64_t rank;
	struct time_request range;
	int64_t last;
	bool json, chains, per_process, steps, annotations, stacks, rolled, verbose;
	const char *again;
	struct fleet_options fleet;
	const char *node;
};

#define OPTION(field) offsetof(struct explain_settings, field)
static const struct option_row explain_options[] = {
	DB_OPTION(struct explain_settings, db),
	OPTION_SHORT(PIDS, "pid", 'p', OPTION(pids), "N", "only these process ids"),
	RANK_OPTION(struct explain_settings, rank),
	OPTION_ROW(STRING, "node", OPTION(node), "NAME",
		"only this node of a merged recording (default: each separately)"),
	RANGE_OPTIONS(struct explain_settings, range),
	OPTION_WITHIN(INT, "last", OPTION(last), "N", 0, INT32_MAX, "only the newest N events"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL, "print a JSON array"),
	OPTION_ROW(FLAG, "chains", OPTION(chains), NULL,
		"print the incidents stored in the file instead"),
	OPTION_ROW(FLAG, "per-process", OPTION(per_process), NULL,
		"print the call counts of each process instead"),
	OPTION_ROW(
		FLAG, "steps", OPTION(steps), NULL, "print where the time of steps went instead"),
	OPTION_ROW(FLAG, "annotations", OPTION(annotations), NULL,
		"show the labels (`ingero annotate`) in effect during each incident"),
	OPTION_ROW(FLAG, "stacks", OPTION(stacks), NULL,
		"print the call stacks of the slow calls, or those with the most time"),
	OPTION_SHORT(FLAG, "verbose", 'v', OPTION(verbose), NULL,
		"also print the figures, timeline and evidence of each incident"),
	ROLLED_OPTION(struct explain_settings, rolled),
	OPTION_ALIAS(TEXT, "again", OPTION(again), "FLAGS",
		"print the answer of `ingero trace -- COMMAND`, which calls this"),
	OPTION_WITHIN(DURATION, "timeout", OPTION(fleet.timeout_ns), "TIME", 1, 0,
		"nodes: timeout for each (default: 5s)"),
	FLEET_OPTIONS(struct explain_settings, fleet),
	OPTION_END,
};

/* Prints what a recording says, as text or JSON. */

/* The title and the lines of each verdict are the published
 * ones; what our nodes know beyond that follows. */

#define SHOWN        20 /* incidents; --json has them all */
#define LOSSES_NAMED 8  /* nodes */

/* "  1,234 events analysed; nothing lost", and if not, where. */
static void put_extent(struct buf *b, const struct fanout_result *r)
{
	size_t known = 0, lossy = 0, silent = 0;
	uint64_t events = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct fanout_extent *e = &r->answers[i].extent;

		if (!r->answers[i].ok || !e->known)
			continue;
		known++;
		events += e->events;
		lossy += e->completeness >= 0 && e->completeness < 1;
		silent += e->completeness < 0;
	}
	if (!known)
		return;
	buf_printf(b, "  %s analysed", TEXT_PLURAL(events, "events"));
	if (silent)
		buf_printf(b, "; losses unknown on %s", TEXT_PLURAL(silent, "nodes"));
	else if (!lossy)
		buf_puts(b, "; nothing lost");
	for (size_t i = 0, told = 0; lossy && i < r->count; i++) {
		const struct fanout_extent *e = &r->answers[i].extent;

		if (!r->answers[i].ok || !e->known || e->completeness < 0 || e->completeness >= 1)
			continue;
		if (told++ == LOSSES_NAMED) {
			buf_printf(b, " and %zu more", lossy - LOSSES_NAMED);
			break;
		}
		buf_printf(b, "%s%s of ", told == 1 ? "; lost: " : ", ",
			TEXT_PERCENT(1 - e->completeness));
		text_escape_terminal(b, r->answers[i].name);
	}
	buf_putc(b, '\n');
}

/* Appends the incidents of @r, worst first, each with its node in front. */
static void explain_fleet_text(
	struct buf *b, const struct fanout_result *r, struct explain_style style)
{
	const struct fanout_incidents *l = &r->incidents;
	size_t shown = MIN(l->count, (size_t)SHOWN);

	buf_printf(b, "FLEET CAUSAL CHAINS - %s from %s\n", TEXT_PLURAL(l->count, "chains"),
		TEXT_PLURAL(r->ok_count, "nodes"));
	put_extent(b, r);
	if (!l->count)
		buf_puts(b, "  No incidents on any node.\n");
	for (size_t i = 0; i < shown; i++) {
		const struct fanout_incident *in = l->items[i];
		struct report_entry e = {.incident = &in->incident,
			.node = in->node,
			.where = in->where,
			.where_share = in->where_share,
			.verbose = style.verbose,
			.stored = in->stored};

		report_incident(b, &e, style.columns, style.colour);
	}
	if (l->count > shown)
		buf_printf(b, "\n%s not shown; --json has them all\n",
			TEXT_PLURAL(l->count - shown, "smaller incidents"));
}

/* Prints an array of them to stdout: all that each node said. */
static void explain_fleet_json(const struct fanout_result *r)
{
	const struct fanout_incidents *l = &r->incidents;

	fputs("[", stdout);
	for (size_t i = 0; i < l->count; i++)
		printf("%s\n%s", i ? "," : "", l->items[i]->json);
	fputs(l->count ? "\n]\n" : "]\n", stdout);
}

#define REPORT_MAX (64 << 20)

struct explain_style explain_style_detect(int fd)
{
	return (struct explain_style){
		.colour = isatty(fd) && !getenv("NO_COLOR"), .columns = program_columns(fd)};
}

static int print(const struct buf *b, struct explain_style style, struct errinfo *reterr)
{
	if (b->err)
		return errinfo_set(reterr, b->err, "the report is too large to print");
	if (style.progress)
		progress_done(style.progress);
	if (style.text)
		buf_append(style.text, buf_str(b), b->len);
	else
		fputs(buf_str(b), stdout);
	return 0;
}

static int explain_print(struct explanation *e, const struct nodedb_content *c,
	struct explain_style style, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_MAX);

	e->scope.columns = style.columns;
	e->scope.verbose = style.verbose;
	e->scope.again = style.again;
	e->scope.with_labels = style.labels;
	e->scope.stored_verdicts = c->chain_count;
	explain_past(c, e);
	if (style.into) {
		report_json_add(style.into, e->incidents, e->count, &e->scope);
		return 0;
	}
	if (style.json)
		report_json(&b, e->incidents, e->count, &e->scope);
	else
		report_text(&b, e->incidents, e->count, &e->scope, style.colour);
	return print(&b, style, reterr);
}

int explain_content(
	const struct nodedb_content *c, struct explain_style style, struct errinfo *reterr)
{
	_cleanup_(explanation_done) struct explanation e = {0};
	int r = explain_find(c, style.stacks, &e, reterr);

	return r < 0 ? r : explain_print(&e, c, style, reterr);
}

static int explain_steps(
	const struct steps_answer *a, struct explain_style style, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_MAX);
	struct json_writer w = json_writer_to_buf(&b);

	if (!style.json) {
		steps_text(&b, a, style.columns, style.colour);
		return print(&b, style, reterr);
	}
	w.indent = true;
	json_begin_object(&w);
	steps_put(&w, a, SIZE_MAX, STEPS_FULL);
	json_end_object(&w);
	json_finish(&w);
	return print(&b, style, reterr);
}

int explain_chains(
	const struct nodedb_content *c, struct explain_style style, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_MAX);

	if (style.into) {
		report_json_add_chains(style.into, c->chains, c->chain_count);
		return 0;
	}
	if (style.json)
		report_json_chains(&b, c->chains, c->chain_count);
	else
		stored_incidents_text(&b, c);
	return print(&b, style, reterr);
}

static int print_usage(
	const char *path, const struct nodedb_filter *f, bool json, struct errinfo *reterr)
{
	_cleanup_free_ struct nodedb_usage *rows = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 20);
	size_t count;
	int r = nodedb_usage(path, f, &rows, &count, reterr);

	if (r < 0)
		return r;
	if (json)
		usage_json(&b, rows, count);
	else
		usage_text(&b, rows, count);
	if (b.err)
		return errinfo_set(reterr, b.err, "the report is too large to print");
	fputs(buf_str(&b), stdout);
	return 0;
}

static int print_steps(const struct explain_settings *s, const char *path,
	const struct scope *scope, struct errinfo *reterr)
{
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	_cleanup_(steps_answer_done) struct steps_answer a = {0};
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	struct explain_style style = explain_style_detect(STDOUT_FILENO);
	size_t count = 0;
	int r = node_option_list(path, s->node, &nodes, &count, reterr);

	if (r < 0)
		return r;
	style.json = s->json;
	style.progress = &progress;
	progress_begin(&progress, STDERR_FILENO, "explaining the recording");
	r = steps_load(path, scope, &a, reterr);
	return r < 0 ? r : explain_steps(&a, style, reterr);
}

struct node_report { /* of a recording of several */
	struct buf text;
	int worst;    /* severity; -1: no incident */
	size_t place; /* among the nodes */
};

static int explain_node(const struct explain_settings *s, const char *path,
	const struct nodedb_filter *f, struct json_writer *into, struct node_report *ret,
	struct errinfo *reterr)
{
	_cleanup_(incidents_answer_done) struct incidents_answer a = {0};
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	struct explain_style style = explain_style_detect(STDOUT_FILENO);
	int r;

	style.json = s->json;
	style.labels = s->annotations;
	style.stacks = s->stacks;
	style.verbose = s->verbose;
	style.again = s->again;
	style.progress = &progress;
	style.into = into;
	style.text = ret ? &ret->text : NULL;
	progress_begin(&progress, STDERR_FILENO, "explaining the recording");
	r = incidents_load(path, f, s->stacks, &a, reterr);
	if (r < 0)
		return r;
	if (ret && !s->chains && a.nodes[0].e.count)
		ret->worst = (int)a.nodes[0].e.incidents[0].severity;
	explain_sort_chains(&a.nodes[0].content);
	return s->chains ? explain_chains(&a.nodes[0].content, style, reterr)
			 : explain_print(&a.nodes[0].e, &a.nodes[0].content, style, reterr);
}

/* The time and processes as parameters of a node's API. */
static void put_parameters(struct buf *b, const struct explain_settings *s)
{
	if (s->range.all)
		buf_puts(b, "&since=all");
	if (s->range.since_ns)
		buf_printf(b, "&since=%lluns", (unsigned long long)s->range.since_ns);
	if (s->range.from) {
		buf_puts(b, "&from=");
		http_escape(b, s->range.from);
	}
	if (s->range.to) {
		buf_puts(b, "&to=");
		http_escape(b, s->range.to);
	}
	if (s->node) {
		buf_puts(b, "&node=");
		http_escape(b, s->node);
	}
	if (s->rank >= 0)
		buf_printf(b, "&rank=%lld", (long long)s->rank);
	for (size_t i = 0; i < s->pids.count; i++)
		buf_printf(b, "&pid=%u", s->pids.pid[i]);
	if (s->stacks)
		buf_puts(b, "&stacks=1");
}

static int check_fleet_flags(const struct explain_settings *s, struct errinfo *reterr)
{
	if (s->last || s->per_process || s->annotations || s->steps)
		return errinfo_set(reterr, -EINVAL,
			"--last, --per-process, --steps and --annotations cannot be combined with --nodes: use `ingero query --nodes` with SQL");
	if (s->rolled)
		return errinfo_set(reterr, -EINVAL,
			"--include-rolled reads files of this machine and cannot be combined with --nodes");
	if (s->stacks && !s->json)
		return errinfo_set(reterr, -EINVAL, "--stacks with --nodes requires --json");
	if (s->chains && s->pids.count)
		return errinfo_set(reterr, -EINVAL, "--chains cannot be combined with --pid");
	return 0;
}

/* What the nodes found; the exit code, or a negative errno. */
static int explain_nodes(const struct explain_settings *s, struct fleet *f, struct errinfo *reterr)
{
	_cleanup_(fanout_result_done) struct fanout_result result = {0};
	_cleanup_buf_ struct buf parameters = BUF_INIT(1 << 14), b = BUF_INIT(64 << 20);
	struct fanout_question q = {.kind = s->chains ? FANOUT_CHAINS : FANOUT_INCIDENTS};
	struct explain_style style = explain_style_detect(STDOUT_FILENO);
	int r = check_fleet_flags(s, reterr);

	if (r < 0)
		return r;
	style.verbose = s->verbose;
	put_parameters(&parameters, s);
	q.query = parameters.len ? buf_str(&parameters) + 1 : NULL;
	r = fleet_ask(f, &q, &result, reterr);
	if (r < 0)
		return r;
	if (result.ok_count && s->json)
		explain_fleet_json(&result);
	else if (result.ok_count)
		explain_fleet_text(&b, &result, style);
	if (b.err)
		return errinfo_set(reterr, b.err, "the report is too large to print");
	fputs(buf_str(&b), stdout);
	fflush(stdout); /* the report first, then what is said about it */
	return fleet_print(&result);
}

static void node_reports_done(struct node_report **list)
{
	for (struct node_report *p = *list; p && p->place; p++)
		buf_done(&p->text);
	free(*list);
}

ORDER(worst_node_first, struct node_report, DESCENDING(worst) ?: ASCENDING(place))

/* The worst node comes first: the one that all others wait for would else stand somewhere among them. If one cannot be
 * explained, those before it are. */
static int explain_each(const struct explain_settings *s, const char *path, struct nodedb_filter *f,
	const struct nodedb_node *nodes, size_t count, struct errinfo *reterr)
{
	_cleanup_(node_reports_done) struct node_report *list = calloc(count + 1, sizeof(*list));
	size_t done = 0;
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < count; i++) {
		list[i] = (struct node_report){BUF_INIT(64 << 20), -1, i + 1};
		f->scope.node = nodes[i].name;
		r = explain_node(s, path, f, NULL, &list[i], reterr);
		if (r >= 0 && list[i].text.err)
			r = errinfo_set(
				reterr, list[i].text.err, "the report is too large to print");
		done += r >= 0;
	}
	SORT(list, done, worst_node_first);
	for (size_t i = 0; i < done; i++)
		printf("%s%s", i ? "\n" : "", buf_str(&list[i].text));
	fflush(stdout); /* the reports first, then what is said about them */
	return MIN(r, 0);
}

/* Process ids of different nodes have nothing in common, so that each is explained by itself. */
static int explain_file(const struct explain_settings *s, const char *path,
	const struct nodedb_filter *f, struct errinfo *reterr)
{
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 20);
	struct json_writer w = json_writer_to_buf(&b);
	struct nodedb_filter one = *f;
	size_t count = 0;
	int r = node_option_list(path, s->node, &nodes, &count, reterr);

	if (r < 0 || count < 2) {
		one.scope.node = s->node;
		return r < 0 ? r : explain_node(s, path, &one, NULL, NULL, reterr);
	}
	if (!s->json)
		return explain_each(s, path, &one, nodes, count, reterr);
	w.indent = true;
	json_begin_array(&w);
	for (size_t i = 0; r >= 0 && i < count; i++) {
		one.scope.node = nodes[i].name;
		r = explain_node(s, path, &one, &w, NULL, reterr);
	}
	json_end_array(&w);
	if (r < 0)
		return r;
	if (json_finish(&w) < 0)
		return errinfo_set(reterr, w.err, "the report is too large to print");
	fputs(buf_str(&b), stdout);
	return 0;
}

static int explain_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	struct explain_settings *s = settings;
	struct scope asked = {.pids = s->pids.pid, .node = s->node};
	struct nodedb_filter f = incidents_filter(&asked, s->stacks);
	_cleanup_free_ char *default_path = NULL;
	const char *path = NULL;
	struct errinfo e = {0};
	_cleanup_(fleet_done) struct fleet fleet = {0};
	_cleanup_(rolled_done) struct rolled rolled = {0};
	struct range_note note = {0};
	int r = 0;

	if (s->chains + s->per_process + s->steps > 1)
		r = errinfo_set(&e, -EINVAL, "give one of --chains, --per-process and --steps");
	else if (s->steps && s->last)
		r = errinfo_set(&e, -EINVAL,
			"--last cannot be combined with --steps: give a time (--since, --from, --to)");
	r = r ?: fleet_open(&s->fleet, s->db, &fleet, &e);
	if (r == 0 && fleet.fanout) {
		r = explain_nodes(s, &fleet, &e);
		return r < 0 ? dispatch_fail(&e, r) : r;
	}
	r = r ?: db_option_path(s->db, &default_path, &path, &e);
	r = r ?: rolled_option(s->rolled, &rolled, &s->range, &path, &e);
	r = r ?: range_processes(path, &s->pids, s->rank, s->node, &e);
	f.scope.pid_count = s->pids.count;
	f.last = (size_t)s->last;
	r = r ?: range_resolve(path, &s->range, &f, &note, &e);
	if (r == 0) {
		if (!s->again)
			range_print(&note);
		r = s->per_process ? print_usage(path, &f, s->json, &e)
		    : s->steps     ? print_steps(s, path, &f.scope, &e)
				   : explain_file(s, path, &f, &e);
	}
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_explain = {
	.name = "explain",
	.synopsis = "explain [flags]",
	.summary = "Explain why the GPU waited: incidents with cause, culprit, evidence and fix",
	.details =
		"Only reads a recording made by `ingero trace` or by the published agent; does not need root.\nEvery incident states the share of the lost time that it explains.",
	.options = explain_options,
	.settings_size = sizeof(struct explain_settings),
	.defaults = &(const struct explain_settings){.rank = -1, .fleet = FLEET_OPTIONS_INIT},
	.tells_updates = true,
	.run = explain_run,
};
