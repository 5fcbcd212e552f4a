/* SPDX-License-Identifier: Apache-2.0 */
/* coverage_arrive.c - the probes of a new file come: its functions are found, and probed on the open file. */

#include "base/log.h"
#include "record/attach/coverage_private.h"

/* How much of the probing one user gets, but root: a number of places, and files a second. */

#define INTAKE_MAX  16
#define INTAKE_RATE 4 /* a second */

static struct intake *intake_of(struct coverage *c, uid_t owner, mono_time now)
{
	struct intake *oldest = &c->intakes[0];

	for (size_t i = 0; i < INTAKES; i++) {
		if (c->intakes[i].owner == owner)
			return &c->intakes[i];
		if (c->intakes[i].since.ns < oldest->since.ns)
			oldest = &c->intakes[i];
	}
	*oldest = (struct intake){.owner = owner, .files = INTAKE_MAX, .since = now};
	return oldest;
}

bool coverage_may_take(struct coverage *c, uid_t owner)
{
	mono_time now = mono_now();
	struct intake *n;

	if (!owner || !c->probe)
		return true;
	n = intake_of(c, owner, now);
	n->files += (double)(now.ns - n->since.ns) / (double)NS_PER_S * INTAKE_RATE;
	n->files = MIN(n->files, (double)INTAKE_MAX);
	n->since = now;
	if (n->files >= 1) {
		n->files--;
		return true;
	}
	if (!n->has_waited)
		log_warning("user %u maps libraries faster than they can be probed without keeping "
			    "others waiting: the rest is probed at %d files a second",
			(unsigned)owner, INTAKE_RATE);
	n->has_waited = true;
	return false;
}

bool coverage_has_share(const struct coverage *c, uid_t owner)
{
	size_t n = 0;

	if (!owner)
		return false;
	for (size_t i = 0; i < COVERAGE_MAX; i++)
		n += c->probed[i].used && c->probed[i].owner == owner;
	return n >= COVERAGE_USER_MAX;
}

/* Probes of launches that come and go, and those of files that were given back, by a few threads
 * beside: the kernel waits for each. */

#define THREADS 4 /* that attach and detach: they wait, mostly */

struct retired { /* probes that are removed in the background */
	struct pool_job job;
	struct uprobe *uprobe;
};

void coverage_turned(struct probed *p)
{
	struct turn *t = TAKE(p->turn);

	p->launches = t->uprobe;
	p->has_no_launches = t->error < 0;
	free(t);
}

/* Made when it is first wanted, so that its threads have given up what the caller has by then. NULL: there are none. */
static struct pool *coverage_pool(struct coverage *c)
{
	const struct pool_settings s = {
		.threads = THREADS, .queue_max = 8 * COVERAGE_MAX, .leaves_room = true};

	if (!c->pool && !atomic_load(&c->is_stopping) && pool_new(&s, &c->pool) < 0)
		log_warning(
			"cannot start threads for probes: the probes of launches remain unchanged");
	return c->pool;
}

static int coverage_attach(struct coverage *c, size_t at, const struct uprobe_point *points,
	size_t count, struct uprobe **ret, struct errinfo *reterr);

static bool turn_run(void *arg, bool brief)
{
	struct turn *t = arg;
	struct coverage *c = t->coverage;

	if (atomic_load(&c->is_stopping))
		t->error = -ECANCELED;
	else if (t->on)
		t->error = coverage_attach(c, t->at, c->probed[t->at].points,
			c->probed[t->at].point_count, &t->uprobe, NULL);
	else
		uprobe_detach_all((struct uprobe *[]){TAKE(t->uprobe)}, 1);
	atomic_store(&t->is_done, true);
	return true;
}

static void turn_begin(struct coverage *c, size_t at, bool on)
{
	struct probed *p = &c->probed[at];
	struct turn *t = calloc(1, sizeof(*t));

	if (!t)
		return; /* the next look tries again */
	*t = (struct turn){.job = {.fn = turn_run, .arg = t, .asker = p->owner},
		.coverage = c,
		.at = at,
		.on = on,
		.uprobe = TAKE(p->launches)};
	if (coverage_pool(c) && pool_push(c->pool, &t->job) == 0) {
		p->turn = t;
		return;
	}
	p->launches = t->uprobe;
	free(t);
}

void coverage_launches(struct coverage *c, bool on)
{
	c->launches_off = !on;
}

bool coverage_turn(struct coverage *c)
{
	bool on = !c->launches_off, is_settled = true;

	for (size_t i = 0; i < COVERAGE_MAX; i++) {
		struct probed *p = &c->probed[i];

		if (p->arrival)
			continue;
		if (p->turn && !atomic_load(&p->turn->is_done)) {
			is_settled = false;
			continue;
		}
		if (p->turn) {
			coverage_turned(p);
			if (p->has_no_launches)
				log_warning("launches in %s are no longer seen: its probes could "
					    "not be attached again",
					c->files[i].library.path);
		}
		if (!p->used || !p->point_count || p->has_no_launches ||
			on == (p->launches != NULL))
			continue;
		turn_begin(c, i, on);
		is_settled = false;
	}
	return is_settled;
}

static bool retired_run(void *arg, bool brief)
{
	struct retired *r = arg;

	uprobe_detach_all(&r->uprobe, 1);
	free(r);
	return true;
}

static bool leaving_run(void *arg, bool brief)
{
	struct leaving *l = arg;

	uprobe_detach_wait(l->list, l->count);
	atomic_store(&l->is_done, true);
	return true;
}

void coverage_leave(struct coverage *c, struct probed *p)
{
	struct leaving *l = calloc(1, sizeof(*l));

	if (!l)
		return; /* the next look tries again */
	l->job = (struct pool_job){.fn = leaving_run, .arg = l, .asker = p->owner};
	uprobe_move(&p->steady, l->list, &l->count);
	uprobe_move(&p->names, l->list, &l->count);
	uprobe_move(&p->launches, l->list, &l->count);
	p->point_count = 0;
	p->leaving = l;
	if (!c->is_beside || !coverage_pool(c) || pool_push(c->pool, &l->job) < 0)
		(void)leaving_run(l, false);
}

void coverage_retire(struct coverage *c, struct uprobe **list, size_t count)
{
	bool here = !c->probe || probe_method(c->probe) == PROBE_PERF;

	for (size_t i = 0; i < count; i++) {
		struct retired *r = here ? NULL : calloc(1, sizeof(*r));

		if (r) {
			*r = (struct retired){
				.job = {.fn = retired_run, .arg = r, .asker = UINT64_MAX},
				.uprobe = list[i]};
			if (coverage_pool(c) && pool_push(c->pool, &r->job) == 0)
				continue;
			free(r);
		}
		uprobe_detach_all(&list[i], 1);
	}
}

static int coverage_attach(struct coverage *c, size_t at, const struct uprobe_point *points,
	size_t count, struct uprobe **ret, struct errinfo *reterr)
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
	r = r
		    ?: uprobe_attach_marks(a->coverage->probe, path, found.points, found.count,
			       &a->names, &why);
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
