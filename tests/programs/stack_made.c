/* SPDX-License-Identifier: Apache-2.0 */
/* stack_made.c - CUDA calls by way of machine code that it writes itself, as a JIT compiler does,
 * with names in /tmp/perf-PID.map. Usage: stack_made GATE.
 *
 * The code keeps a frame pointer and calls what it is given. A second function is made after some
 * rounds, a third one later. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda_sim.h"
#include "gate.h"

#define KEEP __attribute__((noinline, noclone))
#define END  __asm__ volatile("" ::: "memory")

enum { SIZE_FIRST = 600001, SIZE_SECOND, SIZE_THIRD };
#define COUNT 3

typedef void made_function(size_t size, void (*call)(size_t size));

#if defined(__aarch64__)
static const uint32_t code[] = {
	0xa9bf7bfd, /* stp x29, x30, [sp, -16]! */
	0x910003fd, /* mov x29, sp */
	0xd63f0020, /* blr x1 */
	0xa8c17bfd, /* ldp x29, x30, [sp], 16 */
	0xd65f03c0, /* ret */
};
#else
static const uint8_t code[] = {
	0x55,             /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0xff, 0xd6,       /* call *%rsi */
	0x5d,             /* pop %rbp */
	0xc3,             /* ret */
};
#endif

static const char *const names[COUNT] = {"first_made", "second made, with spaces", "third_made"};
static const int rounds_before[COUNT] = {0, 60, 300};
static made_function *made[COUNT];

static void make(unsigned k)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	if (page == MAP_FAILED)
		exit(1);
	memcpy(page, code, sizeof(code));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0)
		exit(2);
	__builtin___clear_cache((char *)page, (char *)page + sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "a");
	if (!map)
		exit(3);
	fprintf(map, "%lx %lx %s\n", (unsigned long)(uintptr_t)page, (unsigned long)sizeof(code),
		names[k]);
	fclose(map);
	made[k] = (made_function *)page;
}

KEEP static void take(size_t size)
{
	void *p = NULL;

	cudaMalloc(&p, size); /* @take */
	cudaFree(p);
	END;
}

KEEP static void call_made(unsigned k)
{
	made[k](SIZE_FIRST + k, take); /* @call_made */
	END;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 64;
	gate_wait(argv[1]);
	for (int round = 0; gate_round(argv[1]); round++)
		for (unsigned k = 0; k < COUNT && round >= rounds_before[k]; k++) {
			if (!made[k])
				make(k);
			call_made(k); /* @main */
		}
	return 0;
}
