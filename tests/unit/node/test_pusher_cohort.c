/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_cohort.c - nodes of one job are of one cohort, whatever their pods are called. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/push/pusher_node.h"

static void hash(const char *workload, const char *job, const char *cgroup, char ret[PUSH_HASH_MAX])
{
	pusher_cohort_hash(workload, job, cgroup, ret);
}

static void test_group_hash(void **state)
{
	char got[PUSH_HASH_MAX];

	/* printf %s /kubepods/x | sha256sum */
	pusher_group_hash("/kubepods/x", got);
	assert_string_equal(got, "70cb47e79db98ad7");
	pusher_group_hash("", got);
	assert_string_equal(got, "");
}

static void test_pods_of_one_kind(void **state)
{
	char a[PUSH_HASH_MAX], b[PUSH_HASH_MAX];

	hash("training", "",
		"/kubepods.slice/kubepods-pod0c1d2e3f_1111_2222_3333_444455556666.slice/"
		"cri-containerd-0123456789abcdef0123456789abcdef.scope",
		a);
	hash("training", "",
		"/kubepods.slice/kubepods-pod9f8e7d6c_aaa1_bbb2_ccc3_dddd5555eeee.slice/"
		"cri-containerd-fedcba9876543210fedcba9876543210.scope",
		b);
	assert_int_equal(strlen(a), 16);
	assert_string_equal(a, b);
	hash("training", "", "/system.slice/job-17.service", a);
	hash("training", "", "/system.slice/job-4711.service", b);
	assert_string_equal(a, b);
	hash("training", "", "/system.slice/serve-17.service", b);
	assert_string_not_equal(a, b);
	hash("inference", "", "/system.slice/job-17.service", b);
	assert_string_not_equal(a, b);
}

static void test_a_job_decides(void **state)
{
	char a[PUSH_HASH_MAX], b[PUSH_HASH_MAX];

	hash("training", "slurm:4711", "/any/where", a);
	hash("training", "slurm:4711", "/else/where", b);
	assert_string_equal(a, b);
	hash("training", "slurm:4712", "/any/where", b);
	assert_string_not_equal(a, b);
	hash("training", "", "", b);
	assert_string_equal(b, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group_hash),
		cmocka_unit_test(test_pods_of_one_kind),
		cmocka_unit_test(test_a_job_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
