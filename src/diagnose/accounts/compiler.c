/* SPDX-License-Identifier: Apache-2.0 */
/* compiler.c - see compiler.h.
 *
 * What compiled code runs through each time (torch/_dynamo/eval_frame.py, triton/runtime/jit.py) is no compiling:
 * a file that also has such functions stands below with those that it has besides. */
#include "diagnose/accounts/compiler.h"

#include <string.h>

#include "base/macros.h"

#define CUDNN   "cuDNN"
#define LOADING "the driver (loading kernels)"

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
	{"torch/jit/_trace.py", "- forward __call__ ", "TorchScript"},
	{"torch/jit/_freeze.py", NULL, "TorchScript"},
	{"torch/jit/_script.py", " script _script_impl create_script_module ", "TorchScript"},
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
	{"cudnnBackendFinalize", NULL, CUDNN},
	{"cudnnFind", NULL, "cuDNN (benchmark)"},
	{"cudnnGetConvolutionForwardAlgorithm", NULL, CUDNN},
	{"cudnnGetConvolutionBackward", NULL, CUDNN},
	{"get_plans_from_find", NULL, "cuDNN (benchmark)"},
	{"get_plans_from_heuristics", NULL, CUDNN},
	{"generate_and_filter_plans", NULL, CUDNN},
	{"cudnn_fmt", NULL, CUDNN}, /* writes the source of a kernel */
	{"cuKernelSetAttribute", NULL, LOADING},
	{"cuLibraryLoad", NULL, LOADING},
	{"cuModuleLoad", NULL, LOADING},
	{"nvfuser::", NULL, "nvFuser"},
	{"torch::jit::ProfilingGraphExecutorImpl::getOptimizedPlanFor", NULL, "TorchScript"},
	{"torch::jit::runProfilingOptimizations", NULL, "TorchScript"},
	{"nvrtcCompileProgram", NULL, "nvrtc"},
	{"nvJitLinkComplete", NULL, "nvJitLink"},
	{"cuLinkComplete", NULL, "the driver's JIT"},
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

/* What cuDNN does is to run plans, which takes microseconds, or to make them. Stacks may not reach what was called of it. */
static bool makes_plans(const struct stack *s)
{
	bool is_of_cudnn = false;

	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (f->symbol &&
			(strstr(f->symbol, "xecute") || strstr(f->symbol, "cuLaunch") ||
				strstr(f->symbol, "cuMemset") || strstr(f->symbol, "cudnnSet")))
			return false;
		is_of_cudnn |= f->file && !strncmp(f->file, "libcudnn", strlen("libcudnn"));
	}
	return is_of_cudnn;
}

const char *compiler_of_stack(const struct stack *s)
{
	size_t best = SIZE_MAX;
	const char *compiler = NULL;

	for (size_t i = 0; i < s->count; i++)
		frame_compiler(&s->frames[i], &best, &compiler);
	/* Whoever asked for them comes first. */
	if (best < ARRAY_SIZE(python) || (compiler && !strncmp(compiler, "XLA", 3)) ||
		(compiler && !strncmp(compiler, CUDNN, strlen(CUDNN))))
		return compiler;
	return makes_plans(s) ? CUDNN : compiler;
}

bool compiler_builds_model(const struct stack *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_python(f) && (strstr(f->py_file, "torch/nn/init.py") ||
							(strstr(f->py_file, "torch/nn/modules/") &&
								strstr(f->py_func, "__init__"))))
			return true;
	}
	return false;
}

enum code_making compiler_making(const char *name)
{
	if (!name)
		return MAKING_NONE;
	return strcmp(name, CUDNN) && strcmp(name, LOADING) ? MAKING_CODE : MAKING_PLANS;
}

const char *compiler_of_process(const char *comm)
{
	for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
		if (!strncmp(comm, processes[i].part, COMM_LEN))
			return processes[i].compiler;
	return NULL;
}

const char *compiler_of_part(
	const struct stack_list *stacks, uint64_t wait_hash, uint64_t stack_hash, const char *comm)
{
	const struct stack *wait = stack_find(stacks, wait_hash);
	const struct stack *own = stack_find(stacks, stack_hash);
	const char *name = wait ? compiler_of_stack(wait) : NULL;

	if (!name && own)
		name = compiler_of_stack(own);
	return name || !comm ? name : compiler_of_process(comm);
}
