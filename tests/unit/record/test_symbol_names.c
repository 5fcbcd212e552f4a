/* SPDX-License-Identifier: Apache-2.0 */
/* test_symbol_names.c - names.c, and with it lines.c: exact functions, files and
 * lines of a library where they are known (names_fixture.c); then damaged copies of it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "record/symbol/names.h"
#include "symbol_fixture.h"

struct scene {
	int fd, debug_fd;
	struct image *image;
	struct names *names;
};

static struct scene scene_open(const char *path, const char *debug_path)
{
	struct scene s = {.fd = fixture_open(path), .debug_fd = -1};

	if (debug_path)
		s.debug_fd = fixture_open(debug_path);
	assert_int_equal(image_open(s.fd, &s.image, NULL), 0);
	assert_int_equal(names_open(s.image, s.fd, s.debug_fd, &s.names), 0);
	return s;
}

static void scene_close(struct scene *s)
{
	names_close(s->names);
	image_close(s->image);
	close(s->fd);
	if (s->debug_fd >= 0)
		close(s->debug_fd);
}

static uint64_t offset_of(const struct scene *s, const char *symbol)
{
	uint64_t vaddr, size, offset = 0;

	assert_int_equal(names_symbol(s->names, symbol, &vaddr, &size), 0);
	assert_int_equal(image_offset(s->image, vaddr, &offset), 0);
	return offset;
}

struct expected {
	const char *function, *file;
	uint32_t line;
};

static void assert_frames(const struct scene *s, uint64_t offset, bool is_return,
	const struct expected *expected, int count)
{
	struct names_frame out[NAMES_INLINE_MAX];

	assert_int_equal(names_at(s->names, offset, is_return, out), count);
	for (int i = 0; i < count; i++) {
		if (expected[i].function)
			assert_string_equal(out[i].function, expected[i].function);
		else
			assert_null(out[i].function);
		if (expected[i].file)
			assert_string_equal(out[i].file, expected[i].file);
		else
			assert_null(out[i].file);
		assert_int_equal(out[i].line, expected[i].line);
		if (i < count - 1)
			assert_int_equal(out[i].from_start, 0);
	}
}

#define ASSERT_MARK(s, mark, ...)                                                                  \
	do {                                                                                       \
		const struct expected list[] = {__VA_ARGS__};                                      \
		assert_frames((s), offset_of((s), mark), false, list, ARRAY_SIZE(list));           \
	} while (0)

static void assert_all_marks(const struct scene *s)
{
	ASSERT_MARK(s, "mark_outermost", {"outermost", "outer.c", 302});
	ASSERT_MARK(s, "mark_middle", {"middle", "middle.h", 203}, {"outermost", "outer.c", 303});
	ASSERT_MARK(s, "mark_inner", {"inner", "inner.h", 102}, {"middle", "middle.h", 202},
		{"outermost", "outer.c", 303});
	ASSERT_MARK(s, "mark_cxx", {"foo::bar(int)", "outer.c", 309});
	ASSERT_MARK(s, "mark_clone", {"f(int) [clone .cold]", "outer.c", 315});
	ASSERT_MARK(s, "mark_rust", {"t::main", "outer.c", 321});
	ASSERT_MARK(s, "mark_alias", {"__global_alias", "outer.c", 327});
	ASSERT_MARK(s, "mark_called", {"called", "call.c", 402});
	ASSERT_MARK(s, "mark_local", {"local_function", "call.c", 414});
	/* Ten frames: those in the middle are left out. */
	ASSERT_MARK(s, "mark_deepest", {"d0", "deep.h", 500}, {"d1", "deep.h", 501},
		{"d2", "deep.h", 502}, {"d3", "deep.h", 503}, {"d4", "deep.h", 504},
		{"d5", "deep.h", 505}, {"d6", "deep.h", 506}, {"deep_function", "deep.h", 509});
}

static void lines_and_inlined_functions(void **state)
{
	static const char *const files[] = {NAMES_FIXTURE, NAMES_FIXTURE_4};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct scene s = scene_open(files[i], NULL);

		assert_all_marks(&s);
		scene_close(&s);
	}
}

/* The stripped file knows what is exported; its debug file (compressed) knows everything. */
static void separate_debug_file(void **state)
{
	struct scene whole = scene_open(NAMES_FIXTURE, NULL);
	struct scene bare = scene_open(NAMES_STRIPPED, NULL);
	struct scene both = scene_open(NAMES_STRIPPED, NAMES_DEBUG);
	struct names_frame out[NAMES_INLINE_MAX];

	ASSERT_MARK(&bare, "mark_inner", {"outermost", NULL, 0});
	assert_int_equal(names_at(bare.names, offset_of(&whole, "mark_local"), false, out), 0);
	assert_all_marks(&both);
	assert_int_equal(names_count(both.names), names_count(whole.names));
	assert_true(names_count(bare.names) < names_count(both.names));
	scene_close(&whole);
	scene_close(&bare);
	scene_close(&both);
}

/* A debug file that is none, or of another build, leaves what the file itself has. */
static void useless_debug_files(void **state)
{
	static const char *const files[] = {"/dev/null", "/proc/self/status", NAMES_FIXTURE_4};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct scene s = scene_open(NAMES_FIXTURE, files[i]);

		assert_all_marks(&s);
		scene_close(&s);
		s = scene_open(NAMES_STRIPPED, files[i]);
		ASSERT_MARK(&s, "mark_inner", {"outermost", NULL, 0});
		scene_close(&s);
	}
}

static void return_addresses(void **state)
{
	struct scene s = scene_open(NAMES_FIXTURE, NULL);
	uint64_t behind = offset_of(&s, "mark_returning"), start = offset_of(&s, "returning");
	struct names_frame out[NAMES_INLINE_MAX];
	const struct expected call = {"returning", "call.c", 407};
	const struct expected next = {"returning", "call.c", 408};

	assert_frames(&s, behind, true, &call, 1);
	assert_frames(&s, behind, false, &next, 1);
	assert_int_equal(names_at(s.names, behind, true, out), 1);
	assert_int_equal(out[0].from_start, behind - start);
	assert_int_equal(names_at(s.names, behind, false, out), 1);
	assert_int_equal(out[0].from_start, behind - start);
	/* The first byte of a function, returned to: it was called at the end of the one before. */
	assert_int_equal(names_at(s.names, offset_of(&s, "enclosing"), true, out), 0);
	assert_int_equal(names_at(s.names, 0, true, out), 0);
	scene_close(&s);
}

static void places_without_a_name(void **state)
{
	struct scene s = scene_open(NAMES_FIXTURE, NULL);
	struct names_frame out[NAMES_INLINE_MAX];
	uint64_t vaddr = 1, size = 2;

	assert_int_equal(names_at(s.names, offset_of(&s, "mark_gap"), false, out), 0);
	assert_int_equal(names_at(s.names, offset_of(&s, "fixture_number"), false, out), 0);
	assert_int_equal(names_at(s.names, 0, false, out), 0);
	assert_int_equal(names_at(s.names, UINT64_MAX, false, out), 0);
	assert_int_equal(names_at(s.names, UINT64_MAX, true, out), 0);
	assert_int_equal(names_symbol(s.names, "no_such", &vaddr, &size), -ENOENT);
	assert_int_equal(vaddr, 1);
	assert_int_equal(names_symbol(s.names, "fixture_number", &vaddr, &size), 0);
	assert_int_equal(size, sizeof(int));
	scene_close(&s);
}

/* Texts stay until the end: the same question gives the same pointers. */
static void texts_stay(void **state)
{
	struct scene s = scene_open(NAMES_FIXTURE, NULL);
	struct names_frame first[NAMES_INLINE_MAX], again[NAMES_INLINE_MAX];
	uint64_t offset = offset_of(&s, "mark_inner");

	assert_int_equal(names_at(s.names, offset, false, first), 3);
	assert_all_marks(&s);
	assert_int_equal(names_at(s.names, offset, false, again), 3);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(first[i].function, again[i].function);
		assert_ptr_equal(first[i].file, again[i].file);
	}
	scene_close(&s);
}

/* Asks for all of @offsets in the file of @fd; every text must be one. Returns a sum of the
 * answers. */
static uint64_t ask_damaged(int fd, const uint64_t *offsets, size_t count)
{
	_cleanup_(image_closep) struct image *image = NULL;
	_cleanup_(names_closep) struct names *names = NULL;
	uint64_t sum = 0;

	if (image_open(fd, &image, NULL) < 0 || names_open(image, fd, -1, &names) < 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct names_frame out[NAMES_INLINE_MAX];
		int frames = names_at(names, offsets[i], false, out);

		for (int k = 0; k < frames; k++) {
			size_t function = out[k].function ? strlen(out[k].function) : 1000;
			size_t file = out[k].file ? strlen(out[k].file) : 1000;

			if (function == NAMES_TEXT_MAX || file == NAMES_TEXT_MAX)
				abort();
			sum = sum * 31 + function + file * 7 + out[k].line;
		}
		sum = sum * 31 + (uint64_t)frames;
	}
	return sum;
}

enum { CHILD_SAME = 0, CHILD_OTHER = 10 };

/* In a child with little time; it exits with CHILD_SAME if the answers come to @sum, else with
 * CHILD_OTHER. Returns how it ended. */
static int ask_damaged_apart(
	const uint8_t *data, size_t size, const uint64_t *offsets, size_t count, uint64_t sum)
{
	_cleanup_fd_ int fd = memfd_create("damaged", MFD_CLOEXEC);
	int status;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit time = {10, 10}, core = {0, 0};

		setrlimit(RLIMIT_CPU, &time);
		setrlimit(RLIMIT_CORE, &core);
		_exit(ask_damaged(fd, offsets, count) == sum ? CHILD_SAME : CHILD_OTHER);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void damage_section(
	uint8_t *copy, const struct scene *s, const char *section, uint64_t *seed)
{
	struct image_range range;
	size_t size;
	const uint8_t *data = image_data(s->image, &size);

	assert_int_equal(image_section(s->image, section, &range), 0);
	fixture_damage(copy, (size_t)(range.data - data), range.size, seed);
}

/* libdw may fall over such files, which is counted and told, but is not easy. */
static void damaged_dwarf(void **state)
{
	static const char *const sections[] = {
		".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".symtab"};
	static const char *const marks[] = {"mark_inner", "mark_outermost", "mark_cxx",
		"mark_deepest", "mark_called", "returning", "sized", "unsized"};
	struct scene s = scene_open(NAMES_FIXTURE, NULL);
	size_t size;
	const uint8_t *data = image_data(s.image, &size);
	uint8_t *copy = malloc(size);
	uint64_t offsets[ARRAY_SIZE(marks)], seed = 3, sum;
	unsigned same = 0, other = 0, fell = 0;

	assert_non_null(copy);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		offsets[i] = offset_of(&s, marks[i]);
	sum = ask_damaged(s.fd, offsets, ARRAY_SIZE(marks));
	for (unsigned round = 0; round < 300; round++) {
		int status;

		memcpy(copy, data, size);
		if (round > 0)
			damage_section(copy, &s, sections[round % ARRAY_SIZE(sections)], &seed);
		status = ask_damaged_apart(copy, size, offsets, ARRAY_SIZE(marks), sum);
		if (!WIFEXITED(status) ||
			(WEXITSTATUS(status) != CHILD_SAME && WEXITSTATUS(status) != CHILD_OTHER))
			fell++;
		else if (WEXITSTATUS(status) == CHILD_SAME)
			same++;
		else
			other++;
		if (round == 0)
			assert_int_equal(same, 1);
	}
	print_message("# damaged files: %u other answers, %u the same, %u ended the child\n", other,
		same, fell);
	assert_true(other > 50); /* control: the damage is where it is read */
	assert_true(fell < 10);
	free(copy);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_and_inlined_functions),
		cmocka_unit_test(separate_debug_file),
		cmocka_unit_test(useless_debug_files),
		cmocka_unit_test(return_addresses),
		cmocka_unit_test(places_without_a_name),
		cmocka_unit_test(texts_stay),
		cmocka_unit_test(damaged_dwarf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
