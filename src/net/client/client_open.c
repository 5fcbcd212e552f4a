/* SPDX-License-Identifier: Apache-2.0 */
/* client_open.c - how a connection comes about: name, addresses in turn, TLS; and the sentences for
 * what goes wrong on the way. Ends in client_conn_opened() or client_conn_fail(). */
#include <arpa/inet.h>
#include <ctype.h>
#include <event2/event.h>
#include <strings.h>

#include "base/text.h"
#include "net/client/client_private.h"
#include "net/pki/tls.h"

int client_open_timeout(
	const struct client_conn *c, const struct http_call *call, struct errinfo *reterr)
{
	char endpoint[CLIENT_ENDPOINT_TEXT], time[TEXT_MAX];

	client_endpoint_text(endpoint, &call->endpoint);
	text_format_duration(time, call->timeout_ns);
	if (!c)
		return errinfo_set(reterr, -ETIMEDOUT,
			"%s: no request was sent within %s: too many requests in flight", endpoint,
			time);
	switch (c->state) {
	case CLIENT_NAMING:
		return errinfo_set(reterr, -ETIMEDOUT,
			"%s: no DNS server answered within %s. Check /etc/resolv.conf, or give an address",
			endpoint, time);
	case CLIENT_CONNECTING:
		return errinfo_set(reterr, -ETIMEDOUT,
			"%s cannot be reached: no answer within %s. Check that the machine is up and that no firewall blocks it",
			endpoint, time);
	case CLIENT_HANDSHAKING:
		return errinfo_set(reterr, -ETIMEDOUT,
			"%s accepted the connection but did not complete a TLS handshake within %s. If it does not use TLS, write http:// before its address",
			endpoint, time);
	default:
		return errinfo_set(reterr, -ETIMEDOUT,
			call->response.first_ns ? "%s did not finish its reply within %s"
						: "%s did not reply within %s",
			endpoint, time);
	}
}

static void shake_hands(struct client_conn *c)
{
	struct errinfo e = {};
	int r = client_socket_handshake(&c->socket, &e);

	if (r == 0)
		client_conn_opened(c);
	else if (r == -EAGAIN)
		client_conn_want(c, c->socket.wants_write ? EV_READ | EV_WRITE : EV_READ);
	else if (e.text[0])
		client_conn_end_calls(c, r, &e);
	else
		client_conn_fail(c, -EPROTO,
			"%s closed the connection during the TLS handshake. If it does not use TLS, write http:// before its address",
			c->socket.endpoint);
}

static int start_tls(struct client_conn *c, struct errinfo *reterr)
{
	struct http_client *client = c->client;
	struct tls_client_settings system = {};
	int r;

	if (!client->tls && !client->own_tls) {
		r = tls_client_new(&system, &client->own_tls, reterr);
		if (r < 0)
			return r;
	}
	return client_socket_start_tls(
		&c->socket, client->tls ? client->tls : client->own_tls, c->protocol->alpn, reterr);
}

static void connected(struct client_conn *c)
{
	struct errinfo e = {};
	int r = client_socket_connected(&c->socket);

	event_del(c->timer);
	if (r < 0) {
		client_open_next(c, r);
		return;
	}
	if (!c->endpoint.tls) {
		client_conn_opened(c);
		return;
	}
	r = start_tls(c, &e);
	if (r < 0) {
		client_conn_end_calls(c, r, &e);
		return;
	}
	c->state = CLIENT_HANDSHAKING;
	shake_hands(c);
}

void client_open_step(struct client_conn *c)
{
	if (c->state == CLIENT_CONNECTING)
		connected(c);
	else
		shake_hands(c);
}

/* The addresses of a name share the time that is left; the last has all of it. */
static void limit_attempt(struct client_conn *c)
{
	size_t left = c->addresses.count - c->address_next + 1;
	uint64_t end_ns = 0, now_ns = mono_now().ns, share_ns;
	struct http_call *call;

	TAILQ_FOREACH (call, &c->calls, link)
		end_ns = MAX(end_ns, call->deadline_ns);
	if (left < 2 || end_ns <= now_ns)
		return;
	share_ns = (end_ns - now_ns) / left;
	event_add(c->timer, &(struct timeval){.tv_sec = (time_t)(share_ns / NS_PER_S),
				    .tv_usec = (suseconds_t)(share_ns % NS_PER_S / 1000)});
}

static void unreachable(struct client_conn *c, int why)
{
	const char *endpoint = c->socket.endpoint;

	switch (why) {
	case -ECONNREFUSED:
		client_conn_fail(c, why,
			"%s refused the connection: nothing is listening. Check the port, and that the server is running",
			endpoint);
		break;
	case -ENETUNREACH:
	case -EHOSTUNREACH:
		client_conn_fail(c, -EHOSTUNREACH,
			"%s cannot be reached: there is no route to it. Check the address and the "
			"network",
			endpoint);
		break;
	case -EMFILE:
	case -ENFILE:
		client_conn_fail(c, why,
			"cannot connect to %s: too many open files. Raise the limit (ulimit -n)",
			endpoint);
		break;
	case -ETIMEDOUT:
		client_conn_fail(c, why,
			"%s cannot be reached: no answer. Check that the machine is up and that no firewall blocks it",
			endpoint);
		break;
	default: client_conn_fail(c, why, "%s cannot be reached: %s", endpoint, strerror(-why));
	}
}

void client_open_next(struct client_conn *c, int why)
{
	struct http_call *call;

	while (c->address_next < c->addresses.count) {
		int r;

		event_del(c->event);
		c->events = 0;
		client_socket_close(&c->socket);
		c->address_next++;
		while ((call = TAILQ_FIRST(&c->calls)) && !client_conn_is_private(c, call))
			client_conn_refuse_clear(c, call); /* closes @c with the last */
		if (c->state == CLIENT_CLOSED)
			return;
		r = client_socket_open(&c->socket, &c->addresses.at[c->address_next - 1]);
		if (r == 0) {
			c->state = CLIENT_CONNECTING;
			limit_attempt(c);
			client_conn_want(c, EV_WRITE);
			return;
		}
		why = r;
	}
	unreachable(c, why);
}

static void on_names(void *arg, int err, const struct client_addresses *a)
{
	struct client_conn *c = arg;

	c->lookup = NULL;
	if (err == -ENOENT) {
		client_conn_fail(c, err,
			"unknown host '%s': check the spelling, /etc/hosts and DNS",
			c->endpoint.host);
	} else if (err == -EACCES) {
		client_conn_fail(c, err,
			"'%s' leads to a link-local address, or from the open network into a private one: not followed. If that is meant, give the address itself",
			c->endpoint.host);
	} else if (err < 0) {
		client_conn_fail(c, err,
			"cannot resolve '%s': no DNS server answers. Check "
			"/etc/resolv.conf, or give an address",
			c->endpoint.host);
	} else {
		c->addresses = *a;
		client_open_next(c, -EHOSTUNREACH);
	}
}

void client_open_begin(struct client_conn *c)
{
	struct client_lookup *lookup;
	int r = client_names_lookup(
		c->client->names, c->endpoint.host, c->endpoint.port, on_names, c, &lookup);

	if (r < 0)
		client_conn_fail(c, r, "%s: %s", c->socket.endpoint, strerror(-r));
	else if (c->state == CLIENT_NAMING)
		c->lookup = lookup;
}

/* "https://gpu1:8080" as text and as struct http_endpoint. Pure.
 *
 * What is accepted is what can be looked up and sent in Host: a name of letters, digits, '-', '_'
 * and '.', or an address. */

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
