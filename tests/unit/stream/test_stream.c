/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream.c - several consumers at once, one that does not read, who may connect, and a socket
 * that another program has. */
#include "store_fixture.h"

#include <grp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/socket_path.h"
#include "stream/stream.h"

static const struct stream_message message = {.type = STREAM_STRAGGLER_RESOLVED,
	.resolved = {{.node_id = "n", .cluster_id = "c", .rank = -1}}};

static struct stream *open_stream(struct scratch *s, gid_t group, char path[SOCKET_PATH_MAX])
{
	struct stream *stream = NULL;
	struct errinfo e = {0};

	snprintf(path, SOCKET_PATH_MAX, "%s/d/r.sock", s->folder);
	if (stream_open(path, group, &stream, &e) < 0)
		fail_msg("%s", e.text);
	return stream;
}

static int connect_to(const char *path)
{
	int fd = -1;

	assert_int_equal(socket_path_connect(path, SOCK_NONBLOCK, &fd, NULL), 0);
	return fd;
}

/* Complete lines that can be read now; -1 after the end of the connection. */
static int lines_at(int fd)
{
	static char data[1 << 20];
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);
	int lines = 0;

	for (ssize_t i = 0; i < n; i++)
		lines += data[i] == '\n';
	return n == 0 ? -1 : lines;
}

static void test_everybody_gets_everything(void **state)
{
	char path[SOCKET_PATH_MAX];
	struct stream *s = open_stream(*state, SOCKET_NO_GROUP, path);
	int a, b;

	stream_publish(s, &message);
	assert_int_equal(stream_stats(s).dropped[STREAM_DROP_NO_CLIENT], 1);
	a = connect_to(path);
	stream_publish(s, &message);
	b = connect_to(path);
	stream_publish(s, &message);
	assert_int_equal(stream_stats(s).consumers, 2);
	assert_int_equal(lines_at(a), 2); /* the second did not push the first out */
	assert_int_equal(lines_at(b), 1);
	assert_int_equal(send(b, "hello\n", 6, MSG_NOSIGNAL), 6); /* ignored */
	close(a);
	stream_publish(s, &message);
	assert_int_equal(stream_stats(s).consumers, 1);
	assert_int_equal(lines_at(b), 1);
	assert_int_equal(stream_stats(s).messages, 3);
	stream_close(s);
	assert_int_equal(lines_at(b), -1);
	assert_int_equal(access(path, F_OK), -1);
	close(b);
}

static void test_one_that_does_not_read(void **state)
{
	char path[SOCKET_PATH_MAX];
	struct stream *s = open_stream(*state, SOCKET_NO_GROUP, path);
	int slow = connect_to(path), good = connect_to(path);
	int sent = 0, read_lines = 0;

	while (!stream_stats(s).dropped[STREAM_DROP_SLOW_CLIENT] && sent < 100000) {
		stream_publish(s, &message);
		sent++;
		read_lines += lines_at(good);
	}
	assert_true(sent > 50 && sent < 100000);
	assert_int_equal(read_lines, sent);
	assert_int_equal(stream_stats(s).consumers, 1);
	assert_true(lines_at(slow) <= sent);
	while (lines_at(slow) > 0)
		;
	assert_int_equal(lines_at(slow), -1); /* it learns that it has missed something */
	stream_publish(s, &message);
	assert_int_equal(lines_at(good), 1);
	close(slow);
	close(good);
	stream_close(s);
}

static void test_how_many(void **state)
{
	char path[SOCKET_PATH_MAX];
	struct stream *s = open_stream(*state, SOCKET_NO_GROUP, path);
	int fds[STREAM_CONSUMERS_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = connect_to(path);
		stream_poll(s);
	}
	assert_int_equal(stream_stats(s).consumers, STREAM_CONSUMERS_MAX);
	assert_int_equal(stream_stats(s).dropped[STREAM_DROP_TOO_MANY], 1);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	stream_poll(s);
	assert_int_equal(stream_stats(s).consumers, 0);
	stream_close(s);
}

static void test_a_live_socket_stays(void **state)
{
	char path[SOCKET_PATH_MAX];
	struct stream *s = open_stream(*state, SOCKET_NO_GROUP, path), *other = NULL;
	struct errinfo e = {0};
	int fd;

	assert_int_equal(stream_open(path, SOCKET_NO_GROUP, &other, &e), -EBUSY);
	assert_non_null(strstr(e.text, path));
	fd = connect_to(path);
	stream_publish(s, &message);
	assert_int_equal(lines_at(fd), 1);
	close(fd);
	stream_close(s);
}

/* Connects as user 65534 with groups @group and @more; exits with 1 once it got a line, else 2. */
static pid_t child_of_group(const char *path, gid_t group, gid_t more)
{
	pid_t pid = fork();
	char c;
	int fd;

	if (pid)
		return pid;
	if (setgroups(1, &more) < 0 || setgid(group) < 0 || setuid(65534) < 0 ||
		socket_path_connect(path, 0, &fd, NULL) < 0)
		_exit(3);
	_exit(recv(fd, &c, 1, 0) == 1 ? 1 : 2);
}

static int end_of_child(struct stream *s, pid_t pid)
{
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		stream_publish(s, &message);
		usleep(1000);
	}
	return WEXITSTATUS(status);
}

static void test_who_may_connect(void **state)
{
	struct scratch *scratch = *state;
	char path[SOCKET_PATH_MAX];
	struct stream *s;

	if (geteuid() != 0) {
		printf("# skip: only root can be another user\n");
		skip();
	}
	s = open_stream(scratch, 4242, path);
	/* The way is open, so that the credentials alone decide. */
	assert_int_equal(chmod(scratch->folder, 0711), 0);
	*strrchr(path, '/') = 0;
	assert_int_equal(chmod(path, 0711), 0);
	path[strlen(path)] = '/';
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(end_of_child(s, child_of_group(path, 4242, 1)), 1);
	assert_int_equal(end_of_child(s, child_of_group(path, 1, 4242)), 1);
	assert_int_equal(stream_stats(s).dropped[STREAM_DROP_NOT_ALLOWED], 0);
	assert_int_equal(end_of_child(s, child_of_group(path, 1, 2)), 2);
	assert_int_equal(stream_stats(s).dropped[STREAM_DROP_NOT_ALLOWED], 1);
	stream_close(s);
}

/* As user 65534 of group @group: takes every connection it can get, then waits. */
static pid_t child_that_takes_all(const char *path, gid_t group)
{
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	if (setgroups(0, NULL) < 0 || setgid(group) < 0 || setuid(65534) < 0)
		_exit(3);
	for (int i = 0; i < 2 * STREAM_CONSUMERS_MAX; i++)
		if (socket_path_connect(path, 0, &fd, NULL) < 0)
			_exit(3);
	pause();
	_exit(0);
}

static void test_one_user_leaves_room(void **state)
{
	struct scratch *scratch = *state;
	char path[SOCKET_PATH_MAX];
	struct stream *s;
	pid_t pid;

	if (geteuid() != 0) {
		printf("# skip: only root can be another user\n");
		skip();
	}
	s = open_stream(scratch, 4242, path);
	assert_int_equal(chmod(scratch->folder, 0711), 0);
	pid = child_that_takes_all(path, 4242);
	while (stream_stats(s).dropped[STREAM_DROP_TOO_MANY] <
		2 * STREAM_CONSUMERS_MAX - STREAM_CONSUMERS_USER) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		stream_poll(s);
		usleep(1000);
	}
	assert_int_equal(stream_stats(s).consumers, STREAM_CONSUMERS_USER);
	assert_int_equal(
		end_of_child(s, child_of_group(path, 4242, 1)), 2); /* the same user: no more */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(end_of_child(s, child_of_group(path, 4242, 1)), 1); /* control */
	stream_close(s);
}

/* Words of a consumer do not wake the owner; its end does. */
static void test_one_that_talks(void **state)
{
	char path[SOCKET_PATH_MAX], words[4096] = {0};
	struct stream *s = open_stream(*state, SOCKET_NO_GROUP, path);
	struct pollfd p = {.fd = stream_fd(s), .events = POLLIN};
	int fd = connect_to(path);

	stream_poll(s);
	assert_int_equal(stream_stats(s).consumers, 1);
	while (send(fd, words, sizeof(words), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		;
	assert_int_equal(poll(&p, 1, 0), 0);
	for (int i = 0; i < 1000; i++) { /* who reads is not cut off for it */
		stream_publish(s, &message);
		assert_int_equal(lines_at(fd), 1);
	}
	assert_true(send(fd, words, sizeof(words), MSG_NOSIGNAL | MSG_DONTWAIT) > 0);
	close(fd);
	assert_int_equal(poll(&p, 1, 1000), 1);
	stream_poll(s);
	assert_int_equal(stream_stats(s).consumers, 0);
	stream_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_everybody_gets_everything),
		TEST(test_one_that_does_not_read),
		TEST(test_how_many),
		TEST(test_a_live_socket_stays),
		TEST(test_who_may_connect),
		TEST(test_one_user_leaves_room),
		TEST(test_one_that_talks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
