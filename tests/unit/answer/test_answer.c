/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording says as JSON, of records made here: figures that can be worked out by hand, what
 * is not there, and times. */
#include <jansson.h>

#include "answer/answer.h"
#include "base/buf.h"
#include "store_fixture.h"

#define T0 (1700000000 * (int64_t)NS_PER_S)
#define S  ((int64_t)NS_PER_S)

static void put_aggregate(struct nodedb *db, int64_t at, uint32_t pid, uint16_t op, uint64_t ns,
	uint64_t calls, bool nested)
{
	struct aggregate *a = calloc(1, sizeof(*a));
	struct errinfo e = {0};

	assert_non_null(a);
	a->pid = pid;
	a->source = nested ? SOURCE_DRIVER : SOURCE_CUDA;
	a->op = op;
	a->flags = nested ? WIRE_NESTED : 0;
	sketch_add(&a->sketch, ns, calls);
	for (int coarse = 0; coarse < 2; coarse++) {
		int64_t width = (int64_t)(coarse ? NODEDB_BUCKET_COARSE : NODEDB_BUCKET_FINE);

		a->bucket.ns = at / width * width;
		assert_int_equal(nodedb_add_aggregate(db, coarse, a, &e), 0);
	}
	free(a);
}

static void put_event(struct nodedb *db, int64_t at, uint16_t op, uint64_t ns, uint64_t hash)
{
	struct event ev = {.start.ns = at,
		.dur_ns = ns,
		.pid = 7,
		.tid = 7,
		.source = SOURCE_CUDA,
		.op = op,
		.weight = 1,
		.stack_hash = hash,
		.comm = "train"};
	struct errinfo e = {0};

	assert_int_equal(nodedb_put_event(db, &ev, &e), 0);
}

static void put_collective(struct nodedb *db, int64_t at, int rank, uint64_t seq, int64_t wait)
{
	struct event ev = {.start.ns = at,
		.dur_ns = 1000,
		.pid = 100 + (uint32_t)rank,
		.source = SOURCE_NCCL,
		.op = NCCL_ALL_REDUCE};
	struct collective c = {.comm_hash = UINT64_MAX - 4,
		.seq = seq,
		.bytes = 64,
		.count = 16,
		.rank = rank,
		.nranks = 2,
		.datatype = -1,
		.reduce_op = -1,
		.root = -1,
		.peer = -1,
		.wait_ns = wait};
	struct errinfo e = {0};

	assert_int_equal(nodedb_put_collective(db, &ev, &c, &e), 0);
}

static void put_incident(struct nodedb *db, const char *id, enum severity severity, int64_t at)
{
	struct incident *i = calloc(1, sizeof(*i));
	struct errinfo e = {0};

	assert_non_null(i);
	snprintf(i->id, sizeof(i->id), "%s", id);
	i->severity = severity;
	i->first.ns = i->last.ns = at;
	i->source = SOURCE_CUDA;
	i->op = CUDA_STREAM_SYNC;
	snprintf(i->summary, sizeof(i->summary), "slow \"x\"\n\x1b[2J");
	snprintf(i->fixes[0], sizeof(i->fixes[0]), "do less");
	i->fix_count = 1;
	assert_int_equal(nodedb_put_incident(db, i, (wall_time){at}, &e), 0);
	free(i);
}

static void record(const char *path)
{
	struct nodedb *db = scratch_open(path);
	struct session session = {.started.ns = T0, .node = "n1", .gpu_model = "H200"};
	struct host_sample host = {.time.ns = T0 + 1 * S, .cpu_pct = 10, .mem_avail_mb = 500};
	struct stack_row stack = {
		.hash = 5, .ips = "", .frames = "[{\"s\":\"main\",\"f\":\"a.out\"}]", .stop = ""};
	struct accounting *books = calloc(1, sizeof(*books));
	struct errinfo e = {0};

	assert_non_null(books);
	stack.frames_len = strlen(stack.frames);
	assert_int_equal(nodedb_session_begin(db, &session, &e), 0);
	for (int i = 0; i < 4; i++)
		put_aggregate(db, T0 + i * 5 * S, 7, CUDA_STREAM_SYNC, 1000, 10, false);
	put_aggregate(db, T0, 8, CUDA_STREAM_SYNC, 9000, 5, false);
	put_aggregate(db, T0, 7, DRIVER_LAUNCH, 500, 3, true);
	for (int i = 0; i < 6; i++)
		put_event(db, T0 + i * S, CUDA_STREAM_SYNC, 1000, i < 4 ? 5 : 0);
	assert_int_equal(nodedb_put_stack(db, &stack, &e), 0);
	for (int i = 0; i < 20; i++) {
		host.time.ns = T0 + i * S;
		host.cpu_pct = i == 13 ? 99 : 10;
		assert_int_equal(nodedb_put(db, &host, &e), 0);
	}
	for (uint64_t seq = 1; seq <= 5; seq++) {
		put_collective(db, T0 + (int64_t)seq * S, 0, seq, 5000000);
		put_collective(db, T0 + (int64_t)seq * S + 3000000, 1, seq, 0);
	}
	put_incident(db, "old-high", SEVERITY_HIGH, T0 + 2 * S);
	put_incident(db, "new-low", SEVERITY_LOW, T0 + 9 * S);
	books->source[SOURCE_CUDA] = (struct account){
		.hits = 100, .stored = 60, .aggregated = 30, .lost = {[LOSS_RING_FULL] = 10}};
	assert_int_equal(nodedb_put_accounting(db, session.id, books, &e), 0);
	assert_int_equal(nodedb_session_end(db, session.id, (wall_time){T0 + 60 * S}, &e), 0);
	free(books);
	scratch_close(db);
}

static json_t *answer_of(struct scratch *s, answer_fn *fn, const struct answer_request *request)
{
	_cleanup_buf_ struct buf b = BUF_INIT(ANSWER_BYTES);
	struct errinfo e = {0};
	json_t *root;

	if (answer_run(s->path, request, fn, 0, &b, &e) < 0)
		fail_msg("%s", e.text);
	root = json_loads(buf_str(&b), 0, NULL);
	assert_non_null(root);
	return root;
}

static const struct answer_request everything = {.all = true};

static json_int_t int_at(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static double real_at(const json_t *o, const char *key)
{
	assert_true(json_is_number(json_object_get(o, key)));
	return json_number_value(json_object_get(o, key));
}

static void test_ops(void **state)
{
	struct scratch *s = *state;
	_cleanup_(json_decrefp) json_t *root = NULL, *one = NULL, *late = NULL;
	json_t *op;

	record(s->path);
	root = answer_of(s, ops_json, &everything);
	assert_string_equal(json_string_value(json_object_get(root, "mode")), "percentile");
	assert_int_equal(int_at(root, "total_calls"), 45);
	assert_int_equal(json_array_size(json_object_get(root, "ops")), 2);
	op = json_array_get(json_object_get(root, "ops"), 0);
	assert_string_equal(json_string_value(json_object_get(op, "operation")), "cudaStreamSync");
	assert_string_equal(json_string_value(json_object_get(op, "source")), "cuda");
	assert_int_equal(int_at(op, "count"), 45);
	assert_float_equal(real_at(op, "total_us"), 85, 1e-9);
	assert_float_equal(real_at(op, "min_us"), 1, 1e-9);
	assert_float_equal(real_at(op, "max_us"), 9, 1e-9);
	assert_float_equal(real_at(op, "p50_us"), 1, 0.04);
	assert_float_equal(real_at(op, "p99_us"), 9, 0.3);
	assert_true(json_is_true(
		json_object_get(json_array_get(json_object_get(root, "ops"), 1), "nested")));
	assert_non_null(json_object_get(root, "system"));
	one = answer_of(
		s, ops_json, &(struct answer_request){.all = true, .pids = {8}, .pid_count = 1});
	assert_int_equal(int_at(json_array_get(json_object_get(one, "ops"), 0), "count"), 5);
	late = answer_of(s, ops_json, &(struct answer_request){.since_ns = 4 * NS_PER_S});
	assert_int_equal(int_at(json_array_get(json_object_get(late, "ops"), 0), "count"), 10);
}

/* The sentence is about the program: its line is named though libraries lie between it and the call. */
static void test_stacks_say_the_line(void **state)
{
	_cleanup_buf_ struct buf said = BUF_INIT(4096);
	_cleanup_(json_decrefp) json_t *root = NULL;
	struct scratch *s = *state;

	record(s->path);
	scratch_sql(s->path,
		"UPDATE stack_traces SET frames = '[{\"s\":\"cudaStreamSynchronize\"},{\"s\":\"ffi_call\"},{\"s\":\"callproc\"},"
		"{\"pf\":\"/home/u/train.py\",\"pfn\":\"train_step\",\"pl\":100},{\"s\":\"main\"}]'");
	root = answer_of(s, stacks_json, &(struct answer_request){.all = true, .say = &said});
	assert_non_null(strstr(buf_str(&said), " in train_step() at train.py:100: cudaStreamSync"));
}

static void test_series(void **state)
{
	struct scratch *s = *state;
	_cleanup_(json_decrefp) json_t *root = NULL, *few = NULL;
	json_t *line, *counts;
	json_int_t sum = 0;

	record(s->path);
	root = answer_of(s, series_json, &everything);
	assert_int_equal(int_at(root, "bucket_ns"), 5 * S);
	line = json_array_get(json_object_get(root, "series"), 0);
	counts = json_object_get(line, "count");
	assert_int_equal(json_array_size(counts), int_at(root, "points"));
	assert_int_equal(json_integer_value(json_array_get(counts, 0)), 15);
	assert_int_equal(json_integer_value(json_array_get(counts, 3)), 10);
	few = answer_of(
		s, series_json, &(struct answer_request){.all = true, .points = 2, .limit = 1});
	counts = json_object_get(json_array_get(json_object_get(few, "series"), 0), "count");
	assert_true(json_array_size(counts) <= 2);
	for (size_t i = 0; i < json_array_size(counts); i++)
		sum += json_integer_value(json_array_get(counts, i));
	assert_int_equal(sum, 45);
	assert_true(json_is_true(json_object_get(few, "truncated")));
}

static void test_overview_and_chains(void **state)
{
	struct scratch *s = *state;
	_cleanup_(json_decrefp) json_t *root = NULL, *chains = NULL, *losses = NULL;
	json_t *top, *list;

	record(s->path);
	root = answer_of(s, overview_json, &(struct answer_request){.version = "1"});
	assert_int_equal(int_at(root, "event_count"), 6);
	assert_int_equal(int_at(root, "chain_count"), 2);
	top = json_object_get(root, "top_chain");
	assert_string_equal(json_string_value(json_object_get(top, "severity")), "HIGH");
	assert_string_equal(
		json_string_value(json_object_get(top, "summary")), "slow \"x\"\n\x1b[2J");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(top, "recommendations"), 0)),
		"do less");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(root, "health"), "state")),
		"critical");
	assert_float_equal(real_at(json_object_get(root, "books"), "completeness"), 0.9, 1e-9);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(root, "gpu"), "model")), "H200");
	chains = answer_of(s, chains_json, &(struct answer_request){.limit = 1});
	list = json_object_get(chains, "chains");
	assert_int_equal(json_array_size(list), 1);
	assert_true(json_is_true(json_object_get(chains, "truncated")));
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(list, 0), "severity")), "LOW");
	losses = answer_of(s, losses_json, &everything);
	list = json_object_get(losses, "sources");
	assert_int_equal(json_array_size(list), 1);
	assert_int_equal(int_at(json_array_get(list, 0), "lost"), 10);
	assert_true(json_is_true(json_object_get(json_array_get(list, 0), "balances")));
}

/* A killed tracer's file does not claim to be complete, whatever its books add up to. */
static void test_an_unclean_end(void **state)
{
	static const struct {
		answer_fn *fn;
		const char *key;
	} rows[] = {{overview_json, "books"}, {losses_json, "total"}, {incidents_json, "data"}};
	struct scratch *s = *state;

	record(s->path);
	for (int killed = 0; killed < 2; killed++) {
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			_cleanup_(json_decrefp) json_t *root =
				answer_of(s, rows[i].fn, &everything);
			json_t *o = json_object_get(root, rows[i].key);
			const char *why = json_string_value(json_object_get(o, "unclean"));

			assert_int_equal(json_is_null(json_object_get(o, "completeness")), killed);
			assert_int_equal(why && strstr(why, "without a clean stop at"), killed);
		}
		scratch_sql(s->path, "UPDATE sessions SET stopped_at = 0");
	}
}

static void test_collectives(void **state)
{
	struct scratch *s = *state;
	_cleanup_(json_decrefp) json_t *root = NULL;
	json_t *comm, *rank, *worst;

	record(s->path);
	root = answer_of(s, collectives_json, &everything);
	comm = json_array_get(json_object_get(root, "comms"), 0);
	assert_string_equal(json_string_value(json_object_get(comm, "comm")), "-5");
	assert_int_equal(int_at(comm, "collectives"), 5);
	assert_int_equal(int_at(comm, "complete"), 5);
	assert_int_equal(int_at(comm, "judged"), 4); /* not the first */
	rank = json_array_get(json_object_get(comm, "ranks"), 1);
	assert_int_equal(int_at(rank, "rank"), 1);
	assert_int_equal(int_at(rank, "last"), 4);
	assert_int_equal(int_at(rank, "late_ns"), 4 * 3000000);
	assert_int_equal(int_at(json_array_get(json_object_get(comm, "ranks"), 0), "last"), 0);
	assert_int_equal(
		int_at(json_array_get(json_object_get(comm, "ranks"), 0), "wait_ns"), 5 * 5000000);
	worst = json_array_get(json_object_get(comm, "worst"), 0);
	assert_int_equal(int_at(worst, "last_rank"), 1);
	assert_string_equal(json_string_value(json_object_get(worst, "op")), "AllReduce");
}

static void test_stacks_and_flame(void **state)
{
	struct scratch *s = *state;
	_cleanup_(json_decrefp) json_t *root = NULL, *flame = NULL;
	json_t *stack;

	record(s->path);
	root = answer_of(s, stacks_json, &everything);
	assert_int_equal(json_array_size(json_object_get(root, "stacks")), 1);
	stack = json_array_get(json_object_get(root, "stacks"), 0);
	assert_string_equal(json_string_value(json_object_get(stack, "hash")), "5");
	assert_int_equal(int_at(stack, "n"), 4);
	assert_float_equal(real_at(stack, "share"), 4.0 / 6, 1e-9);
	assert_int_equal(int_at(root, "without_stack"), 2);
	flame = answer_of(s, flame_json, &everything);
	assert_int_equal(int_at(flame, "total"), 6000);
	assert_int_equal(json_array_size(json_object_get(flame, "nodes")), 5);
}

static void test_snapshots(void **state)
{
	struct scratch *s = *state;
	_cleanup_(json_decrefp) json_t *root = NULL, *few = NULL;
	json_t *list;

	record(s->path);
	root = answer_of(s, snapshots_json, &everything);
	assert_int_equal(json_array_size(json_object_get(root, "snapshots")), 20);
	few = answer_of(s, snapshots_json, &(struct answer_request){.all = true, .points = 2});
	list = json_object_get(few, "snapshots");
	assert_int_equal(json_array_size(list), 2);
	assert_float_equal(real_at(json_array_get(list, 1), "cpu_percent"), 99, 1e-9);
	assert_true(int_at(json_array_get(list, 0), "timestamp") <
		    int_at(json_array_get(list, 1), "timestamp"));
}

static void test_times_and_nodes(void **state)
{
	static const struct {
		struct answer_request request;
		int err;
	} cases[] = {{{.from = "yesterday"}, -EINVAL},
		{{.from = "2024-01-02", .to = "2024-01-01"}, -EINVAL}, {{.node = "other"}, -ESRCH},
		{{.node = "n1"}, 0}, {{.to = "1700000003"}, 0}};
	_cleanup_(json_decrefp) json_t *root = NULL;
	struct scratch *s = *state;
	json_t *window;

	record(s->path);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(ANSWER_BYTES);
		struct errinfo e = {0};

		assert_int_equal(
			answer_run(s->path, &cases[i].request, ops_json, 0, &b, &e), cases[i].err);
		assert_int_equal(b.len == 0, cases[i].err != 0);
	}
	root = answer_of(s, ops_json, &(struct answer_request){.since_ns = 3600 * NS_PER_S});
	window = json_object_get(root, "window");
	assert_int_equal(
		int_at(window, "from_ns"), T0 / (5 * S) * (5 * S)); /* no sooner than it began */
	assert_true(json_is_false(json_object_get(window, "live")));
}

/* Every question to a recording with nothing in it is answered. */
static void test_nothing(void **state)
{
	static answer_fn *const all[] = {overview_json, nodes_json, sessions_json, processes_json,
		capabilities_json, ops_json, series_json, graph_metrics_json, graph_events_json,
		chains_json, incidents_json, collectives_json, stacks_json, flame_json,
		snapshots_json, gpus_json, losses_json, overhead_json};
	struct scratch *s = *state;

	scratch_close(scratch_open(s->path));
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		json_decref(answer_of(s, all[i], &everything));
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		json_decref(answer_of(s, all[i], &(struct answer_request){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ops),
		TEST(test_series),
		TEST(test_stacks_say_the_line),
		TEST(test_overview_and_chains),
		TEST(test_an_unclean_end),
		TEST(test_collectives),
		TEST(test_stacks_and_flame),
		TEST(test_snapshots),
		TEST(test_times_and_nodes),
		TEST(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
