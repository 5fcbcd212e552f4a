/* SPDX-License-Identifier: Apache-2.0 */
/* chain_compile.c - compilers: which one, for which line of the program, in how many steps.
 *
 * What compiled code runs through each time (torch/_dynamo/eval_frame.py, triton/runtime/jit.py) is no compiling:
 * a file that also has such functions stands below with those that it has besides. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "diagnose/chains/chain_private.h"

struct marker {
	const char *
		part; /* of a Python file, of a native function, or the beginning of a library's name */
	const char *
		functions; /* of a Python file: of these alone; "-" before: of all others. Between blanks */
	const char *compiler;
};

/* Of several in one stack the first in these lists is named: what was asked for, before what it uses. */
static const struct marker python[] = {
	{"torch/utils/cpp_extension.py", NULL, "torch.utils.cpp_extension"},
	{"torch/_dynamo/convert_frame.py", NULL, "torch.compile (Dynamo)"},
	{"torch/_dynamo/symbolic_convert.py", NULL, "torch.compile (Dynamo)"},
	{"torch/_dynamo/output_graph.py", NULL, "torch.compile (Dynamo)"},
	{"torch/_dynamo/variables/", NULL, "torch.compile (Dynamo)"},
	{"torch/_dynamo/guards.py", NULL, "torch.compile (Dynamo)"},
	{"torch/_inductor/compile_fx.py", "- run ", "torch.compile (Inductor)"},
	{"torch/_inductor/codecache.py", "- __call__ run ", "torch.compile (Inductor)"},
	{"torch/_inductor/runtime/triton_heuristics.py",
		" precompile _precompile_config _precompile_worker make_launcher _make_launchers"
		" autotune_to_one_config benchmark_all_configs bench coordinate_descent_tuning ",
		"torch.compile (Inductor)"},
	{"torch/_inductor/runtime/compile_tasks.py", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/graph.py", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/scheduler.py", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/lowering.py", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/ir.py", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/codegen/", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/fx_passes/", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/select_algorithm.py", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/async_compile.py", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/autotune_process.py", NULL, "torch.compile (Inductor)"},
	{"torch/_inductor/compile_worker/", NULL, "torch.compile (Inductor)"},
	{"torch/_functorch/partitioners.py", NULL, "torch.compile (AOTAutograd)"},
	{"torch/_functorch/_aot_autograd/dispatch_and_compile_graph.py", NULL,
		"torch.compile (AOTAutograd)"},
	{"torch/_functorch/_aot_autograd/jit_compile_runtime_wrappers.py", NULL,
		"torch.compile (AOTAutograd)"},
	{"torch/_functorch/_aot_autograd/collect_metadata_analysis.py", NULL,
		"torch.compile (AOTAutograd)"},
	{"torch/_functorch/aot_autograd.py",
		" create_aot_dispatcher_function _create_aot_dispatcher_function aot_module_simplified"
		" dispatch_and_compile aot_stage1_graph_capture aot_stage2_compile ",
		"torch.compile (AOTAutograd)"},
	{"torch/jit/frontend.py", NULL, "TorchScript"},
	{"torch/jit/_recursive.py", NULL, "TorchScript"},
	{"jax/_src/compiler.py", NULL, "XLA (JAX)"},
	{"jax/_src/interpreters/mlir.py", NULL, "XLA (JAX)"},
	{"jax/_src/interpreters/partial_eval.py", NULL, "XLA (JAX)"},
	{"jax/_src/interpreters/pxla.py",
		" lower_sharding_computation lower_mesh_computation _cached_lowering_to_hlo"
		" _cached_compilation from_hlo compile ",
		"XLA (JAX)"},
	{"/triton/compiler/", "- launch_metadata __getattribute__ run __getitem__ runner ",
		"Triton"},
	{"/triton/backends/nvidia/compiler.py", NULL, "Triton"},
	{"/triton/backends/nvidia/driver.py", " compile_module_from_src ", "Triton"},
	{"/triton/runtime/build.py", NULL, "Triton"},
	{"/triton/runtime/jit.py", " compile _do_compile create_binder ", "Triton"},
	{"/triton/runtime/autotuner.py", " _bench bench benchmark prune_configs ",
		"Triton (autotuning)"},
	{"/triton/testing.py", " do_bench do_bench_cudagraph ", "Triton (autotuning)"},
	{"cupy/cuda/compiler.py", NULL, "nvrtc (CuPy)"},
	{"numba/cuda/compiler.py", NULL, "Numba"},
	{"numba/cuda/codegen.py", NULL, "Numba"},
	{"numba/core/compiler", NULL, "Numba"},
	{"numba/core/typeinfer.py", NULL, "Numba"},
};

static const struct marker native[] = {
	{"xla::HloPass", NULL, "XLA"},
	{"xla::gpu::GpuCompiler", NULL, "XLA"},
	{"xla::gpu::NVPTXCompiler", NULL, "XLA"},
	{"xla::Compiler::", NULL, "XLA"},
	{"CompileAndLoad", NULL, "XLA"},
	{"xla::gpu::Autotune", NULL, "XLA"},
	{"xla::gpu::GemmFusionAutotuner", NULL, "XLA"},
	{"nvrtcCompileProgram", NULL, "nvrtc"},
	{"nvJitLinkComplete", NULL, "nvJitLink"},
	{"cuLinkComplete", NULL, "the driver's JIT"},
	{"cudnnBackendFinalize", NULL, "cuDNN"},
	{"cudnnFind", NULL, "cuDNN (benchmark)"},
	{"cudnnGetConvolutionForwardAlgorithm", NULL, "cuDNN"},
	{"cudnnGetConvolutionBackward", NULL, "cuDNN"},
	{"get_plans_from_find", NULL, "cuDNN (benchmark)"},
	{"get_plans_from_heuristics", NULL, "cuDNN"},
	{"generate_and_filter_plans", NULL, "cuDNN"},
	{"nvfuser::", NULL, "nvFuser"},
	{"llvm::", NULL, "LLVM"},
	{"mlir::", NULL, "MLIR"},
};

static const struct marker libraries[] = {
	{"libnvrtc", NULL, "nvrtc"},
	{"libnvJitLink", NULL, "nvJitLink"},
	{"libnvidia-ptxjitcompiler", NULL, "the driver's JIT"},
	{"libnvidia-nvvm", NULL, "the driver's JIT"},
	{"libtriton", NULL, "Triton"},
	{"libnvvm", NULL, "NVVM"},
	{"libLLVM", NULL, "LLVM"},
	{"libcudnn_heuristic", NULL, "cuDNN"},
	{"libnvinfer_builder", NULL, "TensorRT"},
};

static const struct marker processes[] = {
	{"nvcc", NULL, "nvcc"},
	{"ptxas", NULL, "ptxas"},
	{"cicc", NULL, "nvcc"},
	{"cudafe++", NULL, "nvcc"},
	{"fatbinary", NULL, "nvcc"},
	{"nvlink", NULL, "nvcc"},
	{"ninja", NULL, "ninja"},
	{"cc1plus", NULL, "gcc"},
	{"cc1", NULL, "gcc"},
	{"g++", NULL, "gcc"},
	{"gcc", NULL, "gcc"},
	{"c++", NULL, "gcc"},
	{"cc", NULL, "gcc"},
	{"collect2", NULL, "gcc"},
	{"as", NULL, "gcc"},
	{"ld", NULL, "gcc"},
	{"ld.lld", NULL, "clang"},
	{"clang", NULL, "clang"},
	{"clang++", NULL, "clang"},
};

/* @name is any bytes of a traced program: it may hold blanks, and then is none of ours. */
static bool has_word(const char *words, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = strstr(words, name); at && len; at = strstr(at + 1, name))
		if (at > words && at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

static bool is_python_marker(const struct marker *m, const struct stack_frame *f)
{
	if (!strstr(f->py_file, m->part))
		return false;
	if (!m->functions)
		return true;
	return m->functions[0] == '-' ? !has_word(m->functions, f->py_func)
				      : has_word(m->functions, f->py_func);
}

/* The marker of @f: *best is its place in the lists, one behind the other, if that is before what *best was. */
static void frame_compiler(const struct stack_frame *f, size_t *best, const char **ret)
{
	if (stack_frame_is_python(f)) {
		for (size_t i = 0; i < MIN(*best, ARRAY_SIZE(python)); i++)
			if (is_python_marker(&python[i], f)) {
				*best = i;
				*ret = python[i].compiler;
			}
		return;
	}
	for (size_t i = 0; f->symbol && i < ARRAY_SIZE(native); i++)
		if (ARRAY_SIZE(python) + i < *best && strstr(f->symbol, native[i].part)) {
			*best = ARRAY_SIZE(python) + i;
			*ret = native[i].compiler;
		}
	for (size_t i = 0; f->file && i < ARRAY_SIZE(libraries); i++)
		if (ARRAY_SIZE(python) + ARRAY_SIZE(native) + i < *best &&
			!strncmp(f->file, libraries[i].part, strlen(libraries[i].part))) {
			*best = ARRAY_SIZE(python) + ARRAY_SIZE(native) + i;
			*ret = libraries[i].compiler;
		}
}

bool chain_is_compile(const struct stack *s, const char **ret_compiler)
{
	size_t best = SIZE_MAX;
	const char *compiler = NULL;

	for (size_t i = 0; i < s->count; i++)
		frame_compiler(&s->frames[i], &best, &compiler);
	if (compiler && ret_compiler)
		*ret_compiler = compiler;
	return compiler != NULL;
}

bool chain_is_compiler(const char *comm, const char **ret_compiler)
{
	for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
		if (!strncmp(comm, processes[i].part, COMM_LEN)) {
			if (ret_compiler)
				*ret_compiler = processes[i].compiler;
			return true;
		}
	return false;
}

bool chain_entry_is_compile(
	const struct recording *rec, const struct account_entry *e, const char **ret_compiler)
{
	const uint64_t hashes[] = {e->wait_hash, e->stack_hash};

	for (size_t i = 0; rec->stacks && i < ARRAY_SIZE(hashes); i++) {
		const struct stack *s = hashes[i] ? stack_find(rec->stacks, hashes[i]) : NULL;

		if (s && chain_is_compile(s, ret_compiler))
			return true;
	}
	return e->owner > OWNER_THREAD && chain_is_compiler(e->comm, ret_compiler);
}

/* ---- the chain ---- */

#define COMPILERS_MAX 16

struct compiling {
	const char *name;
	uint64_t ns;
};

/* The program's own line that had code made; NULL: none is known. */
static const struct stack_frame *user_line(
	const struct recording *rec, const struct account_entry *e)
{
	const uint64_t hashes[] = {e->wait_hash, e->stack_hash};

	for (size_t i = 0; rec->stacks && i < ARRAY_SIZE(hashes); i++) {
		const struct stack *s = hashes[i] ? stack_find(rec->stacks, hashes[i]) : NULL;
		const struct stack_frame *f = s ? stack_user_frame(s) : NULL;

		if (f)
			return f;
	}
	return NULL;
}

/* For each stack of the recording whether it is a compiler's, found out once: 0 not yet, 1 no, 2 yes. */
static bool is_compiling(const struct recording *rec, uint8_t *known, uint64_t hash)
{
	size_t at;

	if (!hash || !rec->stacks || !known)
		return false;
	at = LOWER_BOUND(i, rec->stacks->count, rec->stacks->items[i]->hash < hash);
	if (at == rec->stacks->count || rec->stacks->items[at]->hash != hash)
		return false;
	if (!known[at])
		known[at] = chain_is_compile(rec->stacks->items[at], NULL) ? 2 : 1;
	return known[at] == 2;
}

static bool is_evidence(const struct chain *c, uint8_t *known, const struct event *e)
{
	if (e->source == SOURCE_HOST && e->op == HOST_PROCESS_EXEC)
		return chain_is_compiler(e->comm, NULL);
	return e->pid == c->a->pid && is_compiling(c->rec, known, e->stack_hash);
}

/* In how many steps a compiler was seen, by rows of the job and by compilers that were started. */
static uint32_t steps_with(const struct chain *c)
{
	const struct step_account *a = c->a;
	_cleanup_free_ uint8_t *known =
		calloc(c->rec->stacks ? c->rec->stacks->count + 1 : 1, sizeof(*known));
	uint32_t steps = 0;
	size_t last = SIZE_MAX;

	for (size_t i = chain_first_event(c); i < c->rec->event_count; i++) {
		const struct event *e = &c->rec->events[i];
		size_t at;

		if (e->start.ns >= c->to_ns)
			break;
		at = LOWER_BOUND(k, a->mark_count, a->marks[k].start.ns <= e->start.ns);
		if (!at || at == last || !is_evidence(c, known, e))
			continue;
		last = at;
		steps++;
	}
	return steps;
}

static void describe(const struct chain *c, const struct stack_frame *f, struct resource_use *ret)
{
	uint32_t steps = steps_with(c);
	int n = 0;

	if (f)
		n = snprintf(ret->detail, sizeof(ret->detail), "for %s:%" PRIu32,
			stack_base_name(f->py_file), f->py_line);
	n = MIN(n, (int)sizeof(ret->detail) - 1);
	if (steps)
		snprintf(ret->detail + n, sizeof(ret->detail) - (size_t)n, "%sin %u of %u steps",
			f ? ", " : "", steps, c->a->steps);
}

bool chain_compile(const struct chain *c, struct resource_use *ret)
{
	struct compiling found[COMPILERS_MAX] = {0};
	const struct account_entry *largest = NULL;
	uint64_t all = 0;
	int best = 0;

	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];
		const char *name;
		int k = 0;

		if (e->slow_ns <= e->ordinary_ns || !chain_entry_is_compile(c->rec, e, &name))
			continue;
		while (k < COMPILERS_MAX - 1 && found[k].name && strcmp(found[k].name, name) != 0)
			k++;
		found[k].name = found[k].name ? found[k].name : name;
		found[k].ns += e->slow_ns - e->ordinary_ns;
		all += e->slow_ns - e->ordinary_ns;
		best = found[k].ns > found[best].ns ? k : best;
		if (!largest || (user_line(c->rec, e) && !user_line(c->rec, largest)))
			largest = e;
	}
	if (!largest)
		return false;
	ret->resource = RESOURCE_COMPILER;
	snprintf(ret->who, sizeof(ret->who), "%s", found[best].name);
	describe(c, user_line(c->rec, largest), ret);
	ret->share = (double)found[best].ns / (double)all;
	return true;
}
