/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_find.c - see sharing_find.h.
 *
 * Waits for the GPU (and synchronous copies) that lie mostly within bursts of other processes on
 * the device are compared with those wholly outside of them, op by op; both must exist, ten of
 * each. It is slower if the median is at least 1.25 times as long, and 20 us, and half of the
 * excess is left when what the CPU and the disk took from these calls is left out (then another
 * detector has it). Ranks of one communicator are no others: NCCL has them on different GPUs.
 * O(events). */
#include "diagnose/findings/sharing_find.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/calls/baseline.h"
#include "base/array.h"
#include "base/idmap.h"
#include "base/search.h"
#include "stat/robust.h"
#include "wire/op_kind.h"

#define CALLS_MIN      10
#define RATIO_MIN      1.25
#define DIFFERENCE_MIN (20 * NS_PER_US)
#define NET_SHARE      0.5
#define OTHERS_MAX     4096

/* What another process's use of the GPU makes longer: waits for it, and copies that return when they
 * are done. */
static bool is_held_up(const struct event *e)
{
	return op_kind_is_gpu_wait(e->source, e->op) ||
	       (e->source == SOURCE_CUDA && e->op == CUDA_MEMCPY);
}

static uint64_t comm_of(const struct recording *rec, uint32_t pid)
{
	for (size_t i = 0; i < rec->collective_count; i++)
		if (rec->collectives[i].pid == pid && rec->collectives[i].c.comm_hash)
			return rec->collectives[i].c.comm_hash;
	return 0;
}

/* The processes that call collectives of @comm: ranks of one job. */
static int ranks_of(const struct recording *rec, uint64_t comm, struct idmap *ret)
{
	int r = 0;

	for (size_t i = 0; comm && r == 0 && i < rec->collective_count; i++)
		if (rec->collectives[i].c.comm_hash == comm)
			r = idmap_put(ret, rec->collectives[i].pid, ret);
	return r == -ENOBUFS ? 0 : r;
}

static int unite_others(const struct recording *rec, struct sharing_case *f)
{
	_cleanup_(idmap_done) struct idmap mates = IDMAP_INIT(OTHERS_MAX);
	uint64_t comm = comm_of(rec, f->pid);

	if (ranks_of(rec, comm, &mates) < 0)
		return -ENOMEM;
	f->others = calloc(f->burst_count + 1, sizeof(*f->others));
	if (!f->others)
		return -ENOMEM;
	for (size_t i = 0; i < f->burst_count; i++) {
		const struct burst *b = &f->bursts[i];
		struct window *last = f->other_count ? &f->others[f->other_count - 1] : NULL;

		if (b->pid == f->pid || idmap_get(&mates, b->pid))
			continue;
		if (last && b->start_ns <= last->end_ns)
			last->end_ns = MAX(last->end_ns, b->end_ns);
		else
			f->others[f->other_count++] =
				(struct window){b->start_ns, b->end_ns, b->pid};
	}
	return 0;
}

static uint64_t overlap_ns(const struct sharing_case *f, const struct event *e)
{
	int64_t end = event_end_ns(e);
	size_t at = LOWER_BOUND(i, f->other_count, f->others[i].end_ns <= e->start.ns);
	uint64_t sum = 0;

	for (; at < f->other_count && f->others[at].start_ns < end; at++)
		sum += (uint64_t)(MIN(end, f->others[at].end_ns) -
				  MAX(e->start.ns, f->others[at].start_ns));
	return sum;
}

static struct comparison *comparison_of(struct comparison *list, const struct event *e)
{
	for (int i = 0; i < SHARING_OPS; i++) {
		if (!list[i].source) {
			list[i].source = e->source;
			list[i].op = e->op;
		}
		if (list[i].source == e->source && list[i].op == e->op)
			return &list[i];
	}
	return NULL;
}

static int row_add(const struct event ***rows, size_t *count, size_t *room, const struct event *e)
{
	if (ARRAY_RESERVE(*rows, *room, *count + 1, CORRELATE_ROWS_MAX) < 0)
		return -ENOMEM;
	(*rows)[(*count)++] = e;
	return 0;
}

int held_up_find(const struct recording *rec, struct held_up *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (is_held_up(e) && !(e->flags & WIRE_NESTED) && e->dur_ns && baseline_is_sane(e))
			r = row_add(&ret->calls, &ret->count, &ret->room, e);
	}
	return r;
}

static int compare_calls(struct sharing_case *f)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->held->count; i++) {
		const struct event *e = f->held->calls[i];
		struct comparison *c;
		uint64_t ns;

		if (e->pid != f->pid || MAX(e->device, 0) != f->device)
			continue;
		c = comparison_of(f->ops, e);
		ns = overlap_ns(f, e);
		if (c && ns >= e->dur_ns / 2 + 1)
			r = row_add(&c->with, &c->with_count, &c->with_room, e);
		else if (c && !ns)
			r = row_add(&c->without, &c->without_count, &c->without_room, e);
	}
	return r;
}

static int median_of(const struct event *const *rows, size_t n, uint64_t *ret)
{
	_cleanup_free_ uint64_t *v = calloc(n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = rows[i]->dur_ns;
	robust_sort(v, n);
	*ret = robust_median(v, n);
	return 0;
}

/* What the calls of @c beside others lost beyond @usual_ns, without CPU and disk, and what all
 * calls did. */
static int excess_of(const struct recording *rec, uint32_t pid, const struct comparison *c,
	uint64_t usual_ns, uint64_t *ret_with, uint64_t *ret_net, uint64_t *ret_all)
{
	_cleanup_free_ struct window *w = calloc(c->with_count + 1, sizeof(*w));
	struct window_use use;
	uint64_t with = 0, all = 0;
	int r;

	if (!w)
		return -ENOMEM;
	for (size_t i = 0; i < c->with_count; i++) {
		const struct event *e = c->with[i];

		w[i] = (struct window){e->start.ns, event_end_ns(e), e->tid};
		with += e->dur_ns - MIN(e->dur_ns, usual_ns);
	}
	for (size_t i = 0; i < c->without_count; i++)
		all += c->without[i]->dur_ns - MIN(c->without[i]->dur_ns, usual_ns);
	r = window_examine(rec, pid, w, c->with_count, &use);
	*ret_with = with;
	*ret_net = with - MIN(with, use.cpu_ns + use.disk_ns);
	*ret_all = all + with;
	return r;
}

/* Takes @c as the case's op if it is slower beside others and lost more than the one before. */
static int judge(const struct recording *rec, const struct comparison *c, struct sharing_case *f)
{
	uint64_t with, without, excess, net, all;

	if (c->with_count < CALLS_MIN || c->without_count < CALLS_MIN)
		return 0;
	if (median_of(c->with, c->with_count, &with) < 0 ||
		median_of(c->without, c->without_count, &without) < 0)
		return -ENOMEM;
	if ((double)with < RATIO_MIN * (double)without || with < without + DIFFERENCE_MIN)
		return 0;
	if (excess_of(rec, f->pid, c, without, &excess, &net, &all) < 0)
		return -ENOMEM;
	if ((double)net < NET_SHARE * (double)excess || net <= f->net_ns)
		return 0;
	f->c = c;
	f->med_with = with;
	f->med_without = without;
	f->net_ns = net;
	f->all_excess_ns = all;
	return 0;
}

/* Who was there for the longest time beside these calls. */
static void name_culprit(struct sharing_case *f)
{
	int64_t from = f->c->with[0]->start.ns;
	int64_t to = event_end_ns(f->c->with[f->c->with_count - 1]);
	int64_t best = 0;

	for (size_t i = 0; i < f->burst_count; i++) {
		const struct burst *b = &f->bursts[i];
		int64_t ns = MIN(to, b->end_ns) - MAX(from, b->start_ns);

		if (b->pid != f->pid && ns > best) {
			best = ns;
			f->culprit = b->pid;
		}
	}
}

int sharing_find(const struct recording *rec, struct sharing_case *f)
{
	int r = unite_others(rec, f);

	if (r < 0 || !f->other_count)
		return r;
	r = compare_calls(f);
	for (int i = 0; r == 0 && i < SHARING_OPS; i++)
		r = judge(rec, &f->ops[i], f);
	if (r == 0 && f->c)
		name_culprit(f);
	return r;
}

void sharing_done(struct sharing_case *f)
{
	for (int i = 0; i < SHARING_OPS; i++) {
		free((void *)f->ops[i].with);
		free((void *)f->ops[i].without);
	}
	free(f->others);
	*f = (struct sharing_case){0};
}
