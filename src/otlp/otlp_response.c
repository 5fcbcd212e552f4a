/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_response.c - see otlp_response.h. Field numbers and keys are those of OTLP 1.x; JSON has 64-bit
 * numbers as text. */
#include "otlp/otlp_response.h"

#include <jansson.h>

#include "json/writer.h"
#include "base/text.h"
#include "otlp/otlp_metric.h"
#include "protobuf/pb.h"

static const struct {
	const char *id, *http_path, *grpc_path, *rejected_key;
} signals[OTLP_SIGNAL_COUNT] = {
#define X(NAME, id, service, key)                                                                  \
	[OTLP_##NAME] = {id, OTLP_HTTP_PATH(id), OTLP_GRPC_PATH(service), key},
	OTLP_SIGNALS(X)
#undef X
};

const char *otlp_signal_id(enum otlp_signal s)
{
	return signals[s].id;
}

bool otlp_signal_of_path(const char *path, enum otlp_signal *ret)
{
	for (size_t i = 0; i < OTLP_SIGNAL_COUNT; i++) {
		if (strcmp(path, signals[i].http_path) != 0 &&
			strcmp(path, signals[i].grpc_path) != 0)
			continue;
		*ret = (enum otlp_signal)i;
		return true;
	}
	return false;
}

void otlp_response_put(
	struct buf *b, enum otlp_signal s, bool json, uint64_t rejected, const char *why)
{
	size_t partial;

	if (json) {
		struct json_writer w = json_writer_to_buf(b);
		char number[24];

		json_begin_object(&w);
		if (rejected || *why) {
			snprintf(number, sizeof(number), "%" PRIu64, rejected);
			JSON_PUT_INTO(&w, "partialSuccess", JSON_S(signals[s].rejected_key, number),
				JSON_S("errorMessage", why));
		}
		json_end_object(&w);
		json_finish(&w);
		return;
	}
	if (!rejected && !*why)
		return;
	partial = pb_put_begin(b, 1);
	if (rejected)
		pb_put_varint(b, 1, rejected);
	pb_put_string(b, 2, why);
	pb_put_end(b, partial);
}

void otlp_status_put(struct buf *b, bool json, int code, const char *why)
{
	struct json_writer w;

	if (!json) {
		pb_put_varint(b, 1, (uint64_t)code);
		pb_put_string(b, 2, why);
		return;
	}
	w = json_writer_to_buf(b);
	JSON_PUT_OBJECT(&w, JSON_I("code", code), JSON_S("message", why));
	json_finish(&w);
}

/* what a receiver said: ExportMetricsServiceResponse as protobuf or JSON. Foreign
 * bytes: bounded in depth and length, and the message is text to be escaped where it is shown. */

#define ANSWER_MAX (1u << 20)

enum { RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };

/* As much of @s as fits, whole characters only. */
static void message_set(struct otlp_answer *a, const char *s, size_t len)
{
	size_t used = 0;

	while (used < len) {
		uint32_t cp;
		int n = text_utf8_next(s + used, len - used, &cp);

		if (n < 0 || !cp || used + (size_t)n >= sizeof(a->message))
			break;
		used += (size_t)n;
	}
	memcpy(a->message, s, used);
	a->message[used] = 0;
}

static void read_partial(struct pb_reader *r, struct otlp_answer *a)
{
	struct pb_field f;

	while (pb_next(r, &f)) {
		const char *s;
		size_t len;

		if (f.number == PARTIAL_REJECTED)
			a->rejected = pb_int(r, &f);
		if (f.number != PARTIAL_MESSAGE)
			continue;
		s = pb_string(r, &f, &len);
		if (s)
			message_set(a, s, len);
	}
}

int otlp_answer_protobuf(const void *data, size_t len, struct otlp_answer *ret)
{
	struct pb_reader r = pb_reader_of(data, len);
	struct otlp_answer a = {0};
	struct pb_field f;

	while (pb_next(&r, &f)) {
		struct pb_reader inner;

		if (f.number != RESPONSE_PARTIAL_SUCCESS)
			continue;
		inner = pb_enter(&r, &f);
		read_partial(&inner, &a);
		pb_leave(&r, &inner);
	}
	if (r.err)
		return -EBADMSG;
	*ret = a;
	return 0;
}

/* A 64-bit number: a string by the mapping, but receivers send plain ones too. */
static int read_long(const json_t *v, int64_t *ret)
{
	const char *text = json_string_value(v);
	char *end;

	if (!v || json_is_null(v))
		return 0;
	if (json_is_integer(v)) {
		*ret = json_integer_value(v);
		return 0;
	}
	if (!text || !*text)
		return -EBADMSG;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return errno || *end ? -EBADMSG : 0;
}

int otlp_answer_json(const char *text, size_t len, struct otlp_answer *ret)
{
	struct otlp_answer a = {0};
	const json_t *partial, *message;
	json_t *root;
	int r = -EBADMSG;

	if (!len) {
		*ret = a;
		return 0;
	}
	root = len <= ANSWER_MAX ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (json_is_object(root)) {
		partial = json_object_get(root, "partialSuccess");
		message = json_object_get(partial, "errorMessage");
		r = read_long(json_object_get(partial, "rejectedDataPoints"), &a.rejected);
		if (json_is_string(message))
			message_set(&a, json_string_value(message), json_string_length(message));
	}
	json_decref(root);
	if (r == 0)
		*ret = a;
	return r;
}
