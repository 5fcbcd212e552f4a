/* SPDX-License-Identifier: Apache-2.0 */
/* client_endpoint.c - "https://gpu1:8080" as text and as struct http_endpoint. Pure.
 *
 * What is accepted is what can be looked up and sent in Host: a name of letters, digits, '-', '_'
 * and '.', or an address. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "net/client/client_private.h"

static int refuse(const char *text, struct errinfo *reterr, const char *why)
{
	_cleanup_buf_ struct buf shown = BUF_INIT(1024);

	text_escape_terminal_len(&shown, text, strnlen(text, 200));
	return errinfo_set(reterr, -EINVAL,
		"invalid address '%s': %s. Write host:port, or https://host:port", buf_str(&shown),
		why);
}

/* What is wrong with the name, or NULL. */
static const char *name_fault(const char *host)
{
	size_t label = 0;
	const char *p;

	for (p = host; *p; p++) {
		label = *p == '.' ? 0 : label + 1;
		if (*p == '.' && (p == host || p[-1] == '.'))
			return "empty label in the host name";
		if (*p != '.' && *p != '-' && *p != '_' && !isalnum((unsigned char)*p))
			return "invalid character in the host name";
		if (label > 63)
			return "a label of the host name is longer than 63 characters";
	}
	if (p == host)
		return "no host";
	return p - host > 253 ? "the host name is longer than 253 characters" : NULL;
}

static const char *parse_port(const char *s, uint16_t *ret)
{
	unsigned int port = 0;

	if (!*s || strspn(s, "0123456789") != strlen(s) || strlen(s) > 5)
		return "the port is not a number";
	for (; *s; s++)
		port = port * 10 + (unsigned int)(*s - '0');
	if (!port || port > 65535)
		return "the port is not between 1 and 65535";
	*ret = (uint16_t)port;
	return NULL;
}

/* "[::1]:8080", "[::1]", "::1": what follows the address is in *ret_rest. */
static const char *parse_v6(char *s, struct http_endpoint *p, const char **ret_rest)
{
	bool in_brackets = *s == '[';
	char *end = in_brackets ? strchr(s, ']') : s + strlen(s);
	struct in6_addr a;

	if (!end)
		return "missing ']'";
	*ret_rest = in_brackets ? end + 1 : end;
	*end = 0;
	if (inet_pton(AF_INET6, s + in_brackets, &a) != 1)
		return in_brackets ? "the brackets do not contain an IPv6 address"
				   : "more than one ':' (an IPv6 address with a port is "
				     "written [::1]:8080)";
	snprintf(p->host, sizeof(p->host), "%s", s + in_brackets);
	return NULL;
}

static const char *parse(char *s, struct http_endpoint *p)
{
	const char *rest = "", *fault;
	char *colon;

	if (strchr(s, '@'))
		return "a user name is not allowed";
	if (strpbrk(s, "/?#"))
		return "a path is not allowed";
	if (*s == '[' || (strchr(s, ':') && strchr(s, ':') != strrchr(s, ':'))) {
		fault = parse_v6(s, p, &rest);
		if (fault)
			return fault;
		if (*rest && *rest != ':')
			return "only a port may follow the address";
		return *rest ? parse_port(rest + 1, &p->port) : NULL;
	}
	colon = strchr(s, ':');
	if (colon)
		*colon = 0;
	fault = name_fault(s);
	if (fault)
		return fault;
	snprintf(p->host, sizeof(p->host), "%s", s);
	return colon ? parse_port(colon + 1, &p->port) : NULL;
}

int http_endpoint_parse(const char *text, bool tls, uint16_t port, struct http_endpoint *ret,
	struct errinfo *reterr)
{
	struct http_endpoint p = {.tls = tls, .port = port};
	const char *s = text, *scheme = strstr(text, "://"), *fault;
	char copy[sizeof(p.host) + 16];
	size_t len;

	if (scheme) {
		p.tls = scheme - text == 5 && !strncasecmp(text, "https", 5);
		if (!p.tls && (scheme - text != 4 || strncasecmp(text, "http", 4)))
			return refuse(text, reterr, "only http:// and https:// are supported");
		s = scheme + 3;
	}
	len = strlen(s);
	if (len && s[len - 1] == '/') /* the root, as browsers write it */
		len--;
	if (len >= sizeof(copy))
		return refuse(text, reterr, "too long");
	memcpy(copy, s, len);
	copy[len] = 0;
	fault = parse(copy, &p);
	if (!fault && !p.port)
		fault = "no port";
	if (fault)
		return refuse(text, reterr, fault);
	*ret = p;
	return 0;
}

const char *client_endpoint_text(char out[CLIENT_ENDPOINT_TEXT], const struct http_endpoint *p)
{
	bool v6 = strchr(p->host, ':');

	snprintf(out, CLIENT_ENDPOINT_TEXT, "%s%s%s:%u", v6 ? "[" : "", p->host, v6 ? "]" : "",
		p->port);
	return out;
}

bool client_endpoint_equal(const struct http_endpoint *a, const struct http_endpoint *b)
{
	return a->tls == b->tls && a->port == b->port && !strcasecmp(a->host, b->host);
}
