/* SPDX-License-Identifier: Apache-2.0 */
/* confine_fixture.h - what a thread could do, and whether it can after it has given up its rights.
 * Every deed is tried in a process of its own, first with all rights, to show that it can be done
 * here at all. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/confine_thread.h"
#include "base/text.h"
#include "tree.h"

static char root[TREE_MAX]; /* holds records/ and other/, a file in each */
static char db_path[TREE_MAX + 32];
static pid_t onlooker; /* a process that is outside */
static char onlooker_word[] = "word";
static bool has_landlock, has_seccomp;

/* ---- deeds: 0 or errno ---- */

static int failed(long r)
{
	return r < 0 ? errno : 0;
}

static int open_in(const char *folder, const char *name, int flags)
{
	char path[TREE_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s/%s", root, folder, name);
	return failed(open(path, flags, 0600));
}

static int read_a_file(void)
{
	return open_in("other", "file", O_RDONLY);
}

static int make_a_file_elsewhere(void)
{
	return open_in("other", "new", O_WRONLY | O_CREAT);
}

static int make_a_recording(void)
{
	return open_in("records", "new", O_RDWR | O_CREAT);
}

static int write_by_openat2(void)
{
	struct open_how how = {.flags = O_WRONLY};
	char path[TREE_MAX + 64];

	snprintf(path, sizeof(path), "%s/other/file", root);
	return failed(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
}

static int remove_a_file_elsewhere(void)
{
	char path[TREE_MAX + 64];

	snprintf(path, sizeof(path), "%s/other/gone", root);
	return failed(unlink(path));
}

static int remove_a_recording(void)
{
	char path[TREE_MAX + 64];

	snprintf(path, sizeof(path), "%s/records/gone", root);
	return failed(unlink(path));
}

static int execute(void)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDOUT_FILENO);
	execl("/bin/true", "true", NULL);
	return errno;
}

static int let_itself_be_traced(void)
{
	return failed(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int mount_a_folder(void)
{
	return failed(mount("none", root, "tmpfs", 0, NULL));
}

static int change_the_root(void)
{
	return failed(chroot(root));
}

static int open_a_raw_socket(void)
{
	return failed(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static int open_a_tcp_socket(void)
{
	return failed(socket(AF_INET, SOCK_STREAM, 0));
}

static int become_another_user(void)
{
	return failed(syscall(SYS_setuid, CONFINE_NOBODY));
}

static int take_a_capability_back(void)
{
	return failed(syscall(SYS_setpriority, 0, 0, -5)); /* CAP_SYS_NICE */
}

static int make_memory_executable(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : failed(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

/* A device that anybody may write: what an empty capability set alone would allow. */
static int write_to_a_device(void)
{
	return failed(open("/dev/null", O_WRONLY));
}

static int signal_a_process(void)
{
	return failed(kill(onlooker, 0));
}

static int read_memory_of_a_process(void)
{
	char word[sizeof(onlooker_word)];
	struct iovec to = {word, sizeof(word)}, from = {onlooker_word, sizeof(word)};

	return failed(process_vm_readv(onlooker, &to, 1, &from, 1, 0));
}

static int open_memory_of_a_process(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", onlooker);
	return failed(open(path, O_RDONLY));
}

static int look_into_the_root_of_a_process(void)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/root/etc", onlooker);
	return failed(stat(path, &st));
}

/* E2BIG: the kernel looked at it and found no instruction. */
static int load_a_program(void)
{
	uint8_t attr[128] = {0};
	int err = failed(syscall(SYS_bpf, 5 /* BPF_PROG_LOAD */, attr, sizeof(attr)));

	return err == E2BIG || err == EINVAL ? 0 : err;
}

#ifdef __x86_64__
static int call_as_x32(void)
{
	syscall(0x40000000 | __NR_getpid);
	return 0;
}
#endif

enum outcome { ALLOWED, REFUSED, ENDED };

enum { NEEDS_ROOT = 1, BY_LANDLOCK = 2, BY_SECCOMP = 4 };

static const struct deed {
	const char *name;
	int (*run)(void);
	unsigned flags; /* of its control, and what alone forbids it to the store's thread */
	enum outcome main, store, engine, metrics, server;
} deeds[] = {
	{"read a file", read_a_file, 0, ALLOWED, ALLOWED, ALLOWED, ALLOWED, ALLOWED},
	{"make a recording", make_a_recording, 0, REFUSED, ALLOWED, REFUSED, REFUSED, ALLOWED},
	{"make a file elsewhere", make_a_file_elsewhere, BY_LANDLOCK, REFUSED, REFUSED, REFUSED,
		REFUSED, REFUSED},
	{"write a file by openat2", write_by_openat2, NEEDS_ROOT | BY_LANDLOCK, REFUSED, REFUSED,
		REFUSED, REFUSED, REFUSED},
	{"remove a recording", remove_a_recording, 0, REFUSED, ALLOWED, REFUSED, REFUSED, ALLOWED},
	{"remove a file elsewhere", remove_a_file_elsewhere, BY_LANDLOCK, REFUSED, REFUSED, REFUSED,
		REFUSED, REFUSED},
	{"write to a device", write_to_a_device, BY_LANDLOCK, REFUSED, REFUSED, REFUSED, REFUSED,
		REFUSED},
	{"make memory executable", make_memory_executable, BY_SECCOMP, REFUSED, REFUSED, REFUSED,
		REFUSED, REFUSED},
	{"become another user", become_another_user, NEEDS_ROOT | BY_SECCOMP, REFUSED, REFUSED,
		REFUSED, REFUSED, REFUSED},
	{"raise its priority", take_a_capability_back, NEEDS_ROOT, REFUSED, REFUSED, REFUSED,
		REFUSED, REFUSED},
	{"open a raw socket", open_a_raw_socket, NEEDS_ROOT, REFUSED, REFUSED, REFUSED, REFUSED,
		REFUSED},
	{"open a TCP socket", open_a_tcp_socket, BY_SECCOMP, REFUSED, REFUSED, REFUSED, ALLOWED,
		ALLOWED},
	{"signal a process", signal_a_process, BY_SECCOMP, ALLOWED, REFUSED, REFUSED, REFUSED,
		ALLOWED},
	{"read memory of a process", read_memory_of_a_process, NEEDS_ROOT, ALLOWED, REFUSED,
		REFUSED, REFUSED, REFUSED},
	{"open memory of a process", open_memory_of_a_process, NEEDS_ROOT, ALLOWED, REFUSED,
		REFUSED, REFUSED, REFUSED},
	{"look into the root of a process", look_into_the_root_of_a_process, NEEDS_ROOT, ALLOWED,
		REFUSED, REFUSED, REFUSED, REFUSED},
	{"load a BPF program", load_a_program, NEEDS_ROOT, REFUSED, REFUSED, REFUSED, REFUSED,
		REFUSED},
	{"mount", mount_a_folder, NEEDS_ROOT | BY_SECCOMP, ENDED, ENDED, ENDED, ENDED, ENDED},
	{"change the root", change_the_root, NEEDS_ROOT | BY_SECCOMP, ENDED, ENDED, ENDED, ENDED,
		ENDED},
	{"be traced", let_itself_be_traced, BY_SECCOMP, ENDED, ENDED, ENDED, ENDED, ENDED},
	{"execute", execute, BY_SECCOMP, ENDED, ENDED, ENDED, ENDED, ENDED},
#ifdef __x86_64__
	{"call as x32", call_as_x32, BY_SECCOMP, ENDED, ENDED, ENDED, ENDED, ENDED},
#endif
};

/* ---- trials ---- */

static void stay(void)
{
}

/* What an exit status says: 0, an errno, or -SIGSYS. */
static int try_deed(void (*enter)(void), int (*deed)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)unshare(CLONE_NEWNS); /* a mount that succeeds is seen by nobody */
		(void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
		enter();
		_exit(deed());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static enum outcome outcome_of(int result)
{
	if (result == 0)
		return ALLOWED;
	return result == -SIGSYS ? ENDED : REFUSED;
}

static void make_files(void)
{
	tree_write(root, "/records/gone", "x");
	tree_write(root, "/other/file", "x");
	tree_write(root, "/other/gone", "x");
}

static bool can_be_judged(const struct deed *d)
{
	if (d->flags & NEEDS_ROOT && geteuid() != 0)
		printf("# skip: %s: it needs root\n", d->name);
	else if (d->flags & BY_LANDLOCK && !has_landlock)
		printf("# skip: %s: the kernel has no landlock\n", d->name);
	else if (d->flags & BY_SECCOMP && !has_seccomp)
		printf("# skip: %s: no seccomp in this build\n", d->name);
	else
		return true;
	return false;
}

static void confine_test_control(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		int r;

		if (!can_be_judged(&deeds[i]))
			continue;
		make_files();
		r = try_deed(stay, deeds[i].run);
		if (r != 0)
			fail_msg("%s fails without confinement: %d", deeds[i].name, r);
	}
}

static void confine_try_all(void (*enter)(void), size_t offset)
{
	static const char *const names[] = {"allowed", "refused", "ended"};

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		enum outcome wanted = *(const enum outcome *)((const char *)&deeds[i] + offset);
		int r;

		if (!can_be_judged(&deeds[i]) || (!has_seccomp && wanted != ALLOWED))
			continue;
		make_files();
		r = try_deed(enter, deeds[i].run);
		if (outcome_of(r) != wanted || (wanted == REFUSED && r != EPERM && r != EACCES))
			fail_msg("%s: wanted: %s, got: %d", deeds[i].name, names[wanted], r);
	}
}

static int confine_setup(void **state)
{
	static const struct confine_thread plan = {.paths = true, .calls = {.strict = true}};
	static const uint16_t write_call[] = {__NR_write};
	struct confine_thread p = plan;
	struct confine_report report;

	p.calls.calls = write_call;
	p.calls.call_count = 1;
	assert_int_equal(confine_thread_try(&p, &report), 0);
	has_landlock = report.parts[CONFINE_PATHS] == 0;
	has_seccomp = report.parts[CONFINE_CALLS] == 0;
	tree_init(root);
	chmod(root, 0755);
	make_files();
	snprintf(db_path, sizeof(db_path), "%s/records/x.db", root);
	onlooker = fork();
	assert_true(onlooker >= 0);
	if (onlooker == 0) {
		pause();
		_exit(0);
	}
	return 0;
}

static int confine_teardown(void **state)
{
	kill(onlooker, SIGKILL);
	waitpid(onlooker, NULL, 0);
	tree_done(root);
	return 0;
}
