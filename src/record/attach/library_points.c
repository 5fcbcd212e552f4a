/* SPDX-License-Identifier: Apache-2.0 */
/* library_points.c - see coverage_private.h.
 *
 * The function tables name symbols; elfsym gives their file offsets; aliases that share an offset
 * are probed once. */
#include "record/attach/coverage_private.h"

#include <elf.h>
#include <fcntl.h>

#include "base/log.h"
#include "record/attach/accessor.h"
#include "record/discover/elfsym.h"
#include "record/probe/function.h"

/* Where in a file the places of a mark_library are. */

/* A place may have several points: overloads of a function, a
 * static probe in code that was inlined twice. */

#define POINTS_OF_PLACE    8
#define ANY_POINTS_OF_PASS 64

static int symbol_points(
	struct elfsym *elf, const struct mark_place *place, struct uprobe_point *out)
{
	uint64_t offsets[POINTS_OF_PLACE];
	uint32_t patterns[POINTS_OF_PLACE];
	int n = elfsym_search(elf, &place->symbol, 1, offsets, patterns, POINTS_OF_PLACE);

	for (int i = 0; i < n; i++)
		out[i] = (struct uprobe_point){
			.offset = offsets[i], .cookie = place->hook, .at_return = place->at_return};
	return n;
}

static int note_points(struct elfsym *elf, const struct mark_place *place, struct uprobe_point *out)
{
	struct stapsdt_probe probes[POINTS_OF_PLACE];
	const char *colon = strchr(place->note, ':');
	int n = stapsdt_find(elf, FORMATTED(32, "%.*s", (int)(colon - place->note), place->note),
		colon + 1, probes, POINTS_OF_PLACE);

	for (int i = 0; i < n; i++)
		out[i] = (struct uprobe_point){.offset = probes[i].offset,
			.cookie = place->hook,
			.semaphore = probes[i].semaphore};
	return n;
}

/* All places of a set; 0 if one is missing. */
static int set_points(struct elfsym *elf, const struct mark_place *set, struct uprobe_point *out)
{
	int count = 0;

	for (; set->hook; set++) {
		int n = set->note ? note_points(elf, set, out + count)
				  : symbol_points(elf, set, out + count);

		if (n <= 0)
			return n;
		count += n;
		if (count + POINTS_OF_PLACE > UPROBE_POINTS_MAX)
			return -EBADMSG;
	}
	return count;
}

/* Those of @any that are there, a batch of patterns in one pass over the symbols. */
static int any_points(struct elfsym *elf, const struct mark_place *any, struct uprobe_point *out)
{
	int count = 0;

	while (any->hook) {
		const char *symbols[ELFSYM_PATTERNS_MAX];
		uint64_t offsets[ANY_POINTS_OF_PASS];
		uint32_t patterns[ANY_POINTS_OF_PASS];
		size_t size = 0;
		int n;

		/* a place found once is found for one pattern: entry and return come apart */
		for (; any[size].hook && size < ELFSYM_PATTERNS_MAX; size++)
			if (size && any[size].at_return != any[0].at_return)
				break;
			else
				symbols[size] = any[size].symbol;
		n = elfsym_search(elf, symbols, size, offsets, patterns,
			MIN(ANY_POINTS_OF_PASS, UPROBE_POINTS_MAX - count));
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			out[count++] = (struct uprobe_point){.offset = offsets[i],
				.cookie = any[patterns[i]].hook | (uint64_t)any[patterns[i]].detail
									  << 8,
				.at_return = any[patterns[i]].at_return};
		any += size;
	}
	return count;
}

/* mark_points - the places of the first set of @lib that @elf has completely. Returns their number;
 * 0 if it has none; or a negative errno of reading the file. */
static int mark_points(struct elfsym *elf, const struct mark_library *lib,
	struct uprobe_point points[UPROBE_POINTS_MAX])
{
	int n = 0;

	if (lib->any)
		return any_points(elf, lib->any, points);
	for (size_t i = 0; n == 0 && lib->sets[i]; i++)
		n = set_points(elf, lib->sets[i], points);
	return n;
}

/* The verified prologues, byte for byte.
 *
 *   x86-64  F3 0F 1E FA                   endbr64, then push: 5.4 us becomes 0.5 us
 *   x86-64  81 3D disp32 imm32            cmpl $imm, x(%rip) of the driver's entries, then je (74
 * or 0F 84): flags are set again by nobody before the je runs
 *
 * The je under the probe reads the flags of the cmpl in front of it: the kernel keeps them. On
 * arm64 no prologue has been verified, so nothing is moved. */

static bool is_push(const uint8_t *code)
{
	return (code[0] & 0xf8) == 0x50 || (code[0] == 0x41 && (code[1] & 0xf8) == 0x50);
}

unsigned prologue_skip(unsigned machine, const uint8_t code[PROLOGUE_BYTES])
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	if (machine != EM_X86_64)
		return 0;
	if (!memcmp(code, endbr64, sizeof(endbr64)) && is_push(code + 4))
		return 4;
	if (code[0] == 0x81 && code[1] == 0x3d &&
		(code[10] == 0x74 || (code[10] == 0x0f && code[11] == 0x84)))
		return 10;
	return 0;
}

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

/* Whether the names are there on which the row depends; they are functions of the table, too. */
static bool has_condition(
	const struct probe_function *f, const char *const *names, const uint64_t *offsets, size_t n)
{
	for (int v = 0; v < FUNCTION_VARIANTS && f->symbols[v]; v++)
		if (f->symbols[v][0] == '+' &&
			!EXISTS(i, n, offsets[i] && !strcmp(names[i], (f->symbols[v] + 1))))
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
			!EXISTS(k, found, ret->points[k].offset == at))
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
