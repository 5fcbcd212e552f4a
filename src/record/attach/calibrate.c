/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - a child process calls a function of this very program; it is entered as a target, so its hits take the
 * whole path that a launch takes (but for the ring: most launches do not). Times are CPU time, and the middle one of many
 * short rounds: the least is that of caches which no program has. */
#include "record/attach/calibrate.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/attach/uprobe.h"

#define CALLS  500
#define ROUNDS 40

/* The function that is probed. It begins as the functions of the CUDA libraries do, by saving
 * registers: what lies under a probe decides most of its cost (on x86-64 a push is emulated by the
 * kernel, an endbr64 is single-stepped for four times as much in all). */
int calibrate_target(int n);

#if defined(__x86_64__)
#define BODY "push %rbp\n pop %rbp\n mov %edi, %eax\n ret\n"
#else
#define BODY "stp x29, x30, [sp, #-16]!\n ldp x29, x30, [sp], #16\n ret\n"
#endif
__asm__(".text\n .globl calibrate_target\n .type calibrate_target, %function\n"
	"calibrate_target:\n" BODY ".size calibrate_target, . - calibrate_target\n");

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t middle_round(void)
{
	uint64_t took[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		uint64_t start = cpu_now_ns();

		for (int i = 0; i < CALLS; i++)
			calibrate_target(i);
		took[r] = cpu_now_ns() - start;
	}
	qsort(took, ROUNDS, sizeof(took[0]), compare_ns);
	return took[ROUNDS / 2];
}

/* The child waits for a byte, runs, and answers with its time. */
static void child(int in, int out)
{
	uint64_t ns;
	char go;

	while (read(in, &go, 1) == 1) {
		ns = middle_round();
		if (write(out, &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static int ask(int to, int from, uint64_t *ret)
{
	if (write(to, "g", 1) != 1 || read(from, ret, sizeof(*ret)) != sizeof(*ret))
		return -EIO;
	return 0;
}

/* Where the function lies in this program's file, by the segments that the kernel mapped. */
static int function_offset(uint64_t *ret)
{
	const Elf64_Phdr *first = (const void *)getauxval(AT_PHDR);
	size_t count = getauxval(AT_PHNUM);
	uint64_t at = (uintptr_t)calibrate_target, base = 0;

	for (size_t i = 0; first && i < count; i++)
		if (first[i].p_type == PT_PHDR)
			base = (uintptr_t)first - first[i].p_vaddr;
	for (size_t i = 0; first && i < count; i++) {
		const Elf64_Phdr *h = &first[i];

		if (h->p_type != PT_LOAD || at - base - h->p_vaddr >= h->p_filesz)
			continue;
		*ret = at - base - h->p_vaddr + h->p_offset;
		return 0;
	}
	return -ENOENT;
}

static int measure(struct probe *p, pid_t pid, int to, int from, double *ret)
{
	union wire_cookie k = {.source = CALIBRATE_SOURCE, .op = 1};
	struct uprobe_point point = {.cookie = k.word};
	struct uprobe *u = NULL;
	struct wire_tally tally;
	uint64_t bare, probed;
	int r = function_offset(&point.offset);

	probe_limit_set(p, CALIBRATE_SOURCE, 1, UINT64_MAX);
	if (r == 0)
		r = ask(to, from, &bare);
	if (r == 0)
		r = probe_target_add(p, (uint32_t)pid);
	if (r == 0)
		r = uprobe_attach(p, "/proc/self/exe", &point, 1, &u, NULL);
	if (r < 0)
		return r;
	r = ask(to, from, &probed);
	uprobe_detach_all(&u, 1);
	probe_target_remove(p, (uint32_t)pid); /* its end is nobody's event */
	if (r < 0)
		return r;
	probe_tally(p, CALIBRATE_SOURCE, &tally);
	if (tally.hits < CALLS)
		return -ENODATA;
	*ret = probed > bare ? (double)(probed - bare) / CALLS : 0;
	return 0;
}

int calibrate_hit_ns(struct probe *p, double *ret)
{
	int down[2] = {-1, -1}, up[2] = {-1, -1}, r;
	pid_t pid;

	if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(down[1]);
		close(up[0]);
		child(down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	r = pid < 0 ? -errno : measure(p, pid, down[1], up[0], ret);
	close(down[1]);
	close(up[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return r;
}
