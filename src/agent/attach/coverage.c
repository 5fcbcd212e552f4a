/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.c - from a library file to probes on its functions.
 *
 * The function tables name symbols; elfsym gives their file offsets; aliases that share an offset
 * are probed once. Files are never detached while tracing: an unused probe costs nothing. */
#include "agent/attach/coverage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/attach/accessor.h"
#include "agent/attach/prologue.h"
#include "agent/attach/uprobe.h"
#include "agent/discover/elfsym.h"
#include "agent/probe/function.h"
#include "base/log.h"

#define COVERAGE_MAX WIRE_LIBRARY_MAX /* library files on one node */
#define NEIGHBOURS   64               /* bytes between fields that belong together */

struct probed {                      /* what belongs to one file */
	struct uprobe *steady;       /* probes that are always there */
	struct uprobe *launches;     /* those the governor may take away; NULL while away */
	struct uprobe_point *points; /* to bring them back */
	size_t point_count;
	int fd; /* the file, so that it can be opened again whatever becomes of its path */
};

struct coverage {
	struct probe *probe;
	struct coverage_file *files;
	struct probed *probed; /* parallel to files */
	size_t count;
	bool launches_off;
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
	struct uprobe *list[2 * COVERAGE_MAX];
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++) {
		take(&c->probed[i].steady, list, &n);
		take(&c->probed[i].launches, list, &n);
	}
	uprobe_detach_all(list, n);
}

static int attach_launches(struct coverage *c, struct probed *p, struct errinfo *reterr)
{
	char path[64];

	if (!p->point_count || p->launches)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->fd);
	return uprobe_attach(c->probe, path, p->points, p->point_count, &p->launches, reterr);
}

int coverage_launches(struct coverage *c, bool on)
{
	struct uprobe *list[COVERAGE_MAX];
	size_t n = 0;
	int r = 0;

	c->launches_off = !on;
	for (size_t i = 0; i < c->count; i++) {
		if (on) {
			int q = attach_launches(c, &c->probed[i], NULL);

			r = r ? r : q;
		} else {
			take(&c->probed[i].launches, list, &n);
		}
	}
	uprobe_detach_all(list, n);
	return r;
}

void coverage_free(struct coverage *c)
{
	if (c->files && c->probed)
		coverage_detach(c);
	for (size_t i = 0; c->probed && i < c->count; i++) {
		free(c->probed[i].points);
		if (c->probed[i].point_count)
			close(c->probed[i].fd);
	}
	free(c->files);
	free(c->probed);
	free(c);
}

/* The points of a file fall into launches, which are kept to be attached again, and the rest. */
static int attach_points(struct coverage *c, const char *path, const struct uprobe_point *points,
	size_t count, struct errinfo *reterr)
{
	struct uprobe_point rest[UPROBE_POINTS_MAX];
	struct probed *p = &c->probed[c->count];
	size_t n = 0;
	int r;

	p->points = calloc(count, sizeof(*points));
	if (!p->points)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		union wire_cookie k = {.word = points[i].cookie};

		if (k.source != SOURCE_NCCL && k.flags & COOKIE_LAUNCH)
			p->points[p->point_count++] = points[i];
		else
			rest[n++] = points[i];
	}
	if (p->point_count) {
		p->fd = open(path, O_RDONLY | O_CLOEXEC);
		if (p->fd < 0) {
			p->point_count = 0;
			return errinfo_set(reterr, -errno, "%s: %s", path, strerror(errno));
		}
	}
	r = n ? uprobe_attach(c->probe, path, rest, n, &p->steady, reterr) : 0;
	if (r == 0 && !c->launches_off)
		r = attach_launches(c, p, reterr);
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

static void tell_nccl_layout(struct coverage *c, struct elfsym *elf, unsigned library)
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

/* Offsets of all symbols of the table that the file has. */
static int resolve(struct coverage *c, const char *path, const struct probe_library *lib,
	struct uprobe_point *points, size_t *ret_count, struct errinfo *reterr)
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
	r = elfsym_open(path, &elf, reterr);
	if (r < 0)
		return r;
	r = elfsym_offsets(elf, names, n, offsets);
	if (r < 0)
		return errinfo_set(
			reterr, r, "the symbols of %s cannot be read: %s", path, strerror(-r));
	for (size_t i = 0; i < n; i++) {
		uint64_t at = offsets[i] ? cheapest_place(elf, offsets[i]) : 0;

		if (at && !has_offset(points, found, at))
			points[found++] = (struct uprobe_point){
				at, probe_cookie(lib, rows[i], (unsigned)c->count).word};
	}
	if (!found)
		return errinfo_set(
			reterr, -ENOENT, "%s has none of the functions of %s", path, lib->name);
	if (lib == &probe_nccl)
		tell_nccl_layout(c, elf, (unsigned)c->count);
	*ret_count = found;
	return 0;
}

bool coverage_knows(enum target_library_kind kind)
{
	return functions_of(kind) != NULL;
}

const struct coverage_file *coverage_find(
	const struct coverage *c, const struct target_library *lib)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->files[i].library.inode == lib->inode && c->files[i].library.dev == lib->dev)
			return &c->files[i];
	return NULL;
}

bool coverage_has(const struct coverage *c, const struct target_library *lib)
{
	return coverage_find(c, lib) != NULL;
}

int coverage_add(struct coverage *c, const struct target_library *lib, const char *path,
	struct errinfo *reterr)
{
	const struct probe_library *functions = functions_of(lib->kind);
	struct uprobe_point points[UPROBE_POINTS_MAX];
	struct errinfo why = {0};
	struct coverage_file *f;
	size_t count = 0;
	int r;

	if (!functions || coverage_has(c, lib))
		return 0;
	if (c->count >= COVERAGE_MAX)
		return errinfo_set(reterr, -ENOBUFS, "more than %d CUDA library files on this node",
			COVERAGE_MAX);
	f = &c->files[c->count];
	*f = (struct coverage_file){.library = *lib};
	r = resolve(c, path, functions, points, &count, &why);
	if (r == 0 && c->probe)
		r = attach_points(c, path, points, count, &why);
	c->count++;
	if (r < 0) {
		memcpy(f->why, why.text, sizeof(f->why) - 1);
		f->error = r;
		if (reterr)
			*reterr = why;
		return r;
	}
	f->probes = count;
	f->since = wall_now();
	return 1;
}

size_t coverage_probed(const struct coverage *c, const char **ret_first)
{
	size_t n = 0;

	*ret_first = "";
	for (size_t i = 0; i < c->count; i++) {
		if (!c->files[i].probes)
			continue;
		if (n++ == 0)
			*ret_first = c->files[i].library.path;
	}
	return n;
}

size_t coverage_probes(const struct coverage *c, enum target_library_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++)
		if (c->files[i].library.kind == kind)
			n += c->files[i].probes;
	return n;
}
