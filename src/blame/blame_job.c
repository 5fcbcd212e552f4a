/* SPDX-License-Identifier: Apache-2.0 */
/* blame_job.c - the calls of a job by worker and time, on one clock.
 *
 * A worker waits in a call for the last wait_ns of it; where that is not known, from its beginning. A
 * worker that enters another call meanwhile is not held by the first: it waits in that only from then
 * on. Sends that go on beside other calls are not waited for at all, and if some of a job do, none is:
 * what a worker computes meanwhile cannot be seen. Sends and Recvs that begin together are one group and
 * wait as one. */
#include "blame/blame_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define TIME_MAX_NS ((INT64_C(1) << 62) - 1) /* the year 2116 */
#define TIME_MIN_NS (-(INT64_C(1) << 60))
#define GROUP_NS    100000 /* Sends and Recvs of one group begin within */
#define EDGE_CALLS  16 /* made within JOB_EDGE_NS of the end of another: more are not looked at */
#define SORT_MOVES  8  /* for each item, in sort_items() */
#define BESIDE_MIN  3  /* Sends: fewer may be times that are wrong */
#define ERROR_MAX   (UINT64_C(1) << 40) /* of a clock that is not known at all */

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
	free(j->held_ns);
	free(j->visits);
	free(j->transfer);
	free(j->excess);
	free(j->uneven);
	free(j->late);
	free(j->sigma);
	free(j->costs);
	free(j->stage_cost_ns);
	free(j->stage_ratio);
	free(j->stage_since);
	*j = (struct job){0};
}

ORDER(floats_ascend, float, COMPARE(*x, *y))

float blame_median(float *values, size_t n)
{
	qsort(values, n, sizeof(*values), floats_ascend);
	return n ? values[(n - 1) / 2] : 0;
}

ORDER(items_by_enter, struct job_item, ASCENDING(enter_ns) ?: ASCENDING(call))

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
static size_t last_before(const struct job *j, size_t first, size_t end, int64_t ns)
{
	size_t low = first, high = end;

	while (low + 1 < high) {
		size_t mid = (low + high) / 2;

		if (j->items[mid].enter_ns < ns)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* The last of the worker's items, up to @end, that was made while it was in item @first; that one itself if there is none. */
static const struct job_item *last_within(const struct job *j, size_t first, size_t end)
{
	const struct job_item *t = &j->items[first];
	const struct push_call *c = job_call(j, (uint32_t)first);
	size_t last = last_before(j, first, end, t->leave_ns);

	for (size_t i = last; i > first && last - i < EDGE_CALLS; i--)
		if (job_is_within(c, job_call(j, (uint32_t)i)))
			return &j->items[i];
	return &j->items[last_before(j, first, last + 1, t->leave_ns - JOB_EDGE_NS)];
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

		if (a[1].enter_ns >= a->leave_ns)
			continue;
		b = last_within(j, i, end);
		if (b->enter_ns <= MAX(a->start_ns, a->enter_ns + GROUP_NS))
			continue;
		a->start_ns = b->enter_ns;
		beside += a->op == NCCL_SEND;
	}
	return beside;
}

/* What calls were made beside others is told by the worker's own clock; what they are compared by is the common one. */
static void shift_items(struct job *j, size_t first, size_t end)
{
	bool any = false;

	for (size_t i = first; i < end; i++) {
		struct job_item *t = &j->items[i];
		int64_t by = MIN(bounded(j->calls[t->call].shift_ns), -TIME_MIN_NS);

		any |= by != 0;
		t->enter_ns += by;
		t->start_ns += by;
		t->leave_ns += by;
	}
	if (any)
		sort_items(j->items + first, end - first);
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
	for (size_t w = 0; w < n; w++) {
		beside += order_items(j, j->first[w], j->first[w + 1]);
		shift_items(j, j->first[w], j->first[w + 1]);
	}
	drop_send_waits(j, beside);
	return 0;
}

bool blame_is_one_node(const struct job *j, uint32_t a, uint32_t b)
{
	const char *x = j->workers[a].node, *y = j->workers[b].node;

	return a == b || (x && y && *x && (x == y || strcmp(x, y) == 0));
}

uint64_t blame_error(const struct job *j, uint32_t a, uint32_t b)
{
	if (blame_is_one_node(j, a, b))
		return 0;
	return MIN(j->error_ns[a], ERROR_MAX) + MIN(j->error_ns[b], ERROR_MAX);
}
