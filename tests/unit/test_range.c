/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <time.h>

#include "agent/store/write/lock.h"
#include "cli/range.h"
#include "published_fixture.h"

#define S(n) ((int64_t)(n) * (int64_t)NS_PER_S)

static void make(struct scratch *s)
{
	setenv("TZ", "UTC0", 1);
	tzset();
	scratch_sql(s->path, PUBLISHED_8
		"INSERT INTO events(timestamp, pid, tid, source, op, duration) VALUES"
		" (1774360000000000000, 1, 1, 1, 3, 0), (1774361000000000000, 1, 1, 1, 3, 0)");
}

static struct nodedb_filter resolved(struct scratch *s, struct time_request asked)
{
	struct nodedb_filter f = {0};
	struct errinfo err = {0};
	pid_t note = 7;

	if (range_resolve(s->path, &asked, &f, &note, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(note, 0);
	return f;
}

static void test_times_are_the_recordings(void **state)
{
	struct scratch *s = *state;
	struct nodedb_filter f;

	make(s);
	f = resolved(s, (struct time_request){0});
	assert_true(f.scope.from_ns == S(1774360000) && f.scope.to_ns == 0);
	f = resolved(s, (struct time_request){.since_ns = 60 * NS_PER_S});
	assert_true(f.scope.from_ns == S(1774360940) && f.scope.to_ns == 0);
	f = resolved(s, (struct time_request){.from = "13:50", .to = "2026-03-24 14:00"});
	assert_true(f.scope.from_ns == S(1774360200) && f.scope.to_ns == S(1774360800));
	f = resolved(s, (struct time_request){.from = "1774360500", .since_ns = 1});
	assert_int_equal(f.scope.from_ns, S(1774360500));
	f = resolved(s, (struct time_request){.since_ns = UINT64_MAX / 4});
	assert_int_equal(f.scope.from_ns, S(1774360000)); /* no sooner than it began */
}

static void test_contradictions(void **state)
{
	static const struct time_request bad[] = {{.all = true, .since_ns = 1},
		{.all = true, .to = "13:50"}, {.from = "14:00", .to = "13:50"},
		{.from = "x\x1b[2J"}};
	struct scratch *s = *state;

	make(s);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct nodedb_filter f = {0};
		struct errinfo err = {0};
		pid_t note;

		assert_int_equal(range_resolve(s->path, &bad[i], &f, &note, &err), -EINVAL);
		assert_true(err.text[0] && !strchr(err.text, '\x1b'));
	}
}

static void test_while_it_is_written(void **state)
{
	struct store_lock lock = STORE_LOCK_INIT;
	struct scratch *s = *state;
	struct time_request none = {0}, all = {.all = true};
	struct nodedb_filter f = {0}, last = {.last = 5}, whole = {0};
	struct errinfo err = {0};
	pid_t note;

	make(s);
	assert_int_equal(store_lock_take(s->path, &lock, &err), 0);
	assert_int_equal(range_resolve(s->path, &none, &f, &note, &err), 0);
	assert_int_equal(note, getpid());
	assert_int_equal(f.scope.from_ns, S(1774361000 - 300));
	assert_int_equal(range_resolve(s->path, &all, &whole, &note, &err), 0);
	assert_true(note == 0 && whole.scope.from_ns == S(1774360000));
	assert_int_equal(range_resolve(s->path, &none, &last, &note, &err), 0);
	assert_true(note == 0 && last.scope.from_ns == S(1774360000));
	store_lock_done(&lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_times_are_the_recordings),
		TEST(test_contradictions),
		TEST(test_while_it_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
