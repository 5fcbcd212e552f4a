/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - processes that use CUDA and the library files they map: what discover finds, attach
 * probes and check shows. A library is a file, known by (dev, inode); its path is only a name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_PATH_MAX    1024
#define TARGET_COMM_MAX    16
#define TARGET_CMDLINE_MAX 4096

/* X(NAME, stem): a file called stem.so*, or stem-HASH.so* as wheels rename their private copies. The
 * runtime and NCCL are also found in files of other names (discover/embedded.h). */
#define TARGET_LIBRARIES(X)                                                                        \
	X(CUDART, "libcudart")                                                                     \
	X(CUDA, "libcuda")                                                                         \
	X(NCCL, "libnccl")                                                                         \
	X(TORCH_CUDA, "libtorch_cuda")                                                             \
	X(TORCH_CPU, "libtorch_cpu")                                                               \
	X(XLA_CUDA, "xla_cuda_plugin")                                                             \
	X(JAX, "libjax_common")                                                                    \
	X(TORCH_PYTHON, "libtorch_python")                                                         \
	X(NVTX, "libnvToolsExt")                                                                   \
	X(NVTX_INTEROP, "libnvtx3interop")                                                         \
	X(NVTX_INJECTED, "libingero-nvtx")

enum target_library_kind {
#define X(NAME, stem) TARGET_##NAME,
	TARGET_LIBRARIES(X)
#undef X
		TARGET_LIBRARY_KINDS,
	TARGET_EXECUTABLE = TARGET_LIBRARY_KINDS, /* a program that may hold the runtime itself */
	TARGET_PYTHON /* a program or library that may hold an interpreter */
};

/* target_kind_is_cuda - does a file of @kind make its process one that uses CUDA? The others are
 * looked at in such processes only. */
static inline bool target_kind_is_cuda(enum target_library_kind kind)
{
	return kind <= TARGET_TORCH_CUDA || kind == TARGET_EXECUTABLE;
}

/* target_kind_has_nvtx - may a file of @kind hold functions of NVTX? */
static inline bool target_kind_has_nvtx(enum target_library_kind kind)
{
	return kind >= TARGET_TORCH_PYTHON && kind <= TARGET_NVTX_INJECTED;
}

struct target_library {
	enum target_library_kind kind;
	uint64_t dev; /* as stat(2) gives it */
	uint64_t inode;
	uint64_t map_start, map_end; /* of the executable mapping; 0 for a file found on disk */
	bool deleted;                /* no longer in the file system under this path */
	bool embedded;               /* known by its symbols: another library's file holds it */
	char path[TARGET_PATH_MAX];  /* as the process sees it; "" if it was longer than this */
};

struct target_process {
	uint32_t pid;
	uint32_t uid;
	uint64_t start_ticks; /* since boot; with the pid it names the process */
	char comm[TARGET_COMM_MAX];
	struct target_library *libraries; /* at least one */
	size_t library_count;
};
