/* SPDX-License-Identifier: Apache-2.0 */
/* coverage_assess.c - see coverage.h. Works on what discover found in a process's maps and on the list of probed
 * files; the worst library of a layer decides, because one that is not seen is a gap however many
 * others are. */
#include "record/attach/coverage.h"

#include "record/discover/discover.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

static bool maps_kind(const struct target_process *p, enum target_library_kind kind)
{
	return EXISTS(i, p->library_count, p->libraries[i].kind == kind);
}

/* Only then is the program worth a look: symbol tables are large. */
static bool may_hold_runtime(const struct target_process *p)
{
	return maps_kind(p, TARGET_CUDA) && !maps_kind(p, TARGET_CUDART);
}

static void cover_file(struct coverage *c, uint32_t pid, const struct target_library *lib, int fd)
{
	struct errinfo e = {0};
	int r = coverage_add(c, lib, fd, &e);

	if (r == -ENOENT && (lib->kind == TARGET_EXECUTABLE || !target_kind_is_cuda(lib->kind)))
		return; /* an ordinary program; or the process's row says it */
	if (r < 0 && r != -EAGAIN)
		log_warning("process %u: %s", pid, e.text);
}

void coverage_assess(struct coverage *c, const char *root, const struct target_process *p)
{
	struct target_library exe;
	int fd;

	for (size_t i = 0; i < p->library_count; i++) {
		const struct target_library *lib = &p->libraries[i];

		coverage_mapped(c, lib);
		if (!coverage_knows(lib->kind) || coverage_has(c, lib))
			continue;
		/* On failure the process is going away, or is asked again at the next scan. */
		fd = discover_library_open(root, p->pid, lib);
		if (fd >= 0)
			cover_file(c, p->pid, lib, fd);
	}
	fd = may_hold_runtime(p) ? discover_executable_open(root, p->pid, &exe) : -1;
	if (fd < 0)
		return;
	coverage_mapped(c, &exe);
	cover_file(c, p->pid, &exe, fd);
}

static void set_row(struct layer_row *row, enum layer_state state, const struct coverage_file *f,
	const char *text)
{
	size_t len = strlen(row->detail);

	if (state < row->state)
		return;                   /* a worse one stands */
	if (state == row->state && len) { /* two copies in one process */
		snprintf(row->detail + len, sizeof(row->detail) - len, "; %s", text);
		row->since = f && f->since.ns > row->since.ns ? f->since : row->since;
		return;
	}
	row->state = state;
	row->since = f ? f->since : (wall_time){0};
	snprintf(row->detail, sizeof(row->detail), "%.*s", LAYER_DETAIL_MAX - 1, text);
}

static void assess_library(const struct coverage *c, const char *root, uint32_t pid,
	const struct target_library *lib, struct layer_row *row)
{
	const struct coverage_file *f = coverage_find(c, lib);
	char text[TARGET_PATH_MAX + 512];
	const char *name = lib->path[0] ? lib->path : "(a path that is too long)";

	if (!coverage_knows(lib->kind)) {
		snprintf(text, sizeof(text), "%.300s is loaded but not probed", name);
		set_row(row, LAYER_UNCOVERED, NULL, text);
	} else if (f && f->probes) {
		snprintf(text, sizeof(text), "%.300s, %zu %s%s", name, f->probes,
			target_kind_is_cuda(lib->kind) ? "functions" : "places",
			lib->deleted ? "; the file was deleted and is reached through map_files"
				     : "");
		set_row(row, LAYER_COVERED, f, text);
	} else if (f && f->is_coming) {
		snprintf(text, sizeof(text), "%.300s is being probed", name);
		set_row(row, LAYER_UNCOVERED, NULL, text);
	} else if (f) {
		set_row(row, LAYER_FAILED, f, f->why);
	} else {
		_cleanup_fd_ int fd = discover_library_open(root, pid, lib);

		snprintf(text, sizeof(text), "cannot open %.300s: %s", name,
			fd == -EREMOTE ? FILE_ORIGIN_WHY
			: fd < 0       ? strerror(-fd)
				       : "the list of probed files is full");
		set_row(row, LAYER_FAILED, NULL, text);
	}
}

const struct coverage_file *coverage_assess_program(
	const struct coverage *c, const char *root, const struct target_process *p)
{
	struct target_library exe;
	_cleanup_fd_ int fd =
		may_hold_runtime(p) ? discover_executable_open(root, p->pid, &exe) : -1;

	return fd < 0 ? NULL : coverage_find(c, &exe);
}

static void assess_program(const struct coverage *c, const char *root,
	const struct target_process *p, struct layer_row *row)
{
	const struct coverage_file *f = NULL;
	struct target_library exe;
	char text[TARGET_PATH_MAX + 512];
	_cleanup_fd_ int fd = discover_executable_open(root, p->pid, &exe);

	if (fd >= 0)
		f = coverage_find(c, &exe);
	if (f && f->probes) {
		snprintf(text, sizeof(text), "static in %.300s, %zu functions by its symbols%s",
			exe.path, f->probes, exe.deleted ? "; the file was deleted" : "");
		set_row(row, LAYER_COVERED, f, text);
		return;
	}
	if (f && f->error != -ENOENT) {
		set_row(row, LAYER_FAILED, f, f->why);
		return;
	}
	if (fd < 0)
		snprintf(text, sizeof(text),
			"no libcudart is loaded, and the program cannot be inspected: %s",
			fd == -EREMOTE ? FILE_ORIGIN_WHY : strerror(-fd));
	else
		snprintf(text, sizeof(text),
			"no libcudart is loaded and %.300s has no symbols of one: the runtime is static without symbols%s, or only the driver is used; only driver calls are traced",
			exe.path,
			maps_kind(p, TARGET_TORCH_CUDA) ? " or inside libtorch_cuda" : "");
	set_row(row, LAYER_UNCOVERED, NULL, text);
}

/* A Python program that is only the front of its library has no interpreter in it; JAX's own library starts nothing
 * where a plugin does. */
static bool is_front(
	const struct coverage *c, const struct target_process *p, const struct target_library *lib)
{
	const struct coverage_file *f = coverage_find(c, lib);

	if (lib->kind == TARGET_JAX)
		return maps_kind(p, TARGET_XLA_CUDA);
	if (lib->kind != TARGET_PYTHON || !f || f->error != -ENOENT)
		return false;
	return EXISTS(i, p->library_count,
		p->libraries[i].kind == TARGET_PYTHON && &p->libraries[i] != lib);
}

void coverage_assess_process(const struct coverage *c, const char *root,
	const struct target_process *p, struct process_layers *ret)
{
	static const struct {
		enum layer layer;
		enum target_library_kind kind;
	} by[] = {
		{LAYER_RUNTIME, TARGET_CUDART},
		{LAYER_DRIVER, TARGET_CUDA},
		{LAYER_NCCL, TARGET_NCCL},
		{LAYER_MARKS, TARGET_TORCH_CPU},
		{LAYER_MARKS, TARGET_XLA_CUDA},
		{LAYER_MARKS, TARGET_JAX},
		{LAYER_COLLECTOR, TARGET_PYTHON},
	};

	for (size_t k = 0; k < ARRAY_SIZE(by); k++)
		ret->rows[by[k].layer] = (struct layer_row){.state = LAYER_ABSENT};
	for (size_t k = 0; k < ARRAY_SIZE(by); k++) {
		for (size_t i = 0; i < p->library_count; i++)
			if (p->libraries[i].kind == by[k].kind && !is_front(c, p, &p->libraries[i]))
				assess_library(
					c, root, p->pid, &p->libraries[i], &ret->rows[by[k].layer]);
	}
	if (may_hold_runtime(p))
		assess_program(c, root, p, &ret->rows[LAYER_RUNTIME]);
}

/* ---- gaps that were reported ----
 *
 * Searched from end to end: gaps come when a library is met for the first time, a few times in a run. */

/* A start of 0 is not known, because the process had ended: then the pid decides. */
static bool is_same_process(const struct gap_log_entry *e, const struct call_gap *g)
{
	return e->pid == g->pid &&
	       (!e->start_ticks || !g->start_ticks || e->start_ticks == g->start_ticks);
}

bool gap_log_add(struct gap_log *l, const struct call_gap *g, bool *ret_is_new_process)
{
	uint64_t file = hash_bytes(g->file, strlen(g->file));

	*ret_is_new_process = true;
	for (size_t i = 0; i < MIN(l->count, ARRAY_SIZE(l->entries)); i++) {
		if (!is_same_process(&l->entries[i], g))
			continue;
		*ret_is_new_process = false;
		if (l->entries[i].file == file)
			return false;
	}
	l->entries[l->count++ % ARRAY_SIZE(l->entries)] =
		(struct gap_log_entry){g->pid, g->start_ticks, file};
	return true;
}
