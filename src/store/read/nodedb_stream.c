/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_stream.c - see nodedb_reader.h.
 *
 * Events come one row at a time, in the order of their start, which is what a reader needs to see
 * which call lies within which. The index on time gives it, so that nothing is sorted; published
 * files, which stamp some rows with their end, are. What is loaded at once is bounded by the
 * ceilings of nodedb.h. A file that a trace is writing is read as of one moment. */

#include "base/search.h"
#include "store/lock.h"
#include "store/read/nodedb_reader.h"
#include "base/array.h"

#define TRACKS_MAX 65536

#define RANKS_ENVIRONMENT      INT32_MAX /* above every communicator */
#define RANKS_ENVIRONMENT_TEXT "2147483647"

struct track {
	char node[256];
	int32_t rank;
};

struct claim { /* that a process has a rank */
	char node[256];
	int64_t pid, comm;
	int32_t rank, ranks; /* of so many; RANKS_ENVIRONMENT: its environment says it */
};

struct nodedb_stream {
	struct reader reader;
	struct nodedb_filter filter;
	struct nodedb_content content;
	const struct nodedb_sink *sink;
	struct track *tracks;
	size_t track_count;
	struct claim *claims; /* by node, pid, the largest communicator first */
	size_t claim_count;
	sql_stmt *stack;
	struct name_book *book; /* NULL: not loaded yet */
	struct pid_names names;
	struct nodedb_stream_stats stats;
};

static void stream_done(struct nodedb_stream *s)
{
	free(s->tracks);
	free(s->claims);
	reader_names_done(&s->names);
	sql_finalize(s->stack);
	name_book_free(s->book);
	nodedb_content_done(&s->content);
}

/* ---- whose tracks there are ---- */

static bool read_track(sql_stmt *stmt, void *arg, void *row)
{
	struct track *t = row;
	int64_t rank;

	*t = (struct track){.rank = -1};
	if (sql_column_is_int(stmt, 1, &rank) && rank >= 0 && rank <= INT32_MAX)
		t->rank = (int32_t)rank;
	return reader_text(stmt, 0, t->node, sizeof(t->node));
}

static int add_tracks(struct nodedb_stream *s, const char *table, struct errinfo *reterr)
{
	static const struct reader_column columns[] = {
		{"node", "''"}, {"rank", "NULL"}, {NULL, NULL}};

	return reader_load(&s->reader,
		&(struct reader_query){
			.table = table, .columns = columns, .rest = " GROUP BY 1, 2"},
		&(struct reader_rows){READER_INTO(s->tracks, s->track_count),
			.max = s->track_count + TRACKS_MAX, .read = read_track,
			.skipped = &s->stats.skipped_rows},
		reterr);
}

ORDER(by_node, struct track, strcmp(x->node, y->node) ?: ASCENDING(rank))

/* ---- which process has which rank ---- */

static bool read_claim(sql_stmt *stmt, void *arg, void *row)
{
	struct claim *c = row;
	int64_t rank, ranks;

	*c = (struct claim){0};
	if (!sql_column_is_int(stmt, 2, &rank) || rank < 0 || rank > INT32_MAX)
		return false;
	c->rank = (int32_t)rank;
	if (sql_column_is_int(stmt, 3, &ranks))
		c->ranks = (int32_t)MAX(MIN(ranks, (int64_t)INT32_MAX), INT64_C(0));
	return sql_column_is_int(stmt, 1, &c->pid) && c->pid >= 0 && c->pid <= UINT32_MAX &&
	       sql_column_is_int(stmt, 4, &c->comm) &&
	       reader_text(stmt, 0, c->node, sizeof(c->node));
}

static int add_claims(struct nodedb_stream *s, const char *table,
	const struct reader_column *columns, struct errinfo *reterr)
{
	return reader_load(&s->reader,
		&(struct reader_query){
			.table = table, .columns = columns, .rest = " GROUP BY 1, 2, 3, 4, 5"},
		&(struct reader_rows){READER_INTO(s->claims, s->claim_count),
			.max = s->claim_count + TRACKS_MAX, .read = read_claim},
		reterr);
}

ORDER(by_process, struct claim,
	strcmp(x->node, y->node) ?: ASCENDING(pid) ?: DESCENDING(ranks) ?: ASCENDING(comm)
		?: ASCENDING(rank))

/* What of @count claims of one process holds: the number of leading ones. The first is of its
 * environment or of its largest communicator, and a rank within a part of the job is not the
 * process's. If it has several ranks of one communicator, each is its own. */
static size_t valid_claims(const struct claim *c, size_t count)
{
	size_t n = 1;

	while (n < count && c[n].comm == c[0].comm && c[n].ranks == c[0].ranks)
		n++;
	return c[0].ranks == RANKS_ENVIRONMENT ? 1 : n;
}

/* Keeps the claims that say which one rank a process has; the tracks of all that hold are added. */
static int settle_claims(struct nodedb_stream *s)
{
	size_t kept = 0, end, room = s->track_count;
	int r = ARRAY_RESERVE(
		s->tracks, room, s->track_count + s->claim_count, 4 * (size_t)TRACKS_MAX);

	if (r < 0)
		return r;
	SORT(s->claims, s->claim_count, by_process);
	for (size_t i = 0; i < s->claim_count; i = end) {
		const struct claim *c = &s->claims[i];
		size_t valid;

		for (end = i + 1; end < s->claim_count; end++)
			if (s->claims[end].pid != c->pid || strcmp(s->claims[end].node, c->node))
				break;
		valid = valid_claims(c, end - i);
		for (size_t k = 0; k < valid; k++) {
			struct track *track = &s->tracks[s->track_count++];

			track->rank = c[k].rank;
			memcpy(track->node, c[k].node, sizeof(track->node));
		}
		if (valid == 1)
			s->claims[kept++] = *c;
	}
	s->claim_count = kept;
	return 0;
}

/* Ranks of our files are said by `processes` (environment) and `collectives`. */
static int find_ranks(struct nodedb_stream *s, struct errinfo *reterr)
{
	static const struct reader_column by_environment[] = {{"node", "''"}, {"pid", NULL},
		{"rank", "NULL"}, {"", RANKS_ENVIRONMENT_TEXT}, {"", "0"}, {NULL, NULL}};
	static const struct reader_column by_collectives[] = {{"node", "''"}, {"pid", NULL},
		{"rank", "NULL"}, {"nranks", "0"}, {"comm", NULL}, {NULL, NULL}};
	int r = add_claims(s, "processes", by_environment, reterr);

	r = r ?: add_claims(s, "collectives", by_collectives, reterr);
	return r < 0 ? r : settle_claims(s);
}

/* Each node as such, and its ranks: those of published files are only in events. */
static int find_tracks(struct nodedb_stream *s, struct errinfo *reterr)
{
	bool ours = s->reader.kind == SCHEMA_OURS;
	size_t kept = 0;
	int r = add_tracks(s, "sessions", reterr);

	for (size_t i = 0; r == 0 && i < s->track_count; i++)
		s->tracks[i].rank = -1;
	r = r ?: add_tracks(s, ours ? "processes" : "events", reterr);
	if (r == 0 && ours)
		r = find_ranks(s, reterr);
	if (r < 0)
		return r;
	SORT(s->tracks, s->track_count, by_node);
	for (size_t i = 0; i < s->track_count; i++)
		if (!kept || by_node(&s->tracks[kept - 1], &s->tracks[i]) != 0)
			s->tracks[kept++] = s->tracks[i];
	s->track_count = kept;
	return 0;
}

static int give_tracks(struct nodedb_stream *s)
{
	const struct nodedb_sink *sink = s->sink;
	int r = 0;

	sink->origin(sink->arg, s->reader.kind == SCHEMA_PUBLISHED);
	for (size_t i = 0; r == 0 && i < s->track_count; i++)
		r = sink->track(sink->arg, s->tracks[i].node, s->tracks[i].rank);
	for (size_t i = 0; r == 0 && i < s->claim_count; i++)
		r = sink->rank(sink->arg, s->claims[i].node, (uint32_t)s->claims[i].pid,
			s->claims[i].rank);
	return r;
}

/* ---- what is loaded whole ---- */

/* Of several nodes, a table without the column says nothing about any. */
static int is_placed(
	struct nodedb_stream *s, const char *table, size_t nodes, struct errinfo *reterr)
{
	int r;

	if (nodes < 2)
		return 1;
	r = schema_has_table(s->reader.sql, table, reterr);
	return r <= 0 ? r : reader_has_column(&s->reader, table, "node", reterr);
}

static int load_node(struct nodedb_stream *s, size_t nodes, struct errinfo *reterr)
{
	static const enum node_table tables[] = {
		TABLE_SAMPLES, TABLE_GPU_SAMPLES, TABLE_LEDGER, TABLE_CONTAINERS};
	int r = is_placed(s, "causal_chains", nodes, reterr);

	if (r > 0)
		r = reader_load_chains(&s->reader, reterr);
	if (r >= 0)
		r = is_placed(s, "annotations", nodes, reterr);
	if (r > 0)
		r = reader_load_labels(&s->reader, reterr);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(tables); i++) {
		r = is_placed(s, node_tables[tables[i]].name, nodes, reterr);
		if (r > 0)
			r = reader_load_rows(&s->reader, tables[i], reterr);
	}
	return r;
}

static int count_unplaced(struct nodedb_stream *s, size_t nodes, struct errinfo *reterr)
{
	int64_t rows = 0;
	int r = is_placed(s, "system_snapshots", nodes, reterr);

	r = r ?: sql_get_int(s->reader.sql, "SELECT count(*) FROM system_snapshots", &rows, reterr);
	s->stats.unplaced = (uint64_t)rows;
	return MIN(r, 0);
}

static int give_content(struct nodedb_stream *s, struct errinfo *reterr)
{
	const char *node = s->filter.scope.node;
	size_t nodes = 0;
	int r = 0;

	for (size_t i = 0; i < s->track_count; i++)
		nodes += i == 0 || strcmp(s->tracks[i].node, s->tracks[i - 1].node) != 0;
	for (size_t i = 0; r >= 0 && i < s->track_count; i++) {
		if (i && !strcmp(s->tracks[i].node, s->tracks[i - 1].node))
			continue;
		s->filter.scope.node = s->tracks[i].node;
		r = load_node(s, nodes, reterr);
		if (r >= 0)
			r = s->sink->content(s->sink->arg, s->tracks[i].node, &s->content);
		s->stats.skipped_rows += s->content.skipped_rows;
		nodedb_content_done(&s->content);
	}
	s->filter.scope.node = node;
	return r < 0 ? r : count_unplaced(s, nodes, reterr);
}

static int give_collectives(struct nodedb_stream *s, struct errinfo *reterr)
{
	int r = reader_load_rows(&s->reader, TABLE_COLLECTIVES, reterr);

	if (r >= 0)
		r = s->sink->collectives(
			s->sink->arg, s->content.collectives, s->content.collective_count);
	s->stats.skipped_rows += s->content.skipped_rows;
	s->stats.older_collectives = s->content.older_collectives;
	return r;
}

/* ---- events ---- */

/* The newest @last only: older ones are left out by their time. */
static int limit(struct nodedb_stream *s, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int64_t edge = 0;
	int r;

	if (!s->filter.last)
		return 0;
	buf_puts(&sql, "SELECT coalesce((SELECT timestamp FROM events");
	r = reader_event_where(&s->reader, &sql, reterr);
	buf_printf(&sql,
		" AND typeof(timestamp) = 'integer' ORDER BY timestamp DESC LIMIT 1 OFFSET %zu),"
		" 0)",
		s->filter.last);
	if (r == 0 && sql.err == -ENOBUFS)
		r = errinfo_set(reterr, -E2BIG, "too many process ids: give fewer");
	r = r ?: sql_get_int_buf(s->reader.sql, &sql, &edge, reterr);
	if (r == 0 && edge > 0 && edge < INT64_MAX) {
		s->filter.scope.from_ns = MAX(s->filter.scope.from_ns, edge + 1);
		s->stats.is_limited = true;
	}
	return r;
}

static int prepare_events(struct nodedb_stream *s, sql_stmt **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	int r = reader_event_select(&s->reader, true, &sql, reterr);

	r = r ?: reader_event_where(&s->reader, &sql, reterr);
	reader_event_order(&s->reader, &sql);
	return r < 0 ? r : reader_prepare(&s->reader, &sql, ret, reterr);
}

static int give_events(struct nodedb_stream *s, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = reader_load_names(&s->reader, &s->names, reterr);

	r = r ?: prepare_events(s, &stmt, reterr);
	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		struct event e;
		size_t len;
		const char *node;

		if (!reader_event_row(s->reader.kind, stmt, &s->names, &e)) {
			s->stats.skipped_rows++;
			continue;
		}
		if (!reader_event_accept(&s->filter, &e))
			continue;
		node = reader_event_node(stmt, &len);
		s->stats.events++;
		r = s->sink->event(s->sink->arg, node, len, &e, s);
	}
	return r;
}

int nodedb_stream_name(struct nodedb_stream *s, const struct event *e, const char *node,
	size_t node_len, const char **ret, struct errinfo *reterr)
{
	int r = s->book ? 0 : name_book_load(&s->reader, &s->book, reterr);

	*ret = r == 0 ? name_book_find(s->book, e, node, node_len) : NULL;
	return r;
}

int nodedb_stream_stack(
	struct nodedb_stream *s, uint64_t hash, struct stack **ret, struct errinfo *reterr)
{
	int r = s->stack ? 0 : reader_stack_prepare(&s->reader, &s->stack, reterr);

	return r < 0 || !s->stack ? r : reader_stack_read(&s->reader, s->stack, hash, ret, reterr);
}

static int run(struct nodedb_stream *s, struct errinfo *reterr)
{
	int r = reader_identify(&s->reader, reterr);

	r = r ?: sql_exec(s->reader.sql, "BEGIN", reterr);
	r = r ?: find_tracks(s, reterr);
	r = r ?: give_tracks(s);
	r = r ?: limit(s, reterr);
	r = r ?: give_content(s, reterr);
	r = r ?: give_collectives(s, reterr);
	r = r ?: give_events(s, reterr);
	return r < 0 ? r : s->sink->end(s->sink->arg);
}

int nodedb_stream(const char *path, const struct nodedb_filter *f, const struct nodedb_sink *sink,
	struct nodedb_stream_stats *ret, struct errinfo *reterr)
{
	_cleanup_(sql_closep) sql_db *sql = NULL;
	_cleanup_(stream_done) struct nodedb_stream s = {.filter = *f, .sink = sink};
	bool is_live = store_lock_holder(path) != 0;
	struct sql_stamp stamp;
	int r;

	if (is_live)
		(void)reader_came(path, -ENOENT); /* if not, opening it says so */
	r = sql_open_read(path, is_live, &sql, &stamp, reterr);
	if (r < 0)
		return r;
	s.filter.labels = true;
	s.reader = (struct reader){
		.sql = sql, .path = path, .filter = &s.filter, .content = &s.content};
	r = run(&s, reterr);
	if (r >= 0 && sql_stamp_changed(path, &stamp))
		r = errinfo_set(
			reterr, -EBUSY, "%s was changed while it was read: try again", path);
	if (r < 0)
		return r;
	*ret = s.stats;
	return 0;
}
