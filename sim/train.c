// SPDX-License-Identifier: Apache-2.0
/* train.c - sim-train: a training loop on the stand-in GPU. Each host thread runs its own steps on
 * its own streams; the result is one line of JSON over the steps of all threads. The step log has
 * the steps of the first thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"
#include "train.h"
#include "workload.h"

#define MAX_THREADS 64
#define KEPT_STEPS                                                                                 \
	(1u << 20) /* per thread, for percentiles and log; later steps are only counted */

static struct train_settings settings = {
	.launches = 40,
	.copies = 1,
	.kernel_us = 200,
	.batch_bytes = 1 << 20,
	.streams = 1,
	.threads = 1,
	.slow_factor = 3,
	.pause_us = 20000,
	.checkpoint_every = 10,
	.checkpoint_bytes = 16u << 20,
	.ask_every = 1,
	.swap_every = 50,
	.swap_bytes = 128u << 20,
};

#define FIELD(f) offsetof(struct train_settings, f)
static const struct option_row rows[] = {
	{"steps", OPTION_NUMBER, FIELD(steps), "steps of each thread (100)", 1, 1e12, 0},
	{"launches", OPTION_NUMBER, FIELD(launches), "kernels a step (40)", 0, 1e6, 0},
	{"copies", OPTION_NUMBER, FIELD(copies), "batches copied a step (1)", 0, 1e6, 0},
	{"kernel-us", OPTION_NUMBER, FIELD(kernel_us), "duration of a kernel (200)", 0, 1e9, 0},
	{"batch-bytes", OPTION_NUMBER, FIELD(batch_bytes), "bytes of a batch (1 MiB)", 1, 1e10, 0},
	{"streams", OPTION_NUMBER, FIELD(streams), "streams of each thread (1)", 1,
		TRAIN_MAX_STREAMS, 0},
	{"device", OPTION_NUMBER, FIELD(device), "device to use (0)", 0, 15, 0},
	{"threads", OPTION_NUMBER, FIELD(threads), "host threads (1)", 1, MAX_THREADS, 0},
	{"data", OPTION_TEXT, FIELD(data), "copy batches straight from this file, mapped", 0, 0, 0},
	{"cold", OPTION_SWITCH, FIELD(cold), "drop each batch from the page cache first", 0, 0, 0},
	{"malloc-every", OPTION_NUMBER, FIELD(malloc_every), "allocate and free every N steps", 1,
		1e9, 0},
	{"error-every", OPTION_NUMBER, FIELD(error_every), "a bad free every N steps", 1, 1e9, 0},
	{"cpu-us", OPTION_NUMBER, FIELD(cpu_us), "host CPU time used a step", 0, 1e9, 0},
	{"duration", OPTION_NUMBER, FIELD(duration_s), "stop after seconds", 1, 86400, 0},
	{"graphs", OPTION_SWITCH, FIELD(graphs), "capture the kernels once, launch a graph a step",
		0, 0, 0},
	{"recapture-every", OPTION_NUMBER, FIELD(recapture_every),
		"with --graphs: capture and instantiate anew every N steps", 1, 1e9, 0},
	{"graph-update", OPTION_SWITCH, FIELD(graph_update), "recapture by updating the instance",
		0, 0, 0},
	{"vary-percent", OPTION_NUMBER, FIELD(vary_percent),
		"a step's kernels last up to so much more or less", 0, 99, 0},
	{"burst", OPTION_NUMBER, FIELD(burst), "pause after so many steps", 1, 1e9, 0},
	{"pause-us", OPTION_NUMBER, FIELD(pause_us), "for so long at most (20000)", 0, 1e9, 0},
	{"loader-us", OPTION_NUMBER, FIELD(loader_us), "the loader takes so long for a batch", 0,
		1e9, 0},
	{"leak-bytes", OPTION_NUMBER, FIELD(leak_bytes), "allocated a step and never freed", 1,
		1e10, 0},
	{"leak-until", OPTION_NUMBER, FIELD(leak_until),
		"only up to this step: a pool that reaches its level", 1, 1e12, 0},
	{"fragment-every", OPTION_NUMBER, FIELD(fragment_every),
		"every N steps fill the memory, free every other piece, ask for a large one", 1,
		1e9, 0},
	{"checkpoint", OPTION_TEXT, FIELD(checkpoint), "file to write checkpoints to", 0, 0, 0},
	{"checkpoint-every", OPTION_NUMBER, FIELD(checkpoint_every),
		"write and fsync it every N steps (10)", 1, 1e9, 0},
	{"checkpoint-bytes", OPTION_NUMBER, FIELD(checkpoint_bytes), "of it (16 MiB)", 1, 1e10, 0},
	{"slow-from", OPTION_NUMBER, FIELD(slow_from), "kernels are slower from this step on", 1,
		1e12, 0},
	{"slow-factor", OPTION_NUMBER, FIELD(slow_factor), "so many times (3)", 1, 1e6, 0},
	{"ask-us", OPTION_NUMBER, FIELD(ask_us),
		"ask a local service that answers after so long, before a step", 1, 1e9, 0},
	{"ask-every", OPTION_NUMBER, FIELD(ask_every), "every N steps (1)", 1, 1e9, 0},
	{"swap-file", OPTION_TEXT, FIELD(swap_file), "load a model from this file, made anew", 0, 0,
		0},
	{"swap-every", OPTION_NUMBER, FIELD(swap_every), "every N steps (50)", 1, 1e9, 0},
	{"swap-bytes", OPTION_NUMBER, FIELD(swap_bytes), "of it (128 MiB)", 1 << 23, 1e10, 0},
	{"all-ops", OPTION_SWITCH, FIELD(all_ops), "also call every function each step", 0, 0, 0},
	{"wait-start", OPTION_TEXT, FIELD(wait_start), "create FILE.ready, wait for FILE", 0, 0, 0},
	{"step-log", OPTION_TEXT, FIELD(step_log), "a line a step: index, start ns, duration ns", 0,
		0, 0},
	{NULL, 0, 0, NULL, 0, 0, 0},
};

static uint64_t end_ns = UINT64_MAX;

static int worker_prepare(struct train_worker *w)
{
	w->step_ns = calloc(KEPT_STEPS, sizeof(*w->step_ns));
	w->step_start_ns = calloc(KEPT_STEPS, sizeof(*w->step_start_ns));
	w->host_batch = w->data ? NULL : calloc(1, settings.batch_bytes);
	if (!w->step_ns || !w->step_start_ns || (!w->data && !w->host_batch))
		return 2;
	if (settings.device && cudaSetDevice((int)settings.device) != 0)
		return 2;
	w->kernel = (struct sim_kernel){SIM_KERNEL_MAGIC, settings.kernel_us * 1000};
	if (cudaMalloc(&w->device_batch, settings.batch_bytes) != 0)
		return 2;
	for (uint64_t i = 0; i < settings.streams; i++)
		if (cudaStreamCreate(&w->streams[i]) != 0)
			return 2;
	return 0;
}

static void *worker_run(void *arg)
{
	struct train_worker *w = arg;

	w->failed = worker_prepare(w);
	while (!w->failed && w->steps < settings.steps && !workload_stopped) {
		uint64_t start = workload_now_ns();

		if (start >= end_ns)
			break;
		w->failed = train_step(w);
		if (w->failed)
			break;
		if (w->steps < KEPT_STEPS) {
			w->step_start_ns[w->steps] = start;
			w->step_ns[w->steps] = workload_now_ns() - start;
		}
		w->steps++;
	}
	return NULL;
}

static void worker_done(struct train_worker *w)
{
	cudaFree(w->device_batch);
	if (w->graph)
		cudaGraphExecDestroy(w->graph);
	for (uint64_t i = 0; i < settings.streams; i++)
		if (w->streams[i])
			cudaStreamDestroy(w->streams[i]);
	free(w->step_ns);
	free(w->step_start_ns);
	free(w->host_batch);
}

static uint64_t kept(const struct train_worker *w)
{
	return w->steps < KEPT_STEPS ? w->steps : KEPT_STEPS;
}

static int step_log_write(const struct train_worker *w)
{
	FILE *f;

	if (!settings.step_log)
		return 0;
	f = fopen(settings.step_log, "we");
	if (!f)
		return -errno;
	for (uint64_t i = 0; i < kept(w); i++)
		fprintf(f, "%llu %llu %llu\n", (unsigned long long)i,
			(unsigned long long)w->step_start_ns[i], (unsigned long long)w->step_ns[i]);
	return fclose(f) == 0 ? 0 : -errno;
}

static int result_print(const struct train_worker *workers, uint64_t spent_ns)
{
	uint64_t steps = 0, errors = 0, n = 0, *all;

	for (uint64_t i = 0; i < settings.threads; i++) {
		steps += workers[i].steps;
		errors += workers[i].errors;
		n += kept(&workers[i]);
	}
	all = calloc(n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	n = 0;
	for (uint64_t i = 0; i < settings.threads; i++) {
		memcpy(all + n, workers[i].step_ns, kept(&workers[i]) * sizeof(*all));
		n += kept(&workers[i]);
	}
	printf("{\"steps\":%llu,\"seconds\":%.6f,\"step_p50_us\":%.1f,\"step_p99_us\":%.1f,"
	       "\"errors\":%llu}\n",
		(unsigned long long)steps, (double)spent_ns / 1e9,
		(double)workload_percentile(all, n, 50) / 1e3,
		(double)workload_percentile(all, n, 99) / 1e3, (unsigned long long)errors);
	free(all);
	return 0;
}

/* Dirty pages cannot be dropped from the cache, so the file is flushed first. */
static int data_open(const char *path, struct train_data *ret)
{
	struct train_data d = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
	struct stat st;

	if (d.fd < 0 || fstat(d.fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < settings.batch_bytes)
		return -ENODATA;
	d.size = (uint64_t)st.st_size;
	fdatasync(d.fd);
	d.bytes = mmap(NULL, d.size, PROT_READ, MAP_SHARED, d.fd, 0);
	if (d.bytes == MAP_FAILED)
		return -errno;
	*ret = d;
	return 0;
}

/* Returns the first CUDA error of a thread, or 0. */
static int workers_run(struct train_worker *workers)
{
	int failed = 0;

	for (uint64_t i = 1; i < settings.threads; i++)
		if (pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]) != 0)
			return 2;
	worker_run(&workers[0]);
	for (uint64_t i = 1; i < settings.threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (uint64_t i = 0; i < settings.threads && !failed; i++)
		failed = workers[i].failed;
	return failed;
}

static int fail(const char *what, int r)
{
	fprintf(stderr, "sim-train: %s: %s\n", what,
		r == -ENODATA ? "smaller than a batch" : strerror(-r));
	return 66;
}

int main(int argc, char **argv)
{
	struct train_worker workers[MAX_THREADS] = {0};
	struct train_data data = {.fd = -1};
	uint64_t start_ns;
	int r, failed;

	options_parse(rows, argc, argv, "a training loop on the stand-in GPU", &settings);
	if (!settings.steps)
		settings.steps = settings.duration_s ? UINT64_MAX : 100;
	if (settings.data && (r = data_open(settings.data, &data)) < 0)
		return fail(settings.data, r);
	if (settings.swap_file && (r = train_swap_prepare(&settings)) < 0)
		return fail(settings.swap_file, r);
	if (settings.ask_us && (r = train_ask_start(settings.ask_us)) < 0)
		return fail("service", r);
	workload_catch_signals();
	workload_gate(settings.wait_start);
	start_ns = workload_now_ns();
	if (settings.duration_s)
		end_ns = start_ns + settings.duration_s * 1000000000;
	for (unsigned i = 0; i < settings.threads; i++) {
		workers[i].settings = &settings;
		workers[i].data = settings.data ? &data : NULL;
	}
	failed = workers_run(workers);
	if (failed)
		fprintf(stderr, "sim-train: CUDA error %d: %s\n", failed,
			cudaGetErrorString(failed));
	r = result_print(workers, workload_now_ns() - start_ns);
	if (r == 0)
		r = step_log_write(&workers[0]);
	for (uint64_t i = 0; i < settings.threads; i++)
		worker_done(&workers[i]);
	if (r < 0)
		return fail(settings.step_log ? settings.step_log : "result", r);
	return failed ? 1 : 0;
}
