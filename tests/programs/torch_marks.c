/* SPDX-License-Identifier: Apache-2.0 */
/* torch_marks.c - a training loop as PyTorch's own functions see it. Usage: torch_marks [old] GATE.
 * Every round asks for a batch, runs one backward pass and an optimizer's step, and calls what is
 * no mark. "old": with strings of the old ABI, behind which 0 stands, where the others have their size. The number
 * of rounds is printed. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_sim.h"
#include "gate.h"
#include "torch_standin.h"

static bool is_old;

static __attribute__((noinline)) void enter(const char *name)
{
	struct torch_string s = {.data = name, .size = strlen(name)};
	struct {
		struct torch_old_string s;
		unsigned long behind;
	} old = {.s.data = name};
	struct torch_handle h = is_old ? torch_enter_old(&old.s, NULL) : torch_enter(&s, NULL);

	__asm__ volatile("" : : "r"(&h) : "memory");
}

static __attribute__((noinline)) void training_step(int round)
{
	void *p;

	enter("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	cudaMalloc(&p, 4096);
	cudaFree(p);
	enter("Optimizer.zero_grad#AdamW.zero_grad");
	torch_execute(round);
	enter("Optimizer.step#AdamW.step"); /* @optimizer */
	enter("Optimizer.ste");
	enter("mine");
	enter("");
}

int main(int argc, char **argv)
{
	int rounds = 0;

	is_old = argc > 2 && !strcmp(argv[1], "old");
	gate_wait(argv[argc - 1]);
	while (gate_round(argv[argc - 1]))
		training_step(rounds++);
	printf("%d\n", rounds);
	return 0;
}
