/* SPDX-License-Identifier: Apache-2.0 */
/* test_merged.c - the published sample recordings merged: what is known of their sum. */
#include "published.h"

#include "store/merge/nodedb_merge.h"

#define SAMPLES_MAX 3

struct samples {
	struct scratch *scratch;
	char paths[SAMPLES_MAX][128];
	const char *list[SAMPLES_MAX];
	struct merge_report reports[SAMPLES_MAX];
	size_t count;
};

/* Copies of the samples, read-only, in the scratch folder. */
static void take(struct samples *s, struct scratch *scratch, size_t count, const char *const *names)
{
	s->scratch = scratch;
	s->count = count;
	for (size_t i = 0; i < count; i++) {
		copy_of(scratch, names[i]);
		assert_int_equal(chmod(scratch->folder, 0755), 0);
		snprintf(s->paths[i], sizeof(s->paths[i]), "%s/%s", scratch->folder, names[i]);
		assert_int_equal(rename(scratch->path, s->paths[i]), 0);
		s->list[i] = s->paths[i];
	}
}

static void keep(void *arg, size_t source, const struct merge_report *r)
{
	struct samples *s = arg;

	s->reports[source] = *r;
}

static struct merge_result merge(struct samples *s, const char *node)
{
	struct merge_options options = {.sources = s->list,
		.source_count = s->count,
		.output = s->scratch->path,
		.force_node = node,
		.done = keep,
		.arg = s};
	struct merge_result res = {0};
	struct errinfo err = {0};

	if (nodedb_merge(&options, &res, &err) < 0)
		fail_msg("%s", err.text);
	return res;
}

static void check_tally(
	const struct merge_report *r, uint64_t events, uint64_t chains, uint64_t stacks)
{
	assert_int_equal(r->events.copied, events);
	assert_int_equal(r->chains.copied, chains);
	assert_int_equal(r->stacks.copied, stacks);
	assert_int_equal(r->skipped, 0);
	assert_int_equal(r->renumbered, 0);
	assert_int_equal(r->events.duplicates, 0);
}

static void test_cluster(void **state)
{
	static const char *const names[] = {
		"sample-gpu-node-01.db", "sample-gpu-node-02.db", "sample-gpu-node-03.db"};
	static const struct {
		const char *table;
		int64_t rows;
	} tables[] = {{"events", 600}, {"causal_chains", 6}, {"stack_traces", 9}, {"sessions", 3},
		{"system_snapshots", 5}, {"process_names", 16}, {"cgroup_metadata", 3},
		{"cgroup_schedstat", 15}, {"event_aggregates", 0}, {"node_clocks", 0}};
	struct samples s = {0};
	struct merge_result res;

	take(&s, *state, 3, names);
	res = merge(&s, NULL);
	check_tally(&s.reports[0], 200, 4, 8);
	check_tally(&s.reports[1], 200, 1, 1);
	check_tally(&s.reports[2], 200, 1, 0);
	check_tally(&res.total, 600, 6, 9);
	assert_int_equal(res.nodes, 3);
	/* Three runs at three times: that is no skew. */
	for (size_t i = 0; i < res.clock_count; i++)
		assert_int_equal(res.clocks[i].collectives, 0);
	merge_result_done(&res);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		char sql[96];

		snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[i].table);
		if (scratch_int(s.scratch->path, sql) != tables[i].rows)
			fail_msg("%s: %lld rows", tables[i].table,
				(long long)scratch_int(s.scratch->path, sql));
	}
	assert_int_equal(
		scratch_int(s.scratch->path, "SELECT count(DISTINCT id) FROM events"), 600);
	/* The name that the published merge lost. */
	assert_int_equal(
		scratch_int(s.scratch->path, "SELECT count(*) FROM process_names WHERE pid = 96"),
		2);
}

/* Row for row what the published merge made, but for start times, which it has at the end. */
static void test_rows(void **state)
{
	static const char *const names[] = {
		"sample-gpu-node-01.db", "sample-gpu-node-02.db", "sample-gpu-node-03.db"};
	struct samples s = {0}, published = {0};
	_cleanup_(sql_closep) sql_db *a = NULL, *b = NULL;
	_cleanup_(sql_finalizep) sql_stmt *theirs = NULL, *ours = NULL;
	static const char *const cluster[] = {"sample-cluster.db"};
	struct merge_result res;
	int rows = 0;

	take(&s, *state, 3, names);
	res = merge(&s, NULL);
	merge_result_done(&res);
	assert_int_equal(rename(s.scratch->path, s.paths[0]), 0);
	take(&published, *state, 1, cluster);
	assert_int_equal(sql_open_read(published.paths[0], false, &a, NULL, NULL), 0);
	assert_int_equal(sql_open_read(s.paths[0], false, &b, NULL, NULL), 0);
	assert_int_equal(sql_prepare(a,
				 "SELECT id, timestamp - CASE WHEN source IN (5, 7) OR (source = 3"
				 " AND op = 1) THEN duration ELSE 0 END, pid, tid, source, op,"
				 " duration, arg0, arg1, ret_code, stack_hash, node, cgroup_id"
				 " FROM events ORDER BY id",
				 &theirs, NULL),
		0);
	assert_int_equal(sql_prepare(b,
				 "SELECT id, timestamp, pid, tid, source, op, duration, arg0, arg1,"
				 " ret_code, stack_hash, node, cgroup_id FROM events ORDER BY id",
				 &ours, NULL),
		0);
	while (sql_step(theirs, NULL) > 0) {
		assert_int_equal(sql_step(ours, NULL), 1);
		for (int i = 0; i < 13; i++)
			assert_string_equal(
				sql_column_text(theirs, i, NULL), sql_column_text(ours, i, NULL));
		rows++;
	}
	assert_int_equal(rows, 600);
}

static void test_legacy(void **state)
{
	static const char *const names[] = {"vllm-37343-logprobs-amplification.db"};
	struct samples s = {0};
	struct merge_options options = {.source_count = 1};
	struct errinfo err = {0};
	struct merge_result res = {0};

	take(&s, *state, 1, names);
	options.sources = s.list;
	options.output = s.scratch->path;
	assert_int_equal(nodedb_merge(&options, &res, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--force-node"));
	res = merge(&s, "X");
	check_tally(&res.total, 10869, 6, 110);
	merge_result_done(&res);
	assert_int_equal(scratch_int(s.scratch->path, "SELECT min(seq) FROM events"), 1);
	assert_int_equal(
		scratch_int(s.scratch->path, "SELECT count(*) FROM events WHERE id = 'X:10869'"),
		1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_cluster),
		TEST(test_rows),
		TEST(test_legacy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
