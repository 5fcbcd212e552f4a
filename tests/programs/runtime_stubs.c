/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_stubs.c - functions of the CUDA runtime that only lead to those of a libcudart that is loaded
 * later. As JAX and TensorFlow have them: assembled, without a size. Or, with -DWRAPPER, compiled.
 *
 * runtime_load(path) loads it; 0: done. */
#include <dlfcn.h>
#include <stddef.h>

#define EACH(X)                                                                                    \
	X(cudaMalloc)                                                                              \
	X(cudaFree)                                                                                \
	X(cudaMemcpyAsync)                                                                         \
	X(cudaLaunchKernel)                                                                        \
	X(cudaStreamSynchronize)

typedef int function(long a, long b, long c, long d, long e, long f);

#ifdef WRAPPER
#define X(name)                                                                                    \
	static function *at_##name;                                                                \
	int name(long a, long b, long c, long d, long e, long f);                                  \
	int name(long a, long b, long c, long d, long e, long f)                                   \
	{                                                                                          \
		return at_##name(a, b, c, d, e, f);                                                \
	}
#else
#ifdef __x86_64__
#define LEAD(name) "jmp *at_" #name "(%rip)\n"
#else
#define LEAD(name) "adrp x16, at_" #name "\nldr x16, [x16, :lo12:at_" #name "]\nbr x16\n"
#endif
#define X(name)                                                                                    \
	__attribute__((used, visibility("hidden"))) function *at_##name;                           \
	__asm__(".text\n.globl " #name "\n.type " #name ", %function\n.p2align 4\n" #name          \
		":\n" LEAD(name));
#endif
EACH(X)
#undef X

int runtime_load(const char *path);
int runtime_load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		return -1;
#define X(name)                                                                                    \
	at_##name = (function *)dlsym(library, #name);                                             \
	if (!at_##name)                                                                            \
		return -1;
	EACH(X)
#undef X
	return 0;
}
