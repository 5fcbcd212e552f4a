/* SPDX-License-Identifier: Apache-2.0 */
/* test_figures.c - counts, percentiles and totals of the published databases, to the nanosecond:
 * the expected values were computed from the files by other means. */
#include "published.h"

#include "answer/ops.h"
#include "sql/sql_worker.h"
#include "wire/names.h"

#define EMPTY_CACHE "pytorch-173382-empty-cache.db"
#define VLLM        "vllm-37343-logprobs-amplification.db"

struct figure {
	const char *op;
	uint64_t n, p50, p95, p99, min, max;
};

struct figures {
	const char *name;
	size_t ops;
	struct figure rows[14];
};

static const struct figures files[] = {
	{EMPTY_CACHE, 13,
		{{"cudaMalloc", 45, 224308, 261010, 348903, 101214, 348903},
			{"cudaFree", 40, 415893, 1046065, 1904932, 393763, 1904932},
			{"cudaLaunchKernel", 915, 16152, 98514, 11552580, 6290, 68814310},
			{"cudaStreamSync", 405, 3220, 14971, 22201, 1710, 27531},
			{"cudaMemcpyAsync", 310, 26941, 914813, 985125, 4150, 31292901},
			{"cuLaunchKernel", 1520, 5220, 19490, 28441, 3790, 5453549},
			{"cuMemAlloc", 49, 207767, 261110, 306581, 6140, 306581},
			{"sched_switch", 116, 14361, 42787465, 95128144, 2710, 4061087260},
			{"net_recv", 21, 6381, 5890711246, 17954743567, 551, 17954743567},
			{"net_send", 1, 15230, 15230, 15230, 15230, 15230},
			{"sched_wakeup", 47, 0, 0, 0, 0, 0}, {"process_exit", 11, 0, 0, 0, 0, 0},
			{"process_fork", 6, 0, 0, 0, 0, 0}}},
	{VLLM, 11,
		{{"cudaLaunchKernel", 550, 20300, 152152, 5079382, 5749, 70847581},
			{"cudaStreamSync", 24, 4460, 15640, 16880, 4160, 16880},
			{"cudaDeviceSync", 10, 19709, 4720968, 4720968, 14109, 4720968},
			{"cudaMemcpyAsync", 734, 30871, 49180, 63529, 4390, 8837610},
			{"cuLaunchKernel", 1672, 18340, 40451, 137192, 3451, 604307},
			{"cuCtxSynchronize", 10, 7269, 4711397, 4711397, 5209, 4711397},
			{"sched_switch", 7757, 31900, 212543, 100119224, 1760, 4470958409},
			{"net_recv", 63, 90550, 175142, 250052, 4220, 250052},
			{"net_send", 31, 59170, 79681, 96791, 7010, 96791},
			{"sched_wakeup", 11, 0, 0, 0, 0, 0}, {"process_fork", 7, 0, 0, 0, 0, 0}}},
	{"sample-gpu-node-01.db", 3,
		{{"sched_switch", 99, 762296, 1140305, 1207757, 10437, 1207757},
			{"block_read", 98, 757932, 1128943, 1197837, 460370, 1197837},
			{"block_write", 3, 856413, 2235453, 2235453, 464671, 2235453}}},
	{"sample-gpu-node-02.db", 3,
		{{"sched_switch", 62, 50061156, 50069015, 50077951, 50040194, 50077951},
			{"cuMemAlloc", 40, 119866, 139704, 154134, 107911, 154134},
			{"block_write", 98, 968944, 1359227, 1540832, 816532, 1540832}}},
	{"sample-gpu-node-03.db", 3,
		{{"sched_switch", 58, 50067444, 50078255, 50080227, 50040589, 50080227},
			{"cuMemAlloc", 36, 180982, 210018, 212811, 152982, 212811},
			{"block_write", 106, 1025558, 1392494, 1434088, 782508, 1484725}}},
	{"sample-cluster.db", 4,
		{{"sched_switch", 219, 50058359, 50075169, 50078255, 10437, 50080227},
			{"cuMemAlloc", 76, 139704, 206246, 212811, 107911, 212811},
			{"block_read", 98, 757932, 1128943, 1197837, 460370, 1197837},
			{"block_write", 207, 982326, 1389000, 1491811, 464671, 2235453}}},
};

static void check_figures(const struct figures *f, const struct op_stat *stats, size_t count)
{
	assert_int_equal(count, f->ops);
	for (size_t i = 0; i < f->ops; i++) {
		const struct figure *want = &f->rows[i];
		const struct wire_op_row *row = wire_op_by_name(want->op);
		const struct op_stat *got = NULL;

		assert_non_null(row);
		for (size_t k = 0; k < count; k++)
			if (stats[k].source == row->source && stats[k].op == row->op)
				got = &stats[k];
		if (!got || got->rows != want->n || got->calls != want->n ||
			got->p50_ns != want->p50 || got->p95_ns != want->p95 ||
			got->p99_ns != want->p99 || got->min_ns != want->min ||
			got->max_ns != want->max)
			fail_msg("%s: %s: n %lu p50 %lu p95 %lu p99 %lu", f->name, want->op,
				got ? got->rows : 0, got ? got->p50_ns : 0, got ? got->p95_ns : 0,
				got ? got->p99_ns : 0);
	}
}

static void test_percentiles(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_free_ struct op_stat *stats = NULL;
		struct nodedb_content c;
		struct errinfo err = {0};
		size_t count;

		copy_of(s, files[i].name);
		assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
		assert_int_equal(op_stat_run(c.events, c.event_count, &stats, &count), 0);
		check_figures(&files[i], stats, count);
		nodedb_content_done(&c);
	}
}

/* The newest 1000 rows of one op, and the newest 10,000 of all. */
static void test_newest(void **state)
{
	static const struct {
		const char *file, *op;
		size_t last;
		struct figure want;
	} trials[] = {
		{EMPTY_CACHE, "cuLaunchKernel", 1000, {"", 1000, 5150, 20321, 32731, 0, 0}},
		{VLLM, "cuLaunchKernel", 1000, {"", 1000, 20661, 56552, 138122, 0, 0}},
		{VLLM, "sched_switch", 1000, {"", 1000, 34400, 178543, 290655, 0, 0}},
		{EMPTY_CACHE, "cudaFree", 0, {"", 40, 415893, 1046065, 1904932, 0, 0}},
		{VLLM, "cudaMemcpyAsync", 0, {"", 734, 30871, 49180, 63529, 0, 0}},
	};
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(trials); i++) {
		const struct wire_op_row *op = wire_op_by_name(trials[i].op);
		struct nodedb_filter f = {
			.scope.source = op->source, .scope.op = op->op, .last = trials[i].last};
		_cleanup_free_ struct op_stat *stats = NULL;
		struct nodedb_content c;
		struct errinfo err = {0};
		size_t count;

		copy_of(s, trials[i].file);
		assert_int_equal(nodedb_read(s->path, &f, &c, &err), 0);
		assert_int_equal(op_stat_run(c.events, c.event_count, &stats, &count), 0);
		assert_int_equal(count, 1);
		assert_int_equal(stats->rows, trials[i].want.n);
		assert_int_equal(stats->p50_ns, trials[i].want.p50);
		assert_int_equal(stats->p95_ns, trials[i].want.p95);
		assert_int_equal(stats->p99_ns, trials[i].want.p99);
		nodedb_content_done(&c);
	}
}

/* By SQL as `ingero query` runs it. */
static int64_t ask(struct scratch *s, const char *sql)
{
	static const struct sql_guard_rules rules = {
		.timeout_ns = 10 * NS_PER_S, .rows_max = 100, .bytes_max = 1 << 20};
	_cleanup_buf_ struct buf hint = BUF_INIT(4096);
	struct sql_table t = {0};
	struct errinfo err = {0};
	int64_t v;

	if (nodedb_ask(s->path, sql, &rules, &t, &hint, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
	assert_int_equal(t.row_count, 1);
	v = sql_table_cell(&t, 0, 0)->i;
	sql_table_done(&t);
	return v;
}

static void test_inventory(void **state)
{
	static const char *const tables[] = {"events", "stack_traces", "causal_chains",
		"system_snapshots", "sessions", "process_names", "event_aggregates",
		"cgroup_metadata", "cgroup_schedstat", "sources", "ops", "schema_info"};
	static const struct {
		const char *name;
		int64_t rows[12];
		int64_t span_ms;
	} wanted[] = {
		{EMPTY_CACHE, {3486, 780, 4, 20, 1, 10, 43, 5, 221, 7, 30, 13}, 28339},
		{VLLM, {10869, 110, 6, 52, 1, 9, 0, 3, 36, 7, 30, 13}, 59732},
		{"sample-gpu-node-01.db", {200, 8, 4, 1, 1, 10, 0, 1, 8, 7, 30, 14}, 162},
		{"sample-gpu-node-02.db", {200, 1, 1, 2, 1, 3, 0, 1, 3, 7, 30, 14}, 3372},
		{"sample-gpu-node-03.db", {200, 1, 1, 2, 1, 3, 0, 1, 4, 7, 30, 14}, 2924},
		{"sample-cluster.db", {600, 9, 6, 5, 3, 15, 0, 3, 0, 7, 30, 14}, 519734},
	};
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		copy_of(s, wanted[i].name);
		for (size_t k = 0; k < ARRAY_SIZE(tables); k++) {
			char sql[128];

			snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[k]);
			if (ask(s, sql) != wanted[i].rows[k])
				fail_msg("%s: %s has %lld rows", wanted[i].name, tables[k],
					(long long)ask(s, sql));
		}
		assert_int_equal(ask(s, "SELECT (max(timestamp) - min(timestamp) + 500000) / "
					"1000000 FROM events"),
			wanted[i].span_ms);
	}
}

/* W7: rows of I/O, sockets and switches carry their end in these files; all start before it. */
static void test_starts(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct nodedb_content c;
		struct errinfo err = {0};
		uint64_t at_end = 0, sum = 0;

		copy_of(s, files[i].name);
		assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
		for (size_t k = 0; k < c.event_count; k++) {
			const struct event *e = &c.events[k];

			at_end += e->source == SOURCE_IO || e->source == SOURCE_NET ||
				  (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH);
			sum += (uint64_t)e->start.ns % 1000000007;
		}
		assert_true(at_end > 0);
		assert_int_equal(sum,
			ask(s, "SELECT sum((timestamp - CASE WHEN source IN (5, 7) OR source = 3 "
			       "AND op = 1 THEN duration ELSE 0 END) % 1000000007) FROM events"));
		nodedb_content_done(&c);
	}
}

static void test_per_process(void **state)
{
	static const struct {
		const char *op;
		uint64_t count, avg, max;
	} python[] = {{"cuLaunchKernel", 31659, 5544, 48972},
		{"cudaLaunchKernel", 31074, 16348, 158985}, {"cudaMemcpyAsync", 675, 9720, 36693},
		{"cudaStreamSync", 56, 3895, 10941}, {"cudaFree", 54, 399681, 1904932},
		{"cuMemAlloc", 53, 189083, 306581}, {"cudaMalloc", 51, 211903, 348903}};
	_cleanup_free_ struct nodedb_usage *rows = NULL;
	struct scratch *s = *state;
	struct errinfo err = {0};
	uint64_t total = 0, all = 0;
	size_t count, found = 0, processes = 0;

	copy_of(s, EMPTY_CACHE);
	assert_int_equal(nodedb_usage(s->path, NULL, &rows, &count, &err), 0);
	for (size_t i = 0; i < count; i++) {
		all += rows[i].count;
		processes += i == 0 || rows[i].pid != rows[i - 1].pid;
		if (rows[i].pid != 30581) {
			assert_true(
				rows[i].source != SOURCE_CUDA && rows[i].source != SOURCE_DRIVER);
			continue;
		}
		total += rows[i].count;
		assert_string_equal(rows[i].comm, "python3");
		for (size_t k = 0; k < ARRAY_SIZE(python); k++) {
			const struct wire_op_row *op = wire_op_by_name(python[k].op);

			if (op->source != rows[i].source || op->op != rows[i].op)
				continue;
			found++;
			assert_int_equal(rows[i].count, python[k].count);
			assert_int_equal(rows[i].sum_ns / rows[i].count, python[k].avg);
			assert_int_equal(rows[i].max_ns, python[k].max);
		}
	}
	assert_int_equal(found, ARRAY_SIZE(python));
	assert_int_equal(total, 63932);
	assert_int_equal(all, 64410);
	assert_int_equal(processes, 13);
	assert_int_equal(rows[0].pid, 30581); /* the busiest comes first */
	free(TAKE(rows));
	copy_of(s, VLLM);
	assert_int_equal(nodedb_usage(s->path, NULL, &rows, &count, &err), 0);
	assert_int_equal(count, 0);
}

static void test_chains(void **state)
{
	static const struct {
		const char *name;
		int high, medium;
		double ratios[6]; /* in order of detection as stored; 0 ends them */
	} wanted[] = {
		{EMPTY_CACHE, 0, 4, {3.2, 98.6, 4.6, 6.9}},
		{VLLM, 0, 6, {784.0, 4.1, 5.8, 239.5, 648.1, 3.8}},
		{"sample-gpu-node-01.db", 2, 2, {0}},
		{"sample-gpu-node-02.db", 0, 1, {410.6}},
		{"sample-gpu-node-03.db", 0, 1, {137.2}},
		{"sample-cluster.db", 2, 4, {0}},
	};
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct nodedb_content c;
		struct errinfo err = {0};
		int high = 0, medium = 0;

		copy_of(s, wanted[i].name);
		assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
		for (size_t k = 0; k < c.chain_count; k++) {
			high += !strcmp(c.chains[k].severity, "HIGH");
			medium += !strcmp(c.chains[k].severity, "MEDIUM");
			assert_true(c.chains[k].timeline[0] && c.chains[k].fixes[0]);
			assert_true(c.chains[k].explanation[0] && c.chains[k].op[0]);
		}
		assert_int_equal(high, wanted[i].high);
		assert_int_equal(medium, wanted[i].medium);
		for (int k = 0; k < 6 && wanted[i].ratios[k] > 0; k++) {
			bool there = false;

			for (size_t n = 0; n < c.chain_count; n++)
				there |= c.chains[n].tail_ratio > wanted[i].ratios[k] - 0.051 &&
					 c.chains[n].tail_ratio < wanted[i].ratios[k] + 0.051;
			if (!there)
				fail_msg("%s: no chain has ratio %.1f", wanted[i].name,
					wanted[i].ratios[k]);
		}
		nodedb_content_done(&c);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_percentiles),
		TEST(test_newest),
		TEST(test_inventory),
		TEST(test_starts),
		TEST(test_per_process),
		TEST(test_chains),
	};

	if (sql_worker_is_meant(argc, argv))
		sql_worker_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
