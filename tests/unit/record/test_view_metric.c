/* SPDX-License-Identifier: Apache-2.0 */
/* test_view_metric.c - a made-up run as metrics: what is known is told, what is not known is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/trace/metrics/metric_table.h"
#include "record/trace/metrics/view_metric.h"

struct run {
	struct tracer_op ops[3];
	struct gpu_row gpu;
	struct tracer_view view;
	struct metric_state *metric_state;
	struct reading reading;
};

static struct run *run_new(void)
{
	struct run *r = calloc(1, sizeof(*r));

	r->view = (struct tracer_view){.started.ns = 1000,
		.now.ns = 9000,
		.method = "session",
		.ops = r->ops,
		.op_count = 3,
		.gpus = &r->gpu,
		.gpu_count = 1,
		.gpu_state = GPU_ABSENT};
	r->ops[0] = (struct tracer_op){.source = SOURCE_CUDA, .op = CUDA_MALLOC, .count = 3};
	r->ops[1] = (struct tracer_op){.source = SOURCE_DRIVER, .op = DRIVER_LAUNCH, .count = 5};
	r->ops[2] = (struct tracer_op){
		.source = SOURCE_DRIVER, .op = DRIVER_LAUNCH, .nested = true, .count = 7};
	sketch_add(&r->ops[1].sketch, 1000, 5);
	sketch_add(&r->ops[2].sketch, 9000, 7);
	gpu_sample_init(&r->gpu.sample);
	snprintf(r->gpu.sample.uuid, sizeof(r->gpu.sample.uuid), "GPU-1");
	r->metric_state = metric_state_new();
	r->reading = (struct reading){
		.view = &r->view, .metric_state = r->metric_state, .node = "n", .version = "1"};
	return r;
}

static void run_free(struct run *r)
{
	metric_state_free(r->metric_state);
	free(r);
}
DEFINE_CLEANUP(struct run *, run_free)

static const struct metric *find(const struct metric_set *s, enum metric_id id)
{
	const struct metric *m = metric_first(s);

	while (m && m->desc != &metric_table[id])
		m = m->next;
	return m;
}

static struct metric_set *metrics_of(const struct run *r)
{
	struct metric_set *s = metric_set_new(r->view.now);

	view_metric(&r->reading, s);
	return s;
}

static void test_calls(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *s = metrics_of(r);
	const struct metric *m = find(s, M_OP_COUNT);

	assert_int_equal(m->count, 2); /* nested calls are with the others */
	assert_string_equal(m->first->attributes[1].text, "cudaMalloc");
	assert_int_equal(m->first->value.i, 3);
	assert_int_equal(m->first->start.ns, 1000);
	assert_int_equal(m->first->next->value.i, 12);
	assert_int_equal(find(s, M_OPS)->count, 3);
	m = find(s, M_OP_DURATION);
	assert_int_equal(m->count, 2); /* no duration, no histogram */
	assert_int_equal(m->first->value.h->count, 5);
	m = find(s, M_OP_PERCENTILE);
	assert_int_equal(m->count, 3);
	assert_string_equal(m->first->attributes[2].text, "p50");
	assert_true(m->first->value.d > 8.5 && m->first->value.d < 9.5); /* of all twelve, in µs */
}

static void test_nested_calls_alone(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *s = NULL;

	r->ops[1] = r->ops[2];
	r->view.op_count = 2;
	s = metrics_of(r);
	assert_int_equal(find(s, M_OP_COUNT)->last->value.i, 7);
}

static void test_the_host_and_the_store_if_there_are_any(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *s = metrics_of(r), *t = NULL;

	assert_null(find(s, M_CPU));
	assert_null(find(s, M_DB_BYTES));
	assert_null(find(s, M_STACKS));
	r->view.has_host = true;
	r->view.host = (struct host_sample){.cpu_pct = 25, .mem_avail_mb = 3};
	r->reading.has_store = true;
	r->reading.pruned_rows = 11;
	r->view.db_bytes = 4096;
	t = metrics_of(r);
	assert_true(find(t, M_CPU)->first->value.d == 0.25);
	assert_int_equal(find(t, M_MEMORY_AVAILABLE)->first->value.i, 3 << 20);
	assert_int_equal(find(t, M_DB_BYTES)->first->value.i, 4096);
	assert_int_equal(find(t, M_DB_PRUNED)->first->value.i, 11);
}

static struct roster_home home_of_7(const struct roster *r, uint32_t pid)
{
	(void)r;
	return pid == 7 ? (struct roster_home){"train-0", "ml", "c0ffee"}
			: (struct roster_home){"", "", ""};
}

/* Series of a process say where it lives, if that is known. */
static void test_pods(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *s = NULL;
	const struct metric_point *p;

	r->reading.home = home_of_7;
	r->reading.launches[0] = (struct reading_launches){.pid = 7, .comm = "train", .count = 3};
	r->reading.launches[1] = (struct reading_launches){.pid = 8, .comm = "bare", .count = 4};
	r->reading.launch_count = 2;
	s = metrics_of(r);
	p = find(s, M_LAUNCHES)->first;
	assert_string_equal(p->attributes[1].text, "train");
	assert_string_equal(p->attributes[2].text, "train-0");
	assert_string_equal(p->attributes[3].text, "ml");
	assert_string_equal(p->attributes[4].text, "c0ffee");
	for (int i = 2; i < 5; i++)
		assert_true(p->next->attributes[i].is_absent);
}

static void test_steps_by_line(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *s = metrics_of(r), *t = NULL;
	const struct metric *m;

	assert_null(find(s, M_STEPS));
	r->reading.steps[0] = (struct step_count){.pid = 7,
		.comm = "train",
		.since.ns = 2000,
		.steps = 10.5,
		.slow_steps = 1,
		.ns = {[ACCOUNT_HOST] = 3e9}};
	r->reading.step_count = 1;
	t = metrics_of(r);
	assert_true(find(t, M_STEPS)->first->value.d == 10.5);
	assert_int_equal(find(t, M_STEPS)->first->start.ns, 2000);
	assert_true(find(t, M_SLOW_STEPS)->first->value.d == 1);
	m = find(t, M_STEP_SECONDS);
	assert_int_equal(m->count, ACCOUNT_LINES); /* what can be 0 is there as 0 */
	for (const struct metric_point *p = m->first; p; p = p->next) {
		bool is_host = !strcmp(p->attributes[5].text, "host");

		assert_string_equal(p->attributes[1].text, "train");
		assert_true(p->value.d == (is_host ? 3 : 0));
	}
}

static void test_the_books(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *s = NULL;
	const struct metric_point *p;
	uint64_t lost = 0, sources = 0;

	r->view.books.source[SOURCE_CUDA] = (struct account){
		.hits = 100, .stored = 10, .aggregated = 80, .lost = {[LOSS_RING_FULL] = 7}};
	r->view.books.source[SOURCE_IO].lost[LOSS_RING_FULL] = 3;
	r->view.books.source[SOURCE_CUDA].lost[LOSS_WRITE_FAILED] = 1;
	s = metrics_of(r);
	assert_int_equal(find(s, M_RING_OVERFLOWS)->first->value.i, 10);
	for (p = find(s, M_DROPPED)->first; p; p = p->next) {
		lost += (uint64_t)p->value.i;
		assert_string_not_equal(p->attributes[1].text, "nvidia");
		if (!strcmp(p->attributes[2].text, "write_failed") && p->value.i)
			assert_string_equal(p->attributes[0].text, "store");
	}
	assert_int_equal(lost, 11);
	for (p = find(s, M_HITS)->first; p; p = p->next)
		sources++;
	assert_int_equal(find(s, M_DROPPED)->count, sources * LOSS_COUNT);
	assert_int_equal(find(s, M_HITS)->first->value.i, 100);
}

static void test_gpus_are_told_while_the_driver_answers(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *absent = metrics_of(r), *known = NULL,
						      *silent = NULL;

	assert_null(find(absent, M_GPU_ANSWERS));
	r->gpu.sample.power_mw = 612345;
	r->gpu.sample.throttle_reasons = 4;
	r->view.gpu_state = GPU_KNOWN;
	metric_state_gpu(r->metric_state, &r->gpu.sample);
	known = metrics_of(r);
	assert_int_equal(find(known, M_GPU_ANSWERS)->first->value.i, 1);
	assert_true(find(known, M_GPU_POWER)->first->value.d == 612.345);
	assert_null(find(known, M_GPU_TEMPERATURE)); /* not known is not 0 */
	assert_null(find(known, M_GPU_ECC));
	assert_null(find(known, M_GPU_XID));
	assert_int_equal(find(known, M_GPU_THROTTLE_ACTIVE)->first->value.i, 1);
	assert_int_equal(find(known, M_GPU_THROTTLE_ACTIVE + THROTTLE_HW)->first->value.i, 0);
	r->view.gpu_state = GPU_NO_ANSWER;
	silent = metrics_of(r);
	assert_int_equal(find(silent, M_GPU_ANSWERS)->first->value.i, 0);
	assert_null(find(silent, M_GPU_POWER)); /* an old reading is not a present one */
	assert_non_null(find(silent, M_GPU_THROTTLE_EDGES));
}

static void test_incidents(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *before = metrics_of(r), *after = NULL;
	struct incident i = {.id = "x", .problem = PROBLEM_STRAGGLER, .severity = SEVERITY_MEDIUM};

	assert_int_equal(find(before, M_INCIDENTS_ACTIVE)->count, PROBLEM_COUNT);
	assert_int_equal(find(before, M_ANOMALIES)->first->value.i, 0);
	metric_state_incident(r->metric_state, &i, INCIDENT_NEW);
	after = metrics_of(r);
	assert_int_equal(find(after, M_INCIDENTS_ACTIVE)->count, PROBLEM_COUNT + 1);
	assert_int_equal(find(after, M_ANOMALIES)->first->value.i, 1);
}

static void test_collectives(void **state)
{
	_cleanup_(run_freep) struct run *r = run_new();
	_cleanup_(metric_set_freep) struct metric_set *s = NULL;
	struct event e = {.pid = 1, .source = SOURCE_NCCL, .op = NCCL_SEND, .dur_ns = 2000000};
	struct collective c = {.comm_hash = 0xabc,
		.rank = 0,
		.nranks = 4,
		.datatype = 7,
		.reduce_op = -1,
		.root = -1,
		.peer = 0,
		.bytes = 64,
		.wait_ns = 5000000};
	const struct metric_attribute *a;

	r->reading.collectives[NCCL_SEND].count = 9;
	r->reading.collectives[NCCL_SEND].bytes = 576;
	metric_state_collective(r->metric_state, &e, &c);
	s = metrics_of(r);
	assert_null(find(s, M_NCCL_PROCESSES)); /* nobody has looked */
	for (const struct metric_point *p = find(s, M_COLL_BYTES)->first; p; p = p->next)
		assert_int_equal(p->value.i, strcmp(p->attributes[0].text, "Send") == 0 ? 576 : 0);
	assert_true(find(s, M_COLL_LAST_MS)->first->value.d == 2);
	assert_true(find(s, M_COLL_LAST_WAIT_MS)->first->value.d == 5);
	a = find(s, M_COLL_LAST_BYTES)->first->attributes;
	assert_string_equal(a[0].text, "Send");
	assert_string_equal(a[1].text, "0000000000000abc");
	assert_int_equal(a[2].number, 0);
	assert_string_equal(a[4].text, "float32");
	assert_true(a[5].is_absent);
	assert_true(!a[6].is_absent && a[6].number == 0); /* peer 0 is a peer */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_nested_calls_alone),
		cmocka_unit_test(test_the_host_and_the_store_if_there_are_any),
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_steps_by_line),
		cmocka_unit_test(test_the_books),
		cmocka_unit_test(test_gpus_are_told_while_the_driver_answers),
		cmocka_unit_test(test_incidents),
		cmocka_unit_test(test_collectives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
