/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read_private.h - what the two readers of requests share: OTLP's messages, each described once by its
 * fields, the point, record or span that is being filled, and handing it to the visitor under the ceilings.
 *
 * To read another field: a member where it is kept, and a line in its message in otlp_read.c. */
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
	const char *scope;
	size_t scope_len;
};

enum otlp_type {
	OTLP_LIST,       /* of messages */
	OTLP_MESSAGE,    /* whose fields are of what this one lies in */
	OTLP_ANY,        /* a struct otlp_value that is a message of its own */
	OTLP_ATTRIBUTES, /* a list into struct otlp_attributes */
	OTLP_STRING,     /* a text and, behind it, its length */
	OTLP_TIME,       /* uint64_t, of 8 bytes in protobuf */
	OTLP_NUMBER,     /* int */
	OTLP_FLAG,       /* bool */
	OTLP_IS_DELTA,   /* bool: a temporality */
	OTLP_ID,         /* bytes, in hexadecimal digits in JSON */
	OTLP_VALUE_TEXT, /* struct otlp_value */
	OTLP_VALUE_INT,
	OTLP_VALUE_FIXED, /* likewise, of 8 bytes in protobuf */
	OTLP_VALUE_DOUBLE,
	OTLP_VALUE_BOOL,
	OTLP_VALUE_BYTES,
};

struct otlp_field {
	uint32_t number; /* in protobuf */
	enum otlp_type type;
	const char *key; /* in JSON */
	size_t offset, size;
	const struct otlp_message *message; /* of LIST and MESSAGE */
};

struct otlp_message {
	const struct otlp_field *fields;
	/* So many of the first describe the others, and are read before them; of all. */
	unsigned heads, count;
	/* A new one: nothing is known of it. It is over: 0 or -E2BIG. NULL: nothing to do. */
	void (*begin)(struct otlp_reading *s, const struct otlp_message *m);
	int (*end)(struct otlp_reading *s);
	enum otlp_point_kind kind; /* of its points */
	bool keeps;                /* its texts are needed when it is over */
};
extern const struct otlp_message otlp_requests[OTLP_SIGNAL_COUNT], otlp_key_value, otlp_any_value;

/* otlp_reading_json/_protobuf - walks a request. 0, -EBADMSG, -E2BIG, -ENOMEM. */
int otlp_reading_json(struct otlp_reading *s, const char *text, size_t len);
int otlp_reading_protobuf(struct otlp_reading *s, const void *data, size_t len);

/* otlp_reading_attribute - the next free one of @a; NULL: -E2BIG. */
struct otlp_attribute *otlp_reading_attribute(struct otlp_reading *s, struct otlp_attributes *a);

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
struct otlp_value otlp_json_bytes_value(struct otlp_json *j);
