// SPDX-License-Identifier: Apache-2.0
/* stack_plugin.c - a library that stack_plugins.c loads. -DSHIFTED puts other code before it: the
 * same functions, elsewhere. */
#include <stddef.h>

#include "cuda_sim.h"

#define KEEP __attribute__((noinline, noclone))
#define END  __asm__ volatile("" ::: "memory")

void plugin_call(size_t size);

#if defined(SHIFTED) /* or REPLACED: another build, the same code */
KEEP __attribute__((used)) static void another_function(void)
{
	__asm__ volatile(".rept 2000; nop; .endr");
}
#endif

KEEP static void *plugin_inner(size_t size)
{
	void *p = NULL;

	cudaMalloc(&p, size); /* @plugin_inner */
	END;
	return p;
}

void plugin_call(size_t size)
{
	void *p = plugin_inner(size); /* @plugin_call */

	cudaFree(p);
	END;
}
