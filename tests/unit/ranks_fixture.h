/* SPDX-License-Identifier: Apache-2.0 */
/* ranks_fixture.h - a job of several ranks for the tests of diagnose/: collectives, and an answer
 * that is checked for what every incident must have. Times are microseconds, as in scene.h. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "identity.h"
#include "diagnose/compose/diagnose.h"
#include "model/problem.h"
#include "scene.h"

#define RANKS    4
#define PID(r)   (1000U + (uint32_t)(r))
#define COMM     UINT64_C(0x8000000000000abc)
#define STREAM   77
#define STEP_US  10000
#define WAITS_US 1000 /* what everybody waits for a collective in any case */

struct job {
	struct scene s;
	struct collective_row *rows;
	size_t count, cap;
	struct accounting books;
};

static _unused_ void job_done(struct job *j)
{
	scene_done(&j->s);
	free(j->rows);
}

#define JOB _cleanup_(job_done) struct job j = {.s.seed = 1}

/* One call: the row and its event. */
static _unused_ struct collective_row *job_call(
	struct job *j, int rank, uint64_t seq, int64_t at_us, int64_t wait_us)
{
	struct collective_row *r;

	if (j->count == j->cap) {
		j->cap = j->cap ? j->cap * 2 : 256;
		j->rows = realloc(j->rows, j->cap * sizeof(*j->rows));
		if (!j->rows)
			abort();
	}
	r = &j->rows[j->count++];
	*r = (struct collective_row){.node = "gpu-1",
		.start.ns = SCENE_T0_NS + at_us * 1000,
		.dur_ns = 20000,
		.pid = PID(rank),
		.tid = PID(rank),
		.op = NCCL_ALL_REDUCE,
		.stream = STREAM,
		.c = {.comm_hash = COMM,
			.seq = seq,
			.bytes = 1 << 20,
			.count = 1 << 18,
			.rank = rank,
			.nranks = RANKS,
			.datatype = 7,
			.reduce_op = 0,
			.root = -1,
			.peer = -1,
			.wait_ns = wait_us < 0 ? -1 : wait_us * 1000}};
	scene_add(&j->s, SOURCE_NCCL, NCCL_ALL_REDUCE, PID(rank), PID(rank), at_us, 20);
	return r;
}

/* A step at @at in which @late (-1: nobody) comes @by_us after the others, who come within 40 us. */
static _unused_ void job_step_at(struct job *j, uint64_t seq, int64_t at, int late, int64_t by_us)
{
	for (int r = 0; r < RANKS; r++) {
		int64_t own = r == late ? by_us + 30 : (int64_t)scene_random(&j->s, 40);

		job_call(j, r, seq, at + own,
			WAITS_US + (late >= 0 && r != late ? by_us + 30 - own : 0));
	}
}

static _unused_ void job_step(struct job *j, uint64_t seq, int late, int64_t by_us)
{
	job_step_at(j, seq, (int64_t)seq * STEP_US, late, by_us);
}

struct answer {
	struct incident *list;
	size_t count;
};

static _unused_ void answer_done(struct answer *a)
{
	free(a->list);
}

static _unused_ struct recording job_recording(const struct job *j)
{
	struct recording rec = scene_recording(&j->s);

	rec.collectives = j->rows;
	rec.collective_count = j->count;
	return rec;
}

static _unused_ struct answer answer_to(const struct recording *rec)
{
	struct answer a = {0};

	assert_int_equal(diagnose_run(rec, &a.list, &a.count), 0);
	for (size_t i = 0; i < a.count; i++) {
		const struct incident *inc = &a.list[i];

		if (getenv("INGERO_SHOW"))
			print_message("%s %s %u: %s\n", severity_name(inc->severity),
				problem_row(inc->problem)->id, inc->pid, inc->summary);
		assert_true(inc->explained >= 0 && inc->explained <= 1);
		assert_true(inc->confidence >= 0 && inc->confidence <= 1);
		assert_true(inc->summary[0] && inc->root_cause[0] && inc->explanation[0]);
		assert_true(inc->fix_count > 0 && inc->step_count > 0 && inc->evidence_sql[0]);
		assert_true(inc->severity <= problem_row(inc->problem)->worst);
	}
	identity_check(rec, a.list, a.count);
	return a;
}

static _unused_ const struct incident *answer_of(const struct answer *a, enum problem p)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->list[i].problem == p)
			return &a->list[i];
	return NULL;
}

#define ANSWER _cleanup_(answer_done) struct answer
