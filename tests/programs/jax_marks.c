/* SPDX-License-Identifier: Apache-2.0 */
/* jax_marks.c - a loop of a compiled step, as JAX's own library sees it. Usage: jax_marks GATE. The number of rounds is
 * printed. */
#include "cuda_sim.h"
#include "gate.h"
#include "jax_standin.h"

int main(int argc, char **argv)
{
	int rounds = 0;
	void *p;

	gate_wait(argv[1]);
	while (gate_round(argv[1])) {
		cudaMalloc(&p, 4096);
		cudaFree(p);
		jax_call(rounds++);
	}
	printf("%d\n", rounds);
	return 0;
}
