/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read_protobuf.c - requests as protobuf. Fields come in any order, so what describes a message is
 * read before what is inside it, by walking the message twice: the second walk steps over the description,
 * the first over the content by its length. All texts stay where they are in the request. */

#include "otlp/otlp_fields.h"
#include "otlp/otlp_read_private.h"
#include "protobuf/pb.h"

static void fail(struct pb_reader *r, int err)
{
	r->err = r->err ?: err;
	r->at = r->end;
}

static void read_message(struct otlp_reading *s, struct pb_reader *outer,
	const struct pb_field *field, const struct otlp_message *m, void *base);

static void read_attribute(struct otlp_reading *s, struct otlp_attributes *a, struct pb_reader *r,
	const struct pb_field *pair)
{
	struct otlp_attribute *item = otlp_reading_attribute(s, a);

	if (item)
		read_message(s, r, pair, &otlp_key_value, item);
	else
		fail(r, -E2BIG);
}

static void read_text(struct pb_reader *r, const struct pb_field *f, void *at)
{
	size_t len = 0;
	const char *text = pb_string(r, f, &len);

	*(const char **)at = text ? text : "";
	*(size_t *)((const char **)at + 1) = text ? len : 0;
}

static struct otlp_value text_value(struct pb_reader *r, const struct pb_field *f)
{
	size_t len = 0;
	const char *text = pb_string(r, f, &len);

	return text ? otlp_text_value(text, len) : (struct otlp_value){0};
}

static void read_field(struct otlp_reading *s, struct pb_reader *r, const struct pb_field *f,
	const struct otlp_field *d, void *base)
{
	void *at = (char *)base + d->offset;
	struct otlp_value *v = at;

	switch (d->type) {
	case OTLP_LIST:
	case OTLP_MESSAGE: read_message(s, r, f, d->message, base); break;
	case OTLP_ANY:
		*v = (struct otlp_value){0};
		read_message(s, r, f, &otlp_any_value, v);
		break;
	case OTLP_ATTRIBUTES: read_attribute(s, at, r, f); break;
	case OTLP_STRING: read_text(r, f, at); break;
	case OTLP_TIME: *(uint64_t *)at = pb_fixed64(r, f); break;
	case OTLP_NUMBER: *(int *)at = (int)pb_int(r, f); break;
	case OTLP_FLAG: *(bool *)at = pb_int(r, f) != 0; break;
	case OTLP_IS_DELTA: *(bool *)at = pb_int(r, f) == TEMPORALITY_DELTA; break;
	case OTLP_ID: /* one of another length is none */
		if (f->type != PB_BYTES)
			fail(r, -EBADMSG);
		else if (f->len == d->size)
			memcpy(at, f->data, f->len);
		break;
	case OTLP_VALUE_TEXT: *v = text_value(r, f); break;
	case OTLP_VALUE_INT: *v = (struct otlp_value){.kind = OTLP_INT, .i = pb_int(r, f)}; break;
	case OTLP_VALUE_FIXED:
		*v = (struct otlp_value){.kind = OTLP_INT, .i = (int64_t)pb_fixed64(r, f)};
		break;
	case OTLP_VALUE_DOUBLE:
		*v = (struct otlp_value){.kind = OTLP_DOUBLE, .d = pb_double(r, f)};
		break;
	case OTLP_VALUE_BOOL:
		*v = (struct otlp_value){.kind = OTLP_BOOL, .i = pb_int(r, f) != 0};
		break;
	case OTLP_VALUE_BYTES:
		*v = (struct otlp_value){
			.kind = OTLP_BYTES, .text = (const char *)f->data, .len = f->len};
		if (f->type != PB_BYTES)
			fail(r, -EBADMSG);
		break;
	}
}

/* Those of its fields that are among @count from @first. */
static void read_fields(struct otlp_reading *s, struct pb_reader *r, const struct otlp_field *first,
	unsigned count, void *base)
{
	struct pb_field f;

	while (pb_next(r, &f))
		for (const struct otlp_field *d = first; d < first + count; d++)
			if (d->number == f.number) {
				read_field(s, r, &f, d, base);
				break;
			}
}

static void read_walks(
	struct otlp_reading *s, struct pb_reader *r, const struct otlp_message *m, void *base)
{
	struct pb_reader again = *r;

	if (m->heads) {
		read_fields(s, &again, m->fields, m->heads, base);
		pb_leave(r, &again);
	}
	read_fields(s, r, m->fields + m->heads, m->count - m->heads, base);
}

static void read_message(struct otlp_reading *s, struct pb_reader *outer,
	const struct pb_field *field, const struct otlp_message *m, void *base)
{
	struct pb_reader r = pb_enter(outer, field);

	if (m->begin)
		m->begin(s, m);
	read_walks(s, &r, m, base);
	if (m->end && !r.err)
		r.err = m->end(s);
	pb_leave(outer, &r);
}

int otlp_reading_protobuf(struct otlp_reading *s, const void *data, size_t len)
{
	struct pb_reader r = pb_reader_of(data, len);

	read_walks(s, &r, &otlp_requests[s->signal], s);
	return r.err;
}
