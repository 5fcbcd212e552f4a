/* SPDX-License-Identifier: Apache-2.0 */
/* test_spool.c - records on disk: order, restarts, kill -9, a tail that is cut at any byte, damage, a
 * disk that is full, the ceiling. Every record that was put is delivered, dropped and counted, or
 * waits. */
#include "../unit/store_fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include "deliver/spool.h"

#define CEILING (1u << 20)

static struct spool *open_spool(struct scratch *scratch)
{
	char folder[96];
	struct spool_settings settings = {folder, CEILING};
	struct spool *s = NULL;
	struct errinfo e = {0};

	snprintf(folder, sizeof(folder), "%s/spool", scratch->folder);
	if (spool_open(&settings, &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

/* A record of @len bytes that tells its number. */
static int put(struct spool *s, unsigned number, size_t len)
{
	static char data[1 << 20];

	memset(data, (int)('a' + number % 26), len);
	snprintf(data, sizeof(data), "%08u", number);
	return spool_append(s, number, data, len);
}

/* Takes the next one: its number, or -1. */
static long take(struct spool *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	uint32_t tag;
	size_t len;

	if (!spool_look(s, &tag, &len))
		return -1;
	assert_int_equal(spool_take(s, &b), 0);
	assert_int_equal(b.len, len);
	assert_int_equal(atoi(b.data), tag);
	return tag;
}

static void remove_spool(struct scratch *scratch)
{
	char folder[96];

	snprintf(folder, sizeof(folder), "%s/spool", scratch->folder);
	scratch_files(folder, true);
	rmdir(folder);
}

static void test_order_and_restart(void **state)
{
	struct spool *s = open_spool(*state);

	assert_int_equal(take(s), -1);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(put(s, i, 100), 0);
	for (long i = 0; i < 30; i++)
		assert_int_equal(take(s), i);
	spool_ack(s);
	for (long i = 30; i < 50; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(spool_stats(s).records, 70);
	spool_close(s); /* 20 were taken and not acknowledged: they come again */
	s = open_spool(*state);
	assert_int_equal(spool_stats(s).records, 70);
	assert_int_equal(put(s, 100, 100), 0);
	for (long i = 30; i <= 100; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), -1);
	spool_ack(s);
	assert_int_equal(spool_stats(s).records, 0);
	assert_int_equal(
		spool_stats(s).bytes, 0); /* the file is still there, and nothing in it waits */
	spool_close(s);
	s = open_spool(*state);
	assert_int_equal(take(s), -1);
	assert_int_equal(spool_stats(s).bytes, 0);
	assert_int_equal(put(s, 101, 100), 0);
	assert_int_equal(spool_stats(s).bytes, 112); /* with its head */
	assert_int_equal(take(s), 101);
	spool_ack(s);
	assert_int_equal(spool_stats(s).bytes, 0);
	assert_int_equal(spool_stats(s).damaged_bytes, 0);
	spool_close(s);
	remove_spool(*state);
}

/* What was sent together is sent together after a restart, and nothing else with it. */
static void test_what_was_sent_together(void **state)
{
	struct spool *s = open_spool(*state);

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(put(s, i, 100), 0);
	assert_int_equal(take(s), 0);
	spool_send(s);
	spool_ack(s);
	assert_int_equal(take(s), 1);
	assert_int_equal(spool_bound(s), SPOOL_FREE);
	assert_int_equal(take(s), 2);
	spool_send(s);
	spool_close(s); /* whether it has arrived is not known */
	s = open_spool(*state);
	for (long i = 1; i <= 2; i++) {
		assert_int_equal(spool_bound(s), SPOOL_JOINED);
		assert_int_equal(take(s), i);
	}
	assert_int_equal(spool_bound(s), SPOOL_APART);
	assert_int_equal(spool_bound(s), SPOOL_FREE);
	assert_int_equal(take(s), 3);
	spool_ack(s);
	spool_close(s);
	remove_spool(*state);
}

static void test_the_oldest_go_at_the_ceiling(void **state)
{
	struct spool *s = open_spool(*state);
	struct spool_stats stats;
	long first, n = 0;

	for (unsigned i = 0; i < 2000; i++)
		assert_int_equal(put(s, i, 1000), 0);
	stats = spool_stats(s);
	assert_true(stats.bytes <= CEILING && stats.bytes > CEILING / 2);
	assert_int_equal(stats.records + stats.dropped_records, 2000);
	assert_true(stats.dropped_bytes >= stats.dropped_records * 1000);
	first = take(s);
	assert_int_equal(first, stats.dropped_records);
	for (n = first + 1; n < 2000; n++)
		assert_int_equal(take(s), n);
	spool_ack(s);
	assert_int_equal(spool_stats(s).records, 0);
	assert_int_equal(put(s, 1, CEILING / 4), -E2BIG);
	assert_int_equal(spool_stats(s).too_large, 1);
	spool_close(s);
	remove_spool(*state);
}

/* The oldest segment goes while its records are under way: no count goes wrong. */
static void test_dropped_while_under_way(void **state)
{
	struct spool *s = open_spool(*state);
	struct spool_stats stats;
	long next;

	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(put(s, i, 1000), 0);
	for (long i = 0; i < 10; i++)
		assert_int_equal(take(s), i);
	for (unsigned i = 500; i < 2000; i++)
		assert_int_equal(put(s, i, 1000), 0);
	spool_ack(s);
	stats = spool_stats(s);
	assert_int_equal(10 + stats.dropped_records + stats.records, 2000);
	for (next = take(s); next >= 0 && next < 1999;) {
		long n = take(s);

		assert_int_equal(n, next + 1);
		next = n;
	}
	assert_int_equal(next, 1999);
	spool_ack(s);
	assert_int_equal(spool_stats(s).records, 0);
	spool_close(s);
	remove_spool(*state);
}

static void test_killed(void **state)
{
	struct spool *s;
	int told[2], status;
	unsigned acknowledged = 0, number;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		s = open_spool(*state);
		for (unsigned i = 0;; i++)
			if (put(s, i, 100 + i % 50) == 0)
				(void)!write(told[1], &i, sizeof(i));
	}
	close(told[1]);
	while (acknowledged < 3000 && read(told[0], &number, sizeof(number)) == sizeof(number))
		acknowledged = number + 1;
	kill(pid, SIGKILL);
	while (read(told[0], &number, sizeof(number)) == sizeof(number))
		acknowledged = number + 1;
	close(told[0]);
	waitpid(pid, &status, 0);
	s = open_spool(*state);
	assert_true(spool_stats(s).records + spool_stats(s).dropped_records >= 1);
	{
		long first = take(s), next = first;

		assert_true(first >= 0);
		for (long n; (n = take(s)) >= 0; next = n)
			assert_int_equal(n, next + 1);
		assert_true(next >= (long)acknowledged - 1); /* nothing acknowledged is missing */
	}
	spool_close(s);
	remove_spool(*state);
}

static void segment_path(struct scratch *scratch, char out[128])
{
	snprintf(out, 128, "%s/spool/0000000000000001.seg", scratch->folder);
}

static void test_a_torn_tail_is_cut(void **state)
{
	struct spool *s;
	char path[128];
	struct stat st;

	segment_path(*state, path);
	for (off_t cut = 1; cut < 100 + 12; cut += 7) {
		s = open_spool(*state);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(put(s, i, 100), 0);
		spool_close(s);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(truncate(path, st.st_size - cut), 0);
		s = open_spool(*state);
		assert_int_equal(spool_stats(s).records, 2);
		assert_int_equal(spool_stats(s).damaged_bytes, 112 - cut);
		assert_int_equal(put(s, 7, 100), 0); /* goes on behind it */
		assert_int_equal(take(s), 0);
		assert_int_equal(take(s), 1);
		assert_int_equal(take(s), 7);
		assert_int_equal(take(s), -1);
		spool_close(s);
		remove_spool(*state);
	}
}

static void flip(const char *path, off_t at)
{
	int fd = open(path, O_RDWR);
	char c;

	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
	close(fd);
}

static void test_damage(void **state)
{
	char path[128];
	struct spool *s;

	segment_path(*state, path);
	s = open_spool(*state);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(put(s, i, 100), 0);
	assert_int_equal(take(s), 0);
	flip(path, 112 * 2 + 50); /* while it is open */
	assert_int_equal(take(s), 1);
	assert_int_equal(spool_stats(s).records, 5);
	{
		_cleanup_buf_ struct buf b = BUF_INIT(1000);

		assert_int_equal(spool_take(s, &b), -ENOENT);
	}
	assert_int_equal(spool_stats(s).records, 2); /* under way */
	assert_int_equal(spool_stats(s).damaged_bytes, 3 * 112);
	assert_int_equal(put(s, 5, 100), 0);
	assert_int_equal(take(s), 5);
	spool_ack(s);
	assert_int_equal(spool_stats(s).records, 0);
	spool_close(s);
	remove_spool(*state);
}

static void test_a_bad_position_repeats(void **state)
{
	char path[128];
	struct spool *s = open_spool(*state);

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(put(s, i, 100), 0);
	assert_int_equal(take(s), 0);
	spool_ack(s);
	spool_close(s);
	snprintf(path, sizeof(path), "%s/spool/position", ((struct scratch *)*state)->folder);
	flip(path, 3);
	s = open_spool(*state);
	assert_int_equal(take(s), 0);
	assert_int_equal(spool_stats(s).records, 5);
	spool_close(s);
	remove_spool(*state);
}

static void test_a_full_disk(void **state)
{
	struct rlimit before, small = {.rlim_cur = 5000};
	struct spool *s = open_spool(*state);
	unsigned taken = 0;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (unsigned i = 0; i < 20; i++)
		taken += put(s, taken, 700) == 0; /* the eighth is half written */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(taken, 7);
	assert_int_equal(spool_stats(s).write_errors, 13);
	assert_int_equal(put(s, 7, 700), 0);
	for (long i = 0; i < 8; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), -1);
	spool_close(s);
	s = open_spool(*state);
	assert_int_equal(spool_stats(s).records, 8);
	assert_int_equal(spool_stats(s).damaged_bytes, 0);
	spool_close(s);
	remove_spool(*state);
}

static void test_whose_folder(void **state)
{
	struct scratch *scratch = *state;
	struct spool *s = open_spool(scratch), *other = NULL;
	char folder[96];
	struct spool_settings settings = {folder, CEILING};
	struct errinfo e = {0};

	snprintf(folder, sizeof(folder), "%s/spool", scratch->folder);
	assert_int_equal(spool_open(&settings, &other, &e), -EBUSY);
	assert_non_null(strstr(e.text, "another program"));
	spool_close(s);
	assert_int_equal(chmod(folder, 0770), 0);
	assert_int_equal(spool_open(&settings, &other, &e), -EPERM);
	assert_int_equal(chmod(folder, 0700), 0);
	settings.bytes_max = 1000;
	assert_int_equal(spool_open(&settings, &other, &e), -EINVAL);
	assert_null(other);
	remove_spool(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order_and_restart),
		TEST(test_what_was_sent_together),
		TEST(test_the_oldest_go_at_the_ceiling),
		TEST(test_dropped_while_under_way),
		TEST(test_killed),
		TEST(test_a_torn_tail_is_cut),
		TEST(test_damage),
		TEST(test_a_bad_position_repeats),
		TEST(test_a_full_disk),
		TEST(test_whose_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
