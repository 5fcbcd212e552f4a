/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_kernels.c - kernels of a recording, as they are read for explaining. */
#include "store_fixture.h"

#include "sql/sql_table.h"
#include "store/read/nodedb_snapshot.h"

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

static int list(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	return nodedb_snapshot_list(
		l, NODEDB_KERNELS, &(struct scope){.source = 0}, 0, arg, reterr);
}

/* In the list names and origins are texts, also those of a file that has something else there. */
static void test_names_that_are_none(void **state)
{
	struct scratch *s = *state;
	struct sql_table t = {0};

	scratch_close(scratch_open(s->path));
	scratch_sql(s->path, "DROP TABLE kernels;"
			     "CREATE TABLE kernels (pid INTEGER, launches INTEGER, name, origin);"
			     "INSERT INTO kernels VALUES (7, 3, NULL, 5), (7, 2, 17, NULL),"
			     " (8, 1, 'gemm', 'registered');");
	assert_int_equal(nodedb_snapshot_read(s->path, list, &t, NULL), 0);
	assert_int_equal(t.row_count, 3);
	for (size_t i = 0; i < t.row_count; i++)
		for (int k = 0; k < 2; k++)
			assert_int_equal(sql_table_cell(&t, i, k)->type, SQL_TEXT);
	assert_string_equal(sql_table_bytes(&t, sql_table_cell(&t, 0, 0)), "");
	assert_string_equal(sql_table_bytes(&t, sql_table_cell(&t, 0, 1)), "5");
	assert_string_equal(sql_table_bytes(&t, sql_table_cell(&t, 1, 0)), "17");
	assert_string_equal(sql_table_bytes(&t, sql_table_cell(&t, 2, 1)), "registered");
	sql_table_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_they_are_found),
		TEST(test_those_of_one_process),
		TEST(test_only_if_asked_for),
		TEST(test_names_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
