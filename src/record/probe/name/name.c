/* SPDX-License-Identifier: Apache-2.0 */
/* name.c - where kernels get their names. Compiled programs register theirs when they are loaded; what
 * is compiled while the program runs (Triton, NVRTC) is asked for by name from the driver, as are the
 * kernels of libraries that hold a runtime of their own (cuBLAS, cuDNN, NCCL). */
#include "record/probe/mark/mark.h"

#include <stddef.h>

#define AT(hook_, symbol_)                                                                         \
	{                                                                                          \
		.hook = (hook_), .symbol = (symbol_)                                               \
	}
#define RETURN(symbol_)                                                                            \
	{                                                                                          \
		.hook = HOOK_HANDLE_END, .symbol = (symbol_), .at_return = true                    \
	}
#define END                                                                                        \
	{                                                                                          \
		.hook = HOOK_NONE                                                                  \
	}

static const struct mark_place cudart[] = {
	AT(HOOK_REGISTER, "__cudaRegisterFunction"),
	AT(HOOK_ALIAS, "__cudaGetKernel"),
	AT(HOOK_ALIAS, "cudaGetKernel"),
	AT(HOOK_ALIAS, "cudaGetFuncBySymbol"),
	AT(HOOK_HANDLE, "cudaLibraryGetKernel"),
	RETURN("__cudaGetKernel"),
	RETURN("cudaGetKernel"),
	RETURN("cudaGetFuncBySymbol"),
	RETURN("cudaLibraryGetKernel"),
	END,
};

static const struct mark_place cuda[] = {
	AT(HOOK_HANDLE, "cuModuleGetFunction"),
	AT(HOOK_HANDLE, "cuLibraryGetKernel"),
	AT(HOOK_ALIAS, "cuKernelGetFunction"),
	RETURN("cuModuleGetFunction"),
	RETURN("cuLibraryGetKernel"),
	RETURN("cuKernelGetFunction"),
	END,
};

const struct mark_library mark_cudart_names = {
	"libcudart", NULL, cudart, "has no __cudaRegisterFunction()"};
const struct mark_library mark_cuda_names = {"libcuda", NULL, cuda, "has no cuModuleGetFunction()"};
