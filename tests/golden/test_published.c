/* SPDX-License-Identifier: Apache-2.0 */
/* test_published.c - real databases of the published agent, read as an ordinary user from a folder
 * and a file that are read-only: counts and extremes of every operation are as published. */
#include "published.h"

#include "export/export.h"
#include "answer/stacks.h"
#include "wire/names.h"

struct expectation {
	const char *op;
	uint64_t count, min, max;
};

struct sample_file {
	const char *name, *schema, *node;
	const struct expectation *ops; /* every operation the file holds */
	size_t event_count, sample_count, chain_count;
	uint64_t total_calls;
};

static const struct expectation empty_cache[] = {
	{"cudaMalloc", 45, 101214, 348903},
	{"cudaFree", 40, 393763, 1904932},
	{"cudaLaunchKernel", 915, 6290, 68814310},
	{"cudaStreamSync", 405, 1710, 27531},
	{"cudaMemcpyAsync", 310, 4150, 31292901},
	{"cuLaunchKernel", 1520, 3790, 5453549},
	{"cuMemAlloc", 49, 6140, 306581},
	{"sched_switch", 116, 2710, 4061087260},
	{"net_recv", 21, 551, 17954743567},
	{"net_send", 1, 15230, 15230},
	{"sched_wakeup", 47, 0, 0},
	{"process_exit", 11, 0, 0},
	{"process_fork", 6, 0, 0},
	{NULL, 0, 0, 0},
};

static const struct expectation vllm[] = {
	{"cudaLaunchKernel", 550, 5749, 70847581},
	{"cudaStreamSync", 24, 4160, 16880},
	{"cudaDeviceSync", 10, 14109, 4720968},
	{"cudaMemcpyAsync", 734, 4390, 8837610},
	{"cuLaunchKernel", 1672, 3451, 604307},
	{"cuCtxSynchronize", 10, 5209, 4711397},
	{"sched_switch", 7757, 1760, 4470958409},
	{"net_recv", 63, 4220, 250052},
	{"net_send", 31, 7010, 96791},
	{"sched_wakeup", 11, 0, 0},
	{"process_fork", 7, 0, 0},
	{NULL, 0, 0, 0},
};

static const struct expectation node_01[] = {
	{"sched_switch", 99, 10437, 1207757},
	{"block_read", 98, 460370, 1197837},
	{"block_write", 3, 464671, 2235453},
	{NULL, 0, 0, 0},
};

static const struct expectation cluster[] = {
	{"sched_switch", 219, 10437, 50080227},
	{"cuMemAlloc", 76, 107911, 212811},
	{"block_read", 98, 460370, 1197837},
	{"block_write", 207, 464671, 2235453},
	{NULL, 0, 0, 0},
};

static const struct sample_file files[] = {
	{"pytorch-173382-empty-cache.db", "0.8", "", empty_cache, 3486, 20, 4, 64410},
	{"vllm-37343-logprobs-amplification.db", "0.8", "", vllm, 10869, 52, 6, 10869},
	{"sample-gpu-node-01.db", "0.9", "gpu-node-01", node_01, 200, 1, 4, 200},
	{"sample-cluster.db", "0.9", "gpu-node-01,gpu-node-02,gpu-node-03", cluster, 600, 5, 6,
		600},
};

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s: line %d: %s\n", f->name, __LINE__, #x);               \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static bool check_op(
	const struct sample_file *f, const struct nodedb_content *c, const struct expectation *want)
{
	const struct wire_op_row *row = wire_op_by_name(want->op);
	uint64_t count = 0, min = UINT64_MAX, max = 0;

	CHECK(row);
	for (size_t i = 0; i < c->event_count; i++) {
		const struct event *e = &c->events[i];

		if (e->source != row->source || e->op != row->op)
			continue;
		count++;
		min = MIN(min, e->dur_ns);
		max = MAX(max, e->dur_ns);
	}
	if (count != want->count || min != want->min || max != want->max) {
		fprintf(stderr, "%s: %s: n %lu min %lu max %lu\n", f->name, want->op, count, min,
			max);
		return false;
	}
	return true;
}

static bool check_file(struct scratch *s, const struct sample_file *f)
{
	struct nodedb_content c;
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	uint64_t sum = 0;

	CHECK(nodedb_read(s->path, NULL, &c, &err) == 0);
	CHECK(c.event_count == f->event_count && c.skipped_rows == 0 && c.older_events == 0);
	CHECK(c.sample_count == f->sample_count && c.chain_count == f->chain_count);
	CHECK(!strcmp(c.schema, f->schema) && !strcmp(c.node, f->node));
	CHECK(c.total_calls == f->total_calls && !c.has_books && c.aggregate_count == 0);
	for (const struct expectation *e = f->ops; e->op; e++) {
		CHECK(check_op(f, &c, e));
		sum += e->count;
	}
	CHECK(sum == f->event_count);
	for (size_t i = 1; i < c.event_count; i++)
		CHECK(c.events[i - 1].start.ns <= c.events[i].start.ns);
	nodedb_content_done(&c);
	CHECK(nodedb_open(s->path, "n1", &db, &err) == -EBADMSG); /* and is never written to */
	CHECK(scratch_files(s->folder, false) == 1);
	return true;
}

static void test_file(void **state, const struct sample_file *f)
{
	struct scratch *s = *state;
	size_t before_len, after_len;
	char *before, *after;
	int status;
	pid_t pid;

	copy_of(s, f->name);
	before = scratch_bytes(s->path, &before_len);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(2);
		_exit(check_file(s, f) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	after = scratch_bytes(s->path, &after_len);
	assert_int_equal(before_len, after_len);
	assert_memory_equal(before, after, before_len);
	free(before);
	free(after);
}

static void test_empty_cache(void **state)
{
	test_file(state, &files[0]);
}

static void test_vllm(void **state)
{
	test_file(state, &files[1]);
}

static void test_node_01(void **state)
{
	test_file(state, &files[2]);
}

static void test_cluster(void **state)
{
	test_file(state, &files[3]);
}

/* The newest 10,000 rows of the published query's default limit. */
static void test_newest(void **state)
{
	static const struct expectation newest[] = {{"sched_switch", 7402, 0, 0},
		{"cudaLaunchKernel", 400, 0, 0}, {"cuLaunchKernel", 1354, 0, 0},
		{"cudaMemcpyAsync", 720, 0, 0}, {"net_recv", 53, 0, 0}, {"process_fork", 6, 0, 0}};
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};

	copy_of(s, files[1].name);
	assert_int_equal(nodedb_read(s->path, &(struct nodedb_filter){.last = 10000}, &c, &err), 0);
	assert_int_equal(c.event_count, 10000);
	for (size_t k = 0; k < ARRAY_SIZE(newest); k++) {
		const struct wire_op_row *row = wire_op_by_name(newest[k].op);
		uint64_t count = 0;

		assert_non_null(row);
		for (size_t i = 0; i < c.event_count; i++)
			count += c.events[i].source == row->source && c.events[i].op == row->op;
		assert_int_equal(count, newest[k].count);
	}
	nodedb_content_done(&c);
}

/* Nothing is left out of a file without aggregates, however it is asked for. */
static void test_not_thinned(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};

	copy_of(s, files[1].name);
	assert_int_equal(
		nodedb_read(s->path, &(struct nodedb_filter){.thin = NODEDB_THIN_ALWAYS}, &c, &err),
		0);
	assert_int_equal(c.event_count, files[1].event_count);
	assert_int_equal(c.thinned_rows, 0);
	nodedb_content_done(&c);
}

struct stack_expectation {
	int64_t hash;
	uint64_t count, ns;
	const char *innermost; /* beginning of the function's name; "": not known */
};

static void check_stacks(struct scratch *s, const char *name, size_t stacks, uint64_t calls,
	const struct stack_expectation *top, size_t top_count)
{
	struct nodedb_filter all = {.stacks = NODEDB_STACKS_ALL},
			     used = {.stacks = NODEDB_STACKS_USED};
	_cleanup_free_ struct stack_total *totals = NULL;
	struct nodedb_content c;
	struct errinfo err = {0};
	uint64_t with = 0;
	size_t n;

	copy_of(s, name);
	assert_int_equal(nodedb_read(s->path, &all, &c, &err), 0);
	assert_int_equal(c.stacks.count, stacks);
	assert_int_equal(c.skipped_stacks + c.other_stacks, 0);
	nodedb_content_done(&c);
	assert_int_equal(nodedb_read(s->path, &used, &c, &err), 0);
	assert_int_equal(c.stacks.count, calls ? stacks : 0);
	assert_int_equal(stack_total_run(c.events, c.event_count, NULL, &totals, &n), 0);
	for (size_t i = 0; i < n; i++)
		with += totals[i].hash && stack_find(&c.stacks, totals[i].hash) ? totals[i].calls
										: 0;
	assert_int_equal(with, calls);
	for (size_t k = 0; k < top_count; k++) {
		const struct stack *st = stack_find(&c.stacks, (uint64_t)top[k].hash);
		uint64_t count = 0, ns = 0;

		for (size_t i = 0; i < n; i++)
			if (totals[i].hash == (uint64_t)top[k].hash) {
				count += totals[i].calls;
				ns += totals[i].ns;
			}
		assert_non_null(st);
		assert_int_equal(count, top[k].count);
		assert_int_equal(ns, top[k].ns);
		assert_int_equal(strncmp(st->frames[0].symbol ? st->frames[0].symbol : "",
					 top[k].innermost, strlen(top[k].innermost)),
			0);
	}
	nodedb_content_done(&c);
}

static void test_stacks_empty_cache(void **state)
{
	static const struct stack_expectation top[] = {{-8719954212830742898, 145, 1489027, ""},
		{-7902817605437240808, 112, 795034, ""}, {1343543566391529512, 93, 636058, ""}};

	check_stacks(*state, files[0].name, 780, 3284, top, ARRAY_SIZE(top));
}

static void test_stacks_vllm(void **state)
{
	static const struct stack_expectation top[] = {
		{44624653125126877, 455, 24678320, "at::native::copy_kernel_cuda("},
		{-8213101811863002446, 276, 7481912, "at::native::copy_device_to_device("},
		{5624963848208966849, 276, 6224527, ""}};

	check_stacks(*state, files[1].name, 110, 3000, top, ARRAY_SIZE(top));
}

static void test_stacks_nodes(void **state)
{
	static const struct stack_expectation top[] = {{3130596151848727151, 40, 4862118, ""}};

	check_stacks(*state, "sample-gpu-node-02.db", 1, 40, top, ARRAY_SIZE(top));
	check_stacks(*state, "sample-gpu-node-01.db", 8, 0, NULL, 0); /* no event refers to them */
}

/* As a picture and as lines: nothing is lost on the way. */
static void test_export(void **state)
{
	struct scratch *s = *state;
	_cleanup_buf_ struct buf folded = BUF_INIT(8 << 20), svg = BUF_INIT(8 << 20);
	struct nodedb_filter used = {.stacks = NODEDB_STACKS_USED};
	struct export_options request = {.format = EXPORT_FOLDED, .count = true};
	struct export_stats figures;
	struct nodedb_content c;
	struct errinfo err = {0};
	uint64_t calls = 0;

	copy_of(s, files[0].name);
	assert_int_equal(nodedb_read(s->path, &used, &c, &err), 0);
	assert_int_equal(export_stacks(&c, &request, &folded, &figures, &err), 0);
	for (char *line = folded.data, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		calls += strtoull(strrchr(line, ' ') + 1, NULL, 10);
		*end = '\n';
	}
	assert_int_equal(calls, 3284);
	assert_int_equal(figures.without_stack, 0);
	/* Python calls native code, which calls CUDA */
	assert_non_null(strstr(folded.data, "cuda_empty_cache_leak.py:1 <module>;"
					    "cuda_empty_cache_leak.py:23 main;"));
	assert_non_null(strstr(folded.data, "modeling_qwen2.py:218 forward;at::"));
	request.format = EXPORT_FLAMEGRAPH;
	assert_int_equal(export_stacks(&c, &request, &svg, &figures, &err), 0);
	assert_non_null(strstr(svg.data, "<title>main (cuda_empty_cache_leak.py:23)\n"));
	nodedb_content_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_empty_cache),
		TEST(test_vllm),
		TEST(test_node_01),
		TEST(test_cluster),
		TEST(test_newest),
		TEST(test_not_thinned),
		TEST(test_stacks_empty_cache),
		TEST(test_stacks_vllm),
		TEST(test_stacks_nodes),
		TEST(test_export),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
