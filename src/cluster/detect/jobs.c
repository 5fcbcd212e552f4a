/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - which ranks work together: two that are in one communicator, or send to each other, are of
 * one job, and so is everybody whom they meet (union of sets; the lowest worker stands for its set). */

#include "cluster/detect/calls_core.h"

#define PAUSE_NS    INT64_C(5000000000) /* so long after each other ranks make their last calls, */
#define PAUSE_STEPS 2                   /* or so much */

static uint32_t root_of(uint32_t *of, uint32_t worker)
{
	while (of[worker] != worker) {
		of[worker] = of[of[worker]];
		worker = of[worker];
	}
	return worker;
}

static void join(uint32_t *of, uint32_t a, uint32_t b)
{
	uint32_t x = root_of(of, a), y = root_of(of, b);

	if (x < y)
		of[y] = x;
	else
		of[x] = y;
}

static void join_all(const struct idmap *comms, uint32_t *of)
{
	size_t cursor = 0;

	for (const struct comm *m; (m = idmap_next(comms, &cursor, NULL));)
		for (size_t i = 1; i < m->member_count; i++)
			join(of, m->members[0].worker, m->members[i].worker);
}

static void name(const struct calls *c, struct calls_jobs *j)
{
	size_t cursor = 0;

	for (const struct comm *m; (m = idmap_next(&c->comms.comms, &cursor, NULL));) {
		struct job_view *v;

		if (!m->member_count || j->of[m->members[0].worker] == CALLS_NO_JOB)
			continue;
		v = &j->items[j->of[m->members[0].worker]];
		v->comms++;
		if (m->nranks > v->nranks || (m->nranks == v->nranks && m->comm < v->comm)) {
			v->nranks = m->nranks;
			v->comm = m->comm;
		}
	}
}

int calls_jobs(const struct calls *c, struct calls_jobs *ret)
{
	struct calls_jobs j = {.worker_count = c->workers.count};

	j.of = calloc(j.worker_count + 1, sizeof(*j.of));
	j.items = calloc(j.worker_count + 1, sizeof(*j.items));
	if (!j.of || !j.items) {
		calls_jobs_done(&j);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < j.worker_count; i++)
		j.of[i] = i;
	join_all(&c->comms.comms, j.of);
	join_all(&c->comms.pairs, j.of);
	for (uint32_t i = 0; i < j.worker_count; i++)
		j.of[i] = root_of(j.of, i);
	/* Sets become numbers from 0, in the order of their lowest workers, which are seen first. */
	for (uint32_t i = 0; i < j.worker_count; i++) {
		const struct worker *w = c->workers.items[i];
		uint32_t root = j.of[i];

		if (!w || !w->members) {
			j.of[i] = CALLS_NO_JOB;
			continue;
		}
		j.of[i] = root == i ? (uint32_t)j.count++ : j.of[root];
		j.items[j.of[i]].ranks++;
		j.items[j.of[i]].last_ns = MAX(j.items[j.of[i]].last_ns, w->last_ns);
		j.items[j.of[i]].is_waiting |= w->waiting && w->waiting == c->hangs.round;
	}
	name(c, &j);
	*ret = j;
	return 0;
}

struct outlived { /* which of the nodes that a job is on was heard of last */
	const struct sender *by;
	int64_t next_ns; /* and when another of them */
};

static void note_heard(struct outlived *o, const struct sender *s)
{
	if (s == o->by)
		return;
	if (!o->by || s->last_ns > o->by->last_ns) {
		o->next_ns = o->by ? o->by->last_ns : 0;
		o->by = s;
	} else {
		o->next_ns = MAX(o->next_ns, s->last_ns);
	}
}

/* What has become of @job, as @w of @node has it. That it has ended is known by whoever outlived it: a node of which
 * nothing comes any more, and of its job's others neither, may have taken the job with it. */
static enum nodes_work work_of(const struct calls *c, const struct job_view *job,
	const struct outlived *o, const struct worker *w, const struct sender *node)
{
	int64_t pause_ns = calls_lasting(c, PAUSE_NS, PAUSE_STEPS);
	int64_t other_ns = o->by == node ? o->next_ns : o->by->last_ns;

	if (job->is_waiting || job->last_ns - w->last_ns > pause_ns)
		return NODES_WORK_GOES_ON;
	if (c->now_ns - job->last_ns <= pause_ns)
		return NODES_WORK_PAUSES;
	return other_ns - job->last_ns > pause_ns ? NODES_WORK_ENDED : NODES_WORK_GOES_ON;
}

/* The work of each node is that of its worst rank: one that others wait for, or that they went on without. */
static int find_work(struct calls *c, const struct calls_jobs *j)
{
	_cleanup_free_ struct outlived *outlived = calloc(j->count + 1, sizeof(*outlived));

	if (!outlived)
		return -ENOMEM;
	for (size_t i = 0; i < c->senders.count; i++)
		if (c->senders.items[i])
			c->senders.items[i]->work = NODES_WORK_ENDED;
	for (size_t i = 0; i < j->worker_count; i++)
		if (j->of[i] != CALLS_NO_JOB)
			note_heard(&outlived[j->of[i]],
				c->senders.items[((struct worker *)c->workers.items[i])->node]);
	for (size_t i = 0; i < j->worker_count; i++) {
		const struct worker *w = c->workers.items[i];
		struct sender *node = w ? c->senders.items[w->node] : NULL;
		enum nodes_work work = NODES_WORK_GOES_ON;

		if (!w)
			continue;
		if (j->of[i] != CALLS_NO_JOB)
			work = work_of(c, &j->items[j->of[i]], &outlived[j->of[i]], w, node);
		node->work = MIN(node->work, work);
	}
	return 0;
}

enum nodes_work calls_work(struct calls *c, const char *node)
{
	const struct sender *s = senders_find(&c->senders, node);
	struct calls_jobs jobs;

	if (!s || !s->workers)
		return NODES_WORK_GOES_ON;
	if (c->worked_ns != c->now_ns && calls_jobs(c, &jobs) == 0) {
		if (find_work(c, &jobs) == 0)
			c->worked_ns = c->now_ns;
		calls_jobs_done(&jobs);
	}
	return c->worked_ns == c->now_ns ? s->work : NODES_WORK_GOES_ON;
}

void calls_heard(struct calls *c, const char *node, int64_t received_ns)
{
	struct sender *s = senders_find(&c->senders, node);

	if (s)
		s->last_ns = MAX(s->last_ns, received_ns);
}

void calls_jobs_done(struct calls_jobs *j)
{
	free(j->of);
	free(j->items);
}

int calls_members(const struct calls *c, uint64_t comm, uint32_t *ret, size_t max)
{
	const struct comm *m = comms_find(&c->comms, comm);

	if (!m)
		return -ENOENT;
	for (size_t i = 0; i < max; i++)
		ret[i] = UINT32_MAX;
	for (size_t i = 0; i < m->member_count; i++)
		if ((size_t)m->members[i].place < max)
			ret[m->members[i].place] = m->members[i].worker;
	return m->places;
}
