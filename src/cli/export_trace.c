/* SPDX-License-Identifier: Apache-2.0 */
/* export_trace.c - see export_trace.h. */
#include "cli/export_trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/progress.h"

#define TRACE_EVENTS 1000000 /* unless --limit says otherwise: viewers hold them in memory */

void export_trace_print(const struct export_trace_options *w, const struct perfetto_stats *f)
{
	const struct {
		uint64_t n;
		const char *text;
	} rows[] = {
		{f->stream.skipped_rows, "damaged rows omitted"},
		{f->stream.unplaced, "host samples omitted: their node is unknown"},
		{f->stream.older_collectives, "older collectives omitted"},
	};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 14);
	char n[TEXT_PLURAL_MAX], c[TEXT_PLURAL_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].n)
			buf_printf(&b, "ingero: %s %s\n", text_format_count(n, rows[i].n),
				rows[i].text);
	if (f->stream.is_limited && !w->limit)
		buf_printf(&b,
			"ingero: only the newest %s events are shown; --limit -1 shows all\n",
			text_format_count(n, TRACE_EVENTS));
	buf_printf(&b, "Exported %s + %s to ", text_format_plural(n, f->stream.events, "events"),
		text_format_plural(c, f->chains, "chains"));
	text_escape_terminal(&b, strcmp(w->output, "-") != 0 ? w->output : "the standard output");
	buf_printf(&b, " (%s)\n", text_format_bytes(n, f->bytes));
	fputs(buf_str(&b), stderr);
}

int export_trace(
	const char *path, const struct export_trace_options *options, struct errinfo *reterr)
{
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	_cleanup_(output_done) struct output output = OUTPUT_INIT;
	struct nodedb_filter f = options->filter;
	struct perfetto_stats stats;
	struct range_note note = {0};
	int r;

	if (!options->output)
		return errinfo_set(reterr, -EINVAL,
			"--output is required: a file for the trace, or - for standard output");
	r = range_resolve(path, options->range, &f, &note, reterr);
	if (r == 0)
		r = output_open(&output, options->output, reterr);
	if (r < 0)
		return r;
	f.last = options->limit < 0 ? 0 : options->limit ? (size_t)options->limit : TRACE_EVENTS;
	progress_begin(&progress, STDERR_FILENO, "exporting");
	r = perfetto_export(path, &f, &options->form, &output, &stats, reterr);
	if (r == 0)
		r = output_commit(&output, reterr);
	progress_done(&progress);
	if (r == -EPIPE && output.is_stdout)
		return 0; /* the reader has seen enough */
	if (r < 0)
		return r;
	range_print(&note);
	export_trace_print(options, &stats);
	return 0;
}
