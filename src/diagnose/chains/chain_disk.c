/* SPDX-License-Identifier: Apache-2.0 */
/* chain_disk.c - which device, in which direction, and who keeps it busy. What waits in a device's queue is summed by who
 * asked for it: time in flight, not bytes, is what others wait for. The kernel writes back in its own name what
 * programs have written before: who that was is not in the rows, but the job's own part is in its account. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/program_sum.h"

#define DEVICES_MAX  32
#define SECTOR_BYTES 512
#define MAJOR_SD     8
#define SD_MINORS    16
#define SD_LETTERS   16   /* of that major */
#define OWN_SHARE    0.25 /* of all time in flight: then it holds itself up */

enum { READS, WRITES };

struct device {
	uint32_t dev;
	uint64_t ns, own_ns;
};

struct requests {
	struct device devices[DEVICES_MAX];
	int device_count;
	struct program_sums programs;
};

static bool is_request(const struct event *e)
{
	return e->source == SOURCE_IO &&
	       (e->op == IO_READ || e->op == IO_WRITE || e->op == IO_FLUSH);
}

static struct device *device_get(struct requests *q, uint32_t dev)
{
	int k = 0;

	while (k < q->device_count && q->devices[k].dev != dev)
		k++;
	if (k == DEVICES_MAX)
		return NULL;
	q->devices[k].dev = dev;
	q->device_count = MAX(q->device_count, k + 1);
	return &q->devices[k];
}

/* Whose requests the steps wait for: the job's and its workers'. */
static bool is_own(const struct chain *c, uint32_t pid)
{
	if (pid == c->a->pid)
		return true;
	for (int i = 0; i < c->a->entry_count; i++)
		if (c->a->entries[i].pid == pid && c->a->entries[i].line == ACCOUNT_DISK)
			return true;
	return false;
}

/* The device that the job waits for; where it asks for nothing itself, the busiest. */
static const struct device *device_of(const struct chain *c, struct requests *q)
{
	const struct device *best = NULL;
	bool has_own = false;

	for (size_t i = chain_first_event(c); i < c->rec->event_count; i++) {
		const struct event *e = &c->rec->events[i];
		struct device *v;

		if (e->start.ns >= c->to_ns)
			break;
		if (!is_request(e) || !chain_time(c, e->start.ns))
			continue;
		v = device_get(q, e->dev);
		if (!v)
			continue;
		v->ns += e->dur_ns;
		v->own_ns += is_own(c, e->pid) ? e->dur_ns : 0;
		has_own |= v->own_ns > 0;
	}
	for (int i = 0; i < q->device_count; i++) {
		const struct device *v = &q->devices[i];

		if (!best || (has_own ? v->own_ns > best->own_ns : v->ns > best->ns))
			best = v;
	}
	return best;
}

static void add_requests(const struct chain *c, uint32_t dev, struct requests *q)
{
	for (size_t i = chain_first_event(c); i < c->rec->event_count; i++) {
		const struct event *e = &c->rec->events[i];
		int side = e->op == IO_READ ? READS : WRITES;
		struct program *p;

		if (e->start.ns >= c->to_ns)
			break;
		if (!is_request(e) || e->dev != dev || !chain_time(c, e->start.ns))
			continue;
		p = program_get(c->rec, &q->programs, e->pid, e->comm);
		if (!p)
			continue;
		p->ns[side] += e->dur_ns;
		p->bytes[side] += MIN(e->arg0, (uint64_t)UINT32_MAX) * SECTOR_BYTES;
	}
}

static bool is_kernels(const struct program *p)
{
	static const char *const names[] = {
		"kworker", "jbd2", "kswapd", "xfsaild", "btrfs-", "flush-"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(p->name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Numbers that every kernel gives alike; of others the numbers themselves. */
static void device_text(uint32_t dev, char *out, size_t size)
{
	uint32_t major = dev >> 20, minor = dev & 0xfffff;

	if (major == MAJOR_SD && minor / SD_MINORS < SD_LETTERS)
		snprintf(out, size, "sd%c", (int)('a' + minor / SD_MINORS));
	else
		snprintf(out, size, "device %u:%u", major, minor);
}

static void rate_text(double bytes_per_s, char *out, size_t size)
{
	if (bytes_per_s >= 1e9)
		snprintf(out, size, "%.1f GB/s", bytes_per_s / 1e9);
	else
		snprintf(out, size, "%.*f MB/s", bytes_per_s < 1e7, bytes_per_s / 1e6);
}

static const struct program *most_of(const struct requests *q, int side)
{
	const struct program *most = NULL;

	for (int i = 0; i < q->programs.count; i++) {
		const struct program *p = &q->programs.items[i];

		if (p->ns[side] && !is_kernels(p) && (!most || p->ns[side] > most->ns[side]))
			most = p;
	}
	return most;
}

static const struct program *program_of(const struct chain *c, const struct requests *q)
{
	for (int i = 0; i < q->programs.count; i++)
		for (uint32_t k = 0; k < q->programs.items[i].pid_count; k++)
			if (is_own(c, q->programs.items[i].pids[k]))
				return &q->programs.items[i];
	return NULL;
}

bool chain_disk(const struct chain *c, struct resource_use *ret)
{
	_cleanup_free_ struct requests *q = calloc(1, sizeof(*q));
	const struct device *device = q ? device_of(c, q) : NULL;
	uint64_t ns[2] = {0}, bytes[2] = {0};
	const struct program *who, *own;
	char name[32], rate[32];
	int side;

	if (!device)
		return false;
	add_requests(c, device->dev, q);
	for (int i = 0; i < q->programs.count; i++)
		for (int s = READS; s <= WRITES; s++) {
			ns[s] += q->programs.items[i].ns[s];
			bytes[s] += q->programs.items[i].bytes[s];
		}
	side = ns[READS] >= ns[WRITES] ? READS : WRITES;
	who = most_of(q, side);
	own = program_of(c, q);
	/* Its own requests are enough, and a checkpoint is its own whoever writes it back. */
	if (own &&
		(double)(own->ns[READS] + own->ns[WRITES]) >=
			OWN_SHARE * (double)(ns[READS] + ns[WRITES]) &&
		(!who || own->ns[side] * 2 >= who->ns[side]))
		who = own;
	if (c->d->kind == DELAY_BY_CHECKPOINT) {
		side = WRITES;
		who = who && own == who ? who : own;
	}
	ret->resource = side == READS ? RESOURCE_DISK_READ : RESOURCE_DISK_WRITE;
	if (who)
		program_name(who, ret);
	if (c->d->kind == DELAY_BY_CHECKPOINT && !who) {
		ret->pid = c->a->pid;
		process_words(c->rec, c->a->pid, c->a->comm, ret->who);
	}
	device_text(device->dev, name, sizeof(name));
	rate_text((double)bytes[side] / (double)MAX(chain_elapsed_ns(c), UINT64_C(1)) *
			  (double)NS_PER_S,
		rate, sizeof(rate));
	snprintf(ret->detail, sizeof(ret->detail), "%s, %s %s", name,
		side == READS ? "reads" : "writes", rate);
	ret->share = ns[side] ? (double)ns[side] / (double)(ns[READS] + ns[WRITES]) : 1;
	return true;
}
