/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/chains/host_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/whole.h"
#include "diagnose/rows/place.h"
#include "diagnose/thresholds.h"
#include "wire/op_kind.h"

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
	const struct stack_frame *user = s ? stack_user_frame(s) : NULL;
	bool drives = false;

	/* Beyond the user's frame is who called the user. */
	for (size_t i = 0; s && i < s->count && &s->frames[i] != user; i++) {
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

bool host_code_drives(const struct recording *rec, const struct account_entry *e)
{
	return e && host_code_drives_gpu(stack_find(rec->stacks, e->stack_hash));
}

/* The place of another thread of the program whose code the units wait for; 0: it is that of their own thread. */
static uint64_t awaited_place(const struct chain *c)
{
	const struct account_entry *lead = c->d->lead;
	const struct stack *s = lead && lead->owner == OWNER_THREAD && lead->stack_hash
					? stack_find(c->rec->stacks, lead->stack_hash)
					: NULL;

	return s ? place_key(s) : 0;
}

static bool is_sample(const struct chain *c, uint64_t awaited, const struct event *e)
{
	const struct stack *s;

	if (e->source != SOURCE_HOST || e->op != HOST_CPU_SAMPLE || e->pid != c->a->pid ||
		!e->stack_hash)
		return false;
	if (e->tid == c->a->tid)
		return true;
	s = awaited ? stack_find(c->rec->stacks, e->stack_hash) : NULL;
	return s && place_key(s) == awaited;
}

/* Work that a line of the program has others do for it, or that is done on the way to other work: known by a frame. To add
 * one: a row here; advice.c may have more to say of its name. Of several rows that fit the first counts. */

#define WORK_MARKS 8

enum work_where {
	BELOW,  /* the program's innermost line */
	AROUND, /* also above it: it calls code of the program */
	LEAF,   /* the function that runs */
};

struct work {
	enum resource resource;
	const char *name; /* as a title begins; "": the resource says it */
	enum work_where where;
	const char *marks[WORK_MARKS]; /* part of a symbol or a file's name */
};

static const struct work works[] = {
	{RESOURCE_CALLBACK, "", AROUND,
		{"PythonGpuCallback", "PythonCpuCallback", "tensorflow::PyFuncOp"}},
	{RESOURCE_TRACEBACK, "", AROUND, {"/traceback.py", "/linecache.py"}},
	{RESOURCE_WORK, "Python signal handlers", AROUND, {"_PyErr_CheckSignals"}},
	{RESOURCE_WORK, "Python tracing or profiling", AROUND,
		{"trace_trampoline", "profile_trampoline", "_lsprof", "/coverage/"}},
	{RESOURCE_WORK, "Importing modules", BELOW, {"importlib"}},
	{RESOURCE_PICKLE, "", BELOW,
		{"multiprocessing/connection.py", "multiprocessing/reduction.py",
			"multiprocessing/queues.py", "torch/multiprocessing/"}},
	{RESOURCE_WORK, "Pickling", BELOW, {"_pickle", "/pickle.py", "/cloudpickle/", "/dill/"}},
	{RESOURCE_WORK, "SQLite queries", BELOW, {"sqlite"}},
	{RESOURCE_WORK, "Deep copies", BELOW, {"/copy.py"}},
	{RESOURCE_WORK, "Logging", BELOW,
		{"/logging/__init__.py", "/logging/handlers.py", "/loguru/"}},
	{RESOURCE_WORK, "Tokenizing", BELOW,
		{"/tokenizers/", "tokenizers.abi", "/transformers/tokenization", "sentencepiece",
			"tiktoken", "/spacy/", "/nltk/"}},
	{RESOURCE_WORK, "Image decoding and transforms", BELOW,
		{"/PIL/", "_imaging", "libjpeg", "libturbojpeg", "libpng", "libwebp", "cv2",
			"/skimage/"}},
	{RESOURCE_WORK, "Audio or video decoding", BELOW,
		{"libavcodec", "libsndfile", "/soundfile", "/librosa/", "/audioread/"}},
	{RESOURCE_WORK, "Data frames (pandas)", BELOW, {"/pandas/"}},
	{RESOURCE_WORK, "Data frames", BELOW, {"/polars/", "/pyarrow/", "libarrow"}},
	{RESOURCE_WORK, "Regular expressions", BELOW,
		{"_sre", "sre_lib", "/re/__init__", "_regex"}},
	{RESOURCE_WORK, "JSON", BELOW,
		{"/json/", "_json.c", "orjson", "ujson", "simdjson", "rapidjson"}},
	{RESOURCE_WORK, "CSV parsing", BELOW, {"_csv.c", "/csv.py"}},
	{RESOURCE_WORK, "XML or HTML parsing", BELOW,
		{"expat", "/xml/", "lxml", "libxml2", "/html/parser", "/bs4/"}},
	{RESOURCE_WORK, "YAML", BELOW, {"/yaml/", "_yaml", "/ruamel"}},
	{RESOURCE_WORK, "Protocol buffers or msgpack", BELOW,
		{"msgpack", "/google/protobuf/", "_upb"}},
	{RESOURCE_WORK, "Compression", BELOW,
		{"zlib", "libz.so", "lzma", "bz2", "zstd", "liblz4", "snappy", "/gzip.py"}},
	{RESOURCE_WORK, "Encryption or hashing", BELOW,
		{"libcrypto", "_hashopenssl", "blake2", "/hashlib.py", "/cryptography/"}},
	{RESOURCE_WORK, "HDF5 or netCDF", BELOW, {"libhdf5", "/h5py/", "netcdf"}},
	{RESOURCE_WORK, "Dates", BELOW, {"/_strptime.py", "/dateutil/"}},
	{RESOURCE_WORK, "Decimal numbers", BELOW, {"_decimal", "/fractions.py"}},
	{RESOURCE_WORK, "Comparing texts", BELOW, {"/difflib.py", "evenshtein", "rapidfuzz"}},
	{RESOURCE_FRESH_MEMORY, "", LEAF,
		{"__memmove", "__memset", "__memcpy", "munmap", "__mmap", "madvise", "__brk",
			"_int_malloc"}},
};

static bool has_mark(const struct work *w, const struct stack_frame *f)
{
	for (size_t i = 0; i < WORK_MARKS && w->marks[i]; i++)
		if ((f->py_file && strstr(f->py_file, w->marks[i])) ||
			(f->symbol && strstr(f->symbol, w->marks[i])) ||
			(f->file && strstr(f->file, w->marks[i])))
			return true;
	return false;
}

static bool is_work(const struct work *w, const struct stack *s, const struct stack_frame *user)
{
	for (size_t i = 0; i < s->count; i++) {
		if ((&s->frames[i] == user && w->where != AROUND) || (i && w->where == LEAF))
			return false;
		if (has_mark(w, &s->frames[i]))
			return true;
	}
	return false;
}

#define WORK_OTHER  ARRAY_SIZE(works)       /* the program's own */
#define WORK_DRIVES (ARRAY_SIZE(works) + 1) /* hands work to the GPU: none of it is lost */
#define WORK_KINDS  (ARRAY_SIZE(works) + 2)

static size_t work_of(const struct stack *s)
{
	const struct stack_frame *user = stack_user_frame(s);

	for (size_t k = 0; k < ARRAY_SIZE(works); k++)
		if (is_work(&works[k], s, user))
			return k;
	return host_code_drives_gpu(s) ? WORK_DRIVES : WORK_OTHER;
}

#define WORK_SAMPLES 4096 /* are looked at: more say no more */
#define WORK_PLACES  16

struct work_place {
	uint64_t key, hash;
	uint32_t rows;
	bool is_users; /* a line of the program's own */
};

struct work_sums {
	double ordinary[WORK_KINDS], slow[WORK_KINDS]; /* samples; where none is slow, all are */
	double early[WORK_KINDS]; /* of the slow ones: in the first half of the time */
	struct work_place places[WORK_KINDS][WORK_PLACES];
	size_t looked;
};

static void note_place(struct work_place places[WORK_PLACES], const struct stack *s)
{
	uint64_t key = stack_user_frame(s) ? place_key(s) : 0; /* elsewhere they are many */
	size_t i = 0;

	while (i < WORK_PLACES && places[i].rows && places[i].key != key)
		i++;
	if (i == WORK_PLACES)
		return;
	if (!places[i].rows)
		places[i] = (struct work_place){
			.key = key, .hash = s->hash, .is_users = stack_user_frame(s) != NULL};
	places[i].rows++;
}

/* Whether the GPU has done all that it was given. */
static bool drains_gpu(const struct event *e)
{
	return op_kind_is_gpu_wait(e->source, e->op) || op_kind_is_read(e->source, e->op, e->arg1);
}

/* What the thread of the units ran while the GPU had nothing to do because of it: after a launch the GPU is busy, until the
 * thread waits for it. Where it is read how busy the GPU is, that says more. */
static void add_samples(const struct chain *c, struct work_sums *w)
{
	int64_t from = c->a->first.ns, to = c->a->last.ns;
	size_t first = LOWER_BOUND(i, c->rec->event_count, c->rec->events[i].start.ns < from);
	bool is_read = gpu_idle_share(c->rec, c->a) > 0, is_ahead = false;
	uint64_t awaited = awaited_place(c);
	size_t n = 0, at = 0;

	for (size_t i = first; i < c->rec->event_count && c->rec->events[i].start.ns < to; i++)
		n += is_sample(c, awaited, &c->rec->events[i]);
	for (size_t i = first; n && i < c->rec->event_count; i++) {
		const struct event *e = &c->rec->events[i];
		const struct stack *s;
		size_t k;

		if (e->start.ns >= to)
			break;
		if (e->tid == c->a->tid && op_kind_is_launch(e->source, e->op))
			is_ahead = !is_read && !c->has_slow;
		if (e->tid == c->a->tid && drains_gpu(e))
			is_ahead = false;
		if (!is_sample(c, awaited, e) || at++ % (n / WORK_SAMPLES + 1))
			continue;
		s = stack_find(c->rec->stacks, e->stack_hash);
		k = s ? work_of(s) : WORK_OTHER;
		if (!chain_time(c, e->start.ns)) {
			w->ordinary[k]++;
			continue;
		}
		w->looked++;
		k = is_ahead ? WORK_DRIVES : k;
		w->slow[k]++;
		w->early[k] += e->start.ns - from < (to - from) / 2;
		if (s && k != WORK_DRIVES)
			note_place(w->places[k], s);
	}
}

static double share_of(const double samples[WORK_KINDS], size_t k)
{
	double all = 0;

	for (size_t i = 0; i < WORK_KINDS; i++)
		all += samples[i];
	return all > 0 ? samples[k] / all : 0;
}

static double running_ns(const uint64_t ns[ACCOUNT_LINES])
{
	return (double)(ns[ACCOUNT_HOST] + ns[ACCOUNT_LAUNCH] + ns[ACCOUNT_CALL]);
}

/* The time of kind @k in a unit that slow ones have more, or that all have: samples say its share, since a program that has run
 * for a while is sampled less often. */
static double grown(const struct chain *c, const struct work_sums *w, size_t k)
{
	double slow = share_of(w->slow, k) * running_ns(c->a->slow_ns);
	double ordinary = share_of(w->ordinary, k) * running_ns(c->a->ordinary_ns);

	return c->has_slow ? MAX(slow - ordinary, 0.0) : share_of(w->slow, k);
}

#define HALF_LEAST 0.1 /* of what every unit has, in either half of the time */

/* Whether it goes on: what a program does before its first unit is none of every unit. */
static bool goes_on(const struct chain *c, const struct work_sums *w, size_t k)
{
	double early = w->early[k] / w->slow[k];

	return c->has_slow || (early >= HALF_LEAST && early <= 1 - HALF_LEAST);
}

static const struct work_place *largest_place(const struct work_place places[WORK_PLACES])
{
	const struct work_place *most = places;

	for (size_t i = 1; i < WORK_PLACES; i++)
		if (places[i].is_users != most->is_users ? places[i].is_users
							 : places[i].rows > most->rows)
			most = &places[i];
	return most;
}

/* What has half of the code that is there for something else than the GPU is named, and a good part of what slow units have
 * more; of what is done on the way less will do. What touches pages is no other work. @all: of the code. */
static bool is_of_kind(const struct chain *c, const struct work_sums *w, size_t k, double all,
	struct resource_use *ret)
{
	const struct work *known = k < WORK_OTHER ? &works[k] : NULL;
	bool is_fresh = known && known->resource == RESOURCE_FRESH_MEMORY;
	double own = grown(c, w, k), other = all - grown(c, w, WORK_DRIVES);

	if (own <= 0 || !goes_on(c, w, k) || own / all * c->d->share < THRESHOLD(WASTE) ||
		(!(known && known->where == AROUND) && own < THRESHOLD(CHAIN_MOST) * other) ||
		(c->has_slow && own < THRESHOLD(CHAIN_PART) * all))
		return false;
	if ((!known || is_fresh) && chain_copied_memory(c, own / all, ret))
		ret->resource = RESOURCE_COPIED_MEMORY;
	else if ((!known || is_fresh) && chain_pages_again(c, ret))
		ret->resource = RESOURCE_MEMORY_LIMIT;
	else if (!known || (is_fresh && !chain_fresh_memory(c, own / all, ret)))
		return false;
	else
		ret->resource = known->resource;
	ret->share = own / all;
	ret->stack_hash = largest_place(w->places[k])->hash;
	if (ret->resource != RESOURCE_MEMORY_LIMIT)
		snprintf(ret->who, sizeof(ret->who), "%s", known ? known->name : "");
	return true;
}

/* Samples say how much of a thread's code it is: the account has one stack for all at a place. */
bool chain_work(const struct chain *c, struct resource_use *ret)
{
	/* Of those no samples are looked at. */
	bool is_others = c->d->kind == DELAY_BY_PROCESS || c->d->kind == DELAY_BY_LOADER;
	_cleanup_free_ struct work_sums *w =
		c->rec->stacks && !is_others ? calloc(1, sizeof(*w)) : NULL;
	double all = 0, most = 0;
	size_t k = 0;

	if (!w)
		return false;
	add_samples(c, w);
	for (size_t i = 0; i < WORK_KINDS; i++) {
		all += grown(c, w, i);
		if (i < WORK_OTHER && grown(c, w, i) > most) {
			most = grown(c, w, i);
			k = i;
		}
	}
	return w->looked >= THRESHOLD(IN_A_ROW) &&
	       (is_of_kind(c, w, k, all, ret) || is_of_kind(c, w, WORK_OTHER, all, ret));
}
