/* SPDX-License-Identifier: Apache-2.0 */
/* Slow links and collectives in a recording of all ranks: told in the cluster's words, with nobody to blame; a slow
 * GPU at a pipeline's end is a rank's and no link's. */
#include "ranks_fixture.h"

#include "cluster/simulate/job.h"

#define MS UINT64_C(1000000)

struct trace { /* a made-up job as a recording */
	struct scene s;
	struct job_trace job;
	struct collective_row *rows;
	struct recording rec;
};

static void trace_done(struct trace *t)
{
	scene_done(&t->s);
	job_trace_done(&t->job);
	free(t->rows);
}

static struct job_spec spec_of(uint32_t data, uint32_t pipeline, enum job_fault fault)
{
	return (struct job_spec){.seed = 5,
		.data = data,
		.tensor = 1,
		.pipeline = pipeline,
		.microbatches = 4,
		.layers = 1,
		.buckets = 2,
		.steps = 90,
		.step_ns = 200 * MS,
		.jitter = 0.01,
		.fault = fault,
		.faulty_count = 1};
}

static int by_start(const void *a, const void *b)
{
	const struct collective_row *x = a, *y = b;

	return x->start.ns < y->start.ns ? -1 : x->start.ns > y->start.ns;
}

static void trace_of(struct trace *t, const struct job_spec *spec)
{
	*t = (struct trace){.s.seed = 1};
	assert_int_equal(job_run(spec, &t->job), 0);
	t->rows = calloc(t->job.call_count + 1, sizeof(*t->rows));
	assert_non_null(t->rows);
	for (size_t i = 0; i < t->job.call_count; i++) {
		const struct push_call *c = &t->job.calls[i].c;
		uint64_t took = (uint64_t)(c->leave_ns - c->enter_ns), dur = MIN(took, 5000u);
		struct collective_row *r = &t->rows[i];

		*r = (struct collective_row){.start.ns = SCENE_T0_NS + c->enter_ns,
			.dur_ns = dur,
			.pid = c->pid,
			.tid = c->pid,
			.op = c->op,
			.c = {.comm_hash = c->comm,
				.seq = c->seq,
				.bytes = c->bytes,
				.rank = c->rank,
				.nranks = c->nranks,
				.root = -1,
				.peer = c->peer,
				.wait_ns = (int64_t)(took - dur)}};
		snprintf(r->node, sizeof(r->node), "n%u", t->job.calls[i].worker / 4);
	}
	qsort(t->rows, t->job.call_count, sizeof(*t->rows), by_start);
	scene_add(&t->s, SOURCE_NCCL, NCCL_ALL_REDUCE, 1000, 1000, 1, 20);
	t->rec = scene_recording(&t->s);
	t->rec.collectives = t->rows;
	t->rec.collective_count = t->job.call_count;
}

#define TRACE _cleanup_(trace_done) struct trace

/* The first that speaks of something slow itself; @ret_ranks: how many name a rank. */
static const struct incident *slow_one(const struct answer *a, size_t *ret_ranks)
{
	const struct incident *found = NULL;

	*ret_ranks = 0;
	for (size_t i = 0; i < a->count; i++) {
		if (a->list[i].problem != PROBLEM_STRAGGLER)
			continue;
		*ret_ranks += a->list[i].culprit_rank >= 0;
		if (!found && strstr(a->list[i].summary, "on time"))
			found = &a->list[i];
	}
	return found;
}

static void a_slow_link_is_told_in_the_same_words(void **state)
{
	struct job_spec spec = spec_of(4, 3, JOB_LINK);
	const struct incident *inc;
	size_t ranks;
	TRACE t;

	spec.faulty[0] = 1;
	spec.link_ns = 60 * MS;
	trace_of(&t, &spec);
	ANSWER a = answer_to(&t.rec);
	inc = slow_one(&a, &ranks);
	assert_non_null(inc);
	print_message("# %s\n", inc->summary);
	assert_int_equal(ranks, 0);
	assert_int_equal(inc->culprit_rank, -1);
	assert_non_null(strstr(inc->summary,
		"the link rank 1 (n0) -> rank 5 (n1) is slow: a message of 1.0 MiB takes "));
	assert_non_null(strstr(inc->summary, "on peers; both ranks are on time; "));
	assert_non_null(strstr(inc->fixes[0], "sendrecv_perf"));
	assert_true(inc->severity >= SEVERITY_MEDIUM);
}

static void a_slow_collective_is_told_in_the_same_words(void **state)
{
	struct job_spec spec = spec_of(8, 1, JOB_LINK);
	const struct incident *inc;
	size_t ranks;
	TRACE t;

	spec.link_ns = 40 * MS;
	spec.from_step = 45;
	trace_of(&t, &spec);
	ANSWER a = answer_to(&t.rec);
	inc = slow_one(&a, &ranks);
	assert_non_null(inc);
	print_message("# %s\n", inc->summary);
	assert_int_equal(ranks, 0);
	assert_non_null(
		strstr(inc->summary, "the collective itself is slow: AllReduce of communicator "));
	assert_non_null(strstr(inc->summary, " before; all 8 ranks are on time; "));
}

/* The control: the same jobs without a fault. */
static void nothing_is_slow(void **state)
{
	for (uint32_t pipeline = 1; pipeline <= 3; pipeline += 2) {
		const struct job_spec spec = spec_of(4, pipeline, JOB_NONE);
		size_t ranks;
		TRACE t;

		trace_of(&t, &spec);
		ANSWER a = answer_to(&t.rec);
		assert_null(slow_one(&a, &ranks));
		assert_int_equal(ranks, 0);
	}
}

/* At either end of a pipeline, with Sends that last until they are received and such that do not. */
static void a_slow_gpu_is_no_link(void **state)
{
	for (uint32_t i = 0; i < 4; i++) {
		struct job_spec spec = spec_of(4, 3, JOB_SLOW);
		const struct incident *inc;
		size_t ranks;
		TRACE t;

		spec.faulty[0] = i % 2 ? 9 : 2; /* of the last stage, of the first */
		spec.sends_overlap = i / 2;
		spec.amount = 0.5;
		trace_of(&t, &spec);
		ANSWER a = answer_to(&t.rec);
		assert_null(slow_one(&a, &ranks));
		assert_int_equal(ranks, 1);
		inc = answer_of(&a, PROBLEM_STRAGGLER);
		assert_int_equal(inc->culprit_rank, spec.faulty[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_link_is_told_in_the_same_words),
		cmocka_unit_test(a_slow_collective_is_told_in_the_same_words),
		cmocka_unit_test(nothing_is_slow),
		cmocka_unit_test(a_slow_gpu_is_no_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
