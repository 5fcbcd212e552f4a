/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - see launch.h. */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/macros.h"
#include "base/text.h"

/* In the new process: waits until it is held, becomes the user, executes. Tells @report what failed. */
_Noreturn static void become(
	char *const *argv, const struct caller *c, int stdout_fd, int held, int report)
{
	sigset_t none;
	char byte;
	int r;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL); /* ours ignores it */
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(held, &byte, 1) != 1 || dup2(stdout_fd, STDOUT_FILENO) < 0)
		_exit(LAUNCH_NOT_EXECUTABLE);
	r = caller_become(c);
	if (r == 0) {
		environ = c->envp;
		execvp(argv[0], argv);
		r = -errno;
	}
	if (write(report, &r, sizeof(r)) < 0)
		_exit(LAUNCH_NOT_EXECUTABLE);
	_exit(LAUNCH_NOT_FOUND);
}

/* Until it has executed the program (0), or ended (1, with its status). */
static int wait_executed(pid_t pid, int *ret_status)
{
	for (;;) {
		int status;

		if (waitpid(pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!WIFSTOPPED(status)) {
			*ret_status = status;
			return 1;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			return 0;
		/* a signal on the way there: it is for the process, but a stop would hold it for good */
		if (ptrace(PTRACE_CONT, pid, NULL, status >> 16 ? 0 : WSTOPSIG(status)) < 0 &&
			errno != ESRCH)
			return -errno;
	}
}

static int cannot_run(const char *name, int err, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	int r = err;

	text_escape_terminal_len(&b, name, strnlen(name, 200));
	if (err == -ENOENT && !strchr(name, '/'))
		errinfo_set(reterr, r, "cannot run '%s': no such command in PATH", buf_str(&b));
	else
		errinfo_set(reterr, r, "cannot run '%s': %s", buf_str(&b), strerror(-err));
	reterr->exit_code = err == -ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
	return r;
}

static int hold(pid_t pid, int held, int report, const char *name, struct errinfo *reterr)
{
	int status = 0, why = -ECHILD, r;

	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0) {
		r = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return errinfo_set(reterr, r,
			"cannot hold the command until probes are in place (ptrace): %s",
			strerror(-r));
	}
	if (write(held, "", 1) != 1) /* it waits for this byte alone */
		return -errno;
	r = wait_executed(pid, &status);
	if (r < 0) {
		launch_abort(pid);
		return errinfo_set(reterr, r, "cannot start the command: %s", strerror(-r));
	}
	if (r == 0)
		return 0;
	if (read(report, &why, sizeof(why)) == sizeof(why))
		return cannot_run(name, why, reterr);
	errinfo_set(reterr, -EINTR, "the command ended before it began");
	reterr->exit_code = launch_exit_code(status);
	return -EINTR;
}

int launch_begin(char *const *argv, const struct caller *c, int stdout_fd, pid_t *ret_pid,
	struct errinfo *reterr)
{
	int held[2], report[2], r;
	pid_t pid;

	if (pipe2(held, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(report, O_CLOEXEC) < 0) {
		r = -errno;
		close(held[0]);
		close(held[1]);
		return r;
	}
	fflush(NULL); /* nothing that waits to be printed is printed twice */
	pid = fork();
	if (pid == 0) {
		close(held[1]);
		become(argv, c, stdout_fd, held[0], report[1]);
	}
	r = pid < 0 ? -errno : 0;
	close(held[0]);
	close(report[1]);
	if (r == 0)
		r = hold(pid, held[1], report[0], argv[0], reterr);
	else
		errinfo_set(reterr, r, "cannot start the command: %s", strerror(-r));
	close(held[1]);
	close(report[0]);
	if (r == 0)
		*ret_pid = pid;
	return r;
}

int launch_release(pid_t pid)
{
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 ? -errno : 0;
}

void launch_abort(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

int launch_exit_code(int status)
{
	return WIFSIGNALED(status) ? LAUNCH_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}
