/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_incident.c - see fanout_incident.h.
 *
 * An incident is first copied as JSON of our own making, which is what --json prints, and then read
 * from that copy into the struct that text is printed from. What the struct has no room for is cut
 * there, never in the JSON. Keys nobody knows yet are only in the JSON. */
#include "fanout/fanout_incident.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "json/tree.h"

#define TEXT_BYTES_MAX (128 << 10)

void fanout_incident_free(struct fanout_incident *i)
{
	free(i->json);
	free(i);
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

	json_begin_object(&w);
	json_string_member(&w, "node", i->node);
	json_string_member(&w, "address", i->address);
	json_end_object(&w);
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
		if (err == 0)
			err = keep(list, i);
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

static int by_weight(const void *a, const void *b)
{
	const struct fanout_incident *x = *(struct fanout_incident *const *)a,
				     *y = *(struct fanout_incident *const *)b;

	if (x->incident.severity != y->incident.severity)
		return x->incident.severity < y->incident.severity ? 1 : -1;
	if (x->incident.excess_ns != y->incident.excess_ns)
		return x->incident.excess_ns < y->incident.excess_ns ? 1 : -1;
	if (x->incident.tail_ratio != y->incident.tail_ratio)
		return x->incident.tail_ratio < y->incident.tail_ratio ? 1 : -1;
	if (x->index != y->index)
		return x->index > y->index ? 1 : -1;
	return strcmp(x->incident.id, y->incident.id);
}

void fanout_incident_sort(struct fanout_incidents *l)
{
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), by_weight);
}
