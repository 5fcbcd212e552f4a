/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.c - from a library file to probes on its functions (coverage_private.h).
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
 *  5. Who writes to a file that is probed, instead of putting another in its place, moves the code away from under the
 *     probes: these go as soon as that is seen. A program that maps it in the moment before is damaged.
 *  6. A file that several overlays show is probed once (coverage_alias.c).
 *  7. Nobody but root has more than a share of the places: a user with many copies of a library keeps the
 *     others' from being probed neither by their number nor by the time they take. */
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>

#include "record/attach/coverage_private.h"
#include "base/log.h"

#define GIVE_BACK 8 /* at a time */
#define ANYBODY   ((uid_t)-1)
#define END_NS                                                                                     \
	(400 * NS_PER_MS) /* that the end of the trace waits for its threads: each is with one file */

int coverage_new(struct probe *p, struct coverage **ret)
{
	_cleanup_(coverage_freep) struct coverage *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->probe = p;
	c->changes = p ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
	c->files = calloc(COVERAGE_MAX, sizeof(*c->files));
	c->probed = calloc(COVERAGE_MAX, sizeof(*c->probed));
	c->aliases = calloc(ALIASES_MAX, sizeof(*c->aliases));
	if (!c->files || !c->probed || !c->aliases)
		return -ENOMEM;
	*ret = TAKE(c);
	return 0;
}

/* Whether the threads have come to an end within a moment; each sees that it shall. */
static bool pool_ends(struct pool *p)
{
	const struct timespec step = {.tv_nsec = 5 * (long)NS_PER_MS};
	mono_time begun = mono_now(); /* a step may take long on a machine that is flooded */

	while (pool_load(p)) {
		if (mono_now().ns - begun.ns >= (int64_t)END_NS)
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
			(void)coverage_arrived(c, i);
		if (c->probed[i].turn)
			coverage_turned(&c->probed[i]);
		uprobe_move(&c->probed[i].steady, list, &n);
		uprobe_move(&c->probed[i].names, list, &n);
		uprobe_move(&c->probed[i].launches, list, &n);
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

static void release_place(const struct coverage *c, struct probed *p)
{
	free(p->points);
	free(p->leaving);
	if (p->used && p->watch >= 0)
		(void)inotify_rm_watch(c->changes, p->watch);
	if (p->used)
		close(p->fd);
	coverage_alias_release(c, (size_t)(p - c->probed));
	*p = (struct probed){.freed = p->freed};
}

void coverage_free(struct coverage *c)
{
	if (c->files && c->probed && c->aliases) {
		coverage_detach(c);
		if (c->pool)
			return; /* a thread is still in it */
		for (size_t i = 0; i < COVERAGE_MAX; i++)
			release_place(c, &c->probed[i]);
	}
	if (c->changes >= 0)
		close(c->changes);
	free(c->files);
	free(c->probed);
	free(c->aliases);
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

/* Kernels whose maps show the file below an overlay tell the two apart. */
bool coverage_is_hidden(const struct coverage *c, size_t at)
{
	return c->probed[at].is_replaced && c->probed[at].stamp.dev == c->files[at].library.dev;
}

/* A file may be in the list twice: for the runtime, and for the interpreter or the NCCL in it. */
static struct probed *find(const struct coverage *c, const struct target_library *lib)
{
	const struct alias *a;

	for (size_t i = 0; i < COVERAGE_MAX; i++)
		if (c->probed[i].used && c->files[i].library.inode == lib->inode &&
			c->files[i].library.dev == lib->dev && !coverage_is_hidden(c, i) &&
			library_points_are_alike(c->files[i].library.kind, lib->kind))
			return &c->probed[i];
	a = coverage_alias_find(c, lib);
	return a ? &c->probed[a->at] : NULL;
}

void coverage_mapped(struct coverage *c, const struct target_library *lib)
{
	struct probed *p = find(c, lib);
	struct alias *a = coverage_alias_find(c, lib);

	if (p)
		p->mapped = c->scan;
	if (a)
		a->mapped = c->scan;
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
	return p->used && !p->turn && !p->arrival && !p->leaving &&
	       p->mapped < c->scan - (c->scanning ? 1 : 0);
}

static bool goes_before(const struct probed *a, const struct probed *b)
{
	return a->kept != b->kept ? b->kept : a->mapped < b->mapped;
}

/* Their probes go, and their places are free. */
static void drop(struct coverage *c, struct probed *const *leaving, size_t count)
{
	const struct wire_nccl_layout none = {0};

	for (size_t i = 0; i < count; i++) {
		struct uprobe *list[3];
		size_t n = 0;

		leaving[i]->freed = ++c->given_back;
		uprobe_move(&leaving[i]->steady, list, &n);
		uprobe_move(&leaving[i]->names, list, &n);
		uprobe_move(&leaving[i]->launches, list, &n);
		coverage_retire(c, list, n);
		if (c->probe)
			probe_nccl_layout(c->probe, (unsigned)(leaving[i] - c->probed), &none);
		release_place(c, leaving[i]);
	}
}

/* Detach the files, of @owner's, that were not mapped for longest, so that there are places again. */
static void give_back(struct coverage *c, uid_t owner)
{
	struct probed *leaving[GIVE_BACK];
	size_t count = 0;

	while (count < GIVE_BACK) {
		struct probed *p = NULL;

		for (size_t i = 0; i < COVERAGE_MAX; i++)
			if (is_idle(c, &c->probed[i]) && !c->probed[i].freed &&
				(owner == ANYBODY || c->probed[i].owner == owner) &&
				(!p || goes_before(&c->probed[i], p)))
				p = &c->probed[i];
		if (!p)
			break;
		p->freed = 1; /* not again */
		leaving[count++] = p;
	}
	drop(c, leaving, count);
}

static bool kernel_tells(const struct coverage *c)
{
	char events[4096];
	bool is_told = false;

	while (c->changes >= 0 && read(c->changes, events, sizeof(events)) > 0)
		is_told = true;
	return is_told;
}

/* Whether the file of the place @at was written to. *any: what was copied up from it is no longer known by it. */
static bool was_written(struct coverage *c, size_t at, bool *any)
{
	struct probed *p = &c->probed[at];
	enum file_change change;

	*any |= coverage_alias_drop(c, at);
	change = p->is_replaced ? FILE_AS_IT_WAS : coverage_change(p->fd, &p->stamp);
	if (change == FILE_COPIED_UP && (p->turn || p->arrival)) {
		c->is_look_due = true; /* what is under way ends in a moment */
	} else if (change == FILE_COPIED_UP) {
		coverage_replaced(c, at);
		*any = true;
	}
	return change == FILE_WRITTEN;
}

bool coverage_drop_changed(struct coverage *c, bool all)
{
	bool any = false;

	c->is_look_due |= kernel_tells(c) || all;
	if (!c->is_look_due)
		return false;
	c->is_look_due = false;
	for (size_t i = 0; i < COVERAGE_MAX; i++) {
		struct probed *p = &c->probed[i];

		if (!p->used || (!p->leaving && !was_written(c, i, &any)))
			continue;
		if (!p->leaving && !p->turn && !p->arrival) {
			log_info("%s was written to: it is looked at again",
				c->files[i].library.path);
			coverage_leave(c, p);
		}
		if (!p->leaving || !atomic_load(&p->leaving->is_done)) {
			c->is_look_due = true; /* what is under way ends in a moment */
			continue;
		}
		drop(c, &p, 1);
		any = true;
	}
	return any;
}

static uid_t owner_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_uid : 0;
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

int coverage_watch(const struct coverage *c, int fd)
{
	/* What copies a file up need not write to it: the rights are changed, or it is opened to be written to. */
	return c->changes < 0 ? -1
			      : inotify_add_watch(c->changes, FORMATTED(32, "/proc/self/fd/%d", fd),
					IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE);
}

/* Probe the file of @lib, open as @fd, in place @at. */
static int fill_place(struct coverage *c, size_t at, const struct target_library *lib, int fd,
	const struct file_stamp *stamp, struct errinfo *reterr)
{
	int r;

	c->files[at] = (struct coverage_file){.library = *lib, .is_coming = true};
	c->probed[at] = (struct probed){.used = true,
		.mapped = c->scan,
		.fd = fd,
		.owner = owner_of(fd),
		.watch = coverage_watch(c, fd),
		.stamp = *stamp};
	r = coverage_arrive(c, at, reterr);
	if (r == -ENOMEM && !c->probed[at].arrival)
		release_place(c, &c->probed[at]);
	return r;
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
		r = coverage_arrived(c, i);
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
	struct file_stamp stamp;
	uid_t owner;
	int at;

	if (!coverage_knows(lib->kind) || coverage_has(c, lib) ||
		c->closed_kinds >> lib->kind & 1) {
		close(fd);
		return 0;
	}
	owner = owner_of(fd);
	coverage_stamp(fd, &stamp); /* before it is read */
	if (coverage_alias_is_past(c, lib))
		stamp.born_ns = 0; /* a file of its own, however alike */
	at = coverage_alias_place(c, &stamp, lib->kind);
	if (at >= 0)
		return coverage_alias_add(c, (size_t)at, lib, fd, owner, reterr);
	if (coverage_has_share(c, owner))
		give_back(c, owner);
	if (coverage_has_share(c, owner)) {
		close(fd);
		return errinfo_set(reterr, -ENOBUFS,
			"more than %d CUDA library files of user %u are in use on this node: this one is not probed",
			COVERAGE_USER_MAX, (unsigned)owner);
	}
	if (!coverage_may_take(c, owner)) {
		close(fd);
		return errinfo_set(reterr, -EAGAIN, "other files of its owner are probed first");
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
	return fill_place(c, (size_t)at, lib, fd, &stamp, reterr);
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
