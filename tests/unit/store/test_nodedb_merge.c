/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_merge.c - several stores in one: nothing meets that does not belong together, nothing
 * is counted twice, clocks are found by collectives alone, and foreign values do no harm. */
#include "store_fixture.h"

#include <sys/socket.h>

#include "store/merge/nodedb_merge.h"
#include "store/schema/schema.h"
#include "base/hash.h"
#include "incident_fixture.h"

#define T0 INT64_C(1700000000000000000)
#define MS INT64_C(1000000)

struct files { /* names in the scratch folder */
	char a[128], b[128], c[128], out[128], again[128];
};

static struct files files_of(const struct scratch *s)
{
	struct files f;

	snprintf(f.a, sizeof(f.a), "%s/a.db", s->folder);
	snprintf(f.b, sizeof(f.b), "%s/b.db", s->folder);
	snprintf(f.c, sizeof(f.c), "%s/c.db", s->folder);
	snprintf(f.out, sizeof(f.out), "%s/out.db", s->folder);
	snprintf(f.again, sizeof(f.again), "%s/again.db", s->folder);
	return f;
}

static struct nodedb *open_node(const char *path, const char *node)
{
	struct errinfo err = {0};
	struct nodedb *db = NULL;

	if (nodedb_open(path, node, &db, &err) < 0)
		fail_msg("%s", err.text);
	return db;
}

static void put_events(struct nodedb *db, int64_t start, int count)
{
	for (int i = 0; i < count; i++) {
		struct event e = {.start.ns = start + i * MS,
			.dur_ns = 1000,
			.pid = 77,
			.tid = 77,
			.source = SOURCE_CUDA,
			.op = CUDA_LAUNCH,
			.weight = 1,
			.stack_hash = 5,
			.comm = "python3",
			.family = AF_INET,
			.peer_addr = {10, 0, 0, 1},
			.arg1 = 80};

		assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
	}
}

static void put_bucket(struct nodedb *db, int64_t bucket, uint64_t calls, uint64_t ns)
{
	struct aggregate a = {
		.bucket.ns = bucket, .pid = 77, .source = SOURCE_CUDA, .op = CUDA_LAUNCH};

	sketch_add(&a.sketch, ns, calls);
	assert_int_equal(nodedb_add_aggregate(db, false, &a, NULL), 0);
	assert_int_equal(nodedb_add_aggregate(db, true, &a, NULL), 0);
}

/* A recording with something in every table that has no key of a node of its own. */
static void make(const char *path, const char *node, int64_t start, int events)
{
	struct nodedb *db = open_node(path, node);
	struct session session = {.started.ns = start};
	struct host_sample sample = {.time.ns = T0,
		.cpu_pct = 5,
		.load5 = -1,
		.major_faults_per_s = -1,
		.psi_cpu_pct = -1,
		.psi_memory_pct = -1,
		.psi_io_pct = -1,
		.busiest_cpu_pct = -1,
		.busiest_cpu = -1,
		.swap_total_mb = -1,
		.steal_pct = -1,
		.iowait_pct = 2};
	struct cgroup_row group = {.id = 9, .path = "/x"};
	struct process process = {.pid = 77, .start_ticks = 5, .seen.ns = start};
	struct annotation label = {.time.ns = T0, .labels = "{\"phase\":\"a\"}"};
	struct overhead overhead = {.time.ns = T0, .share = 0.01, .launch_weight = 1};
	static const struct cpu_losses losses = {
		.count = 1, .rows = {{.source = SOURCE_CUDA, .cpu = 3, .count = 2}}};
	struct call_gap gap = {
		.pid = 7, .from = {T0}, .to = {T0 + 9 * MS}, .file = "/x/libcuda.so"};
	struct ledger_row row = {
		.start.ns = T0, .dur_ns = 5, .ns[LEDGER_PIPE] = 5, .pid = 77, .tid = 78};
	struct kernel_row kernel = {
		.pid = 77, .function = 0x1000, .launches = 3, .origin = KERNEL_HANDLE, .name = "k"};
	struct text_row range = {.hash = 11, .text = "step"};
	struct accounting books = {0};
	struct container_sample container;
	struct gpu_sample gpu;
	int64_t id;

	snprintf(process.comm, sizeof(process.comm), "on-%s", node);
	gpu_sample_init(&gpu);
	gpu.time.ns = T0;
	gpu.util_gpu_pct = 7;
	books.source[SOURCE_CUDA] = (struct account){.hits = 10, .stored = 10};
	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	put_events(db, start, events);
	put_bucket(db, T0, 10, 1000);
	assert_int_equal(nodedb_put(db, &sample, NULL), 0);
	assert_int_equal(nodedb_put(db, &gpu, NULL), 0);
	container_sample_init(&container, (wall_time){T0}, 9);
	container.cpus = 4;
	assert_int_equal(nodedb_put(db, &container, NULL), 0);
	assert_int_equal(nodedb_put_ledger(db, &row, NULL), 0);
	assert_int_equal(nodedb_put_kernel(db, &kernel, NULL), 0);
	assert_int_equal(nodedb_put(db, &range, NULL), 0);
	assert_int_equal(nodedb_put(db, &overhead, NULL), 0);
	assert_int_equal(nodedb_put(db, &group, NULL), 0);
	assert_int_equal(nodedb_put_process(db, &process, "train.py", NULL), 0);
	assert_int_equal(nodedb_put_annotation(db, &label, &id, NULL), 0);
	assert_int_equal(nodedb_put_accounting(db, session.id, &books, NULL), 0);
	assert_int_equal(nodedb_put_cpu_losses(db, session.id, &losses, NULL), 0);
	for (int i = 0; i < 2; i++) { /* two libraries of one process */
		gap.from.ns += MS;
		assert_int_equal(nodedb_put_call_gap(db, session.id, &gap, NULL), 0);
	}
	assert_int_equal(nodedb_put_pruned(db, session.id, "events", 3, T0, T0 + 1, NULL), 0);
	assert_int_equal(nodedb_session_end(db, session.id, (wall_time){start + MS}, NULL), 0);
	scratch_close(db);
}

static int merge(const struct merge_options *options, struct merge_result *ret, struct errinfo *err)
{
	static struct merge_result unused;

	if (!ret) {
		int r = nodedb_merge(options, &unused, err);

		merge_result_done(&unused);
		return r;
	}
	return nodedb_merge(options, ret, err);
}

#define SOURCES(...)                                                                               \
	.sources = (const char *const[]){__VA_ARGS__},                                             \
	.source_count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void must_merge(const struct merge_options *options, struct merge_result *ret)
{
	struct errinfo err = {0};

	if (merge(options, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static void test_nodes_stay_apart(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};
	const char *const counted[] = {"process_names", "processes", "system_snapshots",
		"gpu_samples", "cgroup_metadata", "annotations", "sessions", "event_aggregates",
		"event_aggregates_5s", "pruned", "overhead", "losses_by_cpu", "ledger",
		"container_samples"};

	make(f.a, "a", T0, 5);
	make(f.b, "b", T0, 7);
	must_merge(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out}, &res);
	assert_int_equal(res.nodes, 2);
	assert_int_equal(res.total.events.copied, 12);
	assert_int_equal(res.total.events.duplicates, 0);
	assert_int_equal(res.total.renumbered, 0);
	assert_int_equal(res.total.skipped, 0);
	assert_int_equal(res.total.unplaced, 0);
	merge_result_done(&res);
	for (size_t i = 0; i < ARRAY_SIZE(counted); i++) {
		char sql[96];

		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", counted[i]);
		assert_int_equal(scratch_int(f.out, sql), 2);
	}
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM ledger WHERE pipe = 5 AND"
					    " duration = 5 AND tid = 78 AND node IN ('a', 'b')"),
		2);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM container_samples WHERE cpus = 4"
					    " AND oom_kills IS NULL AND cgroup_id = 9"),
		2);
	assert_int_equal(scratch_int(f.out, "SELECT count(DISTINCT id) FROM events"), 12);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM events WHERE id = 'b:7' AND"
					    " detail = '10.0.0.1:80' AND comm = 'python3'"),
		1);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM process_names WHERE pid = 77 AND"
					    " name = 'on-' || node"),
		2);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM accounting a JOIN sessions s ON"
					    " s.id = a.session_id AND s.node = a.node"),
		scratch_int(f.out, "SELECT count(*) FROM accounting"));
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM node_clocks"), 0);
	assert_int_equal(scratch_int(f.out, "PRAGMA user_version"), NODEDB_SCHEMA);
}

/* A table that nobody thought of when it was added to the schema would be lost. */
static void test_no_table_is_forgotten(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	_cleanup_(sql_closep) sql_db *db = NULL; /* closed last, when no statement is left */
	_cleanup_(sql_finalizep) sql_stmt *names = NULL;
	const char *const elsewhere_filled[] = {"stack_traces", "causal_chains", "incidents",
		"coverage", "cgroup_schedstat", "collectives", "losses"};
	int tables = 0;

	make(f.a, "a", T0, 5);
	must_merge(&(struct merge_options){SOURCES(f.a), .output = f.out}, NULL);
	assert_int_equal(sql_open_read(f.a, false, &db, NULL, NULL), 0);
	assert_int_equal(sql_prepare(db,
				 "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT"
				 " LIKE 'sqlite_%'",
				 &names, NULL),
		0);
	while (sql_step(names, NULL) == 1) {
		const char *name = sql_column_text(names, 0, &(size_t){0});
		bool elsewhere = false; /* filled, and looked at, by another test */
		char sql[96];

		for (size_t i = 0; i < ARRAY_SIZE(elsewhere_filled); i++)
			elsewhere |= !strcmp(name, elsewhere_filled[i]);
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", name);
		if (scratch_int(f.a, sql) == 0 && !elsewhere)
			fail_msg("%s: no test puts a row into it and merges that", name);
		assert_true(scratch_int(f.out, sql) >= scratch_int(f.a, sql));
		tables++;
	}
	assert_true(tables > 15);
}

/* Readers look at one node, or at all. */
static void test_reading(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct nodedb_content c = {0};
	struct nodedb_node *nodes = NULL;
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	size_t count;

	make(f.a, "a", T0, 5);
	make(f.b, "it's b", T0, 7);
	must_merge(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out}, NULL);
	assert_int_equal(nodedb_nodes(f.out, &nodes, &count, &err), 0);
	assert_int_equal(count, 2);
	assert_string_equal(nodes[1].name, "it's b");
	free(nodes);
	assert_int_equal(
		nodedb_read(f.out, &(struct nodedb_filter){.scope.node = "it's b", .labels = true},
			&c, &err),
		0);
	assert_int_equal(c.event_count, 7);
	assert_int_equal(c.sample_count, 1);
	assert_int_equal(c.gpu_sample_count, 1);
	assert_int_equal(c.aggregate_count, 1);
	assert_int_equal(c.label_count, 1);
	assert_int_equal(c.home_count, 1);
	assert_true(c.has_books);
	assert_int_equal(c.books.source[SOURCE_CUDA].hits, 10);
	assert_int_equal(c.books.unseen.processes, 1);
	assert_int_equal(call_gap_ns(&c.books.unseen.longest), 8 * MS);
	assert_string_equal(c.node, "it's b");
	assert_int_equal(c.skipped_rows, 0);
	nodedb_content_done(&c);
	assert_int_equal(nodedb_read(f.out, NULL, &c, &err), 0);
	assert_int_equal(c.event_count, 12);
	assert_int_equal(c.books.unseen.processes, 2); /* the same number on two nodes */
	nodedb_content_done(&c);
	/* and nobody records into it */
	assert_int_equal(nodedb_open(f.out, "a", &db, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "merged recording"));
}

static void copy_file(const char *from, const char *to)
{
	size_t len;
	char *data = scratch_bytes(from, &len);

	scratch_write(to, data, len);
	free(data);
}

static void test_copies(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};

	make(f.a, "a", T0, 5);
	copy_file(f.a, f.b);
	must_merge(&(struct merge_options){SOURCES(f.a, f.b, f.a), .output = f.out}, &res);
	assert_int_equal(res.total.events.copied, 5);
	assert_int_equal(res.total.events.duplicates, 5);
	assert_int_equal(res.total.renumbered, 0);
	assert_int_equal(res.total.others.duplicates, res.total.others.copied);
	merge_result_done(&res);
	assert_int_equal(scratch_int(f.out, "SELECT sum(count) FROM event_aggregates_5s"), 10);
	assert_int_equal(scratch_int(f.out, "SELECT sum(hits) FROM accounting"), 10);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM annotations"), 1);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM merged_files"), 2);
	/* a merged file is such a copy too */
	must_merge(&(struct merge_options){SOURCES(f.out, f.a), .output = f.again}, &res);
	assert_int_equal(res.total.events.copied, 5);
	assert_int_equal(res.total.events.duplicates, 5);
	merge_result_done(&res);
}

/* A file that goes on where a rolled one ended: its part of the bucket is added. */
static void test_parts(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct nodedb_content c = {0};

	make(f.a, "a", T0, 5);
	make(f.b, "a", T0 + 10 * MS, 3);
	scratch_sql(f.b, "DELETE FROM events;"
			 "UPDATE event_aggregates_5s SET min_dur = 500, count = 10");
	must_merge(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out}, NULL);
	assert_int_equal(scratch_int(f.out, "SELECT count FROM event_aggregates_5s"), 20);
	assert_int_equal(scratch_int(f.out, "SELECT count FROM event_aggregates"), 20);
	assert_int_equal(scratch_int(f.out, "SELECT sum_dur FROM event_aggregates_5s"), 20000);
	assert_int_equal(scratch_int(f.out, "SELECT min_dur FROM event_aggregates_5s"), 500);
	assert_int_equal(nodedb_read(f.out, NULL, &c, NULL), 0);
	assert_int_equal(c.aggregate_count, 1);
	assert_int_equal(c.aggregates[0].sketch.count, 20); /* the sketch agrees */
	nodedb_content_done(&c);
}

/* Two recordings of one node each count from 1: their events are different ones. */
static void test_renumbered(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};

	make(f.a, "a", T0, 5);
	make(f.b, "a", T0 + 3600 * 1000 * MS, 7);
	copy_file(f.b, f.c);
	must_merge(&(struct merge_options){SOURCES(f.a, f.b, f.c), .output = f.out}, &res);
	assert_int_equal(res.total.events.copied, 12);
	assert_int_equal(res.total.events.duplicates, 7);
	assert_int_equal(res.total.renumbered, 5);
	assert_int_equal(scratch_int(f.out, "SELECT count(DISTINCT id) FROM events"), 12);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM sessions"), 2);
	merge_result_done(&res);
}

static void test_stacks(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};
	char *frames;

	make(f.a, "a", T0, 1);
	make(f.b, "b", T0, 1);
	scratch_sql(f.a, "INSERT INTO stack_traces VALUES (5, '[\"0x1\",\"0x2\"]', '', ''),"
			 " (6, '', '[{\"s\":\"same\"}]', ''), (7, '', 'nonsense', ''),"
			 " (8, '', '[{\"s\":\"f\"},{\"s\":\"g\"}]', '')");
	scratch_sql(f.b, "INSERT INTO stack_traces VALUES (5, '', '[{\"s\":\"launch\"}]', ''),"
			 " (6, '', '[{\"s\":\"same\"}]', ''), (8, '', '[{\"s\":\"h\"}]', '')");
	must_merge(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out}, &res);
	assert_int_equal(res.total.stacks.copied, 3);
	assert_int_equal(res.total.stacks.duplicates, 3);
	assert_int_equal(res.total.differing_stacks, 2);
	assert_int_equal(res.total.skipped, 1);
	frames = scratch_text(f.out, "SELECT frames FROM stack_traces WHERE hash = 5");
	assert_string_equal(frames, "[{\"s\":\"launch\"}]");
	free(frames);
	assert_int_equal(
		scratch_int(f.out, "SELECT length(frames) FROM stack_traces WHERE hash = 8"), 21);
	merge_result_done(&res);
}

static void test_verdicts(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};
	static const char chain[] =
		"INSERT INTO causal_chains (id, detected_at, severity, summary, root_cause,"
		" explanation, node) VALUES ('a:tail', %lld, 'HIGH', 's', 'r', 'e', 'a'),"
		" ('plain', 5, 'LOW', 's', 'r', 'e', 'a')";
	char sql[512];

	make(f.a, "a", T0, 1);
	make(f.b, "a", T0 + 3600 * 1000 * MS, 1);
	snprintf(sql, sizeof(sql), chain, (long long)T0);
	scratch_sql(f.a, sql);
	snprintf(sql, sizeof(sql), chain, (long long)T0 + 9);
	scratch_sql(f.b, sql);
	must_merge(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out}, &res);
	assert_int_equal(res.total.chains.copied, 3);
	assert_int_equal(res.total.chains.duplicates, 1);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM causal_chains WHERE id IN"
					    " ('a:tail', 'a:tail#2', 'a:plain')"),
		3);
	merge_result_done(&res);
}

static void put_incident(const char *path, const struct incident *i)
{
	struct nodedb *db = open_node(path, "a");

	assert_int_equal(nodedb_put_incident(db, i, i->last, NULL), 0);
	scratch_close(db);
}

/* The one that was seen until later has more calls and replaces the other, whichever comes first; a file
 * without a column of today has its default. */
static void test_incidents(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct incident i = {.id = "x",
		.pid = 7,
		.comm = "py",
		.first = {T0},
		.last = {T0 + 5},
		.calls = 50,
		.confidence = 0.5,
		.summary = "short"};
	char *late;

	make(f.a, "a", T0, 1);
	make(f.b, "a", T0 + 3600 * 1000 * MS, 1);
	put_incident(f.a, &i);
	i.calls = 90;
	i.last.ns = T0 + 9;
	i.confidence = 0.75;
	snprintf(i.summary, sizeof(i.summary), "long");
	put_incident(f.b, &i);
	scratch_sql(f.b, "ALTER TABLE incidents DROP COLUMN explained");
	must_merge(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out}, NULL);
	must_merge(&(struct merge_options){SOURCES(f.b, f.a), .output = f.again}, NULL);
	late = scratch_text(f.out,
		"SELECT id || '|' || calls || '|' || (last_seen - first_seen) || '|' ||"
		" confidence || '|' || summary || '|' || comm || '|' || explained"
		" FROM incidents");
	assert_string_equal(late, "a:x|90|9|0.75|long|py|0.0");
	free(late);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM incidents"), 1);
	late = scratch_text(
		f.again, "SELECT count(*) || '|' || calls || '|' || summary FROM incidents");
	assert_string_equal(late, "1|90|long");
	free(late);
}

/* Also of one that is added tomorrow. */
static void test_every_field_of_an_incident(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct incident i;
	int compared = 0;

	make(f.a, "a", T0, 1);
	incident_fill(&i);
	put_incident(f.a, &i);
	must_merge(&(struct merge_options){SOURCES(f.a), .output = f.out}, NULL);
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++) {
		_cleanup_free_ char *from = NULL, *to = NULL;
		char sql[128];

		if (!incident_fields[n].column)
			continue;
		snprintf(sql, sizeof(sql), "SELECT quote(%s) FROM incidents",
			incident_fields[n].column);
		from = scratch_text(f.a, sql);
		to = scratch_text(f.out, sql);
		assert_string_equal(to, from);
		compared++;
	}
	assert_true(compared >= 34);
}

/* ---- clocks ---- */

struct ranks {
	const char *node;
	int64_t ahead_ns;  /* its clock */
	int64_t early_ns;  /* it comes so long before the last, which nobody may take for skew */
	int64_t jitter_ns; /* of waking up */
};

static void make_rank(const char *path, const struct ranks *r, int rank, int count, const char *op)
{
	struct nodedb *db = open_node(path, r->node);
	struct session session = {.started.ns = T0 + r->ahead_ns - rank * 1000 * MS};
	char sql[64];

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	put_events(db, T0 + r->ahead_ns, 1);
	assert_int_equal(nodedb_batch_begin(db, NULL), 0);
	for (int i = 0; i < count; i++) {
		int64_t left = T0 + i * 10 * MS;
		struct event e = {.start.ns = left - r->early_ns + r->ahead_ns,
			.dur_ns = 20000,
			.pid = 9,
			.tid = 9,
			.source = SOURCE_NCCL,
			.op = NCCL_ALL_REDUCE};
		struct collective c = {.comm_hash = 0xabc,
			.seq = (uint64_t)i + 1,
			.rank = rank,
			.nranks = 3,
			.datatype = -1,
			.reduce_op = -1,
			.root = -1,
			.peer = -1};

		c.wait_ns = r->early_ns - 20000 +
			    (int64_t)(hash_number((uint64_t)(i * 31 + rank)) % 100) * r->jitter_ns /
				    100;
		if ((i + rank) % 10 == 3) /* now and then something took long to wake up */
			c.wait_ns += 40 * MS;
		assert_int_equal(nodedb_put_collective(db, &e, &c, NULL), 0);
	}
	assert_int_equal(nodedb_batch_commit(db, NULL), 0);
	scratch_close(db);
	if (op) {
		snprintf(sql, sizeof(sql), "UPDATE collectives SET op = '%s'", op);
		scratch_sql(path, sql);
	}
}

static const struct merge_clock *clock_of(const struct merge_result *r, const char *node)
{
	for (size_t i = 0; i < r->clock_count; i++)
		if (!strcmp(r->clocks[i].node, node))
			return &r->clocks[i];
	fail_msg("no clock of %s", node);
	return NULL;
}

static void check_offset(const struct merge_clock *c, int64_t want)
{
	assert_string_equal(c->reference, "a");
	assert_true(c->collectives >= 90);
	assert_in_range(c->error_ns, 1, 100000);
	if (llabs(c->offset_ns - want) > 5 * (int64_t)c->error_ns + 10000)
		fail_msg("%s: %lld ± %llu, not %lld", c->node, (long long)c->offset_ns,
			(unsigned long long)c->error_ns, (long long)want);
}

static void test_clocks(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};
	static const struct ranks a = {"a", 0, 5 * MS, 100000}, b = {"b", 50 * MS, MS, 100000},
				  c = {"c", -3 * MS, 2 * MS, 100000};

	make_rank(f.a, &a, 0, 100, NULL);
	make_rank(f.b, &b, 1, 100, NULL);
	make_rank(f.c, &c, 2, 100, NULL);
	must_merge(&(struct merge_options){SOURCES(f.a, f.b, f.c), .output = f.out}, &res);
	assert_int_equal(res.clock_count, 2);
	check_offset(clock_of(&res, "b"), 50 * MS);
	check_offset(clock_of(&res, "c"), -3 * MS);
	assert_false(res.clocks[0].applied);
	merge_result_done(&res);
	/* only told: every time is the node's own */
	assert_int_equal(
		scratch_int(f.out, "SELECT timestamp FROM events WHERE node = 'b'"), T0 + 50 * MS);
	assert_int_equal(
		scratch_int(f.out, "SELECT count(*) FROM node_clocks WHERE applied = 0"), 2);
}

static void test_align(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};
	static const struct ranks a = {"a", 0, 5 * MS, 0}, b = {"b", 50 * MS, MS, 0};
	int64_t offset;

	make_rank(f.a, &a, 0, 100, NULL);
	make_rank(f.b, &b, 1, 100, NULL);
	must_merge(
		&(struct merge_options){SOURCES(f.a, f.b), .output = f.out, .align = true}, &res);
	assert_true(res.clocks[0].applied);
	offset = res.clocks[0].offset_ns;
	assert_in_range(offset, 50 * MS - 1000, 50 * MS + 1000);
	merge_result_done(&res);
	assert_int_equal(scratch_int(f.out, "SELECT timestamp FROM events WHERE node = 'b'"),
		T0 + 50 * MS - offset);
	assert_int_equal(
		scratch_int(f.out, "SELECT min(timestamp) FROM collectives WHERE node = 'b'"),
		T0 - MS + 50 * MS - offset);
	assert_int_equal(scratch_int(f.out, "SELECT started_at FROM sessions WHERE node = 'b'"),
		T0 + 50 * MS - 1000 * MS - offset);
	/* The moved file and the raw one are the same recording, and times are raw again. */
	must_merge(&(struct merge_options){SOURCES(f.out, f.b), .output = f.again}, &res);
	assert_int_equal(res.total.events.copied, 2);
	assert_int_equal(res.total.events.duplicates, 1);
	assert_int_equal(res.total.renumbered, 0);
	assert_int_equal(scratch_int(f.again, "SELECT timestamp FROM events WHERE node = 'b'"),
		T0 + 50 * MS);
	merge_result_done(&res);
}

/* Different times of starting, few collectives, or such in which nobody waits say nothing. */
static void test_no_clocks(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};
	static const struct ranks a = {"a", 0, 5 * MS, 0}, b = {"b", 50 * MS, MS, 0};
	static const struct {
		int count;
		const char *op;
	} cases[] = {{0, NULL}, {7, NULL}, {100, "Bcast"}, {100, "AllGather"}};

	make_rank(f.a, &a, 0, 100, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		make_rank(f.b, &b, 1, cases[i].count, cases[i].op); /* AllGather: not what a did */
		must_merge(
			&(struct merge_options){SOURCES(f.a, f.b), .output = f.out, .align = true},
			&res);
		assert_int_equal(res.clock_count, 1);
		assert_int_equal(res.clocks[0].collectives, 0);
		assert_false(res.clocks[0].applied);
		assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM node_clocks"), 0);
		merge_result_done(&res);
		unlink(f.out);
		unlink(f.b);
	}
}

/* ---- refusals ---- */

static void must_refuse(const struct merge_options *options, int want, const char *words)
{
	struct errinfo err = {0};
	int r = merge(options, NULL, &err);

	if (r != want || !strstr(err.text, words))
		fail_msg("%d, not %d: %s", r, want, err.text);
}

static void test_output(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	char link_name[128];
	size_t len;
	char *data;

	make(f.a, "a", T0, 5);
	snprintf(link_name, sizeof(link_name), "%s/link.db", s->folder);
	assert_int_equal(symlink(f.a, link_name), 0);
	must_refuse(&(struct merge_options){SOURCES(f.a), .output = f.a, .replace = true}, -EINVAL,
		"one of the files to merge");
	must_refuse(&(struct merge_options){SOURCES(f.a), .output = link_name, .replace = true},
		-EINVAL, "one of the files to merge");
	unlink(link_name);
	scratch_write(f.out, "precious", 8);
	must_refuse(&(struct merge_options){SOURCES(f.a), .output = f.out}, -EEXIST, "--force");
	must_refuse(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out, .replace = true},
		-ENOENT, "b.db");
	scratch_write(f.b, "not a database at all, no", 25);
	must_refuse(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out, .replace = true},
		-EBADMSG, "b.db");
	data = scratch_bytes(f.out, &len);
	assert_int_equal(len, 8); /* what was there is there still, and nothing besides */
	free(data);
	assert_int_equal(scratch_files(s->folder, false), 3);
	must_merge(&(struct merge_options){SOURCES(f.a), .output = f.out, .replace = true}, NULL);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM events"), 5);
	assert_int_equal(scratch_files(s->folder, false), 3);
}

static bool stop(void *arg, size_t source, uint64_t events)
{
	return false;
}

static void test_stopped(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct nodedb *db = open_node(f.a, "a");

	assert_int_equal(nodedb_batch_begin(db, NULL), 0);
	put_events(db, T0, 70000);
	assert_int_equal(nodedb_batch_commit(db, NULL), 0);
	scratch_close(db);
	must_refuse(&(struct merge_options){SOURCES(f.a), .output = f.out, .report = stop}, -EINTR,
		"stopped");
	assert_int_equal(scratch_files(s->folder, false), 1);
}

static void test_force_node(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};

	make(f.a, "", T0, 5);
	make(f.b, "b", T0, 1);
	must_refuse(
		&(struct merge_options){SOURCES(f.a), .output = f.out}, -EINVAL, "--force-node");
	must_refuse(&(struct merge_options){SOURCES(f.a, f.b), .output = f.out, .force_node = "x"},
		-EINVAL, "one file");
	must_refuse(&(struct merge_options){SOURCES(f.a), .output = f.out, .force_node = "x:y"},
		-EINVAL, "no colon");
	must_merge(&(struct merge_options){SOURCES(f.a), .output = f.out, .force_node = "x"}, &res);
	assert_int_equal(res.total.events.copied, 5);
	merge_result_done(&res);
	assert_int_equal(
		scratch_int(f.out, "SELECT count(*) FROM events WHERE id = 'x:' || seq"), 5);
	must_refuse(&(struct merge_options){SOURCES(f.out), .output = f.again, .force_node = "y"},
		-EINVAL, "several named nodes");
	unlink(f.out);
	must_merge(&(struct merge_options){SOURCES(f.b), .output = f.out, .force_node = "renamed"},
		NULL);
	assert_int_equal(
		scratch_int(f.out, "SELECT count(*) FROM process_names WHERE node = 'renamed'"), 1);
}

/* Rows that make no sense are left out and counted, the others come. */
static void test_hostile(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};

	make(f.a, "a", T0, 3);
	scratch_sql(f.a,
		"PRAGMA ignore_check_constraints = 1;"
		"INSERT INTO events (timestamp, pid, tid, source, op, duration, node, seq) VALUES"
		" ('yesterday', 1, 1, 1, 1, 1, 'a', 101), (1, -5, 1, 1, 1, 1, 'a', 102),"
		" (1, 1, 1, 99, 1, 1, 'a', 103), (1, 1, 1, 1, 1, -1, 'a', 104),"
		" (9223372036854775807, 1, 1, 1, 1, 1, 'a', 105), (1, 1, 1, 1, 1.5, 1, 'a', 106),"
		" (1, 1, 1, 1, 1, 1, x'00ff', 107), (1, 4294967296, 1, 1, 1, 1, 'a', 108);"
		"INSERT INTO system_snapshots (timestamp, cpu_pct, mem_pct, mem_avail, swap_mb,"
		" load_avg, node) VALUES (5, 9e999, 1, 1, 1, 1, 'a'), (6, 1, 1, -1, 1, 1, 'a');"
		"INSERT INTO event_aggregates_5s (bucket, source, op, count, min_dur, max_dur,"
		" sketch) VALUES (1, 1, 1, 5, 0, 0, x'ff'), (2, 1, 1, -5, 0, 0, NULL);"
		"INSERT INTO annotations (timestamp, labels) VALUES (1, x'00'),"
		" (1, printf('%.20000c', 'x'));"
		"CREATE TRIGGER t BEFORE INSERT ON events BEGIN DELETE FROM sessions; END;");
	must_merge(&(struct merge_options){SOURCES(f.a), .output = f.out}, &res);
	assert_int_equal(res.total.events.copied, 3);
	assert_int_equal(res.total.skipped, 14);
	merge_result_done(&res);
	assert_int_equal(scratch_int(f.out, "SELECT count(*) FROM sessions"), 1);
	assert_int_equal(
		scratch_int(f.out, "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'"), 0);
}

/* Numbers that no ingero gave get new ones; names with odd characters are data. */
static void test_odd_ids(void **state)
{
	struct scratch *s = *state;
	struct files f = files_of(s);
	struct merge_result res = {0};

	make(f.a, "a'; DROP TABLE events; --", T0, 2);
	scratch_sql(f.a, "INSERT INTO events (timestamp, pid, tid, source, op, duration, node, seq)"
			 " SELECT timestamp, 1, 1, 1, 1, 1, node, -seq FROM events;"
			 "INSERT INTO events (timestamp, pid, tid, source, op, duration, node, seq)"
			 " SELECT 7, 1, 1, 1, 1, 1, node, 9223372036854775807 FROM events LIMIT 1");
	must_merge(&(struct merge_options){SOURCES(f.a), .output = f.out}, &res);
	assert_int_equal(res.total.events.copied, 5);
	assert_int_equal(res.total.renumbered, 3);
	assert_int_equal(scratch_int(f.out, "SELECT count(DISTINCT id) FROM events"), 5);
	merge_result_done(&res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nodes_stay_apart),
		TEST(test_no_table_is_forgotten),
		TEST(test_reading),
		TEST(test_copies),
		TEST(test_parts),
		TEST(test_renumbered),
		TEST(test_stacks),
		TEST(test_verdicts),
		TEST(test_incidents),
		TEST(test_every_field_of_an_incident),
		TEST(test_clocks),
		TEST(test_align),
		TEST(test_no_clocks),
		TEST(test_output),
		TEST(test_stopped),
		TEST(test_force_node),
		TEST(test_hostile),
		TEST(test_odd_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
