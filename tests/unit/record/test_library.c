/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/sysmacros.h>

#include "record/discover/discover.h"
#include "base/buf.h"
#include "tree.h"

static int setup(void **state)
{
	*state = malloc(TREE_MAX);
	tree_init(*state);
	return 0;
}

static int teardown(void **state)
{
	tree_done(*state);
	free(*state);
	return 0;
}

static struct target_library found[DISCOVER_LIBRARIES_MAX];
static size_t dropped;

static int libraries(const char *root)
{
	dropped = 999;
	return discover_libraries(root, 12, found, ARRAY_SIZE(found), &dropped);
}

static void kinds_by_name(void **state)
{
	static const struct {
		const char *name;
		int kind; /* -1: none */
	} rows[] = {
		{"libcudart.so", TARGET_CUDART},
		{"libcudart.so.12", TARGET_CUDART},
		{"libcudart.so.12.4.127", TARGET_CUDART},
		{"libcudart-9335f6a2.so.12", TARGET_CUDART},
		{"libcuda.so.1", TARGET_CUDA},
		{"libcuda.so.535.104.05", TARGET_CUDA},
		{"libnccl.so.2", TARGET_NCCL},
		{"libtorch_cuda.so", TARGET_TORCH_CUDA},
		{"libtorch_cpu.so", TARGET_TORCH_CPU},
		{"xla_cuda_plugin.so", TARGET_XLA_CUDA},
		{"libjax_common.so", TARGET_JAX},
		{"libtorch_cpu.so.1.13.0", TARGET_TORCH_CPU},
		{"python3.11", TARGET_PYTHON},
		{"libpython3.12.so.1.0", TARGET_PYTHON},
		{"python3-config", -1},
		{"libtorch_cpu_x.so", -1},
		{"libcudart", -1},
		{"libcudart.so.x", -1},
		{"libcudartx.so", -1},
		{"libcudart_static.a", -1},
		{"xlibcudart.so", -1},
		{"libcudadebugger.so.1", -1},
		{"libnccl-net.so", -1},
		{"libtorch_cuda_linalg.so", -1},
		{"", -1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum target_library_kind kind;
		int r = discover_library_kind(rows[i].name, strlen(rows[i].name), &kind);

		assert_int_equal(r, rows[i].kind < 0 ? -ENOENT : 0);
		if (r == 0)
			assert_int_equal(kind, rows[i].kind);
	}
}

static void executable_mappings_count(void **state)
{
	tree_write(*state, "/proc/12/maps",
		"55d0c0000000-55d0c0001000 r-xp 00000000 08:01 77 /usr/bin/train\n"
		"7f0000000000-7f0000010000 r--p 00000000 08:01 123 /opt/a b/libcudart.so.12\n"
		"7f0000010000-7f00000a0000 r-xp 00010000 08:01 123 /opt/a b/libcudart.so.12\n"
		"7f00000a0000-7f00000b0000 r-xp 00010000 08:01 123 /opt/a b/libcudart.so.12\n"
		"7f1000000000-7f1000010000 r--p 00000000 08:01 200 /usr/lib/libnccl.so.2\n"
		"7f2000000000-7f2000010000 r-xp 00000000 fd:1a 18446744073709551615    "
		"/x/libcuda.so.1 (deleted)\n"
		"7f3000000000-7f3000010000 r-xp 00000000 00:00 0 \n"
		"7ffd00000000-7ffd00010000 r-xp 00000000 00:00 0 [vdso]\n"
		"garbage /libcudart.so.12\n"
		"7f4000000000-7f4000010000 r-xp 00000000 00:00 0 /libcudart.so.11\n");
	assert_int_equal(libraries(*state), 2);
	assert_int_equal(dropped, 0);
	assert_int_equal(found[0].kind, TARGET_CUDART);
	assert_string_equal(found[0].path, "/opt/a b/libcudart.so.12");
	assert_int_equal(found[0].map_start, 0x7f0000010000);
	assert_int_equal(found[0].map_end, 0x7f00000a0000);
	assert_int_equal(found[0].dev, makedev(8, 1));
	assert_int_equal(found[0].inode, 123);
	assert_false(found[0].deleted);
	assert_int_equal(found[1].kind, TARGET_CUDA);
	assert_string_equal(found[1].path, "/x/libcuda.so.1");
	assert_int_equal(found[1].dev, makedev(0xfd, 0x1a));
	assert_int_equal(found[1].inode, UINT64_MAX);
	assert_true(found[1].deleted);
}

static void an_interpreter_alone_is_no_cuda(void **state)
{
	tree_write(*state, "/proc/12/maps",
		"55d0c0000000-55d0c0001000 r-xp 00000000 08:01 77 /usr/bin/python3.11\n"
		"7f0000010000-7f00000a0000 r-xp 00010000 08:01 123 /x/libtorch_cpu.so\n");
	assert_int_equal(libraries(*state), 2);
	assert_int_equal(found[0].kind, TARGET_PYTHON);
	assert_int_equal(found[1].kind, TARGET_TORCH_CPU);
	assert_false(discover_uses_cuda(found, 2));
	found[1].kind = TARGET_CUDA;
	assert_true(discover_uses_cuda(found, 2));
}

static void hostile_lines_are_survived(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	/* longer than any buffer, then one whose path does not fit, then newlines in names */
	buf_puts(&b, "7f0000000000-7f0000010000 r-xp 00000000 08:01 1 /");
	for (int i = 0; i < 300000; i++)
		buf_putc(&b, 'a');
	buf_puts(&b, "/libcudart.so.12\n7f0000000000-7f0000010000 r-xp 00000000 08:01 2 /");
	for (int i = 0; i < 2000; i++)
		buf_putc(&b, 'b');
	buf_puts(&b, "/libcudart.so.12\n"
		     "7f0000000000-7f0000010000 r-xp 00000000 08:01 3 /n\\012l/libcuda.so.1\n"
		     "7f0000000000-7f0000010000 r-xp 00000000 08:01 4 /libnccl.so.2 (deleted) "
		     "(deleted)\n"
		     "7f0000000000-7f0000010000 r-xp 00000000 08:01 5 /libnccl.so.2");
	tree_write_len(*state, "/proc/12/maps", b.data, b.len);
	assert_int_equal(libraries(*state), 2);
	assert_int_equal(found[0].inode, 2);
	assert_string_equal(found[0].path, "");
	assert_int_equal(found[1].inode, 3);
	assert_string_equal(found[1].path, "/n\\012l/libcuda.so.1");
}

static void too_many_are_counted(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	for (unsigned i = 0; i < DISCOVER_LIBRARIES_MAX + 3; i++)
		buf_printf(&b,
			"7f0000000000-7f0000010000 r-xp 00000000 08:01 %u /%u/libcudart.so\n",
			i + 1, i);
	tree_write_len(*state, "/proc/12/maps", b.data, b.len);
	assert_int_equal(libraries(*state), DISCOVER_LIBRARIES_MAX);
	assert_int_equal(dropped, 3);
	assert_int_equal(discover_libraries(*state, 13, found, 1, &dropped), -ESRCH);
}

/* Writes a file below the tree and describes it as mapped under @name. */
static struct target_library mapped(const char *root, const char *file, const char *name)
{
	struct target_library l = {.kind = TARGET_CUDART, .map_start = 0x7f00, .map_end = 0x7f10};
	char path[4096];
	struct stat st;

	tree_write(root, file, "the mapped one");
	snprintf(path, sizeof(path), "%s%s", root, file);
	assert_int_equal(stat(path, &st), 0);
	l.dev = st.st_dev;
	l.inode = st.st_ino;
	snprintf(l.path, sizeof(l.path), "%s", name);
	return l;
}

static void opens(const char *root, const struct target_library *l)
{
	int fd = discover_library_open(root, 12, l);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, l->inode);
	close(fd);
}

static void the_mapped_file_is_opened_by_its_name(void **state)
{
	struct target_library l =
		mapped(*state, "/proc/12/root/opt/libcudart.so.12", "/opt/libcudart.so.12");

	opens(*state, &l);
	l = mapped(
		*state, "/proc/12/root/opt/a\nb/libcudart.so.12", "/opt/a\\012b/libcudart.so.12");
	opens(*state, &l);
}

static void map_files_leads_to_it_under_any_name(void **state)
{
	struct target_library l =
		mapped(*state, "/proc/12/map_files/7f00-7f10", "/gone/libcudart.so.12");

	opens(*state, &l);
}

/* The process has exchanged the file for another, or for a link that leaves its root. */
static void another_file_under_the_name_is_refused(void **state)
{
	struct target_library l =
		mapped(*state, "/proc/12/root/opt/libcudart.so.12", "/opt/libcudart.so.12");
	char from[4096], to[4096];

	tree_write(*state, "/foreign.so", "somebody else's");
	tree_write(*state, "/proc/12/map_files/7f00-7f10", "somebody else's");
	snprintf(from, sizeof(from), "%s/proc/12/root/opt/libcudart.so.12", (char *)*state);
	snprintf(to, sizeof(to), "%s/foreign.so", (char *)*state);
	opens(*state, &l);
	assert_int_equal(unlink(from), 0);
	assert_int_equal(symlink(to, from), 0);
	assert_true(discover_library_open(*state, 12, &l) < 0);
	assert_int_equal(unlink(from), 0);
	assert_int_equal(mkfifo(from, 0600), 0); /* would block whoever opens it */
	assert_true(discover_library_open(*state, 12, &l) < 0);
}

/* Where stat(2) and maps disagree, the file is the one that maps would show. */
static void a_file_has_the_identity_that_maps_show(void **state)
{
	struct target_library l =
		mapped(*state, "/proc/12/root/libcudart.so.12", "/libcudart.so.12");
	uint64_t dev, inode;
	int fd = discover_library_open(*state, 12, &l);

	assert_int_equal(discover_file_identity(fd, &dev, &inode), 0);
	assert_int_equal(inode, l.inode);
	close(fd);
	l.dev = dev;
	opens(*state, &l);
	l.dev = dev + 1;
	assert_int_equal(discover_library_open(*state, 12, &l), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_by_name),
		cmocka_unit_test_setup_teardown(executable_mappings_count, setup, teardown),
		cmocka_unit_test_setup_teardown(an_interpreter_alone_is_no_cuda, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile_lines_are_survived, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_mapped_file_is_opened_by_its_name, setup, teardown),
		cmocka_unit_test_setup_teardown(
			map_files_leads_to_it_under_any_name, setup, teardown),
		cmocka_unit_test_setup_teardown(
			another_file_under_the_name_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_file_has_the_identity_that_maps_show, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
