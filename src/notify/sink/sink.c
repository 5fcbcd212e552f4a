/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - see sink.h. The names of nodes and clusters are a stranger's: they are read with a strict
 * reader, have a ceiling, and are escaped where they are written. */
#include "notify/sink/sink.h"

#include "base/hash.h"
#include "base/text.h"
#include "json/reader.h"
#include "prometheus/prometheus.h"
#include "stream/stream_message.h"

DEFINE_CLEANUP(struct sink *, sink_free)
DEFINE_CLEANUP(struct straggler_table *, straggler_table_free)

/* Invariant: an entry is in the list of its hash's bucket
 * and in the list by age, or in neither. */

struct entry {
	struct straggler of;
	size_t bucket;
	struct entry *next_in_bucket;
	struct entry *older, *newer;
};

struct straggler_table {
	struct entry **buckets; /* as many as there may be entries */
	struct entry *oldest, *newest;
	size_t count, max;
};

int straggler_table_new(size_t max, struct straggler_table **ret)
{
	_cleanup_free_ struct straggler_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->max = max;
	t->buckets = calloc(max, sizeof(struct entry *));
	if (!t->buckets)
		return -ENOMEM;
	*ret = TAKE(t);
	return 0;
}

void straggler_table_free(struct straggler_table *t)
{
	for (struct entry *e = t->oldest, *next; e; e = next) {
		next = e->newer;
		free(e);
	}
	free(t->buckets);
	free(t);
}

static size_t straggler_bucket(const struct straggler_table *t, const struct straggler *s)
{
	uint64_t cluster = hash_bytes(s->cluster, strlen(s->cluster));

	return (size_t)(hash_number(cluster ^ hash_bytes(s->node, strlen(s->node)) * 3) % t->max);
}

static struct entry *find(const struct straggler_table *t, const struct straggler *s, size_t bucket)
{
	struct entry *e = t->buckets[bucket];

	while (e && (strcmp(e->of.node, s->node) != 0 || strcmp(e->of.cluster, s->cluster) != 0))
		e = e->next_in_bucket;
	return e;
}

static void take_out(struct straggler_table *t, struct entry *e)
{
	struct entry **link = &t->buckets[e->bucket];

	while (*link != e)
		link = &(*link)->next_in_bucket;
	*link = e->next_in_bucket;
	*(e->older ? &e->older->newer : &t->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &t->newest) = e->older;
	t->count--;
	free(e);
}

int straggler_table_add(struct straggler_table *t, const struct straggler *s)
{
	size_t bucket = straggler_bucket(t, s);
	bool is_full = t->count == t->max;
	struct entry *e;

	if (find(t, s, bucket))
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	if (is_full)
		take_out(t, t->oldest);
	e->of = *s;
	e->bucket = bucket;
	e->next_in_bucket = t->buckets[bucket];
	t->buckets[bucket] = e;
	e->older = t->newest;
	*(t->newest ? &t->newest->newer : &t->oldest) = e;
	t->newest = e;
	t->count++;
	return is_full;
}

void straggler_table_remove(struct straggler_table *t, const struct straggler *s)
{
	struct entry *e = find(t, s, straggler_bucket(t, s));

	if (e)
		take_out(t, e);
}

const struct straggler *straggler_table_next(const struct straggler_table *t, const void **cursor)
{
	const struct entry *e = *cursor ? ((const struct entry *)*cursor)->newer : t->oldest;

	*cursor = e;
	return e ? &e->of : NULL;
}

#define UNKNOWN STREAM_TYPE_COUNT /* the row of types that are not known */

enum drop { CAP_REACHED, LINE_TOO_LONG, NO_MEMORY, DROP_COUNT };
static const char *const drops[] = {[CAP_REACHED] = "cap_reached",
	[LINE_TOO_LONG] = "line_too_long",
	[NO_MEMORY] = "no_memory"};

struct sink {
	struct straggler_table *active;
	char line[SINK_LINE_MAX];
	size_t line_len;
	bool in_long_line; /* its rest is thrown away */
	bool connected;
	wall_time last; /* message; 0: none yet */
	uint64_t events[STREAM_TYPE_COUNT + 1], parse_errors, dropped[DROP_COUNT];
};

int sink_new(size_t max_tracked_nodes, struct sink **ret)
{
	_cleanup_free_ struct sink *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = straggler_table_new(max_tracked_nodes, &s->active);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

void sink_free(struct sink *s)
{
	straggler_table_free(s->active);
	free(s);
}

/* ---- lines ---- */

struct message {
	unsigned type;
	bool has_type, has_node, has_cluster;
	struct straggler of;
};

static unsigned type_of(const struct json_reader *r)
{
	for (unsigned t = 0; t < STREAM_TYPE_COUNT; t++)
		if (json_read_is(r, stream_type_id((enum stream_type)t)))
			return t;
	return UNKNOWN;
}

/* A text without NULs that fits. */
static bool take_name(const struct json_reader *r, enum json_read token, char *out)
{
	if (token != JSON_READ_STRING || !r->text.len || r->text.len >= STRAGGLER_NAME_MAX ||
		strlen(buf_str(&r->text)) != r->text.len)
		return false;
	memcpy(out, r->text.data, r->text.len + 1);
	return true;
}

/* The value of a key at the top. */
static bool take_member(struct json_reader *r, struct message *m)
{
	bool is_type = json_read_is(r, "type"), is_node = json_read_is(r, "node_id"),
	     is_cluster = json_read_is(r, "cluster_id");
	enum json_read token = json_read(r);

	if (is_type && token == JSON_READ_STRING) {
		m->type = type_of(r);
		m->has_type = true;
	} else if (is_node) {
		m->has_node = take_name(r, token, m->of.node);
	} else if (is_cluster) {
		m->has_cluster = take_name(r, token, m->of.cluster);
	}
	return json_skip(r, token);
}

static bool parse(const char *line, size_t len, struct message *m)
{
	struct json_reader r;
	enum json_read token;
	bool ok;

	json_reader_init(&r, line, len, SINK_LINE_MAX);
	ok = json_read(&r) == JSON_READ_OBJECT;
	while (ok && (token = json_read(&r)) != JSON_READ_OBJECT_END)
		ok = token == JSON_READ_KEY && take_member(&r, m);
	ok = ok && json_read(&r) == JSON_READ_END && m->has_type;
	json_reader_done(&r);
	return ok;
}

static void take_line(struct sink *s, const char *line, size_t len, wall_time now)
{
	struct message m = {0};
	bool ok, of_node;
	int r = 0;

	if (!len || (len == 1 && *line == '\r'))
		return;
	ok = parse(line, len, &m);
	of_node = m.type == STREAM_STRAGGLER_STATE || m.type == STREAM_STRAGGLER_RESOLVED;
	if (!ok || (of_node && !(m.has_node && m.has_cluster))) {
		s->parse_errors++;
		return;
	}
	s->events[m.type]++;
	s->last = now;
	if (of_node && m.type == STREAM_STRAGGLER_STATE)
		r = straggler_table_add(s->active, &m.of);
	else if (of_node)
		straggler_table_remove(s->active, &m.of);
	if (r)
		s->dropped[r > 0 ? CAP_REACHED : NO_MEMORY]++;
}

void sink_feed(struct sink *s, const char *data, size_t len, wall_time now)
{
	while (len) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		if (!s->in_long_line && s->line_len + n > sizeof(s->line)) {
			s->in_long_line = true;
			s->dropped[LINE_TOO_LONG]++;
		}
		if (!s->in_long_line) {
			memcpy(s->line + s->line_len, data, n);
			s->line_len += n;
		}
		if (!end)
			return;
		if (!s->in_long_line)
			take_line(s, s->line, s->line_len, now);
		s->line_len = 0;
		s->in_long_line = false;
		data += n + 1;
		len -= n + 1;
	}
}

void sink_connected(struct sink *s, bool connected)
{
	s->connected = connected;
	s->line_len = 0;
	s->in_long_line = false;
}

bool sink_is_ready(const struct sink *s, wall_time now, uint64_t window_ns)
{
	return s->connected || (s->last.ns && now.ns - s->last.ns <= (int64_t)window_ns);
}

/* ---- metrics ---- */

static void put_head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(
		b, "# HELP ingero_sink_%s %s\n# TYPE ingero_sink_%s %s\n", name, help, name, type);
}

void sink_metrics(const struct sink *s, struct buf *b)
{
	char text[TEXT_MAX];
	const struct straggler *of;
	const void *cursor = NULL;

	put_head(b, "events_total", "counter", "Messages of the stream, by type");
	for (unsigned t = 0; t <= UNKNOWN; t++)
		buf_printf(b, "ingero_sink_events_total{type=\"%s\"} %" PRIu64 "\n",
			t == UNKNOWN ? "unknown" : stream_type_id((enum stream_type)t),
			s->events[t]);
	put_head(b, "parse_errors_total", "counter", "Lines that are not messages");
	buf_printf(b, "ingero_sink_parse_errors_total %" PRIu64 "\n", s->parse_errors);
	put_head(b, "dropped_total", "counter", "Lines and tracked nodes that were dropped");
	for (unsigned d = 0; d < DROP_COUNT; d++)
		buf_printf(b, "ingero_sink_dropped_total{reason=\"%s\"} %" PRIu64 "\n", drops[d],
			s->dropped[d]);
	put_head(b, "connected", "gauge", "1 while connected to the stream");
	buf_printf(b, "ingero_sink_connected %d\n", s->connected);
	put_head(b, "last_event_timestamp_seconds", "gauge",
		"When the last message came; 0 if none has");
	buf_printf(b, "ingero_sink_last_event_timestamp_seconds %s\n",
		text_format_double(text, (double)s->last.ns / (double)NS_PER_S));
	put_head(b, "active_stragglers", "gauge", "Nodes that are stragglers now");
	while ((of = straggler_table_next(s->active, &cursor))) {
		buf_puts(b, "ingero_sink_active_stragglers{cluster_id=\"");
		prometheus_escape(b, of->cluster);
		buf_puts(b, "\",node_id=\"");
		prometheus_escape(b, of->node);
		buf_puts(b, "\"} 1\n");
	}
}
