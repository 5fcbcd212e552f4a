/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_json.h - values of OTLP's JSON mapping, read from a json_reader: numbers that may be strings,
 * base64, and texts that stay valid when the reader goes on. */
#pragma once

#include "json/reader.h"
#include "otlp/otlp_read.h"

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
