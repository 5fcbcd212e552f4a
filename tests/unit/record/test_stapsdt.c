/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "record/discover/elfsym.h"
#include "base/macros.h"

#define FOUND_MAX 4

#ifdef __x86_64__
static const unsigned char nop[] = {0x90};
#else
static const unsigned char nop[] = {0x1f, 0x20, 0x03, 0xd5};
#endif

/* ---- in a file ---- */

static int open_fixture(void **state)
{
	return elfsym_open(FIXTURE_LIBRARY, (struct elfsym **)state, NULL);
}

static int close_fixture(void **state)
{
	elfsym_close(*state);
	return 0;
}

static void assert_is_nop(struct elfsym *e, uint64_t offset)
{
	unsigned char code[sizeof(nop)];

	assert_int_equal(elfsym_read(e, offset, code, sizeof(code)), 0);
	assert_memory_equal(code, nop, sizeof(nop));
}

static void probes_lead_to_their_places(void **state)
{
	struct stapsdt_probe p[FOUND_MAX];
	uint16_t counter;

	assert_int_equal(stapsdt_find(*state, "fixture", "plain", p, FOUND_MAX), 1);
	assert_is_nop(*state, p[0].offset);
	assert_int_equal(p[0].semaphore, 0);
	assert_int_equal(stapsdt_find(*state, "fixture", "counted", p, FOUND_MAX), 1);
	assert_is_nop(*state, p[0].offset);
	assert_int_equal(elfsym_read(*state, p[0].semaphore, &counter, sizeof(counter)), 0);
	assert_int_equal(counter, 0x5a17);
}

static void a_probe_may_have_several_places(void **state)
{
	struct stapsdt_probe p[FOUND_MAX];

	assert_int_equal(stapsdt_find(*state, "fixture", "twice", p, FOUND_MAX), 2);
	assert_true(p[0].offset != p[1].offset);
	assert_int_equal(stapsdt_find(*state, "fixture", "twice", p, 1), 1);
}

static void others_are_not_found(void **state)
{
	struct stapsdt_probe p[FOUND_MAX];

	assert_int_equal(stapsdt_find(*state, "fixture", "plai", p, FOUND_MAX), 0);
	assert_int_equal(stapsdt_find(*state, "other", "plain", p, FOUND_MAX), 0);
}

/* ---- as bytes ---- */

struct __attribute__((packed)) note {
	Elf64_Nhdr h;
	char owner[8];
	uint64_t address, base, semaphore;
	char texts[16];
};

static struct note good(void)
{
	struct note n = {.h = {8, 24 + 11, 3}, .address = 1, .base = 2, .semaphore = 3};

	memcpy(n.owner, "stapsdt", 8);
	memcpy(n.texts, "python\0gc\0\0", 12);
	return n;
}

static int next(const void *data, size_t len, struct stapsdt_note *ret)
{
	size_t at = 0;

	return stapsdt_next(data, len, &at, ret);
}

static void a_note_is_read(void **state)
{
	struct note n[2] = {good(), good()};
	struct stapsdt_note got;
	size_t at = 0, len = sizeof(n[0]) - 4; /* as its size says, padded */
	char data[2 * sizeof(n[0])];

	memcpy(data, &n[0], len);
	memcpy(data + len, &n[1], len);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(stapsdt_next(data, 2 * len, &at, &got), 1);
		assert_int_equal(got.address, 1);
		assert_int_equal(got.base, 2);
		assert_int_equal(got.semaphore, 3);
		assert_string_equal(got.provider, "python");
		assert_string_equal(got.name, "gc");
	}
	assert_int_equal(at, 2 * len);
	assert_int_equal(stapsdt_next(data, 2 * len, &at, &got), 0);
}

static void notes_of_others_are_passed_over(void **state)
{
	struct note n[2] = {good(), good()};
	struct stapsdt_note got;
	size_t len = sizeof(n[0]) - 4;
	char data[2 * sizeof(n[0])];

	n[0].owner[0] = 'x';
	n[1].address = 9;
	memcpy(data, &n[0], len);
	memcpy(data + len, &n[1], len);
	assert_int_equal(next(data, 2 * len, &got), 1);
	assert_int_equal(got.address, 9);
	n[0] = good();
	n[0].h.n_type = 1;
	memcpy(data, &n[0], len);
	assert_int_equal(next(data, 2 * len, &got), 1);
	assert_int_equal(got.address, 9);
}

static void damaged_notes_are_refused(void **state)
{
	struct stapsdt_note got;
	struct note n = good();

	assert_int_equal(next(&n, sizeof(n), &got), 1); /* the control */
	n.h.n_descsz = 1000;
	assert_int_equal(next(&n, sizeof(n), &got), -EBADMSG);
	n.h.n_descsz = UINT32_MAX;
	assert_int_equal(next(&n, sizeof(n), &got), -EBADMSG);
	n = good();
	n.h.n_namesz = UINT32_MAX;
	assert_int_equal(next(&n, sizeof(n), &got), -EBADMSG);
	n = good();
	n.h.n_descsz = 20; /* less than the addresses */
	assert_int_equal(next(&n, sizeof(n), &got), -EBADMSG);
	n = good();
	n.h.n_descsz = 24 + 9; /* the name has no end */
	assert_int_equal(next(&n, sizeof(n), &got), -EBADMSG);
	assert_int_equal(next(&n, 11, &got), 0); /* less than a header */
	assert_int_equal(next(&n, 0, &got), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(probes_lead_to_their_places),
		TEST(a_probe_may_have_several_places),
		TEST(others_are_not_found),
		cmocka_unit_test(a_note_is_read),
		cmocka_unit_test(notes_of_others_are_passed_over),
		cmocka_unit_test(damaged_notes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
