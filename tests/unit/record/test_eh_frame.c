/* SPDX-License-Identifier: Apache-2.0 */
/* test_eh_frame.c - records of every version and augmentation, and records made to hurt. */
#include "elf_fixture.h"

#include "record/symbol/eh_frame.h"

static struct eh_frame frame_of(const struct bytes *b)
{
	return eh_frame_of(
		&(struct image_range){.data = b->data, .size = b->size, .vaddr = FIXTURE_REST});
}

/* A section with one CIE of these bytes behind its id, and one entry of these. */
static int read_one(const void *cie, size_t cie_size, const void *fde, size_t fde_size,
	struct eh_entry *ret, struct bytes *b)
{
	struct eh_frame f;
	uint64_t record;
	size_t at;

	b->size = 0;
	at = record_begin(b, 0);
	put(b, cie, cie_size);
	record_end(b, at);
	at = record_begin(b, (uint32_t)(b->size + 4));
	put(b, fde, fde_size);
	record_end(b, at);
	f = frame_of(b);
	assert_int_equal(eh_frame_next(&f, &record), 1);
	return eh_frame_entry(&f, record, ret);
}
#define READ(cie, fde, ret, b) read_one(cie, sizeof(cie) - 1, fde, sizeof(fde) - 1, ret, b)

static void test_versions(void **state)
{
	_cleanup_bytes_ struct bytes b = {0};
	static const char fde[] = "\x10\x20\x30\0\0\0\0\0\x40\0\0\0\0\0\0\0\x0e\x10\0\0";
	struct eh_entry e;

	/* return register: one byte, then a LEB128 */
	assert_int_equal(READ("\x01\0\x02\x7c\x90\x0c\x07\x08\0", fde, &e, &b), 0);
	assert_int_equal(e.start, 0x302010);
	assert_int_equal(e.size, 0x40);
	assert_int_equal(e.cie.code_align, 2);
	assert_int_equal(e.cie.data_align, -4);
	assert_int_equal(e.cie.return_register, 0x90);
	assert_int_equal(e.cie.encoding, EH_ABSOLUTE);
	assert_false(e.cie.sized || e.cie.is_signal);
	assert_int_equal(cursor_u8(&e.cie.program), 0x0c);
	assert_int_equal(cursor_u8(&e.program), 0x0e);
	assert_int_equal(cursor_left(&e.program), 3);

	assert_int_equal(READ("\x03\0\x02\x7c\x90\x01\x0c\x07\x08", fde, &e, &b), 0);
	assert_int_equal(e.cie.return_register, 0x90);
	assert_int_equal(READ("\x04\0\x08\0\x02\x7c\x90\x01\x0c", fde, &e, &b), 0);
	assert_int_equal(e.cie.return_register, 0x90);
	assert_int_equal(e.cie.code_align, 2);

	assert_int_equal(READ("\x02\0\x02\x7c\x10", fde, &e, &b), -EBADMSG);
	assert_int_equal(READ("\x04\0\x04\0\x02\x7c\x10", fde, &e, &b), -EBADMSG);
	assert_int_equal(READ("\x04\0\x08\x01\x02\x7c\x10", fde, &e, &b), -EBADMSG);
}

static void test_augmentations(void **state)
{
	_cleanup_bytes_ struct bytes b = {0};
	static const char fde[] = "\0\x01\0\0\x40\0\0\0\x02\xff\xff\x0e\x10\0\0\0";
	struct eh_entry e;

	/* personality by a pointer to a pointer, language data, addresses; data that nobody knows
	 */
	assert_int_equal(
		READ("\x01zPLR\0\x01\x78\x10\x08\x9b\1\2\3\4\x1b\x1b\0\x0c\x07\x08", fde, &e, &b),
		0);
	assert_int_equal(e.cie.encoding, EH_PC_RELATIVE | EH_SDATA4);
	assert_true(e.cie.sized);
	assert_int_equal(cursor_u8(&e.cie.program), 0x0c);
	/* relative to where it stands: behind CIE (4 + 28 bytes), length and id */
	assert_int_equal(e.start, FIXTURE_REST + 0x100 + b.data[0] + 4 + 8);
	assert_int_equal(e.size, 0x40);
	assert_int_equal(cursor_u8(&e.program), 0x0e); /* behind two bytes of data */

	assert_int_equal(READ("\x01zRSBG\0\x01\x78\x10\x01\x03", fde, &e, &b), 0);
	assert_true(e.cie.is_signal);
	assert_int_equal(e.start, 0x100);
	assert_int_equal(READ("\x01zR\0\x01\x78\x10\x01\x0c\0",
				 "\0\x01\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\0", &e, &b),
		0);
	assert_int_equal(e.start, 0x100);
	assert_int_equal(READ("\x01zR\0\x01\x78\x10\x01\x11", "\x85\x01\x90\x02\0\0", &e, &b), 0);
	assert_int_equal(e.size, 0x110);

	assert_int_equal(READ("\x01zQ\0\x01\x78\x10\x01\x1b", fde, &e, &b), -EBADMSG);
	assert_int_equal(READ("\x01R\0\x01\x78\x10\x1b", fde, &e, &b), -EBADMSG);
	assert_int_equal(READ("\x01zR\0\x01\x78\x10\0", fde, &e, &b), -EBADMSG); /* no data */
	assert_int_equal(READ("\x01zR\0\x01\x78\x10\x01\x9b", fde, &e, &b), -EBADMSG);
	assert_int_equal(
		READ("\x01zPR\0\x01\x78\x10\x0a\x50\0\0\0\0\0\0\0\0\x1b", fde, &e, &b), -EBADMSG);
}

static void test_bad_entries(void **state)
{
	_cleanup_bytes_ struct bytes b = {0};
	static const char cie[] = "\x01\0\x01\x78\x10";
	struct eh_entry e;

	assert_int_equal(READ(cie, "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", &e, &b), 0);
	assert_int_equal(READ(cie, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", &e, &b), -EBADMSG);
	assert_int_equal(
		READ(cie, "\1\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", &e, &b), -EBADMSG);
	assert_int_equal(READ(cie, "\1\0\0\0\0\0\0\0\1\0\0\0", &e, &b), -EBADMSG);
	assert_int_equal(READ("\x01zR", "\1\0\0\0", &e, &b), -EBADMSG); /* the name has no end */
}

static void test_walking(void **state)
{
	_cleanup_bytes_ struct bytes b = {0};
	struct eh_frame f;
	struct eh_entry e;
	uint64_t record, length;
	size_t cie, at;

	cie = put_cie(&b, EM_X86_64);
	put_fde(&b, cie, FIXTURE_TEXT, 16, NULL, 0);
	put_u32(&b, 0); /* one object's end */
	at = b.size;
	put_u32(&b, UINT32_MAX); /* a long length */
	put_u64(&b, 0);
	put_u32(&b, (uint32_t)(b.size - cie));
	put_u32(&b, FIXTURE_TEXT + 16 - (FIXTURE_REST + (uint32_t)b.size));
	put_u32(&b, 32);
	put_u32(&b, 0);
	length = b.size - at - 12;
	memcpy(b.data + at + 4, &length, sizeof(length));
	put(&b, "\1", 1); /* too short for a record */

	f = frame_of(&b);
	assert_int_equal(eh_frame_next(&f, &record), 1);
	assert_int_equal(eh_frame_entry(&f, record, &e), 0);
	assert_int_equal(e.start, FIXTURE_TEXT);
	assert_int_equal(eh_frame_next(&f, &record), 1);
	assert_int_equal(record, at);
	assert_int_equal(eh_frame_entry(&f, record, &e), 0);
	assert_int_equal(e.start, FIXTURE_TEXT + 16);
	assert_int_equal(e.size, 32);
	assert_int_equal(eh_frame_next(&f, &record), 0);
}

static void test_broken_walks(void **state)
{
	_cleanup_bytes_ struct bytes b = {0};
	struct eh_frame f;
	uint64_t record;
	size_t cie = put_cie(&b, EM_X86_64), good;

	put_fde(&b, cie, FIXTURE_TEXT, 16, NULL, 0);
	good = b.size;
	put_u32(&b, 100); /* leads out of the section */
	put_u32(&b, 0);
	f = frame_of(&b);
	assert_int_equal(eh_frame_next(&f, &record), 1);
	assert_int_equal(eh_frame_next(&f, &record), -EBADMSG);
	assert_int_equal(eh_frame_next(&f, &record), 0);

	b.size = good;
	put_u32(&b, UINT32_MAX);
	put_u64(&b, UINT64_MAX - 4); /* so long that it would wrap */
	f = frame_of(&b);
	assert_int_equal(eh_frame_next(&f, &record), 1);
	assert_int_equal(eh_frame_next(&f, &record), -EBADMSG);
}

static void test_bad_cie_pointers(void **state)
{
	_cleanup_bytes_ struct bytes b = {0};
	struct eh_frame f;
	struct eh_entry e;
	uint64_t record;
	size_t cie = put_cie(&b, EM_X86_64), first, at;

	first = b.size;
	put_fde(&b, cie, FIXTURE_TEXT, 16, NULL, 0);
	put_fde(&b, first, FIXTURE_TEXT, 16, NULL, 0); /* names an entry */
	at = record_begin(&b, 4);                      /* names itself */
	put_zeros(&b, 16);
	record_end(&b, at);
	at = record_begin(&b, 0x7fffffff); /* before the section */
	put_zeros(&b, 16);
	record_end(&b, at);
	f = frame_of(&b);
	assert_int_equal(eh_frame_next(&f, &record), 1);
	assert_int_equal(eh_frame_entry(&f, record, &e), 0);
	for (int k = 0; k < 3; k++) {
		assert_int_equal(eh_frame_next(&f, &record), 1);
		assert_int_equal(eh_frame_entry(&f, record, &e), -EBADMSG);
	}
	assert_int_equal(eh_frame_next(&f, &record), 0);
}

static void test_cie_ceiling(void **state)
{
	static const char fde[] = "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0";
	static const uint8_t head[] = {1, 0, 1, 0x78, 16};
	_cleanup_bytes_ struct bytes b = {0};
	uint8_t cie[EH_FRAME_CIE_MAX] = {0};
	struct eh_entry e;

	memcpy(cie, head, sizeof(head));
	assert_int_equal(read_one(cie, sizeof(cie) - 4, fde, sizeof(fde) - 1, &e, &b), 0);
	assert_int_equal(read_one(cie, sizeof(cie), fde, sizeof(fde) - 1, &e, &b), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_augmentations),
		cmocka_unit_test(test_bad_entries),
		cmocka_unit_test(test_walking),
		cmocka_unit_test(test_broken_walks),
		cmocka_unit_test(test_bad_cie_pointers),
		cmocka_unit_test(test_cie_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
