/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - shuts the doors (child.c), then takes questions from the socket and answers them.
 *
 * Invariants:
 *  1. No byte of a foreign file is looked at before sandbox_enter() has succeeded.
 *  2. Every question gets one answer, in order; the agent tells by that which one ended a child.
 *  3. It leaves when the agent closes the socket, and dies with the agent.
 *  4. A descriptor that came with a question is closed after it, unless the shelf keeps it. */
#include "record/symbol/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/confine.h"
#include "record/symbol/answer.h"
#include "record/symbol/protocol.h"

/* Privileges, then paths (landlock), then system calls (seccomp): see base/confine.h.
 *
 * Each is enough against most of what a hostile file could do with a fault in a reader; together
 * they leave it this process's own memory, the files it was handed and the socket. */

#define ADDRESS_BYTES                                                                              \
	(8ULL << 30)             /* the largest libraries have 2 GB, and libdw maps them again     \
				  */
#define FILE_BYTES (64ULL << 20) /* the largest unwind table: 8 Mi rows of 6 bytes, and rules */
#define OPEN_FILES 1024

static int give_up_privileges(int socket)
{
	static const struct confine_limits limits = {
		.address_bytes = ADDRESS_BYTES,
		.file_bytes = FILE_BYTES,
		.open_files = OPEN_FILES,
	};
	int r;

	confine_limits(&limits);
	(void)prctl(PR_SET_NAME, SYMBOL_CHILD_NAME, 0, 0, 0);
	confine_bounding_set();
	r = confine_user(CONFINE_NOBODY, CONFINE_NOBODY);
	r = r ?: confine_capabilities();
	r = r ?: confine_life(socket);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = -errno;
	return r;
}

/* libdw asks for the path of each file that it is given (readlink, by realpath()), to find from there
 * the other half of debug information that dwz has split. That half could not be opened here, and
 * seccomp cannot tell one path from another: so the question is refused with the rest, and libdw
 * goes on without an answer. */
static int forbid_calls(void)
{
	static const uint16_t calls[] = {/* the table it hands back */
		__NR_memfd_create, __NR_ftruncate, __NR_write, __NR_pwrite64};
	static const uint16_t fcntl_commands[] = {
		F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS};

	return confine_calls(&(struct confine_calls){
		.calls = calls,
		.call_count = ARRAY_SIZE(calls),
		.fcntl_commands = fcntl_commands,
		.fcntl_count = ARRAY_SIZE(fcntl_commands),
	});
}

int sandbox_enter(int socket, struct sandbox *ret)
{
	struct sandbox s = {0};
	int r = give_up_privileges(socket);

	r = r ?: confine_paths(NULL, 0, &s.landlock);
	r = r ?: forbid_calls();
	if (r < 0)
		return r;
	s.seccomp = r > 0;
	*ret = s;
	return 0;
}

struct asked { /* a question as it came */
	struct protocol_header header;
	_Alignas(8) uint8_t body[PROTOCOL_QUESTION_MAX];
	size_t body_bytes;
	int fds[PROTOCOL_FILES_MAX]; /* -1: none */
};

bool symbol_child_is_meant(int argc, char **argv)
{
	return argc > 0 && !strcmp(argv[0], SYMBOL_CHILD_NAME);
}

/* ---- questions ---- */

static void take_files(struct msghdr *m, struct asked *q)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	size_t bytes;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	bytes = c->cmsg_len - CMSG_LEN(0);
	memcpy(q->fds, CMSG_DATA(c), MIN(bytes, sizeof(q->fds)));
}

/* Waits for the next. False: the agent is gone, or what came is no question. */
static bool receive(struct asked *q)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(q->fds))];
	struct iovec parts[] = {{&q->header, sizeof(q->header)}, {q->body, sizeof(q->body)}};
	struct msghdr m = {
		.msg_iov = parts,
		.msg_iovlen = ARRAY_SIZE(parts),
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};
	ssize_t n;

	q->fds[0] = q->fds[1] = -1;
	do
		n = recvmsg(SYMBOL_CHILD_FD, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return false;
	take_files(&m, q);
	if ((size_t)n < sizeof(q->header) || q->header.magic != PROTOCOL_MAGIC ||
		(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return false;
	q->body_bytes = (size_t)n - sizeof(q->header);
	return true;
}

/* Whether the body holds what the header says; names are then terminated. */
static bool body_fits(struct asked *q)
{
	struct protocol_name *names = (struct protocol_name *)q->body;
	size_t count = q->header.count;

	switch (q->header.kind) {
	case PROTOCOL_FRAMES:
		return count <= SYMBOL_OFFSETS_MAX &&
		       q->body_bytes == count * sizeof(struct protocol_offset);
	case PROTOCOL_PLACES:
		if (count > SYMBOL_NAMES_MAX || q->body_bytes != count * sizeof(names[0]))
			return false;
		for (size_t i = 0; i < count; i++)
			names[i].text[PROTOCOL_NAME_MAX - 1] = 0;
		return true;
	default: return q->body_bytes == 0;
	}
}

static void answer_from_image_cache(struct answer *a, struct asked *q, struct image_cache *s)
{
	const struct image_cache_item *item;
	struct errinfo e = {0};
	int r = image_cache_get(s, q->header.file, q->header.source, q->fds, &item, &e);

	if (r < 0)
		answer_error(a, r, e.text);
	else if (q->header.kind == PROTOCOL_FRAMES)
		answer_frames(a, item, (const struct protocol_offset *)q->body, q->header.count);
	else
		answer_places(a, item, (const struct protocol_name *)q->body, q->header.count);
	image_cache_tidy(s);
}

/* False: the agent is gone, or asked what cannot be asked. */
static bool answer_question(struct answer *a, struct asked *q, struct image_cache *s)
{
	if (!body_fits(q))
		return false;
	if (q->header.kind == PROTOCOL_FORGET) {
		image_cache_forget(s, q->header.file);
		return true;
	}
	answer_begin(a, &q->header);
	switch (q->header.kind) {
	case PROTOCOL_IDENTITY: answer_identity(a, q->fds[0]); break;
	case PROTOCOL_UNWIND: answer_unwind(a, q->fds[0]); break;
	case PROTOCOL_HANDLES: answer_handles(a, q->fds[0]); break;
	case PROTOCOL_FRAMES:
	case PROTOCOL_PLACES: answer_from_image_cache(a, q, s); break;
	default: return false;
	}
	return !a->gone;
}

/* ---- life ---- */

static int begin(struct answer *a)
{
	struct sandbox sandbox;
	int r = sandbox_enter(SYMBOL_CHILD_FD, &sandbox);
	char text[PROTOCOL_TEXT_MAX];

	answer_begin(
		a, &(struct protocol_header){.kind = r < 0 ? PROTOCOL_FAILED : PROTOCOL_READY});
	if (r < 0) {
		snprintf(text, sizeof(text), "it cannot drop its privileges: %s", strerror(-r));
		answer_error(a, r, text);
		return r;
	}
	answer_ready(a, sandbox.landlock ? "" : "the kernel has no landlock");
	return 0;
}

int symbol_child_main(int argc, char **argv)
{
	static struct answer answer = {.socket = SYMBOL_CHILD_FD};
	static struct image_cache image_cache;
	static struct asked question;
	bool going;

	(void)argc;
	(void)argv;
	image_cache = IMAGE_CACHE_INIT;
	if (begin(&answer) < 0)
		return EXIT_FAILURE;
	do {
		going = receive(&question) && answer_question(&answer, &question, &image_cache);
		fd_closep(&question.fds[0]);
		fd_closep(&question.fds[1]);
	} while (going);
	image_cache_done(&image_cache);
	return EXIT_SUCCESS;
}
