/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read.c - the part of reading requests that does not depend on their encoding. */
#include "otlp/otlp_read.h"

#include "otlp/otlp_read_private.h"

const struct otlp_value *otlp_attribute_get(const struct otlp_attributes *a, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < a->count; i++)
		if (a->item[i].key_len == len && memcmp(a->item[i].key, key, len) == 0)
			return &a->item[i].value;
	return NULL;
}

void otlp_reading_resource(struct otlp_reading *s)
{
	s->resource.count = 0;
	s->point.resource_number++;
	s->record.resource_number++;
	s->span.resource_number++;
}

void otlp_reading_scope(struct otlp_reading *s, const char *name, size_t len)
{
	s->point.scope = s->record.scope = s->span.scope = name;
	s->point.scope_len = s->record.scope_len = s->span.scope_len = len;
}

void otlp_reading_point(struct otlp_reading *s)
{
	s->attributes.count = 0;
	s->point.time_ns = s->point.start_ns = s->point.count = 0;
	s->point.value = (struct otlp_value){0};
}

void otlp_reading_record(struct otlp_reading *s)
{
	s->attributes.count = 0;
	s->record.time_ns = s->record.observed_ns = 0;
	s->record.severity = 0;
	s->record.body = (struct otlp_value){0};
	s->record.event = "";
	s->record.event_len = 0;
}

void otlp_reading_span(struct otlp_reading *s)
{
	struct otlp_span *p = &s->span;

	s->attributes.count = 0;
	p->name = "";
	p->name_len = 0;
	p->start_ns = p->end_ns = 0;
	p->kind = p->status = 0;
	memset(p->trace, 0, sizeof(p->trace));
	memset(p->id, 0, sizeof(p->id));
	memset(p->parent, 0, sizeof(p->parent));
}

static int too_much(struct otlp_reading *s, const char *why)
{
	s->why = why;
	return -E2BIG;
}

struct otlp_attribute *otlp_reading_attribute(struct otlp_reading *s, struct otlp_attributes *a)
{
	struct otlp_attribute *item = &a->item[a->count];

	if (a->count == OTLP_ATTRIBUTES_MAX) {
		too_much(s, "a point, record, span or resource has too many attributes");
		return NULL;
	}
	a->count++;
	*item = (struct otlp_attribute){.key = ""};
	return item;
}

int otlp_reading_visit(struct otlp_reading *s)
{
	const struct otlp_visitor *v = s->visitor;
	int r;

	if (s->done.taken + s->done.rejected == OTLP_POINTS_MAX)
		return too_much(s, "it has too many points, records or spans");
	switch (s->signal) {
	case OTLP_METRICS: r = v->point(v->arg, &s->point); break;
	case OTLP_LOGS: r = v->record(v->arg, &s->record); break;
	default: r = v->span(v->arg, &s->span);
	}
	if (r < 0)
		s->done.rejected++;
	else
		s->done.taken++;
	return 0;
}

struct otlp_value otlp_text_value(const char *s, size_t len)
{
	if (len && memchr(s, 0, len))
		return (struct otlp_value){0};
	return (struct otlp_value){.kind = OTLP_TEXT, .text = s, .len = len};
}

int otlp_read(enum otlp_signal signal, bool json, const void *data, size_t len,
	const struct otlp_visitor *v, struct otlp_walk *ret, struct errinfo *reterr)
{
	const char *what = otlp_signal_id(signal);
	struct otlp_reading s;
	int err;

	/* The attributes' items are as large as a page and are valid up to their count only. */
	s.visitor = v;
	s.done = (struct otlp_walk){0};
	s.signal = signal;
	s.why = NULL;
	s.resource.count = s.attributes.count = 0;
	s.point = (struct otlp_point){
		.resource = &s.resource, .attributes = &s.attributes, .name = "", .unit = ""};
	s.record = (struct otlp_record){.resource = &s.resource, .attributes = &s.attributes};
	s.span = (struct otlp_span){.resource = &s.resource, .attributes = &s.attributes};
	otlp_reading_scope(&s, "", 0);
	err = json ? otlp_reading_json(&s, data, len) : otlp_reading_protobuf(&s, data, len);
	if (err == 0) {
		*ret = s.done;
		return 0;
	}
	if (err == -ENOMEM)
		return errinfo_set(reterr, err, "out of memory while reading OTLP %s", what);
	if (err == -E2BIG)
		return errinfo_set(reterr, err, "the request of OTLP %s is too large: %s", what,
			s.why ? s.why : "its messages are nested too deeply");
	return errinfo_set(reterr, -EBADMSG, "the body is not a request of OTLP %s in %s", what,
		json ? "JSON" : "protobuf");
}
