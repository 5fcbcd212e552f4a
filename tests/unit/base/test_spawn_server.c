/* SPDX-License-Identifier: Apache-2.0 */
/* Processes begun for a program that can no longer begin them itself. The children are this program
 * again (see main). The tests run in their order: there is one server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine_thread.h"
#include "base/macros.h"
#include "base/spawn.h"
#include "tree.h"

#define NAME        "spawned-trial"
#define PATIENCE_MS 20000

static char root[TREE_MAX], socket_path[TREE_MAX + 16];

struct report {
	char arg[32];
	pid_t parent;
};

static _noreturn_ void child_main(int argc, char **argv)
{
	struct report r = {.parent = getppid()};
	char c;

	snprintf(r.arg, sizeof(r.arg), "%s", argc > 1 ? argv[1] : "");
	send(SPAWN_SOCKET, &r, sizeof(r), 0);
	_exit(recv(SPAWN_SOCKET, &c, 1, 0) == 0 ? 7 : 8); /* the other end is closed */
}

/* Begins @arg's child and ends it. 0, or what spawn_self() gave; -EPROTO if the child is not as
 * expected. */
static int one_life(const char *arg)
{
	struct report r = {.parent = 0};
	struct pollfd p = {.events = POLLIN};
	int err, status;
	pid_t pid;

	err = spawn_self(NAME, arg, &pid, &p.fd);
	if (err < 0)
		return err;
	if (poll(&p, 1, PATIENCE_MS) != 1 || recv(p.fd, &r, sizeof(r), 0) != sizeof(r))
		return -EPROTO;
	close(p.fd);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		return -EPROTO;
	return r.parent == getpid() && !strcmp(r.arg, arg ? arg : "") ? 0 : -EPROTO;
}

static const uint16_t calls[] = {
	__NR_socketpair, __NR_recvfrom, __NR_write, __NR_getppid, __NR_wait4};
static const struct confine_thread plan = {
	.calls = {.calls = calls, .call_count = ARRAY_SIZE(calls), .forks = true, .strict = true},
};

/* As one_life(), in a process without privileges that may not execute. A signal as its negative. */
static int confined_life(void)
{
	struct confine_report report;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		confine_thread_enter(&plan, &report);
		_exit(-one_life("word"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_without_a_server(void **state)
{
	assert_int_equal(spawn_server_remove(), -ENOTCONN);
	assert_int_equal(one_life("word"), 0);
	assert_int_equal(one_life("other"), 0);
}

/* The control of the next: a confined program cannot do it by itself. */
static void test_confined_without_a_server(void **state)
{
	struct confine_report r;

	assert_int_equal(confine_thread_try(&plan, &r), 0);
	if (r.parts[CONFINE_CALLS] < 0) {
		printf("# skip: no seccomp here\n");
		skip();
	}
	assert_int_not_equal(confined_life(), 0);
}

static void test_with_a_server(void **state)
{
	static const struct spawn_program programs[] = {{NAME, NULL}, {NAME, "word"}};

	const char *const sockets[SPAWN_SOCKETS] = {NULL, socket_path};

	assert_int_equal(spawn_server_start(programs, ARRAY_SIZE(programs), sockets), 0);
	assert_int_equal(spawn_server_start(programs, ARRAY_SIZE(programs), NULL), -EINVAL);
	assert_int_equal(one_life("word"), 0);
	assert_int_equal(one_life(NULL), 0);
	assert_int_equal(one_life("other"), -EPERM); /* it was not told of that */
}

/* A process below this one: the server's children are this one's, so only their beginning counts.
 */
static void test_confined_with_a_server(void **state)
{
	struct confine_report report;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t child;
		int fd;

		confine_thread_enter(&plan, &report);
		_exit(-spawn_self(NAME, "word", &child, &fd));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(wait(&status) > 0); /* the child, whose socket is closed */
}

static void test_removal(void **state)
{
	struct stat st;

	tree_write(root, "/socket", "");
	assert_int_equal(stat(socket_path, &st), 0);
	assert_int_equal(spawn_server_remove(), 0);
	assert_int_equal(stat(socket_path, &st), -1);
	assert_int_equal(spawn_server_remove(), 0); /* nothing is left to do */
}

/* Killed, it is missed, not waited for. */
static void test_a_server_that_is_gone(void **state)
{
	char path[64], line[64];
	FILE *f;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", getpid(), getpid());
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f)) {
		printf("# skip: the kernel does not list children\n");
		skip();
	}
	fclose(f);
	pid = (pid_t)strtol(line, NULL, 10);
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(one_life("word"), -EPIPE);
}

static int setup(void **state)
{
	tree_init(root);
	snprintf(socket_path, sizeof(socket_path), "%s/socket", root);
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_server),
		cmocka_unit_test(test_confined_without_a_server),
		cmocka_unit_test(test_with_a_server),
		cmocka_unit_test(test_confined_with_a_server),
		cmocka_unit_test(test_removal),
		cmocka_unit_test(test_a_server_that_is_gone),
	};

	if (argc > 0 && !strcmp(argv[0], NAME))
		child_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
