/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_asker.c - who asks: the holder of a token, or on loopback an owner of the server, known
 * by the user of the socket at the other end. See server_private.h.
 *
 * Invariants:
 *  1. A valid token is looked for before anything is counted: wrong ones, however many, never stand
 *     in the way of a right one from the same address.
 *  2. An owner's browser is not the owner: a request that a page of another site has caused needs a
 *     token, also where the browser leaves out Origin (a browser writes Sec-Fetch-Site, pages
 *     cannot).
 *  3. q.asker is made of what has been verified, so that nobody is many askers by writing fields. */
#include "net/server/server_private.h"

#include "base/hash.h"
#include "net/server/socket_owner.h"

static void add_text(struct http_exchange *x, const char *text)
{
	x->q.asker = hash_number(x->q.asker ^ hash_bytes(text, strlen(text)));
}

static bool is_of_another_site(const struct http_exchange *x)
{
	const char *site = http_head_get(&x->q.head, "sec-fetch-site");

	return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

/* is_owner - the kernel is asked once a connection, and only if no token was shown. */
static bool is_owner(const struct http_exchange *x)
{
	const struct http_server *s = x->server;
	struct connection *c = x->conn;

	if (!s->owner_count || is_of_another_site(x))
		return false;
	if (!c->owner_known)
		c->is_owner =
			socket_owner_is_one_of(&c->remote, &c->local, s->owners, s->owner_count);
	c->owner_known = true;
	return c->is_owner;
}

static bool refuse(struct http_exchange *x, const char *shown)
{
	struct peers *peers = x->server->peers;
	const union address *remote = &x->conn->remote;
	unsigned wait_s = shown ? peers_is_blocked(peers, remote, server_now_ns()) : 0;

	if (wait_s) {
		exchange_refuse(x, 429, "too many invalid tokens from this address");
		http_reply_field(x, "retry-after", FORMATTED(16, "%u", wait_s));
		return false;
	}
	if (shown)
		peers_fail(peers, remote, server_now_ns());
	exchange_refuse(x, 401, shown ? "invalid token" : "a token is required");
	http_reply_field(x, "www-authenticate", "Bearer");
	return false;
}

bool exchange_admit_asker(struct http_exchange *x)
{
	const char *shown = http_head_get(&x->q.head, "authorization");
	const struct http_server *s = x->server;

	x->q.asker = peer_key(&x->conn->remote);
	if (x->subject) {
		add_text(x, x->subject);
		x->q.credential = token_number(x->subject, strlen(x->subject));
	}
	if (s->tokens) {
		uint64_t token = token_set_find(s->tokens, shown);

		if (x->route->open)
			return true;
		if (token) {
			add_text(x, shown);
			x->q.credential = token;
		} else if (is_owner(x)) {
			add_text(x, "owner");
		} else {
			return refuse(x, shown);
		}
	}
	x->q.admitted = true;
	connection_prove(x->conn);
	return true;
}
