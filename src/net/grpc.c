/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.c - see grpc.h; gRPC's "PROTOCOL-HTTP2" describes all of it. Pure. */
#include "net/grpc.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <strings.h>

#include "base/clock.h"
#include "protobuf/pb.h"

void grpc_frame(unsigned char out[GRPC_FRAME], size_t len, bool gzip)
{
	out[0] = gzip;
	out[1] = (unsigned char)(len >> 24);
	out[2] = (unsigned char)(len >> 16);
	out[3] = (unsigned char)(len >> 8);
	out[4] = (unsigned char)len;
}

size_t grpc_frame_len(const unsigned char f[GRPC_FRAME])
{
	return (size_t)f[1] << 24 | (size_t)f[2] << 16 | (size_t)f[3] << 8 | f[4];
}

bool grpc_is_type(const char *type, size_t len)
{
	static const char base[] = "application/grpc";
	size_t n = sizeof(base) - 1;

	return len >= n && strncasecmp(type, base, n) == 0 &&
	       (len == n || type[n] == '+' || type[n] == ';' || type[n] == ' ');
}

int grpc_unframe(
	const char *data, size_t len, const char **ret, size_t *ret_len, const char **ret_fault)
{
	const unsigned char *u = (const unsigned char *)data;
	size_t told;

	if (len < GRPC_FRAME) {
		*ret_fault = len ? "the message is truncated" : "no message";
		return -EPROTO;
	}
	told = grpc_frame_len(u);
	if (u[0]) {
		*ret_fault = "unexpected compressed message";
		return -EPROTO;
	}
	if (told != len - GRPC_FRAME) {
		*ret_fault = told > len - GRPC_FRAME ? "the message is truncated"
						     : "more than one message";
		return -EPROTO;
	}
	*ret = data + GRPC_FRAME;
	*ret_len = told;
	return 0;
}

const char *grpc_timeout(char out[GRPC_TIMEOUT_MAX], uint64_t ns)
{
	static const struct {
		uint64_t ns;
		char unit;
	} units[] = {{NS_PER_US, 'u'}, {NS_PER_MS, 'm'}, {NS_PER_S, 'S'}, {60 * NS_PER_S, 'M'},
		{3600 * NS_PER_S, 'H'}};
	size_t i = 0;

	while (i < sizeof(units) / sizeof(units[0]) - 1 && ns / units[i].ns > 99999999)
		i++;
	ns /= units[i].ns;
	snprintf(out, GRPC_TIMEOUT_MAX, "%" PRIu64 "%c", ns ? ns : 1, units[i].unit);
	return out;
}

int grpc_status_parse(const char *s, size_t len)
{
	int status = 0;

	if (!len || len > 3)
		return GRPC_UNKNOWN;
	for (; len; s++, len--) {
		if (!isdigit((unsigned char)*s))
			return GRPC_UNKNOWN;
		status = status * 10 + (*s - '0');
	}
	return status;
}

static int digit(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_message_decode(const char *s, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		char c = s[i];

		if (c == '%' && i + 2 < len && digit(s[i + 1]) >= 0 && digit(s[i + 2]) >= 0) {
			c = (char)(digit(s[i + 1]) << 4 | digit(s[i + 2]));
			i += 2;
		}
		out[n++] = c ? c : '?';
	}
	out[n] = 0;
}

void grpc_message_encode(struct buf *b, const char *s)
{
	for (; *s && b->len + 3 <= b->max; s++) {
		if (*s >= ' ' && *s <= '~' && *s != '%')
			buf_putc(b, *s);
		else
			buf_printf(b, "%%%02X", (unsigned char)*s);
	}
}

void grpc_retry_encode(struct buf *b, int status, const char *message, uint64_t delay_s)
{
	_cleanup_buf_ struct buf pb = BUF_INIT(GRPC_MESSAGE_MAX);
	unsigned char text[GRPC_MESSAGE_MAX * 4 / 3 + 8];
	size_t detail, info, delay;

	pb_put_varint(&pb, 1, (uint64_t)status);
	pb_put_string(&pb, 2, message);
	detail = pb_put_begin(&pb, 3); /* google.protobuf.Any */
	pb_put_string(&pb, 1, "type.googleapis.com/google.rpc.RetryInfo");
	info = pb_put_begin(&pb, 2);
	delay = pb_put_begin(&pb, 1); /* google.protobuf.Duration */
	pb_put_varint(&pb, 1, delay_s);
	pb_put_end(&pb, delay);
	pb_put_end(&pb, info);
	pb_put_end(&pb, detail);
	if (pb.err) {
		b->err = pb.err;
		return;
	}
	EVP_EncodeBlock(text, (const unsigned char *)pb.data, (int)pb.len);
	buf_puts(b, (const char *)text);
}

int grpc_status_of_http(int http_status)
{
	switch (http_status) {
	case 400: return GRPC_INTERNAL;
	case 401: return GRPC_UNAUTHENTICATED;
	case 403: return GRPC_PERMISSION_DENIED;
	case 404: return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504: return GRPC_UNAVAILABLE;
	default: return GRPC_UNKNOWN;
	}
}

int grpc_status_for_http(int http_status)
{
	static const struct {
		int http, grpc;
	} rows[] = {
		{200, GRPC_OK},
		{400, GRPC_INVALID_ARGUMENT},
		{401, GRPC_UNAUTHENTICATED},
		{403, GRPC_PERMISSION_DENIED},
		{404, GRPC_UNIMPLEMENTED},
		{405, GRPC_UNIMPLEMENTED},
		{408, GRPC_DEADLINE_EXCEEDED},
		{409, GRPC_ALREADY_EXISTS},
		{413, GRPC_RESOURCE_EXHAUSTED},
		{415, GRPC_UNIMPLEMENTED},
		{429, GRPC_RESOURCE_EXHAUSTED},
		{431, GRPC_RESOURCE_EXHAUSTED},
		{500, GRPC_INTERNAL},
		{501, GRPC_UNIMPLEMENTED},
		{503, GRPC_UNAVAILABLE},
		{504, GRPC_DEADLINE_EXCEEDED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].http == http_status)
			return rows[i].grpc;
	return GRPC_UNKNOWN;
}
