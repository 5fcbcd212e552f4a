// SPDX-License-Identifier: Apache-2.0
/* calls.c - sim-calls: exactly N calls of one function, as fast as possible or at a rate. Kernels
 * last 0 ns, so the device never holds the caller up. Tests compare the count with what a tracer
 * saw; benchmarks use the time per call.
 *
 * With --threads the count is shared out exactly. With --fork each child makes the whole count too,
 * having been forked before the parent's first CUDA call. With --longjmp every N-th launch is left
 * by longjmp() from a callback inside the library. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_sim.h"
#include "knob.h"
#include "options.h"
#include "workload.h"

#define MAX_THREADS 256
#define MAX_FORKS   64
#define LOOK_EVERY  64 /* calls between two looks at clock and signals */

static struct settings {
	const char *op, *wait_start;
	uint64_t count, threads, rate, duration_s, bytes, longjmp_every, forks;
	bool own_stream, knobs;
} settings = {.op = "launch", .count = UINT64_MAX, .threads = 1, .bytes = 4096};

#define FIELD(f) offsetof(struct settings, f)
static const struct option_row rows[] = {
	{"op", OPTION_TEXT, FIELD(op), "which call (launch); --op list shows all", 0, 0, 0},
	{"count", OPTION_NUMBER, FIELD(count), "how many; else until --duration", 0, 1e15, 0},
	{"threads", OPTION_NUMBER, FIELD(threads), "host threads (1)", 1, MAX_THREADS, 0},
	{"rate", OPTION_NUMBER, FIELD(rate), "calls per second, all threads together", 1, 1e9, 0},
	{"duration", OPTION_NUMBER, FIELD(duration_s), "stop after seconds", 0, 86400, 0},
	{"bytes", OPTION_NUMBER, FIELD(bytes), "of a copy or allocation (4096)", 1, 1e10, 0},
	{"own-stream", OPTION_SWITCH, FIELD(own_stream), "a stream for each thread", 0, 0, 0},
	{"longjmp", OPTION_MAYBE, FIELD(longjmp_every), "leave every Nth launch (7) by longjmp", 1,
		1e9, 7},
	{"fork", OPTION_MAYBE, FIELD(forks), "children (2) that make the calls too", 1, MAX_FORKS,
		2},
	{"wait-start", OPTION_TEXT, FIELD(wait_start), "create FILE.ready, wait for FILE", 0, 0, 0},
	{"knobs", OPTION_SWITCH, FIELD(knobs), "print the environment variables and end", 0, 0, 0},
	{NULL, 0, 0, NULL, 0, 0, 0},
};

struct caller {
	pthread_t thread;
	uint64_t count, calls, errors, left;
	cudaStream_t stream;
	cudaEvent_t event;
	void *device, *host;
};

static const struct sim_kernel kernel = {SIM_KERNEL_MAGIC, 0};
static const dim3 one = {1, 1, 1};
static uint64_t start_ns, end_ns;
static _Thread_local jmp_buf escape;
static _Thread_local bool armed;

static int op_launch(struct caller *c)
{
	return cudaLaunchKernel(&kernel, one, one, NULL, 0, c->stream);
}

static int op_launch_exc(struct caller *c)
{
	cudaLaunchConfig_t config = {.gridDim = one, .blockDim = one, .stream = c->stream};

	return cudaLaunchKernelExC(&config, &kernel, NULL);
}

static int op_launch_coop(struct caller *c)
{
	return cudaLaunchCooperativeKernel(&kernel, one, one, NULL, 0, c->stream);
}

static int op_memcpy(struct caller *c)
{
	return cudaMemcpy(c->device, c->host, settings.bytes, cudaMemcpyHostToDevice);
}

static int op_memcpy_async(struct caller *c)
{
	return cudaMemcpyAsync(
		c->device, c->host, settings.bytes, cudaMemcpyHostToDevice, c->stream);
}

static int op_memset(struct caller *c)
{
	return cudaMemset(c->device, 0, settings.bytes);
}

static int op_memset_async(struct caller *c)
{
	return cudaMemsetAsync(c->device, 0, settings.bytes, c->stream);
}

static int op_malloc(struct caller *c)
{
	void *p = NULL;
	int r = cudaMalloc(&p, settings.bytes);

	return r ? r : cudaFree(p);
}

static int op_bad_free(struct caller *c)
{
	return cudaFree((char *)c->device + 1);
}

static int op_stream_sync(struct caller *c)
{
	return cudaStreamSynchronize(c->stream);
}

static int op_device_sync(struct caller *c)
{
	return cudaDeviceSynchronize();
}

static int op_event_record(struct caller *c)
{
	return cudaEventRecord(c->event, c->stream);
}

static int op_event_sync(struct caller *c)
{
	return cudaEventSynchronize(c->event);
}

static int op_get_device(struct caller *c)
{
	int device;

	return cudaGetDevice(&device);
}

static int op_cu_launch(struct caller *c)
{
	return cuLaunchKernel(
		(CUfunction)(void *)&kernel, 1, 1, 1, 1, 1, 1, 0, c->stream, NULL, NULL);
}

static int op_cu_memcpy(struct caller *c)
{
	return cuMemcpyHtoD_v2((CUdeviceptr)c->device, c->host, settings.bytes);
}

static const struct op {
	const char *name;
	int (*run)(struct caller *c);
	const char *help;
} ops[] = {
	{"launch", op_launch, "cudaLaunchKernel"},
	{"launch-exc", op_launch_exc, "cudaLaunchKernelExC"},
	{"launch-coop", op_launch_coop, "cudaLaunchCooperativeKernel"},
	{"memcpy", op_memcpy, "cudaMemcpy, host to device"},
	{"memcpy-async", op_memcpy_async, "cudaMemcpyAsync, host to device"},
	{"memset", op_memset, "cudaMemset"},
	{"memset-async", op_memset_async, "cudaMemsetAsync"},
	{"malloc", op_malloc, "cudaMalloc and cudaFree, one each"},
	{"bad-free", op_bad_free, "cudaFree of a pointer that is none: error 1"},
	{"stream-sync", op_stream_sync, "cudaStreamSynchronize with nothing to wait for"},
	{"device-sync", op_device_sync, "cudaDeviceSynchronize with nothing to wait for"},
	{"event-record", op_event_record, "cudaEventRecord"},
	{"event-sync", op_event_sync, "cudaEventSynchronize with nothing to wait for"},
	{"get-device", op_get_device, "cudaGetDevice, which calls no driver function"},
	{"cu-launch", op_cu_launch, "cuLaunchKernel, the driver directly"},
	{"cu-memcpy", op_cu_memcpy, "cuMemcpyHtoD_v2, the driver directly"},
};

static const struct op *op_chosen;

static void op_choose(void)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strcmp(ops[i].name, settings.op) == 0)
			op_chosen = &ops[i];
		if (strcmp(settings.op, "list") == 0)
			printf("  %-14s %s\n", ops[i].name, ops[i].help);
	}
	if (strcmp(settings.op, "list") == 0)
		exit(0);
	if (!op_chosen) {
		fprintf(stderr, "sim-calls: no op %s; --op list shows all\n", settings.op);
		exit(64);
	}
}

static void leave(const void *func)
{
	if (armed)
		longjmp(escape, 1);
}

/* True if the call was left by longjmp. */
static bool call_leaving(struct caller *c)
{
	bool left = true;

	armed = true;
	if (setjmp(escape) == 0) {
		op_chosen->run(c);
		left = false;
	}
	armed = false;
	return left;
}

/* False when it is time to stop. A rate is kept by sleeping until a call's own time. */
static bool may_go_on(const struct caller *c)
{
	uint64_t due;

	if (workload_stopped)
		return false;
	if (settings.rate) {
		due = start_ns + (uint64_t)((double)c->calls * (double)settings.threads * 1e9 /
					    (double)settings.rate);
		if (due > workload_now_ns() + 50000)
			workload_sleep_until(due < end_ns ? due : end_ns);
	}
	return (!settings.rate && c->calls % LOOK_EVERY) || workload_now_ns() < end_ns;
}

static void *calls_make(void *arg)
{
	struct caller *c = arg;

	for (; c->calls < c->count && may_go_on(c); c->calls++) {
		if (settings.longjmp_every && (c->calls + 1) % settings.longjmp_every == 0)
			c->left += call_leaving(c);
		else
			c->errors += op_chosen->run(c) != 0;
	}
	return NULL;
}

static int callers_prepare(struct caller *callers)
{
	for (uint64_t i = 0; i < settings.threads; i++) {
		struct caller *c = &callers[i];

		c->count =
			settings.count / settings.threads + (i < settings.count % settings.threads);
		c->host = calloc(1, settings.bytes);
		if (!c->host || cudaMalloc(&c->device, settings.bytes) ||
			cudaEventCreate(&c->event))
			return -ENOMEM;
		if (settings.own_stream && cudaStreamCreate(&c->stream))
			return -ENOMEM;
	}
	if (settings.longjmp_every)
		sim_callback_set(leave);
	return 0;
}

static void result_print(const struct caller *callers, uint64_t spent_ns, int bad_children)
{
	uint64_t calls = 0, errors = 0, left = 0;

	for (uint64_t i = 0; i < settings.threads; i++) {
		calls += callers[i].calls;
		errors += callers[i].errors;
		left += callers[i].left;
	}
	printf("{\"op\":\"%s\",\"calls\":%llu,\"errors\":%llu,\"left\":%llu,\"seconds\":%.6f,"
	       "\"ns_per_call\":%.1f,\"children\":%llu,\"children_failed\":%d}\n",
		settings.op, (unsigned long long)calls, (unsigned long long)errors,
		(unsigned long long)left, (double)spent_ns / 1e9,
		calls ? (double)spent_ns * (double)settings.threads / (double)calls : 0,
		(unsigned long long)settings.forks, bad_children);
}

/* Returns the time spent, or -errno. */
static int64_t callers_run(struct caller *callers)
{
	int r = callers_prepare(callers);

	if (r < 0)
		return r;
	start_ns = workload_now_ns();
	end_ns = settings.duration_s ? start_ns + settings.duration_s * 1000000000 : UINT64_MAX;
	for (uint64_t i = 1; i < settings.threads; i++) {
		r = pthread_create(&callers[i].thread, NULL, calls_make, &callers[i]);
		if (r != 0)
			return -r;
	}
	calls_make(&callers[0]);
	for (uint64_t i = 1; i < settings.threads; i++)
		pthread_join(callers[i].thread, NULL);
	return (int64_t)(workload_now_ns() - start_ns);
}

static void callers_done(struct caller *callers)
{
	for (uint64_t i = 0; i < settings.threads; i++) {
		cudaEventDestroy(callers[i].event);
		cudaFree(callers[i].device);
		free(callers[i].host);
	}
	free(callers);
}

int main(int argc, char **argv)
{
	struct caller *callers;
	bool child = false;
	int bad = 0, status;
	int64_t spent_ns;

	options_parse(rows, argc, argv, "exactly N calls of one function", &settings);
	if (settings.knobs) {
		knob_print(stdout);
		return 0;
	}
	op_choose();
	if (settings.count == UINT64_MAX && !settings.duration_s) {
		fprintf(stderr, "sim-calls: --count or --duration is needed\n");
		return 64;
	}
	callers = calloc(settings.threads, sizeof(*callers));
	if (!callers)
		return 1;
	workload_catch_signals();
	workload_gate(settings.wait_start);
	for (uint64_t i = 0; i < settings.forks && !child; i++)
		child = fork() == 0;
	spent_ns = callers_run(callers);
	if (spent_ns < 0)
		fprintf(stderr, "sim-calls: %s\n", strerror((int)-spent_ns));
	while (!child && wait(&status) > 0)
		bad += status != 0;
	if (!child && spent_ns >= 0)
		result_print(callers, (uint64_t)spent_ns, bad);
	callers_done(callers);
	return spent_ns < 0 || bad ? 1 : 0;
}
