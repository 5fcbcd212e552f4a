/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - runs the engine over what was loaded and prints text or JSON. */
#include "cli/explain.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/report.h"
#include "cli/report_json.h"

#define REPORT_MAX (64 << 20)

struct explain_style explain_style_detect(int fd)
{
	struct winsize w = {0};

	if (!isatty(fd))
		return (struct explain_style){0};
	ioctl(fd, TIOCGWINSZ, &w); /* columns stay 0 if it does not know */
	return (struct explain_style){.colour = !getenv("NO_COLOR"), .columns = w.ws_col};
}

static struct report_scope scope_of(const struct nodedb_content *c)
{
	return (struct report_scope){
		.node = c->node,
		.first_ns = c->first_ns,
		.last_ns = c->last_ns,
		.events = c->event_count,
		.calls = c->total_calls,
		.skipped_rows = c->skipped_rows,
		.older_events = c->older_events,
		.books = c->has_books ? &c->books : NULL,
		.pruned_rows = c->pruned_rows,
		.pruned_before = c->pruned_before,
		.labels = c->labels,
		.label_count = c->label_count,
		.older_labels = c->older_labels,
		.stacks = c->stacks,
		.skipped_stacks = c->skipped_stacks,
	};
}

struct recording explain_recording(const struct nodedb_content *c)
{
	return (struct recording){
		.events = c->events,
		.event_count = c->event_count,
		.aggregates = c->aggregates,
		.aggregate_count = c->aggregate_count,
		.samples = c->samples,
		.sample_count = c->sample_count,
		.gpus = c->gpu_samples,
		.gpu_count = c->gpu_sample_count,
		.homes = c->homes,
		.home_count = c->home_count,
		.collectives = c->collectives,
		.collective_count = c->collective_count,
		.labels = c->labels,
		.label_count = c->label_count,
		.books = c->has_books ? &c->books : NULL,
		.node = c->node,
	};
}

int explain_content(
	const struct nodedb_content *c, struct explain_style style, struct errinfo *reterr)
{
	struct recording rec = explain_recording(c);
	_cleanup_free_ struct incident *incidents = NULL;
	_cleanup_free_ struct stack_total *totals = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_MAX);
	struct report_scope scope = scope_of(c);
	size_t count;
	int r = correlate_run(&rec, &incidents, &count);

	scope.columns = style.columns;
	scope.with_labels = style.labels;
	scope.with_stacks = style.stacks;
	scope.other_stacks = style.stacks ? c->other_stacks : 0;
	if (r == 0 && style.stacks)
		r = stack_total_run(c->events, c->event_count, NULL, &totals, &scope.total_count);
	scope.totals = totals;
	if (r < 0)
		return errinfo_set(
			reterr, r, "not enough memory to explain %zu events", c->event_count);
	if (style.json)
		report_json(&b, incidents, count, &scope);
	else
		report_text(&b, incidents, count, &scope, style.colour);
	if (b.err)
		return errinfo_set(reterr, b.err, "the report is too large to print");
	fputs(buf_str(&b), stdout);
	return 0;
}

static void print_chain(const struct incident_row *row)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 10);

	buf_puts(&b, "\n  [");
	text_escape_terminal(&b, row->severity);
	buf_puts(&b, "] ");
	text_escape_terminal(&b, row->summary);
	buf_puts(&b, "\n    Root cause: ");
	text_escape_terminal(&b, row->root_cause);
	if (row->fixes[0]) {
		buf_puts(&b, "\n    Fix: ");
		text_escape_terminal(&b, row->fixes);
	}
	buf_puts(&b, "\n");
	fputs(buf_str(&b), stdout);
}

int explain_chains(
	const struct nodedb_content *c, struct explain_style style, struct errinfo *reterr)
{
	if (style.json) {
		_cleanup_buf_ struct buf b = BUF_INIT(REPORT_MAX);

		report_json_chains(&b, c->chains, c->chain_count);
		if (b.err)
			return errinfo_set(reterr, b.err, "the report is too large to print");
		fputs(buf_str(&b), stdout);
		return 0;
	}
	printf("\n  %zu stored verdict%s\n", c->chain_count, c->chain_count == 1 ? "" : "s");
	for (size_t i = 0; i < c->chain_count; i++)
		print_chain(&c->chains[i]);
	return 0;
}
