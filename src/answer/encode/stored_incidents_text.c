/* SPDX-License-Identifier: Apache-2.0 */
/* stored_incidents_text.c - what a published agent found and stored, in its own layout. */

#include <string.h>

#include "answer/incidents.h"
#include "answer/encode/report.h"
#include "base/clock.h"
#include "base/text.h"
#include "answer/encode/paragraph.h"

/* [LAYER]  detail (duration), a line each. */
static void put_timeline(struct buf *b, const char *lines)
{
	struct chain_step step;
	char text[TEXT_MAX];

	buf_puts(b, "    Timeline:\n");
	while ((lines = chain_step_next(lines, &step))) {
		buf_puts(b, "      [");
		text_escape_terminal_len(b, step.layer, step.layer_len);
		buf_puts(b, "]  ");
		text_escape_terminal_len(b, step.detail, step.detail_len);
		if (step.us && step.us < UINT64_MAX / NS_PER_US)
			buf_printf(b, " (%s)", text_format_duration(text, step.us * NS_PER_US));
		buf_putc(b, '\n');
	}
}

static void put_chain(struct buf *b, const struct incident_row *row)
{
	buf_puts(b, "\n  [");
	text_escape_terminal(b, row->severity);
	buf_puts(b, "] ");
	text_escape_terminal(b, row->summary);
	buf_putc(b, '\n');
	if (row->detected_ns > 0) {
		buf_puts(b, "    Detected: ");
		report_date(b, row->detected_ns);
		buf_putc(b, '\n');
	}
	if (row->timeline[0])
		put_timeline(b, row->timeline);
	buf_puts(b, "    Root cause: ");
	text_escape_terminal(b, row->root_cause);
	buf_putc(b, '\n');
	for (const char *fix = row->fixes; *fix; fix += strspn(fix, "\n")) {
		size_t len = strcspn(fix, "\n");

		buf_puts(b, fix == row->fixes ? "    Fix: " : "; ");
		text_escape_terminal_len(b, fix, len);
		fix += len;
	}
	buf_puts(b, row->fixes[0] ? "\n" : "");
}

/* "4 stored incidents of node a (2 HIGH, 2 MEDIUM)"; severities as the file names them. */
static void put_chains_title(struct buf *b, const struct nodedb_content *c)
{
	char text[TEXT_PLURAL_MAX];
	const char *comma = " (";

	buf_printf(b, "\n  %s", text_format_plural(text, c->chain_count, "stored incidents"));
	if (c->node[0]) {
		buf_puts(b, " of node ");
		text_escape_terminal(b, c->node);
	}
	for (int s = SEVERITY_COUNT - 1; s >= SEVERITY_LOW; s--) {
		size_t n = 0;

		for (size_t i = 0; i < c->chain_count; i++)
			n += !strcmp(c->chains[i].severity, severity_name((enum severity)s));
		if (!n)
			continue;
		buf_printf(b, "%s%zu %s", comma, n, severity_name((enum severity)s));
		comma = ", ";
	}
	buf_puts(b, comma[0] == ',' ? ")\n" : "\n");
	if (c->skipped_rows)
		buf_printf(b, "  %s omitted\n",
			text_format_plural(text, c->skipped_rows, "damaged rows"));
}

void stored_incidents_text(struct buf *b, const struct nodedb_content *c)
{
	put_chains_title(b, c);
	for (size_t i = 0; i < c->chain_count; i++)
		put_chain(b, &c->chains[i]);
}

/* Columns of a UTF-8 text: continuation bytes take none. */
static size_t columns(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* The text is escaped first, so that a break never falls into an escaped byte. */
void paragraph_wrap(struct buf *b, size_t indent, size_t width, const char *text)
{
	_cleanup_buf_ struct buf clean = BUF_INIT(1 << 16);
	size_t column = indent;

	text_escape_terminal(&clean, text);
	for (const char *s = buf_str(&clean); *s;) {
		size_t len = strcspn(s, " "), word = columns(s, len);

		if (column > indent && column + 1 + word > width) {
			buf_printf(b, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			buf_putc(b, ' ');
			column++;
		}
		buf_append(b, s, len);
		column += word;
		s += len + strspn(s + len, " ");
	}
	buf_putc(b, '\n');
}

void paragraph_put(struct buf *b, size_t width, const char *label, const char *text)
{
	buf_puts(b, label);
	paragraph_wrap(b, strlen(label), width, text);
}
