/* SPDX-License-Identifier: Apache-2.0 */
/* This program again as another process (see main). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/confine.h"
#include "base/macros.h"
#include "base/spawn.h"

#define NAME        "spawned-trial"
#define PATIENCE_MS 20000

struct report {
	char arg[32];
	int open_files; /* highest descriptor */
	bool own_session;
	int confined, parent_is_gone;
	char status[4096]; /* of /proc/self */
};

static int highest_file(void)
{
	int highest = -1;

	for (int fd = 0; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			highest = fd;
	return highest;
}

static int confine_all(void)
{
	const struct confine_limits limits = {
		.address_bytes = 8ULL << 30, .file_bytes = 1 << 20, .open_files = 64};
	int r;

	confine_limits(&limits);
	confine_bounding_set();
	r = confine_user(CONFINE_NOBODY, CONFINE_NOBODY);
	return r < 0 ? r : confine_capabilities();
}

static _noreturn_ void child_main(int argc, char **argv)
{
	struct report r = {.open_files = highest_file(), .own_session = getsid(0) == getpid()};
	char c;
	FILE *f;

	snprintf(r.arg, sizeof(r.arg), "%s", argc > 1 ? argv[1] : "");
	r.confined = confine_all();
	f = fopen("/proc/self/status", "re");
	if (f && fread(r.status, 1, sizeof(r.status) - 1, f) > 0)
		fclose(f);
	r.parent_is_gone = confine_life(SPAWN_SOCKET);
	send(SPAWN_SOCKET, &r, sizeof(r), 0);
	if (!strcmp(r.arg, "stay"))
		pause();
	/* Without the leak check of a sanitizer, which takes seconds. */
	_exit(recv(SPAWN_SOCKET, &c, 1, 0) == 0 ? 7 : 8); /* the other end is closed */
}

static void receive(int fd, struct report *ret)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(recv(fd, ret, sizeof(*ret), 0), sizeof(*ret));
}

static uint64_t field(const struct report *r, const char *name, int base)
{
	const char *at = strstr(r->status, name);

	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, base);
}

static void test_a_child(void **state)
{
	struct report r;
	int fd, status;
	pid_t pid;

	assert_int_equal(spawn_self(NAME, "word", &pid, &fd), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	receive(fd, &r);
	assert_string_equal(r.arg, "word");
	assert_int_equal(r.open_files, SPAWN_SOCKET);
	assert_true(r.own_session);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void test_it_is_confined(void **state)
{
	struct report r;
	pid_t pid;
	int fd;

	assert_int_equal(spawn_self(NAME, NULL, &pid, &fd), 0);
	receive(fd, &r);
	assert_int_equal(r.confined, 0);
	assert_int_equal(r.parent_is_gone, 0);
	assert_int_equal(field(&r, "\nCapEff:", 16), 0);
	assert_int_equal(field(&r, "\nCapPrm:", 16), 0);
	assert_int_equal(field(&r, "\nNoNewPrivs:", 10), 1);
	if (geteuid() == 0) {
		assert_int_equal(field(&r, "\nCapBnd:", 16), 0);
		assert_int_equal(field(&r, "\nUid:", 10), CONFINE_NOBODY);
		assert_int_equal(field(&r, "\nGid:", 10), CONFINE_NOBODY);
	} else {
		printf("# not root: that the child becomes nobody is not looked at\n");
	}
	close(fd);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_waiting_has_an_end(void **state)
{
	struct report r;
	pid_t pid;
	int fd;

	assert_int_equal(spawn_self(NAME, "stay", &pid, &fd), 0);
	receive(fd, &r);
	assert_false(spawn_is_gone_after(pid, 2));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_true(spawn_is_gone_after(pid, PATIENCE_MS / 2));
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1); /* it was reaped */
	close(fd);
}

static void test_a_parent_that_is_gone(void **state)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(confine_life(pair[0]), 0);
	close(pair[1]);
	assert_int_equal(confine_life(pair[0]), -ESRCH);
	close(pair[0]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_child),
		cmocka_unit_test(test_it_is_confined),
		cmocka_unit_test(test_waiting_has_an_end),
		cmocka_unit_test(test_a_parent_that_is_gone),
	};

	if (argc > 0 && !strcmp(argv[0], NAME))
		child_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
