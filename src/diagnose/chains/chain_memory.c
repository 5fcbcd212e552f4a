/* SPDX-License-Identifier: Apache-2.0 */
/* chain_memory.c - waiting for memory: the container's limit, a machine that is short of it, or nothing of the kind
 * (pages that the program touches for the first time). */
#include <stdio.h>

#include "base/macros.h"
#include "diagnose/rows/home.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/chain.h"
#include "diagnose/thresholds.h"

#define SECTOR_BYTES 512
#define PAGE_BYTES   4096 /* at least */

struct group_use { /* first and last reading of the job's group around the time */
	const struct container_sample *first, *last;
	int64_t most_bytes;
};

static struct group_use group_use(const struct chain *c)
{
	uint64_t id = quota_group(c->rec, c->a->pid, c->to_ns);
	struct group_use u = {.most_bytes = -1};

	for (size_t i = 0; id && i < c->rec->container_count; i++) {
		const struct container_sample *s = &c->rec->containers[i];

		if (s->cgroup_id != id || !chain_around(c, s->time.ns))
			continue;
		if (!u.first)
			u.first = s;
		u.last = s;
		u.most_bytes = MAX(u.most_bytes, s->memory_bytes);
	}
	return u;
}

static int64_t grown(int64_t first, int64_t last)
{
	return first >= 0 && last > first ? last - first : 0;
}

static void bytes_text(int64_t bytes, char *out, size_t size)
{
	if (bytes >= INT64_C(1) << 30)
		snprintf(out, size, "%.1f GiB", (double)bytes / (double)(1 << 30));
	else
		snprintf(out, size, "%.0f MiB", (double)bytes / (double)(1 << 20));
}

static void limit_text(const struct group_use *u, bool is_high, struct resource_use *ret)
{
	int64_t limit = is_high ? u->last->memory_high_bytes : u->last->memory_limit_bytes;
	char text[32];

	if (limit <= 0)
		limit = u->most_bytes;
	bytes_text(limit, text, sizeof(text));
	snprintf(ret->detail, sizeof(ret->detail), "%s of %s reached",
		is_high ? "memory.high" : "limit", text);
}

/* Whether the job reads from disks in that time more than it writes, by its requests, and most of it what had been
 * reclaimed. */
static bool reads_again(const struct chain *c, const struct group_use *u)
{
	int64_t pages = grown(u->first->memory_refaults, u->last->memory_refaults);
	double again = (double)pages * PAGE_BYTES / SECTOR_BYTES, read = 0, written = 0;
	const struct event *e = NULL;

	while ((e = chain_event(c, SOURCE_IO, e))) {
		read += e->pid == c->a->pid && e->op == IO_READ ? (double)e->arg0 : 0;
		written += e->pid == c->a->pid && e->op == IO_WRITE ? (double)e->arg0 : 0;
	}
	return read > written && again >= THRESHOLD(CHAIN_MOST) * read;
}

/* Whether the group's limit is what is waited for, where no pressure of groups tells: a limit that is reached again and again
 * tells of a wait for memory, and of one for a disk if what is read had been read before. */
static bool is_by_limit(const struct chain *c, const struct group_use *u)
{
	return c->line == ACCOUNT_MEMORY || (c->line == ACCOUNT_DISK && reads_again(c, u));
}

static void limit_is(
	const struct chain *c, const struct group_use *u, bool is_high, struct resource_use *ret)
{
	const struct process_home *h = home_of(c->rec, c->a->pid);

	ret->resource = RESOURCE_MEMORY_LIMIT;
	ret->pid = c->a->pid;
	if (h)
		home_text(h, ret->who, sizeof(ret->who));
	limit_text(u, is_high, ret);
}

bool chain_memory_limit(const struct chain *c, struct resource_use *ret)
{
	struct group_use u = group_use(c);
	uint64_t lost = chain_lost_ns(c), stalled;
	int64_t high, max;

	if (!u.first || u.first == u.last)
		return false;
	high = grown(u.first->memory_high, u.last->memory_high);
	max = grown(u.first->memory_max, u.last->memory_max);
	stalled = (uint64_t)grown(u.first->psi_memory_us, u.last->psi_memory_us) * NS_PER_US;
	if ((double)(high + max) < THRESHOLD(LIMIT_EVENTS))
		return false;
	if (u.last->psi_memory_us < 0 ? !is_by_limit(c, &u)
				      : (double)stalled < THRESHOLD(CHAIN_PART) * (double)lost)
		return false;
	limit_is(c, &u, high >= max, ret);
	ret->share =
		u.last->psi_memory_us < 0 ? 1 : MIN((double)stalled / (double)MAX(lost, 1u), 1.0);
	return true;
}

/* The job's own rows of reclaim and compaction, and how long they took. */
static uint64_t reclaim_ns(const struct chain *c)
{
	const struct event *e = NULL;
	uint64_t ns = 0;

	while ((e = chain_event(c, SOURCE_HOST, e)))
		if (e->pid == c->a->pid &&
			(e->op == HOST_DIRECT_RECLAIM || e->op == HOST_COMPACTION))
			ns += e->dur_ns;
	return ns;
}

struct machine { /* readings of the host around the time */
	double faults, stalled_pct, left;
	uint64_t swap_first, swap_last;
	size_t count;
};

static struct machine machine_use(const struct chain *c)
{
	struct machine m = {.left = 1};

	for (size_t i = 0; i < c->rec->sample_count; i++) {
		const struct host_sample *s = &c->rec->samples[i];

		if (!chain_around(c, s->time.ns))
			continue;
		if (!m.count++)
			m.swap_first = s->swap_mb;
		m.swap_last = MAX(m.swap_last, s->swap_mb);
		m.faults = MAX(m.faults, s->major_faults_per_s);
		m.stalled_pct = MAX(m.stalled_pct, s->psi_memory_pct);
		if (s->mem_total_mb)
			m.left = MIN(m.left, (double)s->mem_avail_mb / (double)s->mem_total_mb);
	}
	return m;
}

/* Pages that the job got in that time: new ones, and those of files that it reads. What it got before the first whole bucket is
 * taken to be as much as in the others. */
static double pages_got(const struct chain *c, double *ret_bytes)
{
	int64_t first = c->to_ns;
	double pages = 0, whole;

	*ret_bytes = 0;
	for (size_t i = 0; i < c->rec->aggregate_count; i++) {
		const struct aggregate *g = &c->rec->aggregates[i];

		if (g->pid != c->a->pid || g->bucket.ns < c->from_ns || g->bucket.ns >= c->to_ns)
			continue;
		first = MIN(first, g->bucket.ns);
		if (g->source != SOURCE_HOST || g->op != HOST_PAGE_ALLOC)
			continue;
		pages += (double)g->sketch.count;
		*ret_bytes += (double)g->sum_arg0;
	}
	whole = (double)(c->to_ns - c->from_ns) / (double)MAX(c->to_ns - first, INT64_C(1));
	*ret_bytes *= pages > 0 ? whole : 0;
	return pages * whole;
}

bool chain_pages_again(const struct chain *c, struct resource_use *ret)
{
	struct group_use u = group_use(c);
	double bytes, pages = pages_got(c, &bytes);
	int64_t again, high, max;

	if (!u.first || u.first == u.last || pages <= 0)
		return false;
	again = grown(u.first->memory_refaults, u.last->memory_refaults);
	high = grown(u.first->memory_high, u.last->memory_high);
	max = grown(u.first->memory_max, u.last->memory_max);
	if ((double)(high + max) < THRESHOLD(LIMIT_EVENTS) ||
		(double)again < THRESHOLD(CHAIN_MOST) * pages)
		return false;
	limit_is(c, &u, high >= max, ret);
	return true;
}

/* A page that is new to the process is found, cleared or copied, and mapped: 0.5 us and more, several in a virtual machine; in
 * huge pages as many bytes take a fifth of that. @units: that have all of them. */
static bool are_pages(const struct chain *c, double share, double units, struct resource_use *ret)
{
	double lost = share * (double)(c->d->slow_ns - c->d->ordinary_ns), bytes,
	       pages = pages_got(c, &bytes);

	pages = MAX(pages, THRESHOLD(LITTLE) * bytes / PAGE_BYTES);
	bytes /= units;
	if (pages / units * THRESHOLD(PAGE_NS) < THRESHOLD(CHAIN_MOST) * lost)
		return false;
	snprintf(ret->detail, sizeof(ret->detail), "%.*f MB", bytes < 1e7, bytes / 1e6);
	return true;
}

bool chain_fresh_memory(const struct chain *c, double share, struct resource_use *ret)
{
	uint64_t unit = c->has_slow ? c->a->slow_step_ns : c->a->ordinary_step_ns;

	return are_pages(c, share,
		(double)MAX(c->to_ns - c->from_ns, INT64_C(1)) / (double)MAX(unit, UINT64_C(1)),
		ret);
}

/* Whether @e is a fork of the job's whose child goes on as what the job is. */
static bool is_split(const struct chain *c, const struct lineage *lines, const struct event *e)
{
	return e->source == SOURCE_HOST && e->op == HOST_PROCESS_FORK && e->pid == c->a->pid &&
	       !(e->flags & WIRE_THREAD) &&
	       lineage_is_from(lines, e->peer_pid, e->pid, c->to_ns, true);
}

/* How many of the units that count have such a fork, or follow one; of slow ones also those that go on from there. */
static size_t units_after_fork(
	const struct chain *c, const struct lineage *lines, size_t *ret_units)
{
	const struct recording *rec = c->rec;
	const struct step_mark *m = c->a->marks;
	size_t i = 0, after = 0;
	bool was_here = false, goes_on = false;

	*ret_units = 0;
	for (size_t k = 0; k < c->a->mark_count; k++) {
		int64_t end = m[k].start.ns + (int64_t)m[k].dur_ns;
		bool counts = !c->has_slow || m[k].is_slow, here = false;

		for (; i < rec->event_count && rec->events[i].start.ns < end; i++)
			here |= rec->events[i].start.ns >= m[k].start.ns &&
				is_split(c, lines, &rec->events[i]);
		goes_on = here || was_here || (c->has_slow && counts && goes_on);
		was_here = here;
		*ret_units += counts;
		after += counts && goes_on;
	}
	return after;
}

/* Pages that are shared with a process that was forked are copied one by one, as either of the two writes to them. */
bool chain_copied_memory(const struct chain *c, double share, struct resource_use *ret)
{
	_cleanup_(lineage_done) struct lineage lines = {0};
	size_t units = 0, after = 0;

	if (lineage_build(c->rec, &lines) == 0)
		after = units_after_fork(c, &lines, &units);
	return (double)after >= THRESHOLD(AGAIN) &&
	       (double)after >= THRESHOLD(MOST) * (double)units &&
	       are_pages(c, share, (double)after, ret);
}

bool chain_memory(const struct chain *c, struct resource_use *ret)
{
	uint64_t lost = chain_lost_ns(c), reclaimed;
	struct machine m;

	if (chain_memory_limit(c, ret))
		return true;
	*ret = (struct resource_use){.resource = RESOURCE_MEMORY};
	m = machine_use(c);
	reclaimed = reclaim_ns(c);
	ret->share = lost ? MIN((double)reclaimed / (double)lost, 1.0) : 0;
	if ((double)m.swap_last > (double)m.swap_first + THRESHOLD(SWAP_GROWN) ||
		(m.swap_last && m.stalled_pct > THRESHOLD(MEMORY_STALLED))) {
		snprintf(ret->detail, sizeof(ret->detail),
			"swapping: %.0f page faults/s read from the disk", m.faults);
		ret->share = 1;
		return true;
	}
	if ((double)reclaimed >= THRESHOLD(CHAIN_PART) * (double)lost && reclaimed) {
		snprintf(ret->detail, sizeof(ret->detail), "reclaim, %.0f %% of memory left",
			100 * m.left);
		return true;
	}
	if (m.left < THRESHOLD(MEMORY_LEFT) && m.stalled_pct > THRESHOLD(MEMORY_STALLED)) {
		snprintf(ret->detail, sizeof(ret->detail), "%.0f %% of memory left", 100 * m.left);
		ret->share = 1;
		return true;
	}
	return false;
}
