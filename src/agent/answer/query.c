/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - see query.h. Pure but for the time zone. Shares of time are of the recording's own
 * range, whenever it is looked at. */
#include "agent/answer/query.h"

#include <stdlib.h>
#include <time.h>

#include "base/text.h"
#include "agent/answer/labels.h"
#include "agent/answer/op_stat.h"
#include "wire/names.h"

static bool local_time(int64_t ns, struct tm *ret)
{
	time_t s = (time_t)(ns / (int64_t)NS_PER_S);

	return localtime_r(&s, ret) != NULL;
}

static void put_date(struct buf *b, int64_t ns)
{
	char text[64];
	struct tm tm;

	if (local_time(ns, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm))
		buf_puts(b, text);
}

static uint64_t span_of(const struct nodedb_content *c)
{
	return c->last_ns > c->first_ns ? (uint64_t)(c->last_ns - c->first_ns) : 0;
}

/* last 5m | PID 7, 8 | 3,486 events (64,410 total, selective storage); @calls 0: not known */
static void put_header(struct buf *b, const struct query_view *v, uint64_t calls)
{
	const struct nodedb_content *c = v->content;
	char text[TEXT_MAX];

	buf_printf(b, "  %s%s", v->since_ns ? "last " : "",
		text_format_duration(text, v->since_ns ? v->since_ns : span_of(c)));
	for (size_t i = 0; i < v->pid_count; i++)
		buf_printf(b, "%s%u", i ? ", " : " | PID ", v->pids[i]);
	buf_printf(b, " | %s events", text_format_count(text, c->event_count));
	if (!calls && !v->partial)
		calls = c->total_calls;
	if (calls > c->event_count && !v->limit)
		buf_printf(b, " (%s total, selective storage)", text_format_count(text, calls));
	if (v->limit && c->event_count == v->limit)
		buf_puts(b, ", the newest");
	if (c->skipped_rows)
		buf_printf(
			b, "; %s damaged rows omitted", text_format_count(text, c->skipped_rows));
	if (c->older_events)
		buf_printf(
			b, "; %s older events omitted", text_format_count(text, c->older_events));
	buf_putc(b, '\n');
	if (!c->event_count) {
		buf_puts(b, "  No matching events in the recording.\n");
		return;
	}
	buf_puts(b, "  From ");
	put_date(b, c->first_ns);
	buf_puts(b, " to ");
	put_date(b, c->last_ns);
	buf_putc(b, '\n');
}

/* µ takes two bytes and one column. */
static void put_duration(struct buf *b, uint64_t ns)
{
	char text[TEXT_MAX];
	int extra = 0;

	for (const char *s = text_format_duration(text, ns); *s; s++)
		extra += ((unsigned char)*s & 0xc0) == 0x80;
	buf_printf(b, " %*s", 9 + extra, text);
}

static void put_row(struct buf *b, const struct op_stat *s, uint64_t span_ns)
{
	char scratch[32], text[TEXT_MAX];

	buf_printf(b, "    %-27s %11s", wire_op_name(s->source, s->op, scratch),
		text_format_count(text, s->calls));
	if (!s->max_ns) { /* an event without a duration */
		buf_putc(b, '\n');
		return;
	}
	put_duration(b, s->p50_ns);
	put_duration(b, s->p95_ns);
	put_duration(b, s->p99_ns);
	put_duration(b, s->max_ns);
	if (span_ns)
		buf_printf(b, " %6.1f%%", 100.0 * (double)s->sum_ns / (double)span_ns);
	else
		buf_printf(b, " %7s", "");
	buf_printf(b, " %7s\n", text_format_count(text, s->spikes));
}

enum section { SECTION_RUNTIME, SECTION_DRIVER, SECTION_HOST, SECTION_COUNT };

static enum section section_of(const struct op_stat *s)
{
	switch (s->source) {
	case SOURCE_CUDA:
	case SOURCE_GRAPH:
	case SOURCE_NCCL: return SECTION_RUNTIME;
	case SOURCE_DRIVER: return SECTION_DRIVER;
	default: return SECTION_HOST;
	}
}

/* Aggregates are of all operations, whatever was asked for. */
static size_t keep_wanted(const struct query_view *v, struct op_stat *stats, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (!v->source || (stats[i].source == v->source && stats[i].op == v->op))
			stats[n++] = stats[i];
	return n;
}

int query_text(struct buf *b, const struct query_view *v)
{
	static const char *const titles[] = {[SECTION_RUNTIME] = "CUDA Runtime",
		[SECTION_DRIVER] = "CUDA Driver",
		[SECTION_HOST] = "Host, I/O and network"};
	const struct nodedb_content *c = v->content;
	_cleanup_free_ struct op_stat *stats = NULL;
	uint64_t calls = 0;
	size_t count;
	int r = v->limit || c->older_aggregates
			? op_stat_run(c->events, c->event_count, &stats, &count)
			: op_stat_all(c->events, c->event_count, c->aggregates, c->aggregate_count,
				  &stats, &count);

	if (r < 0)
		return r;
	count = keep_wanted(v, stats, count);
	for (size_t i = 0; i < count; i++)
		calls += stats[i].calls;
	put_header(b, v, c->aggregate_count ? calls : 0);
	for (int section = 0; section < SECTION_COUNT; section++) {
		size_t shown = 0;

		for (size_t i = 0; i < count; i++) {
			if (section_of(&stats[i]) != (enum section)section)
				continue;
			if (!shown++)
				buf_printf(b, "\n  %s\n    %-27s %11s %9s %9s %9s %9s %7s %7s\n",
					titles[section], "OPERATION", "COUNT", "P50", "P95", "P99",
					"MAX", "WALL%", "SPIKES");
			put_row(b, &stats[i], span_of(c));
		}
	}
	if (c->sample_count && c->event_count) {
		const struct host_sample *s = &c->samples[c->sample_count - 1];

		buf_printf(b,
			"\n  Host at the end: CPU %.0f %%, memory %.0f %%, load %.1f, swap %llu "
			"MB\n",
			s->cpu_pct, s->mem_pct, s->load1, (unsigned long long)s->swap_mb);
	}
	return 0;
}

static int labels_of(
	const struct query_view *v, const struct event *e, struct label_range ret[LABELS_KEYS_MAX])
{
	struct labels_span span = {e->pid, e->start.ns, event_end_ns(e)};
	size_t more;

	return labels_within(v->content->labels, v->content->label_count, &span, ret, &more);
}

void query_list(struct buf *b, const struct query_view *v)
{
	const struct nodedb_content *c = v->content;

	put_header(b, v, 0);
	buf_printf(b, "\n  %-26s %8s  %-27s %9s  %s\n", "TIME", "PID", "OPERATION", "DURATION",
		"LABELS");
	for (size_t i = 0; i < c->event_count; i++) {
		const struct event *e = &c->events[i];
		struct label_range ranges[LABELS_KEYS_MAX];
		int n = labels_of(v, e, ranges);
		char scratch[32], text[64] = "";
		struct tm tm;

		if (local_time(e->start.ns, &tm))
			strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
		buf_printf(b, "  %s.%06lld %8u  %-27s", text,
			(long long)(e->start.ns % (int64_t)NS_PER_S / (int64_t)NS_PER_US), e->pid,
			wire_op_name(e->source, e->op, scratch));
		put_duration(b, e->dur_ns);
		buf_puts(b, n ? "  " : "");
		for (int k = 0; k < n; k++) {
			buf_puts(b, k ? ", " : "");
			text_escape_terminal(b, ranges[k].key);
			buf_putc(b, '=');
			text_escape_terminal(b, ranges[k].values[ranges[k].value_count - 1]);
		}
		buf_putc(b, '\n');
	}
}
