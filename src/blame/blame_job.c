/* SPDX-License-Identifier: Apache-2.0 */
/* blame_job.c - the calls of a job by worker and time, on one clock.
 *
 * A worker waits in a call for the last wait_ns of it; where that is not known, from its beginning. A
 * worker that enters another call meanwhile is not held by the first: it waits in that only from then
 * on. Sends that go on beside other calls are not waited for at all, and if some of a job do, none is:
 * what a worker computes meanwhile cannot be seen. Sends and Recvs that begin together are one group and
 * wait as one.
 *
 * Clocks: offsets as the caller has them are used where they are exact to CLOCK_SURE_NS. Elsewhere the
 * ends of collectives are: they end for all at once, so the median distance of the ends, from worker
 * to worker along the communicators, is the distance of the clocks. Workers that only send to each other
 * are set by their quickest messages both ways. */
#include "blame/blame_job.h"

#include <errno.h>
#include <stdlib.h>

#include "stat/robust.h"

#define TIME_MAX_NS   ((INT64_C(1) << 62) - 1) /* the year 2116 */
#define TIME_MIN_NS   (-(INT64_C(1) << 60))
#define GROUP_NS      100000 /* Sends and Recvs of one group begin within */
#define EDGE_NS       20000  /* a call that begins so soon before the end of one comes after it */
#define SORT_MOVES    8      /* for each item, in sort_items() */
#define BESIDE_MIN    3      /* Sends: fewer may be times that are wrong */
#define CLOCK_SURE_NS 500000
#define CLOCK_SAMPLES 64
#define CLOCK_LEFT_NS 50000 /* what the ends of collectives are exact to */
#define CLOCK_ROUNDS  64    /* workers from the first to the farthest */
#define CLOCK_WEAKEST 3     /* samples */

void blame_job_done(struct job *j)
{
	for (size_t i = 0; i < j->comm_count; i++)
		free(j->comms[i].seqs);
	free(j->items);
	free(j->first);
	free(j->offset_ns);
	free(j->error_ns);
	free(j->comms);
	free(j->ranks);
	free(j->matches);
	free(j->members);
	free(j->cuts);
	free(j->group_cuts);
	free(j->group);
	free(j->stage);
	free(j->replica);
	free(j->pauses);
	free(j->pause_first);
	free(j->own);
	free(j->path);
	free(j->visits);
	free(j->transfer);
	free(j->excess);
	free(j->late);
	free(j->sigma);
	free(j->costs);
	free(j->stage_cost_ns);
	free(j->stage_ratio);
	*j = (struct job){0};
}

static int floats_ascend(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

float blame_median(float *values, size_t n)
{
	qsort(values, n, sizeof(*values), floats_ascend);
	return n ? values[(n - 1) / 2] : 0;
}

static int items_by_enter(const void *a, const void *b)
{
	const struct job_item *x = a, *y = b;

	if (x->enter_ns != y->enter_ns)
		return x->enter_ns < y->enter_ns ? -1 : 1;
	return (x->call > y->call) - (x->call < y->call);
}

/* Times are the sender's words: neither sum nor difference of two of them overflows. */
static int64_t bounded(int64_t ns)
{
	return MIN(MAX(ns, TIME_MIN_NS), TIME_MAX_NS);
}

static struct job_item item_of(const struct job *j, uint32_t call)
{
	const struct push_call *c = &j->calls[call].c;
	int64_t offset = MIN(bounded(j->workers[j->calls[call].worker].offset_ns), -TIME_MIN_NS);
	int64_t enter = bounded(c->enter_ns), leave = MAX(bounded(c->leave_ns), enter);
	uint64_t wait = MIN(c->wait_ns, (uint64_t)(leave - enter));

	return (struct job_item){.enter_ns = enter + offset,
		.leave_ns = leave + offset,
		.start_ns = leave - (int64_t)wait + offset,
		.call = call,
		.match = JOB_NONE,
		.worker = j->calls[call].worker,
		.op = c->op};
}

/* The last of the worker's items, up to @end, that is entered before @ns. */
static const struct job_item *last_before(const struct job *j, size_t first, size_t end, int64_t ns)
{
	size_t low = first, high = end;

	while (low + 1 < high) {
		size_t mid = (low + high) / 2;

		if (j->items[mid].enter_ns < ns)
			low = mid;
		else
			high = mid;
	}
	return &j->items[low];
}

/* By time. They come nearly in order, so most of it is moving a few by a few places; where it is not, it is
 * sorted as a whole. */
static void sort_items(struct job_item *items, size_t n)
{
	size_t moves = SORT_MOVES * n;

	for (size_t i = 1; i < n; i++) {
		struct job_item x = items[i];
		size_t at = i;

		while (at && items_by_enter(&items[at - 1], &x) > 0 && moves) {
			items[at] = items[at - 1];
			at--;
			moves--;
		}
		items[at] = x;
		if (!moves) {
			qsort(items, n, sizeof(*items), items_by_enter);
			return;
		}
	}
}

/* Items of one worker, already in place: in order, and waits only while it does nothing else. How many
 * Sends went on beside other calls. */
static size_t order_items(struct job *j, size_t first, size_t end)
{
	size_t beside = 0;

	sort_items(j->items + first, end - first);
	for (size_t i = first; i + 1 < end; i++) {
		struct job_item *a = &j->items[i];
		const struct job_item *b;

		if (a[1].enter_ns >= a->leave_ns - EDGE_NS)
			continue;
		b = last_before(j, i, end, a->leave_ns - EDGE_NS);
		if (b->enter_ns <= MAX(a->start_ns, a->enter_ns + GROUP_NS))
			continue;
		a->start_ns = b->enter_ns;
		beside += a->op == NCCL_SEND;
	}
	return beside;
}

static void drop_send_waits(struct job *j, size_t beside)
{
	for (size_t i = 0; beside >= BESIDE_MIN && i < j->item_count; i++)
		if (j->items[i].op == NCCL_SEND)
			j->items[i].start_ns = j->items[i].leave_ns;
}

int blame_load(struct job *j)
{
	_cleanup_free_ size_t *at = NULL;
	size_t n = j->worker_count, beside = 0;

	if (n > BLAME_WORKERS_MAX || j->call_count > JOB_CALLS_MAX)
		return -E2BIG;
	j->first = calloc(n + 2, sizeof(*j->first));
	j->items = calloc(j->call_count + 1, sizeof(*j->items));
	j->offset_ns = calloc(n + 1, sizeof(*j->offset_ns));
	j->error_ns = calloc(n + 1, sizeof(*j->error_ns));
	at = calloc(n + 1, sizeof(*at));
	if (!j->first || !j->items || !j->offset_ns || !j->error_ns || !at)
		return -ENOMEM;
	for (size_t i = 0; i < j->call_count; i++) {
		if (j->calls[i].worker < n && j->calls[i].c.comm)
			j->first[j->calls[i].worker + 1]++;
		else
			j->unmatched++;
	}
	for (size_t w = 0; w < n; w++) {
		j->first[w + 1] += j->first[w];
		at[w] = j->first[w];
		j->error_ns[w] = j->workers[w].error_ns;
	}
	for (size_t i = 0; i < j->call_count; i++)
		if (j->calls[i].worker < n && j->calls[i].c.comm)
			j->items[at[j->calls[i].worker]++] = item_of(j, (uint32_t)i);
	j->item_count = j->first[n];
	for (size_t w = 0; w < n; w++)
		beside += order_items(j, j->first[w], j->first[w + 1]);
	drop_send_waits(j, beside);
	return 0;
}

struct sample { /* of a worker without a clock, against the first one with a clock that it met */
	uint32_t from;
	uint32_t count;
	int64_t ahead_ns[CLOCK_SAMPLES]; /* how much later collectives ended for that one */
	int64_t there_ns, back_ns;       /* quickest message to the worker, and from it */
};

static int64_t sample_median(struct sample *s)
{
	int64_t least = INT64_MAX;
	uint64_t up[CLOCK_SAMPLES];

	for (uint32_t i = 0; i < s->count; i++)
		least = MIN(least, s->ahead_ns[i]);
	for (uint32_t i = 0; i < s->count; i++)
		up[i] = (uint64_t)(s->ahead_ns[i] - least);
	robust_sort(up, s->count);
	return least + (int64_t)robust_median(up, s->count);
}

static bool waited(const struct job_item *t)
{
	return t->leave_ns > t->start_ns;
}

/* The collective @m ended for all at once: @from's end by a clock that is known. */
static void sample_collective(
	const struct job *j, const struct job_match *m, uint32_t from, struct sample *samples)
{
	const struct job_item *f = &j->items[from];
	uint32_t by = job_item_worker(j, from);

	for (uint32_t k = 0; k < m->count; k++) {
		const struct job_item *t = &j->items[j->members[m->first + k]];
		uint32_t w = job_item_worker(j, j->members[m->first + k]);
		struct sample *s = &samples[w];

		if (w == by || !waited(t) || !waited(f) || s->count == CLOCK_SAMPLES ||
			(s->from != JOB_NONE && s->from != by))
			continue;
		s->from = by;
		s->ahead_ns[s->count++] = f->leave_ns + j->offset_ns[by] - t->leave_ns;
	}
}

/* A message, whose receiver waited for it: it arrived when the wait ended. */
static void sample_message(
	const struct job *j, const struct job_match *m, uint32_t from, struct sample *samples)
{
	uint32_t other =
		j->members[m->first] == from ? j->members[m->first + 1] : j->members[m->first];
	bool there = job_call(j, from)->op == NCCL_SEND;
	const struct job_item *f = &j->items[from], *t = &j->items[other];
	uint32_t by = job_item_worker(j, from);
	struct sample *s = &samples[job_item_worker(j, other)];
	int64_t took;

	if (!waited(there ? t : f) || (s->from != JOB_NONE && s->from != by))
		return;
	s->from = by;
	took = there ? t->leave_ns - f->enter_ns - j->offset_ns[by]
		     : f->leave_ns + j->offset_ns[by] - t->enter_ns;
	if (there)
		s->there_ns = MIN(s->there_ns, took);
	else
		s->back_ns = MIN(s->back_ns, took);
}

static bool set_clock(struct job *j, uint32_t worker, struct sample *s)
{
	if (s->count >= CLOCK_WEAKEST) {
		j->offset_ns[worker] = sample_median(s);
		j->error_ns[worker] = CLOCK_LEFT_NS;
		return true;
	}
	if (s->there_ns == INT64_MAX || s->back_ns == INT64_MAX)
		return false;
	/* what the two ways have in common is the way, what they differ by twice the clocks */
	j->offset_ns[worker] = (s->back_ns - s->there_ns) / 2;
	j->error_ns[worker] =
		CLOCK_LEFT_NS + (uint64_t)MAX(s->there_ns + s->back_ns, INT64_C(0)) / 2;
	return true;
}

/* One round: workers without a clock that met one with a clock get theirs. False: none did. */
static bool set_clocks(struct job *j, bool *known, struct sample *samples, bool by_messages)
{
	bool any = false;

	for (size_t w = 0; w < j->worker_count; w++)
		samples[w] = (struct sample){
			.from = JOB_NONE, .there_ns = INT64_MAX, .back_ns = INT64_MAX};
	for (size_t i = 0; i < j->match_count; i++) {
		const struct job_match *m = &j->matches[i];
		uint32_t from = JOB_NONE;

		if (m->count < 2 || by_messages != blame_is_pair(j->items[j->members[m->first]].op))
			continue;
		for (uint32_t k = 0; from == JOB_NONE && k < m->count; k++)
			if (known[job_item_worker(j, j->members[m->first + k])])
				from = j->members[m->first + k];
		if (from != JOB_NONE && by_messages)
			sample_message(j, m, from, samples);
		else if (from != JOB_NONE)
			sample_collective(j, m, from, samples);
	}
	for (uint32_t w = 0; w < j->worker_count; w++)
		if (!known[w] && set_clock(j, w, &samples[w]))
			known[w] = any = true;
	return any;
}

static void shift_items(struct job *j)
{
	for (size_t w = 0; w < j->worker_count; w++) {
		for (size_t i = j->first[w]; j->offset_ns[w] && i < j->first[w + 1]; i++) {
			j->items[i].enter_ns += j->offset_ns[w];
			j->items[i].start_ns += j->offset_ns[w];
			j->items[i].leave_ns += j->offset_ns[w];
		}
	}
}

/* Who came last to each match, and when the job begins and ends: times are final. */
static void find_last(struct job *j)
{
	for (size_t i = 0; i < j->match_count; i++) {
		struct job_match *m = &j->matches[i];

		for (uint32_t k = 0; m->count > 1 && k < m->count; k++) {
			uint32_t item = j->members[m->first + k];

			if (k && j->items[item].enter_ns <= m->arrival_ns)
				continue;
			m->last = item;
			m->arrival_ns = j->items[item].enter_ns;
		}
	}
	j->begin_ns = j->item_count ? INT64_MAX : 0;
	j->end_ns = j->item_count ? INT64_MIN : 0;
	for (size_t i = 0; i < j->item_count; i++) {
		j->begin_ns = MIN(j->begin_ns, j->items[i].enter_ns);
		j->end_ns = MAX(j->end_ns, j->items[i].leave_ns);
	}
}

/* Sets the clocks of those whose offset is not known well enough. */
static int set_unsure_clocks(struct job *j)
{
	_cleanup_free_ bool *known = calloc(j->worker_count + 1, sizeof(*known));
	_cleanup_free_ struct sample *samples = NULL;
	size_t unsure = 0, from = 0;

	if (!known)
		return -ENOMEM;
	for (size_t w = 0; w < j->worker_count; w++) {
		known[w] = j->error_ns[w] <= CLOCK_SURE_NS || j->first[w] == j->first[w + 1];
		unsure += !known[w];
		if (j->error_ns[w] < j->error_ns[from] && j->first[w] != j->first[w + 1])
			from = w;
	}
	if (!unsure)
		return 0;
	samples = calloc(j->worker_count, sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	if (unsure == j->worker_count)
		known[from] = true; /* the others are set by it; how wrong it is does not matter */
	for (int rounds = 0; rounds < CLOCK_ROUNDS; rounds++)
		if (!set_clocks(j, known, samples, false) && !set_clocks(j, known, samples, true))
			break;
	if (known[from] && j->error_ns[from] > CLOCK_SURE_NS)
		j->error_ns[from] = CLOCK_LEFT_NS;
	shift_items(j);
	return 0;
}

int blame_clocks(struct job *j)
{
	int r = set_unsure_clocks(j);

	if (r == 0)
		find_last(j);
	return r;
}
