/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_reply.c - see pusher_reply.h. */
#include "node/push/pusher_reply.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

#include "json/reader.h"

static enum pusher_hint take(double value, bool quorum, int64_t now_ns, struct health_threshold *t)
{
	if (!health_threshold_is_usable(value) && !(value == 0 && !quorum))
		return PUSHER_HINT_REFUSED;
	/* A fleet that has just been started knows nothing yet: what it said before is better. */
	if (value == 0 && t->known && health_threshold_is_usable(t->value))
		return PUSHER_HINT_TAKEN;
	*t = (struct health_threshold){
		.known = true, .value = value, .quorum = quorum, .at_ns = now_ns};
	return PUSHER_HINT_TAKEN;
}

enum pusher_hint pusher_reply_fields(
	const struct http_head *h, int64_t now_ns, struct health_threshold *t)
{
	const char *value = http_head_get(h, "x-ingero-threshold");
	const char *quorum = http_head_get(h, "x-ingero-quorum-met");
	bool is_met = quorum && !strcasecmp(quorum, "true");
	double number;
	char *end;

	if (!value || !quorum)
		return PUSHER_HINT_MISSING;
	number = strtod(value, &end);
	if (end == value || *end || isspace((unsigned char)*value) ||
		(!is_met && strcasecmp(quorum, "false")))
		return PUSHER_HINT_REFUSED;
	return take(number, is_met, now_ns, t);
}

enum pusher_hint pusher_reply_body(
	const char *text, size_t len, int64_t now_ns, struct health_threshold *t)
{
	bool has_value = false, has_quorum = false, quorum = false;
	enum json_read token = JSON_READ_BAD;
	struct json_reader r;
	double value = 0;

	json_reader_init(&r, text, MIN(len, (size_t)PUSHER_BODY_MAX), PUSHER_BODY_MAX);
	if (json_read(&r) == JSON_READ_OBJECT)
		while ((token = json_read(&r)) == JSON_READ_KEY) {
			bool is_value = json_read_is(&r, "threshold");
			bool is_quorum = json_read_is(&r, "quorum_met");

			token = json_read(&r);
			if (is_value && (token == JSON_READ_INT || token == JSON_READ_REAL)) {
				value = token == JSON_READ_INT ? (double)r.i : r.d;
				has_value = true;
			} else if (is_quorum && token == JSON_READ_BOOL) {
				quorum = r.b;
				has_quorum = true;
			} else if (is_value || is_quorum || !json_skip(&r, token)) {
				break;
			}
		}
	if (token != JSON_READ_OBJECT_END || json_read(&r) != JSON_READ_END)
		has_value = false;
	json_reader_done(&r);
	return has_value && has_quorum ? take(value, quorum, now_ns, t) : PUSHER_HINT_REFUSED;
}

uint64_t pusher_jitter(uint64_t ns, double share, uint64_t random)
{
	double unit = (double)(random >> 11) / (double)(UINT64_C(1) << 53); /* 0 … 1 */

	return (uint64_t)fmax((double)ns * (1 + share * (2 * unit - 1)), 0);
}
