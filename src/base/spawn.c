/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - starts this program again as another process.
 *
 * Invariants:
 *  1. Between fork and exec only what is safe in a process that had threads is called.
 *  2. The child begins with descriptors 0 to 3 and no other. */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/spawn_server.h"

#define WAIT_NS (2 * (long)NS_PER_MS)

void spawn_become(int sock, const char *name, const char *arg)
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
