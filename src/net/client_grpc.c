/* SPDX-License-Identifier: Apache-2.0 */
/* client_grpc.c - see client_grpc.h; gRPC's "PROTOCOL-HTTP2" describes all of it. Pure. */
#include "net/client_grpc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"

void grpc_frame(unsigned char out[GRPC_FRAME], size_t len)
{
	out[0] = 0; /* not compressed */
	out[1] = (unsigned char)(len >> 24);
	out[2] = (unsigned char)(len >> 16);
	out[3] = (unsigned char)(len >> 8);
	out[4] = (unsigned char)len;
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
	told = (size_t)u[1] << 24 | (size_t)u[2] << 16 | (size_t)u[3] << 8 | u[4];
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
