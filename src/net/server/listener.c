/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - accepts connections, up to the ceilings. See server_private.h.
 *
 * When there are no descriptors left, accepting pauses until one has been closed, or for 100 ms:
 * the socket would be readable all the time, and the loop would spin. */
#include "net/server/server_private.h"

#include <event2/event.h>
#include <netinet/tcp.h>

#include "base/buf.h"
#include "base/text.h"
#include "net/loop.h"
#include "base/socket_path.h"

#define BACKLOG      1024
#define AT_ONCE      64 /* accepted in a row, then others get a turn */
#define PAUSE_MICROS 100000

struct listener {
	struct http_server *server;
	struct event *readable, *pause;
	int fd;
	bool paused;
};

void listener_free(struct listener *l)
{
	if (l->readable)
		event_free(l->readable);
	if (l->pause)
		event_free(l->pause);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

static void resume(evutil_socket_t fd _unused_, short what _unused_, void *arg)
{
	struct listener *l = arg;

	l->paused = false;
	event_del(l->pause);
	event_add(l->readable, NULL);
}

void listener_room(struct listener *l)
{
	if (l->paused)
		resume(-1, 0, l);
}

/* admit - a connection that the ceilings have room for. */
static void admit(struct http_server *s, int fd, const union address *remote)
{
	if (s->stats.open_connections >= s->limits.total) {
		s->stats.rejected++;
		close(fd);
		return;
	}
	/* The oldest of an address that has asked nothing makes room: a client that wants something
	 * gets through even if others of its address only hold connections open. */
	if (peers_enter(s->peers, remote, s->limits.per_peer) < 0 &&
		!(connection_evict(s, remote) &&
			peers_enter(s->peers, remote, s->limits.per_peer) == 0)) {
		s->stats.rejected++;
		close(fd);
		return;
	}
	(void)connection_new(s, fd, remote); /* who gets none comes again */
}

static void on_readable(evutil_socket_t fd, short what _unused_, void *arg)
{
	struct listener *l = arg;

	for (int i = 0; i < AT_ONCE; i++) {
		union address remote;
		socklen_t len = sizeof(remote);
		int peer = accept4(fd, &remote.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (peer >= 0) {
			admit(l->server, peer, &remote);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			struct timeval tv = {.tv_usec = PAUSE_MICROS};

			l->paused = true;
			event_del(l->readable);
			event_add(l->pause, &tv);
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static int open_socket(const union address *a)
{
	_cleanup_fd_ int fd =
		socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0, r;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* "[::]" is every address, those of IPv4 too. */
	if (a->any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, &a->any, address_len(a)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	r = fd;
	fd = -1;
	return r;
}

static int explain_in_use(
	const char *address, const char *flag, uint16_t port, struct errinfo *reterr)
{
	const char *space = flag ? " with " : "";
	_cleanup_buf_ struct buf comm = BUF_INIT(4 * sizeof(((struct port_holder *)0)->comm));
	struct port_holder holder;

	flag = flag ? flag : "";
	if (port_holder_find("", 0, port, &holder) == 0) {
		text_escape_terminal(&comm, holder.comm);
		return errinfo_set(reterr, -EADDRINUSE,
			"%s is already in use by %s (process %u): choose another port%s%s, or stop it",
			address, buf_str(&comm), holder.pid, space, flag);
	}
	return errinfo_set(reterr, -EADDRINUSE,
		"%s is already in use: choose another port%s%s, or find the program with `sudo ss -ltnp sport = :%u` and stop it",
		address, space, flag, (unsigned)port);
}

static int explain_failure(
	int err, const char *address, const char *flag, uint16_t port, struct errinfo *reterr)
{
	switch (-err) {
	case EADDRINUSE: return explain_in_use(address, flag, port, reterr);
	case EADDRNOTAVAIL:
		return errinfo_set(reterr, err,
			"%s is not an address of this machine: `ip address` lists its addresses",
			address);
	case EACCES:
		return errinfo_set(reterr, err,
			"listening on %s needs privileges: choose a port above 1023", address);
	default:
		return errinfo_set(reterr, err, "cannot listen on %s: %s", address, strerror(-err));
	}
}

/* bind_address - ":port" where the kernel has no IPv6 is every address of IPv4. */
static int bind_address(union address *a)
{
	int fd = open_socket(a);

	if ((fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) && a->any.sa_family == AF_INET6 &&
		address_is_any(a)) {
		in_port_t port = a->v6.sin6_port;

		memset(a, 0, sizeof(*a));
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = port;
		fd = open_socket(a);
	}
	return fd;
}

int listener_new(struct http_server *s, const char *address, const char *flag,
	struct listener **ret, union address *ret_bound, struct errinfo *reterr)
{
	_cleanup_(listener_freep) struct listener *l = calloc(1, sizeof(*l));
	struct event_base *base = loop_base(s->loop);
	socklen_t len = sizeof(*ret_bound);
	union address a;
	int r;

	if (!l)
		return -ENOMEM;
	l->server = s;
	l->fd = -1;
	r = address_parse(address, &a, reterr);
	if (r < 0)
		return r;
	l->fd = bind_address(&a);
	if (l->fd < 0)
		return explain_failure(l->fd, address, flag, address_port(&a), reterr);
	if (getsockname(l->fd, &a.any, &len) < 0)
		return -errno;
	l->readable = event_new(base, l->fd, EV_READ | EV_PERSIST, on_readable, l);
	l->pause = event_new(base, -1, 0, resume, l);
	if (!l->readable || !l->pause || event_add(l->readable, NULL) < 0)
		return -ENOMEM;
	*ret_bound = a;
	*ret = TAKE(l);
	return 0;
}
