/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_merge.c - `ingero merge`: recordings of several nodes, or of one in parts, as one file. */
#include <signal.h>

#include "store/merge/nodedb_merge.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/commands.h"
#include "command/program.h"
#include "cli/progress.h"

struct merge_settings {
	const char *output, *force_node;
	uint64_t threshold_ns;
	bool align, force;
};

static const struct merge_settings defaults = {.threshold_ns = 100 * NS_PER_MS};

#define OPTION(field) offsetof(struct merge_settings, field)
static const struct option_row merge_options[] = {
	OPTION_SHORT(STRING, "output", 'o', OPTION(output), "PATH", "path of the merged file"),
	OPTION_SHORT(FLAG, "force", 'f', OPTION(force), NULL, "overwrite the output if it exists"),
	OPTION_ROW(STRING, "force-node", OPTION(force_node), "NAME",
		"node that the file was recorded on (older files do not contain it)"),
	OPTION_ROW(FLAG, "align", OPTION(align), NULL,
		"correct the times of each node by its measured clock offset"),
	OPTION_ROW(DURATION, "clock-skew-threshold", OPTION(threshold_ns), "TIME",
		"warn if clocks differ by more (default: 100ms)"),
	OPTION_END,
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

/* One that whoever started the program has it ignore (nohup) stays so. */
static void stop_by(int number, const struct sigaction *act)
{
	struct sigaction before;

	if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(number, act, NULL);
}

struct verbose { /* what is shown while it goes on */
	struct progress progress;
	char **sources;
};

static bool report(void *arg, size_t source, uint64_t events)
{
	struct verbose *t = arg;
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	buf_printf(&b, "%s of ", TEXT_PLURAL(events, "events"));
	text_escape_terminal(&b, t->sources[source]);
	progress_say(&t->progress, buf_str(&b));
	return !stopped;
}

/* "200 events, 1 chain, 8 stacks". */
static void put_counts(struct buf *b, uint64_t events, uint64_t chains, uint64_t stacks)
{
	buf_printf(b, "%s, %s, %s", TEXT_PLURAL(events, "events"), TEXT_PLURAL(chains, "chains"),
		TEXT_PLURAL(stacks, "stacks"));
}

/* What was there already stands behind. */
static void put_report(struct buf *b, const struct merge_report *r)
{
	put_counts(b, r->events.copied, r->chains.copied, r->stacks.copied);
	if (r->events.duplicates || r->chains.duplicates) {
		buf_puts(b, " (already there: ");
		put_counts(b, r->events.duplicates, r->chains.duplicates, r->stacks.duplicates);
		buf_putc(b, ')');
	}
	buf_putc(b, '\n');
}

static void done(void *arg, size_t source, const struct merge_report *r)
{
	struct verbose *t = arg;
	_cleanup_buf_ struct buf b = BUF_INIT(16 << 10);

	progress_done(&t->progress); /* the line makes room */
	buf_puts(&b, "  ");
	text_escape_terminal(&b, t->sources[source]);
	buf_puts(&b, ": ");
	if (r->is_again)
		buf_puts(&b, "duplicate file, skipped\n");
	else
		put_report(&b, r);
	const struct {
		uint64_t n;
		const char *one, *many;
	} rows[] = {
		{r->renumbered, "event renumbered: another recording of the node uses its number",
			"events renumbered: another recording of the node uses their numbers"},
		{r->differing_stacks,
			"stack differs between recordings: the one with more symbols is kept",
			"stacks differ between recordings: those with more symbols are kept"},
		{r->unplaced, "row without a node name", "rows without a node name"},
		{r->skipped, "damaged row omitted", "damaged rows omitted"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].n)
			buf_printf(&b, "    %s %s\n", TEXT_COUNT(rows[i].n),
				rows[i].n == 1 ? rows[i].one : rows[i].many);
	fputs(buf_str(&b), stderr);
	progress_begin(&t->progress, STDERR_FILENO, "merging");
}

static void put_clock(struct buf *b, const struct merge_clock *c, uint64_t threshold_ns)
{
	uint64_t off = (uint64_t)(c->offset_ns < 0 ? -c->offset_ns : c->offset_ns);

	if (!c->collectives)
		return;
	buf_puts(b, off > threshold_ns ? "WARNING: the clock of " : "  the clock of ");
	text_escape_terminal(b, c->node);
	buf_printf(b, " is %s (± %s) %s that of ", TEXT_DURATION(off), TEXT_DURATION(c->error_ns),
		c->offset_ns < 0 ? "behind" : "ahead of");
	text_escape_terminal(b, c->reference);
	buf_printf(b, ", by %s%s\n", TEXT_PLURAL(c->collectives, "collectives"),
		c->applied           ? ": corrected"
		: off > threshold_ns ? ": --align corrects it"
				     : "");
}

static void print_result(const struct merge_settings *s, const struct merge_result *r)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
	size_t unknown = 0;

	for (size_t i = 0; i < r->clock_count; i++) {
		put_clock(&b, &r->clocks[i], s->threshold_ns);
		unknown += r->clocks[i].collectives == 0;
	}
	if (unknown)
		buf_printf(&b,
			"  the clock offset of %zu node%s is unknown: no collectives are shared with the first node\n",
			unknown, unknown == 1 ? "" : "s");
	buf_puts(&b, "Merged into ");
	text_escape_terminal(&b, s->output);
	buf_printf(&b, ", %s: ", TEXT_PLURAL(r->nodes, "nodes"));
	put_report(&b, &r->total);
	fputs(buf_str(&b), stderr);
}

static int merge_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	const struct merge_settings *s = settings;
	_cleanup_(merge_result_done) struct merge_result result = {0};
	struct verbose verbose = {.progress = PROGRESS_INIT, .sources = argv};
	struct merge_options options = {.sources = (const char *const *)argv,
		.source_count = (size_t)argc,
		.output = s->output,
		.force_node = s->force_node,
		.align = s->align,
		.replace = s->force,
		.report = report,
		.done = done,
		.arg = &verbose};
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	struct errinfo e = {0};
	int r = 0;

	if (!argc)
		r = errinfo_set(&e, -EINVAL,
			"name the recordings to merge: ingero merge A.db B.db "
			"-o ALL.db");
	else if (!s->output)
		r = errinfo_set(&e, -EINVAL, "--output is required: the path of the merged file");
	if (r == 0) {
		stop_by(SIGINT, &act); /* nothing half-made stays behind */
		stop_by(SIGTERM, &act);
		stop_by(SIGHUP, &act);
		progress_begin(&verbose.progress, STDERR_FILENO, "merging");
		r = nodedb_merge(&options, &result, &e);
		progress_done(&verbose.progress);
	}
	if (r < 0)
		return dispatch_fail(&e, r);
	print_result(s, &result);
	return EXIT_OK;
}

const struct command cmd_merge = {
	.name = "merge",
	.synopsis = "merge FILE... -o PATH [flags]",
	.summary = "Merge recordings of several nodes into one file",
	.details = "  ingero merge node1.db node2.db -o cluster.db\n"
		   "  ingero explain --db cluster.db             each node separately\n"
		   "  ingero export --format perfetto -d cluster.db -o cluster.json",
	.options = merge_options,
	.settings_size = sizeof(struct merge_settings),
	.defaults = &defaults,
	.max_args = MERGE_SOURCES_MAX,
	.run = merge_run,
};
