/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - settings of a server, its life and death. See server.h and server_private.h. */
#include "net/server/server_private.h"

#include "net/pki/tls_private.h"

uint64_t server_now_ns(void)
{
	return mono_now().ns;
}

/* check_exposure - who can reach it must show who he is, and must not be overheard. */
static int check_exposure(const struct http_server_settings *s, struct errinfo *reterr)
{
	union address a;
	int r = address_parse(s->address, &a, reterr);

	if (r < 0 || address_is_loopback(&a))
		return r;
	if (!s->tls && !s->plain)
		return errinfo_set(reterr, -EPERM,
			"%s is reachable from other machines, and traffic without TLS is not encrypted: use TLS, or request plain HTTP explicitly",
			s->address);
	if (!s->tokens && !s->anyone && !(s->tls && tls_demands_client(s->tls)))
		return errinfo_set(reterr, -EPERM,
			"%s is reachable from other machines: require a token (--token-file) or client certificates (--client-ca), or listen on 127.0.0.1",
			s->address);
	return 0;
}

static int copy_routes(struct http_server *h, const struct http_route *routes)
{
	while (routes && routes[h->route_count].method)
		h->route_count++;
	h->routes = calloc(h->route_count + 1, sizeof(*routes));
	if (!h->routes)
		return -ENOMEM;
	if (h->route_count)
		memcpy(h->routes, routes, h->route_count * sizeof(*routes));
	return 0;
}

static int open_listener(
	struct http_server *h, const struct http_server_settings *s, struct errinfo *reterr)
{
	struct allow_settings allow = {.names = s->names, .tls = s->tls != NULL};
	union address bound;
	int r = listener_new(h, s->address, s->flag, &h->listener, &bound, reterr);

	if (r < 0)
		return r;
	address_format(&bound, h->address);
	allow.port = address_port(&bound);
	/* The self-signed one has its names from the settings, without their ports. */
	if (s->tls && !tls_is_self_signed(s->tls))
		allow.named_by = s->tls;
	allow.beyond_loopback = !address_is_loopback(&bound);
	return allow_new(&allow, &h->allow, reterr);
}

int http_server_new(struct loop *l, const struct http_server_settings *s, struct http_server **ret,
	struct errinfo *reterr)
{
	_cleanup_(http_server_freep) struct http_server *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	TAILQ_INIT(&h->connections);
	TAILQ_INIT(&h->orphans);
	h->loop = l;
	h->tls = s->tls;
	h->tokens = s->tokens;
	h->owners = s->owners;
	h->owner_count = s->owner_count;
	h->arg = s->arg;
	h->refused = s->refused;
	h->error_body = s->error_body;
	h->limits = s->limits ? *s->limits : HTTP_LIMITS;
	r = check_exposure(s, reterr);
	r = r ?: copy_routes(h, s->routes);
	r = r ?: peers_new(&h->peers);
	r = r ?: open_listener(h, s, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(h);
	return 0;
}

/* for_each_connection - @fn may end any of them. */
static void for_each_connection(struct http_server *s, void (*fn)(struct connection *c))
{
	struct connection *c = TAILQ_FIRST(&s->connections);

	while (c) {
		struct connection *next;

		connection_enter(c);
		fn(c);
		next = TAILQ_NEXT(c, link);
		connection_leave(c);
		c = next;
	}
}

static void disown(struct connection *c)
{
	struct http_exchange *x;

	TAILQ_FOREACH (x, &c->exchanges, link)
		x->server = NULL;
	connection_close(c);
}

void http_server_free(struct http_server *s)
{
	struct http_exchange *x;

	s->drained = NULL;
	if (s->listener)
		listener_free(TAKE(s->listener));
	for_each_connection(s, disown);
	TAILQ_FOREACH (x, &s->orphans, link)
		x->server = NULL;
	allow_freep(&s->allow);
	peers_freep(&s->peers);
	free(s->routes);
	free(s);
}

void server_connection_ended(struct http_server *s)
{
	loop_fn *drained = s->drained;

	if (s->listener)
		listener_room(s->listener);
	if (s->draining && drained && TAILQ_EMPTY(&s->connections)) {
		s->drained = NULL;
		/* Later, because the one who is told frees the server. */
		if (loop_call(s->loop, drained, s->drained_arg) < 0)
			drained(s->drained_arg);
	}
}

void http_server_drain(struct http_server *s, loop_fn *done, void *arg)
{
	if (s->listener)
		listener_free(TAKE(s->listener));
	s->draining = true;
	s->drained_arg = arg;
	for_each_connection(s, connection_retire);
	s->drained = done;
	server_connection_ended(s);
}

const char *http_server_address(const struct http_server *s)
{
	return s->address;
}

struct http_server_stats http_server_stats(const struct http_server *s)
{
	return s->stats;
}
