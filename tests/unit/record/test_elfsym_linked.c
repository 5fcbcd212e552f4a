/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* This program is linked with two folders for its libraries (meson.build). */
#include <stdbool.h>
#include <string.h>

#include "record/discover/elfsym.h"
#include "base/buf.h"
#include "tree.h"

static bool has_name(const struct buf *names, const char *want)
{
	for (size_t i = 0; i < names->len; i += strlen(names->data + i) + 1)
		if (strncmp(names->data + i, want, strlen(want)) == 0)
			return true;
	return false;
}

static void folders_and_names_are_read(void **state)
{
	_cleanup_buf_ struct buf folders = BUF_INIT(4096), names = BUF_INIT(4096);
	_cleanup_(elfsym_closep) struct elfsym *e = NULL;

	assert_int_equal(elfsym_open("/proc/self/exe", &e, NULL), 0);
	assert_int_equal(elfsym_linked(e, &folders, &names), 0);
	assert_non_null(strstr(buf_str(&folders), "$ORIGIN/beside:/odd/place"));
	assert_true(has_name(&names, "libc.so.6"));
	assert_true(has_name(&names, "libcmocka.so"));
	assert_false(has_name(&names, "libcudart.so"));
}

/* Cut anywhere, it is an error or less is found, never a crash. */
static void damaged_files(void **state)
{
	_cleanup_buf_ struct buf whole = BUF_INIT(64 << 20);
	char root[TREE_MAX], path[TREE_MAX + 8];
	size_t tried = 0;
	FILE *f = fopen("/proc/self/exe", "re");
	char piece[65536];

	tree_init(root);
	for (size_t n; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
		buf_append(&whole, piece, n);
	fclose(f);
	snprintf(path, sizeof(path), "%s/x", root);
	for (size_t at = 64; at < 4096; at += 61) {
		_cleanup_buf_ struct buf folders = BUF_INIT(4096), names = BUF_INIT(4096);
		_cleanup_(elfsym_closep) struct elfsym *e = NULL;
		char kept = whole.data[at];

		whole.data[at] = (char)(kept ^ 0x55);
		tree_write_len(root, "/x", whole.data, MIN(whole.len, (size_t)1 << 20));
		whole.data[at] = kept;
		if (elfsym_open(path, &e, NULL) == 0)
			(void)elfsym_linked(e, &folders, &names);
		tried++;
	}
	assert_true(tried > 60);
	tree_done(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_and_names_are_read),
		cmocka_unit_test(damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
