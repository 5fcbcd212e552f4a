/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "store/write/writer.h"

struct totals {
	uint64_t stored[WIRE_SOURCE_MAX], failed[WIRE_SOURCE_MAX], unaggregated[WIRE_SOURCE_MAX];
	uint64_t pushed[WIRE_SOURCE_MAX], refused[WIRE_SOURCE_MAX];
	bool called;
};

/* As the tracer does it: every hit is a push here. */
static void final_books(const struct store_writer *w, struct accounting *ret, void *arg)
{
	struct totals *t = arg;

	t->called = true;
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		t->stored[s] = store_writer_stored(w, s);
		t->failed[s] = store_writer_failed(w, s);
		t->unaggregated[s] = store_writer_unaggregated(w, s);
		ret->source[s].hits = t->pushed[s];
		ret->source[s].stored = t->stored[s];
		ret->source[s].lost[LOSS_WRITE_FAILED] = t->failed[s];
		ret->source[s].lost[LOSS_QUEUE_FULL] = t->refused[s];
	}
}

static struct store_writer *start(
	const char *path, int64_t *ret_session, const struct store_writer_config *config)
{
	struct session session = {.started.ns = 1};
	struct store_writer *w = NULL;
	struct errinfo err = {0};
	struct nodedb *db = NULL;

	if (nodedb_open(path, "n1", &db, &err) < 0 ||
		nodedb_session_begin(db, &session, &err) < 0 ||
		store_writer_start(db, session.id, config, &w, &err) < 0)
		return NULL;
	*ret_session = session.id;
	return w;
}

static void push(struct store_writer *w, struct totals *t, unsigned source, int64_t n)
{
	struct event e = {.start.ns = 1000 + n,
		.pid = 7,
		.tid = 7,
		.source = (uint8_t)source,
		.op = 1,
		.dur_ns = 5,
		.weight = 1,
		.comm = "python3"};

	t->pushed[source]++;
	if (!store_writer_push(w, &e))
		t->refused[source]++;
}

static void test_everything_pushed_is_stored(void **state)
{
	struct scratch *s = *state;
	struct totals t = {0};
	struct errinfo err = {0};
	struct nodedb_content c;
	struct aggregate a = {.bucket.ns = 5000000000, .pid = 7, .source = 1, .op = 3, .stored = 1};
	struct incident i = {.id = "x", .summary = "slow"};
	struct accounting early = {.source[1].hits = 5};
	struct host_sample sample = {.time.ns = 5, .cpu_pct = 1};
	struct process process = {.pid = 7,
		.start_ticks = 1,
		.seen.ns = 9,
		.comm = "python3",
		.identity = {.launcher = "slurm", .place = {.rank = 3, .known = PLACEMENT_RANK}}};
	struct cgroup_row group = {.id = 99, .path = "/x"};
	struct process_layers layers = {.rows[LAYER_DRIVER].state = LAYER_COVERED};
	int64_t session;
	struct store_writer *w = start(s->path, &session, NULL);

	assert_non_null(w);
	sketch_add(&a.sketch, 100, 4);
	for (int n = 0; n < 7919; n++)
		push(w, &t, 1 + (unsigned)n % 5, n);
	assert_true(store_writer_push_aggregate(w, &a));
	assert_true(store_writer_push_aggregate(w, &a));
	assert_true(store_writer_push_row(w, &sample));
	assert_true(store_writer_push_process(w, &process, "python3 train.py"));
	assert_true(store_writer_push_row(w, &group));
	assert_true(store_writer_push_layers(w, 7, 1, &layers));
	assert_true(store_writer_push_place(w, process.identity.place));
	assert_true(store_writer_push_incident(w, &i, (wall_time){9}));
	assert_true(store_writer_push_accounting(w, &early));
	assert_int_equal(store_writer_stop(w, final_books, &t, (wall_time){777}, &err), 0);
	assert_true(t.called);
	for (unsigned k = 1; k <= 5; k++) {
		assert_int_equal(t.refused[k], 0);
		assert_int_equal(t.stored[k], t.pushed[k]);
		assert_int_equal(t.failed[k], 0);
	}
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.event_count, 7919);
	assert_int_equal(c.events[0].seq, 1);
	assert_int_equal(c.events[7918].seq, 7919);
	assert_int_equal(c.aggregate_count, 1);
	assert_int_equal(c.aggregates[0].sketch.count, 8);
	assert_int_equal(c.sample_count, 1);
	assert_int_equal(c.chain_count, 1);
	assert_true(c.has_books);
	for (unsigned k = 1; k <= 5; k++) {
		assert_int_equal(c.books.source[k].hits, t.pushed[k]);
		assert_true(account_balances(&c.books.source[k]));
	}
	nodedb_content_done(&c);
	assert_int_equal(scratch_int(s->path, "SELECT stopped_at FROM sessions"), 777);
	assert_int_equal(scratch_int(s->path, "SELECT rank FROM sessions"), 3);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM processes WHERE pid = 7 AND rank = 3 AND"
				     " launcher = 'slurm' AND cmdline = 'python3 train.py'"),
		1);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM cgroup_metadata WHERE cgroup_id = 99"),
		1);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM coverage WHERE pid = 7"
					      " AND start_time = 1 AND session_id = 1"),
		LAYER_COUNT);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM processes"), 1);
	assert_int_equal(scratch_files(s->folder, false), 1);
}

static void test_a_full_queue_refuses_and_never_waits(void **state)
{
	struct scratch *s = *state;
	struct totals t = {0};
	struct errinfo err = {0};
	int64_t session;
	struct store_writer *w =
		start(s->path, &session, &(struct store_writer_config){.queue_events = 16});

	assert_non_null(w);
	for (int n = 0; n < 100000; n++)
		push(w, &t, 1, n);
	assert_int_equal(store_writer_stop(w, final_books, &t, (wall_time){9}, &err), 0);
	assert_true(t.refused[1] > 0 && t.stored[1] > 0);
	assert_int_equal(t.stored[1] + t.refused[1], 100000);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events"), t.stored[1]);
	assert_int_equal(scratch_int(s->path, "SELECT hits = stored + aggregated + lost FROM"
					      " accounting WHERE source = 1"),
		1);
}

struct pusher {
	struct store_writer *w;
	struct totals t;
	unsigned source;
};

static void *push_many(void *arg)
{
	struct pusher *p = arg;

	for (int n = 0; n < 5000; n++)
		push(p->w, &p->t, p->source, n);
	return NULL;
}

static void test_several_threads_push(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct totals t = {0};
	struct pusher p[3] = {0};
	pthread_t threads[3];
	int64_t session;
	struct store_writer *w = start(s->path, &session, NULL);

	assert_non_null(w);
	for (unsigned i = 0; i < 3; i++) {
		p[i].w = w;
		p[i].source = i + 1;
		assert_int_equal(pthread_create(&threads[i], NULL, push_many, &p[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(store_writer_stop(w, final_books, &t, (wall_time){9}, &err), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(t.stored[i + 1] + p[i].t.refused[i + 1], 5000);
}

/* In a child: no file may grow past @bytes. */
static bool limit_files(rlim_t bytes)
{
	struct rlimit limit = {bytes, RLIM_INFINITY};

	signal(SIGXFSZ, SIG_IGN);
	return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #x);                            \
			return false;                                                              \
		}                                                                                  \
	} while (0)

/* The disk fills up for good: what was not stored is counted, to the row. */
static bool disk_fills(struct scratch *s)
{
	struct totals t = {0};
	struct errinfo err = {0}, last = {0};
	struct aggregate a = {.bucket.ns = 5000000000, .pid = 7, .source = 2, .op = 3, .stored = 1};
	int64_t session;
	struct store_writer *w = start(s->path, &session,
		&(struct store_writer_config){.queue_events = 1 << 17, .batch_events = 1000});

	CHECK(w && limit_files(2 << 20));
	for (int n = 0; n < 60000; n++)
		push(w, &t, 1 + (unsigned)n % 3, n);
	/* Wait until it has met the limit; the sentence says so. */
	while (!store_writer_error(w, &last))
		;
	CHECK(strstr(last.text, "no space"));
	CHECK(limit_files(4096)); /* from here on nothing fits */
	a.estimated = 20;         /* nobody saw these, so they are not lost either */
	sketch_add(&a.sketch, 100, 25);
	CHECK(store_writer_push_aggregate(w, &a));
	CHECK(store_writer_stop(w, final_books, &t, (wall_time){9}, &err) <
		0); /* no room for books */
	CHECK(strstr(err.text, "no space"));
	CHECK(t.failed[1] > 0 && t.stored[1] > 0 && t.unaggregated[2] == 4);
	CHECK(limit_files(RLIM_INFINITY));
	for (unsigned k = 1; k <= 3; k++) {
		char sql[80];

		snprintf(sql, sizeof(sql), "SELECT count(*) FROM events WHERE source = %u", k);
		CHECK(t.refused[k] == 0 && t.stored[k] + t.failed[k] == t.pushed[k]);
		CHECK(scratch_int(s->path, sql) == (int64_t)t.stored[k]);
	}
	/* with room again, the file is as good as any */
	w = start(s->path, &session, NULL);
	CHECK(w);
	t = (struct totals){0};
	push(w, &t, 1, 1);
	CHECK(store_writer_stop(w, final_books, &t, (wall_time){9}, &err) == 0);
	CHECK(t.stored[1] == 1);
	CHECK(scratch_files(s->folder, false) == 1);
	return true;
}

/* The disk is full for a while, and the queue is large enough: nothing is lost. */
static bool disk_full_passes(struct scratch *s)
{
	struct totals t = {0};
	struct errinfo err = {0};
	int64_t session;
	struct store_writer *w = start(s->path, &session,
		&(struct store_writer_config){
			.queue_events = 1 << 17, .batch_events = 1000, .batch_ms = 5});

	CHECK(w && limit_files(2 << 20));
	for (int n = 0; n < 60000; n++)
		push(w, &t, 1, n);
	while (!store_writer_error(w, &err))
		;
	CHECK(limit_files(RLIM_INFINITY));
	CHECK(store_writer_stop(w, final_books, &t, (wall_time){9}, &err) == 0);
	CHECK(t.stored[1] == 60000 && t.failed[1] == 0);
	CHECK(scratch_int(s->path, "SELECT count(*) = max(seq) AND count(*) = 60000 FROM events") ==
		1);
	return true;
}

static void in_child(struct scratch *s, bool (*body)(struct scratch *))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body(s) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_disk_fills(void **state)
{
	in_child(*state, disk_fills);
}

static void test_disk_full_passes(void **state)
{
	in_child(*state, disk_full_passes);
}

static void test_messages_have_a_ceiling(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct incident i = {.id = "x"};
	int64_t session, refused = 0;
	struct store_writer *w = start(s->path, &session, NULL);

	assert_non_null(w);
	for (int n = 0; n < 3000; n++) /* 8 MiB are about 800 of these */
		refused += !store_writer_push_incident(w, &i, (wall_time){n});
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
	assert_true(refused > 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM incidents"), 1);
}

/* Acknowledged after the commit: a second connection sees the row then. */
static void test_annotations_are_acknowledged(void **state)
{
	struct scratch *s = *state;
	struct annotation a = {.time.ns = 5, .labels = "{\"a\":\"b\"}"};
	struct store_ack acks[8];
	struct errinfo err = {0};
	sql_db *reader = NULL;
	int64_t session, rows;
	size_t n = 0;
	struct store_writer *w = start(s->path, &session, NULL);

	assert_non_null(w);
	for (uint64_t i = 0; i < 3; i++)
		assert_true(store_writer_push_annotation(w, &a, 100 + i));
	while (n < 3)
		n += store_writer_take_acks(w, acks + n, ARRAY_SIZE(acks) - n);
	assert_int_equal(sql_open_read(s->path, true, &reader, NULL, &err), 0);
	assert_int_equal(sql_get_int(reader, "SELECT count(*) FROM annotations", &rows, &err), 0);
	assert_int_equal(rows, 3);
	assert_int_equal(sql_close(reader), 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(acks[i].ticket, 100 + i);
		assert_int_equal(acks[i].id, i + 1);
	}
	assert_int_equal(store_writer_take_acks(w, acks, ARRAY_SIZE(acks)), 0);
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
}

static void test_the_store_stays_small(void **state)
{
	struct scratch *s = *state;
	struct totals t = {0};
	struct errinfo err = {0};
	int64_t session;
	struct store_writer *w = start(s->path, &session,
		&(struct store_writer_config){
			.queue_events = 1 << 17, .retention.max_bytes = PRUNE_LIMIT_MIN});

	assert_non_null(w);
	for (int n = 0; n < 60000; n++)
		push(w, &t, 1, n);
	assert_int_equal(store_writer_stop(w, final_books, &t, (wall_time){9}, &err), 0);
	assert_int_equal(t.stored[1], 60000);
	assert_true(scratch_int(s->path, "PRAGMA page_count") * 4096 <= PRUNE_LIMIT_MIN);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) + (SELECT rows FROM pruned WHERE"
					      " table_name = 'events') FROM events"),
		60000);
	assert_int_equal(
		scratch_int(s->path, "SELECT stored FROM accounting WHERE source = 1"), 60000);
}

static const struct stack_frame frames[] = {
	{.ip = 1, .symbol = "cudaMalloc", .file = "libcudart.so.12"},
	{.py_file = "/w/train.py", .py_func = "forward", .py_line = 142},
};

static void test_stacks_are_stored(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct stack_frame own[2];
	struct nodedb_content c;
	char name[] = "cudaMalloc";
	struct stack k = {UINT64_MAX - 1, own, 2, "no unwind table"};
	int64_t session;
	struct store_writer *w = start(s->path, &session, NULL);

	assert_non_null(w);
	memcpy(own, frames, sizeof(own));
	own[0].symbol = name;
	assert_true(store_writer_push_stack(w, &k));
	memset(name, 'x', sizeof(name) - 1); /* texts were copied */
	memset(own, 0, sizeof(own));
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
	assert_int_equal(nodedb_read(s->path, &(struct nodedb_filter){.stacks = NODEDB_STACKS_ALL},
				 &c, &err),
		0);
	assert_int_equal(c.stacks.count, 1);
	assert_int_equal(c.stacks.items[0]->hash, UINT64_MAX - 1);
	assert_string_equal(c.stacks.items[0]->stop, "no unwind table");
	assert_string_equal(c.stacks.items[0]->frames[0].symbol, "cudaMalloc");
	assert_int_equal(c.stacks.items[0]->frames[1].py_line, 142);
	nodedb_content_done(&c);
}

/* 512 frames are 64 kB: some 60 of them fill their half, and the other half is still free. */
static void test_stacks_leave_room(void **state)
{
	static struct stack_frame many[STACK_FRAMES_MAX];
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct host_sample sample = {.time.ns = 5};
	struct stack k = {1, many, STACK_FRAMES_MAX, ""};
	int64_t session;
	struct store_writer *w =
		start(s->path, &session, &(struct store_writer_config){.batch_ms = 60000});
	int taken = 0;

	assert_non_null(w);
	for (size_t i = 0; i < STACK_FRAMES_MAX; i++)
		many[i].symbol = "a name of a function that is long enough to fill the row quite"
				 " well, with all its templates and arguments<int, float>";
	while (taken < 1000 && store_writer_push_stack(w, &k)) {
		taken++;
		k.hash++;
	}
	assert_in_range(taken, 30, 100);
	assert_true(store_writer_push_row(w, &sample));
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, &err), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM stack_traces"), taken);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM system_snapshots"), 1);
}

static uint64_t seen_generation;

static void look_at_generation(const struct store_writer *w, struct accounting *ret, void *arg)
{
	seen_generation = store_writer_generation(w);
}

/* Pruning sweeps a stack that no event refers to, and says that such rows must be told again. */
static void test_swept_stacks_change_the_generation(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct stack used = {11, frames, 2, ""}, unused = {99, frames, 2, ""};
	int64_t session;
	struct store_writer *w = start(s->path, &session,
		&(struct store_writer_config){
			.queue_events = 1 << 17, .retention.max_bytes = PRUNE_LIMIT_MIN});

	assert_non_null(w);
	assert_true(store_writer_push_stack(w, &used));
	assert_true(store_writer_push_stack(w, &unused));
	assert_int_equal(store_writer_generation(w), 0);
	for (int n = 0; n < 60000; n++) {
		struct event e = {.start.ns = 1000 + n, .pid = 7, .source = 1, .stack_hash = 11};

		assert_true(store_writer_push(w, &e));
	}
	assert_int_equal(store_writer_stop(w, look_at_generation, NULL, (wall_time){9}, &err), 0);
	assert_true(seen_generation > 0);
	assert_int_equal(scratch_int(s->path, "SELECT sum(hash) FROM stack_traces"), 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_everything_pushed_is_stored),
		TEST(test_a_full_queue_refuses_and_never_waits),
		TEST(test_several_threads_push),
		TEST(test_disk_fills),
		TEST(test_disk_full_passes),
		TEST(test_messages_have_a_ceiling),
		TEST(test_annotations_are_acknowledged),
		TEST(test_the_store_stays_small),
		TEST(test_stacks_are_stored),
		TEST(test_stacks_leave_room),
		TEST(test_swept_stacks_change_the_generation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
