/* SPDX-License-Identifier: Apache-2.0 */
/* connection_time.c - what time a connection may take. See server_private.h.
 *
 * One timer a connection. It is never moved later, since that would cost each request something: a
 * look that finds nothing to do sets the time of the next one. */
#include "net/server/server_private.h"

#include <event2/event.h>

/* The first head_ns are free; after twice that it is counted anew. */
bool connection_is_slow(const struct connection *c, struct pace *p, uint64_t now_ns)
{
	const struct http_limits *l = &c->server->limits;
	uint64_t passed = p->since_ns && now_ns > p->since_ns ? now_ns - p->since_ns : 0;

	if (passed <= l->head_ns)
		return false;
	if ((double)p->bytes < (double)l->body_rate * (double)(passed - l->head_ns) / NS_PER_S)
		return true;
	if (passed > 2 * l->head_ns)
		pace_start(p, now_ns);
	return false;
}

/* How often something that must not be too slow is looked at. */
static uint64_t tick_ns(const struct http_limits *l)
{
	uint64_t quarter = MAX(l->head_ns / 4, NS_PER_MS);

	return MIN(NS_PER_S, quarter);
}

static uint64_t phase_limit_ns(const struct connection *c)
{
	const struct http_limits *l = &c->server->limits;

	switch (c->phase) {
	case PHASE_HANDSHAKE: return l->handshake_ns;
	case PHASE_HEAD: return l->head_ns;
	case PHASE_IDLE: return l->idle_ns;
	case PHASE_LINGER: return l->linger_ns;
	default: return 0;
	}
}

/* phase_is_late - and if not, when to look again. */
static bool phase_is_late(struct connection *c, uint64_t now_ns, uint64_t *due_ns)
{
	const struct http_limits *l = &c->server->limits;
	uint64_t limit = phase_limit_ns(c), free_ns = c->phase_ns + l->head_ns;

	if (limit && now_ns >= c->phase_ns + limit)
		return true;
	if (limit)
		*due_ns = MIN(*due_ns, c->phase_ns + limit);
	if (c->phase == PHASE_BODY) {
		if (connection_is_slow(c, &c->body, now_ns))
			return true;
		free_ns = MAX(free_ns, now_ns) + tick_ns(l);
		*due_ns = MIN(*due_ns, free_ns);
	}
	return false;
}

/* output_is_stuck - the peer does not read what it has asked for. */
static bool output_is_stuck(struct connection *c, uint64_t now_ns, uint64_t *due_ns)
{
	const struct http_limits *l = &c->server->limits;

	if (!c->out.since_ns)
		return false;
	if (connection_is_slow(c, &c->out, now_ns))
		return true;
	*due_ns = MIN(*due_ns, now_ns + tick_ns(l));
	return false;
}

void connection_look_by(struct connection *c, uint64_t now_ns, uint64_t due_ns)
{
	if (due_ns < c->look_ns) {
		uint64_t after = due_ns > now_ns ? due_ns - now_ns : 1;
		struct timeval tv = {
			.tv_sec = (time_t)(after / NS_PER_S),
			.tv_usec = (suseconds_t)(after % NS_PER_S / NS_PER_US) + 1,
		};

		if (tv.tv_usec > 999999) {
			tv.tv_sec++;
			tv.tv_usec = 0;
		}
		event_add(c->timer, &tv);
		c->look_ns = now_ns + after;
	}
}

void connection_look_soon(struct connection *c)
{
	uint64_t now = server_now_ns();

	if (!c->dead)
		connection_look_by(c, now, now + tick_ns(&c->server->limits));
}

/* The last word has been said and is being sent: its reader's rate is all that counts. */
static bool is_leaving(const struct connection *c)
{
	return c->closing && c->phase != PHASE_LINGER;
}

/* look - ends what has taken too long, and sets the time of the next look. */
static void look(struct connection *c)
{
	uint64_t now = server_now_ns(), due = UINT64_MAX;

	if (c->phase != PHASE_LINGER && !c->retired) {
		if (now >= c->age_end_ns)
			connection_retire(c);
		else
			due = c->age_end_ns;
	}
	if (!c->dead && output_is_stuck(c, now, &due))
		connection_close(c);
	if (c->phase == PHASE_IDLE && connection_pending(c))
		c->phase_ns = now; /* it is not idle before it has its reply */
	if (!c->dead && !is_leaving(c) && phase_is_late(c, now, &due)) {
		c->server->stats.late += c->phase != PHASE_IDLE && c->phase != PHASE_LINGER;
		if (c->phase == PHASE_LINGER || !c->protocol)
			connection_close(c);
		else
			c->protocol->late(c);
		due = now + NS_PER_MS; /* the phase may be another one now */
	}
	if (!c->dead && c->protocol && c->protocol->tick && c->protocol->tick(c, now))
		due = MIN(due, now + tick_ns(&c->server->limits));
	c->look_ns = UINT64_MAX;
	if (!c->dead)
		connection_look_by(c, now, due);
}

void connection_on_timer(evutil_socket_t fd _unused_, short what _unused_, void *arg)
{
	struct connection *c = arg;

	connection_enter(c);
	look(c);
	connection_leave(c);
}

void connection_phase(struct connection *c, enum phase phase)
{
	uint64_t limit;

	if (c->dead)
		return;
	c->phase = phase;
	c->phase_ns = server_now_ns();
	pace_start(&c->body, c->phase_ns);
	limit = phase == PHASE_BODY ? c->server->limits.head_ns : phase_limit_ns(c);
	if (limit)
		connection_look_by(c, c->phase_ns, c->phase_ns + limit);
}
