/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - what the core said while a made-up job ran, against what was done to it.
 *
 * Right is: a faulty rank is named, or its stage, or that the load moves, and nobody else. Several ranks
 * that are slow together may be told as their stage if they are all of it. */
#include "cluster/simulate/verdict.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

#define CLOCKS_MAX 64
#define START      ((int64_t)1700000000 * (int64_t)NS_PER_S)

static bool is_faulty(const struct job_spec *j, int32_t rank)
{
	for (uint32_t i = 0; i < j->faulty_count; i++)
		if ((int32_t)j->faulty[i] == rank)
			return true;
	return false;
}

/* Whether @e is what @j has done. */
static bool fits(const struct job_spec *j, const struct fleet_episode *e)
{
	uint32_t each = j->data * j->tensor;

	switch (j->fault) {
	case JOB_NONE: return false;
	case JOB_SLOW:
	case JOB_LATE:
	case JOB_DRIFT: return e->problem == FLEET_STRAGGLER && is_faulty(j, e->rank);
	case JOB_STAGE:
		return (e->problem == FLEET_STAGE && e->stage == j->stage) ||
		       (each == 1 && e->problem == FLEET_STRAGGLER && e->rank == j->stage);
	case JOB_MOVING: return e->problem == FLEET_UNEVEN;
	case JOB_HANG: return e->problem == FLEET_HANG && is_faulty(j, e->rank);
	}
	return false;
}

static void judge(const struct job_spec *j, struct fleet *f, struct verdict *v)
{
	struct fleet_notice n;

	while (fleet_notice(f, &n)) {
		if (n.kind != FLEET_NOTICE_BEGAN)
			continue;
		if (fits(j, &n.episode)) {
			v->right = true;
			if (!v->said[0])
				snprintf(v->said, sizeof(v->said), "%.500s", n.episode.text);
			continue;
		}
		v->false_alarms++;
		snprintf(v->said, sizeof(v->said), "%.500s", n.episode.text);
	}
}

/* The ranks of a node have one clock: what the job would do to each is done to its node. */
static void set_clocks(struct play_settings *s, struct simulation_fault clocks[CLOCKS_MAX])
{
	uint32_t ranks = s->job.data * s->job.tensor * s->job.pipeline;
	double error = (double)s->job.clock_error_ns / (double)NS_PER_S;

	for (uint32_t i = 0; error > 0 && i < CLOCKS_MAX && i * s->agents.gpus_per_node < ranks;
		i++) {
		double at = (double)(hash_number(s->job.seed + i) >> 11) / (double)(1ULL << 52) - 1;

		clocks[i] = (struct simulation_fault){
			SIMULATION_CLOCK_STEP, i, START, INT64_MAX, at * error};
		s->agents.fault_count = i + 1;
	}
	s->agents.faults = clocks;
	s->job.clock_error_ns = 0;
}

int verdict_of_random(uint64_t seed, enum job_fault fault, struct verdict *ret)
{
	_cleanup_(fleet_freep) struct fleet *f = NULL;
	_cleanup_(play_freep) struct play *p = NULL;
	struct simulation_fault clocks[CLOCKS_MAX];
	struct fleet_settings core = fleet_defaults;
	struct play_settings s = {.job = job_spec_random(seed, fault),
		.agents = {.seed = seed,
			.cluster = "simulated",
			.gpus_per_node = 8,
			.start_ns = START,
			.latency_ns = 2000000}};
	int r;

	s.job.seq_per_comm = false; /* agents count the calls to each peer: push.h */
	core.nodes = nodes_defaults;
	core.calls = calls_defaults;
	core.seed = seed;
	*ret = (struct verdict){.fault = s.job.fault};
	snprintf(ret->shape, sizeof(ret->shape), "data %u, tensor %u, pipeline %u%s%s", s.job.data,
		s.job.tensor, s.job.pipeline, s.job.experts ? ", experts" : "",
		s.job.async ? ", host ahead" : "");
	if (s.job.fault == JOB_HANG)
		s.agents.end_ns =
			START + (int64_t)(3 * s.job.steps * s.job.step_ns) + 10 * (int64_t)NS_PER_S;
	set_clocks(&s, clocks);
	r = fleet_new(&core, &f);
	if (r == 0)
		r = play_new(&s, &p);
	if (r < 0)
		return r;
	do {
		r = play_until(p, f, play_now(p) + PLAY_TICK_NS);
		judge(&s.job, f, ret);
	} while (r > 0);
	if (s.job.fault == JOB_NONE)
		ret->right = !ret->false_alarms;
	ret->span_ns = (uint64_t)(play_end(p) - START);
	ret->messages = play_counts(p).messages;
	ret->calls = play_counts(p).calls;
	return r;
}
