/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/confine_thread.h"
#include "base/file.h"
#include "base/macros.h"

static uint64_t field(const char *name, int base)
{
	_cleanup_buf_ struct buf b = BUF_INIT(16384);
	const char *at;

	assert_int_equal(file_read("/proc/thread-self/status", 16384, &b), 0);
	at = strstr(buf_str(&b), name);
	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, base);
}

struct seen {
	struct confine_report report;
	uint64_t effective, permitted, bounding, no_new_privs, seccomp;
};

static void snapshot(struct seen *s)
{
	s->effective = field("\nCapEff:", 16);
	s->permitted = field("\nCapPrm:", 16);
	s->bounding = field("\nCapBnd:", 16);
	s->no_new_privs = field("\nNoNewPrivs:", 10);
	s->seccomp = field("\nSeccomp:", 10);
}

static const uint16_t calls[] = {__NR_write};

static const struct confine_thread plan = {
	.capabilities = CONFINE_CAP(CAP_KILL),
	.paths = true,
	.calls = {.calls = calls, .call_count = ARRAY_SIZE(calls), .opens = true, .strict = true},
};

static void *confined(void *arg)
{
	struct seen *s = arg;

	confine_thread_enter(&plan, &s->report);
	snapshot(s);
	return NULL;
}

static void test_one_thread_and_no_other(void **state)
{
	struct seen before, inside, after;
	pthread_t thread;

	snapshot(&before);
	assert_int_equal(pthread_create(&thread, NULL, confined, &inside), 0);
	pthread_join(thread, NULL);
	snapshot(&after);
	assert_int_equal(inside.report.parts[CONFINE_CAPABILITIES], 0);
	assert_int_equal(inside.report.parts[CONFINE_NO_NEW_PRIVILEGES], 0);
	assert_int_equal(inside.effective & ~plan.capabilities, 0);
	assert_int_equal(inside.effective, before.permitted & plan.capabilities);
	assert_int_equal(inside.permitted, inside.effective);
	assert_int_equal(inside.no_new_privs, 1);
	if (before.permitted & CONFINE_CAP(CAP_SETPCAP))
		assert_int_equal(inside.bounding & ~plan.capabilities, 0);
	else
		printf("# not root: the bounding set is not looked at\n");
	if (inside.report.parts[CONFINE_CALLS] == 0)
		assert_int_equal(inside.seccomp, 2);
	else
		printf("# no seccomp: %s\n",
			confine_part_reason(CONFINE_CALLS, inside.report.parts[CONFINE_CALLS]));
	assert_memory_equal(&before.effective, &after.effective,
		sizeof(before) - offsetof(struct seen, effective));
}

static void test_a_trial_changes_nothing_here(void **state)
{
	struct seen before, after;
	struct confine_report r = {.parts = {1, 1, 1, 1}};

	snapshot(&before);
	assert_int_equal(confine_thread_try(&plan, &r), 0);
	snapshot(&after);
	for (int p = 0; p < CONFINE_PARTS; p++)
		assert_true(r.parts[p] <= 0);
	assert_int_equal(r.parts[CONFINE_CAPABILITIES], 0);
	assert_memory_equal(&before.effective, &after.effective,
		sizeof(before) - offsetof(struct seen, effective));
}

/* A thread with another user's rights to files does not get root's back. */
static void *as_another_user(void *arg)
{
	struct confine_thread p = plan;
	struct seen *s = arg;

	p.capabilities |= CONFINE_CAP(CAP_DAC_OVERRIDE);
	p.paths = false;
	(void)syscall(SYS_setfsuid, CONFINE_NOBODY);
	confine_thread_enter(&p, &s->report);
	snapshot(s);
	return NULL;
}

static void test_rights_put_aside_stay_so(void **state)
{
	struct seen inside;
	pthread_t thread;

	if (geteuid() != 0) {
		printf("# skip: it needs root\n");
		skip();
	}
	assert_int_equal(pthread_create(&thread, NULL, as_another_user, &inside), 0);
	pthread_join(thread, NULL);
	assert_int_equal(inside.report.parts[CONFINE_CAPABILITIES], 0);
	assert_int_equal(inside.effective, CONFINE_CAP(CAP_KILL));
	assert_int_equal(inside.permitted, CONFINE_CAP(CAP_KILL) | CONFINE_CAP(CAP_DAC_OVERRIDE));
}

/* A folder that is not there: everything else is still given up, and the reason is told. */
static void test_a_part_that_fails(void **state)
{
	static const char *const nowhere[] = {"/nonexistent/folder"};
	struct confine_thread p = plan;
	struct confine_report r;

	p.files.folders = nowhere;
	p.files.folder_count = 1;
	assert_int_equal(confine_thread_try(&p, &r), 0);
	assert_true(r.parts[CONFINE_PATHS] == -ENOENT || r.parts[CONFINE_PATHS] == -EOPNOTSUPP);
	assert_int_equal(r.parts[CONFINE_CAPABILITIES], 0);
	assert_string_equal(
		confine_part_reason(CONFINE_PATHS, -ENOENT), "No such file or directory");
}

static void test_words(void **state)
{
	assert_string_equal(confine_part_name(CONFINE_PATHS), "landlock");
	assert_string_equal(confine_part_name(CONFINE_CALLS), "seccomp");
	assert_non_null(strstr(confine_part_reason(CONFINE_PATHS, -EOPNOTSUPP), "the kernel"));
	assert_non_null(strstr(confine_part_reason(CONFINE_CALLS, -EINVAL), "SECCOMP"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread_and_no_other),
		cmocka_unit_test(test_a_trial_changes_nothing_here),
		cmocka_unit_test(test_rights_put_aside_stay_so),
		cmocka_unit_test(test_a_part_that_fails),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
