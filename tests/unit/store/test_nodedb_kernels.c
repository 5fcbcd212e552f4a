/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_kernels.c - kernels of a recording, as they are read for explaining. */
#include "store_fixture.h"

#define T0 INT64_C(1700000000000000000)

static void put_kernel(struct nodedb *db, uint32_t pid, uint64_t function, int64_t since,
	uint64_t launches, enum kernel_origin origin, const char *name)
{
	struct kernel_row k = {.pid = pid,
		.function = function,
		.since.ns = since,
		.launches = launches,
		.first.ns = T0 + (int64_t)launches,
		.origin = origin};

	snprintf(k.name, sizeof(k.name), "%s", name);
	assert_int_equal(nodedb_put_kernel(db, &k, NULL), 0);
}

static const struct kernel_use *find(
	const struct nodedb_content *c, uint32_t pid, uint64_t function, int64_t ns)
{
	return kernel_use_find(c->kernels, c->kernel_count, pid, function, ns);
}

static void fill(struct nodedb *db)
{
	put_kernel(db, 8, 0x1000, 0, 4, KERNEL_REGISTERED, "relu");
	put_kernel(db, 7, 0xffff000000001000, 0, 3, KERNEL_REGISTERED, "far");
	put_kernel(db, 7, 0x1000, 0, 100, KERNEL_REGISTERED, "gemm");
	put_kernel(db, 7, 0x1000, 0, 20, KERNEL_REGISTERED, "gemm");
	put_kernel(db, 7, 0x2000, T0 + 100, 2, KERNEL_HANDLE, "second");
	put_kernel(db, 7, 0x2000, T0 + 50, 1, KERNEL_HANDLE, "first");
	put_kernel(db, 7, 0x3000, 0, 9, KERNEL_UNKNOWN, "libx.so+0x10");
}

static void test_they_are_found(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	struct nodedb_filter f = {.kernels = true};

	fill(db);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, &f, &c, NULL), 0);
	assert_int_equal(c.kernel_count, 6);
	assert_string_equal(find(&c, 7, 0x1000, T0)->name, "gemm");
	assert_int_equal(find(&c, 7, 0x1000, T0)->launches, 120);
	assert_int_equal(find(&c, 7, 0x1000, T0)->first.ns, T0 + 100); /* as it was told first */
	assert_string_equal(find(&c, 8, 0x1000, T0)->name, "relu");
	assert_string_equal(find(&c, 7, 0xffff000000001000, T0)->name, "far");
	assert_string_equal(find(&c, 7, 0x2000, T0)->name, "first"); /* told a moment late */
	assert_string_equal(find(&c, 7, 0x2000, T0 + 99)->name, "first");
	assert_string_equal(find(&c, 7, 0x2000, T0 + 100)->name, "second");
	assert_null(find(&c, 7, 0x3000, T0)->name);
	assert_null(find(&c, 9, 0x1000, T0));
	assert_null(find(&c, 7, 0x1001, T0));
}

static void test_those_of_one_process(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	struct nodedb_filter f = {
		.kernels = true, .scope = {.pids = (uint32_t[]){8}, .pid_count = 1}};

	fill(db);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, &f, &c, NULL), 0);
	assert_int_equal(c.kernel_count, 1);
	assert_string_equal(c.kernels[0].name, "relu");
}

static void test_only_if_asked_for(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};

	fill(db);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, NULL), 0);
	assert_int_equal(c.kernel_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_they_are_found),
		TEST(test_those_of_one_process),
		TEST(test_only_if_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
