/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/rows/place.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

#define BLOCKS(LINE) (UINT32_C(1) << ACCOUNT_##LINE)
#define INNERMOST    12 /* frames within which a function of the C library or of CUDA must be */

static uint64_t mix(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

/* The Python frame that calls @f, a user's of @s, at once, if it is a user's of another file; NULL: none. */
static const struct stack_frame *caller_elsewhere(
	const struct stack *s, const struct stack_frame *f)
{
	for (const struct stack_frame *c = f + 1; f && c < s->frames + s->count; c++)
		if (stack_frame_is_python(c))
			return stack_frame_is_user(c) && strcmp(c->py_file, f->py_file) ? c : NULL;
	return NULL;
}

static uint64_t mix_line(uint64_t h, const struct stack_frame *f)
{
	return mix(mix(h, f->py_file), f->py_func) + f->py_line;
}

uint64_t place_key(const struct stack *s)
{
	const struct stack_frame *f = stack_user_frame(s), *caller = caller_elsewhere(s, f);
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	if (!f)
		f = stack_place(s);
	if (!f)
		return 0;
	if (stack_frame_is_python(f))
		return caller ? mix_line(mix_line(h, f), caller) : mix_line(h, f);
	h = mix(h, f->symbol);
	return f->file ? mix(h, f->file) + f->line : h;
}

static bool starts_with(const char *text, const char *start)
{
	return text && !strncmp(text, start, strlen(start));
}

static bool is_named(const struct stack_frame *f, const char *const *names)
{
	const char *name = f->symbol;

	if (!name)
		return false;
	if (starts_with(name, "__GI_")) /* glibc's own name for what it exports */
		name += strlen("__GI_");
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

/* The frame is in the interpreter itself; its file is the library's base name where there is no
 * source line. */
static bool is_of_interpreter(const struct stack_frame *f)
{
	return (f->file && (starts_with(f->file, "python") || starts_with(f->file, "libpython"))) ||
	       starts_with(f->symbol, "PyEval_") || starts_with(f->symbol, "_PyEval_") ||
	       starts_with(f->symbol, "PyGILState_");
}

/* An interpreter without symbols is known by who sleeps in it: only the interpreter lock is waited
 * for with a condition variable and a time limit. */
bool place_is_interpreter_lock(const struct stack *s)
{
	static const char *const lock[] = {"take_gil", "drop_gil", "_PyThreadState_Attach",
		"PyEval_RestoreThread", "PyEval_AcquireThread", "PyGILState_Ensure",
		"_PyEval_AcquireLock", NULL};
	bool timed = false;

	for (size_t i = 0; i < MIN(s->count, (size_t)INNERMOST); i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_python(f))
			return false;
		if (is_named(f, lock))
			return true;
		if (timed && is_of_interpreter(f))
			return true;
		if (f->symbol && strstr(f->symbol, "pthread_cond_"))
			timed = timed || strstr(f->symbol, "timedwait") ||
				strstr(f->symbol, "clockwait");
	}
	return false;
}

bool place_has_file(const struct stack *s, const char *const *parts)
{
	for (size_t i = 0; i < s->count; i++)
		for (const char *const *p = parts; stack_frame_is_python(&s->frames[i]) && *p; p++)
			if (strstr(s->frames[i].py_file, *p))
				return true;
	return false;
}

bool place_is_loader(const struct stack *s)
{
	static const char *const files[] = {"torch/utils/data/", NULL};

	return place_has_file(s, files);
}

bool place_is_server(const struct stack *s)
{
	static const char *const files[] = {"/asyncio/base_events.py", "/uvloop/", "/tornado/",
		"/socketserver.py", "/http/server.py", "/wsgiref/", "/werkzeug/", "/gunicorn/",
		"/uvicorn/", "/starlette/", "/aiohttp/web", "/grpc/_server.py", "/twisted/",
		"/gevent/", "/ray/serve/", NULL};

	return place_has_file(s, files);
}

bool place_is_event_loop(const struct stack *s)
{
	static const char *const files[] = {"/asyncio/", "/uvloop/", "/tornado/", "/twisted/",
		"/gevent/", "/eventlet/", "/trio/", "/curio/", NULL};

	return place_has_file(s, files);
}

bool place_is_loader_thread(const char *comm)
{
	return starts_with(comm, "pt_data_");
}

bool place_is_driver_thread(const char *comm)
{
	return starts_with(comm, "cuda-EvtHandlr") || starts_with(comm, "cuda0");
}

bool place_calls(const struct stack *s, const struct stack *caller)
{
	const struct stack_frame *by = stack_user_frame(caller);

	for (size_t k = 0; by && k < s->count; k++)
		if (stack_frame_is_user(&s->frames[k]) &&
			!strcmp(s->frames[k].py_func, by->py_func) &&
			!strcmp(s->frames[k].py_file, by->py_file))
			return true;
	return false;
}

bool place_is_outermost(const struct stack *s)
{
	const struct stack_frame *f = stack_user_frame(s);

	for (const struct stack_frame *c = f ? f + 1 : NULL; c && c < s->frames + s->count; c++)
		if (stack_frame_is_user(c) && c->py_func[0] != '<')
			return false;
	return f;
}

/* A function of the C library as programs call it: "__GI___libc_write" is write. */
static const char *plain_name(const struct stack_frame *f)
{
	const char *name = f->symbol ? f->symbol : "";

	name += starts_with(name, "__GI_") ? strlen("__GI_") : 0;
	name += strspn(name, "_");
	return name + (starts_with(name, "libc_") ? strlen("libc_") : 0);
}

bool place_is_output(const struct stack *s)
{
	static const char *const output[] = {
		"write", "writev", "pwrite64", "send", "sendto", "sendmsg", "sendfile"};

	for (size_t i = 0; s->count && i < ARRAY_SIZE(output); i++)
		if (!strcmp(plain_name(&s->frames[0]), output[i]))
			return true;
	return false;
}

bool place_is_mutex(const struct stack *s)
{
	static const char *const locks[] = {
		"pthread_mutex_lock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock"};

	for (size_t i = 0; i < MIN(s->count, (size_t)INNERMOST); i++)
		for (size_t k = 0; k < ARRAY_SIZE(locks); k++)
			if (!strcmp(plain_name(&s->frames[i]), locks[k]))
				return true;
	return false;
}

bool place_is_file_lock(const struct stack *s)
{
	for (size_t i = 0; i < s->count && !stack_frame_is_python(&s->frames[i]); i++) {
		const char *name = plain_name(&s->frames[i]);

		if (!strcmp(name, "flock") || starts_with(name, "lockf") || strstr(name, "fcntl"))
			return true;
	}
	return false;
}

bool place_is_start(const struct stack *s)
{
	static const char *const files[] = {"/multiprocessing/popen_fork.py",
		"/multiprocessing/popen_spawn_posix.py", "/multiprocessing/popen_forkserver.py",
		"/subprocess.py", NULL};
	static const char *const functions[] = {"_launch", "_execute_child", NULL};
	const struct stack_frame *user = stack_user_frame(s);

	/* Beyond the user's frame, and what a forked one runs first, it is how this process began. */
	for (size_t i = 0; i < s->count && &s->frames[i] != user; i++) {
		const struct stack_frame *f = &s->frames[i];
		bool is_function = false;

		if (!stack_frame_is_python(f) || !f->py_file || !f->py_func)
			continue;
		if (stack_frame_is_begin(f))
			return false;
		for (const char *const *n = functions; *n; n++)
			is_function |= strstr(f->py_func, *n) != NULL;
		for (const char *const *n = files; is_function && *n; n++)
			if (strstr(f->py_file, *n))
				return true;
	}
	return false;
}

/* Who starts processes waits for them as well. */
uint32_t place_blocks(const struct stack *s)
{
	static const struct {
		uint32_t lines;
		const char *names[20];
	} calls[] = {
		{BLOCKS(DISK),
			{"fsync", "fdatasync", "msync", "sync_file_range", "syncfs", "sync"}},
		{BLOCKS(DISK) | BLOCKS(NETWORK) | BLOCKS(LOCK),
			{"read", "readv", "pread64", "write", "writev", "pwrite64", "sendfile",
				"open64", "openat64", "rename", "unlink", "ftruncate64"}},
		{BLOCKS(NETWORK),
			{"poll", "ppoll", "select", "epoll_wait", "recv", "recvfrom", "recvmsg",
				"send", "sendto", "sendmsg", "accept", "accept4", "connect"}},
		{BLOCKS(LOCK) | BLOCKS(ASLEEP), {"wait4", "waitpid", "waitid", "vfork", "fork"}},
		{BLOCKS(ASLEEP), {"nanosleep", "clock_nanosleep"}},
	};
	const char *symbol = s->count ? plain_name(&s->frames[0]) : "";
	uint32_t lines = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		for (const char *const *n = calls[i].names; *n; n++)
			lines |= strcmp(symbol, *n) ? 0 : calls[i].lines;
	return place_is_start(s) ? lines | BLOCKS(NETWORK) | BLOCKS(LOCK) | BLOCKS(ASLEEP) : lines;
}

#define COVER_SHARE 0.6 /* two functions that cover so much are of one stack: one is deeper */
#define FUNCTIONS   256

struct function {
	const char *file, *name;
	uint64_t ns;
	size_t last_weight; /* + 1: a recursive one counts once */
};

struct functions {
	struct function items[FUNCTIONS];
	size_t count;
	uint64_t all_ns;
	bool is_native;
};

/* A frame with a source line does not say of which library it is; the C library's are known by their names. */
static bool is_of_libc(const struct stack_frame *f)
{
	static const char *const names[] = {"read", "write", "pread64", "pwrite64", "readv",
		"writev", "fread", "fwrite", "fsync", "fdatasync", "open", "open64", "openat",
		"close", "ioctl", "syscall", "nanosleep", "clock_nanosleep", "usleep", "sleep",
		"poll", "ppoll", "select", "pselect", "epoll_wait", "recv", "recvfrom", "recvmsg",
		"send", "sendto", "sendmsg", "sendfile", "accept", "accept4", "connect", "mmap",
		"mmap64", "munmap", "madvise", "memcpy", "memmove", "memset", "malloc", "calloc",
		"realloc", "free", "qsort", "sched_yield", "sem_wait", "start_thread", "clone3",
		"wait4", "waitpid", NULL};

	return starts_with(f->symbol, "__") || starts_with(f->symbol, "_IO_") ||
	       starts_with(f->symbol, "pthread_") || starts_with(f->symbol, "futex_") ||
	       starts_with(f->symbol, "lll_") || is_named(f, names);
}

/* A header of C++'s own library, of which code is inlined in the program's, has no suffix where it is to be included. */
static bool is_of_cpp(const struct stack_frame *f)
{
	bool has_suffix = strchr(stack_base_name(f->file), '.');

	return stack_symbol_is_std(f->symbol) || (f->line && !has_suffix);
}

/* The interpreter and the libraries it loads are no program of the user's; the executable is. */
static bool is_native_user(const struct stack_frame *f)
{
	if (stack_frame_is_python(f) || !f->symbol || !f->symbol[0] || !f->file ||
		is_of_interpreter(f) || stack_frame_is_cuda(f) || is_of_libc(f) || is_of_cpp(f) ||
		!strcmp(f->symbol, "_start"))
		return false;
	if (f->line)
		return !starts_with(f->file, "/usr/") && !starts_with(f->file, "/build/") &&
		       !starts_with(f->file, "../sysdeps") && !starts_with(f->file, "./");
	return !strstr(f->file, ".so") && !starts_with(f->file, "[");
}

/* By its functions, or what it is loaded from. */
static bool is_of_sqlite(const struct stack_frame *f)
{
	return starts_with(f->symbol, "sqlite3") ||
	       (f->file && (strstr(f->file, "libsqlite3") || strstr(f->file, "/_sqlite3")));
}

const char *place_database(const struct stack *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (!stack_frame_is_python(&s->frames[i]) && is_of_sqlite(&s->frames[i]))
			return "SQLite";
		if (stack_frame_is_user(&s->frames[i]) || is_native_user(&s->frames[i]))
			return NULL;
	}
	return NULL;
}

bool place_is_own(const struct stack *s)
{
	bool is_own = false;

	for (size_t i = 0; i < s->count; i++) {
		if (stack_frame_is_python(&s->frames[i]))
			return stack_user_frame(s) != NULL;
		is_own |= is_native_user(&s->frames[i]);
	}
	return is_own;
}

static bool is_candidate(const struct stack_frame *f, bool is_native)
{
	return is_native ? is_native_user(f) : stack_frame_is_user(f);
}

static struct function function_of(const struct stack_frame *f)
{
	return stack_frame_is_python(f) ? (struct function){.file = f->py_file, .name = f->py_func}
					: (struct function){.file = f->file, .name = f->symbol};
}

static bool is_same(const struct function *a, const struct function *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->file, b->file);
}

static struct function *find_function(struct functions *l, const struct stack_frame *f)
{
	struct function wanted = function_of(f);

	for (size_t i = 0; i < l->count; i++)
		if (is_same(&l->items[i], &wanted))
			return &l->items[i];
	return NULL;
}

/* Of Python, whenever one of the stacks has a frame of it: what is native below that is a library's. */
static bool has_python(const struct stack_list *stacks, const struct place_weight *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct stack *s = stack_find(stacks, w[i].hash);

		for (size_t k = 0; s && k < s->count; k++)
			if (stack_frame_is_python(&s->frames[k]))
				return true;
	}
	return false;
}

/* False: it goes through no function of the program's, as of a library's own threads. */
static bool add_stack(struct functions *l, const struct stack *s, uint64_t ns, size_t weight)
{
	bool is_any = false;

	for (size_t k = 0; k < s->count && !stack_frame_is_begin(&s->frames[k]); k++) {
		struct function *at;

		if (!is_candidate(&s->frames[k], l->is_native))
			continue;
		is_any = true;
		at = find_function(l, &s->frames[k]);
		if (!at && l->count < FUNCTIONS) {
			at = &l->items[l->count++];
			*at = function_of(&s->frames[k]);
		}
		if (!at || at->last_weight == weight + 1)
			continue;
		at->last_weight = weight + 1;
		at->ns += ns;
	}
	return is_any;
}

/* Of functions that cover enough the one with the least, and of equal ones the inner: what is called has at most the
 * time of its caller. */
static const struct function *find_deepest(struct functions *l, const struct stack_list *stacks,
	const struct place_weight *w, size_t n)
{
	const struct function *best = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct stack *s = stack_find(stacks, w[i].hash);

		for (size_t k = 0; s && k < s->count; k++) {
			const struct function *f = is_candidate(&s->frames[k], l->is_native)
							   ? find_function(l, &s->frames[k])
							   : NULL;

			if (!f || (double)f->ns < COVER_SHARE * (double)l->all_ns)
				continue;
			if (!best || f->ns < best->ns)
				best = f;
			break;
		}
	}
	return best;
}

/* The line of @f, as the innermost frame of it in @s has it, 0 where it is not known; -1: @s does not go through it. */
static int64_t line_in(const struct stack *s, const struct function *f)
{
	for (size_t k = 0; s && k < s->count; k++) {
		const struct stack_frame *frame = &s->frames[k];
		struct function here;

		if (!stack_frame_is_python(frame) && (!frame->symbol || !frame->file))
			continue;
		here = function_of(frame);
		if (is_same(&here, f))
			return stack_frame_is_python(frame) ? frame->py_line : frame->line;
	}
	return -1;
}

static void put_line(const struct stack_list *stacks, const struct place_weight *w, size_t n,
	const struct function *f, struct code_place *ret)
{
	uint64_t most_of_line = 0, most_of_stack = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t line = line_in(stack_find(stacks, w[i].hash), f);
		uint64_t ns = 0;

		if (line < 0)
			continue;
		for (size_t k = 0; k < n; k++)
			if (line_in(stack_find(stacks, w[k].hash), f) == line)
				ns += w[k].ns;
		if (ns > most_of_line) {
			most_of_line = ns;
			ret->line = (uint32_t)line;
		}
		if (w[i].ns > most_of_stack) {
			most_of_stack = w[i].ns;
			ret->hash = w[i].hash;
		}
	}
}

/* ---- helpers ---- */

/* Whether CUDA is called below the innermost of the user's frames of @s. */
static bool calls_cuda(const struct stack *s)
{
	for (size_t k = 0; k < s->count && !stack_frame_is_user(&s->frames[k]); k++)
		if (stack_frame_is_cuda(&s->frames[k]))
			return true;
	return false;
}

/* Whether functions of @file that call CUDA are called from more than one line of other files. */
static bool is_helper_file(const struct stack_list *stacks, const char *file)
{
	const struct stack_frame *first = NULL;

	for (size_t i = 0; i < stacks->count; i++) {
		const struct stack *s = stacks->items[i];
		const struct stack_frame *f = stack_user_frame(s), *c = caller_elsewhere(s, f);

		if (!c || strcmp(f->py_file, file) || !calls_cuda(s))
			continue;
		if (!first)
			first = c;
		if (c->py_line != first->py_line || strcmp(c->py_file, first->py_file))
			return true;
	}
	return false;
}

/* From @p, a helper, to the line that calls it for most of its time. */
static void leave_helper(const struct stack_list *stacks, const struct place_weight *w, size_t n,
	struct code_place *p)
{
	const struct stack *s = stack_find(stacks, p->hash);
	const struct stack_frame *f = s ? stack_user_frame(s) : NULL;
	const struct stack_frame *c = f ? caller_elsewhere(s, f) : NULL;
	uint64_t all = 0, own = 0;

	if (!c || strcmp(f->py_file, p->file) || strcmp(f->py_func, p->func) || !calls_cuda(s) ||
		!is_helper_file(stacks, p->file))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct stack *t = stack_find(stacks, w[i].hash);
		const struct stack_frame *g = t ? stack_user_frame(t) : NULL;
		const struct stack_frame *d = g ? caller_elsewhere(t, g) : NULL;

		if (!g || strcmp(g->py_file, p->file) || strcmp(g->py_func, p->func))
			continue;
		all += w[i].ns;
		own += d && d->py_line == c->py_line && !strcmp(d->py_file, c->py_file) ? w[i].ns
											: 0;
	}
	if ((double)own < COVER_SHARE * (double)all)
		return;
	p->via_file = p->file;
	p->via_func = p->func;
	p->via_line = p->line;
	p->file = c->py_file;
	p->func = c->py_func;
	p->line = c->py_line;
}

bool place_cover(const struct stack_list *stacks, const struct place_weight *w, size_t n,
	struct code_place *ret)
{
	struct functions l = {.is_native = !has_python(stacks, w, n)};
	const struct function *f;
	uint64_t seen_ns = 0;

	for (size_t i = 0; i < n; i++) {
		const struct stack *s = stack_find(stacks, w[i].hash);

		if (!s || !w[i].ns)
			continue;
		seen_ns += w[i].ns;
		l.all_ns += add_stack(&l, s, w[i].ns, i) ? w[i].ns : 0;
	}
	f = 3 * l.all_ns > seen_ns ? find_deepest(&l, stacks, w, n) : NULL;
	if (!f) /* or most of it is a library's own */
		return false;
	*ret = (struct code_place){
		.file = f->file, .func = f->name, .share = (double)f->ns / (double)l.all_ns};
	put_line(stacks, w, n, f, ret);
	if (!l.is_native)
		leave_helper(stacks, w, n, ret);
	return true;
}

const char *place_format(const struct code_place *p, char *out, size_t size)
{
	char line[16] = "";

	if (p->line)
		snprintf(line, sizeof(line), ":%u", p->line);
	if (p->func[0] == '<')
		snprintf(out, size, "%s%s", stack_base_name(p->file), line);
	else
		snprintf(out, size, "%s%s (%s)", stack_base_name(p->file), line, p->func);
	return out;
}

const char *place_at(const struct code_place *p, char *out, size_t size)
{
	static const char locals[] = "<locals>."; /* before a function within another */
	const char *inner = strstr(p->func, locals);
	struct code_place bare = *p;
	char line[96];

	bare.func = "<";
	place_format(&bare, line, sizeof(line));
	inner = inner ? inner + strlen(locals) : p->func;
	if (inner[0] == '<')
		snprintf(out, size, "at %s", line);
	else
		snprintf(out, size, "in %.80s (%s)", inner, line);
	if (p->via_file)
		snprintf(out + strlen(out), size - strlen(out), " via %.40s (%.40s:%u)",
			p->via_func, stack_base_name(p->via_file), p->via_line);
	return out;
}

const char *place_script(const struct stack *s)
{
	for (size_t k = s->count; k > 0; k--)
		if (stack_frame_is_user(&s->frames[k - 1]))
			return stack_base_name(s->frames[k - 1].py_file);
	return NULL;
}

enum account_line place_line(const struct stack *s)
{
	static const char *const collector[] = {"gc_collect_main", "gc_collect_region",
		"gc_collect_full", "gc_collect_young", "gc_collect_increment",
		"gc_collect_generations", "gc_collect_with_callback", "deduce_unreachable",
		"PyGC_Collect", "_PyGC_Collect", NULL};
	static const char *const launch[] = {"cudaLaunchKernel", "cuLaunchKernel",
		"cudaLaunchKernelExC", "cuLaunchKernelEx", NULL};
	static const char *const wait[] = {"cudaStreamSynchronize", "cudaDeviceSynchronize",
		"cudaEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize",
		"cuEventSynchronize", NULL};

	bool yields = false;

	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_python(f))
			break;
		yields = yields || (f->symbol && strstr(f->symbol, "sched_yield"));
		if (is_named(f, collector))
			return ACCOUNT_GC;
		if (is_named(f, launch)) /* one that yields waits for room in the queue */
			return yields ? ACCOUNT_GPU : ACCOUNT_LAUNCH;
		if (is_named(f, wait))
			return ACCOUNT_GPU;
	}
	return ACCOUNT_HOST;
}
