/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - life of the symbol process and its socket, seen from the agent.
 *
 * Invariants:
 *  1. pid > 0 exactly while a child exists that was not buried; a second is never started.
 *  2. A message counts only with a whole header and the magic; a descriptor too many ends it. */
#include "record/symbol/exchange.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "base/spawn.h"

#define SHORTEST_NS (50 * NS_PER_MS)
#define STOP_WAITS  100 /* 0.2 s to die */

uint64_t reader_backoff_ns(unsigned failures, uint64_t longest_ns)
{
	if (!failures)
		return 0;
	return failures > 16 ? longest_ns : MIN(SHORTEST_NS << (failures - 1), longest_ns);
}

/* ---- life ---- */

void reader_init(struct reader *r, const char *name, uint64_t longest_ns)
{
	*r = (struct reader){.name = name, .longest_ns = longest_ns, .fd = -1};
}

static void book_failure(struct reader *r, bool asked, uint64_t now_ns)
{
	r->failures = MIN(r->failures + 1, 64u);
	if (!asked)
		r->unasked = MIN(r->unasked + 1, (unsigned)READER_UNASKED_MAX);
	r->start_due_ns = now_ns + reader_backoff_ns(r->failures, r->longest_ns);
}

void reader_start_when_due(struct reader *r, uint64_t now_ns)
{
	int err;

	if (r->pid || now_ns < r->start_due_ns)
		return;
	r->ready = r->condemned = r->reaped = false;
	err = spawn_self(r->name, NULL, &r->pid, &r->fd);
	if (err < 0) {
		snprintf(r->last_end, sizeof(r->last_end), "cannot start it: %s", strerror(-err));
		book_failure(r, false, now_ns);
		return;
	}
	r->births++;
	r->started_ns = now_ns;
}

bool reader_has_ended(struct reader *r)
{
	if (r->pid && !r->reaped)
		r->reaped = waitpid(r->pid, &r->status, WNOHANG) != 0;
	return r->reaped;
}

void reader_bury(struct reader *r, bool asked, uint64_t now_ns)
{
	if (!r->condemned && WIFSIGNALED(r->status))
		snprintf(r->last_end, sizeof(r->last_end), "it was killed by signal %d",
			WTERMSIG(r->status));
	else if (!r->condemned)
		snprintf(r->last_end, sizeof(r->last_end), "it exited with code %d",
			WEXITSTATUS(r->status));
	close(r->fd);
	r->fd = -1;
	r->pid = 0;
	r->deaths++;
	book_failure(r, asked, now_ns);
	r->ready = r->reaped = false;
}

void reader_has_answered(struct reader *r)
{
	r->failures = r->unasked = 0;
}

bool reader_is_hopeless(const struct reader *r)
{
	return r->unasked == READER_UNASKED_MAX;
}

void reader_condemn(struct reader *r, const char *why)
{
	if (r->condemned)
		return;
	r->condemned = true;
	snprintf(r->last_end, sizeof(r->last_end), "%s", why);
	if (!r->reaped)
		kill(r->pid, SIGKILL);
}

void reader_done(struct reader *r)
{
	if (!r->pid)
		return;
	close(r->fd);
	if (!r->reaped) {
		kill(r->pid, SIGKILL);
		spawn_is_gone_after(r->pid, STOP_WAITS); /* stuck: it dies when it can */
	}
	r->pid = 0;
	r->fd = -1;
}

/* ---- messages ---- */

/* A full socket, want of memory, or a child that is about to be reaped. */
static bool will_pass(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == ENOMEM || err == ETOOMANYREFS ||
	       err == EPIPE || err == ECONNRESET;
}

int reader_send(struct reader *r, const struct protocol_header *h, const void *body,
	size_t body_bytes, const int *fds, size_t fd_count)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(PROTOCOL_FILES_MAX * sizeof(int))] = {0};
	struct iovec parts[] = {{(void *)h, sizeof(*h)}, {(void *)body, body_bytes}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts)};
	ssize_t n;

	if (fd_count) {
		struct cmsghdr *c = (struct cmsghdr *)room;

		m.msg_control = room;
		m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	do
		n = sendmsg(r->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return will_pass(errno) ? -EAGAIN : -errno;
}

static int attached_file(struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		c->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

bool reader_receive(struct reader *r, struct reader_message *ret)
{
	/* Room for one descriptor: the kernel closes what is beyond it and says so. */
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
	struct iovec parts[] = {
		{&ret->header, sizeof(ret->header)}, {ret->body, sizeof(ret->body)}};
	struct msghdr m = {
		.msg_iov = parts,
		.msg_iovlen = ARRAY_SIZE(parts),
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};
	ssize_t n;

	if (r->fd < 0 || r->condemned)
		return false;
	n = recvmsg(r->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0) /* nothing there, or its end is closed: it will be reaped */
		return false;
	ret->fd = attached_file(&m);
	if ((size_t)n < sizeof(ret->header) || ret->header.magic != PROTOCOL_MAGIC ||
		(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		fd_closep(&ret->fd);
		reader_condemn(r, "it sent an invalid message");
		return false;
	}
	ret->body_bytes = (size_t)n - sizeof(ret->header);
	return true;
}

void reader_take_first(struct reader *r, const struct reader_message *m)
{
	struct protocol_status status;

	if (m->body_bytes != sizeof(status)) {
		reader_condemn(r, "it sent an invalid message");
		return;
	}
	memcpy(&status, m->body, sizeof(status));
	status.text[sizeof(status.text) - 1] = 0;
	if (m->header.kind == PROTOCOL_READY) {
		r->ready = true;
		memcpy(r->note, status.text, sizeof(r->note));
	} else {
		reader_condemn(r, status.text);
	}
}
