/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "record/discover/maps.h"

/* As the kernel lays a record out: fixed part, name padded to 8 bytes, time. */
struct made {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char rest[4096];
};

static struct made record;

static size_t make(const char *name, uint32_t prot)
{
	size_t padded = (strlen(name) / 8 + 1) * 8;
	uint64_t at = 123456789;

	record = (struct made){.h = {.type = PERF_RECORD_MMAP2},
		.pid = 42,
		.tid = 43,
		.addr = 0x7f0000000000,
		.len = 0x3000,
		.maj = 8,
		.min = 1,
		.inode = 77,
		.prot = prot};
	memset(record.rest, 0, sizeof(record.rest));
	memcpy(record.rest, name, strlen(name));
	memcpy(record.rest + padded, &at, sizeof(at));
	record.h.size = (uint16_t)(offsetof(struct made, rest) + padded + sizeof(at));
	return record.h.size;
}

static void a_library_is_told_with_file_and_time(void **state)
{
	size_t len = make("/opt/cuda/libcudart.so.12", PROT_READ | PROT_EXEC);
	struct map_watch_mapping m;

	assert_true(map_watch_parse(&record, len, &m));
	assert_int_equal(m.pid, 42);
	assert_int_equal(m.at.ns, 123456789);
	assert_int_equal(m.library.kind, TARGET_CUDART);
	assert_int_equal(m.library.dev, makedev(8, 1));
	assert_int_equal(m.library.inode, 77);
	assert_int_equal(m.library.map_start, 0x7f0000000000);
	assert_int_equal(m.library.map_end, 0x7f0000003000);
	assert_string_equal(m.library.path, "/opt/cuda/libcudart.so.12");
}

static void what_is_no_library_is_left_out(void **state)
{
	struct map_watch_mapping m;
	size_t len = make("/usr/lib/libc.so.6", PROT_EXEC);

	assert_false(map_watch_parse(&record, len, &m));
	len = make("/opt/libcuda.so.1", PROT_READ); /* data */
	assert_false(map_watch_parse(&record, len, &m));
	len = make("libcuda.so.1", PROT_EXEC); /* "//anon", "[vdso]" and the like */
	assert_false(map_watch_parse(&record, len, &m));
	len = make("/opt/libcuda.so.1", PROT_EXEC);
	record.h.type = PERF_RECORD_COMM;
	assert_false(map_watch_parse(&record, len, &m));
	record.h.type = PERF_RECORD_MMAP2;
	record.pid = UINT32_MAX; /* in no namespace of ours */
	assert_false(map_watch_parse(&record, len, &m));
	record.pid = 42;
	assert_true(map_watch_parse(&record, len, &m)); /* the same one, as it was */
}

/* The kernel is believed, but no length of a record leads out of it. */
static void a_record_of_any_length_is_survived(void **state)
{
	struct map_watch_mapping m;
	size_t len = make("/opt/libcuda.so.1", PROT_EXEC), taken = 0;

	for (size_t i = 0; i <= len; i++)
		taken += map_watch_parse(&record, i, &m);
	assert_true(taken >= 1);
	make("/opt/libcuda.so.1", PROT_EXEC);
	memset(record.rest, 'a', sizeof(record.rest)); /* a name without an end */
	assert_false(map_watch_parse(&record, len, &m));
}

static void a_path_that_is_too_long_is_empty(void **state)
{
	struct map_watch_mapping m;
	char name[2000];
	size_t len;

	memset(name, 'a', sizeof(name));
	name[0] = '/';
	strcpy(name + 1500, "/libnccl.so.2");
	len = make(name, PROT_EXEC);
	assert_true(map_watch_parse(&record, len, &m));
	assert_string_equal(m.library.path, "");
	assert_int_equal(m.library.kind, TARGET_NCCL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_is_told_with_file_and_time),
		cmocka_unit_test(what_is_no_library_is_left_out),
		cmocka_unit_test(a_record_of_any_length_is_survived),
		cmocka_unit_test(a_path_that_is_too_long_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
