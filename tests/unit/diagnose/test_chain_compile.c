/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_compile.c - compilers are known by files, functions, libraries and processes, and what compiled code runs through is none. */
#include "chain_fixture.h"
#include "diagnose/accounts/compiler.h"

#define PY(file, func)                                                                             \
	{                                                                                          \
		.py_file = "/venv/lib/python3.11/site-packages/" file, .py_func = func,            \
		.py_line = 1                                                                       \
	}
#define USER                                                                                       \
	{                                                                                          \
		.py_file = "/home/u/train.py", .py_func = "step", .py_line = 42                    \
	}

static void test_stacks(void **state)
{
	static const struct {
		const char *compiler; /* NULL: none */
		struct stack_frame frames[3];
	} rows[] = {
		{"torch.compile (Dynamo)", {PY("torch/_dynamo/symbolic_convert.py", "step"), USER}},
		{"torch.compile (Inductor)",
			{PY("triton/compiler/compiler.py", "compile"),
				PY("torch/_inductor/codecache.py", "load"), USER}},
		{"torch.compile (Inductor)",
			{PY("torch/_inductor/runtime/triton_heuristics.py", "bench"), USER}},
		{"Triton", {PY("triton/compiler/compiler.py", "compile"), USER}},
		{"Triton (autotuning)", {PY("triton/runtime/autotuner.py", "_bench"), USER}},
		{"XLA (JAX)", {PY("jax/_src/compiler.py", "backend_compile"), USER}},
		{"nvrtc (CuPy)", {PY("cupy/cuda/compiler.py", "compile_using_nvrtc"), USER}},
		{"torch.utils.cpp_extension",
			{PY("torch/utils/cpp_extension.py", "_jit_compile"), USER}},
		{"nvrtc", {{.symbol = "nvrtcCompileProgram", .file = "libnvrtc.so.12"}, USER}},
		{"nvrtc", {{.ip = 4096, .file = "libnvrtc.so.12"}, USER}},
		{"nvJitLink", {{.ip = 4096, .file = "libnvJitLink.so.12"}, USER}},
		{"the driver's JIT", {{.ip = 4096, .file = "libnvidia-ptxjitcompiler.so.1"}, USER}},
		{"TorchScript", {PY("torch/jit/_trace.py", "trace"), USER}},
		{"TorchScript", {PY("torch/jit/_freeze.py", "freeze"), USER}},
		{"TorchScript",
			{{.symbol = "torch::jit::ProfilingGraphExecutorImpl::getOptimizedPlanFor("
				    "std::vector<c10::IValue>&)"},
				USER}},
		{NULL, {PY("torch/jit/_script.py", "forward_magic_method"), USER}},
		{"LLVM", {{.symbol = "llvm::PassManager::run(llvm::Module&)"}, USER}},
		{"XLA", {{.symbol = "llvm::ilist::insert"},
				{.symbol = "xla::gpu::GpuCompiler::RunBackend"}}},
		{"cuDNN", {{.symbol = "nvrtcCompileProgram", .file = "libnvrtc.so.13"},
				  {.symbol = "cudnnBackendFinalize"}, USER}},
		{"cuDNN",
			{{.symbol = "cudnnBackendFinalize", .file = "libcudnn_graph.so.9"}, USER}},
		{"cuDNN (benchmark)", {{.symbol = "cudnnFindConvolutionForwardAlgorithmEx"}, USER}},
		{"cuDNN", {{.symbol = "free", .file = "libc.so.6"},
				  {.ip = 1, .file = "libcudnn_graph.so.9"}, USER}},
		{"XLA", {{.symbol = "xla::gpu::Autotune"},
				{.ip = 1, .file = "libcudnn_graph.so.9"}}},
		{NULL, {{.symbol = "cuLaunchKernelEx", .file = "libcuda.so.1"},
			       {.ip = 1, .file = "libcudnn_graph.so.9"}, USER}},
		/* what runs each time */
		{NULL, {PY("torch/_dynamo/eval_frame.py", "_fn"), USER}},
		{NULL, {PY("torch/_inductor/codecache.py", "__call__"), USER}},
		{NULL, {PY("torch/_inductor/runtime/triton_heuristics.py", "run"), USER}},
		{NULL, {PY("torch/_functorch/_aot_autograd/runtime_wrappers.py", "runtime_wrapper"),
			       USER}},
		{NULL, {PY("triton/runtime/jit.py", "run"), USER}},
		{NULL, {PY("triton/compiler/compiler.py", "launch_metadata"), USER}},
		{NULL, {{.symbol = "xla::gpu::GpuExecutable::ExecuteAsyncOnStream"}, USER}},
		{NULL, {{.symbol = "cudaLaunchKernel", .file = "libcudart.so.12"}, USER}},
		{NULL, {{.py_file = "/home/u/compile.py", .py_func = "compile", .py_line = 1}}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stack s = {.hash = 1, .frames = rows[i].frames, .stop = ""};
		const char *name;

		while (s.count < 3 &&
			(rows[i].frames[s.count].symbol || rows[i].frames[s.count].ip ||
				rows[i].frames[s.count].py_func))
			s.count++;
		name = compiler_of_stack(&s);
		assert_string_equal(name ? name : "", rows[i].compiler ? rows[i].compiler : "");
	}
}

/* What is made once for each shape, and what is made as often as it is asked for. */
static void test_how_code_is_made(void **state)
{
	assert_int_equal(compiler_making("cuDNN"), MAKING_PLANS);
	assert_int_equal(compiler_making("cuDNN (benchmark)"), MAKING_CODE);
	assert_int_equal(compiler_making("Triton"), MAKING_CODE);
	assert_int_equal(compiler_making(NULL), MAKING_NONE);
}

static void test_processes(void **state)
{
	assert_string_equal(compiler_of_process("ptxas"), "ptxas");
	assert_string_equal(compiler_of_process("cc1plus"), "gcc");
	assert_null(compiler_of_process("python3"));
	assert_null(compiler_of_process("ccache-sim"));
	assert_null(compiler_of_process(""));
}

/* Compiling is spread over the job's own thread, another of its threads and a process that it waits for. */
static void test_the_chain(void **state)
{
	static const struct stack_frame own[] = {PY("torch/_inductor/graph.py", "run"), USER};
	static const struct stack_frame waited[] = {
		PY("torch/_inductor/async_compile.py", "wait"), USER};
	static const struct stack_frame plain[] = {USER};
	struct chain_scene *s = chain_scene_new(DELAY_BY_COMPILE, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_PROCESS);
	uint64_t hash;

	snprintf(e->comm, sizeof(e->comm), "ptxas");
	e->pid = 0;
	e->slow_ns = 10 * NS_PER_MS;
	e = chain_entry(s, ACCOUNT_HOST, OWNER_SELF);
	e->stack_hash = hash = chain_stack(s, own, 2);
	e = chain_entry(s, ACCOUNT_LOCK, OWNER_THREAD);
	e->wait_hash = chain_stack(s, waited, 2);
	e = chain_entry(s, ACCOUNT_HOST, OWNER_SELF);
	e->stack_hash = chain_stack(s, plain, 1);
	for (int i = 0; i < CHAIN_STEPS; i++) {
		struct event *x =
			chain_event(s, chain_at(i), SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB);

		x->stack_hash = i % 10 ? e->stack_hash : hash;
		if (i % 10 == 5)
			snprintf(chain_event(s, chain_at(i) + 1, SOURCE_HOST, HOST_PROCESS_EXEC, 9)
					 ->comm,
				COMM_LEN, "ptxas");
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_COMPILER);
	assert_string_equal(s->delay.end.who, "torch.compile (Inductor)");
	assert_string_equal(s->delay.end.detail, "for train.py:42, in 10 of 100 steps");
	assert_float_equal(s->delay.end.share, 100.0 / 110, 0.01);
	free(s);
}

/* A delay on another line that is mostly a compiler's leads to it, one that is so in part does not. */
static void test_on_other_lines(void **state)
{
	static const struct stack_frame own[] = {
		{.ip = 4096, .file = "libnvrtc.so.12"}, PY("cupy/_core/core.py", "f"), USER};
	static const enum delay_kind kinds[] = {DELAY_BY_HOST, DELAY_BY_CALL, DELAY_BY_LOCK};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct chain_scene *s = chain_scene_new(kinds[i], true);
		struct account_entry *e = chain_entry(s, (enum account_line)kinds[i], OWNER_SELF);

		e->stack_hash = chain_stack(s, own, 3);
		e->slow_ns = 30 * NS_PER_MS;
		assert_int_equal(chain_end(s)->resource, RESOURCE_COMPILER);
		assert_string_equal(s->delay.end.who, "nvrtc");
		e->slow_ns = 20 * NS_PER_MS;
		assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
		e->slow_ns = 50 * NS_PER_MS;
		e->line = ACCOUNT_GC; /* another delay's */
		assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
		free(s);
	}
}

static void test_a_process_that_compiles(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_PROCESS);

	snprintf(e->comm, sizeof(e->comm), "cicc");
	assert_int_equal(chain_end(s)->resource, RESOURCE_COMPILER);
	assert_string_equal(s->delay.end.who, "nvcc");
	free(s);
}

static void test_without_evidence(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_COMPILE, true);

	chain_entry(s, ACCOUNT_HOST, OWNER_SELF);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_how_code_is_made),
		cmocka_unit_test(test_the_chain),
		cmocka_unit_test(test_on_other_lines),
		cmocka_unit_test(test_a_process_that_compiles),
		cmocka_unit_test(test_without_evidence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
