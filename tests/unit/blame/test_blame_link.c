/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame_link.c - links and collectives that are slow although all ranks are on time: found by peers or by
 * their own past, nobody is blamed for them; and jobs of which nothing may be said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blame/comm_join.h"
#include "cluster/simulate/job.h"
#include "wire/ids.h"

#define MS 1000000

static struct job_spec job(uint32_t data, uint32_t tensor, uint32_t pipeline)
{
	return (struct job_spec){.seed = 11,
		.data = data,
		.tensor = tensor,
		.pipeline = pipeline,
		.microbatches = pipeline > 1 ? 2 * pipeline : 2,
		.layers = 4,
		.buckets = 2,
		.clips = true,
		.steps = 60,
		.step_ns = 300 * MS,
		.jitter = 0.02,
		.lasting = 0.005};
}

static struct blame look(const struct job_trace *t)
{
	struct blame b;

	assert_int_equal(blame_find(t->workers, t->worker_count, t->calls, t->call_count, &b), 0);
	return b;
}

static const struct blame_transfer *slow_of(const struct blame *b)
{
	for (size_t i = 0; i < b->transfer_count; i++)
		if (b->transfers[i].is_slow)
			return &b->transfers[i];
	return NULL;
}

static void a_slow_link_is_found_by_its_peers(void **state)
{
	for (int variant = 0; variant < 8; variant++) {
		struct job_spec s = job(4, 1, 4);
		const struct blame_transfer *x;
		struct job_trace t;
		struct blame b;

		s.fault = JOB_LINK;
		s.faulty[0] = 6;
		s.faulty_count = 1;
		s.link_ns = 60 * MS;
		s.link_back = variant & 1;
		s.fill_first = variant & 2;
		s.sends_overlap = variant & 4;
		assert_int_equal(job_run(&s, &t), 0);
		b = look(&t);
		x = slow_of(&b);
		assert_non_null(x);
		assert_int_equal(x->from, t.link_from);
		assert_int_equal(x->to, t.link_to);
		assert_false(x->by_past);
		assert_in_range(x->took_ns, 30 * MS, 90 * MS);
		assert_in_range(x->usual_ns, MS / 10, MS);
		assert_true(x->share > 0.05 && x->share < 0.6);
		assert_int_equal(b.suspect_count, 0);
		assert_int_equal(b.kind, BLAME_NONE);
		blame_done(&b);
		job_trace_done(&t);
	}
}

/* Which Send a Recv belongs to is told by when they end where nobody knows their numbers: one off, any link takes as long as
 * what lies between. So nothing is said of links then. */
static void what_was_brought_together_tells_of_no_link(void **state)
{
	for (int known = 0; known < 2; known++) {
		struct job_spec s = job(4, 1, 4);
		struct job_trace t;
		struct blame b;

		s.fault = JOB_LINK;
		s.faulty[0] = 6;
		s.faulty_count = 1;
		s.link_ns = 60 * MS;
		assert_int_equal(job_run(&s, &t), 0);
		for (size_t i = 0; i < t.call_count; i++)
			if (!known && t.calls[i].c.peer >= 0)
				t.calls[i].c.seq += COMM_JOIN_MADE_UP;
		b = look(&t);
		assert_int_equal(slow_of(&b) != NULL, known); /* control */
		blame_done(&b);
		job_trace_done(&t);
	}
}

static void a_slow_collective_is_found_by_its_peers(void **state)
{
	struct job_spec s = job(4, 4, 1);
	const struct blame_transfer *x;
	struct job_trace t;
	struct blame b;

	s.fault = JOB_LINK;
	s.faulty[0] = 9;
	s.faulty_count = 1;
	s.link_ns = 5 * MS;
	assert_int_equal(job_run(&s, &t), 0);
	b = look(&t);
	x = slow_of(&b);
	assert_non_null(x);
	assert_int_equal(x->comm, t.link_comm);
	assert_int_equal(x->from, UINT32_MAX);
	assert_int_equal(x->ranks, 4);
	assert_int_equal(x->op, NCCL_ALL_REDUCE);
	assert_false(x->by_past);
	assert_int_equal(b.suspect_count, 0);
	blame_done(&b);
	job_trace_done(&t);
}

/* Also where ranks leave a collective up to 10 ms after each other: that is no growth. */
static void without_peers_its_past_tells(void **state)
{
	for (int i = 0; i < 4; i++) {
		bool since_boot = i % 2;
		struct job_spec s = job(8, 1, 1);
		const struct blame_transfer *x;
		struct job_trace t;
		struct blame b;

		s.clips = false;
		s.fault = JOB_LINK;
		s.faulty_count = 1;
		s.link_ns = 40 * MS;
		s.ends_ns = i < 2 ? 0 : 10 * MS;
		s.from_step = since_boot ? 0 : 30;
		assert_int_equal(job_run(&s, &t), 0);
		b = look(&t);
		x = slow_of(&b);
		assert_int_equal(b.suspect_count, 0);
		assert_true(b.transfer_count > 0); /* it is looked at in any case */
		if (since_boot) {                  /* nothing to compare it with */
			assert_null(x);
		} else {
			assert_non_null(x);
			assert_true(x->by_past);
			assert_int_equal(x->comm, t.link_comm);
			assert_true(x->since_ns > (int64_t)(25 * s.step_ns));
		}
		blame_done(&b);
		job_trace_done(&t);
	}
}

/* Sequences grow in five stages: what looks like a transfer is the GPU's work before it. */
static void what_grows_in_stages_is_no_link(void **state)
{
	static const int64_t more[] = {0, 4, 10, 20, 40};

	for (int staged = 0; staged < 2; staged++) {
		struct job_spec s = job(8, 1, 1);
		struct job_trace t;
		struct blame b;

		s.clips = false;
		assert_int_equal(job_run(&s, &t), 0);
		for (uint32_t w = 0; w < t.worker_count; w++) {
			size_t seen = 0, calls = t.call_count / t.worker_count;
			int64_t later = 0;

			for (size_t i = 0; i < t.call_count; i++) {
				struct push_call *c = &t.calls[i].c;
				size_t part = seen * 10 / calls;
				int64_t ns = more[staged         ? MIN(part, (size_t)4)
						     : part >= 4 ? 4
								 : 0] *
					     (int64_t)MS;

				if (t.calls[i].worker != w)
					continue;
				seen++;
				c->enter_ns += later;
				if (c->op == NCCL_ALL_REDUCE) {
					later += ns;
					c->wait_ns += c->wait_ns == UINT64_MAX ? 0 : (uint64_t)ns;
				}
				c->leave_ns += later;
			}
		}
		b = look(&t);
		if (staged)
			assert_null(slow_of(&b));
		else
			assert_non_null(slow_of(&b));
		blame_done(&b);
		job_trace_done(&t);
	}
}

static void healthy_transfers_are_ordinary(void **state)
{
	static const uint32_t shapes[][3] = {{8, 1, 1}, {4, 4, 1}, {4, 1, 4}, {2, 2, 3}};

	for (size_t i = 0; i < 4; i++) {
		struct job_spec s = job(shapes[i][0], shapes[i][1], shapes[i][2]);
		struct job_trace t;
		struct blame b;

		s.step_ns = 20 * MS; /* transfers are a good part of it */
		assert_int_equal(job_run(&s, &t), 0);
		b = look(&t);
		assert_null(slow_of(&b));
		assert_true(b.transfer_count > 0); /* control: they were looked at */
		blame_done(&b);
		job_trace_done(&t);
	}
}

/* A switch: all communicators have become slower, each is like its peers. */
static void when_all_become_slower_the_past_tells(void **state)
{
	struct job_spec s = job(4, 4, 1);
	const struct blame_transfer *x;
	struct job_trace t;
	struct blame b;

	assert_int_equal(job_run(&s, &t), 0);
	for (uint32_t w = 0; w < t.worker_count;
		w++) { /* from the middle on a tensor collective takes 6 ms more */
		int64_t later = 0;
		size_t seen = 0;

		for (size_t i = 0; i < t.call_count; i++) {
			struct push_call *c = &t.calls[i].c;

			if (t.calls[i].worker != w)
				continue;
			c->enter_ns += later;
			seen++;
			if (c->bytes == 8 << 20 && seen > t.call_count / t.worker_count / 2) {
				later += 6 * MS;
				c->wait_ns += c->wait_ns == UINT64_MAX ? 0 : 6 * MS;
			}
			c->leave_ns += later;
		}
	}
	b = look(&t);
	x = slow_of(&b);
	assert_non_null(x);
	assert_true(x->by_past);
	assert_int_equal(x->bytes, 8 << 20);
	assert_int_equal(b.suspect_count, 0);
	blame_done(&b);
	job_trace_done(&t);
}

/* A group ends as a whole: that one of its members is late says nothing of the messages between others. */
static void exchanges_are_not_links(void **state)
{
	struct job_spec s = job(6, 1, 1);
	struct job_trace t;
	struct blame b;

	s.experts = true;
	s.fault = JOB_MOVING;
	s.amount = 0.35;
	assert_int_equal(job_run(&s, &t), 0);
	b = look(&t);
	assert_null(slow_of(&b));
	assert_int_equal(b.kind, BLAME_UNEVEN); /* control */
	blame_done(&b);
	job_trace_done(&t);
}

/* Its GPU's work would look like a transfer. */
static void of_a_host_that_runs_ahead_nothing_is_said(void **state)
{
	struct job_spec s = job(8, 1, 1);
	struct job_trace t;
	struct blame b;

	s.async = true;
	s.fault = JOB_SLOW;
	s.faulty[0] = 3;
	s.faulty_count = 1;
	s.amount = 1;
	s.from_step = 30;
	assert_int_equal(job_run(&s, &t), 0);
	b = look(&t);
	assert_null(slow_of(&b));
	blame_done(&b);
	job_trace_done(&t);
}

/* From half-way on all hosts come 100 ms sooner to the last collective of a step, which ends when it did: it is their GPUs that
 * they wait for in it. If it ends 100 ms later instead, and all that follows, it is slow. */
static void hosts_that_come_sooner_make_no_collective_slow(void **state)
{
	for (int is_slow = 0; is_slow < 2; is_slow++) {
		struct job_spec s = job(4, 1, 1);
		int64_t seen[4] = {0};
		struct job_trace t;
		struct blame b;

		s.buckets = 1;
		s.clips = false;
		assert_int_equal(job_run(&s, &t), 0);
		for (size_t i = 0; i < t.call_count; i++) {
			struct push_call *c = &t.calls[i].c;
			int64_t late =
				is_slow ? MAX(seen[t.calls[i].worker] - 30, 0) * 100 * MS : 0;

			if (seen[t.calls[i].worker]++ >= 30) {
				c->enter_ns += late - (is_slow ? 0 : 100 * MS);
				c->leave_ns += late + (is_slow ? 100 * MS : 0);
				c->wait_ns += 100 * MS;
			}
		}
		b = look(&t);
		assert_int_equal(slow_of(&b) != NULL, is_slow);
		blame_done(&b);
		job_trace_done(&t);
	}
}

/* Recvs that are posted under compute by calls that do not say how much of them was waited: neither stages nor links can be
 * compared, though a stage in the middle seems to compute for longer. Where calls say it a slow stage is found. */
static void posted_ahead_nothing_is_said(void **state)
{
	for (int told = 0; told < 2; told++) {
		struct job_spec s = job_spec_random(1000037, JOB_SLOW);
		struct job_trace t;
		struct blame b;

		s.traits = 1u << JOB_TRAIT_POSTED;
		s.waits_unknown = !told;
		s.fault = told ? JOB_STAGE : JOB_NONE;
		s.stage = 1;
		s.amount = 0.6;
		assert_int_equal(s.pipeline, 3);
		assert_int_equal(job_run(&s, &t), 0);
		b = look(&t);
		assert_null(slow_of(&b));
		assert_int_equal(b.kind == BLAME_STAGE, told);
		blame_done(&b);
		job_trace_done(&t);
	}
}

/* Recvs are posted ahead of work, and calls do not say how long they waited: who is slow finds its messages there when it comes
 * back for them, and who is kept waiting by a slow link comes to its first Recv of a step from its work. */
static void recvs_ahead_that_do_not_say_how_long(void **state)
{
	for (int variant = 0; variant < 4; variant++) {
		struct job_spec s = job(4, 1, 4);
		struct job_trace t;
		struct blame b;

		s.fill_first = variant % 2;
		s.sends_overlap = variant / 2;
		s.fault = JOB_SLOW;
		s.faulty[0] = 7;
		s.faulty_count = 1;
		s.amount = 0.6;
		s.waits_unknown = true;
		s.traits = 1u << JOB_TRAIT_POSTED;
		assert_int_equal(job_run(&s, &t), 0);
		b = look(&t);
		assert_true(b.suspect_count > 0);
		assert_int_equal(t.workers[b.suspects[0].worker].rank, 7);
		assert_true(b.suspects[0].share > 0.1);
		if (b.suspect_count > 1) /* nobody is told of so little */
			assert_true(b.suspects[1].share < 0.02);
		blame_done(&b);
		s.fault = JOB_LINK;
		s.fill_first = true;
		s.link_ns = 100 * MS;
		job_trace_done(&t);
		assert_int_equal(job_run(&s, &t), 0);
		b = look(&t);
		assert_int_not_equal(b.kind, BLAME_WORKERS);
		blame_done(&b);
		job_trace_done(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_link_is_found_by_its_peers),
		cmocka_unit_test(what_was_brought_together_tells_of_no_link),
		cmocka_unit_test(a_slow_collective_is_found_by_its_peers),
		cmocka_unit_test(without_peers_its_past_tells),
		cmocka_unit_test(what_grows_in_stages_is_no_link),
		cmocka_unit_test(when_all_become_slower_the_past_tells),
		cmocka_unit_test(recvs_ahead_that_do_not_say_how_long),
		cmocka_unit_test(healthy_transfers_are_ordinary),
		cmocka_unit_test(exchanges_are_not_links),
		cmocka_unit_test(of_a_host_that_runs_ahead_nothing_is_said),
		cmocka_unit_test(hosts_that_come_sooner_make_no_collective_slow),
		cmocka_unit_test(posted_ahead_nothing_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
