/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* What the kernel says differs from machine to machine: here only that the answers are consistent.
 * The rest is shown by attaching for real, in tests that need root. */
#include <errno.h>
#include <string.h>

#include "record/attach/feature.h"
#include "tree.h"

static void answers_are_of_the_contract(void **state)
{
	const int answers[] = {feature_bpf_load(), feature_uprobe_session(), feature_uprobe_multi(),
		feature_uprobe_perf()};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		assert_true(answers[i] == 0 || answers[i] == -EOPNOTSUPP || answers[i] == -EPERM);
	if (answers[0] == -EPERM) {
		assert_int_equal(answers[1], -EPERM);
		assert_int_equal(answers[2], -EPERM);
	}
}

static void the_best_method_is_one_that_works(void **state)
{
	int (*const tries[])(void) = {
		feature_uprobe_session, feature_uprobe_multi, feature_uprobe_perf};
	enum probe_method m = PROBE_PERF;
	struct errinfo e = {0};
	int r = feature_attach_method(&m, &e);

	if (r < 0) {
		assert_true(r == -EPERM || r == -EOPNOTSUPP);
		assert_true(strlen(e.text) > 0);
		return;
	}
	assert_int_equal(tries[m](), 0);
	for (int better = 0; better < (int)m; better++)
		assert_int_not_equal(tries[better](), 0);
}

static void unknown_tracepoints_are_absent(void **state)
{
	const char *const names[] = {"sched_switch", "no_such_tracepoint"};
	bool present[2] = {false, true};
	int r = feature_tracepoints(names, 2, present);

	if (r == -EOPNOTSUPP)
		skip(); /* a kernel without BTF */
	assert_int_equal(r, 0);
	assert_true(present[0]);
	assert_false(present[1]);
}

static void a_pid_namespace_of_ones_own_is_seen(void **state)
{
	char root[TREE_MAX];

	tree_init(root);
	assert_true(feature_host_pids(root)); /* no /proc: no complaint */
	tree_link(root, "/proc/self/ns/pid", "pid:[4026532567]");
	assert_false(feature_host_pids(root));
	tree_done(root);
	tree_init(root);
	tree_link(root, "/proc/self/ns/pid", "pid:[4026531836]");
	assert_true(feature_host_pids(root));
	tree_done(root);
}

static void methods_have_names(void **state)
{
	assert_string_equal(probe_method_name(PROBE_SESSION), "session");
	assert_string_equal(probe_method_name(PROBE_MULTI), "multi");
	assert_string_equal(probe_method_name(PROBE_PERF), "perf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_of_the_contract),
		cmocka_unit_test(the_best_method_is_one_that_works),
		cmocka_unit_test(unknown_tracepoints_are_absent),
		cmocka_unit_test(a_pid_namespace_of_ones_own_is_seen),
		cmocka_unit_test(methods_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
