// SPDX-License-Identifier: Apache-2.0
/* train_step.c - what one training step calls: read the batch, launch, allocate now and then,
 * compute on the host, wait. Functions are named after the part of a training loop that they stand
 * for, so that stacks read well. */
#include <fcntl.h>
#include <sys/mman.h>

#include "train.h"
#include "workload.h"

#define CHURN_BYTES (16u << 20) /* of an allocation made by --malloc-every */

#define TRY(call)                                                                                  \
	do {                                                                                       \
		int try_r_ = (call);                                                               \
		if (try_r_ != 0)                                                                   \
			return try_r_;                                                             \
	} while (0)

/* The next batch in the mapped file; wraps around. With --cold its pages are in no cache, so that
 * the copy reads the disk. */
static const void *batch_next(struct train_worker *w)
{
	uint64_t bytes = w->settings->batch_bytes, at = w->data_at;

	if (!w->data)
		return w->host_batch;
	if (at + bytes > w->data->size)
		at = 0;
	w->data_at = (at + bytes + 4095) / 4096 * 4096;
	if (w->settings->cold) {
		madvise((void *)(w->data->bytes + at), bytes, MADV_DONTNEED);
		posix_fadvise(w->data->fd, (off_t)at, (off_t)bytes, POSIX_FADV_DONTNEED);
	}
	return w->data->bytes + at;
}

static int load_batch(struct train_worker *w)
{
	if (w->settings->loader_us)
		workload_sleep_until(workload_now_ns() + w->settings->loader_us * 1000);
	for (uint64_t i = 0; i < w->settings->copies; i++)
		TRY(cudaMemcpy(w->device_batch, batch_next(w), w->settings->batch_bytes,
			cudaMemcpyHostToDevice));
	return 0;
}

static int launch_one(struct train_worker *w, cudaStream_t stream)
{
	dim3 grid = {128, 1, 1}, block = {256, 1, 1};

	return cudaLaunchKernel(&w->kernel, grid, block, NULL, 0, stream);
}

static int forward_backward(struct train_worker *w)
{
	for (uint64_t i = 0; i < w->settings->launches; i++)
		TRY(launch_one(w, w->streams[i % w->settings->streams]));
	return 0;
}

/* The kernels of a step as a graph: captured, made an instance or given to the one there is. */
static int capture(struct train_worker *w)
{
	cudaGraphExecUpdateResultInfo info;
	cudaGraph_t graph;

	TRY(cudaStreamBeginCapture(w->streams[0], 0));
	for (uint64_t i = 0; i < w->settings->launches; i++)
		TRY(launch_one(w, w->streams[0]));
	TRY(cudaStreamEndCapture(w->streams[0], &graph));
	if (w->graph && w->settings->graph_update) {
		TRY(cudaGraphExecUpdate(w->graph, graph, &info));
	} else {
		if (w->graph)
			TRY(cudaGraphExecDestroy(w->graph));
		w->graph = NULL;
		TRY(cudaGraphInstantiate(&w->graph, graph, 0));
	}
	return cudaGraphDestroy(graph);
}

static int forward_backward_graph(struct train_worker *w)
{
	uint64_t every = w->settings->recapture_every;

	if (!w->graph || (every && w->steps && w->steps % every == 0))
		TRY(capture(w));
	return cudaGraphLaunch(w->graph, w->streams[0]);
}

static int churn(struct train_worker *w)
{
	void *p;

	TRY(cudaMalloc(&p, CHURN_BYTES));
	return cudaFree(p);
}

static int wait_for_device(struct train_worker *w)
{
	for (uint64_t i = 0; i < w->settings->streams; i++)
		TRY(cudaStreamSynchronize(w->streams[i]));
	return 0;
}

/* xorshift: the same run after run, because a scenario must not depend on luck. */
static uint64_t random_below(struct train_worker *w, uint64_t limit)
{
	uint64_t x = w->random ? w->random : 0x9e3779b97f4a7c15ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	w->random = x;
	return limit ? x % limit : 0;
}

/* Batches of different sizes, and pauses between requests: what no two steps of a healthy job have
 * in common. */
static void be_uneven(struct train_worker *w)
{
	const struct train_settings *s = w->settings;

	if (s->vary_percent)
		w->kernel.dur_ns =
			s->kernel_us * 10 *
			(100 - s->vary_percent + random_below(w, 2 * s->vary_percent + 1));
	if (s->burst && w->steps && w->steps % s->burst == 0)
		workload_sleep_until(workload_now_ns() + random_below(w, s->pause_us) * 1000);
}

int train_step(struct train_worker *w)
{
	const struct train_settings *s = w->settings;
	uint64_t number = w->steps + 1;

	be_uneven(w);
	TRY(train_faults(w));
	TRY(load_batch(w));
	TRY(s->graphs ? forward_backward_graph(w) : forward_backward(w));
	workload_burn(s->cpu_us * 1000);
	if (s->malloc_every && number % s->malloc_every == 0)
		TRY(churn(w));
	if (s->error_every && number % s->error_every == 0)
		w->errors += cudaFree((char *)w->device_batch + 1) != 0;
	if (s->all_ops)
		TRY(train_all_ops(w));
	return wait_for_device(w);
}
