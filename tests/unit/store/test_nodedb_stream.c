/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_stream.c - a recording piece by piece: order, tracks, filters, stacks, early ends. */
#include "store_fixture.h"

#include "store/read/nodedb_reader.h"

#define T0 INT64_C(1700000000000000000)

struct seen {
	char order[64]; /* o, t, r, c, k, e, z: one letter for each call, runs once */
	char tracks[256], ranks[256];
	size_t events, collectives, samples, chains, labels, stacks, ledger, groups;
	int64_t first_ns, last_ns;
	uint64_t last_dur_ns;
	int stop_at; /* event after which it is ended */
	bool wants_stacks;
};

static void note(struct seen *s, char letter)
{
	size_t len = strlen(s->order);

	if (len + 1 < sizeof(s->order) && (!len || s->order[len - 1] != letter))
		s->order[len] = letter;
}

static int on_track(void *arg, const char *node, int32_t rank)
{
	struct seen *s = arg;
	size_t len = strlen(s->tracks);

	note(s, 't');
	snprintf(s->tracks + len, sizeof(s->tracks) - len, "%s/%d ", node, rank);
	return 0;
}

static void on_origin(void *arg, bool is_published)
{
	note(arg, is_published ? 'p' : 'o');
}

static int on_rank(void *arg, const char *node, uint32_t pid, int32_t rank)
{
	struct seen *s = arg;
	size_t len = strlen(s->ranks);

	note(s, 'r');
	snprintf(s->ranks + len, sizeof(s->ranks) - len, "%s/%u=%d ", node, pid, rank);
	return 0;
}

static int on_end(void *arg)
{
	note(arg, 'z');
	return 0;
}

static int on_content(void *arg, const char *node, const struct nodedb_content *c)
{
	struct seen *s = arg;

	note(s, 'c');
	s->samples += c->sample_count;
	s->chains += c->chain_count;
	s->labels += c->label_count;
	s->ledger += c->ledger_count;
	s->groups += c->container_count;
	return 0;
}

static int on_collectives(void *arg, struct collective_row *rows, size_t count)
{
	struct seen *s = arg;

	note(s, 'k');
	s->collectives = count;
	return 0;
}

static int on_event(void *arg, const char *node, size_t len, const struct event *e,
	struct nodedb_stream *stream)
{
	struct seen *s = arg;
	struct stack *stack = NULL;

	note(s, 'e');
	assert_true(len == 2 && !memcmp(node, "n1", 2));
	assert_true(e->start.ns > s->last_ns ||
		    (e->start.ns == s->last_ns && e->dur_ns <= s->last_dur_ns));
	s->last_dur_ns = e->dur_ns;
	s->first_ns = s->events ? MIN(s->first_ns, e->start.ns) : e->start.ns;
	s->last_ns = MAX(s->last_ns, e->start.ns);
	s->events++;
	if (s->wants_stacks && nodedb_stream_stack(stream, e->stack_hash, &stack, NULL) > 0) {
		assert_int_equal(stack->hash, e->stack_hash);
		assert_string_equal(stack->frames[0].symbol, "f");
		s->stacks++;
		free(stack);
	}
	return s->stop_at && s->events == (size_t)s->stop_at ? -ECANCELED : 0;
}

static void make(const char *path, int events)
{
	struct nodedb *db = scratch_open(path);
	struct session session = {.started.ns = T0};
	struct host_sample sample = {.time.ns = T0};
	struct process process = {
		.pid = 7, .seen.ns = T0, .identity.place = {.rank = 3, .known = PLACEMENT_RANK}};
	struct annotation label = {.time.ns = T0, .labels = "{\"phase\":\"a\",\"step\":\"1\"}"};
	struct collective c = {.comm_hash = 1, .seq = 1, .rank = 4};
	struct event nccl = {.start.ns = T0, .source = SOURCE_NCCL, .op = NCCL_ALL_REDUCE};
	struct stack_row stack = {
		.hash = 9, .ips = "", .frames = "[{\"s\":\"f\"}]", .frames_len = 11, .stop = ""};
	const struct ledger_row row = {.start.ns = T0, .dur_ns = 5, .ns[LEDGER_RUN] = 5};
	const struct container_sample group = {.time.ns = T0, .cgroup_id = 5};
	int64_t id;

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	for (int i = 0; i < events; i++) {
		struct event e = {.start.ns = T0 + i * 1000000,
			.dur_ns = 10,
			.pid = 7 + (uint32_t)(i & 1),
			.tid = 7,
			.source = SOURCE_CUDA,
			.op = CUDA_LAUNCH,
			.stack_hash = i & 2 ? 9 : 8};

		assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
	}
	assert_int_equal(nodedb_put(db, &sample, NULL), 0);
	assert_int_equal(nodedb_put_process(db, &process, "", NULL), 0);
	assert_int_equal(nodedb_put_annotation(db, &label, &id, NULL), 0);
	assert_int_equal(nodedb_put_collective(db, &nccl, &c, NULL), 0);
	assert_int_equal(nodedb_put_stack(db, &stack, NULL), 0);
	assert_int_equal(nodedb_put_ledger(db, &row, NULL), 0);
	assert_int_equal(nodedb_put(db, &group, NULL), 0);
	scratch_close(db);
}

static int stream(const char *path, const struct nodedb_filter *f, struct seen *s,
	struct nodedb_stream_stats *stats)
{
	struct nodedb_sink sink = {
		s, on_origin, on_track, on_rank, on_content, on_collectives, on_event, on_end};
	struct errinfo err = {0};

	return nodedb_stream(path, f, &sink, stats, &err);
}

static void test_pieces(void **state)
{
	struct scratch *sc = *state;
	struct nodedb_stream_stats stats;
	struct seen s = {.wants_stacks = true};

	make(sc->path, 20);
	assert_int_equal(stream(sc->path, &(struct nodedb_filter){0}, &s, &stats), 0);
	assert_string_equal(s.order, "otrckez");
	assert_string_equal(s.tracks, "n1/-1 n1/3 n1/4 ");
	assert_string_equal(s.ranks, "n1/0=4 n1/7=3 ");
	assert_int_equal(s.events, 20);
	assert_int_equal(stats.events, 20);
	assert_int_equal(s.samples, 1);
	assert_int_equal(s.labels, 2);
	assert_int_equal(s.collectives, 1);
	assert_int_equal(s.stacks, 10);
	assert_false(stats.is_limited);
	assert_int_equal(stats.skipped_rows, 0);
}

static void put_collective(struct nodedb *db, uint32_t pid, struct collective c)
{
	struct event e = {.start.ns = T0, .pid = pid, .source = SOURCE_NCCL, .op = NCCL_ALL_REDUCE};

	assert_int_equal(nodedb_put_collective(db, &e, &c, NULL), 0);
}

/* The environment's word is first, then the largest communicator's; a process that is several ranks
 * of one has none. */
static void test_ranks(void **state)
{
	struct scratch *sc = *state;
	struct nodedb *db = scratch_open(sc->path);
	struct process process = {
		.pid = 5, .seen.ns = T0, .identity.place = {.rank = 9, .known = PLACEMENT_RANK}};
	struct nodedb_stream_stats stats;
	struct seen s = {0};

	assert_int_equal(nodedb_put_process(db, &process, "", NULL), 0);
	put_collective(db, 5, (struct collective){.comm_hash = 1, .rank = 2, .nranks = 16});
	put_collective(db, 6, (struct collective){.comm_hash = 3, .rank = 0, .nranks = 2});
	put_collective(db, 6, (struct collective){.comm_hash = 1, .rank = 7, .nranks = 16});
	put_collective(db, 8, (struct collective){.comm_hash = 1, .rank = 3, .nranks = 16});
	put_collective(db, 8, (struct collective){.comm_hash = 1, .rank = 4, .nranks = 16});
	put_collective(db, 9, (struct collective){.comm_hash = 1, .rank = -1, .nranks = -1});
	scratch_close(db);
	assert_int_equal(stream(sc->path, &(struct nodedb_filter){0}, &s, &stats), 0);
	assert_string_equal(s.ranks, "n1/5=9 n1/6=7 ");
	assert_string_equal(s.tracks, "n1/3 n1/4 n1/7 n1/9 ");
}

static void test_filters(void **state)
{
	struct scratch *sc = *state;
	struct nodedb_stream_stats stats;
	struct seen s = {0};
	uint32_t pid = 8;

	make(sc->path, 20);
	assert_int_equal(stream(sc->path, &(struct nodedb_filter){.last = 5}, &s, &stats), 0);
	assert_int_equal(s.events, 5);
	assert_true(stats.is_limited);
	assert_int_equal(s.first_ns, T0 + 15 * 1000000);
	s = (struct seen){0};
	assert_int_equal(stream(sc->path, &(struct nodedb_filter){.last = 20}, &s, &stats), 0);
	assert_int_equal(s.events, 20);
	assert_false(stats.is_limited);
	assert_int_equal(s.ledger + s.groups, 0); /* not asked for */
	s = (struct seen){0};
	assert_int_equal(stream(sc->path, &(struct nodedb_filter){.ledger = true}, &s, &stats), 0);
	assert_int_equal(s.ledger, 1);
	assert_int_equal(s.groups, 1);
	s = (struct seen){0};
	assert_int_equal(
		stream(sc->path, &(struct nodedb_filter){.scope.pids = &pid, .scope.pid_count = 1},
			&s, &stats),
		0);
	assert_int_equal(s.events, 10);
	s = (struct seen){0};
	assert_int_equal(stream(sc->path,
				 &(struct nodedb_filter){.scope.from_ns = T0 + 3 * 1000000,
					 .scope.to_ns = T0 + 7 * 1000000},
				 &s, &stats),
		0);
	assert_int_equal(s.events, 5);
	assert_int_equal(s.last_ns, T0 + 7 * 1000000);
	s = (struct seen){0};
	assert_int_equal(
		stream(sc->path, &(struct nodedb_filter){.scope.node = "other"}, &s, &stats), 0);
	assert_int_equal(s.events, 0);
	assert_string_equal(s.tracks, "");
}

static void test_ends(void **state)
{
	struct scratch *sc = *state;
	struct nodedb_stream_stats stats = {.events = 77};
	struct seen s = {.stop_at = 3};
	struct errinfo err = {0};

	make(sc->path, 20);
	assert_int_equal(stream(sc->path, &(struct nodedb_filter){0}, &s, &stats), -ECANCELED);
	assert_int_equal(s.events, 3);
	assert_int_equal(stats.events, 77); /* untouched */
	scratch_sql(sc->path, "UPDATE events SET timestamp = 'x' WHERE seq = 4;"
			      "UPDATE events SET duration = -1 WHERE seq = 5");
	s = (struct seen){0};
	assert_int_equal(stream(sc->path, &(struct nodedb_filter){0}, &s, &stats), 0);
	assert_int_equal(s.events, 18);
	assert_int_equal(stats.skipped_rows, 2);
	assert_int_equal(
		nodedb_stream("/nonexistent/x.db", &(struct nodedb_filter){0}, NULL, &stats, &err),
		-ENOENT);
	assert_true(err.text[0] != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pieces),
		TEST(test_ranks),
		TEST(test_filters),
		TEST(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
