/* SPDX-License-Identifier: Apache-2.0 */
/* stack_bent.c - CUDA calls with a frame pointer that leads into memory which another thread keeps
 * rewriting: into rings, nowhere, and up and down. Usage: stack_bent GATE.
 *
 * The function in between is written in assembly without unwind information, so that walks go by
 * the pointer. It restores it, so the program itself is sound. */
#include <pthread.h>
#include <stdint.h>

#include "cuda_sim.h"
#include "gate.h"

#define KEEP  __attribute__((noinline, noclone))
#define END   __asm__ volatile("" ::: "memory")
#define WORDS 512

enum { SIZE_BENT = 700001, SIZE_STRAIGHT };

/* call_bent - call(size) with the frame pointer @fp. */
void call_bent(void *fp, void (*call)(size_t size), size_t size);
#if defined(__aarch64__)
__asm__(".text\n.global call_bent\n.type call_bent, %function\ncall_bent:\n"
	"stp x29, x30, [sp, -16]!\n"
	"mov x29, x0\nmov x0, x2\nblr x1\n"
	"ldp x29, x30, [sp], 16\nret\n.size call_bent, . - call_bent\n");
#else
__asm__(".text\n.global call_bent\n.type call_bent, @function\ncall_bent:\n"
	"push %rbp\nmov %rdi, %rbp\nmov %rdx, %rdi\ncall *%rsi\n"
	"pop %rbp\nret\n.size call_bent, . - call_bent\n");
#endif

static volatile uint64_t *volatile words; /* in main's frame */
static volatile int over;

KEEP static void take(size_t size)
{
	void *p = NULL;

	cudaMalloc(&p, size); /* @take */
	cudaFree(p);
	END;
}

/* Pair @at leads to @next and says that it returns to where the pointer is followed again. */
static void pair(unsigned at, uint64_t next)
{
	words[at] = next;
	words[at + 1] = (uint64_t)(uintptr_t)call_bent + 8;
}

static void bend(unsigned how)
{
	uint64_t base = (uint64_t)(uintptr_t)words;

	switch (how % 7) {
	case 0: pair(0, base); break; /* to itself */
	case 1:
		pair(0, base + 64);
		pair(8, base); /* to and fro */
		break;
	case 2: pair(0, 8); break;
	case 3: pair(0, UINT64_MAX - 7); break;
	case 4: pair(0, base + (15 << 20)); break; /* beyond the stack */
	case 5: pair(0, base + 3); break;
	default:
		for (unsigned i = 0; i + 4 <= WORDS; i += 2) /* long, then back */
			pair(i, i + 6 <= WORDS ? base + 8 * (i + 2) : base);
	}
}

static void *bender(void *arg)
{
	for (unsigned how = 0; !over; how++) {
		bend(how / 64);
		if (how % 4096 == 0)
			usleep(500);
	}
	return arg;
}

int main(int argc, char **argv)
{
	volatile uint64_t room[WORDS] = {0};
	pthread_t thread;

	if (argc != 2)
		return 64;
	words = room;
	pthread_create(&thread, NULL, bender, NULL);
	gate_wait(argv[1]);
	while (gate_round(argv[1])) {
		for (int i = 0; i < 20; i++)
			call_bent((void *)(uintptr_t)room, take, SIZE_BENT);
		take(SIZE_STRAIGHT); /* @main */
		END;
	}
	over = 1;
	pthread_join(thread, NULL);
	return (int)room[WORDS - 1] & 0;
}
