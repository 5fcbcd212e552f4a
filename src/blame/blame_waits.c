/* SPDX-License-Identifier: Apache-2.0 */
/* blame_waits.c - who waits without doing anything else.
 *
 * A worker that does something else while a Recv is pending is not waiting: it has posted it ahead. Where that is seen
 * of a good part of the Recvs from one peer, it did so with the others, too: those were there when it came back for
 * them, and are not waited for, unless calls say themselves how much of them was waited, or it came to them from its work,
 * while it posts what it posts ahead right behind another call. That is right of workers with the same peers, which are
 * compared with each other, and not of stages: a stage in the middle has two neighbours, the others one.
 *
 * Where most waits of a job are not known (frameworks let the GPU wait for a collective, and the host for the GPU),
 * everybody is taken to have waited until the last one came, but once from one known wait to the next, or in a step: a
 * host that is behind stays behind at each collective until all meet in a wait, and nobody waits for it twice. */
#include "blame/blame_job.h"

#include "base/macros.h"

#define GROUP_NS     100000 /* Sends and Recvs of one group begin within */
#define AHEAD_LEAST  3      /* Recvs from one peer with something else in them */
#define AHEAD_SHARE  0.2
#define SILENT_SHARE 0.5 /* of the calls, that do not say how long they waited */

static bool is_silent(const struct job *j, uint32_t item)
{
	return job_call(j, item)->wait_ns == UINT64_MAX;
}

struct pending { /* Recvs of a worker from one peer */
	int32_t peer;
	uint32_t count, ahead;
	uint32_t told;   /* of those ahead, that say themselves how much of them was waited */
	uint32_t behind; /* likewise, that were posted right behind another call, before work */
};

#define PENDING_MAX 64 /* peers of a worker; it has a few in a pipeline */

static struct pending *pending_of(struct pending *list, size_t *n, int32_t peer)
{
	size_t i = 0;

	while (i < *n && list[i].peer != peer)
		i++;
	if (i == PENDING_MAX)
		return NULL;
	if (i == *n)
		list[(*n)++] = (struct pending){.peer = peer};
	return &list[i];
}

/* Whether the worker made another call while @item was pending, which was not of its group. */
static bool has_another(const struct job *j, size_t item, size_t end)
{
	const struct job_item *t = &j->items[item];
	const struct push_call *c = job_call(j, (uint32_t)item);

	for (size_t i = item + 1; i < end && j->items[i].enter_ns < t->leave_ns + JOB_EDGE_NS;
		i++) {
		const struct push_call *next = job_call(j, (uint32_t)i);

		if (next->enter_ns > c->enter_ns &&
			(uint64_t)next->enter_ns - (uint64_t)c->enter_ns > GROUP_NS &&
			job_is_within(c, next))
			return true;
	}
	return false;
}

/* Whether the call says that less than all of it was waited. */
static bool tells_wait(const struct job *j, uint32_t item)
{
	const struct push_call *c = job_call(j, item);

	return c->wait_ns != UINT64_MAX && c->leave_ns > c->enter_ns &&
	       c->wait_ns + GROUP_NS < (uint64_t)c->leave_ns - (uint64_t)c->enter_ns;
}

/* When a worker had left its calls, so far; a Send lasts for as long as others like. */
static int64_t left_ns(const struct job_item *t, int64_t before_ns)
{
	return MAX(before_ns, t->op == NCCL_SEND ? t->enter_ns : t->leave_ns);
}

static void drop_unexposed(struct job *j, uint32_t worker)
{
	size_t first = j->first[worker], end = j->first[worker + 1], n = 0;
	struct pending list[PENDING_MAX], *p;
	int64_t left = INT64_MIN / 2;

	for (size_t i = first; i < end; i++) {
		bool is_behind = j->items[i].enter_ns <= left + GROUP_NS;

		left = left_ns(&j->items[i], left);
		if (j->items[i].op != NCCL_RECV)
			continue;
		p = pending_of(list, &n, job_call(j, (uint32_t)i)->peer);
		if (!p)
			return;
		p->count++;
		if (!has_another(j, i, end))
			continue;
		p->ahead++;
		p->told += tells_wait(j, (uint32_t)i);
		p->behind += is_behind;
	}
	left = INT64_MIN / 2;
	for (size_t i = first; n && i < end; i++) {
		struct job_item *t = &j->items[i];
		bool is_behind = t->enter_ns <= left + GROUP_NS;

		left = left_ns(t, left);
		if (t->op != NCCL_RECV)
			continue;
		p = pending_of(list, &n, job_call(j, (uint32_t)i)->peer);
		if (p->ahead >= AHEAD_LEAST && p->ahead >= AHEAD_SHARE * p->count &&
			2 * p->told < p->ahead && t->start_ns <= t->enter_ns + GROUP_NS &&
			(is_behind || 2 * p->behind < p->ahead) && !has_another(j, i, end)) {
			t->start_ns = t->leave_ns;
			j->is_guessed = true;
		}
	}
}

static bool is_silent_job(const struct job *j)
{
	size_t all = 0, silent = 0;

	for (uint32_t i = 0; i < j->item_count; i++) {
		if (blame_is_pair(j->items[i].op) || j->items[i].match == JOB_NONE)
			continue;
		all++;
		silent += is_silent(j, i);
	}
	return all && (double)silent >= SILENT_SHARE * (double)all;
}

/* When @t's worker last went on to another call before @ns. */
static int64_t went_on_ns(const struct job *j, size_t item, int64_t ns)
{
	int64_t at = j->items[item].start_ns;

	for (size_t i = item + 1; i < j->first[j->items[item].worker + 1]; i++) {
		if (j->items[i].enter_ns >= ns - JOB_EDGE_NS)
			break;
		at = MAX(at, j->items[i].enter_ns);
	}
	return at;
}

struct supposed { /* the longest wait since the last known one */
	uint32_t item;
	int64_t start_ns, end_ns;
};

/* Until the last one came, as far as clocks can tell. */
static void suppose_wait(const struct job *j, uint32_t item, struct supposed *s)
{
	const struct job_item *t = &j->items[item];
	const struct job_match *m = &j->matches[t->match];
	uint64_t error = blame_error(j, t->worker, job_item_worker(j, m->last));
	int64_t start;

	if (job_item_worker(j, m->last) == t->worker || m->arrival_ns <= t->leave_ns ||
		error > (uint64_t)(m->arrival_ns - t->leave_ns) / 2)
		return;
	start = MIN(went_on_ns(j, item, m->arrival_ns), m->arrival_ns);
	if (m->arrival_ns - start > s->end_ns - s->start_ns)
		*s = (struct supposed){item, start, m->arrival_ns};
}

static void take_supposed(struct job *j, struct supposed *s)
{
	if (s->end_ns > s->start_ns) {
		j->items[s->item].start_ns = s->start_ns;
		j->items[s->item].leave_ns = s->end_ns;
	}
	*s = (struct supposed){0};
}

void blame_waits(struct job *j)
{
	for (uint32_t w = 0; w < j->worker_count; w++)
		drop_unexposed(j, w);
}

bool blame_suppose_waits(struct job *j)
{
	if (!is_silent_job(j))
		return false;
	for (uint32_t w = 0; w < j->worker_count; w++) {
		struct supposed s = {0};
		size_t step = 0;

		for (size_t i = j->first[w]; i < j->first[w + 1]; i++) {
			const struct job_item *t = &j->items[i];

			if (t->match == JOB_NONE || blame_is_pair(t->op))
				continue;
			for (; step <= j->step_count && t->enter_ns >= j->cuts[step]; step++)
				take_supposed(j, &s);
			if (is_silent(j, (uint32_t)i))
				suppose_wait(j, (uint32_t)i, &s);
			else
				take_supposed(j, &s);
		}
		take_supposed(j, &s);
	}
	return true;
}
