/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - see address.h. */
#include "net/address.h"

#include <arpa/inet.h>

/* unmap - an IPv4 address that came through an IPv6 socket as IPv4. */
static union address unmap(const union address *a)
{
	union address plain = *a;

	if (a->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr)) {
		memset(&plain, 0, sizeof(plain));
		plain.v4.sin_family = AF_INET;
		plain.v4.sin_port = a->v6.sin6_port;
		memcpy(&plain.v4.sin_addr, &a->v6.sin6_addr.s6_addr[12], 4);
	}
	return plain;
}

int address_parse_host(const char *text, union address *ret)
{
	union address a;

	memset(&a, 0, sizeof(a));
	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
		a.v4.sin_family = AF_INET;
	} else if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1) {
		a.v6.sin6_family = AF_INET6;
		a = unmap(&a);
	} else {
		return -EINVAL;
	}
	*ret = a;
	return 0;
}

static int parse_port(const char *text, uint16_t *ret)
{
	unsigned long port;

	if (!*text || strlen(text) > 5 || strspn(text, "0123456789") != strlen(text))
		return -EINVAL;
	port = strtoul(text, NULL, 10);
	if (port > 65535)
		return -EINVAL;
	*ret = htons((uint16_t)port);
	return 0;
}

/* parse_parts - "[host]:port" or "host:port" into @host and what is behind the last colon. */
static int parse_parts(const char *text, char *host, size_t size, uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	size_t len;

	if (!colon && parse_port(text, ret_port) == 0) { /* a port alone is this machine's */
		snprintf(host, size, "127.0.0.1");
		return 0;
	}
	if (!colon || parse_port(colon + 1, ret_port) < 0)
		return -EINVAL;
	len = (size_t)(colon - text);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		return -EINVAL; /* of an IPv6 address without brackets no port can be told */
	}
	if (len >= size)
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = 0;
	return 0;
}

int address_parse(const char *text, union address *ret, struct errinfo *reterr)
{
	union address a;
	char host[INET6_ADDRSTRLEN];
	uint16_t port;

	if (parse_parts(text, host, sizeof(host), &port) < 0)
		return errinfo_set(reterr, -EINVAL,
			"'%.64s' is not an address to listen on: give HOST:PORT, for example "
			"127.0.0.1:8080, [::1]:8080 or :8080 for every address",
			text);
	if (text[0] == ':')
		snprintf(host, sizeof(host), "::");
	else if (strcmp(host, "localhost") == 0)
		snprintf(host, sizeof(host), "127.0.0.1");
	if (address_parse_host(host, &a) < 0)
		return errinfo_set(reterr, -EINVAL,
			"'%.64s' is a host name: give a numeric address to listen on", text);
	if (a.any.sa_family == AF_INET)
		a.v4.sin_port = port;
	else
		a.v6.sin6_port = port;
	*ret = a;
	return 0;
}

socklen_t address_len(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

uint16_t address_port(const union address *a)
{
	return ntohs(a->any.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port);
}

void address_format_host(const union address *a, char out[ADDRESS_TEXT_MAX])
{
	union address plain = unmap(a);
	const void *bytes = plain.any.sa_family == AF_INET ? (void *)&plain.v4.sin_addr
							   : (void *)&plain.v6.sin6_addr;

	if (!inet_ntop(plain.any.sa_family, bytes, out, ADDRESS_TEXT_MAX))
		snprintf(out, ADDRESS_TEXT_MAX, "?");
}

void address_format(const union address *a, char out[ADDRESS_TEXT_MAX])
{
	char host[ADDRESS_TEXT_MAX];

	address_format_host(a, host);
	snprintf(out, ADDRESS_TEXT_MAX, strchr(host, ':') ? "[%.50s]:%u" : "%.50s:%u", host,
		(unsigned)address_port(a));
}

bool address_is_loopback(const union address *a)
{
	union address plain = unmap(a);

	if (plain.any.sa_family == AF_INET)
		return (ntohl(plain.v4.sin_addr.s_addr) >> 24) == 127;
	return IN6_IS_ADDR_LOOPBACK(&plain.v6.sin6_addr);
}

bool address_is_any(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

bool address_host_equal(const union address *a, const union address *b)
{
	union address x = unmap(a), y = unmap(b);

	if (x.any.sa_family != y.any.sa_family)
		return false;
	if (x.any.sa_family == AF_INET)
		return x.v4.sin_addr.s_addr == y.v4.sin_addr.s_addr;
	return memcmp(&x.v6.sin6_addr, &y.v6.sin6_addr, sizeof(x.v6.sin6_addr)) == 0;
}

bool address_text_is_loopback(const char *address)
{
	union address a;

	return address_parse(address, &a, NULL) == 0 && address_is_loopback(&a);
}
