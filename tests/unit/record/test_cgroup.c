/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "record/discover/identity.h"
#include "base/macros.h"
#include "tree.h"

#define ID     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OUTER  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define UID    "8f2a1c3d-0b1e-4f5a-9c7d-112233445566"
#define UID_   "8f2a1c3d_0b1e_4f5a_9c7d_112233445566"
#define HASHED "0123456789abcdef0123456789abcdef"

static void names_that_runtimes_make(void **state)
{
	static const struct {
		const char *text, *container, *pod, *ecs, *path;
	} rows[] = {
		{"0::/kubepods/burstable/pod" UID "/" ID "\n", ID, UID, "",
			"/kubepods/burstable/pod" UID "/" ID},
		{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		 ".slice/cri-containerd-" ID ".scope\n",
			ID, UID, "", NULL},
		{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope", ID, UID, "",
			NULL},
		{"0::/kubepods/pod" HASHED "/" ID "\n", ID, HASHED, "", NULL},
		{"0::/system.slice/containerd.service/kubepods-besteffort-pod" UID_
		 ".slice:cri-containerd:" ID "\n",
			ID, UID, "", NULL},
		{"0::/system.slice/docker-" ID ".scope\n", ID, "", "", NULL},
		{"0::/docker/" ID "\n", ID, "", "", NULL},
		{"0::/docker/" OUTER "/docker/" ID "/init.scope\n", ID, "", "", NULL},
		{"0::/machine.slice/libpod-" ID ".scope/container\n", ID, "", "", NULL},
		{"0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "", "", NULL},
		{"0::/ecs/" HASHED "/" ID "\n", ID, "", HASHED, NULL},
		{"0::/ecs/" HASHED "/" HASHED "-2495160603\n", HASHED "-2495160603", "", HASHED,
			NULL},
		{"0::/user.slice/user-1000.slice/session-2.scope\n", "", "", "", NULL},
		{"0::/a/" ID "0\n", "", "", "", NULL}, /* 65 digits */
		{"0::/a/x" ID "\n", "", "", "", NULL},
		{"0::/pod" UID "/" ID "\n", ID, "", "", NULL}, /* not the kubelet's */
		{"0::/docker/" ID " (deleted)\n", ID, "", "", "/docker/" ID},
		/* version 1, and both at once: whoever names the container is believed */
		{"12:pids:/docker/" ID "\n11:cpu,cpuacct:/docker/" ID "\n0::/\n", ID, "", "",
			"/docker/" ID},
		{"4:memory:/a\n1:name=systemd:/docker/" ID
		 "\n0::/system.slice/containerd.service\n",
			ID, "", "", "/docker/" ID},
		{"4:memory:/longer/path\n0::/v2\n", "", "", "", "/v2"},
		{"4:memory:/longer/path\n1:cpu:/\n0::/\n", "", "", "", "/longer/path"},
		{"0::/\n", "", "", "", "/"},
		{"1:name=x:y:/z\n", "", "", "", ""}, /* a path begins with a slash */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cgroup c;

		cgroup_parse(rows[i].text, strlen(rows[i].text), &c);
		assert_string_equal(c.container_id, rows[i].container);
		assert_string_equal(c.pod_uid, rows[i].pod);
		assert_string_equal(c.ecs_task, rows[i].ecs);
		if (rows[i].path)
			assert_string_equal(c.path, rows[i].path);
	}
}

/* Where version 1 limits CPUs, that group is the one. */
static void group_of_cpus(void **state)
{
	static const struct {
		const char *text, *cpu, *path, *memory;
	} rows[] = {
		{"9:name=systemd:/\n4:memory:/longer/path\n1:cpu:/job\n0::/\n", "/job", "/job",
			"/longer/path"},
		{"4:memory:/job\n1:cpu:/\n0::/\n", "", "/job", "/job"},
		{"3:cpuacct,cpu:/job\n0::/user.slice/session.scope\n", "/job", "/job", ""},
		{"3:cpu,cpuacct:/\n0::/user.slice\n", "", "/user.slice", ""},
		{"3:cpuset:/few\n2:cpuacct:/x\n0::/\n", "", "/few", ""},
		{"5:cpu:/docker/" ID "\n4:memory:/docker/" ID "\n0::/\n", "/docker/" ID,
			"/docker/" ID, "/docker/" ID},
		{"5:cpu:/slurm/job7\n4:memory:/docker/" ID "\n0::/\n", "/slurm/job7", "/docker/" ID,
			"/docker/" ID},
		{"0::/docker/" ID "\n", "", "/docker/" ID, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cgroup c;

		cgroup_parse(rows[i].text, strlen(rows[i].text), &c);
		assert_string_equal(c.cpu_path, rows[i].cpu);
		assert_string_equal(c.memory_path, rows[i].memory);
		assert_string_equal(c.path, rows[i].path);
	}
}

static void hostile_text(void **state)
{
	static const char *const texts[] = {"", "\n\n\n", ":", "::", "0::", "0:::", "x",
		"0::\n0::/", "0::/kubepods/pod", "0::/kubepods/pod-", "0::/\\012\\012",
		"0::/pod\\x/\xff\xfe"};
	char longest[16384];
	struct cgroup c;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cgroup_parse(texts[i], strlen(texts[i]), &c);
		assert_string_equal(c.container_id, "");
		assert_string_equal(c.pod_uid, "");
	}
	cgroup_parse("0::/a\0b/\n", 9, &c); /* bytes, not a string */
	assert_string_equal(c.path, "/a");

	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "0::/", 4);
	memcpy(longest + sizeof(longest) - 65, "/" ID, 65);
	cgroup_parse(longest, sizeof(longest), &c);
	assert_string_equal(c.container_id, ID);
	assert_int_equal(strlen(c.path), TARGET_PATH_MAX - 1);
	assert_string_equal(c.path + TARGET_PATH_MAX - 65, ID);
}

static void of_a_process(void **state)
{
	char root[TREE_MAX];
	struct cgroup c;

	tree_init(root);
	assert_int_equal(cgroup_read(root, 12, &c), -ESRCH);
	tree_write(root, "/proc/12/cgroup", "0::/docker/" ID "\n");
	assert_int_equal(cgroup_read(root, 12, &c), 0);
	assert_string_equal(c.container_id, ID);
	tree_done(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_runtimes_make),
		cmocka_unit_test(group_of_cpus),
		cmocka_unit_test(hostile_text),
		cmocka_unit_test(of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
