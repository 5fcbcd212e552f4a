// SPDX-License-Identifier: Apache-2.0
/* names.c - sim-names: kernels with known names, launched prime numbers of times, and NVTX ranges.
 *
 *   kernels: registered (by the compiler's way), asked for by name, renamed, and one that nobody names
 *   ranges: of each kind, nested, of a domain, with hostile names, from a start to an end elsewhere
 *
 * It prints what it did, one line each, for tests to compare. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_sim.h"
#include "../src/nvtx/nvtx.h"
#include "options.h"
#include "workload.h"

static struct settings {
	const char *wait_start;
	uint64_t kernels, aliases, ranges, flood, deep, fill;
	bool forks;
} settings;

#define FIELD(f) offsetof(struct settings, f)
static const struct option_row rows[] = {
	{"kernels", OPTION_NUMBER, FIELD(kernels), "launch kernels with names, times this", 0, 1e6,
		0},
	{"aliases", OPTION_NUMBER, FIELD(aliases),
		"launch one kernel in so many contexts, asking for its handle each time", 0, 64, 0},
	{"ranges", OPTION_NUMBER, FIELD(ranges), "NVTX ranges of each kind", 0, 1e6, 0},
	{"flood", OPTION_NUMBER, FIELD(flood), "ranges as fast as possible", 0, 1e7, 0},
	{"deep", OPTION_NUMBER, FIELD(deep), "ranges inside each other", 0, 1000, 0},
	{"register", OPTION_NUMBER, FIELD(fill), "register so many kernels that are not launched",
		0, 1e6, 0},
	{"fork", OPTION_SWITCH, FIELD(forks), "launch in a child that registered nothing", 0, 0, 0},
	{"wait-start", OPTION_TEXT, FIELD(wait_start), "create FILE.ready, wait for FILE", 0, 0, 0},
	{NULL, 0, 0, NULL, 0, 0, 0},
};

static const struct sim_kernel add = {SIM_KERNEL_MAGIC, 0}, softmax = {SIM_KERNEL_MAGIC, 0},
			       hostile = {SIM_KERNEL_MAGIC, 0}, nameless = {SIM_KERNEL_MAGIC, 0},
			       lengthy = {SIM_KERNEL_MAGIC, 0};
static const dim3 one = {1, 1, 1};

static char long_name[4096];

static const struct {
	const struct sim_kernel *kernel;
	const char *name; /* NULL: it is not registered */
	unsigned times;
} table[] = {
	{&add, "_ZN2at6native13elementwise_kIfLi4EEEvPT_i", 101},
	{&softmax, "softmax_warp_forward", 53},
	{&hostile, "<b>\"'; DROP TABLE events;--\033[31m\n", 31},
	{&lengthy, long_name, 17},
	{&nameless, NULL, 29},
};

#define KERNELS (sizeof(table) / sizeof(table[0]))

static void check(int r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "sim-names: %s failed: %d\n", what, r);
	exit(1);
}

static void register_kernels(void)
{
	static char spare[1 << 20];

	memset(long_name, 'k', sizeof(long_name) - 1);
	for (size_t i = 0; i < KERNELS; i++)
		if (table[i].name)
			__cudaRegisterFunction(NULL, (const char *)table[i].kernel, NULL,
				table[i].name, -1, NULL, NULL, NULL, NULL, NULL);
	for (size_t i = 0; i < settings.fill && i < sizeof(spare); i++)
		__cudaRegisterFunction(
			NULL, spare + i, NULL, "never_launched", -1, NULL, NULL, NULL, NULL, NULL);
}

static void launch_handle(const char *name, uint64_t times)
{
	CUfunction f;

	check(cuModuleGetFunction(&f, NULL, name), "cuModuleGetFunction");
	for (uint64_t i = 0; i < times; i++)
		check(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
	printf("kernel %s %llu handle\n", name, (unsigned long long)times);
}

/* As libraries do that hold no handles: each launch asks for that of the context, a new one here
 * after SIM_ALIAS_CALLS. */
static void launch_aliases(void)
{
	CUfunction kernel, f, last = NULL;

	check(cudaLaunchKernel(&add, one, one, NULL, 0, NULL), "launch"); /* so that it is traced */
	check(cuModuleGetFunction(&kernel, NULL, "asked_for_each_time"), "cuModuleGetFunction");
	for (uint64_t i = 0; i < settings.aliases * SIM_ALIAS_CALLS; i++) {
		check(cuKernelGetFunction(&f, kernel), "cuKernelGetFunction");
		check(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
		if (f != last)
			printf("alias %llu\n", (unsigned long long)(uintptr_t)f);
		last = f;
	}
	fflush(stdout);
}

static void launch_all(void)
{
	for (size_t i = 0; i < KERNELS; i++) {
		uint64_t times = table[i].times * settings.kernels;

		for (uint64_t k = 0; k < times; k++)
			check(cudaLaunchKernel(table[i].kernel, one, one, NULL, 0, NULL), "launch");
		printf("function %llu %llu\n", (unsigned long long)(uintptr_t)table[i].kernel,
			(unsigned long long)times);
	}
	launch_handle("triton_poi_fused_add_0", 41 * settings.kernels);
	launch_handle("_Z9jit_scalePfi", 37 * settings.kernels);
	check(cudaDeviceSynchronize(), "synchronise");
	fflush(stdout);
}

static uint64_t started;

static void *end_elsewhere(void *arg)
{
	nvtxRangeEnd(started);
	return NULL;
}

static void range_round(void *domain, void *string)
{
	struct nvtx_attributes text = {.version = NVTX_VERSION,
		.size = sizeof(text),
		.message_type = NVTX_MESSAGE_ASCII,
		.message = "attributes"};
	struct nvtx_attributes registered = text, wide = text;
	pthread_t thread;

	registered.message_type = NVTX_MESSAGE_REGISTERED;
	registered.message = string;
	wide.message_type = NVTX_MESSAGE_WIDE;
	wide.message = L"wide \x00e9!";
	nvtxRangePushA("outer");
	nvtxRangePushW(L"wide");
	nvtxRangePushEx(&text);
	nvtxDomainRangePushEx(domain, &registered);
	usleep(100);
	nvtxDomainRangePop(domain);
	nvtxRangePop();
	nvtxRangePop();
	nvtxMarkA("moment");
	nvtxMarkEx(&wide);
	nvtxRangePop();
	started = nvtxRangeStartA("elsewhere");
	if (pthread_create(&thread, NULL, end_elsewhere, NULL) == 0)
		pthread_join(thread, NULL);
	nvtxRangePushA("<script>alert(1)</script>\033[2J\n\xff");
	nvtxRangePop();
	nvtxRangePop(); /* one too many: nothing */
}

static void ranges(void)
{
	void *domain = nvtxDomainCreateA("my domain");
	void *string = nvtxDomainRegisterStringA(domain, "registered string");

	check(cudaLaunchKernel(&add, one, one, NULL, 0, NULL), "launch"); /* so that it is traced */
	for (uint64_t i = 0; i < settings.ranges; i++)
		range_round(domain, string);
	for (uint64_t i = 0; i < settings.deep; i++)
		nvtxRangePushA("deep");
	for (uint64_t i = 0; i < settings.deep; i++)
		nvtxRangePop();
	for (uint64_t i = 0; i < settings.flood; i++) {
		nvtxRangePushA("flood");
		nvtxRangePop();
	}
	printf("ranges %llu deep %llu flood %llu\n", (unsigned long long)settings.ranges,
		(unsigned long long)settings.deep, (unsigned long long)settings.flood);
}

int main(int argc, char **argv)
{
	pid_t child;

	options_parse(rows, argc, argv, "kernels and ranges with known names", &settings);
	workload_catch_signals();
	register_kernels();
	workload_gate(settings.wait_start);
	if (settings.forks && (child = fork()) != 0)
		return waitpid(child, NULL, 0) != child;
	if (settings.kernels)
		launch_all();
	if (settings.aliases)
		launch_aliases();
	if (settings.ranges || settings.flood || settings.deep)
		ranges();
	return 0;
}
