/* SPDX-License-Identifier: Apache-2.0 */
/* coverage_arrive.c - the probes of a new file come: its functions are found, and probed on the open file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/attach/coverage_private.h"
#include "base/log.h"

int coverage_attach(struct coverage *c, size_t at, const struct uprobe_point *points, size_t count,
	struct uprobe **ret, struct errinfo *reterr)
{
	const struct target_library *lib = &c->files[at].library;
	char path[32];
	int r;

	if (atomic_load(&c->is_stopping))
		return -ECANCELED; /* each takes the kernel up to 130 ms, which nobody waits for any more */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->probed[at].fd);
	if (library_points_are_marks(lib->kind))
		r = uprobe_attach_marks(c->probe, path, points, count, ret, NULL);
	else
		r = uprobe_attach(c->probe, path, points, count, ret, NULL);
	return r < 0 ? errinfo_set(reterr, r, "cannot probe %s (%s): %s", lib->path,
			       probe_method_name(probe_method(c->probe)), strerror(-r))
		     : 0;
}

/* Kernels get their names in the file that is probed already. Without them their launches are still
 * seen. */
static void attach_names(struct arrival *a)
{
	const struct target_library *lib = &a->coverage->files[a->at].library;
	int fd = a->coverage->probed[a->at].fd, r;
	struct library_points found;
	struct errinfo why = {0};
	char path[32];

	r = library_points_names(lib->kind, fd, lib->path, &found, &why);
	if (r == -ENOENT)
		return; /* no runtime, an old one, or a part of one */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (r == 0)
		r = uprobe_attach_marks(
			a->coverage->probe, path, found.points, found.count, &a->names, &why);
	if (r < 0)
		log_warning("kernels that %s launches will have no names: %s", lib->path, why.text);
}

/* The points of a file fall into launches, which are kept to be attached again, and the rest. */
static int attach_points(struct arrival *a)
{
	struct uprobe_point rest[UPROBE_POINTS_MAX];
	size_t n = 0;
	int r;

	a->points = calloc(a->found.count, sizeof(*a->points));
	if (!a->points)
		return -ENOMEM;
	for (size_t i = 0; i < a->found.count; i++) {
		union wire_cookie k = {.word = a->found.points[i].cookie};

		if (k.source != SOURCE_NCCL && k.flags & COOKIE_GOVERNED)
			a->points[a->point_count++] = a->found.points[i];
		else
			rest[n++] = a->found.points[i];
	}
	r = n ? coverage_attach(a->coverage, a->at, rest, n, &a->steady, &a->why) : 0;
	if (r == 0 && a->with_launches && a->point_count)
		r = coverage_attach(
			a->coverage, a->at, a->points, a->point_count, &a->launches, &a->why);
	return r;
}

static int arrive(struct arrival *a)
{
	struct coverage *c = a->coverage;
	const struct target_library *lib = &c->files[a->at].library;
	const char *name = lib->path[0] ? lib->path : "a file with a path that is too long";
	int r = library_points_find(
		lib->kind, c->probed[a->at].fd, name, (unsigned)a->at, &a->found, &a->why);

	if (r < 0 || !c->probe)
		return r;
	if (lib->kind == TARGET_NCCL)
		probe_nccl_layout(c->probe, (unsigned)a->at, &a->found.layout);
	if (!atomic_load(&c->is_stopping))
		attach_names(a); /* first: a name comes before its launch */
	return attach_points(a);
}

static bool arrival_run(void *arg, bool brief)
{
	struct arrival *a = arg;

	a->error = atomic_load(&a->coverage->is_stopping) ? -ECANCELED : arrive(a);
	a->since = wall_now();
	atomic_store(&a->is_done, true);
	return true;
}

/* A file that failed keeps its place, so that it is not tried again, and nothing else. */
static void leave_unprobed(struct probed *p)
{
	struct uprobe *list[3];
	size_t n = 0;

	uprobe_move(&p->steady, list, &n);
	uprobe_move(&p->names, list, &n);
	uprobe_move(&p->launches, list, &n);
	uprobe_detach_all(list, n);
	p->point_count = 0;
	close(p->fd);
	p->fd = -1;
}

int coverage_arrived(struct coverage *c, size_t at)
{
	_cleanup_free_ struct arrival *a = TAKE(c->probed[at].arrival);
	struct coverage_file *f = &c->files[at];
	struct probed *p = &c->probed[at];

	p->steady = a->steady;
	p->names = a->names;
	p->launches = a->launches;
	p->points = a->points;
	p->point_count = a->point_count;
	f->is_coming = false;
	if (a->error < 0) {
		memcpy(f->why, a->why.text, sizeof(f->why) - 1);
		f->error = a->error;
		leave_unprobed(p);
		return a->error;
	}
	f->probes = a->found.count;
	f->since = a->since;
	return 1;
}

int coverage_arrive(struct coverage *c, size_t at, struct errinfo *reterr)
{
	struct arrival *a = calloc(1, sizeof(*a));
	struct probed *p = &c->probed[at];

	if (!a)
		return -ENOMEM;
	p->arrival = a;
	*a = (struct arrival){.job = {.fn = arrival_run, .arg = a, .asker = p->owner},
		.coverage = c,
		.at = at,
		.with_launches = !c->launches_off};
	if (c->is_beside && coverage_pool(c) && pool_push(c->pool, &a->job) == 0)
		return 1;
	(void)arrival_run(a, false);
	if (a->error < 0 && reterr)
		*reterr = a->why;
	return coverage_arrived(c, at);
}
