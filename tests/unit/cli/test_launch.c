/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/trace_command.h"

static char *envp[] = {(char *)"PATH=/nowhere:/usr/bin:/bin", (char *)"INGERO_TEST=launched", NULL};
static struct caller us = {.envp = envp, .env_count = 2};

static int launch(const char *script, int out, pid_t *ret)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};

	return launch_begin(argv, &us, out, ret, NULL);
}

static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return launch_exit_code(status);
}

/* Held, it is the new program already, but has done nothing. */
static void it_waits_for_its_release(void **state)
{
	char text[64] = "", name[64], link[256] = "";
	int p[2];
	pid_t pid;

	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(launch("echo $INGERO_TEST; exit 7", p[1], &pid), 0);
	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	assert_true(readlink(name, link, sizeof(link) - 1) > 0);
	assert_null(strstr(link, "test_launch"));
	assert_int_equal(read(p[0], text, sizeof(text)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(launch_release(pid), 0);
	assert_int_equal(end_of(pid), 7);
	assert_int_equal(read(p[0], text, sizeof(text)), strlen("launched\n"));
	assert_string_equal(text, "launched\n");
	close(p[0]);
	close(p[1]);
}

static void it_can_be_ended_before(void **state)
{
	int p[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(launch("echo run", p[1], &pid), 0);
	launch_abort(pid);
	close(p[1]);
	assert_int_equal(read(p[0], &byte, 1), 0); /* nothing was written, nobody has it open */
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	close(p[0]);
}

static void ends_are_told_as_shells_do(void **state)
{
	pid_t pid;

	assert_int_equal(launch("kill -TERM $$", STDOUT_FILENO, &pid), 0);
	assert_int_equal(launch_release(pid), 0);
	assert_int_equal(end_of(pid), LAUNCH_SIGNAL + SIGTERM);
}

/* What we block or ignore is not the program's. */
static void its_signals_are_untouched(void **state)
{
	sigset_t set;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(
		launch("grep -q 'SigBlk:.0000000000000000' /proc/self/status && "
		       "grep -q 'SigIgn:.*[02468ace]...$' /proc/self/status && " /* SIGPIPE is the 13th */
		       "grep -q 'SigIgn:.*[02468ace]......$' /proc/self/status", /* SIGXFSZ the 25th */
			STDOUT_FILENO, &pid),
		0);
	assert_int_equal(launch_release(pid), 0);
	assert_int_equal(end_of(pid), 0);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void what_cannot_be_executed(void **state)
{
	char *missing[] = {(char *)"no-such-command", NULL}, *folder[] = {(char *)"/etc", NULL},
	     *there[] = {(char *)"/nowhere/x", NULL};
	struct errinfo e = {0};
	pid_t pid = 77;

	assert_int_equal(launch_begin(missing, &us, STDOUT_FILENO, &pid, &e), -ENOENT);
	assert_string_equal(e.text, "cannot run 'no-such-command': no such command in PATH");
	assert_int_equal(e.exit_code, LAUNCH_NOT_FOUND);
	assert_int_equal(launch_begin(there, &us, STDOUT_FILENO, &pid, &e), -ENOENT);
	assert_int_equal(e.exit_code, LAUNCH_NOT_FOUND);
	assert_int_equal(launch_begin(folder, &us, STDOUT_FILENO, &pid, &e), -EACCES);
	assert_int_equal(e.exit_code, LAUNCH_NOT_EXECUTABLE);
	assert_int_equal(pid, 77);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left over */
}

/* An empty folder in PATH is the working folder. */
static void a_file_in_the_working_folder(void **state)
{
	static const char *const paths[] = {"PATH=", "PATH=:/nowhere", "PATH=/nowhere:"};
	char folder[] = "/tmp/ingero-test-XXXXXX", name[] = "not-executable", home[512];
	char *argv[] = {name, NULL};
	int fd;

	assert_non_null(getcwd(home, sizeof(home)));
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char *env[] = {(char *)paths[i], NULL};
		struct caller c = {.envp = env, .env_count = 1};
		struct errinfo e = {0};
		pid_t pid;

		assert_int_equal(launch_begin(argv, &c, STDOUT_FILENO, &pid, &e), -EACCES);
		assert_int_equal(e.exit_code, LAUNCH_NOT_EXECUTABLE);
	}
	unlink(name);
	assert_int_equal(chdir(home), 0);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_waits_for_its_release),
		cmocka_unit_test(it_can_be_ended_before),
		cmocka_unit_test(ends_are_told_as_shells_do),
		cmocka_unit_test(its_signals_are_untouched),
		cmocka_unit_test(what_cannot_be_executed),
		cmocka_unit_test(a_file_in_the_working_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
