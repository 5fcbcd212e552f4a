/* SPDX-License-Identifier: Apache-2.0 */
/* What a process can do before and after it has entered the sandbox. The process is this program
 * again (see main); each deed is tried before, in a process of its own, to show that it can be
 * done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "record/symbol/child.h"
#include "base/macros.h"
#include "base/spawn.h"

#define TRIAL_NAME  "sandbox-trial"
#define PATIENCE_MS 20000

/* ---- deeds: 0 or errno ---- */

static int kept_fd = -1; /* a file opened before */

static int failed(long r)
{
	return r < 0 ? errno : 0;
}

static int open_passwd(void)
{
	return failed(open("/etc/passwd", O_RDONLY));
}

static int create_file(void)
{
	char path[] = "/tmp/ingero-sandbox-XXXXXX";
	int fd = mkstemp(path);

	if (fd >= 0)
		unlink(path);
	return failed(fd);
}

static int make_socket(void)
{
	return failed(socket(AF_INET, SOCK_STREAM, 0));
}

static int connect_somewhere(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0)
		return errno;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return 0;
	return errno == EPERM || errno == EACCES ? errno : 0; /* nobody listens there: no matter */
}

static int fork_off(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return failed(pid);
}

static int let_itself_be_traced(void)
{
	return failed(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int map_code(void)
{
	void *p = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int make_code_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : failed(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int signal_the_parent(void)
{
	return failed(kill(getppid(), 0));
}

static int raise_a_limit(void)
{
	struct rlimit l = {RLIM_INFINITY, RLIM_INFINITY};

	return failed(setrlimit(RLIMIT_FSIZE, &l));
}

static int own_signals(void)
{
	return failed(fcntl(SPAWN_SOCKET, F_SETOWN, getpid()));
}

static int stat_a_path(void)
{
	struct stat st;

	return failed(stat("/etc/passwd", &st));
}

static int read_a_link(void)
{
	char path[64];

	return failed(readlink("/proc/self/exe", path, sizeof(path)));
}

static int execute(void)
{
	execl("/bin/true", "true", NULL);
	return errno;
}

/* The barriers that forbid a deed. */
enum barrier { LANDLOCK = 1, SECCOMP = 2, LIMITS = 4 };

/* Forbidden after; exec is last, because a success leaves nobody to tell. */
static const struct deed {
	const char *name;
	int (*run)(void);
	unsigned barriers;
} deeds[] = {
	{"open a file", open_passwd, LANDLOCK | SECCOMP},
	{"create a file", create_file, LANDLOCK | SECCOMP},
	{"make a socket", make_socket, SECCOMP},
	{"connect", connect_somewhere, LANDLOCK | SECCOMP},
	{"fork", fork_off, SECCOMP},
	{"ptrace", let_itself_be_traced, SECCOMP},
	{"map code", map_code, SECCOMP},
	{"make memory executable", make_code_executable, SECCOMP},
	{"signal the parent", signal_the_parent, LANDLOCK | SECCOMP},
	{"raise a limit", raise_a_limit, LIMITS},
	{"have signals sent", own_signals, SECCOMP},
	{"stat a path", stat_a_path, SECCOMP},
	{"read a link", read_a_link, SECCOMP},
	{"execute", execute, LANDLOCK | SECCOMP},
};

static int read_kept_file(void)
{
	char c;

	return failed(pread(kept_fd, &c, 1, 0));
}

static int map_kept_file(void)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, kept_fd, 0);
	struct stat st;

	return p == MAP_FAILED ? errno : failed(fstat(kept_fd, &st));
}

static int seal_a_table(void)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, "table", 5) != 5)
		return errno;
	return failed(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
}

static int allocate(void)
{
	char *p = malloc(64 << 20);

	if (!p)
		return ENOMEM;
	memset(p, 1, 64 << 20);
	free(p);
	return 0;
}

/* Allowed after. */
static const struct deed needs[] = {
	{"read a file it has", read_kept_file, 0},
	{"map a file it has", map_kept_file, 0},
	{"seal a table", seal_a_table, 0},
	{"allocate", allocate, 0},
};

/* ---- the trial ---- */

struct trial {
	int entered;
	struct sandbox sandbox;
	int before[ARRAY_SIZE(deeds)], after[ARRAY_SIZE(deeds)], needs[ARRAY_SIZE(needs)];
	bool early; /* sent before the last deed: only "execute" is missing in it */
};

/* Whether something that is in force here forbids it. What nothing forbids is not tried: it would
 * succeed, and a process that lets itself be traced hangs. */
static bool is_forbidden(const struct deed *d, const struct sandbox *s)
{
	unsigned barriers = LIMITS;

	barriers |= s->landlock >= 6 ? LANDLOCK : 0;
	barriers |= s->seccomp ? SECCOMP : 0;
	return d->barriers & barriers;
}

static int alone(int (*deed)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(deed());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int tell(const struct trial *t)
{
	struct iovec part = {(void *)t, sizeof(*t)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	return sendmsg(SPAWN_SOCKET, &m, 0) == sizeof(*t) ? 0 : 1;
}

static _noreturn_ void trial_main(void)
{
	struct trial t = {0};
	size_t last = ARRAY_SIZE(deeds) - 1;

	kept_fd = open("/etc/passwd", O_RDONLY);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
		t.before[i] = alone(deeds[i].run);
	t.entered = sandbox_enter(SPAWN_SOCKET, &t.sandbox);
	for (size_t i = 0; t.entered == 0 && i < ARRAY_SIZE(needs); i++)
		t.needs[i] = needs[i].run();
	for (size_t i = 0; t.entered == 0 && i < last; i++)
		if (is_forbidden(&deeds[i], &t.sandbox))
			t.after[i] = deeds[i].run();
	t.early = true;
	tell(&t);
	t.early = false;
	if (is_forbidden(&deeds[last], &t.sandbox))
		t.after[last] = deeds[last].run();
	_exit(tell(&t)); /* without the leak check of a sanitizer, which takes seconds */
}

static void receive(int fd, struct trial *ret)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(recv(fd, ret, sizeof(*ret), 0), sizeof(*ret));
}

static void run_trial(struct trial *ret)
{
	_cleanup_fd_ int fd = -1;
	pid_t pid;
	int status;

	assert_int_equal(spawn_self(TRIAL_NAME, NULL, &pid, &fd), 0);
	receive(fd, ret);
	assert_true(ret->early);
	receive(fd, ret); /* fails here if it could execute */
	assert_false(ret->early);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_before_everything_works(void **state)
{
	struct trial t;

	run_trial(&t);
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
		if (t.before[i])
			fail_msg("%s failed before: %s", deeds[i].name, strerror(t.before[i]));
}

static void test_after_nothing_does(void **state)
{
	struct trial t;

	run_trial(&t);
	assert_int_equal(t.entered, 0);
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		if (!is_forbidden(&deeds[i], &t.sandbox))
			printf("# not tried, landlock is version %d and seccomp %s: %s\n",
				t.sandbox.landlock, t.sandbox.seccomp ? "on" : "off",
				deeds[i].name);
		else if (t.after[i] != EPERM && t.after[i] != EACCES)
			fail_msg("%s: %s", deeds[i].name, strerror(t.after[i]));
	}
}

static void test_after_what_is_needed_works(void **state)
{
	struct trial t;

	run_trial(&t);
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (t.needs[i])
			fail_msg("%s failed: %s", needs[i].name, strerror(t.needs[i]));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_everything_works),
		cmocka_unit_test(test_after_nothing_does),
		cmocka_unit_test(test_after_what_is_needed_works),
	};

	if (argc > 0 && !strcmp(argv[0], TRIAL_NAME))
		trial_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
