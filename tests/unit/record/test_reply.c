/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a process that is not trusted: right ones are taken, wrong ones refused. */
#include "made_table.h"

#include "record/symbol/exchange.h"

#define MUTATIONS 20000

static void put_status(struct buf *b, int err, const char *text)
{
	struct protocol_status s = {.err = err};

	snprintf(s.text, sizeof(s.text), "%s", text);
	buf_append(b, &s, sizeof(s));
}

static void put_frame(struct buf *b, const char *function, const char *file, uint32_t line)
{
	struct protocol_frame f = {
		.from_start = 16,
		.line = line,
		.function_len = function ? (uint16_t)strlen(function) : PROTOCOL_NO_TEXT,
		.file_len = file ? (uint16_t)strlen(file) : PROTOCOL_NO_TEXT,
	};

	buf_append(b, &f, sizeof(f));
	if (function)
		buf_append(b, function, strlen(function) + 1);
	if (file)
		buf_append(b, file, strlen(file) + 1);
}

/* Of two offsets: one with two frames, one unknown. */
static void put_two_offsets(struct buf *b)
{
	put_status(b, 0, "");
	buf_putc(b, 2);
	put_frame(b, "inlined(int)", "a.c", 7);
	put_frame(b, "outer", NULL, 0);
	buf_putc(b, 0);
}

/* A copy that ends where its memory ends, so that a sanitizer sees the first byte too many. */
static struct reply exact(const struct buf *b, size_t size)
{
	struct reply r = {malloc(size ? size : 1), size};

	assert_non_null(r.data);
	memcpy(r.data, b->data, size);
	return r;
}

/* ---- handles ---- */

static int handles_of(const struct buf *b, size_t size, struct symbol_handles *got)
{
	struct reply r = exact(b, size);
	struct errinfo e;
	int err = reply_handles(&r, got, &e);

	if (err == 0 && got->count)
		assert_int_equal(got->vaddr[got->count - 1], 0x7000);
	free(r.data);
	return err;
}

static void test_handles(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct protocol_handles head = {.text_offset = 0x1000, .text_vaddr = 0x2000};
	uint64_t vaddrs[] = {0x5000, 0x5008, 0x7000}, again = 0x7000;
	size_t begin = sizeof(struct protocol_status) + sizeof(head);
	struct symbol_handles got;

	put_status(&b, 0, "");
	buf_append(&b, &head, sizeof(head));
	buf_append(&b, vaddrs, sizeof(vaddrs));
	assert_int_equal(handles_of(&b, b.len, &got), 0);
	assert_int_equal(got.count, 3);
	assert_int_equal(got.text_offset, 0x1000);
	assert_int_equal(got.text_vaddr, 0x2000);
	assert_int_equal(handles_of(&b, begin, &got), 0); /* none */
	assert_int_equal(got.count, 0);
	for (size_t size = 0; size < b.len; size++)
		if (size < begin || (size - begin) % sizeof(*vaddrs))
			assert_int_equal(handles_of(&b, size, &got), -EBADMSG);
	buf_append(&b, &again, sizeof(again)); /* not ascending */
	assert_int_equal(handles_of(&b, b.len, &got), -EBADMSG);
}

/* ---- identity ---- */

static void test_identity(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct protocol_identity sent = {.load_base = 0x400000,
		.has_load_base = 1,
		.build_id_len = 20,
		.eh_frame_bytes = 5,
		.text_bytes = 6};
	struct symbol_identity got;
	struct errinfo e;
	struct reply r;

	memset(sent.build_id, 0xab, sizeof(sent.build_id));
	put_status(&b, 0, "");
	buf_append(&b, &sent, sizeof(sent));
	r = (struct reply){(uint8_t *)b.data, b.len};
	assert_int_equal(reply_identity(&r, &got, &e), 0);
	assert_int_equal(got.err, 0);
	assert_int_equal(got.load_base, 0x400000);
	assert_true(got.has_load_base);
	assert_int_equal(got.build_id_len, 20);
	assert_memory_equal(got.build_id, sent.build_id, 20);
	assert_int_equal(got.eh_frame_bytes, 5);
	assert_int_equal(got.text_bytes, 6);

	for (size_t size = 0; size < b.len; size++) {
		struct reply cut = exact(&b, size);

		assert_int_equal(reply_identity(&cut, &got, &e), -EBADMSG);
		free(cut.data);
	}
	buf_putc(&b, 0);
	r = (struct reply){(uint8_t *)b.data, b.len};
	assert_int_equal(reply_identity(&r, &got, &e), -EBADMSG);
}

static void test_a_build_id_too_long(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct protocol_identity sent = {.build_id_len = IMAGE_BUILD_ID_MAX + 1};
	struct symbol_identity got;
	struct errinfo e;
	struct reply r;

	put_status(&b, 0, "");
	buf_append(&b, &sent, sizeof(sent));
	r = (struct reply){(uint8_t *)b.data, b.len};
	assert_int_equal(reply_identity(&r, &got, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "build id"));
}

static void test_errors_are_passed_on(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct symbol_identity got;
	struct errinfo e;
	struct reply r;

	put_status(&b, -EBADMSG, "it is no ELF file");
	r = (struct reply){(uint8_t *)b.data, b.len};
	assert_int_equal(reply_identity(&r, &got, &e), 0);
	assert_int_equal(got.err, -EBADMSG);
	assert_string_equal(got.text, "it is no ELF file");
	((struct protocol_status *)b.data)->err = 1;
	assert_int_equal(reply_identity(&r, &got, &e), -EBADMSG);
	((struct protocol_status *)b.data)->err = -5000;
	assert_int_equal(reply_identity(&r, &got, &e), -EBADMSG);
	((struct protocol_status *)b.data)->err = -1;
	memset(((struct protocol_status *)b.data)->text, 'x', PROTOCOL_TEXT_MAX);
	assert_int_equal(reply_identity(&r, &got, &e), 0);
	assert_int_equal(strlen(got.text), PROTOCOL_TEXT_MAX - 1);
}

/* ---- unwind ---- */

static void test_a_table(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	_cleanup_fd_ int fd = table_make(TABLE_RIGHT);
	struct reply_table table;
	struct symbol_unwind u;
	struct errinfo e;
	struct reply r;

	put_status(&b, 0, "");
	r = (struct reply){(uint8_t *)b.data, b.len};
	assert_int_equal(reply_unwind(&r, fd, &u, &table, &e), 0);
	assert_int_equal(u.count, TABLE_ROWS);
	assert_int_equal(u.rule_count, TABLE_RULES);
	assert_int_equal(u.address[3], 0x100);
	assert_int_equal(u.rule[2], 1);
	assert_int_equal(u.rules[1].cfa_offset, 16);
	reply_table_done(&table);
	assert_null(table.map);
}

static void test_wrong_tables(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct reply_table table = {0};
	struct symbol_unwind u;
	struct errinfo e;
	struct reply r;

	put_status(&b, 0, "");
	r = (struct reply){(uint8_t *)b.data, b.len};
	for (enum table_fault fault = TABLE_RIGHT + 1; fault < TABLE_FAULTS; fault++) {
		int fd = table_make(fault);

		assert_true(fd >= 0);
		assert_int_equal(reply_unwind(&r, fd, &u, &table, &e), -EBADMSG);
		assert_null(table.map);
		close(fd);
	}
	assert_int_equal(reply_unwind(&r, -1, &u, &table, &e), -EBADMSG);
}

/* A file that cannot be sealed at all, and one that comes with an error. */
static void test_files_that_are_no_tables(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	_cleanup_fd_ int plain = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_fd_ int right = table_make(TABLE_RIGHT);
	struct reply_table table = {0};
	struct symbol_unwind u;
	struct errinfo e;
	struct reply r;

	put_status(&b, 0, "");
	r = (struct reply){(uint8_t *)b.data, b.len};
	assert_int_equal(reply_unwind(&r, plain, &u, &table, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "not sealed"));
	((struct protocol_status *)b.data)->err = -ENOMEM;
	assert_int_equal(reply_unwind(&r, right, &u, &table, &e), -EBADMSG);
	assert_int_equal(reply_unwind(&r, -1, &u, &table, &e), 0);
	assert_int_equal(u.err, -ENOMEM);
	assert_int_equal(u.count, 0);
}

/* ---- frames ---- */

static void test_frames(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct symbol_frames out[3];
	struct errinfo e;
	struct reply r;
	int err = 1;

	put_two_offsets(&b);
	r = (struct reply){(uint8_t *)b.data, b.len};
	assert_int_equal(reply_frames(&r, out, 2, &err, &e), 0);
	assert_int_equal(err, 0);
	assert_int_equal(out[0].count, 2);
	assert_string_equal(out[0].frame[0].function, "inlined(int)");
	assert_string_equal(out[0].frame[0].file, "a.c");
	assert_int_equal(out[0].frame[0].line, 7);
	assert_string_equal(out[0].frame[1].function, "outer");
	assert_null(out[0].frame[1].file);
	assert_int_equal(out[0].frame[1].from_start, 16);
	assert_int_equal(out[1].count, 0);
	/* Fewer or more than were asked for. */
	assert_int_equal(reply_frames(&r, out, 1, &err, &e), -EBADMSG);
	assert_int_equal(reply_frames(&r, out, 3, &err, &e), -EBADMSG);
}

static void test_frames_cut_anywhere(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct symbol_frames out[2];
	struct errinfo e;
	int err;

	put_two_offsets(&b);
	for (size_t size = 0; size < b.len; size++) {
		struct reply cut = exact(&b, size);

		assert_int_equal(reply_frames(&cut, out, 2, &err, &e), -EBADMSG);
		free(cut.data);
	}
}

static void test_frames_with_wrong_numbers(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct symbol_frames out[2];
	struct protocol_frame f;
	struct errinfo e;
	struct reply r;
	int err;

	put_two_offsets(&b);
	r = (struct reply){(uint8_t *)b.data, b.len};
	r.data[sizeof(struct protocol_status)] = NAMES_INLINE_MAX + 1;
	assert_int_equal(reply_frames(&r, out, 2, &err, &e), -EBADMSG);
	r.data[sizeof(struct protocol_status)] = 2;
	assert_int_equal(reply_frames(&r, out, 2, &err, &e), 0);
	memcpy(&f, r.data + sizeof(struct protocol_status) + 1, sizeof(f));
	for (unsigned len = 0; len <= 0xffff; len++) { /* only the right one ends in a NUL here */
		if (len == strlen("inlined(int)"))
			continue;
		f.function_len = (uint16_t)len;
		memcpy(r.data + sizeof(struct protocol_status) + 1, &f, sizeof(f));
		assert_int_equal(reply_frames(&r, out, 2, &err, &e), -EBADMSG);
	}
}

/* Whatever the bytes are: an answer or a refusal, and texts that end. */
static void test_mutated_frames(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	uint32_t seed = 1;
	unsigned taken = 0, refused = 0;

	put_two_offsets(&b);
	for (int i = 0; i < MUTATIONS; i++) {
		struct reply r = exact(&b, b.len);
		struct symbol_frames out[2];
		struct errinfo e;
		int err, got;

		for (int k = 0; k < 1 + i % 3; k++) {
			seed = seed * 1664525 + 1013904223;
			r.data[(seed >> 8) % r.size] = (uint8_t)(seed >> 24);
		}
		got = reply_frames(&r, out, 2, &err, &e);
		assert_true(got == 0 || got == -EBADMSG);
		taken += got == 0;
		refused += got != 0;
		for (unsigned n = 0; got == 0 && n < out[0].count; n++)
			if (out[0].frame[n].function)
				assert_true(strlen(out[0].frame[n].function) <= NAMES_TEXT_MAX);
		free(r.data);
	}
	assert_true(taken > 0 && refused > 0);
}

/* ---- places ---- */

static void test_places(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct protocol_place sent[2] = {
		{.found = 1, .has_content = 1, .vaddr = 0x1000, .size = 8, .content = "abcdefg"}};
	struct symbol_place out[3];
	struct errinfo e;
	struct reply r;
	int err = 1;

	put_status(&b, 0, "");
	buf_append(&b, sent, sizeof(sent));
	r = (struct reply){(uint8_t *)b.data, b.len};
	assert_int_equal(reply_places(&r, out, 2, &err, &e), 0);
	assert_int_equal(err, 0);
	assert_true(out[0].found && out[0].has_content);
	assert_int_equal(out[0].vaddr, 0x1000);
	assert_memory_equal(out[0].content, "abcdefg", 8);
	assert_false(out[1].found);
	assert_int_equal(reply_places(&r, out, 1, &err, &e), -EBADMSG);
	assert_int_equal(reply_places(&r, out, 3, &err, &e), -EBADMSG);
	r.size--;
	assert_int_equal(reply_places(&r, out, 2, &err, &e), -EBADMSG);
	buf_clear(&b);
	put_status(&b, -ENOMEM, "");
	r = (struct reply){(uint8_t *)b.data, b.len};
	memset(out, 0xff, sizeof(out));
	assert_int_equal(reply_places(&r, out, 2, &err, &e), 0);
	assert_int_equal(err, -ENOMEM);
	assert_false(out[0].found || out[1].found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_a_build_id_too_long),
		cmocka_unit_test(test_errors_are_passed_on),
		cmocka_unit_test(test_a_table),
		cmocka_unit_test(test_wrong_tables),
		cmocka_unit_test(test_files_that_are_no_tables),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_frames_cut_anywhere),
		cmocka_unit_test(test_frames_with_wrong_numbers),
		cmocka_unit_test(test_mutated_frames),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
