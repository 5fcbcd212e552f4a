/* SPDX-License-Identifier: Apache-2.0 */
/* jax_standin.c - JAX's libraries as far as marks need them: the function that starts what was compiled is not exported,
 * and known by .symtab only. EXECUTE is its C++ name. */
#include "jax_standin.h"

#include "export.h"

int jax_execute(int round) __asm__(EXECUTE);

__attribute__((visibility("hidden"), noinline)) int jax_execute(int round)
{
	__asm__ volatile("" : "+r"(round));
	return round + 1;
}

SIM_EXPORT int jax_call(int round)
{
	return jax_execute(round) + 1;
}
