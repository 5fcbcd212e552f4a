/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.c - from a library file to probes on its functions.
 *
 * The function tables name symbols; elfsym gives their file offsets; aliases that share an offset
 * are probed once.
 *
 * Invariants:
 *  1. A file is opened by the caller, once: symbols are read from that descriptor and probes go
 *     onto it (/proc/self/fd/N), so that no name can be exchanged between the two.
 *  2. A file stays probed when nobody maps it (an unused probe costs nothing, and the next program
 *     is then seen from its first call) until its place is needed for another.
 *  3. A file's place in the list is its number in the cookies. The number of a file that was given
 *     back is free when its probes are gone, and the number free for longest is taken first: perf
 *     probes go in the background, of files that nobody maps. Records carry no such number; in the
 *     kernel it only leads to nccl_layouts, which is emptied before the number is given on. */
#include "agent/attach/coverage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/attach/accessor.h"
#include "agent/attach/mark_points.h"
#include "agent/attach/prologue.h"
#include "agent/attach/uprobe.h"
#include "agent/discover/elfsym.h"
#include "agent/probe/function.h"
#include "base/log.h"

#define COVERAGE_MAX WIRE_LIBRARY_MAX /* library files on one node */
#define GIVE_BACK    8                /* at a time: detaching takes some 10 ms each */
#define NEIGHBOURS   64               /* bytes between fields that belong together */

struct probed {                      /* what belongs to one file */
	bool used;                   /* the place is taken */
	bool kept;                   /* known by name or from disk: given back last */
	uint64_t mapped;             /* the last scan in which a process mapped it */
	uint64_t freed;              /* when the place was last given back, in order; 0: never */
	struct uprobe *steady;       /* probes that are always there */
	struct uprobe *names;        /* places at which kernels get their names */
	struct uprobe *launches;     /* those the governor may take away; NULL while away */
	struct uprobe_point *points; /* to bring them back */
	size_t point_count;
	int fd; /* the file, so that it can be opened again whatever becomes of its path */
};

struct coverage {
	struct probe *probe;
	struct coverage_file *files;
	struct probed *probed; /* parallel to files */
	uint64_t scan;         /* number of the latest scan of all processes */
	bool scanning;         /* it is still under way */
	uint64_t given_back;   /* files so far */
	bool launches_off;
	unsigned closed_kinds; /* see coverage_close_kind() */
};

static const struct probe_library *functions_of(enum target_library_kind kind)
{
	switch (kind) {
	case TARGET_CUDART:
	case TARGET_EXECUTABLE: return &probe_cuda_rt;
	case TARGET_CUDA: return &probe_cuda_drv;
	case TARGET_NCCL: return &probe_nccl;
	default: return NULL;
	}
}

static const struct mark_library *marks_of(enum target_library_kind kind)
{
	if (target_kind_has_nvtx(kind))
		return &mark_nvtx;
	return kind == TARGET_TORCH_CPU ? &mark_torch : kind == TARGET_PYTHON ? &mark_python : NULL;
}

static const struct mark_library *names_of(enum target_library_kind kind)
{
	if (kind == TARGET_CUDA)
		return &mark_cuda_names;
	return kind == TARGET_CUDART || kind == TARGET_EXECUTABLE ? &mark_cudart_names : NULL;
}

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

void coverage_detach(struct coverage *c)
{
	struct uprobe *list[3 * COVERAGE_MAX];
	size_t n = 0;

	for (size_t i = 0; i < COVERAGE_MAX; i++) {
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
	return n > UPROBE_DETACH_HERE || probe_method(c->probe) == PROBE_PERF;
}

/* The name is for the sentence; the probes go onto the open file. */
static int attach(struct coverage *c, size_t at, const struct uprobe_point *points, size_t count,
	struct uprobe **ret, struct errinfo *reterr)
{
	const struct target_library *lib = &c->files[at].library;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->probed[at].fd);
	if (marks_of(lib->kind))
		r = uprobe_attach_marks(c->probe, path, points, count, ret, NULL);
	else
		r = uprobe_attach(c->probe, path, points, count, ret, NULL);
	return r < 0 ? errinfo_set(reterr, r, "cannot probe %s (%s): %s", lib->path,
			       probe_method_name(probe_method(c->probe)), strerror(-r))
		     : 0;
}

static int attach_launches(struct coverage *c, size_t i, struct errinfo *reterr)
{
	struct probed *p = &c->probed[i];

	if (!p->point_count || p->launches)
		return 0;
	return attach(c, i, p->points, p->point_count, &p->launches, reterr);
}

int coverage_launches(struct coverage *c, bool on)
{
	struct uprobe *list[COVERAGE_MAX];
	size_t n = 0;
	int r = 0;

	c->launches_off = !on;
	for (size_t i = 0; i < COVERAGE_MAX; i++) {
		if (on) {
			int q = attach_launches(c, i, NULL);

			r = r ? r : q;
		} else {
			take(&c->probed[i].launches, list, &n);
		}
	}
	uprobe_detach_all(list, n);
	return r;
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

/* A program may be in the list twice: for the runtime and for the interpreter in it. */
static struct probed *find(const struct coverage *c, const struct target_library *lib)
{
	for (size_t i = 0; i < COVERAGE_MAX; i++)
		if (c->probed[i].used && c->files[i].library.inode == lib->inode &&
			c->files[i].library.dev == lib->dev &&
			!marks_of(c->files[i].library.kind) == !marks_of(lib->kind))
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
	return p->used && p->mapped < c->scan - (c->scanning ? 1 : 0);
}

static bool goes_before(const struct probed *a, const struct probed *b)
{
	return a->kept != b->kept ? b->kept : a->mapped < b->mapped;
}

/* Detach the files that were not mapped for longest, so that there are places again. */
static void give_back(struct coverage *c)
{
	const struct wire_nccl_layout none = {0};
	struct uprobe *list[3 * GIVE_BACK];
	struct probed *leaving[GIVE_BACK];
	size_t n = 0, count = 0;

	while (count < GIVE_BACK) {
		struct probed *p = NULL;

		for (size_t i = 0; i < COVERAGE_MAX; i++)
			if (is_idle(c, &c->probed[i]) && !c->probed[i].freed &&
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
	uprobe_detach_all(list, n);
	for (size_t i = 0; i < count; i++) {
		if (c->probe)
			probe_nccl_layout(c->probe, (unsigned)(leaving[i] - c->probed), &none);
		release_place(leaving[i]);
	}
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

/* The points of a file fall into launches, which are kept to be attached again, and the rest. */
static int attach_points(struct coverage *c, size_t at, const struct uprobe_point *points,
	size_t count, struct errinfo *reterr)
{
	struct uprobe_point rest[UPROBE_POINTS_MAX];
	struct probed *p = &c->probed[at];
	size_t n = 0;
	int r;

	p->points = calloc(count, sizeof(*points));
	if (!p->points)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		union wire_cookie k = {.word = points[i].cookie};

		if (k.source != SOURCE_NCCL && k.flags & COOKIE_GOVERNED)
			p->points[p->point_count++] = points[i];
		else
			rest[n++] = points[i];
	}
	r = n ? attach(c, at, rest, n, &p->steady, reterr) : 0;
	if (r == 0 && !c->launches_off)
		r = attach_launches(c, at, reterr);
	return r;
}

static bool has_offset(const struct uprobe_point *points, size_t n, uint64_t offset)
{
	for (size_t i = 0; i < n; i++)
		if (points[i].offset == offset)
			return true;
	return false;
}

static uint64_t cheapest_place(struct elfsym *elf, uint64_t offset)
{
	uint8_t code[PROLOGUE_BYTES];

	if (elfsym_read(elf, offset, code, sizeof(code)) < 0)
		return offset;
	return offset + prologue_skip(elfsym_machine(elf), code);
}

/* A field of the communicator, by the code of the function that returns it; 0 if it cannot be told.
 */
static uint32_t nccl_field(struct elfsym *elf, const char *function)
{
	uint8_t code[ACCESSOR_BYTES];
	uint64_t offset;
	uint32_t at;

	if (elfsym_offset(elf, function, &offset) < 0 ||
		elfsym_read(elf, offset, code, sizeof(code)) < 0 ||
		accessor_field(elfsym_machine(elf), code, sizeof(code), &at) < 0)
		return 0;
	return at;
}

static void send_nccl_layout(struct coverage *c, struct elfsym *elf, unsigned library)
{
	struct wire_nccl_layout l = {
		.rank_at = nccl_field(elf, "ncclCommUserRank"),
		.size_at = nccl_field(elf, "ncclCommCount"),
		.device_at = nccl_field(elf, "ncclCommCuDevice"),
	};

	/* rank and size are neighbours in every version; offsets far apart are a wrong guess */
	l.valid = l.rank_at && l.size_at &&
		  MAX(l.rank_at, l.size_at) - MIN(l.rank_at, l.size_at) <= NEIGHBOURS;
	if (l.device_at < l.rank_at || l.device_at - l.rank_at > NEIGHBOURS)
		l.device_at = 0;
	if (!l.valid)
		log_warning("cannot locate the rank and size fields in %s: communicators made "
			    "before the trace, or by ncclCommSplit(), will have no rank",
			c->files[library].library.path);
	if (c->probe) /* `check` only looks */
		probe_nccl_layout(c->probe, library, &l);
}

/* A reader of the symbols of @fd, which stays ours. */
static int open_symbols(int fd, const char *name, struct elfsym **ret, struct errinfo *reterr)
{
	struct errinfo why = {0};
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (own < 0)
		return errinfo_set(reterr, -errno, "%s: %s", name, strerror(errno));
	r = elfsym_open_fd(own, ret, &why);
	if (r == 0)
		return 0;
	close(own);
	return errinfo_set(reterr, r, "%s: %.150s", name, why.text);
}

/* Places of the file at which marks are taken. */
static int resolve_marks(int fd, const char *name, const struct mark_library *lib,
	struct uprobe_point *points, size_t *ret_count, struct errinfo *reterr)
{
	_cleanup_(elfsym_closep) struct elfsym *elf = NULL;
	int r = open_symbols(fd, name, &elf, reterr);

	if (r < 0)
		return r;
	r = mark_points(elf, lib, points);
	if (r < 0)
		return errinfo_set(
			reterr, r, "cannot read the symbols of %s: %s", name, strerror(-r));
	if (r == 0)
		return errinfo_set(reterr, -ENOENT, "%.120s %s", name, lib->none);
	*ret_count = (size_t)r;
	return 0;
}

/* Offsets of all symbols of the table that the file has. */
static int resolve(struct coverage *c, unsigned number, int fd, const char *name,
	const struct probe_library *lib, struct uprobe_point *points, size_t *ret_count,
	struct errinfo *reterr)
{
	const char *names[UPROBE_POINTS_MAX];
	int rows[UPROBE_POINTS_MAX];
	uint64_t offsets[UPROBE_POINTS_MAX];
	_cleanup_(elfsym_closep) struct elfsym *elf = NULL;
	size_t n = 0, found = 0;
	int r;

	for (int row = 0; lib->functions[row].symbols[0]; row++)
		for (int v = 0; v < FUNCTION_VARIANTS && lib->functions[row].symbols[v]; v++) {
			names[n] = lib->functions[row].symbols[v];
			rows[n++] = row;
		}
	r = open_symbols(fd, name, &elf, reterr);
	if (r < 0)
		return r;
	r = elfsym_offsets(elf, names, n, offsets);
	if (r < 0)
		return errinfo_set(
			reterr, r, "cannot read the symbols of %s: %s", name, strerror(-r));
	for (size_t i = 0; i < n; i++) {
		uint64_t at = offsets[i] ? cheapest_place(elf, offsets[i]) : 0;

		if (at && !has_offset(points, found, at))
			points[found++] = (struct uprobe_point){
				.offset = at, .cookie = probe_cookie(lib, rows[i], number).word};
	}
	if (!found)
		return errinfo_set(reterr, -ENOENT, "%s has no functions of %s", name, lib->name);
	if (lib == &probe_nccl)
		send_nccl_layout(c, elf, number);
	*ret_count = found;
	return 0;
}

bool coverage_knows(enum target_library_kind kind)
{
	return functions_of(kind) || marks_of(kind);
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

/* Kernels get their names in the file that is probed already. Without them their launches are still
 * seen. */
static void attach_names(struct coverage *c, size_t at, int fd)
{
	const struct target_library *lib = &c->files[at].library;
	struct uprobe_point points[UPROBE_POINTS_MAX];
	struct errinfo why = {0};
	char path[32];
	size_t count;
	int r;

	if (!names_of(lib->kind) || !c->probe)
		return;
	r = resolve_marks(fd, lib->path, names_of(lib->kind), points, &count, &why);
	if (r == -ENOENT)
		return; /* an old runtime, or a part of one */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (r == 0)
		r = uprobe_attach_marks(c->probe, path, points, count, &c->probed[at].names, &why);
	if (r < 0)
		log_warning("kernels that %s launches will have no names: %s", lib->path, why.text);
}

/* A file that failed keeps its place, so that it is not tried again, and nothing else. */
static void leave_unprobed(struct probed *p)
{
	struct uprobe *list[2];
	size_t n = 0;

	take(&p->steady, list, &n);
	take(&p->names, list, &n);
	uprobe_detach_all(list, n);
	p->point_count = 0;
	close(p->fd);
	p->fd = -1;
}

/* Probe the file of @lib, open as @fd, in place @at; what became of it stands there afterwards. */
static int fill_place(struct coverage *c, size_t at, const struct target_library *lib, int fd,
	struct errinfo *reterr)
{
	const char *name = lib->path[0] ? lib->path : "a file with a path that is too long";
	struct uprobe_point points[UPROBE_POINTS_MAX];
	struct coverage_file *f = &c->files[at];
	size_t count = 0;
	int r;

	*f = (struct coverage_file){.library = *lib};
	c->probed[at] = (struct probed){.used = true, .mapped = c->scan, .fd = fd};
	if (marks_of(lib->kind))
		r = resolve_marks(fd, name, marks_of(lib->kind), points, &count, reterr);
	else
		r = resolve(
			c, (unsigned)at, fd, name, functions_of(lib->kind), points, &count, reterr);
	if (r == 0)
		attach_names(c, at, fd); /* first: a name comes before its launch */
	if (r == 0 && c->probe)
		r = attach_points(c, at, points, count, reterr);
	if (r < 0) {
		memcpy(f->why, reterr->text, sizeof(f->why) - 1);
		f->error = r;
		leave_unprobed(&c->probed[at]);
		return r;
	}
	f->probes = count;
	f->since = wall_now();
	return 1;
}

void coverage_close_kind(struct coverage *c, enum target_library_kind kind)
{
	c->closed_kinds |= 1u << kind;
}

int coverage_add(
	struct coverage *c, const struct target_library *lib, int fd, struct errinfo *reterr)
{
	struct errinfo why = {0};
	int at, r;

	if (!coverage_knows(lib->kind) || coverage_has(c, lib) ||
		c->closed_kinds >> lib->kind & 1) {
		close(fd);
		return 0;
	}
	at = free_place(c);
	if (at < 0) {
		give_back(c);
		at = free_place(c);
	}
	if (at < 0) {
		close(fd);
		return errinfo_set(reterr, -ENOBUFS,
			"more than %d CUDA library files are in use on this node", COVERAGE_MAX);
	}
	r = fill_place(c, (size_t)at, lib, fd, &why);
	if (r < 0 && reterr)
		*reterr = why;
	return r;
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
