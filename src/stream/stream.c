/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - see stream.h. The socket's own buffer is the queue of a consumer: a line goes into it
 * whole, or the consumer is disconnected. What a consumer sends is thrown away, some of it with each line that it gets:
 * nobody wakes us by talking. That it has gone is noticed in stream_poll() or with the next line. */
#include "stream/stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/socket_path.h"

#define LISTENER        STREAM_CONSUMERS_MAX /* its number among the events */
#define PEER_GROUPS_MAX 256

const char *stream_drop_id(enum stream_drop d)
{
	return LIST_IDS(STREAM_DROPS)[d];
}

struct stream {
	int listen_fd, epoll_fd;
	gid_t group;
	char path[SOCKET_PATH_MAX];
	int consumers[STREAM_CONSUMERS_MAX]; /* -1: free */
	uid_t users[STREAM_CONSUMERS_MAX];   /* whose they are */
	struct stream_stats stats;
};

static void disconnect(struct stream *s, unsigned slot)
{
	close(s->consumers[slot]);
	s->consumers[slot] = -1;
	s->stats.consumers--;
}

/* ---- who may connect ---- */

static bool is_in_group(int fd, const struct ucred *peer, gid_t group)
{
	gid_t groups[PEER_GROUPS_MAX];
	socklen_t len = sizeof(groups);

	if (group == SOCKET_NO_GROUP)
		return false;
	if (peer->gid == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	return EXISTS(i, len / sizeof(groups[0]), groups[i] == group);
}

static bool is_ours(uid_t user)
{
	return user == 0 || user == geteuid();
}

static bool is_allowed(const struct stream *s, int fd, uid_t *ret_user)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	*ret_user = peer.uid;
	return is_ours(peer.uid) || is_in_group(fd, &peer, s->group);
}

static bool has_room(const struct stream *s, uid_t user)
{
	unsigned of_user = 0, of_others = 0;

	for (unsigned slot = 0; slot < STREAM_CONSUMERS_MAX; slot++) {
		of_user += s->consumers[slot] >= 0 && s->users[slot] == user;
		of_others += s->consumers[slot] >= 0 && !is_ours(s->users[slot]);
	}
	return is_ours(user) || (of_user < STREAM_CONSUMERS_USER &&
					of_others < STREAM_CONSUMERS_MAX - STREAM_CONSUMERS_USER);
}

static void add_consumer(struct stream *s, int fd)
{
	struct epoll_event event = {.events = EPOLLRDHUP};
	int size = STREAM_QUEUE_BYTES / 2; /* the kernel doubles it */
	unsigned slot = 0;
	uid_t user;

	while (slot < STREAM_CONSUMERS_MAX && s->consumers[slot] >= 0)
		slot++;
	event.data.u32 = slot;
	if (!is_allowed(s, fd, &user)) {
		s->stats.dropped[STREAM_DROP_NOT_ALLOWED]++;
		close(fd);
	} else if (slot == STREAM_CONSUMERS_MAX || !has_room(s, user) ||
		   setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ||
		   epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		s->stats.dropped[STREAM_DROP_TOO_MANY]++;
		close(fd);
	} else {
		s->consumers[slot] = fd;
		s->users[slot] = user;
		s->stats.consumers++;
	}
}

/* ---- what happens at the sockets ---- */

static void accept_all(struct stream *s)
{
	for (int i = 0; i < 2 * STREAM_CONSUMERS_MAX; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		add_consumer(s, fd);
	}
}

void stream_poll(struct stream *s)
{
	struct epoll_event events[STREAM_CONSUMERS_MAX + 1];
	int n = epoll_wait(s->epoll_fd, events, (int)ARRAY_SIZE(events), 0);
	bool knocked = false;

	for (int i = 0; i < n; i++) {
		unsigned slot = events[i].data.u32;

		if (slot == LISTENER)
			knocked = true;
		else if (s->consumers[slot] >= 0)
			disconnect(s, slot);
	}
	if (knocked) /* last, so that those who have left make room */
		accept_all(s);
}

static void send_line(struct stream *s, unsigned slot, const struct buf *line)
{
	char ignored[4096];
	ssize_t n;

	(void)!recv(s->consumers[slot], ignored, sizeof(ignored), MSG_DONTWAIT);
	do
		n = send(s->consumers[slot], line->data, line->len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)line->len)
		return;
	s->stats.dropped[n >= 0 || errno == EAGAIN ? STREAM_DROP_SLOW_CLIENT
						   : STREAM_DROP_WRITE_ERROR]++;
	disconnect(s, slot);
}

void stream_publish(struct stream *s, const struct stream_message *m)
{
	_cleanup_buf_ struct buf line = BUF_INIT(STREAM_LINE_MAX);

	stream_poll(s);
	if (stream_message_line(&line, m) < 0) {
		s->stats.dropped[STREAM_DROP_MARSHAL_ERROR]++;
		return;
	}
	if (!s->stats.consumers) {
		s->stats.dropped[STREAM_DROP_NO_CLIENT]++;
		return;
	}
	s->stats.messages++;
	for (unsigned slot = 0; slot < STREAM_CONSUMERS_MAX; slot++)
		if (s->consumers[slot] >= 0)
			send_line(s, slot, &line);
}

struct stream_stats stream_stats(const struct stream *s)
{
	return s->stats;
}

int stream_fd(const struct stream *s)
{
	return s->epoll_fd;
}

/* ---- life ---- */

int stream_open(const char *path, gid_t group, struct stream **ret, struct errinfo *reterr)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = LISTENER};
	_cleanup_fd_ int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	_cleanup_free_ struct stream *s = calloc(1, sizeof(*s));
	_cleanup_fd_ int fd = -1;
	int r;

	if (!s || epoll_fd < 0)
		return s ? -errno : -ENOMEM;
	r = socket_path_bind(path, group, &fd, reterr);
	if (r < 0)
		return r;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		r = -errno;
		unlink(path);
		return r;
	}
	s->group = group;
	memcpy(s->path, path, strlen(path) + 1); /* it was short enough for a socket */
	for (unsigned slot = 0; slot < STREAM_CONSUMERS_MAX; slot++)
		s->consumers[slot] = -1;
	s->listen_fd = fd;
	s->epoll_fd = epoll_fd;
	fd = epoll_fd = -1;
	*ret = TAKE(s);
	return 0;
}

void stream_leave_path(struct stream *s)
{
	s->path[0] = 0;
}

void stream_close(struct stream *s)
{
	for (unsigned slot = 0; slot < STREAM_CONSUMERS_MAX; slot++)
		if (s->consumers[slot] >= 0)
			disconnect(s, slot);
	if (s->path[0])
		unlink(s->path); /* while it listens: nobody else can have put a socket there */
	close(s->listen_fd);
	close(s->epoll_fd);
	free(s);
}
