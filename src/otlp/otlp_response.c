/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_response.c - see otlp_response.h. Field numbers and keys are those of OTLP 1.x; JSON has 64-bit
 * numbers as text. */
#include "otlp/otlp_response.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json/writer.h"
#include "protobuf/pb_writer.h"

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

static void put_json(struct buf *b, enum otlp_signal s, uint64_t rejected, const char *why)
{
	struct json_writer w = json_writer_to_buf(b);
	char number[24];

	json_begin_object(&w);
	if (rejected || *why) {
		snprintf(number, sizeof(number), "%" PRIu64, rejected);
		json_begin_object_member(&w, "partialSuccess");
		json_string_member(&w, signals[s].rejected_key, number);
		json_string_member(&w, "errorMessage", why);
		json_end_object(&w);
	}
	json_end_object(&w);
	json_finish(&w);
}

void otlp_response_put(
	struct buf *b, enum otlp_signal s, bool json, uint64_t rejected, const char *why)
{
	size_t partial;

	if (json) {
		put_json(b, s, rejected, why);
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
	json_begin_object(&w);
	json_int_member(&w, "code", code);
	json_string_member(&w, "message", why);
	json_end_object(&w);
	json_finish(&w);
}
