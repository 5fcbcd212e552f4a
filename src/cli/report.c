/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - prints incidents: title, then for each [SEVERITY] summary, timeline, root cause, what
 * is explained and how surely, fixes and evidence. See report.h.
 *
 * Pure but for the time zone. Invariant: text of an incident reaches the buffer only through
 * put_escaped(), so no name of a traced process can move the cursor or forge a line. */
#include "cli/report.h"

#include <string.h>
#include <time.h>

#include "base/figure.h"

#define BOLD  "\033[1m"
#define RESET "\033[0m"

static const char *severity_color(enum severity s)
{
	switch (s) {
	case SEVERITY_HIGH: return "\033[1;31m";
	case SEVERITY_MEDIUM: return "\033[1;33m";
	case SEVERITY_LOW: return "\033[1;36m";
	}
	return "";
}

/* Bytes of a UTF-8 sequence at @s that may be shown as it is; 0 if the byte must be escaped.
 * Refused: control characters of both sets, surrogates, over-long forms, and characters that
 * hide or reorder text (zero width, bidirectional controls, byte order mark). */
static size_t visible_sequence(const unsigned char *s)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = s[0] < 0x80       ? 1
		     : s[0] >> 5 == 6  ? 2
		     : s[0] >> 4 == 14 ? 3
		     : s[0] >> 3 == 30 ? 4
				       : 0;
	uint32_t c = len == 1 ? s[0] : len ? s[0] & (0x7fU >> len) : 0;

	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (!len || c < 0x20 || (c >= 0x7f && c < 0xa0) || c < least[len] || c > 0x10ffff)
		return 0;
	if ((c >= 0xd800 && c < 0xe000) || (c >= 0x200b && c <= 0x200f) ||
		(c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff)
		return 0;
	return len;
}

static void put_escaped(struct buf *b, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		size_t len = visible_sequence(s);

		if (len) {
			buf_append(b, s, len);
			s += len;
		} else {
			buf_printf(b, "\\x%02x", *s++);
		}
	}
}

static bool local_time(int64_t ns, struct tm *ret)
{
	time_t s = (time_t)(ns / (int64_t)NS_PER_S);

	return ns >= 0 && localtime_r(&s, ret);
}

static void put_date(struct buf *b, int64_t ns)
{
	struct tm tm;
	char text[64];

	if (local_time(ns, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm))
		buf_puts(b, text);
	else
		buf_printf(b, "(time %lld)", (long long)ns);
}

static void put_clock(struct buf *b, int64_t ns)
{
	struct tm tm;

	if (local_time(ns, &tm))
		buf_printf(b, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec,
			(int)(ns % (int64_t)NS_PER_S / (int64_t)NS_PER_MS));
	else
		buf_printf(b, "(time %lld)", (long long)ns);
}

static void put_title(struct buf *b, const struct incident *list, size_t n, bool color)
{
	size_t per[SEVERITY_HIGH + 1] = {0};
	const char *comma = " (";

	if (color)
		buf_puts(b, BOLD);
	if (!n)
		buf_puts(b, "No incidents");
	else
		buf_printf(b, "INCIDENTS - %zu incident%s", n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n; i++)
		per[list[i].severity]++;
	for (int s = SEVERITY_HIGH; s >= SEVERITY_LOW; s--) {
		if (!per[s])
			continue;
		buf_printf(b, "%s%zu %s", comma, per[s], severity_name((enum severity)s));
		comma = ", ";
	}
	buf_puts(b, n ? ")" : "");
	buf_puts(b, color ? RESET "\n" : "\n");
}

static void put_books(struct buf *b, const struct accounting *books)
{
	uint64_t hits = 0, lost = 0;
	char text[FIGURE_MAX], of[FIGURE_MAX];

	if (!books) {
		buf_puts(b, "; losses not known");
		return;
	}
	for (int i = 0; i < WIRE_SOURCE_MAX; i++) {
		hits += books->source[i].hits;
		lost += account_lost(&books->source[i]);
	}
	buf_printf(b, "; %s of %s events lost", lost ? figure_count(lost, text) : "none",
		figure_count(hits, of));
}

static void put_scope(struct buf *b, const struct report_scope *s)
{
	char text[FIGURE_MAX];

	buf_puts(b, "  ");
	if (s->node && s->node[0]) {
		buf_puts(b, "Node ");
		put_escaped(b, s->node);
		buf_puts(b, ": ");
	}
	buf_printf(b, "%s events analysed", figure_count(s->events, text));
	if (s->calls)
		buf_printf(b, ", %s calls", figure_count(s->calls, text));
	put_books(b, s->books);
	if (s->skipped_rows)
		buf_printf(b, "; %s damaged rows left out", figure_count(s->skipped_rows, text));
	if (s->last_ns) {
		buf_puts(b, "\n  From ");
		put_date(b, s->first_ns);
		buf_puts(b, " to ");
		put_date(b, s->last_ns);
	}
	buf_putc(b, '\n');
}

static void put_timeline(struct buf *b, const struct incident *inc)
{
	char dur[FIGURE_MAX];

	buf_puts(b, "  Timeline:\n");
	for (int i = 0; i < inc->step_count; i++) {
		const struct incident_step *s = &inc->timeline[i];

		buf_printf(b, "    [%s]%*s", s->layer, 8 - (int)strnlen(s->layer, 6), "");
		put_clock(b, s->time.ns);
		buf_puts(b, "  ");
		put_escaped(b, s->detail);
		if (s->dur_ns)
			buf_printf(b, " (%s)", figure_duration(s->dur_ns, dur));
		buf_putc(b, '\n');
	}
}

static void put_figures(struct buf *b, const struct incident *inc)
{
	char share[FIGURE_MAX], excess[FIGURE_MAX], slow[FIGURE_MAX], calls[FIGURE_MAX];

	buf_printf(b, "  Explained: %s of %s excess in %s slow of %s calls\n",
		figure_percent(inc->explained, share), figure_duration(inc->excess_ns, excess),
		figure_count(inc->slow_calls, slow), figure_count(inc->calls, calls));
	buf_printf(b, "  Confidence: %s\n", figure_percent(inc->confidence, share));
}

static void put_evidence(struct buf *b, const struct incident *inc)
{
	if (inc->evidence_count) {
		buf_puts(b, "  Evidence: rows");
		for (int i = 0; i < inc->evidence_count; i++)
			buf_printf(
				b, "%s %llu", i ? "," : "", (unsigned long long)inc->evidence[i]);
		buf_putc(b, '\n');
	}
	buf_puts(b, "  SQL: ");
	put_escaped(b, inc->evidence_sql);
	buf_putc(b, '\n');
}

static void put_incident(struct buf *b, const struct incident *inc, bool color)
{
	if (color)
		buf_printf(b, "\n%s[%s]%s ", severity_color(inc->severity),
			severity_name(inc->severity), RESET);
	else
		buf_printf(b, "\n[%s] ", severity_name(inc->severity));
	put_escaped(b, inc->summary);
	buf_putc(b, '\n');
	put_timeline(b, inc);
	buf_puts(b, "  Root cause: ");
	put_escaped(b, inc->root_cause);
	buf_puts(b, "\n  Why: ");
	put_escaped(b, inc->explanation);
	buf_putc(b, '\n');
	put_figures(b, inc);
	for (int i = 0; i < inc->fix_count; i++) {
		buf_puts(b, i ? "       " : "  Fix: ");
		put_escaped(b, inc->fixes[i]);
		buf_putc(b, '\n');
	}
	put_evidence(b, inc);
}

void report_text(struct buf *b, const struct incident *incidents, size_t count,
	const struct report_scope *scope, bool color)
{
	put_title(b, incidents, count, color);
	put_scope(b, scope);
	for (size_t i = 0; i < count; i++)
		put_incident(b, &incidents[i], color);
}
