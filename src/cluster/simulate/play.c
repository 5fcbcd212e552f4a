/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - the job is run first, as far as it goes; its calls are dealt out to the agents of its nodes. */
#include "cluster/simulate/play.h"

#include "base/clock.h"

#define REPORT_NS (10 * NS_PER_S)

struct play {
	struct job_trace job, beside;
	struct push_call *calls;
	size_t call_count;
	struct simulation_rank *ranks;
	struct push_report *reports;
	struct simulation *agents;
	struct simulation_message next;
	bool has_next;
	int64_t start_ns, now_ns, end_ns;
	struct play_counts counts;
	void (*watch)(void *arg, const struct simulation_message *m);
	void *watch_arg;
};

/* The calls of @t's worker @w, from *@from on, with the play's beginning as their time's origin. */
static void deal_rank(struct play *p, const struct job_trace *t, size_t w, uint32_t node,
	size_t *from, struct simulation_settings *a)
{
	struct simulation_rank *rank = &p->ranks[a->rank_count++];
	struct push_call *first = p->calls + p->call_count;

	*rank = (struct simulation_rank){.node = node, .calls = first};
	for (; *from < t->call_count && t->calls[*from].worker == w; ++*from) {
		struct push_call *c = &p->calls[p->call_count++];

		*c = t->calls[*from].c;
		c->enter_ns += a->start_ns;
		if (c->leave_ns)
			c->leave_ns += a->start_ns;
		p->end_ns = MAX(p->end_ns, c->enter_ns);
		p->end_ns = MAX(p->end_ns, c->leave_ns);
		rank->count++;
	}
}

static size_t nodes_needed(const struct play *p, uint32_t per_node)
{
	size_t ranks = MAX(p->job.worker_count, p->beside.worker_count);

	return (ranks + per_node - 1) / per_node;
}

/* The calls of all ranks in one array, node by node. */
static int deal_calls(struct play *p, struct simulation_settings *a)
{
	size_t ranks = p->job.worker_count + p->beside.worker_count;
	size_t nodes = nodes_needed(p, a->gpus_per_node);
	size_t from[2] = {0};

	p->calls = calloc(p->job.call_count + p->beside.call_count + 1, sizeof(*p->calls));
	p->ranks = calloc(ranks + 1, sizeof(*p->ranks));
	if (!p->calls || !p->ranks)
		return -ENOMEM;
	for (uint32_t node = 0; node < nodes; node++) {
		const struct job_trace *both[] = {&p->job, &p->beside};

		for (size_t j = 0; j < ARRAY_SIZE(both); j++)
			for (size_t w = (size_t)node * a->gpus_per_node;
				w <
				MIN((node + (size_t)1) * a->gpus_per_node, both[j]->worker_count);
				w++)
				deal_rank(p, both[j], w, node, &from[j], a);
	}
	a->ranks = p->ranks;
	return 0;
}

/* Every so often each faulty worker's agent says why. */
static int deal_reports(
	struct play *p, const struct play_settings *s, struct simulation_settings *a)
{
	size_t each = (size_t)((a->end_ns - a->start_ns) / (int64_t)REPORT_NS), n = 0;

	if (!s->report || !s->job.faulty_count)
		return 0;
	p->reports = calloc(each * s->job.faulty_count + 1, sizeof(*p->reports));
	if (!p->reports)
		return -ENOMEM;
	for (size_t i = 0; i < each; i++) {
		for (uint32_t f = 0; f < s->job.faulty_count; f++) {
			struct push_report *r = &p->reports[n++];
			uint32_t node = s->job.faulty[f] / a->gpus_per_node;

			*r = *s->report;
			r->sent_ns = a->start_ns + (int64_t)((i + 1) * REPORT_NS);
			r->pid = 1000 + s->job.faulty[f];
			r->world_rank = (int32_t)s->job.faulty[f];
			snprintf(r->who.cluster, sizeof(r->who.cluster), "%s", a->cluster);
			snprintf(r->who.node, sizeof(r->who.node), "node-%u", node);
		}
	}
	a->reports = p->reports;
	a->report_count = n;
	return 0;
}

/* The ranks of a node have one clock, whichever job they are of: it is the agents' to be wrong. */
static int run_job(const struct job_spec *s, struct job_trace *ret)
{
	struct job_spec on_nodes = *s;

	on_nodes.clock_error_ns = 0;
	return s->steps ? job_run(&on_nodes, ret) : 0;
}

int play_new(const struct play_settings *s, struct play **ret)
{
	_cleanup_(play_freep) struct play *p = calloc(1, sizeof(*p));
	struct simulation_settings a = s->agents;
	int r;

	if (!p)
		return -ENOMEM;
	p->watch = s->watch;
	p->watch_arg = s->watch_arg;
	a.gpus_per_node = MAX(a.gpus_per_node, 1U);
	p->start_ns = p->now_ns = a.start_ns;
	r = run_job(&s->job, &p->job);
	if (r == 0)
		r = run_job(&s->beside, &p->beside);
	if (r < 0)
		return r;
	job_trace_meet(&p->job, &s->job, a.gpus_per_node);
	a.rank_count = 0;
	r = deal_calls(p, &a);
	if (r < 0)
		return r;
	a.nodes = a.nodes ?: (uint32_t)nodes_needed(p, a.gpus_per_node);
	a.end_ns = a.end_ns ?: p->end_ns + (int64_t)NS_PER_S;
	p->end_ns = MAX(p->end_ns, a.end_ns);
	r = deal_reports(p, s, &a);
	r = r ?: simulation_new(&a, &p->agents);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

void play_free(struct play *p)
{
	job_trace_done(&p->job);
	job_trace_done(&p->beside);
	simulation_freep(&p->agents);
	free(p->calls);
	free(p->ranks);
	free(p->reports);
	free(p);
}

static int give(struct play *p, struct fleet *f, const struct simulation_message *m)
{
	struct calls_taken taken = {0};
	struct threshold t;
	int r = 0;

	p->counts.messages++;
	if (p->watch)
		p->watch(p->watch_arg, m);
	switch (m->kind) {
	case SIMULATION_HEALTH:
		p->counts.refused += fleet_take_health(f, m->health, 0, m->at_ns, &t) != NODES_NONE;
		break;
	case SIMULATION_CALLS:
		r = fleet_take_calls(f, m->calls, m->at_ns, &taken);
		p->counts.calls += taken.taken;
		p->counts.duplicate += taken.duplicate;
		p->counts.refused += taken.refused;
		break;
	case SIMULATION_REPORT: r = fleet_take_report(f, m->report, m->at_ns); break;
	}
	return r;
}

int play_until(struct play *p, struct fleet *f, int64_t until_ns)
{
	int r = 1;

	for (;;) {
		int64_t tick_ns = p->now_ns + PLAY_TICK_NS;

		if (!p->has_next) {
			r = simulation_next(p->agents, &p->next);
			if (r < 0)
				return r;
			p->has_next = r > 0;
		}
		if (p->has_next && p->next.at_ns < MIN(tick_ns, until_ns)) {
			r = give(p, f, &p->next);
			if (r < 0)
				return r;
			p->has_next = false;
			continue;
		}
		if (!p->has_next && p->now_ns >= p->end_ns)
			return 0;
		if (tick_ns > until_ns)
			return 1;
		fleet_tick(f, tick_ns);
		p->now_ns = tick_ns;
	}
}

const struct job_trace *play_job(const struct play *p)
{
	return &p->job;
}

int64_t play_now(const struct play *p)
{
	return p->now_ns;
}

int64_t play_end(const struct play *p)
{
	return p->end_ns;
}

int64_t play_first_late(const struct play *p)
{
	return p->job.first_late_ns < 0 ? -1 : p->start_ns + p->job.first_late_ns;
}

struct play_counts play_counts(const struct play *p)
{
	return p->counts;
}
