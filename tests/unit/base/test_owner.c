/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "base/path_user.h"

static void test_default_path(void **state)
{
	struct errinfo err = {0};
	char *path = NULL;

	unsetenv("SUDO_UID");
	setenv("HOME", "/home/someone", 1);
	unsetenv("INGERO_DB");
	assert_int_equal(store_default_path(&path, &err), 0);
	assert_string_equal(path, "/home/someone/.ingero/ingero.db");
	free(path);
	setenv("INGERO_DB", "/data/x.db", 1);
	assert_int_equal(store_default_path(&path, &err), 0);
	assert_string_equal(path, "/data/x.db");
	free(path);
	unsetenv("INGERO_DB");
}

static void test_under_sudo(void **state)
{
	struct errinfo err = {0};
	char *path = NULL;
	uid_t uid = 1;
	gid_t gid = 1;

	setenv("HOME", "/home/someone", 1);
	setenv("SUDO_UID", "0", 1);
	setenv("SUDO_GID", "0", 1);
	assert_int_equal(path_user_invoking(&uid, &gid), geteuid() == 0);
	if (geteuid() == 0) {
		assert_int_equal(store_default_path(&path, &err), 0);
		assert_string_equal(path, "/root/.ingero/ingero.db"); /* that user's, not $HOME */
		free(path);
	}
	for (const char *const *bad = (const char *const[]){"", "-1", "x", "12x", "4294967295",
		     "99999999999999999999", NULL};
		*bad; bad++) {
		setenv("SUDO_UID", *bad, 1);
		assert_false(path_user_invoking(&uid, &gid));
	}
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void test_folder(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	char path[160];
	struct stat st;
	bool made = true;

	assert_int_equal(owner_make_folder(s->path, &made, &err), 0);
	assert_false(made);
	snprintf(path, sizeof(path), "%s/.ingero/ingero.db", s->folder);
	assert_int_equal(owner_make_folder(path, &made, &err), 0);
	assert_true(made);
	snprintf(path, sizeof(path), "%s/.ingero", s->folder);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777 & ~0022, 0755);
	snprintf(path, sizeof(path), "%s/a/b/ingero.db", s->folder);
	assert_int_equal(owner_make_folder(path, &made, &err), -ENOENT);
	assert_non_null(strstr(err.text, "a/b"));
}

/* As root, for a user: what is made is theirs, and their links are not followed. */
static void test_given_away(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	char path[160], name[200];
	struct stat st;

	if (geteuid() != 0) {
		print_message("[  SKIP  ] giving files away needs root\n");
		skip();
	}
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "23456", 1);
	snprintf(path, sizeof(path), "%s/.ingero/ingero.db", s->folder);
	assert_int_equal(nodedb_open(path, "n1", &db, &err), 0);
	for (const char *const *suffix = (const char *const[]){"", "-wal", "-shm", ".lock", NULL};
		*suffix; suffix++) {
		snprintf(name, sizeof(name), "%s%s", path, *suffix);
		assert_int_equal(stat(name, &st), 0);
		assert_int_equal(st.st_uid, 12345);
		assert_int_equal(st.st_gid, 23456);
	}
	snprintf(name, sizeof(name), "%s/.ingero", s->folder);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	scratch_close(db);

	snprintf(name, sizeof(name), "%s/link.db", s->folder);
	snprintf(path, sizeof(path), "%s/elsewhere", s->folder);
	assert_int_equal(symlink(path, name), 0);
	assert_int_equal(nodedb_open(name, "n1", &db, &err), -EEXIST);
	assert_int_equal(access(path, F_OK), -1);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default_path),
		cmocka_unit_test(test_under_sudo),
		TEST(test_folder),
		TEST(test_given_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
