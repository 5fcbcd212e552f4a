/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/accounts/place.h"

#include <string.h>

#include "base/macros.h"

#define INNERMOST 12 /* frames within which a function of the C library or of CUDA must be */

static uint64_t mix(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

uint64_t place_key(const struct stack *s)
{
	const struct stack_frame *f = stack_user_frame(s);
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	if (!f)
		f = stack_place(s);
	if (!f)
		return 0;
	if (stack_frame_is_python(f))
		return mix(mix(h, f->py_file), f->py_func) + f->py_line;
	h = mix(h, f->symbol);
	return f->file ? mix(h, f->file) + f->line : h;
}

static bool starts_with(const char *text, const char *start)
{
	return text && !strncmp(text, start, strlen(start));
}

static bool is_named(const struct stack_frame *f, const char *const *names)
{
	if (!f->symbol)
		return false;
	for (; *names; names++)
		if (!strcmp(f->symbol, *names))
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

bool place_is_loader(const struct stack *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (stack_frame_is_python(&s->frames[i]) &&
			strstr(s->frames[i].py_file, "torch/utils/data/"))
			return true;
	return false;
}

bool place_is_loader_thread(const char *comm)
{
	return starts_with(comm, "pt_data_");
}

bool place_is_driver_thread(const char *comm)
{
	return starts_with(comm, "cuda-EvtHandlr") || starts_with(comm, "cuda0");
}

bool place_is_sleep(const struct stack *s)
{
	return s->count && s->frames[0].symbol && strstr(s->frames[0].symbol, "nanosleep");
}

bool place_is_output(const struct stack *s)
{
	static const char *const output[] = {"write", "__write", "__libc_write", "writev",
		"pwrite64", "send", "__send", "sendto", "sendmsg", "sendfile", NULL};

	return s->count && is_named(&s->frames[0], output);
}

bool place_is_start(const struct stack *s)
{
	static const char *const files[] = {"/multiprocessing/popen_fork.py",
		"/multiprocessing/popen_spawn_posix.py", "/multiprocessing/popen_forkserver.py",
		"/subprocess.py", NULL};
	static const char *const functions[] = {"_launch", "_execute_child", NULL};
	const struct stack_frame *user = stack_user_frame(s);

	/* Beyond the user's frame it is how this process began. */
	for (size_t i = 0; i < s->count && &s->frames[i] != user; i++) {
		const struct stack_frame *f = &s->frames[i];
		bool is_function = false;

		if (!stack_frame_is_python(f) || !f->py_file || !f->py_func)
			continue;
		for (const char *const *n = functions; *n; n++)
			is_function |= strstr(f->py_func, *n) != NULL;
		for (const char *const *n = files; is_function && *n; n++)
			if (strstr(f->py_file, *n))
				return true;
	}
	return false;
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
