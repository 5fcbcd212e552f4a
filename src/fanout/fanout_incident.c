/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_incident.c - see fanout.h.
 *
 * An incident is first copied as JSON of our own making, which is what --json prints, and then read
 * from that copy into the struct that text is printed from. What the struct has no room for is cut
 * there, never in the JSON. Keys nobody knows yet are only in the JSON. */
#include "fanout/fanout.h"

#include <math.h>

#include "base/search.h"
#include "base/clock.h"
#include "base/text.h"
#include "json/reader.h"
#include "json/tree.h"

#define TEXT_BYTES_MAX (128 << 10)

static void fanout_incident_free(struct fanout_incident *i)
{
	free(i->json);
	free(i);
}

DEFINE_CLEANUP(struct fanout_incident *, fanout_incident_free)

/* The struct of an incident from its JSON, by the table of its fields. */

/* ---- values ---- */

/* The field that a key names, also by the names of stored verdicts; NULL: what the struct has no room for. */
static const struct incident_field *find_field(const struct json_reader *r)
{
	if (json_read_is(r, "cuda_op"))
		return &incident_fields[INCIDENT_F_OP];
	if (json_read_is(r, "recommendations"))
		return &incident_fields[INCIDENT_F_FIXES];
	return incident_field_of_key(buf_str(&r->text));
}

static void set_text(const struct json_reader *r, char *out, size_t size)
{
	text_copy(out, size, buf_str(&r->text), r->text.len);
}

/* A share of something, or -1: not known. */
static double share_of(double v)
{
	return MIN(MAX(isfinite(v) ? v : 0, -1.0), 1.0);
}

/* Published agents write their times as text. */
static int64_t time_of(const struct json_reader *r, enum json_read t)
{
	static const struct when_span none;
	int64_t ns = 0;

	if (t == JSON_READ_INT)
		return r->i;
	if (t != JSON_READ_STRING || when_parse(buf_str(&r->text), &none, false, &ns) < 0)
		return 0;
	return ns;
}

static void set_scalar(const struct json_reader *r, enum json_read t,
	const struct incident_field *f, struct fanout_incident *i)
{
	struct incident_value v = {.type = INCIDENT_NOTHING};

	if (f == &incident_fields[INCIDENT_F_DETECTED])
		i->detected_ns = time_of(r, t);
	else if (f == &incident_fields[INCIDENT_F_OP] && t == JSON_READ_STRING)
		set_text(r, i->op, sizeof(i->op));
	else if (f == &incident_fields[INCIDENT_F_UNIT] && t == JSON_READ_STRING)
		set_text(r, i->unit, sizeof(i->unit));
	else if (f->form == INCIDENT_FORM_TIME || t == JSON_READ_INT)
		v = (struct incident_value){.type = INCIDENT_INT,
			.i = f->form == INCIDENT_FORM_TIME ? time_of(r, t) : r->i};
	else if (t == JSON_READ_REAL)
		v = (struct incident_value){.type = INCIDENT_REAL, .d = r->d};
	else if (t == JSON_READ_STRING)
		v = (struct incident_value){.type = INCIDENT_TEXT, .s = buf_str(&r->text)};
	incident_field_set(f, &i->incident, &v);
}

/* ---- lists ---- */

static void read_step(struct json_reader *r, struct incident_step *s)
{
	while (json_read(r) == JSON_READ_KEY) {
		bool layer = json_read_is(r, "layer"), op = json_read_is(r, "op"),
		     detail = json_read_is(r, "detail"), dur = json_read_is(r, "duration_ns"),
		     us = json_read_is(r, "dur_us"),
		     when = json_read_is(r, "timestamp_ns") || json_read_is(r, "timestamp");
		enum json_read t = json_read(r);

		if (t == JSON_READ_STRING && layer)
			set_text(r, s->layer, sizeof(s->layer));
		else if (t == JSON_READ_STRING && op)
			set_text(r, s->op, sizeof(s->op));
		else if (t == JSON_READ_STRING && detail)
			set_text(r, s->detail, sizeof(s->detail));
		else if (t == JSON_READ_INT && dur && r->i > 0)
			s->dur_ns = (uint64_t)r->i;
		else if (t == JSON_READ_INT && us && r->i > 0 &&
			 r->i < INT64_MAX / (int64_t)NS_PER_US)
			s->dur_ns = (uint64_t)r->i * NS_PER_US;
		else if (when)
			s->time.ns = time_of(r, t);
		json_skip(r, t);
	}
}

static void read_timeline(struct json_reader *r, struct incident *i)
{
	struct incident_step step;

	for (enum json_read t; (t = json_read(r)) != JSON_READ_ARRAY_END && t != JSON_READ_BAD;) {
		if (t != JSON_READ_OBJECT) {
			json_skip(r, t);
			continue;
		}
		step = (struct incident_step){0};
		read_step(r, &step);
		if (i->step_count < INCIDENT_TIMELINE)
			i->timeline[i->step_count++] = step;
	}
}

static void read_fixes(struct json_reader *r, struct incident *i)
{
	for (enum json_read t; (t = json_read(r)) != JSON_READ_ARRAY_END && t != JSON_READ_BAD;) {
		if (t == JSON_READ_STRING && i->fix_count < INCIDENT_FIXES)
			set_text(r, i->fixes[i->fix_count++], sizeof(i->fixes[0]));
		json_skip(r, t);
	}
}

static void read_evidence(struct json_reader *r, struct incident *i)
{
	for (enum json_read t; (t = json_read(r)) != JSON_READ_ARRAY_END && t != JSON_READ_BAD;) {
		if (t == JSON_READ_INT && r->i >= 0 && i->evidence_count < INCIDENT_EVIDENCE)
			i->evidence[i->evidence_count++] = (uint64_t)r->i;
		json_skip(r, t);
	}
}

static void read_pids(struct json_reader *r, struct incident *i)
{
	for (enum json_read t; (t = json_read(r)) != JSON_READ_ARRAY_END && t != JSON_READ_BAD;) {
		if (t == JSON_READ_INT && r->i > 0 && r->i <= UINT32_MAX &&
			i->pid_count < INCIDENT_PIDS)
			i->pids[i->pid_count++] = (uint32_t)r->i;
		json_skip(r, t);
	}
}

/* What is in @lists[FIELD], and nothing else, is read from an array. */
static void (*const lists[INCIDENT_FIELD_COUNT])(struct json_reader *r, struct incident *i) = {
	[INCIDENT_F_TIMELINE] = read_timeline,
	[INCIDENT_F_FIXES] = read_fixes,
	[INCIDENT_F_EVIDENCE] = read_evidence,
	[INCIDENT_F_PIDS] = read_pids,
};

struct place {
	char function[200], file[200];
	int64_t line;
};

static void read_where(struct json_reader *r, struct fanout_incident *i)
{
	struct place p = {0};

	while (json_read(r) == JSON_READ_KEY) {
		bool function = json_read_is(r, "py_func") || json_read_is(r, "symbol"),
		     file = json_read_is(r, "py_file") || json_read_is(r, "file"),
		     line = json_read_is(r, "py_line") || json_read_is(r, "line"),
		     share = json_read_is(r, "share");
		enum json_read t = json_read(r);

		if (t == JSON_READ_STRING && function)
			set_text(r, p.function, sizeof(p.function));
		else if (t == JSON_READ_STRING && file)
			set_text(r, p.file, sizeof(p.file));
		else if (t == JSON_READ_INT && line)
			p.line = r->i;
		else if ((t == JSON_READ_INT || t == JSON_READ_REAL) && share)
			i->where_share = MAX(share_of(r->d), 0.0);
		json_skip(r, t);
	}
	if (p.function[0] && p.file[0] && p.line > 0)
		snprintf(i->where, sizeof(i->where), "%s() at %s:%lld", p.function, p.file,
			(long long)p.line);
	else if (p.function[0])
		snprintf(i->where, sizeof(i->where), "%s()%s%s", p.function,
			p.file[0] ? " in " : "", p.file);
}

/* fanout_incident_fields - fills @i from @json, a copy that is known to be an object without a fault. */
static void fanout_incident_fields(struct fanout_incident *i, const char *json, size_t len)
{
	_cleanup_(json_reader_done) struct json_reader r;

	json_reader_init(&r, json, len, TEXT_BYTES_MAX);
	json_read(&r);
	while (json_read(&r) == JSON_READ_KEY) {
		bool where = json_read_is(&r, "where");
		const struct incident_field *f = find_field(&r);
		enum json_read t = json_read(&r);

		if (where && t == JSON_READ_OBJECT)
			read_where(&r, i);
		else if (f && t == JSON_READ_ARRAY && lists[f - incident_fields])
			lists[f - incident_fields](&r, &i->incident);
		else if (!json_skip(&r, t))
			return;
		else if (f)
			set_scalar(&r, t, f, i);
	}
}

void fanout_incidents_done(struct fanout_incidents *l)
{
	for (size_t i = 0; i < l->count; i++)
		fanout_incident_free(l->items[i]);
	free(l->items);
	*l = (struct fanout_incidents){0};
}

/* The object that has begun, copied; "node" is left to the caller. */
static int copy_object(struct json_reader *r, struct buf *out, struct buf *node)
{
	struct json_writer w = json_writer_to_buf(out);

	json_begin_object(&w);
	while (json_read(r) == JSON_READ_KEY) {
		bool own = json_read_is(r, "node"), drop = own || json_read_is(r, "address");
		enum json_read t;

		if (!drop)
			json_key(&w, buf_str(&r->text));
		t = json_read(r);
		if (own && t == JSON_READ_STRING)
			buf_append(node, buf_str(&r->text), MIN(r->text.len, (size_t)255));
		if (drop ? !json_skip(r, t) : !json_copy_value(r, t, &w))
			break;
	}
	json_end_object(&w);
	if (r->err)
		return -EPROTO;
	return json_finish(&w);
}

/* {"node":…,"address":…, then the rest of @rest, an object of at least its braces */
static char *put_front(const char *rest, const struct fanout_incident *i)
{
	_cleanup_buf_ struct buf b = BUF_INIT(FANOUT_INCIDENT_JSON + 8192);
	struct json_writer w = json_writer_to_buf(&b);

	JSON_PUT_OBJECT(&w, JSON_S("node", i->node), JSON_S("address", i->address));
	json_finish(&w);
	if (b.err || b.len < 2)
		return NULL;
	while (b.len && b.data[b.len - 1] != '}')
		b.len--;
	b.len--;
	b.data[b.len] = 0;
	if (rest[1] != '}')
		buf_putc(&b, ',');
	buf_puts(&b, rest + 1);
	if (b.len && b.data[b.len - 1] == '\n')
		b.data[--b.len] = 0;
	return buf_take(&b);
}

static int read_one(struct json_reader *r, const struct fanout_source *who, bool stored,
	struct fanout_incident **ret)
{
	_cleanup_(fanout_incident_freep) struct fanout_incident *i = calloc(1, sizeof(*i));
	_cleanup_buf_ struct buf copy = BUF_INIT(FANOUT_INCIDENT_JSON), node = BUF_INIT(256);
	int err;

	if (!i)
		return -ENOMEM;
	err = copy_object(r, &copy, &node);
	if (err < 0)
		return err;
	i->incident.culprit_rank = -1;
	i->incident.completeness = -1;
	i->index = who->index;
	i->stored = stored;
	fanout_incident_fields(i, buf_str(&copy), copy.len);
	snprintf(i->node, sizeof(i->node), "%s", node.len ? buf_str(&node) : who->name);
	snprintf(i->address, sizeof(i->address), "%s", who->address);
	/* What counts slow calls says so by having no unit. */
	if (i->unit[0] && strcmp(i->unit, "slow calls") != 0)
		i->incident.unit = i->unit;
	i->json = put_front(buf_str(&copy), i);
	if (!i->json)
		return -ENOMEM;
	*ret = TAKE(i);
	return 0;
}

static int keep(struct fanout_incidents *list, struct fanout_incident *i)
{
	struct fanout_incident **p;

	p = realloc(list->items, (list->count + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	list->items = p;
	p[list->count++] = i;
	return 0;
}

/* The array of them. */
static int read_list(struct json_reader *r, const struct fanout_source *who, bool stored,
	struct fanout_incidents *list)
{
	enum json_read t = json_read(r);
	size_t n = 0;
	int err;

	if (t == JSON_READ_NULL)
		return 0;
	if (t != JSON_READ_ARRAY)
		return -EPROTO;
	while ((t = json_read(r)) == JSON_READ_OBJECT) {
		_cleanup_(fanout_incident_freep) struct fanout_incident *i = NULL;

		if (n++ >= FANOUT_INCIDENTS_MAX) {
			list->left_out++;
			if (!json_skip(r, t))
				return -EPROTO;
			continue;
		}
		err = read_one(r, who, stored, &i);
		err = err ?: keep(list, i);
		if (err < 0)
			return err;
		i = NULL;
	}
	return t == JSON_READ_ARRAY_END ? 0 : -EPROTO;
}

static void read_extent(struct json_reader *r, struct fanout_extent *e)
{
	*e = (struct fanout_extent){.completeness = -1};
	while (json_read(r) == JSON_READ_KEY) {
		bool events = json_read_is(r, "events"),
		     completeness = json_read_is(r, "completeness");
		enum json_read t = json_read(r);

		if (events && t == JSON_READ_INT && r->i >= 0) {
			e->events = (uint64_t)r->i;
			e->known = true;
		}
		if (completeness && (t == JSON_READ_INT || t == JSON_READ_REAL))
			e->completeness = isfinite(r->d) ? MIN(MAX(r->d, -1.0), 1.0) : -1;
		json_skip(r, t);
	}
}

static int read_reply(struct json_reader *r, const struct fanout_source *who,
	struct fanout_incidents *list, struct fanout_extent *extent)
{
	bool there = false;
	int err = 0;

	if (json_read(r) != JSON_READ_OBJECT)
		return -EPROTO;
	while (err == 0 && json_read(r) == JSON_READ_KEY) {
		bool chains = json_read_is(r, "chains"), data = json_read_is(r, "data");

		if (chains || json_read_is(r, "incidents")) {
			err = there ? -EPROTO : read_list(r, who, chains, list);
			there = true;
			continue;
		}
		enum json_read t = json_read(r);

		if (data && t == JSON_READ_OBJECT)
			read_extent(r, extent);
		else if (!json_skip(r, t))
			return -EPROTO;
	}
	if (err < 0)
		return err;
	return !r->err && json_read(r) == JSON_READ_END && there ? 0 : -EPROTO;
}

int fanout_incident_read(const char *body, size_t len, const struct fanout_source *who,
	struct fanout_incidents *list, struct fanout_extent *ret_extent, struct errinfo *reterr)
{
	_cleanup_(json_reader_done) struct json_reader r;
	struct fanout_extent extent = {.completeness = -1};
	size_t before = list->count, left = list->left_out;
	int err;

	json_reader_init(&r, body, len, TEXT_BYTES_MAX);
	err = read_reply(&r, who, list, &extent);
	if (err == 0) {
		*ret_extent = extent;
		return 0;
	}
	while (list->count > before)
		fanout_incident_free(list->items[--list->count]);
	list->left_out = left;
	if (r.err == -E2BIG || err == -E2BIG)
		return errinfo_set(reterr, -EPROTO, "its answer is nested too deeply");
	if (err == -ENOBUFS || r.err == -ENOBUFS)
		return errinfo_set(reterr, -EPROTO, "it sent an incident over %d KiB",
			FANOUT_INCIDENT_JSON >> 10);
	if (err == -ENOMEM)
		return errinfo_set(reterr, -ENOMEM, "not enough memory for its answer");
	if (r.err)
		return errinfo_set(reterr, -EPROTO, "its answer is not valid JSON (byte %zu)",
			(size_t)(r.p - r.start));
	return errinfo_set(reterr, -EPROTO, "its answer is not a list of incidents or chains");
}

ORDER_OF_POINTERS(by_weight, struct fanout_incident,
	DESCENDING(incident.severity) ?: DESCENDING(incident.excess_ns)
		?: DESCENDING(incident.tail_ratio) ?: ASCENDING(index)
		?: strcmp(x->incident.id, y->incident.id))

void fanout_incident_sort(struct fanout_incidents *l)
{
	SORT(l->items, l->count, by_weight);
}
