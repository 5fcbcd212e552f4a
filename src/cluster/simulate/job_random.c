/* SPDX-License-Identifier: Apache-2.0 */
/* job_random.c - jobs as they occur: sizes, schedules and unevenness drawn from ordinary ranges. */
#include "cluster/simulate/job_private.h"

#include <math.h>

#include "base/clock.h"
#include "base/hash.h"
#include "wire/ids.h"

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
		s->from_step =
			s->steps / 3; /* what is so from the beginning is how work is divided */
		break;
	case JOB_MOVING: s->amount = between(state, 0.2, 0.35); break;
	case JOB_LINK: draw_link(state, s); break;
	case JOB_HANG: s->from_step = s->steps / 2; break;
	case JOB_GPU:
		s->amount = between(state, 0.2, 0.8);
		s->from_step = job_draw(state) < 0.5 ? s->steps / 3 : 0;
		break;
	case JOB_EXPERT:
		s->amount = between(state, 0.6, 2.0);
		s->from_step = s->steps / 3;
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

/* What real jobs do that makes them harder to judge. Ranges are of recordings of 2 to 8 ranks on an H200
 * (tests/gpu/ranks.py: PyTorch's DDP, FSDP, pipelines of isend and irecv) and, where one machine cannot show it, of
 * traces of production clusters:
 *
 *   steps differ by 2 to 6 % (lognormal), one in a hundred takes 1.1 to 2.2 times as long
 *   hosts run ahead also in pipelines: all calls of a step in its first 10 to 20 %, one wait
 *   ends of a collective: 0.06 to 0.4 ms apart on one machine, up to 10 ms in a cluster
 *   steps of up to 47 s; barriers that nobody records; Recvs posted under compute (clusters) */

#define TAG_BIT                                                                                    \
	40 /* of a number that a rank counts itself: which communicator of its process it is */
#define OWN_COMMS 64

const char *job_trait_id(enum job_trait t)
{
	return LIST_IDS(JOB_TRAITS)[t];
}

static void draw_trait(uint64_t *state, struct job_spec *s, enum job_trait t, double chance)
{
	s->traits |= (uint32_t)(job_draw(state) < chance) << t;
}

/* 5 to 47 s, of which few fit into an hour. */
static void lengthen(uint64_t *state, struct job_spec *s)
{
	double times = exp(between(state, log(5e9), log(47e9))) / (double)s->step_ns;

	s->steps = s->steps / 2;
	s->from_step /= 2;
	s->period = MIN(s->period, 8U);
	s->step_ns = (uint64_t)((double)s->step_ns * times);
	s->late_ns = (uint64_t)((double)s->late_ns * times);
	s->link_ns = (uint64_t)((double)s->link_ns * times);
}

/* A slow GPU, stage or link, and load that moves, are not to be seen in calls that hosts make ahead of their GPUs. */
static bool can_run_ahead(const struct job_spec *s)
{
	return s->fault == JOB_NONE || s->fault == JOB_LATE || s->fault == JOB_HANG ||
	       s->fault == JOB_GPU || s->fault == JOB_EXPERT;
}

/* Of jobs like these in which real runs were judged wrong: experts, and a GPU that is late in a grid of 2x2. */
static void harden_shape(uint64_t *state, struct job_spec *s)
{
	bool routed = s->fault == JOB_NONE && job_draw(state) < 0.25;

	if (s->fault == JOB_EXPERT || routed) {
		s->tensor = s->pipeline = 1;
		s->data = pick(state, 4, 8);
		s->experts = true;
	} else if (s->fault == JOB_GPU && job_draw(state) < 0.3) {
		s->data = s->tensor = 2;
		s->pipeline = 1;
	}
	s->faulty[0] %= s->data * s->tensor * s->pipeline;
	s->traits |= (uint32_t)(routed || s->fault == JOB_EXPERT) << JOB_TRAIT_ROUTED;
}

/* Work that is no fault, which ranks do beside. */
static void draw_aside(uint64_t *state, struct job_spec *s)
{
	double chance = s->fault == JOB_NONE ? 0.3 : s->fault == JOB_HANG ? 0 : 0.1;

	/* While a step takes seconds, who is alone for several of them cannot be told from one that hangs. */
	draw_trait(state, s, JOB_TRAIT_ALONE, job_has(s, JOB_TRAIT_LONG) ? 0 : chance);
	draw_trait(state, s, JOB_TRAIT_SNAPSHOT, job_has(s, JOB_TRAIT_ALONE) ? 0 : chance);
	if (job_has(s, JOB_TRAIT_ALONE) || job_has(s, JOB_TRAIT_SNAPSHOT)) {
		s->aside_every = pick(state, 20, 40);
		s->aside = job_has(s, JOB_TRAIT_ALONE) ? between(state, 2.5, 8)
						       : between(state, 0.5, 3);
	}
	if (job_has(s, JOB_TRAIT_ROUTED))
		s->routing = between(state, 0.05, 0.12);
	if (s->fault == JOB_MOVING && job_draw(state) < 0.5 && !job_has(s, JOB_TRAIT_LONG))
		s->from_step = s->steps / 3;
}

void job_spec_harden(struct job_spec *s)
{
	uint64_t state = hash_number(s->seed ^ 0x68617264);
	uint64_t shape = hash_number(s->seed ^ 0x7368617065);
	uint64_t step_ns;

	harden_shape(&shape, s);
	draw_trait(&state, s, JOB_TRAIT_AHEAD, can_run_ahead(s) ? 0.6 : 0);
	s->async |= job_has(s, JOB_TRAIT_AHEAD);
	s->clips |= s->async;
	s->host_share = between(&state, 0.1, 0.2);
	draw_trait(&state, s, JOB_TRAIT_POSTED, s->pipeline > 1 && !s->async ? 0.6 : 0);
	draw_trait(&state, s, JOB_TRAIT_BARRIER, 0.3);
	draw_trait(&state, s, JOB_TRAIT_LONG, 0.12);
	draw_trait(&state, s, JOB_TRAIT_ONE_EACH, s->fault == JOB_GPU ? 1 : 0.5);
	draw_trait(&state, s, JOB_TRAIT_BESIDE, 0.2);
	draw_trait(&state, s, JOB_TRAIT_MET_LATE, 0.35);
	draw_trait(&state, s, JOB_TRAIT_NAMELESS, job_has(s, JOB_TRAIT_MET_LATE) ? 0.5 : 0);
	s->per_node = job_has(s, JOB_TRAIT_ONE_EACH) ? 1 : 0;
	s->jitter = between(&state, 0.02, 0.06);
	s->tail = between(&state, 0, 0.01);
	if (job_has(s, JOB_TRAIT_LONG))
		lengthen(&state, s);
	step_ns = s->step_ns;
	s->ends_ns = (uint64_t)exp(between(&state, log(0.1 * MS), log(10 * MS)));
	s->ends_ns = MIN(s->ends_ns, step_ns / 20);
	s->traits |= (uint32_t)(s->ends_ns > 2 * MS) << JOB_TRAIT_ENDS;
	if (job_has(s, JOB_TRAIT_MET_LATE)) {
		s->met_ns = (uint64_t)between(&state, 5, 20) * step_ns;
		s->met_for_ns = (uint64_t)(between(&state, 0.5, 3) * (double)NS_PER_S);
	}
	/* Nobody divides layers evenly. Who is a bit slower than its peers in a stage that has time makes nobody wait. */
	if (s->pipeline > 1 &&
		(s->fault == JOB_NONE || s->fault == JOB_LATE || s->fault == JOB_HANG))
		s->last_extra = between(&state, 0, 0.5);
	draw_aside(&shape, s);
}

/* What a rank counts by itself: calls of each of its communicators, of Sends and Recvs those to each peer. */
struct own {
	uint64_t comm, count;
	int32_t peer;
	uint16_t op;
	uint32_t tag;
};

/* 0: no room for another. */
static uint64_t own_number(struct own own[OWN_COMMS], size_t *count, const struct push_call *c)
{
	bool is_point = c->op == NCCL_SEND || c->op == NCCL_RECV;
	uint32_t tag = 0, last = 0;
	struct own *found = NULL;

	for (size_t i = 0; i < *count; i++) {
		last = MAX(last, own[i].tag);
		if (own[i].comm != c->comm)
			continue;
		tag = own[i].tag;
		if (own[i].peer == c->peer && (!is_point || own[i].op == c->op))
			found = &own[i];
	}
	if (!found && *count == OWN_COMMS)
		return 0;
	if (!found) {
		found = &own[(*count)++];
		*found = (struct own){c->comm, 0, c->peer, c->op, tag ? tag : last + 1};
	}
	return -((uint64_t)found->tag << TAG_BIT | ++found->count);
}

/* When the agent of @node came. */
static int64_t met_at(const struct job_spec *s, uint64_t node)
{
	double part = (double)(hash_number(s->seed + node) >> 11) / (double)(UINT64_C(1) << 53);

	return (int64_t)s->met_ns + (int64_t)(part * (double)s->met_for_ns);
}

void job_trace_meet(struct job_trace *t, const struct job_spec *s, uint32_t per_node)
{
	size_t kept = 0, count = 0;
	uint32_t worker = UINT32_MAX;
	struct own own[OWN_COMMS];

	if (!s->met_ns)
		return;
	for (size_t i = 0; i < t->call_count; i++) {
		struct blame_call c = t->calls[i];

		count = c.worker == worker ? count : 0;
		worker = c.worker;
		if (c.c.enter_ns < met_at(s, worker / per_node))
			continue;
		if (job_has(s, JOB_TRAIT_NAMELESS)) {
			c.c.seq = own_number(own, &count, &c.c);
			c.c.comm = 0;
			if (!c.c.seq)
				continue;
		}
		t->calls[kept++] = c;
	}
	t->call_count = kept;
	t->first_late_ns = t->first_late_ns < 0
				   ? -1
				   : MAX(t->first_late_ns, (int64_t)(s->met_ns + s->met_for_ns));
}
