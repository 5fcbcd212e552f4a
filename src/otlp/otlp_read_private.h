/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read_private.h - what the two readers of requests share: the point or record that is being
 * filled (or span), and handing it to the visitor under the ceilings. */
#pragma once

#include "json/reader.h"
#include "otlp/otlp_read.h"

struct otlp_reading {
	const struct otlp_visitor *visitor;
	struct otlp_walk done;
	enum otlp_signal signal;
	const char *why; /* of an -E2BIG that is found here; NULL: none */
	struct otlp_attributes resource, attributes;
	struct otlp_point point;
	struct otlp_record record;
	struct otlp_span span;
};

/* otlp_reading_json/_protobuf - walks a request. 0, -EBADMSG, -E2BIG, -ENOMEM. */
int otlp_reading_json(struct otlp_reading *s, const char *text, size_t len);
int otlp_reading_protobuf(struct otlp_reading *s, const void *data, size_t len);

/* otlp_reading_resource/_scope - another one begins: nothing is known of it yet. */
void otlp_reading_resource(struct otlp_reading *s);
void otlp_reading_scope(struct otlp_reading *s, const char *name, size_t len);

/* otlp_reading_point/_record/_span - what is told of a single one is forgotten; its metric, scope and
 * resource stay. */
void otlp_reading_point(struct otlp_reading *s);
void otlp_reading_record(struct otlp_reading *s);
void otlp_reading_span(struct otlp_reading *s);

/* otlp_reading_attribute - the next free one of @a; NULL: -E2BIG. */
struct otlp_attribute *otlp_reading_attribute(struct otlp_reading *s, struct otlp_attributes *a);

/* otlp_reading_visit - gives the point, record or span to the visitor. 0 or -E2BIG. */
int otlp_reading_visit(struct otlp_reading *s);

/* otlp_text_value - of bytes that are UTF-8; a NUL inside makes it nothing. */
struct otlp_value otlp_text_value(const char *s, size_t len);

/* ---- values of OTLP's JSON mapping, read from a json_reader: numbers that may be strings,
 * base64, and texts that stay valid when the reader goes on. */

/* Texts that are not in the request as they are (escaped, base64), newest first. */
struct otlp_kept;

struct otlp_json {
	struct json_reader r;
	struct otlp_kept *kept;
};

void otlp_json_init(struct otlp_json *j, const char *text, size_t len);
void otlp_json_done(struct otlp_json *j);

/* otlp_json_release - forgets the texts kept since otlp_json.kept was @mark. */
void otlp_json_release(struct otlp_json *j, struct otlp_kept *mark);

/* otlp_json_object - the next token begins an object. False: it is null, or (an error then) another. */
bool otlp_json_object(struct otlp_json *j);
bool otlp_json_array(struct otlp_json *j);
/* otlp_json_member - the next key of the object, json_read_is() says which; false at its end. */
bool otlp_json_member(struct otlp_json *j);
/* otlp_json_element - the next element of an array of objects has begun; false at its end. */
bool otlp_json_element(struct otlp_json *j);
void otlp_json_skip(struct otlp_json *j);

/* The value of a member. One that makes no sense is nothing: 0, "", OTLP_NONE. */
const char *otlp_json_text(struct otlp_json *j, size_t *ret_len);
uint64_t otlp_json_uint(struct otlp_json *j);
struct otlp_value otlp_json_int_value(struct otlp_json *j);
struct otlp_value otlp_json_double_value(struct otlp_json *j);
bool otlp_json_bool(struct otlp_json *j);
/* otlp_json_any - an AnyValue. */
struct otlp_value otlp_json_any(struct otlp_json *j);
