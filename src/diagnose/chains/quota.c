/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - see quota.h. Groups are read once a second: readings somewhat before and after the time count. */
#include "diagnose/chains/quota.h"

#include "base/macros.h"
#include "wire/op_kind.h"

#define READING_NS ((int64_t)(1200 * NS_PER_MS))

/* By calls of CUDA: they are made by the process itself. 0: not known. */
static uint64_t group_of(const struct recording *rec, uint32_t pid, int64_t to_ns)
{
	uint64_t id = 0;

	for (size_t i = 0; i < rec->event_count && rec->events[i].start.ns <= to_ns; i++) {
		const struct event *e = &rec->events[i];

		if (e->pid == pid && e->cgroup_id && op_kind_is_gpu(e->source))
			id = e->cgroup_id;
	}
	return id;
}

/* 0: there are several. */
static uint64_t only_group(const struct recording *rec)
{
	uint64_t id = rec->container_count ? rec->containers[0].cgroup_id : 0;

	for (size_t i = 1; i < rec->container_count; i++)
		if (rec->containers[i].cgroup_id != id)
			return 0;
	return id;
}

uint64_t quota_group(const struct recording *rec, uint32_t pid, int64_t to_ns)
{
	uint64_t id = group_of(rec, pid, to_ns);

	return id ? id : only_group(rec);
}

struct quota_stop quota_find(
	const struct recording *rec, uint32_t pid, int64_t from_ns, int64_t to_ns)
{
	const struct container_sample *first = NULL, *last = NULL;
	struct quota_stop stop = {0};
	uint64_t id = quota_group(rec, pid, to_ns);

	for (size_t i = 0; id && i < rec->container_count; i++) {
		const struct container_sample *c = &rec->containers[i];

		if (c->cgroup_id != id || c->time.ns < from_ns - READING_NS ||
			c->time.ns > to_ns + READING_NS || c->throttled_us < 0)
			continue;
		if (!first)
			first = c;
		last = c;
	}
	if (!first || first->time.ns > to_ns || last->throttled_us <= first->throttled_us)
		return stop;
	stop.ns = (uint64_t)(last->throttled_us - first->throttled_us) * NS_PER_US;
	if (last->quota_us > 0 && last->period_us > 0)
		stop.cpus = (double)last->quota_us / (double)last->period_us;
	return stop;
}
