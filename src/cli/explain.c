/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - prints what a recording says, as text or JSON. */
#include "cli/explain.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "answer/encode/report_json.h"
#include "answer/encode/steps_json.h"
#include "answer/encode/steps_text.h"
#include "answer/encode/paragraph.h"
#include "base/buf.h"

#define REPORT_MAX (64 << 20)

struct explain_style explain_style_detect(int fd)
{
	struct winsize w = {0};

	if (!isatty(fd))
		return (struct explain_style){0};
	ioctl(fd, TIOCGWINSZ, &w); /* columns stay 0 if it does not know */
	return (struct explain_style){.colour = !getenv("NO_COLOR"), .columns = w.ws_col};
}

static int print(const struct buf *b, struct explain_style style, struct errinfo *reterr)
{
	if (b->err)
		return errinfo_set(reterr, b->err, "the report is too large to print");
	if (style.progress)
		progress_done(style.progress);
	fputs(buf_str(b), stdout);
	return 0;
}

int explain_print(struct explanation *e, const struct nodedb_content *c, struct explain_style style,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(REPORT_MAX);

	e->scope.columns = style.columns;
	e->scope.verbose = style.verbose;
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

int explain_steps(const struct steps_answer *a, struct explain_style style, struct errinfo *reterr)
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
