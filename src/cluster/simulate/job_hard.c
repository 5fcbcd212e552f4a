/* SPDX-License-Identifier: Apache-2.0 */
/* job_hard.c - what real jobs do that makes them harder to judge. Ranges are of recordings of 2 to 8 ranks on an H200
 * (tests/gpu/ranks.py: PyTorch's DDP, FSDP, pipelines of isend and irecv) and, where one machine cannot show it, of
 * traces of production clusters:
 *
 *   steps differ by 2 to 6 % (lognormal), one in a hundred takes 1.1 to 2.2 times as long
 *   hosts run ahead also in pipelines: all calls of a step in its first 10 to 20 %, one wait
 *   ends of a collective: 0.06 to 0.4 ms apart on one machine, up to 10 ms in a cluster
 *   steps of up to 47 s; barriers that nobody records; Recvs posted under compute (clusters) */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cluster/simulate/job_private.h"
#include "wire/ids.h"

#define TAG_BIT                                                                                    \
	40 /* of a number that a rank counts itself: which communicator of its process it is */
#define OWN_COMMS 64
#define MS        UINT64_C(1000000)

const char *job_trait_id(enum job_trait t)
{
	static const char *const ids[] = {
#define X(NAME, id) [JOB_TRAIT_##NAME] = id,
		JOB_TRAITS(X)
#undef X
	};

	return ids[t];
}

static double between(uint64_t *state, double low, double high)
{
	return low + job_draw(state) * (high - low);
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
	       s->fault == JOB_GPU;
}

void job_spec_harden(struct job_spec *s)
{
	uint64_t state = hash_number(s->seed ^ 0x68617264);
	uint64_t step_ns;

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
