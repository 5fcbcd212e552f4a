/* SPDX-License-Identifier: Apache-2.0 */
/* The symbol service asked about this program's own file, by a child that is this program again
 * (see main). */
#include "service_fixture.h"

#include <sys/resource.h>

#define PERFMAP_START 0x7f0000001000

/* ---- answers ---- */

static void test_identity(void **state)
{
	struct symbol_service *s = start();

	open_own(s);
	assert_int_equal(seen.identities, 0); /* never from inside symbol_open() */
	settle(s);
	assert_int_equal(seen.identities, 1);
	assert_int_equal(seen.identity.err, 0);
	assert_int_equal(seen.identity.build_id_len, 20);
	assert_true(seen.identity.has_load_base);
	assert_true(seen.identity.eh_frame_bytes > 100);
	assert_true(seen.identity.text_bytes > 1000);
	symbol_stop(s);
}

static void test_unwind_asked_from_the_sink(void **state)
{
	struct symbol_service *s = start();

	seen.asks_on = s;
	open_own(s);
	settle(s);
	assert_int_equal(seen.unwinds, 1);
	assert_int_equal(seen.unwind.err, 0);
	assert_true(seen.unwind.count > 100);
	assert_true(seen.unwind.rule_count > 1);
	assert_true(seen.first_address < seen.last_address);
	symbol_stop(s);
}

static void test_frames(void **state)
{
	struct symbol_service *s = start();
	uint64_t offset = own_offset((const void *)known_function, NULL);
	uint32_t file = open_own(s);
	const uint64_t offsets[] = {offset + 4, offset, 3};
	const bool is_return[] = {true, false, false};

	assert_int_equal(symbol_ask_frames(s, file, 42, offsets, is_return, 3), 0);
	assert_int_equal(seen.frame_answers, 0);
	settle(s);
	assert_int_equal(seen.frame_answers, 1);
	assert_int_equal(seen.err, 0);
	assert_int_equal(seen.tickets[0], 42);
	assert_int_equal(seen.count, 3);
	assert_string_equal(seen.function, "known_function");
	assert_int_equal(seen.frame_counts[1], 1);
	assert_int_equal(seen.frame_counts[2], 0); /* in the ELF header is no function */
	symbol_stop(s);
}

/* So many that the answer comes in several messages. */
static void test_many_frames(void **state)
{
	struct symbol_service *s = start();
	uint64_t offset = own_offset((const void *)known_function, NULL);
	uint64_t offsets[SYMBOL_OFFSETS_MAX];
	bool is_return[SYMBOL_OFFSETS_MAX] = {false};
	uint32_t file = open_own(s);

	for (size_t i = 0; i < SYMBOL_OFFSETS_MAX; i++)
		offsets[i] = offset;
	assert_int_equal(symbol_ask_frames(s, file, 1, offsets, is_return, SYMBOL_OFFSETS_MAX), 0);
	settle(s);
	assert_int_equal(seen.count, SYMBOL_OFFSETS_MAX);
	for (size_t i = 0; i < SYMBOL_OFFSETS_MAX; i++)
		assert_int_equal(seen.frame_counts[i], 1);
	symbol_stop(s);
}

static void test_places(void **state)
{
	const char *const names[] = {"known_data", "known_zero", "known_nowhere"};
	struct symbol_service *s = start();
	uint32_t file = open_own(s);
	uint64_t begin;

	own_offset(&known_data, &begin);
	assert_int_equal(symbol_ask_places(s, file, 9, names, 3), 0);
	settle(s);
	assert_int_equal(seen.err, 0);
	assert_int_equal(seen.count, 3);
	assert_true(seen.places[0].found);
	assert_int_equal(
		begin + seen.places[0].vaddr - seen.identity.load_base, (uintptr_t)&known_data);
	assert_int_equal(seen.places[0].size, sizeof(known_data));
	assert_true(seen.places[0].has_content);
	assert_memory_equal(seen.places[0].content, &known_data, sizeof(known_data));
	assert_true(seen.places[1].found);
	assert_false(seen.places[1].has_content); /* it has no bytes in the file */
	assert_int_equal(seen.places[1].size, sizeof(known_zero));
	assert_false(seen.places[2].found);
	symbol_stop(s);
}

static void test_a_perfmap(void **state)
{
	static const char text[] = "7f0000001000 40 py::train\n";
	const uint64_t addresses[] = {PERFMAP_START + 0x10, PERFMAP_START + 0x40};
	const bool is_return[] = {false, true};
	struct symbol_service *s = start();
	int fd = memfd_create("perf.map", MFD_CLOEXEC);
	uint32_t file;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(symbol_open_perfmap(s, fd, &file), 0);
	assert_int_equal(symbol_ask_unwind(s, file), -EINVAL);
	assert_int_equal(symbol_ask_frames(s, file, 1, addresses, is_return, 2), 0);
	settle(s);
	assert_int_equal(seen.identities, 0);
	assert_string_equal(seen.function, "py::train");
	assert_int_equal(seen.from_start, 0x10);
	assert_int_equal(seen.frame_counts[1], 1); /* a call at the function's end */
	symbol_stop(s);
}

static void test_what_is_no_elf_file(void **state)
{
	struct symbol_service *s = start();
	int fd = memfd_create("text", MFD_CLOEXEC);
	uint32_t file;

	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(symbol_open(s, fd, -1, &file), 0);
	assert_int_equal(symbol_ask_unwind(s, file), 0);
	ask_known(s, file, 1);
	settle(s);
	assert_int_equal(seen.identity.err, -EBADMSG);
	assert_true(seen.identity.text[0]);
	assert_int_equal(seen.unwind.err, -EBADMSG);
	assert_int_equal(seen.err, -EBADMSG);
	assert_int_equal(health_of(s).deaths, 0);
	symbol_stop(s);
}

/* ---- ceilings and wrong questions ---- */

/* A descriptor that somebody closes behind the service's back cannot be sent: an answer, no wait.
 */
static void test_a_descriptor_that_is_none(void **state)
{
	struct symbol_service *s = start();
	int fd = own_file();
	uint32_t file;

	assert_int_equal(symbol_open(s, -1, -1, &file), -EBADF);
	assert_int_equal(symbol_open_perfmap(s, -1, &file), -EBADF);
	assert_int_equal(symbol_open(s, fd, -1, &file), 0);
	close(fd);
	settle(s);
	assert_int_equal(seen.identities, 1);
	assert_int_equal(seen.identity.err, -EBADF);
	assert_true(seen.identity.text[0]);
	assert_int_equal(health_of(s).deaths, 0);
	symbol_stop(s);
}

static void test_wrong_questions(void **state)
{
	struct symbol_service *s = start();
	uint64_t offsets[SYMBOL_OFFSETS_MAX + 1] = {0};
	bool is_return[SYMBOL_OFFSETS_MAX + 1] = {0};
	char longest[PROTOCOL_NAME_MAX + 1] = {0};
	const char *const names[] = {longest};
	uint32_t file = open_own(s);

	memset(longest, 'x', PROTOCOL_NAME_MAX);
	assert_int_equal(symbol_ask_frames(s, file, 0, offsets, is_return, 0), -EINVAL);
	assert_int_equal(
		symbol_ask_frames(s, file, 0, offsets, is_return, SYMBOL_OFFSETS_MAX + 1), -EINVAL);
	assert_int_equal(symbol_ask_places(s, file, 0, names, 1), -EINVAL);
	longest[PROTOCOL_NAME_MAX - 1] = 0;
	assert_int_equal(symbol_ask_places(s, file, 0, names, 1), 0);
	assert_int_equal(symbol_ask_unwind(s, file + 1), -ENOENT);
	settle(s);
	assert_false(seen.places[0].found);
	symbol_stop(s);
}

static void test_ceilings(void **state)
{
	struct symbol_service *s = start();
	_cleanup_fd_ int spare = own_file();
	uint32_t file = 0, other;
	int asked = 0;

	for (int i = 0; i < 4; i++)
		file = open_own(s);
	assert_int_equal(symbol_open(s, spare, -1, &other), -ENOSPC);
	assert_true(fcntl(spare, F_GETFD) >= 0); /* still the caller's */
	while (symbol_ask_unwind(s, file) == 0)
		asked++;
	assert_int_equal(asked, 32 - 4);
	assert_int_equal(symbol_ask_unwind(s, file), -ENOBUFS);
	symbol_close(s, file);
	settle(s);
	assert_int_equal(seen.identities, 4);
	assert_int_equal(seen.unwinds, asked);
	assert_int_equal(seen.unwind.err, -ECANCELED);
	open_own(s); /* there is room again */
	settle(s);
	assert_int_equal(seen.identities, 5);
	symbol_stop(s);
}

static void test_quick_questions_have_places_of_their_own(void **state)
{
	struct symbol_service *s = start();
	uint32_t file = open_own(s);
	uint64_t end = mono_now().ns + PATIENCE_NS;

	settle(s);
	for (int i = 0; i < 16; i++)
		assert_int_equal(symbol_ask_unwind(s, file), 0);
	ask_known(s, file, 1);
	while (!seen.frame_answers && mono_now().ns < end) {
		symbol_poll(s);
		poll(NULL, 0, 1);
	}
	assert_int_equal(seen.frame_answers, 1);
	assert_true(seen.unwinds < 16);
	settle(s);
	assert_int_equal(seen.unwinds, 16);
	symbol_stop(s);
}

static void test_stop_with_questions(void **state)
{
	struct symbol_service *s = start();
	uint32_t file = open_own(s);

	ask_known(s, file, 1);
	assert_int_equal(symbol_ask_unwind(s, file), 0);
	symbol_poll(s);
	symbol_close(s, file);
	symbol_stop(s);
	assert_int_equal(seen.frame_answers, 0);
}

/* The ceiling of files needs descriptors, which the usual soft limit does not grant. */
static void test_the_limit_of_open_files_is_raised(void **state)
{
	const struct symbol_sink sink = {.arg = NULL};
	struct symbol_service *s;
	struct rlimit before, now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){256, before.rlim_max}), 0);
	assert_int_equal(symbol_start(&sink, &s), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(now.rlim_cur, before.rlim_max);
	symbol_stop(s);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_unwind_asked_from_the_sink),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_many_frames),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_a_perfmap),
		cmocka_unit_test(test_what_is_no_elf_file),
		cmocka_unit_test(test_a_descriptor_that_is_none),
		cmocka_unit_test(test_wrong_questions),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_quick_questions_have_places_of_their_own),
		cmocka_unit_test(test_stop_with_questions),
		cmocka_unit_test(test_the_limit_of_open_files_is_raised),
	};

	if (symbol_child_is_meant(argc, argv))
		return symbol_child_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
