/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_doing.c - what a process is doing, by a /proc of our own making. */
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/push/pusher_private.h"
#include "base/file.h"

static char root[64];

static int begin(void **state)
{
	char path[128];

	strcpy(root, "/tmp/ingero-doing-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/proc", root);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/proc/7", root);
	return mkdir(path, 0755);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *f)
{
	return remove(path);
}

static int end(void **state)
{
	return nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/proc/7/%s", root, name);
	assert_int_equal(file_write_atomic(path, text, strlen(text), 0644), 0);
}

static void expect(
	char state, long call, const char *channel, enum push_doing doing, const char *where)
{
	struct pusher_doing d;
	char text[256];

	snprintf(text, sizeof(text), "7 (a) b) c) %c 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 555 0\n",
		state);
	put("stat", text);
	snprintf(text, sizeof(text), call < 0 ? "running\n" : "%ld 0x1 0x2 0x7ffe 0x7fff\n", call);
	put("syscall", text);
	put("wchan", channel);
	pusher_doing_read(root, 7, 555, &d);
	assert_string_equal(push_doing_id(d.doing), push_doing_id(doing));
	assert_string_equal(d.where, where);
}

static void test_states(void **state)
{
	struct pusher_doing d;

	expect('R', -1, "0", PUSH_DOING_RUNNING, "");
	expect('T', SYS_futex, "do_signal_stop", PUSH_DOING_STOPPED, "");
	expect('t', SYS_futex, "ptrace_stop", PUSH_DOING_STOPPED, "");
	expect('Z', -1, "0", PUSH_DOING_GONE, "");
	expect('S', SYS_futex, "futex_wait_queue", PUSH_DOING_BLOCKED,
		"in futex (futex_wait_queue)");
	expect('S', SYS_recvfrom, "wait_woken", PUSH_DOING_BLOCKED, "in recv (wait_woken)");
	expect('D', SYS_read, "folio_wait_bit", PUSH_DOING_BLOCKED, "in read (folio_wait_bit)");
	expect('S', SYS_ioctl, "0", PUSH_DOING_GPU, "in ioctl");
	expect('D', SYS_ioctl, "io_schedule", PUSH_DOING_BLOCKED, "in ioctl (io_schedule)");
	expect('S', 9999, "somewhere", PUSH_DOING_BLOCKED, "somewhere");
	pusher_doing_read(root, 7, 556, &d); /* another process has its number */
	assert_int_equal(d.doing, PUSH_DOING_GONE);
	pusher_doing_read(root, 8, 0, &d);
	assert_int_equal(d.doing, PUSH_DOING_GONE);
	put("stat", "nonsense");
	pusher_doing_read(root, 7, 0, &d);
	assert_int_equal(d.doing, PUSH_DOING_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_states, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
