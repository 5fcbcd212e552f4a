/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - starts this program again as another process.
 *
 * Invariants:
 *  1. Between fork and exec only what is safe in a process that had threads is called.
 *  2. The child begins with descriptors 0 to 3 and no other. */
#include "base/spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/confine_thread.h"
#include "base/mutex.h"

/* The process that starts others for a parent without privileges.
 *
 * Invariants:
 *  1. It parses nothing: a request is the number of a program that was named before it began, and a
 *     descriptor. It has the capabilities to become another user and to open the GPU's library.
 *  2. Its children are its parent's (CLONE_PARENT): reaped there, and told of that one's end.
 *  3. After the fork it allocates nothing, so it may be begun by whatever program. */

#define REQUEST_REMOVE UINT32_MAX /* other numbers are places in the table of programs */
#define PROGRAMS_MAX   8

static struct {
	struct spawn_program programs[PROGRAMS_MAX];
	size_t count;
	const char *sockets[SPAWN_SOCKETS];
	int fd; /* valid if count; -1: it did not answer once, and answers no more */
	pthread_mutex_t mutex;
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- the server ---- */

static void spawn_become(int sock, const char *name, const char *arg);

/* Not fork(): libc has no part in CLONE_PARENT. What runs in the child until it executes is safe
 * without libc's knowledge of it. */
static pid_t start_program(uint32_t number, int sock)
{
	pid_t pid;

	if (number >= server.count || sock < 0)
		return -EINVAL;
	pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		spawn_become(sock, server.programs[number].name, server.programs[number].arg);
	return pid < 0 ? -errno : pid;
}

static int remove_sockets(void)
{
	int r = -EINVAL;

	for (size_t i = 0; i < SPAWN_SOCKETS; i++)
		if (server.sockets[i])
			r = unlink(server.sockets[i]) < 0 && errno != ENOENT ? -errno : 0;
	return r;
}

static bool serve_one(void)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
	uint32_t number;
	struct iovec part = {&number, sizeof(number)};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room)};
	_cleanup_fd_ int sock = -1;
	ssize_t n = recvmsg(SPAWN_SOCKET, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int32_t answer;

	if (n < 0 && errno == EINTR)
		return true;
	if (n != sizeof(number))
		return false;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&sock, CMSG_DATA(c), sizeof(sock));
	answer = number == REQUEST_REMOVE ? remove_sockets() : start_program(number, sock);
	return send(SPAWN_SOCKET, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer);
}

/* System calls stay free: the programs inherit what is forbidden here, and each shuts its own
 * doors. */
static void give_up(void)
{
	static const struct confine_thread plan = {
		.capabilities = CONFINE_CAP(CAP_SETUID) | CONFINE_CAP(CAP_SETGID) |
				CONFINE_CAP(CAP_SETPCAP) | CONFINE_CAP(CAP_DAC_READ_SEARCH),
	};

	(void)confine_thread_keep(&plan);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static _noreturn_ void server_main(int sock)
{
	sigset_t all;
	int null;

	sigfillset(&all); /* those for the whole group are the parent's; its children unblock all */
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	(void)prctl(PR_SET_NAME, "ingero-spawn", 0, 0, 0);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (sock != SPAWN_SOCKET)
		dup2(sock, SPAWN_SOCKET);
	fcntl(SPAWN_SOCKET, F_SETFD, FD_CLOEXEC);
	close_range(SPAWN_SOCKET + 1, ~0U, 0);
	give_up();
	if (confine_life(SPAWN_SOCKET) == 0)
		while (serve_one())
			continue;
	_exit(0);
}

/* ---- its parent ---- */

int spawn_server_start(
	const struct spawn_program *programs, size_t count, const char *const *sockets)
{
	int pair[2];
	pid_t pid;

	if (!count || count > PROGRAMS_MAX || server.count)
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	memcpy(server.programs, programs, count * sizeof(*programs));
	server.count = count;
	if (sockets)
		memcpy(server.sockets, sockets, sizeof(server.sockets));
	server.fd = pair[0];
	pid = fork();
	if (pid == 0)
		server_main(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		int err = -errno;

		close(pair[0]);
		server.count = 0;
		return err;
	}
	return 0;
}

static int send_request(uint32_t number, int sock)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
	struct cmsghdr *c = (struct cmsghdr *)room;
	struct iovec part = {&number, sizeof(number)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (sock >= 0) {
		m.msg_control = room;
		m.msg_controllen = sizeof(room);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(sock));
		memcpy(CMSG_DATA(c), &sock, sizeof(sock));
	}
	return sendmsg(server.fd, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int request(uint32_t number, int sock)
{
	int32_t answer;
	ssize_t n;
	int r;

	MUTEX_HELD(&server.mutex);
	r = server.fd < 0 ? -EPIPE : send_request(number, sock);
	if (r == 0) {
		do
			n = recv(server.fd, &answer, sizeof(answer), 0);
		while (n < 0 && errno == EINTR);
		r = n == sizeof(answer) ? answer : -EPIPE;
		if (n != sizeof(answer)) { /* a late answer would be taken for another's */
			close(server.fd);
			server.fd = -1;
		}
	}
	return r;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* spawn_server_ask - the pid of a child that has @sock; -ENOTCONN if there is no server. */
static pid_t spawn_server_ask(int sock, const char *name, const char *arg)
{
	if (!server.count)
		return -ENOTCONN;
	for (uint32_t i = 0; i < server.count; i++)
		if (is_same(server.programs[i].name, name) && is_same(server.programs[i].arg, arg))
			return request(i, sock);
	return -EPERM;
}

int spawn_server_remove(void)
{
	return server.count ? request(REQUEST_REMOVE, -1) : -ENOTCONN;
}

#define WAIT_NS (2 * (long)NS_PER_MS)

/* spawn_become - after a fork: turn into this program as @name, which finds @sock at SPAWN_SOCKET.
 */
static void spawn_become(int sock, const char *name, const char *arg)
{
	char *argv[] = {(char *)name, (char *)arg, NULL};
	sigset_t none;
	int null;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid(); /* Ctrl-C on the parent's terminal is the parent's */
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (sock == SPAWN_SOCKET)
		fcntl(sock, F_SETFD, 0);
	else
		dup2(sock, SPAWN_SOCKET);
	close_range(SPAWN_SOCKET + 1, ~0U, 0);
	execv("/proc/self/exe", argv);
	_exit(127);
}

int spawn_self(const char *name, const char *arg, pid_t *ret_pid, int *ret_socket)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = spawn_server_ask(pair[1], name, arg);
	if (pid == -ENOTCONN) {
		pid = fork();
		if (pid == 0)
			spawn_become(pair[1], name, arg);
		pid = pid < 0 ? -errno : pid;
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return pid;
	}
	*ret_pid = pid;
	*ret_socket = pair[0];
	return 0;
}

bool spawn_is_gone_after(pid_t pid, int waits)
{
	const struct timespec wait_briefly = {.tv_nsec = WAIT_NS};

	for (int i = 0; i < waits; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return true;
		nanosleep(&wait_briefly, NULL);
	}
	return false;
}
