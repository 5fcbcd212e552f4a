/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read_json.c - requests by OTLP's JSON mapping, one token after the other.
 *
 * Members come in any order, and a point is given with its metric's name, its scope and its resource.
 * Where a message's content comes before all that describes it, it is stepped over, and read once the
 * message is over: each token is looked at once for each level at most. Writers put the description first. */

#include "otlp/otlp_fields.h"
#include "otlp/otlp_read_private.h"

struct reading {
	struct otlp_reading *s;
	struct otlp_json j;
};

static void read_message(struct reading *d, const struct otlp_message *m, void *base);

static void read_attributes(struct reading *d, struct otlp_attributes *a)
{
	a->count = 0;
	if (!otlp_json_array(&d->j))
		return;
	while (otlp_json_element(&d->j)) {
		struct otlp_attribute *item = otlp_reading_attribute(d->s, a);

		if (!item) {
			d->j.r.err = -E2BIG;
			return;
		}
		read_message(d, &otlp_key_value, item);
	}
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

static void read_field(struct reading *d, const struct otlp_field *f, void *base)
{
	void *at = (char *)base + f->offset;
	struct otlp_json *j = &d->j;
	struct otlp_value *v = at;
	const char *text;
	size_t len;

	switch (f->type) {
	case OTLP_LIST:
		for (bool go = otlp_json_array(j); go && otlp_json_element(j);)
			read_message(d, f->message, base);
		break;
	case OTLP_MESSAGE:
		if (otlp_json_object(j))
			read_message(d, f->message, base);
		break;
	case OTLP_ANY:
		*v = (struct otlp_value){0};
		if (otlp_json_object(j))
			read_message(d, &otlp_any_value, v);
		break;
	case OTLP_ATTRIBUTES: read_attributes(d, at); break;
	case OTLP_STRING:
		*(const char **)at = otlp_json_text(j, &len);
		*(size_t *)((const char **)at + 1) = len;
		break;
	case OTLP_TIME: *(uint64_t *)at = otlp_json_uint(j); break;
	case OTLP_NUMBER: *(int *)at = (int)MIN(otlp_json_uint(j), (uint64_t)INT32_MAX); break;
	case OTLP_FLAG: *(bool *)at = otlp_json_bool(j); break;
	case OTLP_IS_DELTA: *(bool *)at = otlp_json_uint(j) == TEMPORALITY_DELTA; break;
	case OTLP_ID: read_id(d, at, f->size); break;
	case OTLP_VALUE_TEXT:
		text = otlp_json_text(j, &len);
		*v = otlp_text_value(text, len);
		break;
	case OTLP_VALUE_INT:
	case OTLP_VALUE_FIXED: *v = otlp_json_int_value(j); break;
	case OTLP_VALUE_DOUBLE: *v = otlp_json_double_value(j); break;
	case OTLP_VALUE_BOOL:
		*v = (struct otlp_value){.kind = OTLP_BOOL, .i = otlp_json_bool(j)};
		break;
	case OTLP_VALUE_BYTES: *v = otlp_json_bytes_value(j); break;
	}
}

/* What the key that was just read names; NULL: nothing that is wanted. */
static const struct otlp_field *find_field(const struct reading *d, const struct otlp_message *m)
{
	for (const struct otlp_field *f = m->fields; f < m->fields + m->count; f++)
		if (json_read_is(&d->j.r, f->key))
			return f;
	return NULL;
}

/* The members of an object that has begun, into what lies at @base. */
static void read_message(struct reading *d, const struct otlp_message *m, void *base)
{
	struct otlp_kept *mark = d->j.kept;
	const struct otlp_field *f, *later = NULL;
	struct json_place place = {0}, end;
	unsigned known = 0, heads = (1u << m->heads) - 1;

	if (m->begin)
		m->begin(d->s, m);
	while (otlp_json_member(&d->j)) {
		f = find_field(d, m);
		if (f && (f < m->fields + m->heads || known == heads)) {
			read_field(d, f, base);
			known |= (1u << (f - m->fields)) & heads;
			continue;
		}
		if (f) {
			place = json_here(&d->j.r);
			later = f;
		}
		otlp_json_skip(&d->j);
	}
	if (later) {
		end = json_here(&d->j.r);
		json_go_to(&d->j.r, place);
		read_field(d, later, base);
		json_go_to(&d->j.r, end);
	}
	if (m->end && !d->j.r.err)
		d->j.r.err = m->end(d->s);
	if (!m->keeps)
		otlp_json_release(&d->j, mark);
}

int otlp_reading_json(struct otlp_reading *s, const char *text, size_t len)
{
	struct reading d = {.s = s};
	int err;

	otlp_json_init(&d.j, text, len);
	if (json_read(&d.j.r) != JSON_READ_OBJECT && !d.j.r.err)
		d.j.r.err = -EBADMSG;
	read_message(&d, &otlp_requests[s->signal], s);
	json_read(&d.j.r); /* nothing may follow */
	err = d.j.r.err;
	otlp_json_done(&d.j);
	return err;
}
