/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - connections of the annotation socket. See annotate.h.
 *
 * Invariants:
 *  1. Every line taken from a connection has a place in its list of answers, and answers leave in
 *     the order of the lines; "ok" only after the store has reported the commit.
 *  2. Nobody can make it grow: 64 connections, one line and 256 answers each. Whoever sends faster
 *     than 1000 lines a second, or does not read his answers, is not read from; whoever does not
 *     read for 5 s is dropped.
 *  3. A line that names a process is stored only if the process exists, is of the sender's user
 *     (root may name any), and started when the line says. */

#include <sys/epoll.h>
#include <sys/socket.h>

#include "record/annotate/annotate.h"
#include "record/discover/discover.h"

#define ANSWERS_MAX    256
#define LINES_PER_POLL 200
#define OUT_PAUSE      (32 << 10)  /* unsent bytes beyond which no more is read */
#define OUT_MAX        (512 << 10) /* 256 answers of at most 1.5 kB, and the pause */
#define STALL_NS       (5 * NS_PER_S)

struct answer {
	uint64_t ticket; /* 0: done */
	int64_t id;
	char *error; /* NULL: stored */
};

struct connection {
	int fd;
	unsigned slot;
	struct ucred peer;
	bool ended;  /* nothing more is read; closed when all is answered */
	bool broken; /* closed at once */
	char in[ANNOTATION_LINE_MAX];
	size_t in_len;
	struct buf out;
	size_t sent;         /* of out */
	uint64_t stalled_ns; /* monotonic time since which nothing could be sent; 0: not */
	struct answer answers[ANSWERS_MAX];
	size_t head, count;
	uint64_t credit_ns; /* lines may be taken as long as this is not in the future */
};

struct annotate_server {
	int listen_fd, epoll_fd;
	const char *root;
	annotate_put *put;
	void *arg;
	struct connection *connections[ANNOTATE_CONNECTIONS_MAX];
	uint64_t serial;
	size_t waiting;
	bool refusing;
	struct annotation scratch;
};

/* ---- answers ---- */

static struct answer *add_answer(struct connection *c, uint64_t ticket, const char *error)
{
	struct answer *a = &c->answers[(c->head + c->count) % ANSWERS_MAX];

	c->count++;
	*a = (struct answer){.ticket = ticket, .error = error ? strdup(error) : NULL};
	if (error && !a->error)
		c->broken = true; /* no memory even for that: better no answer than a wrong one */
	return a;
}

/* Moves finished answers to the output, in order. */
static void collect(struct connection *c)
{
	while (c->count && !c->answers[c->head].ticket) {
		struct answer *a = &c->answers[c->head];

		annotate_line_answer(&c->out, a->id, a->error);
		free(TAKE(a->error));
		c->head = (c->head + 1) % ANSWERS_MAX;
		c->count--;
	}
	if (c->out.err)
		c->broken = true;
}

static void flush(struct connection *c)
{
	uint64_t now = mono_now().ns;

	collect(c);
	while (c->sent < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			c->sent += (size_t)n;
			c->stalled_ns = 0;
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			c->stalled_ns = c->stalled_ns ?: now;
			c->broken = c->broken || now - c->stalled_ns > STALL_NS;
			return;
		}
		c->broken = true;
		return;
	}
	buf_clear(&c->out);
	c->sent = 0;
}

void annotate_server_ack(struct annotate_server *s, uint64_t ticket, int64_t id)
{
	struct connection *c = s->connections[ticket % ANNOTATE_CONNECTIONS_MAX];

	s->waiting -= s->waiting > 0;
	if (!c)
		return; /* it left without waiting for its answer */
	for (size_t i = 0; i < c->count; i++) {
		struct answer *a = &c->answers[(c->head + i) % ANSWERS_MAX];

		if (a->ticket != ticket)
			continue;
		a->ticket = 0;
		a->id = id;
		if (id < 0)
			a->error = strdup(
				"cannot write it to the database: see the tracer's messages");
		c->broken = c->broken || (id < 0 && !a->error);
		return;
	}
}

/* ---- lines ---- */

static int check_process(const struct annotate_server *s, const struct ucred *peer,
	struct annotation *a, struct errinfo *reterr)
{
	struct discover_process facts;

	if (!a->pid)
		return 0;
	if (discover_process(s->root, a->pid, &facts) < 0)
		return errinfo_set(reterr, -ESRCH, "pid: no process %u", a->pid);
	if (peer->uid != 0 && facts.uid != peer->uid)
		return errinfo_set(reterr, -EPERM, "pid: another user owns process %u", a->pid);
	if (a->start_time && a->start_time != facts.start_ticks)
		return errinfo_set(reterr, -ESRCH,
			"start_time: pid %u was reused, its process started at %llu", a->pid,
			(unsigned long long)facts.start_ticks);
	a->start_time = facts.start_ticks;
	return 0;
}

static void take_line(struct annotate_server *s, struct connection *c, const char *line, size_t len)
{
	struct annotation *a = &s->scratch;
	uint64_t ticket = ++s->serial * ANNOTATE_CONNECTIONS_MAX + c->slot;
	struct errinfo e = {0};
	int r = annotate_line_parse(line, len, wall_now(), a, &e);

	r = r ?: check_process(s, &c->peer, a, &e);
	if (r == 0) {
		a->peer_uid = c->peer.uid;
		a->peer_gid = c->peer.gid;
		a->peer_pid = (uint32_t)c->peer.pid;
		if (!s->put(s->arg, a, ticket))
			r = errinfo_set(&e, -EAGAIN, "the store is full: send it again later");
	}
	s->waiting += r == 0;
	add_answer(c, r == 0 ? ticket : 0, r == 0 ? NULL : e.text);
}

static bool may_take(const struct connection *c, uint64_t now)
{
	return !c->broken && c->count < ANSWERS_MAX && c->out.len - c->sent < OUT_PAUSE &&
	       c->credit_ns <= now;
}

static bool is_ours(const struct connection *c)
{
	return c->peer.uid == 0 || c->peer.uid == geteuid();
}

/* A second's worth may come at once. Another user's connections have one credit together. */
static void charge(struct annotate_server *s, struct connection *c, uint64_t now)
{
	uint64_t floor = now - NS_PER_S;

	c->credit_ns = MAX(c->credit_ns, floor) + NS_PER_S / ANNOTATE_LINES_PER_S;
	for (unsigned i = 0; !is_ours(c) && i < ANNOTATE_CONNECTIONS_MAX; i++)
		if (s->connections[i] && s->connections[i]->peer.uid == c->peer.uid)
			s->connections[i]->credit_ns = c->credit_ns;
}

/* Returns the number of lines taken out of the buffer. */
static int take_lines(struct annotate_server *s, struct connection *c, int most)
{
	uint64_t now = mono_now().ns;
	size_t begin = 0;
	int n = 0;

	while (n < most && may_take(c, now)) {
		char *end = memchr(c->in + begin, '\n', c->in_len - begin);
		size_t len = end ? (size_t)(end - c->in) - begin : c->in_len - begin;

		if (!end && !(c->ended && len)) /* the last line may lack its newline */
			break;
		take_line(s, c, c->in + begin, len);
		charge(s, c, now);
		begin = MIN(begin + len + 1, c->in_len);
		n++;
	}
	memmove(c->in, c->in + begin, c->in_len - begin);
	c->in_len -= begin;
	if (c->in_len == sizeof(c->in) && !memchr(c->in, '\n', c->in_len) && may_take(c, now)) {
		add_answer(c, 0, "the line is longer than 16383 bytes");
		c->in_len = 0;
		c->ended = true;
	}
	return n;
}

static void receive(struct connection *c)
{
	ssize_t n;

	if (c->ended || c->broken || c->in_len == sizeof(c->in) || !may_take(c, mono_now().ns))
		return;
	n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
	if (n > 0)
		c->in_len += (size_t)n;
	else if (n == 0)
		c->ended = true;
	else if (errno != EAGAIN && errno != EINTR)
		c->broken = true;
}

/* ---- connections ---- */

static void drop(struct annotate_server *s, unsigned slot)
{
	struct connection *c = TAKE(s->connections[slot]);

	for (size_t i = 0; i < c->count; i++)
		free(c->answers[(c->head + i) % ANSWERS_MAX].error);
	close(c->fd);
	buf_done(&c->out);
	free(c);
}

static void turn_away(int fd, const char *why)
{
	_cleanup_buf_ struct buf b = BUF_INIT(256);

	annotate_line_answer(&b, 0, why);
	(void)!send(fd, buf_str(&b), b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* Members of a group that was let in share what there is, and leave some to this user and root. */
static bool may_come(const struct annotate_server *s, uid_t uid)
{
	unsigned of_user = 0, of_others = 0;

	if (uid == 0 || uid == geteuid())
		return true;
	for (unsigned i = 0; i < ANNOTATE_CONNECTIONS_MAX; i++) {
		const struct connection *c = s->connections[i];

		of_user += c && c->peer.uid == uid;
		of_others += c && !is_ours(c);
	}
	return of_user < ANNOTATE_CONNECTIONS_USER &&
	       of_others < ANNOTATE_CONNECTIONS_MAX - ANNOTATE_CONNECTIONS_KEPT;
}

static void add_connection(struct annotate_server *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};
	struct connection *c;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	unsigned slot = 0;

	while (slot < ANNOTATE_CONNECTIONS_MAX && s->connections[slot])
		slot++;
	if (slot == ANNOTATE_CONNECTIONS_MAX) {
		turn_away(fd, "too many connections: try again later");
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid == (uid_t)-1) {
		turn_away(fd, "cannot identify the client");
		return;
	}
	if (!may_come(s, peer.uid)) {
		turn_away(fd, "too many connections of this user or group: close some");
		return;
	}
	c = calloc(1, sizeof(*c));
	event.data.u32 = slot;
	if (!c || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		free(c);
		turn_away(fd, "out of memory: try again later");
		return;
	}
	c->fd = fd;
	c->slot = slot;
	c->peer = peer;
	c->out = BUF_INIT(OUT_MAX);
	s->connections[slot] = c;
}

static void accept_all(struct annotate_server *s)
{
	for (int i = 0; i < ANNOTATE_CONNECTIONS_MAX; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		if (s->refusing)
			turn_away(fd, "the tracer is stopping");
		else
			add_connection(s, fd);
	}
}

void annotate_server_poll(struct annotate_server *s)
{
	struct epoll_event events[ANNOTATE_CONNECTIONS_MAX + 1];
	int ready = epoll_wait(s->epoll_fd, events, (int)ARRAY_SIZE(events), 0);
	int lines = LINES_PER_POLL;

	for (int i = 0; i < ready; i++) {
		uint32_t slot = events[i].data.u32;

		if (slot == ANNOTATE_CONNECTIONS_MAX)
			accept_all(s);
		else if (s->connections[slot] && !s->refusing)
			receive(s->connections[slot]);
	}
	/* Each time another one is first, so that one busy writer does not starve the others. */
	for (unsigned i = 0; i < ANNOTATE_CONNECTIONS_MAX; i++) {
		unsigned slot = (unsigned)((i + s->serial) % ANNOTATE_CONNECTIONS_MAX);
		struct connection *c = s->connections[slot];

		if (!c)
			continue;
		if (!s->refusing)
			lines -= take_lines(s, c, lines);
		flush(c);
		if (c->broken || (c->ended && !c->in_len && !c->count && c->sent == c->out.len))
			drop(s, slot);
	}
}

void annotate_server_refuse(struct annotate_server *s)
{
	s->refusing = true;
}

size_t annotate_server_waiting(const struct annotate_server *s)
{
	return s->waiting;
}

/* ---- life ---- */

int annotate_server_new(
	int listen_fd, const char *root, annotate_put *put, void *arg, struct annotate_server **ret)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = ANNOTATE_CONNECTIONS_MAX};
	_cleanup_fd_ int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct annotate_server *s;

	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
		return -errno;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->listen_fd = listen_fd;
	s->epoll_fd = epoll_fd;
	epoll_fd = -1;
	s->root = root;
	s->put = put;
	s->arg = arg;
	*ret = s;
	return 0;
}

void annotate_server_free(struct annotate_server *s)
{
	for (unsigned slot = 0; slot < ANNOTATE_CONNECTIONS_MAX; slot++)
		if (s->connections[slot])
			drop(s, slot);
	close(s->epoll_fd);
	close(s->listen_fd);
	free(s);
}
