/* SPDX-License-Identifier: Apache-2.0 */
/* test_output.c - a file is there whole or not at all; anything else is written as it comes. */
#include "store_fixture.h"

#include "base/output.h"

static void test_whole_or_not(void **state)
{
	struct scratch *s = *state;
	struct output o = OUTPUT_INIT;
	struct errinfo err = {0};
	struct stat st;
	size_t len;
	char *data;

	scratch_write(s->path, "old", 3);
	assert_int_equal(output_open(&o, s->path, &err), 0);
	assert_int_equal(output_write(&o, "new content", 11, &err), 0);
	data = scratch_bytes(s->path, &len);
	assert_int_equal(len, 3); /* until it is complete */
	free(data);
	output_done(&o);
	assert_int_equal(scratch_files(s->folder, false), 1);
	assert_int_equal(output_open(&o, s->path, &err), 0);
	assert_int_equal(output_write(&o, "new content", 11, &err), 0);
	assert_int_equal(output_commit(&o, &err), 0);
	assert_int_equal(o.bytes, 11);
	output_done(&o);
	data = scratch_bytes(s->path, &len);
	assert_string_equal((data[len] = 0, data), "new content");
	free(data);
	assert_int_equal(scratch_files(s->folder, false), 1);
	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_others(void **state)
{
	struct scratch *s = *state;
	struct output o = OUTPUT_INIT;
	struct errinfo err = {0};
	char path[128], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/pipe", s->folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(output_open(&o, path, &err), 0);
	assert_int_equal(output_write(&o, "hello", 5, &err), 0);
	assert_int_equal(output_commit(&o, &err), 0);
	output_done(&o);
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	close(fd);
	assert_int_equal(output_open(&o, "/dev/full", &err), 0);
	assert_int_equal(output_write(&o, "x", 1, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "cannot write /dev/full"));
	output_done(&o);
	snprintf(path, sizeof(path), "%s/no/where", s->folder);
	assert_int_equal(output_open(&o, path, &err), -ENOENT);
	assert_int_equal(err.exit_code, EXIT_NO_CREATE);
	output_done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole_or_not),
		TEST(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
