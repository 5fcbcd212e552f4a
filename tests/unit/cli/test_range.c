/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <time.h>

#include "store/lock.h"
#include "cli/recording_option.h"
#include "cli/trace_settings.h"
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
	struct range_note note = {.writer = 7, .runs = 7};

	if (range_resolve(s->path, &asked, &f, &note, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(note.writer == 0 && note.runs == 0);
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
		struct range_note note;

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
	struct range_note note;

	make(s);
	assert_int_equal(store_lock_take(s->path, &lock, &err), 0);
	assert_int_equal(range_resolve(s->path, &none, &f, &note, &err), 0);
	assert_int_equal(note.writer, getpid());
	assert_int_equal(f.scope.from_ns, S(1774361000 - 300));
	assert_int_equal(range_resolve(s->path, &all, &whole, &note, &err), 0);
	assert_true(note.writer == 0 && whole.scope.from_ns == S(1774360000));
	assert_int_equal(range_resolve(s->path, &none, &last, &note, &err), 0);
	assert_true(note.writer == 0 && last.scope.from_ns == S(1774360000));
	store_lock_done(&lock);
}

#define T0 S(1700000000)

/* A run of @node that began at @started, with one call of process 7 a second later. */
static void add_run(struct scratch *s, const char *node, int64_t started)
{
	struct nodedb *db = NULL;
	struct session session = {.started.ns = started};
	struct event e = {.start.ns = started + S(1),
		.dur_ns = 1000,
		.pid = 7,
		.tid = 7,
		.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.weight = 1};
	struct errinfo err = {0};

	assert_int_equal(nodedb_open(s->path, node, &db, &err), 0);
	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	assert_int_equal(nodedb_close(db, &err), 0);
}

/* Process 7 of yesterday is not process 7 of today. */
static void test_of_several_runs_the_newest(void **state)
{
	struct time_request none = {0}, all = {.all = true}, since = {.since_ns = 3600 * NS_PER_S};
	struct scratch *s = *state;
	uint32_t seven = 7;
	struct nodedb_filter f = {0}, of_pid = {.scope = {.pids = &seven, .pid_count = 1}};
	struct range_note note;
	struct errinfo err = {0};

	add_run(s, "n1", T0);
	assert_int_equal(resolved(s, none).scope.from_ns, T0 + S(1));
	add_run(s, "n1", T0 + S(100));
	assert_int_equal(range_resolve(s->path, &none, &f, &note, &err), 0);
	assert_int_equal(f.scope.from_ns, T0 + S(100));
	assert_int_equal(note.runs, 2);
	assert_int_equal(note.run_ns, T0 + S(100));
	assert_int_equal(resolved(s, all).scope.from_ns, T0 + S(1));
	assert_int_equal(resolved(s, since).scope.from_ns, T0 + S(1));
	/* a process that is asked for may be of any run */
	assert_int_equal(range_resolve(s->path, &none, &of_pid, &note, &err), 0);
	assert_true(of_pid.scope.from_ns == T0 + S(1) && !note.runs);
}

/* In a merged recording each node has a run of its own. */
static void test_runs_of_several_nodes(void **state)
{
	struct scratch *s = *state;

	add_run(s, "n1", T0);
	add_run(s, "n2", T0 + S(100));
	assert_int_equal(resolved(s, (struct time_request){0}).scope.from_ns, T0 + S(1));
}

static void test_what_is_in_it_already(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	struct scratch *s = *state;

	trace_earlier(&b, s->path);
	assert_int_equal(b.len, 0);
	add_run(s, "n1", T0);
	trace_earlier(&b, s->path);
	assert_non_null(strstr(buf_str(&b), "1 event of 1 run, since 2023-11-14T22:13:21Z;"));
	buf_clear(&b);
	add_run(s, "n1", T0 + S(100));
	trace_earlier(&b, s->path);
	assert_non_null(strstr(buf_str(&b), "2 events of 2 runs, since 2023-11-14T22:13:21Z;"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_times_are_the_recordings),
		TEST(test_contradictions),
		TEST(test_while_it_is_written),
		TEST(test_of_several_runs_the_newest),
		TEST(test_runs_of_several_nodes),
		TEST(test_what_is_in_it_already),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
