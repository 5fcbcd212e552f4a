/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.c - from a library file to probes on its functions (library_points.h).
 *
 * Invariants:
 *  1. A file is opened by the caller, once: symbols are read from that descriptor and probes go
 *     onto it (/proc/self/fd/N), so that no name can be exchanged between the two.
 *  2. A file stays probed when nobody maps it (an unused probe costs nothing, and the next program
 *     is then seen from its first call) until its place is needed for another.
 *  3. A file's place in the list is its number in the cookies. The number of a file that was given
 *     back is free when its probes are gone, and the number free for longest is taken first: perf
 *     probes go in the background, of files that nobody maps. Records carry no such number; in the
 *     kernel it only leads to nccl_layouts, which is emptied before the number is given on.
 *  4. Once tracing has begun (coverage_beside()), probes come and go by a few threads beside: the kernel waits 10 to
 *     130 ms for each file, side by side if it is asked so. A thread has only what its job holds; the list is the
 *     caller's alone. While the probes of a place are coming or its launches turning, nobody else touches it, and it is
 *     not given back. Of what waits, the file of the user who has the fewest under way is next.
 *  5. Nobody but root has more than a share of the places: a user with many copies of a library keeps the
 *     others' from being probed neither by their number nor by the time they take. */
#include "record/attach/coverage.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "record/attach/library_points.h"
#include "base/log.h"
#include "base/pool.h"

#define COVERAGE_MAX WIRE_LIBRARY_MAX   /* library files on one node */
#define GIVE_BACK    8                  /* at a time */
#define USER_MAX     (COVERAGE_MAX / 2) /* places for the files of one user, but root */
#define ANYBODY      ((uid_t)-1)
#define THREADS      4                 /* that attach and detach: they wait, mostly */
#define END_NS       (800 * NS_PER_MS) /* that the end of the trace waits for them */

struct turn { /* launch probes of one file come or go */
	struct pool_job job;
	struct coverage *coverage;
	size_t at;
	bool on;
	struct uprobe *uprobe; /* to take away; or what came */
	int error;
	atomic_bool is_done;
};

struct arrival { /* probes of a new file come */
	struct pool_job job;
	struct coverage *coverage;
	size_t at;
	bool with_launches;
	struct library_points found;
	struct uprobe_point *points; /* of launches, to bring them back */
	size_t point_count;
	struct uprobe *steady, *names, *launches;
	wall_time since;
	struct errinfo why;
	int error;
	atomic_bool is_done;
};

struct retired { /* probes that are removed in the background */
	struct pool_job job;
	struct uprobe *uprobe;
};

struct probed {                      /* what belongs to one file */
	bool used;                   /* the place is taken */
	bool kept;                   /* known by name or from disk: given back last */
	uint64_t mapped;             /* the last scan in which a process mapped it */
	uint64_t freed;              /* when the place was last given back, in order; 0: never */
	struct uprobe *steady;       /* probes that are always there */
	struct uprobe *names;        /* places at which kernels get their names */
	struct uprobe *launches;     /* those the governor may take away; NULL while away */
	struct turn *turn;           /* they are coming or going; NULL: neither */
	struct arrival *arrival;     /* all of them are coming; NULL: they have, or failed */
	bool has_no_launches;        /* they could not be brought back: not tried again */
	uid_t owner;                 /* of the file */
	struct uprobe_point *points; /* to bring them back */
	size_t point_count;
	int fd; /* the file, so that it can be opened again whatever becomes of its path */
};

/* How many files of a user, but root, may be attached now: as many as a job maps at once, then a few each second.
 * Each takes a thread some 20 ms, and a user with hundreds would keep others' waiting. */
struct intake {
	uid_t owner;
	double files;
	mono_time since;
	bool has_waited; /* which was said */
};
#define INTAKE_MAX  16
#define INTAKE_RATE 4  /* a second */
#define INTAKES     16 /* users; of more, the one that came longest ago is forgotten */

struct coverage {
	struct probe *probe;
	struct intake intakes[INTAKES];
	struct coverage_file *files;
	struct probed *probed; /* parallel to files */
	uint64_t scan;         /* number of the latest scan of all processes */
	bool scanning;         /* it is still under way */
	uint64_t given_back;   /* files so far */
	bool launches_off;
	bool is_beside;          /* see coverage_beside() */
	struct pool *pool;       /* NULL: nothing was done beside yet */
	atomic_bool is_stopping; /* what waits in it is left */
	unsigned closed_kinds;   /* see coverage_close_kind() */
};

int coverage_new(struct probe *p, struct coverage **ret)
{
	_cleanup_(coverage_freep) struct coverage *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->probe = p;
	c->files = calloc(COVERAGE_MAX, sizeof(*c->files));
	c->probed = calloc(COVERAGE_MAX, sizeof(*c->probed));
	if (!c->files || !c->probed)
		return -ENOMEM;
	*ret = TAKE(c);
	return 0;
}

static void take(struct uprobe **slot, struct uprobe **list, size_t *n)
{
	if (*slot)
		list[(*n)++] = TAKE(*slot);
}

/* The name is for the sentence; the probes go onto the open file. */
static int attach(struct coverage *c, size_t at, const struct uprobe_point *points, size_t count,
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
	r = n ? attach(a->coverage, a->at, rest, n, &a->steady, &a->why) : 0;
	if (r == 0 && a->with_launches && a->point_count)
		r = attach(a->coverage, a->at, a->points, a->point_count, &a->launches, &a->why);
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

	take(&p->steady, list, &n);
	take(&p->names, list, &n);
	take(&p->launches, list, &n);
	uprobe_detach_all(list, n);
	p->point_count = 0;
	close(p->fd);
	p->fd = -1;
}

/* What came of an arrival that has ended. Returns as coverage_add(). */
static int arrival_end(struct coverage *c, size_t at)
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

/* What came of a turn that has ended. */
static void turn_end(struct probed *p)
{
	struct turn *t = TAKE(p->turn);

	p->launches = t->uprobe;
	p->has_no_launches = t->error < 0;
	free(t);
}

/* Whether the threads have come to an end within a moment; each sees that it shall. */
static bool pool_ends(struct pool *p)
{
	const struct timespec step = {.tv_nsec = 5 * (long)NS_PER_MS};

	for (uint64_t ns = 0; pool_load(p); ns += (uint64_t)step.tv_nsec) {
		if (ns >= END_NS)
			return false;
		nanosleep(&step, NULL);
	}
	return true;
}

void coverage_detach(struct coverage *c)
{
	struct uprobe *list[3 * COVERAGE_MAX];
	size_t n = 0;

	atomic_store(&c->is_stopping, true);
	if (c->pool && !pool_ends(c->pool)) {
		/* Many files, or a file system that does not answer. Threads go on with what they hold. */
		uprobe_leave_all();
		return;
	}
	if (c->pool)
		pool_free(TAKE(c->pool));
	for (size_t i = 0; i < COVERAGE_MAX; i++) {
		if (c->probed[i].arrival)
			(void)arrival_end(c, i);
		if (c->probed[i].turn)
			turn_end(&c->probed[i]);
		take(&c->probed[i].steady, list, &n);
		take(&c->probed[i].names, list, &n);
		take(&c->probed[i].launches, list, &n);
	}
	uprobe_detach_last(list, n);
}

bool coverage_detach_is_slow(const struct coverage *c)
{
	size_t n = 0;

	for (size_t i = 0; i < COVERAGE_MAX; i++)
		n += (c->probed[i].steady != NULL) + (c->probed[i].launches != NULL) +
		     (c->probed[i].names != NULL);
	return n > UPROBE_DETACH_HERE || probe_method(c->probe) == PROBE_PERF ||
	       (c->pool && pool_load(c->pool));
}

/* ---- threads beside ---- */

/* Made when it is first wanted, so that its threads have given up what the caller has by then. */
static struct pool *pool_of(struct coverage *c)
{
	const struct pool_settings s = {
		.threads = THREADS, .queue_max = 8 * COVERAGE_MAX, .leaves_room = true};

	if (!c->pool && !atomic_load(&c->is_stopping) && pool_new(&s, &c->pool) < 0)
		log_warning("cannot start threads for probes: those of launches stay as they are");
	return c->pool;
}

static bool turn_run(void *arg, bool brief)
{
	struct turn *t = arg;
	struct coverage *c = t->coverage;

	if (atomic_load(&c->is_stopping))
		t->error = -ECANCELED;
	else if (t->on)
		t->error = attach(c, t->at, c->probed[t->at].points, c->probed[t->at].point_count,
			&t->uprobe, NULL);
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
	if (pool_of(c) && pool_push(c->pool, &t->job) == 0) {
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
			turn_end(p);
			if (p->has_no_launches)
				log_warning(
					"launches in %s are not seen any more: its probes could "
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

/* Nobody waits until they are gone. Perf probes go in the background by themselves. */
static void retire(struct coverage *c, struct uprobe **list, size_t count)
{
	bool here = !c->probe || probe_method(c->probe) == PROBE_PERF;

	for (size_t i = 0; i < count; i++) {
		struct retired *r = here ? NULL : calloc(1, sizeof(*r));

		if (r) {
			*r = (struct retired){
				.job = {.fn = retired_run, .arg = r, .asker = UINT64_MAX},
				.uprobe = list[i]};
			if (pool_of(c) && pool_push(c->pool, &r->job) == 0)
				continue;
			free(r);
		}
		uprobe_detach_all(&list[i], 1);
	}
}

static void release_place(struct probed *p)
{
	free(p->points);
	if (p->used && p->fd >= 0)
		close(p->fd);
	*p = (struct probed){.freed = p->freed};
}

void coverage_free(struct coverage *c)
{
	if (c->files && c->probed) {
		coverage_detach(c);
		if (c->pool)
			return; /* a thread is still in it */
		for (size_t i = 0; i < COVERAGE_MAX; i++)
			release_place(&c->probed[i]);
	}
	free(c->files);
	free(c->probed);
	free(c);
}

/* ---- places ---- */

void coverage_scan_begin(struct coverage *c)
{
	c->scan++;
	c->scanning = true;
}

void coverage_scan_end(struct coverage *c)
{
	c->scanning = false;
}

/* A file may be in the list twice: for the runtime, and for the interpreter or the NCCL in it. */
static struct probed *find(const struct coverage *c, const struct target_library *lib)
{
	for (size_t i = 0; i < COVERAGE_MAX; i++)
		if (c->probed[i].used && c->files[i].library.inode == lib->inode &&
			c->files[i].library.dev == lib->dev &&
			library_points_are_alike(c->files[i].library.kind, lib->kind))
			return &c->probed[i];
	return NULL;
}

void coverage_mapped(struct coverage *c, const struct target_library *lib)
{
	struct probed *p = find(c, lib);

	if (p)
		p->mapped = c->scan;
}

void coverage_keep(struct coverage *c, const struct target_library *lib)
{
	struct probed *p = find(c, lib);

	if (p)
		p->kept = true;
}

/* Did no process map it in the last complete scan, nor since? */
static bool is_idle(const struct coverage *c, const struct probed *p)
{
	return p->used && !p->turn && !p->arrival && p->mapped < c->scan - (c->scanning ? 1 : 0);
}

static bool goes_before(const struct probed *a, const struct probed *b)
{
	return a->kept != b->kept ? b->kept : a->mapped < b->mapped;
}

/* Detach the files, of @owner's, that were not mapped for longest, so that there are places again. */
static void give_back(struct coverage *c, uid_t owner)
{
	const struct wire_nccl_layout none = {0};
	struct uprobe *list[3 * GIVE_BACK];
	struct probed *leaving[GIVE_BACK];
	size_t n = 0, count = 0;

	while (count < GIVE_BACK) {
		struct probed *p = NULL;

		for (size_t i = 0; i < COVERAGE_MAX; i++)
			if (is_idle(c, &c->probed[i]) && !c->probed[i].freed &&
				(owner == ANYBODY || c->probed[i].owner == owner) &&
				(!p || goes_before(&c->probed[i], p)))
				p = &c->probed[i];
		if (!p)
			break;
		p->freed = ++c->given_back;
		take(&p->steady, list, &n);
		take(&p->names, list, &n);
		take(&p->launches, list, &n);
		leaving[count++] = p;
	}
	retire(c, list, n);
	for (size_t i = 0; i < count; i++) {
		if (c->probe)
			probe_nccl_layout(c->probe, (unsigned)(leaving[i] - c->probed), &none);
		release_place(leaving[i]);
	}
}

static uid_t owner_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_uid : 0;
}

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

/* Whether one more file of @owner's may be attached now. */
static bool intake_take(struct coverage *c, uid_t owner)
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

/* Whether the owner of a file has as many places as one may have. */
static bool has_share(const struct coverage *c, uid_t owner)
{
	size_t n = 0;

	if (!owner)
		return false;
	for (size_t i = 0; i < COVERAGE_MAX; i++)
		n += c->probed[i].used && c->probed[i].owner == owner;
	return n >= USER_MAX;
}

/* The place that has been free for longest, or -1. */
static int free_place(const struct coverage *c)
{
	int best = -1;

	for (int i = 0; i < COVERAGE_MAX; i++)
		if (!c->probed[i].used && (best < 0 || c->probed[i].freed < c->probed[best].freed))
			best = i;
	return best;
}

bool coverage_knows(enum target_library_kind kind)
{
	return library_points_known(kind);
}

const struct coverage_file *coverage_find(
	const struct coverage *c, const struct target_library *lib)
{
	const struct probed *p = find(c, lib);

	return p ? &c->files[p - c->probed] : NULL;
}

bool coverage_has(const struct coverage *c, const struct target_library *lib)
{
	return find(c, lib) != NULL;
}

/* Probe the file of @lib, open as @fd, in place @at: here, or beside. */
static int fill_place(struct coverage *c, size_t at, const struct target_library *lib, int fd,
	struct errinfo *reterr)
{
	struct arrival *a = calloc(1, sizeof(*a));
	struct probed *p = &c->probed[at];

	if (!a) {
		close(fd);
		return -ENOMEM;
	}
	c->files[at] = (struct coverage_file){.library = *lib, .is_coming = true};
	*p = (struct probed){
		.used = true, .mapped = c->scan, .fd = fd, .owner = owner_of(fd), .arrival = a};
	*a = (struct arrival){.job = {.fn = arrival_run, .arg = a, .asker = p->owner},
		.coverage = c,
		.at = at,
		.with_launches = !c->launches_off};
	if (c->is_beside && pool_of(c) && pool_push(c->pool, &a->job) == 0)
		return 1;
	(void)arrival_run(a, false);
	if (a->error < 0 && reterr)
		*reterr = a->why;
	return arrival_end(c, at);
}

void coverage_beside(struct coverage *c)
{
	c->is_beside = true;
}

bool coverage_settle(struct coverage *c)
{
	bool is_news = false;

	for (size_t i = 0; i < COVERAGE_MAX; i++) {
		const struct coverage_file *f = &c->files[i];
		int r;

		if (!c->probed[i].arrival || !atomic_load(&c->probed[i].arrival->is_done))
			continue;
		is_news = true;
		r = arrival_end(c, i);
		if (r < 0 && (r != -ENOENT || (target_kind_is_cuda(f->library.kind) &&
						      f->library.kind != TARGET_EXECUTABLE)))
			log_warning("%s", f->why);
	}
	return is_news;
}

void coverage_close_kind(struct coverage *c, enum target_library_kind kind)
{
	c->closed_kinds |= 1u << kind;
}

int coverage_add(
	struct coverage *c, const struct target_library *lib, int fd, struct errinfo *reterr)
{
	uid_t owner;
	int at;

	if (!coverage_knows(lib->kind) || coverage_has(c, lib) ||
		c->closed_kinds >> lib->kind & 1) {
		close(fd);
		return 0;
	}
	owner = owner_of(fd);
	if (has_share(c, owner))
		give_back(c, owner);
	if (has_share(c, owner)) {
		close(fd);
		return errinfo_set(reterr, -ENOBUFS,
			"more than %d CUDA library files of user %u are in use on this node: this one is not probed",
			USER_MAX, (unsigned)owner);
	}
	if (!intake_take(c, owner)) {
		close(fd);
		return errinfo_set(reterr, -EAGAIN, "the file waits for others of its owner's");
	}
	at = free_place(c);
	if (at < 0) {
		give_back(c, ANYBODY);
		at = free_place(c);
	}
	if (at < 0) {
		close(fd);
		return errinfo_set(reterr, -ENOBUFS,
			"more than %d CUDA library files are in use on this node", COVERAGE_MAX);
	}
	return fill_place(c, (size_t)at, lib, fd, reterr);
}

size_t coverage_probed(const struct coverage *c, const char **ret_first)
{
	size_t n = 0;

	*ret_first = "";
	for (size_t i = 0; i < COVERAGE_MAX; i++) {
		if (!c->probed[i].used || !c->files[i].probes ||
			!target_kind_is_cuda(c->files[i].library.kind))
			continue;
		if (n++ == 0)
			*ret_first = c->files[i].library.path;
	}
	return n;
}

size_t coverage_probes(const struct coverage *c, enum target_library_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < COVERAGE_MAX; i++)
		if (c->probed[i].used && c->files[i].library.kind == kind)
			n += c->files[i].probes;
	return n;
}
