/* SPDX-License-Identifier: Apache-2.0 */
/* library_points.c - see library_points.h.
 *
 * The function tables name symbols; elfsym gives their file offsets; aliases that share an offset
 * are probed once. */
#include "record/attach/library_points.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "record/attach/mark_points.h"
#include "record/attach/nccl_layout.h"
#include "record/attach/prologue.h"
#include "record/discover/elfsym.h"
#include "record/probe/function.h"
#include "base/log.h"

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
	switch (kind) {
	case TARGET_TORCH_CPU: return &mark_torch;
	case TARGET_XLA_CUDA: return &mark_xla_cuda;
	case TARGET_JAX: return &mark_jax;
	case TARGET_PYTHON: return &mark_python;
	default: return NULL;
	}
}

static const struct mark_library *names_of(enum target_library_kind kind)
{
	if (kind == TARGET_CUDA)
		return &mark_cuda_names;
	return kind == TARGET_CUDART || kind == TARGET_EXECUTABLE ? &mark_cudart_names : NULL;
}

static bool has_offset(const struct uprobe_point *points, size_t n, uint64_t offset)
{
	for (size_t i = 0; i < n; i++)
		if (points[i].offset == offset)
			return true;
	return false;
}

static bool has_name(const char *name, const char *const *names, const uint64_t *offsets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (offsets[i] && !strcmp(names[i], name))
			return true;
	return false;
}

/* Whether the names are there on which the row depends; they are functions of the table, too. */
static bool has_condition(
	const struct probe_function *f, const char *const *names, const uint64_t *offsets, size_t n)
{
	for (int v = 0; v < FUNCTION_VARIANTS && f->symbols[v]; v++)
		if (f->symbols[v][0] == '+' && !has_name(f->symbols[v] + 1, names, offsets, n))
			return false;
	return true;
}

static uint64_t cheapest_place(struct elfsym *elf, uint64_t offset)
{
	uint8_t code[PROLOGUE_BYTES];

	if (elfsym_read(elf, offset, code, sizeof(code)) < 0)
		return offset;
	return offset + prologue_skip(elfsym_machine(elf), code);
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
	struct library_points *ret, struct errinfo *reterr)
{
	_cleanup_(elfsym_closep) struct elfsym *elf = NULL;
	int r = open_symbols(fd, name, &elf, reterr);

	if (r < 0)
		return r;
	r = mark_points(elf, lib, ret->points);
	if (r < 0)
		return errinfo_set(
			reterr, r, "cannot read the symbols of %s: %s", name, strerror(-r));
	if (r == 0)
		return errinfo_set(reterr, -ENOENT, "%.120s %s", name, lib->none);
	ret->count = (size_t)r;
	return 0;
}

/* Offsets of all symbols of the table that the file has. */
static int resolve_functions(int fd, const char *name, const struct probe_library *lib,
	unsigned number, struct library_points *ret, struct errinfo *reterr)
{
	const char *names[UPROBE_POINTS_MAX];
	int rows[UPROBE_POINTS_MAX];
	uint64_t offsets[UPROBE_POINTS_MAX];
	_cleanup_(elfsym_closep) struct elfsym *elf = NULL;
	size_t n = 0, found = 0;
	int r;

	for (int row = 0; lib->functions[row].symbols[0]; row++)
		for (int v = 0; v < FUNCTION_VARIANTS && lib->functions[row].symbols[v]; v++) {
			if (lib->functions[row].symbols[v][0] == '+')
				continue;
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

		if (at && has_condition(&lib->functions[rows[i]], names, offsets, n) &&
			!has_offset(ret->points, found, at))
			ret->points[found++] = (struct uprobe_point){
				.offset = at, .cookie = probe_cookie(lib, rows[i], number).word};
	}
	if (!found)
		return errinfo_set(reterr, -ENOENT, "%s has no functions of %s", name, lib->name);
	if (lib == &probe_nccl) {
		nccl_layout_read(elf, &ret->layout);
		if (!ret->layout.valid)
			log_warning(
				"cannot locate the rank and size fields in %s: communicators made "
				"before the trace, or by ncclCommSplit(), will have no rank",
				name);
	}
	ret->count = found;
	return 0;
}

bool library_points_known(enum target_library_kind kind)
{
	return functions_of(kind) || marks_of(kind);
}

bool library_points_are_marks(enum target_library_kind kind)
{
	return marks_of(kind) != NULL;
}

bool library_points_are_alike(enum target_library_kind a, enum target_library_kind b)
{
	return functions_of(a) == functions_of(b) && marks_of(a) == marks_of(b);
}

int library_points_find(enum target_library_kind kind, int fd, const char *name, unsigned number,
	struct library_points *ret, struct errinfo *reterr)
{
	ret->count = 0;
	if (marks_of(kind))
		return resolve_marks(fd, name, marks_of(kind), ret, reterr);
	return resolve_functions(fd, name, functions_of(kind), number, ret, reterr);
}

int library_points_names(enum target_library_kind kind, int fd, const char *name,
	struct library_points *ret, struct errinfo *reterr)
{
	ret->count = 0;
	if (!names_of(kind))
		return -ENOENT;
	return resolve_marks(fd, name, names_of(kind), ret, reterr);
}
