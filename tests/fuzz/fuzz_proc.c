/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of /proc, whose content other processes decide: maps, cgroup, stat, environ, and the host's
 * own. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "record/capture/host.h"
#include "record/discover/discover.h"
#include "record/discover/maps.h"
#include "record/discover/identity.h"
#include "fuzz.h"

static void make_tree(void)
{
	char path[128];

	for (size_t i = 0; i < 3; i++) {
		static const char *const folders[] = {"proc", "proc/7", "proc/pressure"};

		snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), folders[i]);
		mkdir(path, 0700);
	}
}

static void check_maps(const char *text, size_t size)
{
	struct maps_entry e;

	if (!maps_parse(text, size, &e))
		return;
	MUST(e.path_len <= size);
	MUST(!e.path_len || (e.path >= text && e.path + e.path_len <= text + size));
}

static void check_cgroup(const char *text, size_t size)
{
	struct cgroup c;

	cgroup_parse(text, size, &c);
	MUST(strlen(c.path) < sizeof(c.path));
	MUST(!c.container_id[0] ||
		strspn(c.container_id, "0123456789abcdef-") == strlen(c.container_id));
	MUST(!c.pod_uid[0] || strspn(c.pod_uid, "0123456789abcdef-") == strlen(c.pod_uid));
}

static void check_variables(const char *root)
{
	static const char *const keys[] = {"RANK", "WORLD_SIZE", "X"};
	static struct variables v;

	MUST(variables_read(root, 7, keys, ARRAY_SIZE(keys), &v) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *value = variables_get(&v, keys[i]);

		MUST(!value == !v.found[i]);
		MUST(!value || strlen(value) < VARIABLE_VALUE_MAX);
	}
}

static void check_host(const char *root)
{
	static struct host_reader h;
	struct host_sample s = {0};

	host_reader_init(&h, root);
	for (int i = 1; i < 3; i++)
		if (host_read(&h, (wall_time){i * 1000000000LL}, &s) == 0)
			MUST(s.cpu_pct >= 0 && s.cpu_pct <= 100 && s.mem_pct <= 100);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = {"proc/7/stat", "proc/7/environ", "proc/7/maps",
		"proc/stat", "proc/meminfo", "proc/loadavg", "proc/vmstat", "proc/pressure/cpu"};
	static struct target_library libraries[DISCOVER_LIBRARIES_MAX];
	const char *text = (const char *)data;
	struct discover_process p;
	size_t dropped;
	int count;

	make_tree();
	check_maps(text, size);
	check_cgroup(text, size);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		fuzz_place(files[i], data, size);
	if (discover_process_stat(fuzz_folder(), 7, &p) == 0)
		MUST(strnlen(p.comm, sizeof(p.comm)) < sizeof(p.comm));
	check_variables(fuzz_folder());
	count = discover_libraries(fuzz_folder(), 7, libraries, ARRAY_SIZE(libraries), &dropped);
	MUST(count <= (int)ARRAY_SIZE(libraries));
	for (int i = 0; i < count; i++)
		MUST(strnlen(libraries[i].path, TARGET_PATH_MAX) < TARGET_PATH_MAX);
	check_host(fuzz_folder());
	return 0;
}
