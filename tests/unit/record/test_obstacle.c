/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "record/attach/feature.h"
#include "base/macros.h"
#include "tree.h"

#define SERVICE "000001c000080004" /* BPF PERFMON SYS_PTRACE DAC_READ_SEARCH CHECKPOINT_RESTORE */
#define ALL     "000001ffffffffff"
#define NONE    "0000000000000000"

static char root[TREE_MAX], why[OBSTACLE_MAX];
static struct obstacle_view view;

static int setup(void **state)
{
	tree_init(root);
	why[0] = 0;
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

static void look(const char *caps, int seccomp)
{
	char text[128];

	snprintf(text, sizeof(text), "Name:\tx\nCapEff:\t%s\nSeccomp:\t%d\n", caps, seccomp);
	tree_write(root, "/proc/self/status", text);
	obstacle_look(root, &view);
}

static void nothing_is_blamed_without_a_reason(void **state)
{
	look(ALL, 0);
	assert_false(obstacle_to_load(&view, why));
	assert_false(obstacle_to_run(&view, why));
	assert_false(obstacle_to_sample(&view, why));
	assert_false(obstacle_to_look(&view, why));
	look(NONE, 2); /* lacks the capabilities: the filter is not to blame */
	assert_false(obstacle_to_load(&view, why));
	assert_false(obstacle_to_sample(&view, why));
	assert_string_equal(why, "");
}

static void loading_is_kept_by_lockdown_a_user_namespace_or_a_filter(void **state)
{
	look(ALL, 2);
	assert_true(obstacle_to_load(&view, why));
	assert_non_null(strstr(why, "seccomp filter refuses bpf()"));
	tree_write(root, "/proc/self/uid_map", "         0       1000          1\n");
	assert_true(obstacle_to_load(&view, why));
	assert_non_null(strstr(why, "user namespace"));
	tree_write(root, "/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	assert_true(obstacle_to_load(&view, why));
	assert_null(strstr(why, "lockdown"));
	assert_false(obstacle_to_run(&view, why));
	tree_write(root, "/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	assert_true(obstacle_to_load(&view, why));
	assert_non_null(strstr(why, "lockdown=integrity"));
	assert_true(obstacle_to_run(&view, why));
}

static void samples_are_kept_by_the_level_or_a_filter(void **state)
{
	tree_write(root, "/proc/sys/kernel/perf_event_paranoid", "3\n");
	look(ALL, 0); /* with CAP_SYS_ADMIN no level matters */
	assert_false(obstacle_to_sample(&view, why));
	look(SERVICE, 2);
	assert_true(obstacle_to_sample(&view, why));
	assert_non_null(strstr(why, "kernel.perf_event_paranoid is 3"));
	tree_write(root, "/proc/sys/kernel/perf_event_paranoid", "2\n");
	assert_true(obstacle_to_sample(&view, why));
	assert_non_null(strstr(why, "seccomp filter refuses perf_event_open()"));
	look(SERVICE, 0);
	assert_false(obstacle_to_sample(&view, why));
}

static void processes_are_kept_by_a_capability_or_a_profile(void **state)
{
	tree_write(root, "/proc/self/attr/current", "docker-default (enforce)\n");
	look(NONE, 0);
	assert_true(obstacle_to_look(&view, why));
	assert_non_null(strstr(why, "CAP_SYS_PTRACE"));
	look(SERVICE, 0);
	assert_true(obstacle_to_look(&view, why));
	assert_non_null(strstr(why, "apparmor=unconfined"));
	tree_write(root, "/proc/self/attr/current", "unconfined\n");
	assert_false(obstacle_to_look(&view, why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			nothing_is_blamed_without_a_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(
			loading_is_kept_by_lockdown_a_user_namespace_or_a_filter, setup, teardown),
		cmocka_unit_test_setup_teardown(
			samples_are_kept_by_the_level_or_a_filter, setup, teardown),
		cmocka_unit_test_setup_teardown(
			processes_are_kept_by_a_capability_or_a_profile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
