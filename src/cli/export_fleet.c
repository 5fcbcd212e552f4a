/* SPDX-License-Identifier: Apache-2.0 */
/* export_fleet.c - see export_fleet.h. Two questions, one after the other on the same connections:
 * the newest events of each node, and the verdicts it has stored. */
#include "cli/export_fleet.h"

#include "base/search.h"
#include "base/text.h"
#include "cli/progress.h"

#define TRACE_EVENTS 1000000 /* unless --limit says otherwise: viewers hold them in memory */

/* export_trace_print - on stderr: how much was written, and what was left out. */
static void export_trace_print(const struct export_trace_options *w, const struct perfetto_stats *f)
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

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].n)
			buf_printf(&b, "ingero: %s %s\n", TEXT_COUNT(rows[i].n), rows[i].text);
	if (f->stream.is_limited && !w->limit)
		buf_printf(&b,
			"ingero: only the newest %s events are shown; --limit -1 shows all\n",
			TEXT_COUNT(TRACE_EVENTS));
	buf_printf(&b, "Exported %s and %s to ", TEXT_PLURAL(f->stream.events, "events"),
		TEXT_PLURAL(f->chains, "incidents"));
	text_escape_terminal(&b, strcmp(w->output, "-") != 0 ? w->output : "the standard output");
	buf_printf(&b, " (%s)\n", TEXT_SIZE(f->bytes));
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
	r = r ?: output_open(&output, options->output, reterr);
	if (r < 0)
		return r;
	f.last = options->limit < 0 ? 0 : options->limit ? (size_t)options->limit : TRACE_EVENTS;
	progress_begin(&progress, STDERR_FILENO, "exporting");
	r = perfetto_export(path, &f, &options->form, &output, &stats, reterr);
	r = r ?: output_commit(&output, reterr);
	progress_done(&progress);
	if (r == -EPIPE && output.is_stdout)
		return 0; /* the reader has seen enough */
	if (r < 0)
		return r;
	range_print(&note);
	export_trace_print(options, &stats);
	return 0;
}

struct haul { /* what came back */
	struct fanout_events events;
	const struct fanout_incidents *chains;
};

static void haul_done(struct haul *h)
{
	fanout_events_done(&h->events);
}

static void put_fixes(const struct incident *i, char *out, size_t size)
{
	size_t len = 0;

	for (int k = 0; k < i->fix_count && len < size; k++)
		len += (size_t)snprintf(out + len, size - len, "%s%s", k ? "\n" : "", i->fixes[k]);
}

static void row_of(const struct fanout_incident *i, struct incident_row *ret)
{
	*ret = (struct incident_row){
		.detected_ns = i->detected_ns, .tail_ratio = i->incident.tail_ratio};
	snprintf(ret->id, sizeof(ret->id), "%s", i->incident.id);
	snprintf(ret->severity, sizeof(ret->severity), "%s", severity_name(i->incident.severity));
	snprintf(ret->summary, sizeof(ret->summary), "%s", i->incident.summary);
	snprintf(ret->root_cause, sizeof(ret->root_cause), "%s", i->incident.root_cause);
	snprintf(ret->explanation, sizeof(ret->explanation), "%s", i->incident.explanation);
	snprintf(ret->op, sizeof(ret->op), "%s", i->op);
	put_fixes(&i->incident, ret->fixes, sizeof(ret->fixes));
}

/* ---- as nodedb_stream() would give it ---- */

struct track {
	const char *node;
	int32_t rank;
};

ORDER(by_track, struct track, strcmp(x->node, y->node) ?: ASCENDING(rank))

static int give_tracks(const struct haul *h, const struct nodedb_sink *sink)
{
	size_t n = h->events.count + h->chains->count, count = 0;
	_cleanup_free_ struct track *list = calloc(n + 1, sizeof(*list));
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < h->events.count; i++) {
		const struct fanout_event *e = &h->events.items[i];

		list[count++] = (struct track){h->events.names[e->node],
			e->event.place.known & PLACEMENT_RANK ? e->event.place.rank : -1};
	}
	for (size_t i = 0; i < h->chains->count; i++)
		list[count++] = (struct track){h->chains->items[i]->node, -1};
	SORT(list, count, by_track);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!i || by_track(&list[i - 1], &list[i]) != 0)
			r = sink->track(sink->arg, list[i].node, list[i].rank);
	return r;
}

static int give(void *arg, const struct nodedb_sink *sink, struct nodedb_stream_stats *ret,
	struct errinfo *reterr)
{
	const struct haul *h = arg;
	int r;

	sink->origin(sink->arg, false);
	r = give_tracks(h, sink);
	for (size_t i = 0; r == 0 && i < h->chains->count; i++) {
		struct incident_row row;
		struct nodedb_content c = {.chains = &row, .chain_count = 1};

		row_of(h->chains->items[i], &row);
		r = sink->content(sink->arg, h->chains->items[i]->node, &c);
	}
	for (size_t i = 0; r == 0 && i < h->events.count; i++) {
		const struct fanout_event *e = &h->events.items[i];
		const char *node = h->events.names[e->node];

		r = sink->event(sink->arg, node, strlen(node), &e->event, NULL);
	}
	ret->events = h->events.count;
	ret->skipped_rows = h->events.skipped;
	return r < 0 ? r : sink->end(sink->arg);
}

/* ---- asking ---- */

static int ask_events(struct fleet *f, const struct export_trace_options *w,
	struct fanout_result *result, struct haul *h, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(1 << 14);
	struct fanout_event_request options = {.since_ns = w->range->since_ns,
		.pids = w->filter.scope.pids,
		.pid_count = w->filter.scope.pid_count};
	struct fanout_question q = {.kind = FANOUT_SQL,
		.apart = true, /* recordings of different versions have different columns */
		.limit = w->limit > 0 ? (size_t)w->limit : FANOUT_ROWS_MAX};
	int r;

	fanout_event_sql(&sql, &options);
	if (sql.err)
		return sql.err;
	q.sql = buf_str(&sql);
	r = fleet_ask(f, &q, result, reterr);
	if (r < 0 || !result->ok_count)
		return r;
	for (size_t i = 0; r == 0 && i < result->count; i++) {
		struct fanout_answer *a = &result->answers[i];

		if (a->ok)
			r = fanout_event_read(&a->table, a->name, &h->events);
		sql_table_done(&a->table);
		if (r < 0)
			return errinfo_set_exit(reterr, EXIT_BAD_DATA, r,
				"cannot parse the events of node %.200s", a->address);
	}
	fanout_event_sort(&h->events);
	return r;
}

static int ask_chains(struct fleet *f, const struct export_trace_options *w,
	struct fanout_result *result, struct errinfo *reterr)
{
	struct fanout_question q = {.kind = FANOUT_CHAINS, .no_clocks = true};
	char since[64];

	snprintf(since, sizeof(since), "since=%lluns", (unsigned long long)w->range->since_ns);
	q.query = w->range->since_ns ? since : "since=all";
	return fleet_ask(f, &q, result, reterr);
}

static int64_t last_moment(const struct haul *h)
{
	int64_t last = 0;

	for (size_t i = 0; i < h->events.count; i++)
		last = MAX(last, event_end_ns(&h->events.items[i].event));
	return last;
}

static int write_trace(struct haul *h, const struct export_trace_options *w, struct errinfo *reterr)
{
	_cleanup_(output_done) struct output output = OUTPUT_INIT;
	struct perfetto_stats stats;
	int r = output_open(&output, w->output, reterr);

	r = r ?: perfetto_write(give, h, last_moment(h), &w->form, &output, &stats, reterr);
	r = r ?: output_commit(&output, reterr);
	if (r == -EPIPE && output.is_stdout)
		return 0;
	if (r == 0) {
		export_trace_print(w, &stats);
		fputs("ingero: a trace of --nodes has no arrows, counters or stacks: merge the recordings to get them\n",
			stderr);
	}
	return r;
}

int export_fleet(
	struct fleet *f, const struct export_trace_options *options, struct errinfo *reterr)
{
	_cleanup_(fanout_result_done) struct fanout_result events = {0}, chains = {0};
	_cleanup_(haul_done) struct haul h = {0};
	int r, code, second;

	if (!options->output)
		return errinfo_set(reterr, -EINVAL,
			"--output is required: a file for the trace, or - for standard output");
	r = ask_events(f, options, &events, &h, reterr);
	if (r == 0 && !events.ok_count)
		return fleet_print(&events);
	r = r ?: ask_chains(f, options, &chains, reterr);
	if (r < 0)
		return r;
	h.chains = &chains.incidents;
	r = write_trace(&h, options, reterr);
	if (r < 0)
		return r;
	code = fleet_print(&events);
	second = (int)fanout_verdict(&chains);
	if (code == EXIT_OK && second != EXIT_OK) {
		fleet_print(&chains);
		code = EXIT_PARTIAL; /* the events are there */
	}
	return code;
}
