/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - prints what a recording says, as text or JSON. */
#include "cli/explain.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "answer/encode/report.h"
#include "answer/encode/report_json.h"
#include "base/buf.h"
#include "base/text.h"

/* The title and the lines of each verdict are the published
 * ones; what our nodes know beyond that follows. */

#define SHOWN        20 /* incidents; --json has them all */
#define LOSSES_NAMED 8  /* nodes */

/* "  1,234 events analysed; nothing lost", and if not, where. */
static void put_extent(struct buf *b, const struct fanout_result *r)
{
	size_t known = 0, lossy = 0, silent = 0;
	char n[TEXT_PLURAL_MAX], share[TEXT_MAX];
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
	buf_printf(b, "  %s analysed", text_format_plural(n, events, "events"));
	if (silent)
		buf_printf(b, "; losses unknown on %s", text_format_plural(n, silent, "nodes"));
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
			text_format_percent(share, 1 - e->completeness));
		text_escape_terminal(b, r->answers[i].name);
	}
	buf_putc(b, '\n');
}

void explain_fleet_text(struct buf *b, const struct fanout_result *r, struct explain_style style)
{
	const struct fanout_incidents *l = &r->incidents;
	size_t shown = MIN(l->count, (size_t)SHOWN);
	char chains[TEXT_PLURAL_MAX], nodes[TEXT_PLURAL_MAX];

	buf_printf(b, "FLEET CAUSAL CHAINS - %s from %s\n",
		text_format_plural(chains, l->count, "chains"),
		text_format_plural(nodes, r->ok_count, "nodes"));
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
			text_format_plural(chains, l->count - shown, "smaller incidents"));
}

void explain_fleet_json(const struct fanout_result *r)
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
