/* SPDX-License-Identifier: Apache-2.0 */
/* fake_python.c - a program that says it is CPython 3.11 and whose structures are what a hostile program would make
 * of them, for 11-hostile-python. Usage: python3.11 KIND GATE; it makes allocations while GATE is there, says how many, ends.
 *
 * The structures are laid out as in src/record/python/python_code.c; "honest" is the control. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "cuda_sim.h"
#include "gate.h"

#define WORDS 4096
#define RING  4096 /* threads in a list */
#define DEEP  200000
#define KEPT  __attribute__((used, visibility("default")))

KEPT uint64_t _PyRuntime[64], PyCode_Type[8], PyUnicode_Type[8];
KEPT uint32_t Py_Version = 0x030b07f0;

struct object {
	uint64_t words[WORDS];
};

static struct object interpreter, thread, frames[2], code, name, file, lines;
static struct object *ring;
static volatile int ending;

static void put(void *at, size_t offset, uint64_t value)
{
	memcpy((char *)at + offset, &value, sizeof(value));
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void put_text(struct object *o, const void *data, uint64_t length, unsigned kind, int ascii)
{
	uint32_t state = (kind | 8u | (ascii ? 16u : 0)) << 2;

	put(o, 8, address(PyUnicode_Type));
	put(o, 16, length);
	memcpy((char *)o + 32, &state, sizeof(state));
	if (data)
		memcpy((char *)o + (ascii ? 48 : 72), data, length * kind);
}

static void put_thread(void *t, const void *next, const void *frame)
{
	static struct object cframe;

	put(t, 8, address(next));
	put(t, 16, address(&interpreter));
	put(t, 56, address(&cframe));
	put(t, 152, address((void *)pthread_self()));
	put(t, 160, (uint64_t)syscall(SYS_gettid));
	put(&cframe, 8, address(frame));
}

static void put_frame(void *f, const void *back)
{
	put(f, 32, address(&code));
	put(f, 48, address(back));
	put(f, 56, address(&code) + 184);
	((char *)f)[68] = 1; /* entry */
}

static void make_honest(void)
{
	uint32_t line = 7;

	put(_PyRuntime, 40, address(&interpreter));
	put(&interpreter, 16, address(&thread));
	put_thread(&thread, NULL, &frames[0]);
	put_frame(&frames[0], &frames[1]);
	put_frame(&frames[1], NULL);
	put(&code, 8, address(PyCode_Type));
	put(&code, 112, address(&file));
	put(&code, 128, address(&name));
	put(&code, 136, address(&lines));
	memcpy((char *)&code + 72, &line, sizeof(line));
	put_text(&file, "honest.py", 9, 1, 1);
	put_text(&name, "honest_step", 11, 1, 1);
	put(&lines, 16, 0);
}

/* ---- what a hostile one does ---- */

static void make_loop(void)
{
	put_frame(&frames[1], &frames[0]);
}

static void make_deep(void)
{
	char *many = calloc(DEEP, 128);

	for (size_t i = 0; many && i < DEEP; i++)
		put_frame(many + i * 128, i + 1 < DEEP ? many + (i + 1) * 128 : NULL);
	put_frame(&frames[1], many);
}

static void make_huge(void)
{
	put_text(&name, NULL, 1ULL << 62, 4, 0);
	put_text(&file, NULL, UINT64_MAX, 1, 1);
	put(&lines, 16, UINT64_MAX / 2);
}

/* Escape codes of terminals, ends of lines, NUL, texts that run right to left, no UTF-8, no characters at all. */
static void make_escapes(void)
{
	static const uint32_t wide[] = {0x1b, '[', '2', 'J', 0x1b, ']', '0', ';', 'x', 7, '\n',
		'\r', 0, 0x202e, 0xd800, 0x110000, 0xffffffff, '<', '/', 's', 'c', 'r', 'i', 'p',
		't', '>', 0x9b};
	static const char bytes[] = "\x1b[31mred\x1b[0m\n\r\b\x7f\xff\xc0\xaf'\";--";

	put_text(&name, wide, sizeof(wide) / 4, 4, 0);
	put_text(&file, bytes, sizeof(bytes) - 1, 1, 0);
}

/* Pointers to nowhere: not canonical, the kernel's, unmapped, not readable, over the end of a page. */
static void make_wild(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(page + 4096, 4096);
	put(&code, 112, 0x8000000000000000);
	put(&code, 128, 0xffffffff81000000);
	put(&code, 136, address(page) + 4096 - 20);
	put(&frames[0], 48, address(page) + 4096 - 52);
	put(&frames[1], 32, UINT64_MAX - 7);
}

static void make_ring(void)
{
	put(&thread, 160, 0); /* not this one: look further */
	put(&thread, 8, address(&thread));
	put(&interpreter, 0, address(&interpreter));
}

/* Every word of the interpreter leads to a list as long as a list may be: whoever searches it for the right one reads
 * them all. */
static void make_maze(void)
{
	ring = mmap(NULL, RING * 256ul, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < RING; i++) {
		char *t = (char *)ring + i * 256;

		put_thread(t, i + 1 < RING ? t + 256 : NULL, NULL);
		put(t, 56, 0);
		put(t, 160, i + 1 < RING ? 0 : (uint64_t)syscall(SYS_gettid));
	}
	for (size_t i = 1; i < 2048; i++)
		interpreter.words[i] = address(ring);
	interpreter.words[2] = 0;
}

/* Its memory is a file that somebody delivers, or not. */
static void make_stall(void)
{
	const char *path = getenv("FAKE_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char *memory = fd < 0 ? MAP_FAILED : mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE, fd, 0);

	if (memory != MAP_FAILED)
		put(_PyRuntime, 40, address(memory) + 4096);
}

static void *flicker(void *arg)
{
	struct object *all[] = {
		&interpreter, &thread, &frames[0], &frames[1], &code, &name, &file, &lines};
	uint64_t x = 88172645463325252ULL;

	while (!ending) {
		struct object *o;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		o = all[x % 8];
		o->words[x / 8 % 32] = x % 3 ? address(all[x / 64 % 8]) : x;
		if (x % 64 == 0)
			make_honest();
	}
	return arg;
}

static void make_flicker(void)
{
	pthread_t t;

	pthread_create(&t, NULL, flicker, NULL);
	pthread_detach(t);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *kind;
		void (*make)(void);
	} kinds[] = {{"honest", NULL}, {"loop", make_loop}, {"deep", make_deep},
		{"huge", make_huge}, {"escapes", make_escapes}, {"wild", make_wild},
		{"ring", make_ring}, {"maze", make_maze}, {"flicker", make_flicker},
		{"stall", make_stall}};
	long calls = 0;

	if (argc != 3)
		return 64;
	make_honest();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].kind, argv[1]) && kinds[i].make)
			kinds[i].make();
	gate_wait(argv[2]);
	for (; !access(argv[2], F_OK); calls++) {
		void *p = NULL;

		cudaMalloc(&p, 4096);
		cudaFree(p);
		usleep(1000);
	}
	ending = 1;
	printf("%ld\n", calls);
	fflush(stdout); /* one whose memory does not answer may never end */
	return 0;
}
