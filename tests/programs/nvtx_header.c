/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx_header.c - a program with NVTX compiled into it, as its headers do it: function pointers of its own
 * that are empty, unless a library named by NVTX_INJECTION64_PATH fills them. Without one its calls
 * end in the program. Linked with the stand-in runtime, so that it is traced.
 *
 *   nvtx_header FILE N   creates FILE.ready, waits for FILE, makes N ranges of each kind */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void function(void);

static function *mark_a, *push_a, *pop, *start_a, *end;
static function **core[16] = {
	[2] = &mark_a, [5] = &start_a, [7] = &end, [9] = &push_a, [11] = &pop};

static int functions(int module, function ****ret_table, unsigned *ret_count)
{
	if (module != 1)
		return 0;
	*ret_table = core;
	*ret_count = 16;
	return 1;
}

static const struct {
	size_t size;
	int (*functions)(int module, function ****ret_table, unsigned *ret_count);
} callbacks = {sizeof(callbacks), functions};

static const void *table(uint32_t id)
{
	return id == 1 ? &callbacks : NULL;
}

static void load(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*begin)(const void *(*)(uint32_t)) =
		library ? (int (*)(const void *(*)(uint32_t)))dlsym(
				  library, "InitializeInjectionNvtx2")
			: NULL;

	printf("injected %d\n", begin ? begin(table) : 0);
}

int cudaDeviceSynchronize(void);

static void make(const char *range, const char *mark, const char *span)
{
	if (push_a)
		((int (*)(const char *))push_a)(range);
	if (mark_a)
		((void (*)(const char *))mark_a)(mark);
	if (pop)
		((int (*)(void))pop)();
	if (start_a && end)
		((void (*)(uint64_t))end)(((uint64_t(*)(const char *))start_a)(span));
}

int main(int argc, char **argv)
{
	char ready[4096];
	FILE *f;

	if (argc != 3)
		return 64;
	load();
	snprintf(ready, sizeof(ready), "%s.ready", argv[1]);
	f = fopen(ready, "w");
	if (!f)
		return 1;
	fclose(f);
	/* Until the tracer has seen one of each: it may have missed the first. */
	while (access(argv[1], F_OK)) {
		cudaDeviceSynchronize();
		make("waiting", "waiting", "waiting");
		usleep(1000);
	}
	for (int i = 0; i < atoi(argv[2]); i++)
		make("from a header", "mark of a header", "span of a header");
	return 0;
}
