/* SPDX-License-Identifier: Apache-2.0 */
/* chain_disk.c - which device, in which direction, and who keeps it busy: by what a device has to do for each, its bytes
 * and its requests. How long requests take tells who suffers: one small write behind a flood is in flight longest.
 * The kernel writes back in its own name what programs have written before: who that was is not in the rows, but
 * the job's own part is in its account. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "diagnose/accounts/kernel_thread.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/chain.h"
#include "diagnose/thresholds.h"

#define DEVICES_MAX  32
#define SECTOR_BYTES 512
#define REQUEST_WORK 65536 /* bytes that could be moved in the time that any request takes */

enum { READS, WRITES };

struct device {
	uint32_t dev;
	const char *name; /* "": not recorded */
	uint64_t work, own_ns;
	bool is_kernels; /* the kernel asks for something: in the name of whoever has written before */
};

struct requests {
	struct device devices[DEVICES_MAX];
	int device_count;
	struct program_sums programs;
	struct own_pids own;
};

static bool is_request(const struct event *e)
{
	return e->op == IO_READ || e->op == IO_WRITE || e->op == IO_FLUSH;
}

static uint64_t bytes_of(const struct event *e)
{
	return MIN(e->arg0, (uint64_t)UINT32_MAX) * SECTOR_BYTES;
}

static struct device *device_get(struct requests *q, const struct event *e)
{
	int k = 0;

	while (k < q->device_count && q->devices[k].dev != e->dev)
		k++;
	if (k == DEVICES_MAX)
		return NULL;
	q->devices[k].dev = e->dev;
	q->devices[k].name = e->peer_comm;
	q->device_count = MAX(q->device_count, k + 1);
	return &q->devices[k];
}

/* The device that the job waits for; where it asks for nothing itself, the busiest one of which the kernel asks for
 * something. NULL: nothing says that it waits for a device. */
static const struct device *device_of(const struct chain *c, struct requests *q)
{
	const struct device *best = NULL;
	const struct event *e = NULL;
	bool has_own = false;

	while ((e = chain_event(c, SOURCE_IO, e))) {
		struct device *v = is_request(e) ? device_get(q, e) : NULL;

		if (!v)
			continue;
		v->work += bytes_of(e) + REQUEST_WORK;
		v->own_ns += own_pids_has(&q->own, c, e->pid) ? e->dur_ns : 0;
		v->is_kernels |= kernel_thread_is(e->comm);
		has_own |= v->own_ns > 0;
	}
	for (int i = 0; i < q->device_count; i++) {
		const struct device *v = &q->devices[i];

		if (!has_own && !v->is_kernels)
			continue;
		if (!best || (has_own ? v->own_ns > best->own_ns : v->work > best->work))
			best = v;
	}
	return best;
}

static bool is_before(const struct chain *c, const struct event *e)
{
	return c->has_slow && c->a->mark_count && e->start.ns >= c->a->first.ns &&
	       e->start.ns < c->a->last.ns && !chain_time(c, e->start.ns);
}

/* The requests of units that count, and of what slow ones are compared with. */
static void add_requests(const struct chain *c, uint32_t dev, struct requests *q)
{
	int64_t from = MIN(c->a->first.ns, c->from_ns), to = MAX(c->a->last.ns, c->to_ns);
	size_t i = LOWER_BOUND(k, c->rec->event_count, c->rec->events[k].start.ns < from);

	for (; i < c->rec->event_count && c->rec->events[i].start.ns < to; i++) {
		const struct event *e = &c->rec->events[i];
		int side = e->op == IO_READ ? READS : WRITES;
		struct program *p;

		if (e->source != SOURCE_IO || !is_request(e) || e->dev != dev ||
			!(chain_time(c, e->start.ns) || is_before(c, e)))
			continue;
		p = program_get(c->rec, &q->programs, e->pid, e->comm);
		if (!p)
			continue;
		if (is_before(c, e)) {
			p->before[side] += bytes_of(e) + REQUEST_WORK;
			continue;
		}
		p->work[side] += bytes_of(e) + REQUEST_WORK;
		p->bytes[side] += bytes_of(e);
	}
}

static uint64_t grown_work(const struct program *p, int side, double scale)
{
	return p->work[side] - MIN(p->work[side], (uint64_t)(scale * (double)p->before[side]));
}

/* What each did more of than while units were ordinary is why slow ones wait; where none are, or little was more, all of it. A
 * checkpoint is written back when it is over. */
static void keep_grown(const struct chain *c, struct requests *q)
{
	double slow = (double)chain_elapsed_ns(c), all = (double)(c->a->last.ns - c->a->first.ns);
	double scale = all > slow ? slow / (all - slow) : 0;
	struct program *end = q->programs.items + q->programs.count;
	uint64_t grown = 0, work = 0;

	for (struct program *p = q->programs.items; p < end; p++) {
		grown += grown_work(p, READS, scale) + grown_work(p, WRITES, scale);
		work += p->work[READS] + p->work[WRITES];
	}
	if ((double)grown < THRESHOLD(CHAIN_PART) * (double)work || !grown ||
		c->d->kind == DELAY_BY_CHECKPOINT)
		return;
	for (struct program *p = q->programs.items; p < end; p++) {
		p->work[READS] = grown_work(p, READS, scale);
		p->work[WRITES] = grown_work(p, WRITES, scale);
	}
}

static void device_text(const struct device *d, char *out, size_t size)
{
	if (d->name[0])
		snprintf(out, size, "%s", d->name);
	else
		snprintf(out, size, "device %u:%u", d->dev >> 20, d->dev & 0xfffff);
}

static void rate_text(double bytes_per_s, char *out, size_t size)
{
	if (bytes_per_s >= 1e9)
		snprintf(out, size, "%.1f GB/s", bytes_per_s / 1e9);
	else
		snprintf(out, size, "%.*f MB/s", bytes_per_s < 1e7, bytes_per_s / 1e6);
}

static uint64_t work_of(const struct program *p)
{
	return p->work[READS] + p->work[WRITES];
}

static bool is_own(const struct chain *c, struct requests *q, const struct program *p)
{
	for (uint32_t k = 0; k < p->pid_count; k++)
		if (own_pids_has(&q->own, c, p->pids[k]))
			return true;
	return false;
}

static int side_of(const uint64_t work[2])
{
	return work[READS] >= work[WRITES] ? READS : WRITES;
}

/* Who holds the device up. The job's own work is enough if it is the most, or a good part of all in the same direction. A
 * checkpoint is its own whoever writes it back. NULL: only the kernel has asked for anything. */
static const struct program *holder_of(const struct chain *c, struct requests *q)
{
	const struct program *who = NULL, *own = NULL;
	uint64_t all[2] = {0};
	int side;

	for (int i = 0; i < q->programs.count; i++) {
		const struct program *p = &q->programs.items[i];
		const struct program **most = is_own(c, q, p) ? &own : &who;

		all[READS] += p->work[READS];
		all[WRITES] += p->work[WRITES];
		if (work_of(p) && !kernel_thread_is(p->name) &&
			(!*most || work_of(p) > work_of(*most)))
			*most = p;
	}
	if (c->d->kind == DELAY_BY_CHECKPOINT || !who)
		return own;
	side = side_of(who->work);
	if (!own || work_of(own) >= work_of(who))
		return own ? own : who;
	return (double)own->work[side] >= THRESHOLD(CHAIN_PART) * (double)all[side] &&
			       own->work[side] * 2 >= who->work[side]
		       ? own
		       : who;
}

static void describe(const struct chain *c, const struct device *dev, int side, uint64_t bytes,
	struct resource_use *ret)
{
	double seconds = (double)MAX(chain_elapsed_ns(c), UINT64_C(1)) / (double)NS_PER_S;
	char name[32], rate[32];

	device_text(dev, name, sizeof(name));
	rate_text((double)bytes / seconds, rate, sizeof(rate));
	snprintf(ret->detail, sizeof(ret->detail), "%s, %s %s", name,
		side == READS ? "reads" : "writes", rate);
}

static bool by_device(const struct chain *c, struct requests *q, struct resource_use *ret)
{
	const struct device *device = device_of(c, q);
	uint64_t all[2] = {0}, bytes[2] = {0};
	const struct program *who;
	const uint64_t *work;
	int side;

	if (!device)
		return false;
	add_requests(c, device->dev, q);
	keep_grown(c, q);
	for (int i = 0; i < q->programs.count; i++)
		for (int s = READS; s <= WRITES; s++) {
			all[s] += q->programs.items[i].work[s];
			bytes[s] += q->programs.items[i].bytes[s];
		}
	who = holder_of(c, q);
	work = who ? who->work : all;
	side = c->d->kind == DELAY_BY_CHECKPOINT ? WRITES : side_of(work);
	if (!all[side])
		return false; /* it went no further than the page cache */
	ret->resource = side == READS ? RESOURCE_DISK_READ : RESOURCE_DISK_WRITE;
	if (who)
		program_name(who, ret);
	if (!who && c->d->kind == DELAY_BY_CHECKPOINT) {
		ret->pid = c->a->pid;
		process_words(c->rec, c->a->pid, c->a->comm, ret->who);
	}
	describe(c, device, side, bytes[side], ret);
	ret->share = (double)all[side] / (double)(all[READS] + all[WRITES]);
	return true;
}

bool chain_disk(const struct chain *c, struct resource_use *ret)
{
	_cleanup_free_ struct requests *q = calloc(1, sizeof(*q));
	bool found = q && lineage_build(c->rec, &q->own.lines) == 0 && by_device(c, q, ret);

	if (q)
		lineage_done(&q->own.lines);
	return found;
}

/* Pages of a file that a copy reads are brought in while the copy waits for them. */
bool chain_disk_of_copy(const struct chain *c, struct resource_use *ret)
{
	const struct event *e = NULL;
	uint64_t own = 0;

	while ((e = chain_event(c, SOURCE_IO, e)))
		own += is_request(e) && e->pid == c->a->pid ? e->dur_ns : 0;
	return (double)own >= THRESHOLD(CHAIN_MOST) * (double)chain_lost_ns(c) &&
	       chain_disk(c, ret);
}
