/* SPDX-License-Identifier: Apache-2.0 */
/* job_random.c - jobs as they occur: sizes, schedules and unevenness drawn from ordinary ranges. */
#include "cluster/simulate/job_private.h"

#include <math.h>

#define MS UINT64_C(1000000)

static uint32_t pick(uint64_t *state, uint32_t low, uint32_t high)
{
	return low + (uint32_t)(job_draw(state) * (high - low + 1));
}

static double between(uint64_t *state, double low, double high)
{
	return low + job_draw(state) * (high - low);
}

/* Data, tensor and pipeline parallel alone, two of them, all of them, experts. */
static void draw_shape(uint64_t *state, struct job_spec *s)
{
	switch (pick(state, 0, 6)) {
	case 0: s->data = pick(state, 4, 64); break;
	case 1:
		s->data = pick(state, 2, 8);
		s->tensor = 1U << pick(state, 1, 3);
		break;
	case 2:
		s->data = pick(state, 2, 8);
		s->pipeline = pick(state, 2, 8);
		break;
	case 3:
		s->data = pick(state, 2, 4);
		s->pipeline = pick(state, 2, 4);
		s->tensor = 1U << pick(state, 1, 2);
		break;
	case 4:
		s->data = pick(state, 4, 8);
		s->experts = true;
		break;
	case 5:
		s->data = pick(state, 3, 6);
		s->pipeline = pick(state, 3, 4);
		s->fill_first = true;
		break;
	default:
		s->data = pick(state, 4, 32);
		s->async = true;
		break;
	}
	s->microbatches = s->pipeline > 1 ? s->pipeline * pick(state, 1, 3) : pick(state, 1, 3);
	s->layers = pick(state, 2, 6);
	s->buckets = pick(state, 1, 6);
}

/* In a step the transfers of a collective together take a good part of it longer; a message that the next
 * stage waits for likewise. A link without peers is slow from some step on: it is known by its past. */
static void draw_link(uint64_t *state, struct job_spec *s)
{
	double extra = between(state, 0.15, 0.5) * (double)s->step_ns;
	uint32_t parts = 1;

	if (s->pipeline == 1)
		parts = s->tensor > 1 ? 2 * s->microbatches * s->layers : s->buckets;
	s->link_ns = (uint64_t)(extra / parts);
	s->link_back = job_draw(state) < 0.5;
	if (s->pipeline * s->tensor == 1)
		s->from_step = s->steps / 2;
}

static void draw_fault(uint64_t *state, struct job_spec *s)
{
	uint32_t workers = s->data * s->tensor * s->pipeline;

	if (s->fault == JOB_STAGE && s->pipeline < 3)
		s->fault = JOB_SLOW;
	if (s->async && (s->fault == JOB_SLOW || s->fault == JOB_DRIFT))
		s->fault =
			JOB_LATE; /* a slow GPU behind a host that runs ahead is not to be seen */
	if (s->fault == JOB_NONE)
		return;
	if (s->fault == JOB_MOVING || s->fault == JOB_LINK)
		s->async = false;
	s->async |= s->fault == JOB_GPU;
	s->faulty[0] = pick(state, 0, workers - 1);
	s->faulty_count = 1;
	s->amount = between(state, 0.1, 1.0);
	switch (s->fault) {
	case JOB_SLOW:
		if (s->data >= 5 && job_draw(state) < 0.25) { /* two of one stage */
			uint32_t each = s->data * s->tensor, stage = s->faulty[0] / each;

			s->faulty[1] = stage * each + (s->faulty[0] % each + s->tensor) % each;
			s->faulty_count = 2;
		}
		if (job_draw(state) < 0.3)
			s->from_step = s->steps / 3;
		break;
	case JOB_LATE:
		s->period = pick(state, 1, 20);
		s->late_ns = (uint64_t)(between(state, 0.25, 1.0) * (double)s->step_ns);
		break;
	case JOB_DRIFT: s->amount = between(state, 0.3, 1.0); break;
	case JOB_STAGE:
		s->stage = (int32_t)pick(state, 0, s->pipeline - 1);
		s->amount = between(state, 0.25, 0.8);
		break;
	case JOB_MOVING: s->amount = between(state, 0.2, 0.35); break;
	case JOB_LINK: draw_link(state, s); break;
	case JOB_HANG: s->from_step = s->steps / 2; break;
	case JOB_GPU:
		s->amount = between(state, 0.2, 0.8);
		s->from_step = job_draw(state) < 0.5 ? s->steps / 3 : 0;
		break;
	default: break;
	}
}

struct job_spec job_spec_random(uint64_t seed, enum job_fault fault)
{
	struct job_spec s = {.seed = seed, .data = 1, .tensor = 1, .pipeline = 1, .fault = fault};
	uint64_t state = seed * 7919 + 17;

	draw_shape(&state, &s);
	s.clips = job_draw(&state) < 0.7 || s.async;
	s.waits_unknown = job_draw(&state) < 0.3;
	s.seq_per_comm = job_draw(&state) < 0.3;
	s.steps = pick(&state, 80, 160);
	s.step_ns = (uint64_t)between(&state, 100, 600) * MS;
	s.jitter = between(&state, 0.005, 0.04);
	s.lasting = between(&state, 0, 0.006);
	if (s.pipeline > 1) {
		s.first_extra = between(&state, 0, 0.04);
		s.last_extra = between(&state, 0, 0.06);
	}
	s.evaluate_every = job_draw(&state) < 0.2 ? pick(&state, 20, 40) : 0;
	s.clock_error_ns = job_draw(&state) < 0.3 ? (uint64_t)between(&state, 1, 20) * MS : 0;
	draw_fault(&state, &s);
	s.sends_overlap = job_draw(&state) < 0.4;
	return s;
}

void job_spec_stretch(struct job_spec *s, uint32_t times)
{
	s->step_ns *= times;
	s->late_ns *= times;
	s->link_ns *= times;
}
