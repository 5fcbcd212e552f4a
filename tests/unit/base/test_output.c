/* SPDX-License-Identifier: Apache-2.0 */
/* test_output.c - a file is there whole or not at all; anything else is written as it comes. */
#include "store_fixture.h"

#include "base/file.h"
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
	/* whoever is killed now leaves nothing behind; other file systems have no files without a name */
	assert_int_equal(scratch_files(s->folder, false), o.is_nameless ? 1 : 2);
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

/* What is there is looked at: a recording stays, whatever is to be written. */
static void test_recordings_stay(void **state)
{
	static const char text[] = "SQLite format 3\0and its pages",
			  other[] = "SQLite format 2\0, and so on";
	struct scratch *s = *state;
	struct output o = OUTPUT_INIT;
	struct errinfo err = {0};

	scratch_write(s->path, text, sizeof(text));
	assert_true(file_is_recording(s->path));
	assert_int_equal(output_open(&o, s->path, &err), -EEXIST);
	assert_non_null(strstr(err.text, "is a recording"));
	output_done(&o);
	assert_int_equal(file_write_atomic(s->path, "x", 1, 0600), -EEXIST);
	scratch_write(s->path, other, sizeof(other)); /* control */
	assert_false(file_is_recording(s->path));
	assert_int_equal(file_write_atomic(s->path, text, 8, 0600), 0);
	assert_false(file_is_recording(s->path)); /* too short for one */
	assert_int_equal(output_open(&o, s->path, &err), 0);
	assert_int_equal(output_commit(&o, &err), 0);
	output_done(&o);
}

/* What SQLite and the tracer keep beside a recording, there or not: in its place anything else destroys the recording. */
static void test_what_belongs_to_recordings_stays(void **state)
{
	static const struct {
		const char *suffix;
		bool stays;
	} names[] = {{"-wal", true}, {"-shm", true}, {"-journal", true}, {".lock", true},
		{".json", false}, {"-wal.json", false}};
	static const char text[] = "SQLite format 3\0and its pages";
	struct scratch *s = *state;
	struct output o = OUTPUT_INIT;
	struct errinfo err = {0};
	char path[256];

	for (int there = 0; there < 2; there++) {
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			bool stays = names[i].stays;

			snprintf(path, sizeof(path), "%s%s", s->path, names[i].suffix);
			if (there)
				scratch_write(path, "x", 1);
			scratch_write(s->path, text, sizeof(text));
			assert_int_equal(file_is_beside_recording(path), stays);
			assert_int_equal(output_open(&o, path, &err), stays ? -EEXIST : 0);
			output_done(&o);
			scratch_write(s->path, text + 1,
				sizeof(text) - 1); /* control: beside no recording */
			assert_int_equal(output_open(&o, path, &err), 0);
			output_done(&o);
		}
	}
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
		TEST(test_recordings_stay),
		TEST(test_what_belongs_to_recordings_stays),
		TEST(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
