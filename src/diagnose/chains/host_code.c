/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/host_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/macros.h"
#include "base/search.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/thresholds.h"

/* Files of Python that work for the GPU passes through, and those that work on the CPU does. */
static const char *const driving_files[] = {"/torch/nn/", "/torch/optim/", "/torch/autograd/",
	"/torch/_tensor.py", "/torch/amp/", "/torch/_ops.py", "/torch/_inductor/",
	"/torch/_dynamo/", "/torch/cuda/", "/torch/distributed/", "/torch/utils/checkpoint.py",
	"/transformers/models/", "/transformers/modeling_utils", "/transformers/integrations/",
	"/torchvision/models/", "/torch_geometric/nn/", "/jax/_src/", "/jaxlib/", "/cupy/",
	"/triton/runtime/", "/triton/backends/", "/flax/", "/tensorflow/python/eager/", NULL};
static const char *const cpu_files[] = {"/torchvision/transforms/", "/torchvision/io/",
	"/torch/utils/data/", "/PIL/", "/numpy/", "/scipy/", "/cv2/", "/pandas/", "/tokenizers/",
	"/transformers/tokenization", "/json/", "/re/", "/sklearn/", "/torchaudio/", NULL};

/* Libraries whose code is there to drive the GPU, and names of what their code for the CPU is called. */
static const char *const driving_libraries[] = {"libtorch_cuda", "libc10_cuda", "libcudart",
	"libcuda.so", "libcublas", "libcudnn", "libnccl", "libtorch", "libc10", "xla_cuda_plugin",
	"pjrt_c_api_gpu", NULL};
static const char *const cpu_symbols[] = {"wrapper_CPU", "CPUKernel", "cpu_kernel", "::CPU", "AVX2",
	"AVX512", "DEFAULT::", "mkldnn", "mkl_", "gomp", "GOMP_", "omp_", NULL};

static bool has_any(const char *text, const char *const *parts)
{
	for (; text && *parts; parts++)
		if (strstr(text, *parts))
			return true;
	return false;
}

bool host_code_drives_gpu(const struct stack *s)
{
	const struct stack_frame *user = stack_user_frame(s);
	bool drives = false;

	/* Beyond the user's frame is who called the user. */
	for (size_t i = 0; i < s->count && &s->frames[i] != user; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_python(f)) {
			if (has_any(f->py_file, driving_files)) /* also jax/_src/numpy/ */
				drives = true;
			else if (has_any(f->py_file, cpu_files))
				return false;
		} else {
			if (has_any(f->symbol, cpu_symbols))
				return false;
			drives = drives || has_any(f->file, driving_libraries);
		}
	}
	return drives;
}

static bool is_sample(const struct chain *c, const struct event *e)
{
	return e->source == SOURCE_HOST && e->op == HOST_CPU_SAMPLE && e->pid == c->a->pid &&
	       e->tid == c->a->tid && e->stack_hash && chain_time(c, e->start.ns);
}

/* Work on the way to other work, known by a frame that all of it has. */
static const struct {
	enum resource resource;
	bool is_python;
	const char *part; /* of the file, or of the function */
} detours[] = {
	{RESOURCE_CALLBACK, false, "PythonGpuCallback"},
	{RESOURCE_CALLBACK, false, "PythonCpuCallback"},
	{RESOURCE_CALLBACK, false, "tensorflow::PyFuncOp"},
	{RESOURCE_TRACEBACK, true, "/traceback.py"},
	{RESOURCE_TRACEBACK, true, "/linecache.py"},
};

static enum resource detour_of(const struct stack *s)
{
	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < ARRAY_SIZE(detours); k++) {
			const struct stack_frame *f = &s->frames[i];
			const char *text = detours[k].is_python ? f->py_file : f->symbol;

			if (text && strstr(text, detours[k].part))
				return detours[k].resource;
		}
	return RESOURCE_NONE;
}

#define DETOUR_SAMPLES 4096 /* are looked at: more say no more */

/* Samples say how much of a thread's code it is: the account has one stack for all at a place. */
bool chain_detour(const struct chain *c, struct resource_use *ret)
{
	size_t first = chain_first_event(c), n = 0, at = 0, looked = 0;
	size_t seen[RESOURCE_COUNT] = {0};

	for (size_t i = first; i < c->rec->event_count && c->rec->events[i].start.ns < c->to_ns;
		i++)
		n += is_sample(c, &c->rec->events[i]);
	for (size_t i = first; c->rec->stacks && n && i < c->rec->event_count; i++) {
		const struct event *e = &c->rec->events[i];
		const struct stack *s;
		enum resource r;

		if (e->start.ns >= c->to_ns)
			break;
		if (!is_sample(c, e) || at++ % (n / DETOUR_SAMPLES + 1))
			continue;
		looked++;
		s = stack_find(c->rec->stacks, e->stack_hash);
		r = s ? detour_of(s) : RESOURCE_NONE;
		if (r && !seen[r]++ && !ret->stack_hash)
			ret->stack_hash = e->stack_hash;
	}
	ret->resource = seen[RESOURCE_CALLBACK] > seen[RESOURCE_TRACEBACK] ? RESOURCE_CALLBACK
									   : RESOURCE_TRACEBACK;
	ret->share = looked ? (double)seen[ret->resource] / (double)looked : 0;
	return looked >= THRESHOLD(IN_A_ROW) && ret->share * c->d->share >= THRESHOLD(WASTE);
}

/* 
 * Rows with stacks are a sample of what a program does: samples on the CPU and some of its calls. A
 * function is known by its file and name; any frame of an earlier stack makes it known, but only the
 * program's own innermost frame can be new. Of several new ones it is the one that has more than half of
 * their rows: what is rarely seen is new by chance. O(rows log stacks + frames). */

#define FUNCTIONS_MAX  (1u << 20)
#define CANDIDATES_MAX 64

struct seen { /* a stack, by its place in the recording's list */
	bool before;
	uint32_t since; /* rows */
};

struct candidate {
	uint64_t key;
	const struct stack_frame *frame;
	uint64_t rows;
};

static uint64_t key_of(const struct stack_frame *f)
{
	return hash_bytes(f->py_func, strlen(f->py_func)) * 31 +
	       hash_bytes(f->py_file, strlen(f->py_file));
}

/* Whether there are at least as many rows before as since. */
static bool count_rows(
	const struct recording *rec, uint32_t pid, int64_t since_ns, struct seen *seen)
{
	struct stack *const *items = rec->stacks->items;
	size_t before = 0, since = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];
		size_t at;

		if (e->pid != pid || !e->stack_hash)
			continue;
		at = LOWER_BOUND(k, rec->stacks->count, items[k]->hash < e->stack_hash);
		if (at == rec->stacks->count || items[at]->hash != e->stack_hash)
			continue;
		if (e->start.ns < since_ns) {
			seen[at].before = true;
			before++;
		} else {
			seen[at].since++;
			since++;
		}
	}
	return before >= since;
}

static int note_known(const struct recording *rec, const struct seen *seen, struct idmap *known)
{
	for (size_t i = 0; i < rec->stacks->count; i++) {
		const struct stack *s = rec->stacks->items[i];

		for (size_t k = 0; seen[i].before && k < s->count; k++)
			if (stack_frame_is_python(&s->frames[k]) &&
				idmap_put(known, key_of(&s->frames[k]), (void *)s) < 0)
				return -ENOMEM;
	}
	return 0;
}

/* Rows of the new functions, by function; more than fit are none: nothing stands out. */
static size_t list_new(const struct recording *rec, const struct seen *seen,
	const struct idmap *known, struct candidate list[CANDIDATES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < rec->stacks->count; i++) {
		const struct stack_frame *f =
			seen[i].since ? stack_user_frame(rec->stacks->items[i]) : NULL;
		size_t at = 0;

		if (!f || idmap_get(known, key_of(f)))
			continue;
		while (at < n && list[at].key != key_of(f))
			at++;
		if (at == CANDIDATES_MAX)
			return 0;
		if (at == n)
			list[n++] = (struct candidate){.key = key_of(f), .frame = f};
		list[at].rows += seen[i].since;
	}
	return n;
}

int new_code_find(const struct recording *rec, uint32_t pid, int64_t since_ns, struct new_code *ret)
{
	_cleanup_(idmap_done) struct idmap known = IDMAP_INIT(FUNCTIONS_MAX);
	_cleanup_free_ struct seen *seen = NULL;
	struct candidate list[CANDIDATES_MAX];
	uint64_t rows = 0;
	size_t n;

	*ret = (struct new_code){0};
	if (!rec->stacks)
		return 0;
	seen = calloc(rec->stacks->count + 1, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	if (!count_rows(rec, pid, since_ns, seen))
		return 0;
	if (note_known(rec, seen, &known) < 0)
		return -ENOMEM;
	n = list_new(rec, seen, &known, list);
	for (size_t i = 0; i < n; i++)
		rows += list[i].rows;
	for (size_t i = 0; i < n; i++)
		if (2 * list[i].rows > rows)
			*ret = (struct new_code){list[i].frame, list[i].rows};
	return 0;
}
