// SPDX-License-Identifier: Apache-2.0
/* stack_calls.c - CUDA calls from many kinds of places, for 1?-stacks. Usage: stack_calls GATE.
 *
 * The size of an allocation says which place it is from. A comment of the form "@name" ends the
 * line of each call that the test expects in a stack; the test finds its number. Functions are kept
 * apart with KEEP and END: nothing is inlined or jumped to that should be called. */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cuda_sim.h"
#include "gate.h"

#define KEEP __attribute__((noinline, noclone))
#define END  __asm__ volatile("" ::: "memory") /* work after a call: it is no jump */

enum {
	SIZE_CHAIN = 100001,
	SIZE_INLINE,
	SIZE_TAIL,
	SIZE_TAIL_LAST,
	SIZE_DEEP,
	SIZE_LARGE,
	SIZE_ALLOCA,
	SIZE_SORT,
	SIZE_THREAD_ONE,
	SIZE_THREAD_TWO,
	SIZE_THREAD_THREE,
	SIZE_SIGNAL,
	SIZE_CHILD,
	SIZE_BRIEF_CHILD,
	SIZE_LEAVE,
	SIZE_ERROR,
};
#define SIZE_TOO_LARGE (1ULL << 50)

static const char *gate;
static volatile unsigned calls;

KEEP static void release(void *p)
{
	cudaFree(p);
	END;
}

/* ---- a chain ---- */

KEEP static void *chain_three(size_t size)
{
	void *p = NULL;

	cudaMalloc(&p, size); /* @chain_three */
	END;
	return p;
}

KEEP static void *chain_two(size_t size)
{
	void *p = chain_three(size); /* @chain_two */

	calls++;
	return p;
}

KEEP static void chain_one(size_t size)
{
	release(chain_two(size)); /* @chain_one */
	END;
}

/* ---- inlined functions ---- */

__attribute__((always_inline)) static inline void inlined_always(size_t size, void **p)
{
	cudaMalloc(p, size); /* @inlined_always */
}

static inline void inlined_too(size_t size, void **p)
{
	calls++;
	inlined_always(size, p); /* @inlined_too */
	calls++;
}

KEEP static void inline_outer(void)
{
	void *p = NULL;

	inlined_too(SIZE_INLINE, &p); /* @inline_outer */
	release(p);
	END;
}

/* ---- jumps in place of calls ---- */

static void *tail_pointer;

KEEP static int tail_second(size_t size)
{
	cudaMalloc(&tail_pointer, size); /* @tail_second */
	END;
	return 1;
}

KEEP static int tail_first(size_t size)
{
	calls++;
	return tail_second(size);
}

KEEP static int tail_into_library(size_t size)
{
	calls++;
	return cudaMalloc(&tail_pointer, size);
}

KEEP static void tails(void)
{
	tail_first(SIZE_TAIL); /* @tails_first */
	release(tail_pointer);
	tail_into_library(SIZE_TAIL_LAST); /* @tails_into_library */
	release(tail_pointer);
	END;
}

/* ---- depth and size ---- */

KEEP static void deep(int levels)
{
	void *p = NULL;

	if (levels)
		deep(levels - 1); /* @deep */
	else {
		cudaMalloc(&p, SIZE_DEEP); /* @deep_end */
		release(p);
	}
	END;
}

KEEP static void large_frame(void)
{
	volatile char room[1 << 20];
	void *p = NULL;

	room[0] = room[sizeof(room) - 1] = 1;
	cudaMalloc(&p, SIZE_LARGE); /* @large_frame */
	release(p);
	calls += room[0];
}

KEEP static void alloca_frame(size_t bytes)
{
	volatile char *room = alloca(bytes);
	void *p = NULL;

	room[0] = room[bytes - 1] = 1;
	cudaMalloc(&p, SIZE_ALLOCA); /* @alloca_frame */
	release(p);
	calls += room[0];
}

/* ---- called back by the C library ---- */

static int compare(const void *a, const void *b)
{
	void *p = NULL;

	cudaMalloc(&p, SIZE_SORT); /* @compare */
	release(p);
	END;
	return *(const int *)a - *(const int *)b;
}

KEEP static void sorter(void)
{
	int numbers[] = {2, 1};

	qsort(numbers, 2, sizeof(*numbers), compare); /* @sorter */
	END;
}

static void on_signal(int number)
{
	void *p = NULL;

	cudaMalloc(&p, SIZE_SIGNAL); /* @on_signal */
	release(p);
	END;
}

KEEP static void raiser(void)
{
	raise(SIGUSR1); /* @raiser */
	END;
}

/* ---- threads and children ---- */

#define THREAD(name, size)                                                                         \
	KEEP static void name##_call(void)                                                         \
	{                                                                                          \
		void *p = NULL;                                                                    \
                                                                                                   \
		cudaMalloc(&p, size);                                                              \
		release(p);                                                                        \
		END;                                                                               \
	}                                                                                          \
                                                                                                   \
	static void *name(void *arg)                                                               \
	{                                                                                          \
		while (gate_round(gate)) {                                                         \
			name##_call();                                                             \
			END;                                                                       \
		}                                                                                  \
		return arg;                                                                        \
	}

THREAD(thread_one, SIZE_THREAD_ONE)
THREAD(thread_two, SIZE_THREAD_TWO)
THREAD(thread_three, SIZE_THREAD_THREE)

KEEP static void in_child(size_t size)
{
	void *p = NULL;

	cudaMalloc(&p, size); /* @in_child */
	if (p)
		release(p);
	END;
}

KEEP static void brief_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		in_child(SIZE_BRIEF_CHILD); /* @brief_child */
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* ---- a call that is the last instruction of its function, and calls that fail ---- */

static jmp_buf back;

__attribute__((noinline, noclone, noreturn)) static void leave(void)
{
	void *p = NULL;

	cudaMalloc(&p, SIZE_LEAVE); /* @leave */
	release(p);
	longjmp(back, 1);
}

__attribute__((noinline, noclone, noreturn)) static void calls_leave(void)
{
	calls++;
	leave(); /* @calls_leave */
}

KEEP static void leaver(void)
{
	if (!setjmp(back))
		calls_leave(); /* @leaver */
}

KEEP static void fails(void)
{
	void *p = NULL;

	cudaMemcpy(&p, &p, SIZE_ERROR, 77); /* @fails_copy */
	cudaMalloc(&p, SIZE_TOO_LARGE);     /* @fails_malloc */
	END;
}

KEEP static void rounds(void)
{
	while (gate_round(gate)) {
		chain_one(SIZE_CHAIN); /* @rounds_chain */
		inline_outer();        /* @rounds_inline */
		tails();               /* @rounds_tails */
		deep(200);
		large_frame();                   /* @rounds_large */
		alloca_frame(70000 + calls % 7); /* @rounds_alloca */
		sorter();                        /* @rounds_sorter */
		raiser();                        /* @rounds_raiser */
		leaver();                        /* @rounds_leaver */
		fails();                         /* @rounds_fails */
		if (calls % 5 == 0)
			brief_child(); /* @rounds_brief */
		END;
	}
}

int main(int argc, char **argv)
{
	void *(*const functions[])(void *) = {thread_one, thread_two, thread_three};
	pthread_t threads[3];
	pid_t child;

	if (argc != 2)
		return 64;
	gate = argv[1];
	gate_wait(gate);
	child = fork();
	if (child == 0) {
		while (gate_round(gate))
			in_child(SIZE_CHILD); /* @main_child */
		_exit(0);
	}
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, functions[i], NULL);
	rounds(); /* @main_rounds */
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	waitpid(child, NULL, 0);
	return 0;
}
