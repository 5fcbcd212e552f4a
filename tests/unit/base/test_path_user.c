/* SPDX-License-Identifier: Apache-2.0 */
/* Root writes where another user may change names. Each attack is tried in that user's folder and,
 * as its control, with the same names in a folder of root's, where they are followed. */
#include "store_fixture.h"

#include <signal.h>

#include "base/socket_path.h"
#include "store/merge/nodedb_merge.h"
#include "store/write/writer.h"
#include "base/path_user.h"
#include "base/output.h"
#include "duck/duck_worker.h"
#include "net/pki/tls.h"

#define SOMEBODY 65534
#define SWAPS    300

struct world {
	struct scratch *scratch;
	char secret[80]; /* root's alone */
	char home[80];   /* of SOMEBODY */
	char own[80];    /* root's, like home in all else */
};

static struct world make_world(void **state)
{
	struct world w = {.scratch = *state};

	if (geteuid() != 0) {
		print_message("# skip: only root can be led astray\n");
		skip();
	}
	snprintf(w.secret, sizeof(w.secret), "%s/secret", w.scratch->folder);
	snprintf(w.home, sizeof(w.home), "%s/home", w.scratch->folder);
	snprintf(w.own, sizeof(w.own), "%s/own", w.scratch->folder);
	assert_int_equal(chmod(w.scratch->folder, 0755), 0);
	assert_int_equal(mkdir(w.secret, 0700), 0);
	assert_int_equal(mkdir(w.home, 0755), 0);
	assert_int_equal(mkdir(w.own, 0755), 0);
	assert_int_equal(chown(w.home, SOMEBODY, SOMEBODY), 0);
	unsetenv("SUDO_UID");
	return w;
}

static const char *in(const char *folder, const char *name)
{
	static char text[8][256];
	static int next;
	char *out = text[next++ % 8];

	snprintf(out, sizeof(text[0]), "%s/%s", folder, name);
	return out;
}

static int64_t size_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? -errno : (int64_t)st.st_size;
}

static uid_t owner_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_uid;
}

static void link_at(const char *target, const char *path)
{
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(lchown(path, SOMEBODY, SOMEBODY), 0);
}

static int open_and_close(const char *path)
{
	struct nodedb *db = NULL;
	int r = nodedb_open(path, "n1", &db, NULL);

	return r < 0 ? r : nodedb_close(db, NULL);
}

static void test_whose_rights(void **state)
{
	struct world w = make_world(state);
	struct path_user before;

	assert_int_equal(path_user_enter(in(w.own, "x"), &before, NULL), 0);
	assert_int_equal(path_user_now(), 0);
	path_user_leave(&before);
	assert_int_equal(path_user_enter(in(w.home, "new/x"), &before, NULL), 0);
	assert_int_equal(path_user_now(), SOMEBODY);
	assert_int_equal(open(in(w.secret, "x"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), -1);
	assert_int_equal(errno, EACCES);
	path_user_leave(&before);
	assert_int_equal(path_user_now(), 0);
	/* by a link of root's into the folder, and by one from there to root's */
	link_at(w.home, in(w.own, "link"));
	assert_int_equal(path_user_enter(in(w.own, "link/x"), &before, NULL), 0);
	assert_int_equal(path_user_now(), SOMEBODY);
	path_user_leave(&before);
	link_at(w.secret, in(w.home, "out"));
	assert_int_equal(symlink(in(w.home, "out"), in(w.own, "far")), 0);
	assert_int_equal(path_user_enter(in(w.own, "far/x"), &before, NULL), 0);
	assert_int_equal(path_user_now(), SOMEBODY);
	path_user_leave(&before);
	assert_int_equal(path_user_enter(in(w.secret, "x"), &before, NULL), 0);
	assert_int_equal(path_user_now(), 0);
	path_user_leave(&before);
}

/* Root's folder, to which a group may write: what a member made has the member's rights. */
static void test_folders_that_a_group_writes_to(void **state)
{
	struct world w = make_world(state);
	struct path_user before;

	assert_int_equal(chmod(w.own, 0775), 0);
	link_at(in(w.secret, "x"), in(w.own, "x"));
	assert_int_equal(
		path_user_enter(in(w.own, "x"), &before, NULL), 0); /* a control: of root's group */
	assert_int_equal(path_user_now(), 0);
	path_user_leave(&before);
	assert_int_equal(chown(w.own, 0, SOMEBODY), 0);
	assert_int_equal(path_user_enter(in(w.own, "x"), &before, NULL), 0);
	assert_int_equal(path_user_now(), SOMEBODY);
	path_user_leave(&before);
	assert_int_equal(path_user_enter(in(w.own, "new"), &before, NULL), 0);
	assert_int_equal(path_user_now(), 0);
	path_user_leave(&before);
	assert_int_equal(chmod(w.own, 0777), 0); /* anybody may replace what one made */
	assert_int_equal(path_user_enter(in(w.own, "x"), &before, NULL), -EPERM);
}

static void test_folders_that_everybody_writes_to(void **state)
{
	struct world w = make_world(state);
	struct path_user before;
	struct errinfo err = {0};

	assert_int_equal(chmod(w.own, 0777), 0);
	assert_int_equal(path_user_enter(in(w.own, "x"), &before, &err), -EPERM);
	assert_non_null(strstr(err.text, "any user can replace x"));
	assert_int_equal(chmod(w.own, 01777), 0);
	assert_int_equal(path_user_enter(in(w.own, "x"), &before, &err), 0);
	assert_int_equal(path_user_now(), 0);
	path_user_leave(&before);
	scratch_write(in(w.own, "x"), "", 0); /* somebody was first */
	assert_int_equal(chown(in(w.own, "x"), SOMEBODY, SOMEBODY), 0);
	assert_int_equal(path_user_enter(in(w.own, "x"), &before, &err), 0);
	assert_int_equal(path_user_now(), SOMEBODY);
	path_user_leave(&before);
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "12345", 1);
	assert_int_equal(path_user_enter(in(w.own, "y"), &before, &err), 0);
	assert_int_equal(path_user_now(), 12345);
	path_user_leave(&before);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void test_a_recording_is_its_owners_alone(void **state)
{
	static const char *const names[] = {"x.db", "x.db-wal", "x.db-shm"};
	struct world w = make_world(state);
	struct nodedb *db = NULL;

	for (int user = 0; user < 2; user++) {
		const char *folder = user ? w.home : w.own;

		assert_int_equal(nodedb_open(in(folder, "x.db"), "n1", &db, NULL), 0);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			struct stat st;

			assert_int_equal(stat(in(folder, names[i]), &st), 0);
			assert_int_equal(st.st_mode & 0777, 0600);
			assert_int_equal(st.st_uid, user ? SOMEBODY : 0);
		}
		assert_int_equal(nodedb_close(db, NULL), 0);
	}
}

/* The database, or its log, is a link to a file of root's. */
static void test_a_linked_database(void **state)
{
	static const char *const names[] = {"x.db", "x.db-wal", "x.db-shm", "x.db.lock"};
	struct world w = make_world(state);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		scratch_write(in(w.secret, "victim"), "", 0);
		link_at(in(w.secret, "victim"), in(w.home, names[i]));
		(void)open_and_close(in(w.home, "x.db"));
		assert_int_equal(size_of(in(w.secret, "victim")), 0);
		assert_int_equal(scratch_files(w.secret, false), 1); /* nor a log beside it */
		scratch_files(w.home, true);
	}
	/* the control: where only root can lay links, they are followed */
	assert_int_equal(symlink(in(w.secret, "victim"), in(w.own, "x.db")), 0);
	assert_int_equal(open_and_close(in(w.own, "x.db")), 0);
	assert_true(size_of(in(w.secret, "victim")) > 0);
}

/* What root alone may write is not written in somebody's folder, and the sentence says why. */
static void test_a_file_of_roots_in_somebodys_folder(void **state)
{
	struct world w = make_world(state);
	struct errinfo err = {0};
	struct nodedb *db = NULL;

	assert_int_equal(open_and_close(in(w.own, "x.db")), 0);
	assert_int_equal(rename(in(w.own, "x.db"), in(w.home, "x.db")), 0);
	assert_int_equal(nodedb_open(in(w.home, "x.db"), "n1", &db, &err), -EACCES);
	assert_non_null(strstr(err.text, "`chown 65534`"));
	assert_int_equal(chown(in(w.home, "x.db"), SOMEBODY, SOMEBODY), 0);
	assert_int_equal(open_and_close(in(w.home, "x.db")), 0);
}

/* Changes x.db between an empty file and a link as fast as it can. */
static pid_t start_swapping(const struct world *w)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (setgid(SOMEBODY) < 0 || setuid(SOMEBODY) < 0)
		_exit(1);
	for (;;) {
		close(open(in(w->home, "a"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		rename(in(w->home, "a"), in(w->home, "x.db"));
		(void)!symlink(in(w->secret, "victim"), in(w->home, "b"));
		rename(in(w->home, "b"), in(w->home, "x.db"));
	}
}

static void test_a_link_swapped_in_meanwhile(void **state)
{
	struct world w = make_world(state);
	pid_t pid;

	scratch_write(in(w.secret, "victim"), "root's\n", 7);
	pid = start_swapping(&w);
	for (int i = 0; i < SWAPS; i++)
		(void)open_and_close(in(w.home, "x.db"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(size_of(in(w.secret, "victim")), 7);
	assert_int_equal(scratch_files(w.secret, false), 1);
}

/* The thread that writes has the same rights from start to end. */
static void test_the_writer_makes_files_of_the_folders_owner(void **state)
{
	struct world w = make_world(state);
	struct store_writer_config config = {
		.retention = {.rollover_bytes = 1 << 20, .rollover_keep = 2}};
	struct session session = {.started.ns = 1};
	struct event e = {.start.ns = 9, .pid = 7, .tid = 7, .source = 1, .op = 1, .weight = 1};
	struct store_writer *writer = NULL;
	struct nodedb *db = NULL;
	DIR *d;

	assert_int_equal(nodedb_open(in(w.home, "x.db"), "n1", &db, NULL), 0);
	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	assert_int_equal(store_writer_start(db, session.id, &config, &writer, NULL), 0);
	for (int i = 0; i < 20000; i++)
		while (!store_writer_push(writer, &e))
			;
	assert_int_equal(store_writer_stop(writer, NULL, NULL, (wall_time){9}, NULL), 0);
	assert_int_equal(path_user_now(), 0);
	assert_true(scratch_files(w.home, false) > 1); /* it rolled over */
	d = opendir(w.home);
	for (struct dirent *f; (f = readdir(d));)
		assert_true(f->d_name[0] == '.' || owner_of(in(w.home, f->d_name)) == SOMEBODY);
	closedir(d);
}

static int keep_certificate(const char *folder)
{
	struct tls_server_settings settings = {.state_dir = folder};
	struct tls *tls = NULL;
	int r = tls_server_new(&settings, &tls, NULL);

	if (r == 0)
		tls_free(tls);
	return r;
}

/* A linked folder for the certificate does not replace a key of root's. */
static void test_a_linked_certificate_folder(void **state)
{
	struct world w = make_world(state);

	scratch_write(in(w.secret, "key.pem"), "root's\n", 7);
	link_at(w.secret, in(w.home, "tls"));
	assert_true(keep_certificate(in(w.home, "tls")) < 0);
	assert_int_equal(size_of(in(w.secret, "key.pem")), 7);
	assert_int_equal(scratch_files(w.secret, false), 1);
	/* the controls: a real folder serves, and a link of root's is followed */
	assert_int_equal(unlink(in(w.home, "tls")), 0);
	assert_int_equal(keep_certificate(in(w.home, "tls")), 0);
	assert_int_equal(owner_of(in(w.home, "tls/key.pem")), SOMEBODY);
	assert_int_equal(keep_certificate(in(w.home, "tls")), 0); /* and is found again */
	assert_int_equal(symlink(w.secret, in(w.own, "tls")), 0);
	assert_int_equal(keep_certificate(in(w.own, "tls")), 0);
	assert_true(size_of(in(w.secret, "key.pem")) > 7);
}

static int write_output(const char *path)
{
	struct output o;
	int r = output_open(&o, path, NULL);

	if (r == 0)
		r = output_write(&o, "x", 1, NULL);
	if (r == 0)
		r = output_commit(&o, NULL);
	output_done(&o);
	return r;
}

/* Where everybody may lay names, a link is not followed, whoever laid it after the path was judged;
 * elsewhere root's own are. */
static void test_links_in_a_shared_folder(void **state)
{
	struct world w = make_world(state);
	struct path_user before;

	scratch_write(in(w.secret, "victim"), "root's\n", 7);
	assert_int_equal(symlink(in(w.secret, "victim"), in(w.own, "x")), 0);
	assert_int_equal(chmod(w.own, 01777), 0);
	assert_int_equal(write_output(in(w.own, "x")), -ELOOP);
	assert_int_equal(size_of(in(w.secret, "victim")), 7);
	assert_int_equal(chmod(w.own, 0755), 0);
	assert_int_equal(write_output(in(w.own, "x")), 0);
	assert_int_equal(size_of(in(w.secret, "victim")), 1);
	/* a name that was not there when the path was judged, and then was somebody's */
	assert_int_equal(chmod(w.own, 01777), 0);
	assert_int_equal(path_user_enter(in(w.own, "tls"), &before, NULL), 0);
	assert_int_equal(path_user_check(in(w.own, "tls"), NULL), 0);
	link_at(w.secret, in(w.own, "tls"));
	assert_int_equal(path_user_check(in(w.own, "tls"), NULL), -EPERM);
	path_user_leave(&before);
}

static int merge_to(const char *source, const char *path)
{
	const char *sources[] = {source};
	struct merge_options request = {.sources = sources, .source_count = 1, .output = path};
	struct merge_result result = {0};
	int r = nodedb_merge(&request, &result, NULL);

	merge_result_done(&result);
	return r;
}

static void test_outputs_through_a_linked_folder(void **state)
{
	struct world w = make_world(state);

	link_at(w.secret, in(w.home, "out"));
	assert_int_equal(symlink(w.secret, in(w.own, "out")), 0);
	assert_int_equal(open_and_close(w.scratch->path), 0);
	assert_int_equal(write_output(in(w.home, "out/x")), -EACCES);
	assert_int_equal(merge_to(w.scratch->path, in(w.home, "out/x.db")), -EACCES);
	assert_int_equal(scratch_files(w.secret, false), 0);
	assert_int_equal(write_output(in(w.own, "out/x")), 0);
	assert_int_equal(merge_to(w.scratch->path, in(w.own, "out/x.db")), 0);
	assert_int_equal(scratch_files(w.secret, false), 2);
	/* the source is read with root's rights, whosever the output's folder is */
	assert_int_equal(merge_to(in(w.secret, "x.db"), in(w.home, "x.db")), 0);
	assert_int_equal(owner_of(in(w.home, "x.db")), SOMEBODY);
	assert_int_equal(write_output(in(w.home, "x")), 0);
	assert_int_equal(owner_of(in(w.home, "x")), SOMEBODY);
}

static void test_the_annotation_socket_is_not_laid_where_others_can_replace_it(void **state)
{
	struct world w = make_world(state);
	int fd = -1;

	assert_int_equal(
		socket_path_bind(in(w.home, "run/a.sock"), SOCKET_NO_GROUP, &fd, NULL), -EPERM);
	assert_int_equal(scratch_files(w.home, false), 0);
	assert_int_equal(socket_path_bind(in(w.own, "run/a.sock"), SOCKET_NO_GROUP, &fd, NULL), 0);
	close(fd);
}

/* The files of rows that a stranger's SQL may read are opened before the doors are shut. */
static void test_a_link_among_the_files_of_rows(void **state)
{
	static struct duck_files files = {.count = 1};
	struct world w = make_world(state);

	assert_int_equal(write_output(in(w.secret, "rows")), 0);
	link_at(in(w.secret, "rows"), in(w.home, "rows"));
	link_at(in(w.secret, "rows"), in(w.own, "rows"));
	files.names[0] = in(w.home, "rows");
	assert_int_equal(duck_files_open(&files, NULL), -EACCES);
	files.names[0] = in(w.own, "rows");
	assert_int_equal(duck_files_open(&files, NULL), 0);
	close(files.fds[0]);
}

/* A thread that is somebody for its whole life reads root's files as root, and is that one again. */
static void test_from_one_user_to_root_and_back(void **state)
{
	struct path_user somebody, root;
	struct world w = make_world(state);

	assert_int_equal(path_user_enter(in(w.home, "x"), &somebody, NULL), 0);
	assert_int_equal(open(in(w.secret, "x"), O_RDONLY), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(path_user_enter(in(w.secret, "x"), &root, NULL), 0);
	assert_int_equal(path_user_now(), 0);
	assert_int_equal(open(in(w.secret, "x"), O_RDONLY), -1);
	assert_int_equal(errno, ENOENT);
	path_user_leave(&root);
	assert_int_equal(path_user_now(), SOMEBODY);
	path_user_leave(&somebody);
	assert_int_equal(path_user_now(), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whose_rights),
		TEST(test_folders_that_everybody_writes_to),
		TEST(test_a_recording_is_its_owners_alone),
		TEST(test_a_linked_database),
		TEST(test_a_file_of_roots_in_somebodys_folder),
		TEST(test_a_link_swapped_in_meanwhile),
		TEST(test_the_writer_makes_files_of_the_folders_owner),
		TEST(test_a_linked_certificate_folder),
		TEST(test_folders_that_a_group_writes_to),
		TEST(test_links_in_a_shared_folder),
		TEST(test_outputs_through_a_linked_folder),
		TEST(test_the_annotation_socket_is_not_laid_where_others_can_replace_it),
		TEST(test_a_link_among_the_files_of_rows),
		TEST(test_from_one_user_to_root_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
