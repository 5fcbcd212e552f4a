/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read_json.c - requests by OTLP's JSON mapping, one token after the other.
 *
 * Members come in any order, and a point is given with its metric's name, its scope and its resource.
 * Where a level's content comes first, it is stepped over, and read once the level is over (struct
 * later): each token is looked at once for each level at most. Writers put the description first. */

#include "otlp/otlp_fields.h"
#include "otlp/otlp_read_private.h"

struct reading {
	struct otlp_reading *s;
	struct otlp_json j;
};

/* A member's value that is read after the rest of its object. */
struct later {
	struct json_place place;
	bool is_set;
};

static void put_off(struct reading *d, struct later *l)
{
	l->place = json_here(&d->j.r);
	l->is_set = true;
	otlp_json_skip(&d->j);
}

static bool key_is(const struct reading *d, const char *key)
{
	return json_read_is(&d->j.r, key);
}

static void read_attribute(struct reading *d, struct otlp_attributes *a)
{
	struct otlp_attribute *item = otlp_reading_attribute(d->s, a);

	if (!item) {
		d->j.r.err = -E2BIG;
		return;
	}
	while (otlp_json_member(&d->j)) {
		if (key_is(d, "key"))
			item->key = otlp_json_text(&d->j, &item->key_len);
		else if (key_is(d, "value"))
			item->value = otlp_json_any(&d->j);
		else
			otlp_json_skip(&d->j);
	}
}

static void read_attributes(struct reading *d, struct otlp_attributes *a)
{
	a->count = 0;
	if (!otlp_json_array(&d->j))
		return;
	while (otlp_json_element(&d->j))
		read_attribute(d, a);
}

static void read_resource(struct reading *d)
{
	if (!otlp_json_object(&d->j))
		return;
	while (otlp_json_member(&d->j)) {
		if (key_is(d, "attributes"))
			read_attributes(d, &d->s->resource);
		else
			otlp_json_skip(&d->j);
	}
}

static void read_scope(struct reading *d)
{
	const char *name;
	size_t len;

	if (!otlp_json_object(&d->j))
		return;
	while (otlp_json_member(&d->j)) {
		if (!key_is(d, "name")) {
			otlp_json_skip(&d->j);
			continue;
		}
		name = otlp_json_text(&d->j, &len);
		otlp_reading_scope(d->s, name, len);
	}
}

static void visit(struct reading *d)
{
	if (!d->j.r.err)
		d->j.r.err = otlp_reading_visit(d->s);
}

static void read_point(struct reading *d)
{
	struct otlp_kept *mark = d->j.kept;
	struct otlp_point *p = &d->s->point;
	bool number = p->kind == OTLP_GAUGE || p->kind == OTLP_SUM;

	otlp_reading_point(d->s);
	while (otlp_json_member(&d->j)) {
		if (key_is(d, "attributes"))
			read_attributes(d, &d->s->attributes);
		else if (key_is(d, "timeUnixNano"))
			p->time_ns = otlp_json_uint(&d->j);
		else if (key_is(d, "startTimeUnixNano"))
			p->start_ns = otlp_json_uint(&d->j);
		else if (number && key_is(d, "asInt"))
			p->value = otlp_json_int_value(&d->j);
		else if (key_is(d, number ? "asDouble" : "sum"))
			p->value = otlp_json_double_value(&d->j);
		else if (!number && key_is(d, "count"))
			p->count = otlp_json_uint(&d->j);
		else
			otlp_json_skip(&d->j);
	}
	visit(d);
	otlp_json_release(&d->j, mark);
}

static void read_points(struct reading *d)
{
	if (!otlp_json_array(&d->j))
		return;
	while (otlp_json_element(&d->j))
		read_point(d);
}

/* What is inside a gauge, sum or histogram. */
static void read_data(struct reading *d, enum otlp_point_kind kind)
{
	struct otlp_point *p = &d->s->point;
	struct later points = {0};
	struct json_place end;

	p->kind = kind;
	p->is_monotonic = p->is_delta = false;
	if (!otlp_json_object(&d->j))
		return;
	while (otlp_json_member(&d->j)) {
		if (key_is(d, "aggregationTemporality"))
			p->is_delta = otlp_json_uint(&d->j) == TEMPORALITY_DELTA;
		else if (key_is(d, "isMonotonic"))
			p->is_monotonic = otlp_json_bool(&d->j);
		else if (!key_is(d, "dataPoints"))
			otlp_json_skip(&d->j);
		else if (kind == OTLP_GAUGE)
			read_points(d);
		else
			put_off(d, &points);
	}
	if (!points.is_set)
		return;
	end = json_here(&d->j.r);
	json_go_to(&d->j.r, points.place);
	read_points(d);
	json_go_to(&d->j.r, end);
}

static bool data_kind(const struct reading *d, enum otlp_point_kind *ret)
{
	static const struct {
		const char *key;
		enum otlp_point_kind kind;
	} kinds[] = {{"gauge", OTLP_GAUGE}, {"sum", OTLP_SUM}, {"histogram", OTLP_HISTOGRAM},
		{"exponentialHistogram", OTLP_OTHER}, {"summary", OTLP_OTHER}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (key_is(d, kinds[i].key)) {
			*ret = kinds[i].kind;
			return true;
		}
	return false;
}

static void read_metric(struct reading *d)
{
	struct otlp_kept *mark = d->j.kept;
	struct otlp_point *p = &d->s->point;
	enum otlp_point_kind kind = OTLP_OTHER, later_kind = OTLP_OTHER;
	bool named = false, has_unit = false;
	struct later data = {0};
	struct json_place end;

	p->name = p->unit = "";
	p->name_len = p->unit_len = 0;
	while (otlp_json_member(&d->j)) {
		if (key_is(d, "name")) {
			p->name = otlp_json_text(&d->j, &p->name_len);
			named = true;
		} else if (key_is(d, "unit")) {
			p->unit = otlp_json_text(&d->j, &p->unit_len);
			has_unit = true;
		} else if (!data_kind(d, &kind)) {
			otlp_json_skip(&d->j);
		} else if (named && has_unit) {
			read_data(d, kind);
		} else {
			put_off(d, &data);
			later_kind = kind;
		}
	}
	if (data.is_set) {
		end = json_here(&d->j.r);
		json_go_to(&d->j.r, data.place);
		read_data(d, later_kind);
		json_go_to(&d->j.r, end);
	}
	otlp_json_release(&d->j, mark);
}

static void read_record(struct reading *d)
{
	struct otlp_kept *mark = d->j.kept;
	struct otlp_record *l = &d->s->record;

	otlp_reading_record(d->s);
	while (otlp_json_member(&d->j)) {
		if (key_is(d, "timeUnixNano"))
			l->time_ns = otlp_json_uint(&d->j);
		else if (key_is(d, "observedTimeUnixNano"))
			l->observed_ns = otlp_json_uint(&d->j);
		else if (key_is(d, "severityNumber"))
			l->severity = (int)MIN(otlp_json_uint(&d->j), (uint64_t)INT32_MAX);
		else if (key_is(d, "body"))
			l->body = otlp_json_any(&d->j);
		else if (key_is(d, "attributes"))
			read_attributes(d, &d->s->attributes);
		else if (key_is(d, "eventName"))
			l->event = otlp_json_text(&d->j, &l->event_len);
		else
			otlp_json_skip(&d->j);
	}
	visit(d);
	otlp_json_release(&d->j, mark);
}

/* read_id - of @size bytes in hexadecimal digits, or nothing. */
static void read_id(struct reading *d, uint8_t *ret, size_t size)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	uint8_t id[OTLP_TRACE_ID] = {0};
	size_t len;
	const char *text = otlp_json_text(&d->j, &len);

	if (len != 2 * size)
		return;
	for (size_t i = 0; i < len; i++) {
		const char *digit = memchr(digits, text[i], sizeof(digits) - 1);

		if (!digit)
			return;
		id[i / 2] = (uint8_t)(id[i / 2] << 4 | ((digit - digits) & 15));
	}
	memcpy(ret, id, size);
}

static int read_status(struct reading *d)
{
	int code = 0;

	if (!otlp_json_object(&d->j))
		return 0;
	while (otlp_json_member(&d->j)) {
		if (key_is(d, "code"))
			code = (int)MIN(otlp_json_uint(&d->j), (uint64_t)INT32_MAX);
		else
			otlp_json_skip(&d->j);
	}
	return code;
}

static void read_span(struct reading *d)
{
	struct otlp_kept *mark = d->j.kept;
	struct otlp_span *p = &d->s->span;

	otlp_reading_span(d->s);
	while (otlp_json_member(&d->j)) {
		if (key_is(d, "traceId"))
			read_id(d, p->trace, sizeof(p->trace));
		else if (key_is(d, "spanId"))
			read_id(d, p->id, sizeof(p->id));
		else if (key_is(d, "parentSpanId"))
			read_id(d, p->parent, sizeof(p->parent));
		else if (key_is(d, "name"))
			p->name = otlp_json_text(&d->j, &p->name_len);
		else if (key_is(d, "kind"))
			p->kind = (int)MIN(otlp_json_uint(&d->j), (uint64_t)INT32_MAX);
		else if (key_is(d, "startTimeUnixNano"))
			p->start_ns = otlp_json_uint(&d->j);
		else if (key_is(d, "endTimeUnixNano"))
			p->end_ns = otlp_json_uint(&d->j);
		else if (key_is(d, "attributes"))
			read_attributes(d, &d->s->attributes);
		else if (key_is(d, "status"))
			p->status = read_status(d);
		else
			otlp_json_skip(&d->j);
	}
	visit(d);
	otlp_json_release(&d->j, mark);
}

static void read_scope_content(struct reading *d)
{
	static void (*const readers[])(struct reading * d) = {
		[OTLP_METRICS] = read_metric, [OTLP_LOGS] = read_record, [OTLP_TRACES] = read_span};

	if (!otlp_json_array(&d->j))
		return;
	while (otlp_json_element(&d->j))
		readers[d->s->signal](d);
}

/* A level of resources or of scopes: what describes it, and a list of what is inside. */
struct level {
	const char *head, *content[OTLP_SIGNAL_COUNT];
	void (*read_head)(struct reading *d);
	void (*read_content)(struct reading *d);
};

static void read_level(struct reading *d, const struct level *level)
{
	struct otlp_kept *mark = d->j.kept;
	struct later content = {0};
	struct json_place end;
	bool described = false;

	while (otlp_json_member(&d->j)) {
		if (key_is(d, level->head)) {
			level->read_head(d);
			described = true;
		} else if (!key_is(d, level->content[d->s->signal])) {
			otlp_json_skip(&d->j);
		} else if (described) {
			level->read_content(d);
		} else {
			put_off(d, &content);
		}
	}
	if (content.is_set) {
		end = json_here(&d->j.r);
		json_go_to(&d->j.r, content.place);
		level->read_content(d);
		json_go_to(&d->j.r, end);
	}
	otlp_json_release(&d->j, mark);
}

static void read_scopes(struct reading *d)
{
	static const struct level level = {
		"scope", {"metrics", "logRecords", "spans"}, read_scope, read_scope_content};

	if (!otlp_json_array(&d->j))
		return;
	while (otlp_json_element(&d->j)) {
		otlp_reading_scope(d->s, "", 0);
		read_level(d, &level);
	}
}

static void read_resources(struct reading *d)
{
	static const struct level level = {"resource", {"scopeMetrics", "scopeLogs", "scopeSpans"},
		read_resource, read_scopes};

	if (!otlp_json_array(&d->j))
		return;
	while (otlp_json_element(&d->j)) {
		otlp_reading_resource(d->s);
		read_level(d, &level);
	}
}

int otlp_reading_json(struct otlp_reading *s, const char *text, size_t len)
{
	static const char *const keys[] = {[OTLP_METRICS] = "resourceMetrics",
		[OTLP_LOGS] = "resourceLogs",
		[OTLP_TRACES] = "resourceSpans"};
	struct reading d = {.s = s};
	int err;

	otlp_json_init(&d.j, text, len);
	if (json_read(&d.j.r) != JSON_READ_OBJECT && !d.j.r.err)
		d.j.r.err = -EBADMSG;
	while (otlp_json_member(&d.j)) {
		if (key_is(&d, keys[s->signal]))
			read_resources(&d);
		else
			otlp_json_skip(&d.j);
	}
	json_read(&d.j.r); /* nothing may follow */
	err = d.j.r.err;
	otlp_json_done(&d.j);
	return err;
}
