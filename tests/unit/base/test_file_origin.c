/* SPDX-License-Identifier: Apache-2.0 */
/* Which mounts are a user's program, from mountinfo; and files of this machine, none of which is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

static const char mounts[] =
	"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
	"36 22 0:33 / /home/ann/a\\040-\\040fuse rw,nosuid shared:7 - tmpfs fuse rw,user_id=7,size=1k\n"
	"101 22 0:52 / /home/ann/m rw,nosuid,nodev - fuse.sshfs ann@host: rw,user_id=1000,group_id=1000,allow_other\n"
	"102 22 0:53 / /cvmfs/atlas ro,nosuid,nodev - fuse cvmfs2 ro,user_id=0,group_id=0,allow_other\n"
	"103 22 0:54 / /home/ann/n rw - fuse ,user_id=0, rw,user_id=10,group_id=0\n"
	"104 22 0:55 / /var/lib/x rw - overlay overlay rw,lowerdir=/l\n"
	"105 22 0:56 / /home/ann/cut rw - fuse x rw,user_id=0";

static void test_judging(void **state)
{
	assert_int_equal(file_origin_judge(mounts, 22, true), FILE_ORIGIN_TRUSTED);
	assert_int_equal(file_origin_judge(mounts, 36, true), FILE_ORIGIN_TRUSTED);
	assert_int_equal(file_origin_judge(mounts, 101, true), FILE_ORIGIN_USERS);
	assert_int_equal(file_origin_judge(mounts, 102, true), FILE_ORIGIN_TRUSTED);
	assert_int_equal(file_origin_judge(mounts, 102, false), FILE_ORIGIN_USERS);
	assert_int_equal(file_origin_judge(mounts, 103, true), FILE_ORIGIN_USERS);
	assert_int_equal(file_origin_judge(mounts, 104, false), FILE_ORIGIN_TRUSTED);
	assert_int_equal(file_origin_judge(mounts, 105, true), FILE_ORIGIN_USERS);
	assert_int_equal(file_origin_judge(mounts, 10, true), FILE_ORIGIN_UNKNOWN);
	assert_int_equal(file_origin_judge("", 10, true), FILE_ORIGIN_UNKNOWN);
	assert_int_equal(file_origin_judge("\n\n7", 7, true), FILE_ORIGIN_UNKNOWN);
}

static void test_files_of_this_machine(void **state)
{
	static const char *const paths[] = {
		"/proc/self/exe", "/proc/self/stat", "/dev/null", "/tmp"};
	struct statx st;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int fd = open(paths[i], O_PATH);

		assert_true(fd >= 0);
		assert_int_equal(file_origin(fd, NULL, &st), 0);
		assert_true(st.stx_ino != 0);
		close(fd);
	}
	assert_int_equal(file_origin(-1, NULL, &st), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judging),
		cmocka_unit_test(test_files_of_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
