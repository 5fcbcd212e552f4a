// SPDX-License-Identifier: Apache-2.0
/* stack_plugins.c - loads libraries while it runs. Usage: stack_plugins GATE.
 *
 * In each round it looks for GATE.<name>.so, loads it once and calls its plugin_call() from then
 * on, with a size of its own. "deleted" is removed after it was loaded, "replaced" has GATE.other
 * put in its place. Once GATE.many63.so is there, GATE.many0.so to it are loaded all at once. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_sim.h"
#include "gate.h"

#define KEEP __attribute__((noinline, noclone))
#define END  __asm__ volatile("" ::: "memory")
#define SIZE 300000

typedef void plugin_call(size_t size);

static const char *const names[] = {"late", "deleted", "replaced", "stripped", "copy", "broken"};
#define COUNT (sizeof(names) / sizeof(*names))
#define MANY  64

static plugin_call *calls[COUNT + MANY];

static void *open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return library;
}

static void load(const char *gate, unsigned k)
{
	char path[4096], other[4096];
	void *library;

	snprintf(path, sizeof(path), "%s.%s.so", gate, names[k]);
	snprintf(other, sizeof(other), "%s.other", gate);
	if (access(path, F_OK) != 0)
		return;
	library = open_library(path);
	if (!strcmp(names[k], "deleted"))
		unlink(path);
	if (!strcmp(names[k], "replaced") && rename(other, path) != 0)
		exit(2);
	calls[k] = (plugin_call *)dlsym(library, "plugin_call");
}

static void load_many(const char *gate)
{
	char path[4096];

	for (int k = MANY - 1; k >= 0; k--) {
		snprintf(path, sizeof(path), "%s.many%d.so", gate, k);
		if (access(path, F_OK) != 0)
			return;
		calls[COUNT + (unsigned)k] =
			(plugin_call *)dlsym(open_library(path), "plugin_call");
	}
}

KEEP static void in_program(size_t size)
{
	void *p = NULL;

	cudaMalloc(&p, size); /* @in_program */
	cudaFree(p);
	END;
}

KEEP static void call_plugin(unsigned k)
{
	calls[k](SIZE + k); /* @call_plugin */
	END;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 64;
	gate_wait(argv[1]);
	while (gate_round(argv[1])) {
		for (unsigned k = 0; k < COUNT + MANY; k++) {
			if (calls[k])
				call_plugin(k); /* @main */
			else if (k < COUNT)
				load(argv[1], k);
		}
		if (!calls[COUNT])
			load_many(argv[1]);
		in_program(SIZE + 999); /* @main_own */
		END;
	}
	return 0;
}
