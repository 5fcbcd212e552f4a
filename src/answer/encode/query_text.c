/* SPDX-License-Identifier: Apache-2.0 */
/* query_text.c - see query.h. Pure but for the time zone. Shares of time are of the recording's own
 * range, whenever it is looked at. */
#include "answer/encode/report.h"

#include <limits.h>
#include <time.h>

#include "answer/encode/event_json.h"
#include "answer/incidents.h"
#include "base/clock.h"
#include "base/text.h"
#include "store/read/nodedb_reader.h"
#include "wire/names.h"

/* What a published agent found and stored, in its own layout. */

/* [LAYER]  detail (duration), a line each. */
static void put_timeline(struct buf *b, const char *lines)
{
	struct chain_step step;

	buf_puts(b, "    Timeline:\n");
	while ((lines = chain_step_next(lines, &step))) {
		buf_puts(b, "      [");
		text_escape_terminal_len(b, step.layer, step.layer_len);
		buf_puts(b, "]  ");
		text_escape_terminal_len(b, step.detail, step.detail_len);
		if (step.us && step.us < UINT64_MAX / NS_PER_US)
			buf_printf(b, " (%s)", TEXT_DURATION(step.us * NS_PER_US));
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
	const char *comma = " (";

	buf_printf(b, "\n  %s", TEXT_PLURAL(c->chain_count, "stored incidents"));
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
		buf_printf(b, "  %s omitted\n", TEXT_PLURAL(c->skipped_rows, "damaged rows"));
}

void stored_incidents_text(struct buf *b, const struct nodedb_content *c)
{
	put_chains_title(b, c);
	for (size_t i = 0; i < c->chain_count; i++)
		put_chain(b, &c->chains[i]);
}

/* Columns of a UTF-8 text: continuation bytes take none. */
void paragraph_put(struct buf *b, size_t width, const char *label, const char *text)
{
	buf_puts(b, label);
	text_wrap(b, strlen(label), width, text);
}

/* last 5m | PID 7, 8 | 3,486 events (64,410 total, selective storage) */
static void put_header(struct buf *b, const struct query_head *h)
{
	uint64_t span_ns = h->last_ns > h->first_ns ? (uint64_t)(h->last_ns - h->first_ns) : 0;

	buf_printf(b, "  %s%s", h->since_ns ? "last " : "",
		TEXT_DURATION(h->since_ns ? h->since_ns : span_ns));
	for (size_t i = 0; i < h->pid_count; i++)
		buf_printf(b, "%s%u", i ? ", " : " | PID ", h->pids[i]);
	buf_printf(b, " | %s", TEXT_PLURAL(h->events, "events"));
	if (h->calls > h->events && !h->limit)
		buf_printf(b, " (%s total, selective storage)", TEXT_COUNT(h->calls));
	if (h->limit && h->events == h->limit)
		buf_puts(b, ", the newest");
	if (h->skipped_rows)
		buf_printf(b, "; %s omitted", TEXT_PLURAL(h->skipped_rows, "damaged rows"));
	if (h->older_events)
		buf_printf(b, "; %s omitted", TEXT_PLURAL(h->older_events, "older events"));
	buf_putc(b, '\n');
	if (!h->events && !h->calls) {
		buf_puts(b, "  No matching events in the recording.\n");
		return;
	}
	buf_puts(b, "  ");
	report_range(b, true, h->first_ns, h->last_ns);
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

static void put_row(struct buf *b, const struct ops_answer *a, const struct op_stat *s)
{
	buf_puts(b, "   ");
	row_text(b, ops_fields, s, a->origin == OPS_MINUTES ? OPS_PERCENTILES : 0,
		s->max_ns ? INT_MAX : 2); /* an event without a duration */
	buf_puts(b, s->nested && s->max_ns ? "   inside runtime calls\n" : "\n");
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

void query_table(struct buf *b, const struct query_head *h, const struct ops_answer *a,
	const struct host_answer *host)
{
	static const char *const titles[] = {[SECTION_RUNTIME] = "CUDA Runtime",
		[SECTION_DRIVER] = "CUDA Driver",
		[SECTION_HOST] = "Host, I/O and network"};

	put_header(b, h);
	for (int section = 0; section < SECTION_COUNT; section++) {
		size_t shown = 0;

		for (size_t i = 0; i < a->count; i++) {
			if (section_of(&a->rows[i]) != (enum section)section)
				continue;
			if (!shown++) {
				buf_printf(b, "\n  %s\n   ", titles[section]);
				row_titles(b, ops_fields);
				buf_putc(b, '\n');
			}
			put_row(b, a, &a->rows[i]);
		}
	}
	if (host->known && a->count)
		buf_printf(b,
			"\n  Host at the end: CPU %.0f %%, memory %.0f %%, load %.1f, swap %lld "
			"MB\n",
			host->cpu_pct, host->mem_pct, host->load1, (long long)host->swap_mb);
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
	struct query_head head = {.since_ns = v->since_ns,
		.pids = v->pids,
		.pid_count = v->pid_count,
		.limit = v->limit,
		.events = c->event_count,
		.calls = c->total_calls,
		.first_ns = c->first_ns,
		.last_ns = c->last_ns,
		.skipped_rows = c->skipped_rows,
		.older_events = c->older_events};

	put_header(b, &head);
	buf_printf(b, "\n  %-26s %8s  %-27s %9s  %s\n", "TIME", "PID", "OPERATION", "DURATION",
		"LABELS");
	for (size_t i = 0; i < c->event_count; i++) {
		const struct event *e = &c->events[i];
		struct label_range ranges[LABELS_KEYS_MAX];
		int n = labels_of(v, e, ranges);
		time_t second = (time_t)(e->start.ns / (int64_t)NS_PER_S);
		const char *name = name_book_find(c->names, e, NULL, 0);
		char scratch[32], text[64] = "";
		struct tm tm;

		if (localtime_r(&second, &tm))
			strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
		buf_printf(b, "  %s.%06lld %8u  %-27s", text,
			(long long)(e->start.ns % (int64_t)NS_PER_S / (int64_t)NS_PER_US), e->pid,
			wire_op_name(e->source, e->op, scratch));
		put_duration(b, e->dur_ns);
		buf_puts(b, n || name ? "  " : "");
		if (name) {
			buf_printf(b, "%s=", name_book_kind(e));
			text_escape_terminal(b, name);
			buf_puts(b, n ? ", " : "");
		}
		for (int k = 0; k < n; k++) {
			buf_puts(b, k ? ", " : "");
			text_escape_terminal(b, ranges[k].key);
			buf_putc(b, '=');
			text_escape_terminal(b, ranges[k].values[ranges[k].value_count - 1]);
		}
		buf_putc(b, '\n');
	}
}

/* events of a recording as lines of JSON: see query.h. The writer escapes what came
 * from traced processes. */

static void put_labels(struct json_writer *w, const struct query_view *v, const struct event *e)
{
	struct labels_span span = {e->pid, e->start.ns, event_end_ns(e)};
	struct label_range ranges[LABELS_KEYS_MAX];
	size_t more;
	int n = labels_within(v->content->labels, v->content->label_count, &span, ranges, &more);

	json_begin_object_member(w, "labels"); /* the newest value of each key */
	for (int k = 0; k < n; k++)
		json_string_member(w, ranges[k].key, ranges[k].values[ranges[k].value_count - 1]);
	json_end_object(w);
}

static void put_event(struct json_writer *w, const struct query_view *v, const struct event *e)
{
	const char *name;

	json_begin_object(w);
	event_json_call(
		w, e, e->stack_hash ? stack_find(&v->content->stacks, e->stack_hash) : NULL);
	json_uint_member(w, "timestamp_ns", (uint64_t)e->start.ns);
	if (e->comm[0])
		json_string_member(w, "comm", e->comm);
	if (e->device)
		json_int_member(w, "gpu_id", e->device);
	if (e->ret)
		json_int_member(w, "return_code", e->ret);
	if (v->node)
		json_string_member(w, "node", v->node);
	json_uint_member(w, "seq", e->seq);
	if (e->weight > 1)
		json_uint_member(w, "weight", e->weight);
	if (e->flags & WIRE_NESTED) {
		json_bool_member(w, "nested", true);
	}
	if (e->source == SOURCE_HOST && (e->op == HOST_SCHED_SWITCH || e->op == HOST_SHORT_STAYS)) {
		json_uint_member(w, "wait_ns", e->wait_ns);
		if (e->peer_pid)
			JSON_PUT(w, JSON_U("peer_pid", e->peer_pid),
				JSON_S("peer_comm", e->peer_comm));
	}
	name = name_book_find(v->content->names, e, v->node, v->node ? strlen(v->node) : 0);
	if (name)
		json_string_member(w, name_book_kind(e), name);
	if (v->labels)
		put_labels(w, v, e);
	json_end_object(w);
	json_finish(w);
}

void query_json(struct buf *b, const struct query_view *v)
{
	struct json_writer w = json_writer_to_buf(b);

	for (size_t i = 0; i < v->content->event_count && !b->err; i++)
		put_event(&w, v, &v->content->events[i]);
}
