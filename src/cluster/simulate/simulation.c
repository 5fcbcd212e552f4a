/* SPDX-License-Identifier: Apache-2.0 */
/* simulation.c - time goes on in pieces: in each, every agent makes what it would send, and it is put
 * among the messages under way; those that have arrived are handed out in order. */
#include "cluster/simulate/simulation.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/search.h"

#define CALIBRATING_PUSHES 30
#define LOOKS              5 /* of an agent for new calls, in the time between two batches */

struct agent {
	char name[PUSH_ID_MAX];
	uint64_t boot, batches;
	uint32_t pushes;   /* since the boot */
	bool is_new;       /* it has begun anew: it calibrates first */
	size_t first, end; /* its ranks */
	int64_t health_ns; /* next push */
	uint64_t phase_ns; /* its looks are not those of the others */
};

struct message { /* under way */
	struct simulation_message m;
	uint64_t order; /* of sending: what arrives at once keeps it */
	void *payload;
};

struct simulation {
	struct simulation_settings s;
	uint64_t random;
	struct agent *agents;
	size_t *sent, *looked;    /* calls of each rank */
	struct push_haste *haste; /* likewise */
	uint64_t looks;
	int64_t now_ns;            /* what was sent before is under way */
	struct message *under_way; /* from @first, ascending by arrival after each piece */
	size_t first, count, capacity;
	uint64_t order;
	void *last; /* payload of the message that was handed out */
};

static uint64_t draw(struct simulation *s)
{
	s->random += 0x9e3779b97f4a7c15ULL;
	return hash_number(s->random);
}

static double draw_unit(struct simulation *s)
{
	return (double)(draw(s) >> 11) / (double)(1ULL << 53);
}

/* The fault of @kind that @node has at @at_ns; NULL: none. */
static const struct simulation_fault *fault_at(
	const struct simulation *s, enum simulation_fault_kind kind, uint32_t node, int64_t at_ns)
{
	for (size_t i = 0; i < s->s.fault_count; i++) {
		const struct simulation_fault *f = &s->s.faults[i];

		if (f->kind == kind && (f->node == node || f->node == UINT32_MAX) &&
			at_ns >= f->from_ns && at_ns < f->to_ns)
			return f;
	}
	return NULL;
}

int simulation_new(const struct simulation_settings *settings, struct simulation **ret)
{
	_cleanup_(simulation_freep) struct simulation *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->s = *settings;
	s->random = hash_number(settings->seed);
	s->now_ns = settings->start_ns;
	if (!s->s.batch_ns)
		s->s.batch_ns = NS_PER_S;
	if (s->s.score == 0)
		s->s.score = 0.94;
	s->agents = calloc(MAX(settings->nodes, 1U), sizeof(*s->agents));
	s->sent = calloc(MAX(settings->rank_count, (size_t)1), sizeof(*s->sent));
	s->looked = calloc(MAX(settings->rank_count, (size_t)1), sizeof(*s->looked));
	s->haste = calloc(MAX(settings->rank_count, (size_t)1), sizeof(*s->haste));
	if (!s->agents || !s->sent || !s->looked || !s->haste)
		return -ENOMEM;
	for (uint32_t n = 0; n < settings->nodes; n++) {
		struct agent *a = &s->agents[n];

		snprintf(a->name, sizeof(a->name), "node-%u", n);
		a->boot = draw(s) | 1;
		a->phase_ns = hash_number(settings->seed ^ hash_number(n + 1)) % s->s.batch_ns;
		a->health_ns = settings->start_ns +
			       (settings->push_ns ? (int64_t)(draw(s) % settings->push_ns) : 0);
	}
	for (size_t r = settings->rank_count; r-- > 0;) {
		struct agent *a = &s->agents[settings->ranks[r].node];

		a->first = r;
		a->end = MAX(a->end, r + 1);
	}
	*ret = TAKE(s);
	return 0;
}

void simulation_free(struct simulation *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->under_way[s->first + i].payload);
	free(s->under_way);
	free(s->agents);
	free(s->sent);
	free(s->looked);
	free(s->haste);
	free(s->last);
	free(s);
}

static struct push_who who_of(const struct simulation *s, uint32_t node)
{
	const struct agent *a = &s->agents[node];
	struct push_who who = {.rank = (int32_t)(node * s->s.gpus_per_node),
		.world_size = (uint32_t)s->s.rank_count,
		.boot = a->boot};

	snprintf(who.cluster, sizeof(who.cluster), "%s", s->s.cluster);
	memcpy(who.node, a->name, sizeof(who.node));
	snprintf(who.provider, sizeof(who.provider), "%s", s->s.provider ? s->s.provider : "");
	return who;
}

/* How far the clock of @node is ahead at @at_ns. */
static int64_t clock_of(const struct simulation *s, uint32_t node, int64_t at_ns)
{
	int64_t ahead = 0;

	for (size_t i = 0; i < s->s.fault_count; i++) {
		const struct simulation_fault *f = &s->s.faults[i];

		if (f->kind == SIMULATION_CLOCK_STEP &&
			(f->node == node || f->node == UINT32_MAX) && at_ns >= f->from_ns)
			ahead += (int64_t)(f->value * NS_PER_S);
	}
	return ahead;
}

static int put(struct simulation *s, struct message m)
{
	if (s->first > s->count + 64) {
		memmove(s->under_way, s->under_way + s->first, s->count * sizeof(m));
		s->first = 0;
	}
	if (s->first + s->count == s->capacity) {
		size_t capacity = MAX(2 * s->capacity, (size_t)64);
		struct message *grown = realloc(s->under_way, capacity * sizeof(m));

		if (!grown) {
			free(m.payload);
			return -ENOMEM;
		}
		s->under_way = grown;
		s->capacity = capacity;
	}
	m.order = s->order++;
	s->under_way[s->first + s->count++] = m;
	return 0;
}

ORDER(by_arrival, struct message, ASCENDING(m.at_ns) ?: ASCENDING(order))

/* Sends @payload (taken over) of @size bytes at @at_ns: when it arrives, and how often. */
static int post(
	struct simulation *s, uint32_t node, int kind, void *payload, size_t size, int64_t at_ns)
{
	const struct simulation_fault *late = fault_at(s, SIMULATION_REORDER, node, at_ns);
	const struct simulation_fault *twice = fault_at(s, SIMULATION_DUPLICATES, node, at_ns);
	const struct simulation_fault *cut = fault_at(s, SIMULATION_PARTITION, node, at_ns);
	struct message m = {.payload = payload, .m = {.node = node, .kind = kind}};

	m.m.at_ns = at_ns + (int64_t)(s->s.latency_ns / 2) +
		    (s->s.latency_ns ? (int64_t)(draw(s) % s->s.latency_ns) : 0);
	if (late)
		m.m.at_ns += (int64_t)(draw_unit(s) * late->value * NS_PER_S);
	if (cut)
		m.m.at_ns = MAX(m.m.at_ns, cut->to_ns + (int64_t)(draw(s) % NS_PER_S));
	if (twice && draw_unit(s) < twice->value) {
		struct message again = m;

		again.payload = malloc(size);
		if (!again.payload) {
			free(payload);
			return -ENOMEM;
		}
		memcpy(again.payload, payload, size);
		if (kind == SIMULATION_CALLS) {
			struct push_calls *c = again.payload;

			c->items = (struct push_call *)(c + 1);
		}
		again.m.at_ns += (int64_t)(draw(s) % NS_PER_S);
		if (put(s, again) < 0) {
			free(payload);
			return -ENOMEM;
		}
	}
	return put(s, m);
}

static int send_health(struct simulation *s, uint32_t node, int64_t at_ns)
{
	const struct simulation_fault *slow = fault_at(s, SIMULATION_SLOW, node, at_ns);
	const struct simulation_fault *lie = fault_at(s, SIMULATION_LYING, node, at_ns);
	const struct simulation_fault *clock = fault_at(s, SIMULATION_GPU_CLOCK, node, at_ns);
	const struct simulation_fault *more = fault_at(s, SIMULATION_LAUNCHES, node, at_ns);
	struct agent *a = &s->agents[node];
	double speed = slow ? slow->value : 1, noise = 0.01 * (draw_unit(s) - 0.5);
	struct push_health *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	*h = (struct push_health){.who = who_of(s, node),
		.sent_ns = at_ns + clock_of(s, node, at_ns),
		.state = a->is_new && a->pushes < CALIBRATING_PUSHES ? PUSH_CALIBRATING
								     : PUSH_ACTIVE,
		.throughput = MIN(1.0, speed + noise),
		.compute = 0.9 * speed,
		.memory = 0.9,
		.cpu = 0.9,
		.score = s->s.score - 0.65 * (1 - speed) + noise,
		.gpu_count = s->s.gpus_per_node};
	h->score = lie ? lie->value : MAX(0.0, MIN(1.0, h->score));
	snprintf(h->gpu_model, sizeof(h->gpu_model), "%s", s->s.gpu_model ? s->s.gpu_model : "");
	snprintf(h->workload, sizeof(h->workload), "training");
	for (int i = 0; i < PUSH_SIGNAL_COUNT; i++)
		h->signals[i] = -1;
	h->signals[PUSH_SIGNAL_LAUNCH_RATE] =
		8000 * speed * (1 + 2 * noise) * (more ? more->value : 1);
	if (s->s.sm_clock_hz > 0)
		h->signals[PUSH_SIGNAL_SM_CLOCK] =
			s->s.sm_clock_hz * (1 + 0.2 * noise) * (clock ? clock->value : 1);
	h->signals[PUSH_SIGNAL_OWN_TIME] = 0.2 / speed * (1 + 2 * noise);
	a->pushes++;
	return post(s, node, SIMULATION_HEALTH, h, sizeof(*h), at_ns);
}

/* When the agent sends @c: once it has ended, or has lasted for a second. */
static int64_t due_ns(const struct push_call *c)
{
	return c->leave_ns ? c->leave_ns : c->enter_ns + (int64_t)NS_PER_S;
}

/* The calls of @node that ended before @until_ns and were not sent yet. */
static int send_calls(struct simulation *s, uint32_t node, int64_t until_ns)
{
	int64_t ahead = clock_of(s, node, until_ns);
	struct push_calls *b;
	size_t count = 0;

	for (int pass = 0; pass < 2; pass++) {
		if (pass && !count)
			return 0;
		b = pass ? malloc(sizeof(*b) + count * sizeof(struct push_call)) : NULL;
		if (pass && !b)
			return -ENOMEM;
		if (b)
			*b = (struct push_calls){.who = who_of(s, node),
				.batch = ++s->agents[node].batches,
				.sent_ns = until_ns + ahead,
				.items = (struct push_call *)(b + 1)};
		for (size_t r = s->agents[node].first; r < s->agents[node].end; r++) {
			const struct simulation_rank *rank = &s->s.ranks[r];
			size_t at = s->sent[r];

			for (; at < rank->count && due_ns(&rank->calls[at]) < until_ns; at++) {
				if (!pass) {
					count++;
					continue;
				}
				b->items[b->count] = rank->calls[at];
				b->items[b->count].enter_ns += ahead;
				if (b->items[b->count].leave_ns)
					b->items[b->count].leave_ns += ahead;
				b->count++;
			}
			if (pass)
				s->sent[r] = at;
		}
	}
	return post(s, node, SIMULATION_CALLS, b, sizeof(*b) + b->count * sizeof(struct push_call),
		until_ns);
}

static void restart_if_due(struct simulation *s, uint32_t node, int64_t from_ns, int64_t to_ns)
{
	for (size_t i = 0; i < s->s.fault_count; i++) {
		const struct simulation_fault *f = &s->s.faults[i];

		if (f->kind != SIMULATION_RESTART || (f->node != node && f->node != UINT32_MAX) ||
			f->from_ns < from_ns || f->from_ns >= to_ns)
			continue;
		s->agents[node].boot = draw(s) | 1;
		s->agents[node].is_new = true;
		s->agents[node].batches = 0;
		s->agents[node].pushes = 0;
	}
}

static int send_reports(struct simulation *s, int64_t from_ns, int64_t to_ns)
{
	for (size_t i = 0; i < s->s.report_count; i++) {
		const struct push_report *r = &s->s.reports[i];
		struct push_report *copy;
		int err;

		if (r->sent_ns < from_ns || r->sent_ns >= to_ns)
			continue;
		copy = malloc(sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		*copy = *r;
		err = post(s, 0, SIMULATION_REPORT, copy, sizeof(*copy), r->sent_ns);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Whether @node sends at its look at @at_ns: once in batch_ns, or if a rank was held up. */
static bool is_due(struct simulation *s, uint32_t node, int64_t at_ns)
{
	const struct agent *a = &s->agents[node];
	bool due = s->looks % LOOKS == a->phase_ns * LOOKS / s->s.batch_ns;

	for (size_t r = a->first; r < a->end; r++) {
		const struct simulation_rank *rank = &s->s.ranks[r];

		for (size_t *at = &s->looked[r];
			*at < rank->count && due_ns(&rank->calls[*at]) < at_ns; (*at)++)
			due |= push_haste_take(&s->haste[r], &rank->calls[*at]);
	}
	return due;
}

/* All that is sent in the next piece of time. */
static int advance(struct simulation *s)
{
	int64_t look_ns = MAX((int64_t)s->s.batch_ns / LOOKS, INT64_C(1));
	int64_t from_ns = s->now_ns, to_ns = from_ns + look_ns;
	int r = send_reports(s, from_ns, to_ns);

	for (uint32_t node = 0; r == 0 && node < s->s.nodes; node++) {
		struct agent *a = &s->agents[node];
		bool silent = fault_at(s, SIMULATION_SILENCE, node, to_ns - 1);
		int64_t at_ns = to_ns - (int64_t)a->phase_ns % look_ns;
		bool due = is_due(s, node, at_ns);

		restart_if_due(s, node, from_ns, to_ns);
		if (silent) {
			/* An agent that is silent has nothing of that time to send later. */
			for (size_t k = s->agents[node].first; k < s->agents[node].end; k++) {
				const struct simulation_rank *rank = &s->s.ranks[k];

				while (s->sent[k] < rank->count &&
					due_ns(&rank->calls[s->sent[k]]) < at_ns)
					s->sent[k]++;
			}
		} else if (s->s.rank_count && (due || to_ns >= s->s.end_ns)) {
			r = send_calls(s, node, at_ns);
		}
		while (r == 0 && s->s.push_ns && a->health_ns < to_ns) {
			if (!silent)
				r = send_health(s, node, a->health_ns);
			a->health_ns += (int64_t)s->s.push_ns;
		}
	}
	s->looks++;
	s->now_ns = to_ns;
	if (s->count)
		qsort(s->under_way + s->first, s->count, sizeof(*s->under_way), by_arrival);
	return r;
}

int simulation_next(struct simulation *s, struct simulation_message *ret)
{
	/* What is sent later arrives later than what was sent before now_ns, unless that takes its
	 * time: then it is not handed out before its moment. */
	while (!s->count || s->under_way[s->first].m.at_ns >= s->now_ns) {
		int r;

		if (s->now_ns >= s->s.end_ns) {
			if (!s->count)
				return 0;
			break;
		}
		r = advance(s);
		if (r < 0)
			return r;
	}
	free(s->last);
	s->last = s->under_way[s->first].payload;
	*ret = s->under_way[s->first].m;
	s->first++;
	s->count--;
	if (ret->kind == SIMULATION_HEALTH)
		ret->health = s->last;
	else if (ret->kind == SIMULATION_CALLS)
		ret->calls = s->last;
	else
		ret->report = s->last;
	return 1;
}
