/* SPDX-License-Identifier: Apache-2.0 */
/* test_name_book.c - names of kernels and labels of NVTX ranges, found again for the events they are
 * of. */
#include "store_fixture.h"

#include "store/read/nodedb_reader.h"

#define T0 INT64_C(1700000000000000000)

static void put_kernel(struct nodedb *db, uint32_t pid, uint64_t function, int64_t since,
	enum kernel_origin origin, const char *name)
{
	struct kernel_row k = {.pid = pid,
		.function = function,
		.since.ns = since,
		.launches = 1,
		.origin = origin};

	snprintf(k.name, sizeof(k.name), "%s", name);
	assert_int_equal(nodedb_put_kernel(db, &k, NULL), 0);
}

static void put_range(struct nodedb *db, uint64_t hash, const char *text)
{
	struct text_row t = {.hash = hash};

	snprintf(t.text, sizeof(t.text), "%s", text);
	assert_int_equal(nodedb_put(db, &t, NULL), 0);
}

static int load(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	return name_book_load(&l->reader, arg, reterr);
}

static struct name_book *open_book(const char *path)
{
	struct name_book *b = NULL;
	struct errinfo e = {0};

	if (nodedb_snapshot_read(path, load, &b, &e) < 0)
		fail_msg("%s", e.text);
	assert_non_null(b);
	return b;
}

static const char *kernel_at(
	const struct name_book *b, uint32_t pid, uint64_t function, int64_t at, const char *node)
{
	struct event e = {.start.ns = at,
		.pid = pid,
		.source = SOURCE_CUDA,
		.op = CUDA_LAUNCH,
		.arg0 = function};

	return name_book_find(b, &e, node, node ? strlen(node) : 0);
}

static void test_kernels(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	_cleanup_(name_book_freep) struct name_book *b = NULL;

	put_kernel(db, 7, 0x1000, 0, KERNEL_REGISTERED, "gemm");
	put_kernel(db, 8, 0x1000, 0, KERNEL_REGISTERED, "relu"); /* another process */
	put_kernel(db, 7, 0x2000, 0, KERNEL_UNKNOWN, "libx.so+0x10");
	scratch_close(db);
	b = open_book(s->path);
	assert_string_equal(kernel_at(b, 7, 0x1000, T0, NULL), "gemm");
	assert_string_equal(kernel_at(b, 8, 0x1000, T0, "n1"), "relu");
	assert_string_equal(kernel_at(b, 7, 0x2000, T0, NULL), "unknown kernel at libx.so+0x10");
	assert_null(kernel_at(b, 9, 0x1000, T0, NULL));
	assert_null(kernel_at(b, 7, 0x1001, T0, NULL));
	assert_null(kernel_at(b, 7, 0x1000, T0, "elsewhere"));
	assert_null(kernel_at(NULL, 7, 0x1000, T0, NULL));
}

/* A handle that was given back is another kernel from then on. */
static void test_a_handle_that_was_used_again(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	_cleanup_(name_book_freep) struct name_book *b = NULL;

	put_kernel(db, 7, 0x1000, T0 + 100, KERNEL_HANDLE, "second");
	put_kernel(db, 7, 0x1000, T0 + 50, KERNEL_HANDLE, "first");
	scratch_close(db);
	b = open_book(s->path);
	assert_string_equal(kernel_at(b, 7, 0x1000, T0 + 60, NULL), "first");
	assert_string_equal(kernel_at(b, 7, 0x1000, T0 + 99, NULL), "first");
	assert_string_equal(kernel_at(b, 7, 0x1000, T0 + 100, NULL), "second");
	assert_string_equal(kernel_at(b, 7, 0x1000, T0, NULL), "first"); /* told a moment late */
}

static void test_labels_of_ranges(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct event e = {.source = SOURCE_NVTX, .op = 1, .arg1 = 11, .pid = 7, .start.ns = T0};
	_cleanup_(name_book_freep) struct name_book *b = NULL;

	put_range(db, 11, "forward \"a\"\n");
	put_range(db, 12, "");
	scratch_close(db);
	b = open_book(s->path);
	assert_string_equal(name_book_find(b, &e, "n1", 2), "forward \"a\"\n"); /* whose ever */
	e.pid = 99;
	assert_string_equal(name_book_find(b, &e, NULL, 0), "forward \"a\"\n");
	e.arg1 = 12; /* no text is no name */
	assert_null(name_book_find(b, &e, NULL, 0));
	e.arg1 = 13;
	assert_null(name_book_find(b, &e, NULL, 0));
	/* The same number in another kind of event is not a range. */
	e = (struct event){.source = SOURCE_CUDA, .op = CUDA_LAUNCH, .arg0 = 11, .arg1 = 11};
	assert_null(name_book_find(b, &e, NULL, 0));
}

static void test_kinds(void **state)
{
	assert_string_equal(
		name_book_kind(&(struct event){.source = SOURCE_CUDA, .op = CUDA_LAUNCH}),
		"kernel");
	assert_string_equal(
		name_book_kind(&(struct event){.source = SOURCE_NVTX, .op = 1}), "range");
	assert_null(name_book_kind(&(struct event){.source = SOURCE_CUDA, .op = CUDA_STREAM_SYNC}));
}

/* A file of before has neither table. */
static void test_a_file_without(void **state)
{
	struct scratch *s = *state;
	_cleanup_(name_book_freep) struct name_book *b = NULL;

	scratch_close(scratch_open(s->path));
	scratch_sql(s->path, "DROP TABLE kernels");
	scratch_sql(s->path, "DROP TABLE names");
	b = open_book(s->path);
	assert_null(kernel_at(b, 7, 0x1000, T0, NULL));
}

/* Rows that somebody else wrote: no number, no text, a text beyond all measure. */
static void test_rows_that_make_no_sense(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	_cleanup_(name_book_freep) struct name_book *b = NULL;

	put_kernel(db, 7, 0x1000, 0, KERNEL_REGISTERED, "gemm");
	put_kernel(db, 7, 0x2000, 0, KERNEL_REGISTERED, "blob");
	put_kernel(db, 7, 0x3000, 0, KERNEL_REGISTERED, "long");
	scratch_close(db);
	scratch_sql(s->path, "UPDATE kernels SET name = x'00ff' WHERE function = 8192");
	scratch_sql(
		s->path, "UPDATE kernels SET name = printf('%.3000c', 'k') WHERE function = 12288");
	b = open_book(s->path);
	assert_string_equal(kernel_at(b, 7, 0x1000, T0, NULL), "gemm");
	assert_null(kernel_at(b, 7, 0x2000, T0, NULL));
	assert_int_equal(strlen(kernel_at(b, 7, 0x3000, T0, NULL)), KERNEL_NAME_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_kernels),
		TEST(test_a_handle_that_was_used_again),
		TEST(test_labels_of_ranges),
		TEST(test_kinds),
		TEST(test_a_file_without),
		TEST(test_rows_that_make_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
