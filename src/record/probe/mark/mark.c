/* SPDX-License-Identifier: Apache-2.0 */
/* mark.c - the places. Names of C++ are matched by their beginning, because the rest of a mangled
 * name differs between versions of PyTorch and of the C++ library. */
#include "record/probe/mark/mark.h"

#include <stddef.h>

/* record_function_enter_new() is called for "Optimizer.step#AdamW.step", for
 * "enumerate(DataLoader)#…" and for what users wrap in torch.profiler.record_function();
 * Engine::execute() for every backward pass, by libtorch_python's engine too. */
#define NAMED                                                                                      \
	{                                                                                          \
		.hook = HOOK_NAMED,                                                                \
		.symbol = "_ZN5torch8autograd8profiler25record_function_enter_new*"                \
	}
#define BACKWARD                                                                                   \
	{                                                                                          \
		.hook = HOOK_BACKWARD, .symbol = "_ZN5torch8autograd6Engine7executeE*"             \
	}
#define END                                                                                        \
	{                                                                                          \
		.hook = HOOK_NONE                                                                  \
	}

static const struct mark_place torch_both[] = {NAMED, BACKWARD, END};
static const struct mark_place torch_named[] = {NAMED, END};
static const struct mark_place torch_backward[] = {BACKWARD, END};
static const struct mark_place *const torch_sets[] = {
	torch_both, torch_named, torch_backward, NULL};

const struct mark_library mark_torch = {"libtorch_cpu", torch_sets, NULL,
	"has neither record_function_enter_new() nor Engine::execute()"};

/* A call of a function that JAX has compiled: a step, where the step is compiled as a whole. On a GPU the plugin is asked
 * for it, whose functions are in .symtab only; on CPUs the client in JAX's own library. */
static const struct mark_place xla_execute[] = {
	{.hook = HOOK_EXECUTE,
		.symbol =
			"_ZN4pjrt29PJRT_LoadedExecutable_ExecuteEP34PJRT_LoadedExecutable_Execute_Args"},
	END,
};
static const struct mark_place *const xla_sets[] = {xla_execute, NULL};

const struct mark_library mark_xla_cuda = {
	"xla_cuda_plugin", xla_sets, NULL, "has no symbol of PJRT_LoadedExecutable_Execute()"};

static const struct mark_place jax_execute[] = {
	{.hook = HOOK_EXECUTE, .symbol = "_ZNK3xla23PjRtCpuLoadedExecutable7ExecuteEN4absl**"},
	END,
};
static const struct mark_place *const jax_sets[] = {jax_execute, NULL};

const struct mark_library mark_jax = {
	"libjax_common", jax_sets, NULL, "has no symbol of PjRtCpuLoadedExecutable::Execute()"};

/* Distributions build Python with static probes; others keep its symbols. The function was called
 * collect() until 3.9. */
static const struct mark_place python_probes[] = {
	{.hook = HOOK_COLLECT_BEGIN, .note = "python:gc__start"},
	{.hook = HOOK_COLLECT_END, .note = "python:gc__done"},
	END,
};
static const struct mark_place python_function[] = {
	{.hook = HOOK_COLLECT_BEGIN, .symbol = "gc_collect_main"},
	{.hook = HOOK_COLLECT_END, .symbol = "gc_collect_main", .at_return = true},
	END,
};
static const struct mark_place python_older[] = {
	{.hook = HOOK_COLLECT_BEGIN, .symbol = "collect"},
	{.hook = HOOK_COLLECT_END, .symbol = "collect", .at_return = true},
	END,
};
static const struct mark_place *const python_sets[] = {
	python_probes, python_function, python_older, NULL};

const struct mark_library mark_python = {"python", python_sets, NULL,
	"has neither the static probes gc__start and gc__done nor a symbol of the collector: "
	"garbage collection is not seen"};
