/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/rows/gpu_relation.h"

#include <stdio.h>
#include <string.h>

#include "diagnose/rows/home.h"
#include "wire/op_kind.h"

#define GPUS_MAX 64

/* ---- readings ---- */

static bool is_on(const struct gpu_sample *g, uint32_t pid)
{
	for (int k = 0; k < GPU_PROCESSES_NAMED; k++)
		if (gpu_sample_process(g, k) == pid)
			return true;
	return false;
}

/* The GPUs that readings name @pid on, as bits; *ret_all: those that have readings. */
static uint64_t named_on(const struct recording *rec, uint32_t pid, uint64_t *ret_all)
{
	uint64_t on = 0;

	*ret_all = 0;
	for (size_t i = 0; i < rec->gpu_count; i++) {
		const struct gpu_sample *g = &rec->gpus[i];
		uint64_t bit = g->index >= 0 && g->index < GPUS_MAX ? UINT64_C(1) << g->index : 0;

		*ret_all |= bit;
		on |= is_on(g, pid) ? bit : 0;
	}
	return on;
}

static enum gpu_relation by_readings(const struct recording *rec, uint32_t a, uint32_t b)
{
	uint64_t all, of_a = named_on(rec, a, &all), of_b = named_on(rec, b, &all);

	if (all && !(all & (all - 1))) /* the machine has one */
		return GPU_RELATION_SAME;
	if (!of_a || !of_b)
		return GPU_RELATION_UNKNOWN;
	return of_a & of_b ? GPU_RELATION_SAME : GPU_RELATION_OTHER;
}

/* ---- numbers ---- */

/* The devices of @pid's calls, as bits: a thread has number 0 until it asks for another one. */
static uint64_t devices_of(const struct recording *rec, uint32_t pid)
{
	uint64_t devices = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->pid == pid && op_kind_is_gpu(e->source) && e->device >= 0 &&
			e->device < GPUS_MAX)
			devices |= UINT64_C(1) << e->device;
	}
	return devices;
}

/* One that was met while it ran may have asked for another GPU before. */
static bool began_here(const struct recording *rec, uint32_t pid)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->source == SOURCE_HOST &&
			((e->op == HOST_PROCESS_EXEC && e->pid == pid) ||
				(e->op == HOST_PROCESS_FORK && e->peer_pid == pid)))
			return true;
	}
	return false;
}

struct gpu_name {
	char text[IDENTITY_GPUS_MAX];
};

/* What process @h calls device @n outside of itself: that of its list, else the number. False: its list has no such. */
static bool name_of(const struct process_home *h, int n, struct gpu_name *ret)
{
	const char *at = h->visible_gpus;

	if (!*at) {
		snprintf(ret->text, sizeof(ret->text), "%d", n);
		return true;
	}
	for (; n > 0 && at; n--) {
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	if (!at || !*at)
		return false;
	snprintf(ret->text, sizeof(ret->text), "%.*s", (int)strcspn(at, ","), at);
	return true;
}

static bool is_number(const struct gpu_name *n)
{
	return n->text[strspn(n->text, "0123456789")] == 0;
}

/* A name may be cut, as long as it is clear. */
static bool is_same_name(const struct gpu_name *a, const struct gpu_name *b)
{
	size_t len = strlen(a->text), other = strlen(b->text);

	if (is_number(a) || is_number(b))
		return !strcmp(a->text, b->text);
	return !strncmp(a->text, b->text, len < other ? len : other);
}

/* Containers number their GPUs from 0, and so do jobs that a batch system confines. */
static bool has_same_numbers(const struct process_home *a, const struct process_home *b)
{
	if (strcmp(a->container_id, b->container_id) != 0)
		return false;
	return (!strstr(a->cgroup_path, "slurm") && !strstr(b->cgroup_path, "slurm")) ||
	       !strcmp(a->cgroup_path, b->cgroup_path);
}

/* Whether it is certain which of its GPUs a process with @devices uses. */
static bool is_certain(const struct recording *rec, const struct process_home *h, uint64_t devices)
{
	return devices != 1 || (h->visible_gpus[0] && !strchr(h->visible_gpus, ',')) ||
	       began_here(rec, h->pid);
}

static enum gpu_relation compare(
	const struct process_home *a, int of_a, const struct process_home *b, int of_b)
{
	struct gpu_name x, y;

	if (!name_of(a, of_a, &x) || !name_of(b, of_b, &y) || is_number(&x) != is_number(&y))
		return GPU_RELATION_UNKNOWN;
	if (!is_number(&x))
		return is_same_name(&x, &y) ? GPU_RELATION_SAME : GPU_RELATION_OTHER;
	if (!has_same_numbers(a, b))
		return GPU_RELATION_UNKNOWN;
	return is_same_name(&x, &y) ? GPU_RELATION_NUMBER : GPU_RELATION_OTHER;
}

static enum gpu_relation by_numbers(const struct recording *rec, uint32_t a, uint32_t b)
{
	const struct process_home *of_a = home_of(rec, a), *of_b = home_of(rec, b);
	uint64_t devices_a = devices_of(rec, a), devices_b = devices_of(rec, b);
	enum gpu_relation found = GPU_RELATION_OTHER;

	if (!devices_a || !devices_b || !of_a || !of_b)
		return GPU_RELATION_UNKNOWN;
	for (int i = 0; i < GPUS_MAX; i++)
		for (int k = 0; k < GPUS_MAX; k++) {
			enum gpu_relation r;

			if (!(devices_a >> i & 1) || !(devices_b >> k & 1))
				continue;
			r = compare(of_a, i, of_b, k);
			if (r == GPU_RELATION_SAME || r == GPU_RELATION_NUMBER)
				return r;
			if (r == GPU_RELATION_UNKNOWN)
				found = r;
		}
	if (found == GPU_RELATION_OTHER &&
		!(is_certain(rec, of_a, devices_a) && is_certain(rec, of_b, devices_b)))
		return GPU_RELATION_UNKNOWN;
	return found;
}

enum gpu_relation gpu_relation_of(const struct recording *rec, uint32_t a, uint32_t b)
{
	enum gpu_relation r = by_readings(rec, a, b);

	return r == GPU_RELATION_UNKNOWN ? by_numbers(rec, a, b) : r;
}
