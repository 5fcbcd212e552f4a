// SPDX-License-Identifier: Apache-2.0
/* train_step.c - what one training step calls: read the batch, launch, allocate now and then,
 * compute on the host, wait. Functions are named after the part of a training loop that they stand
 * for, so that stacks read well. */
#include <fcntl.h>
#include <sys/mman.h>

#include "train.h"
#include "workload.h"

#define CHURN_BYTES (16u << 20) /* of an allocation made by --malloc-every */
#define OPS_BYTES   4096        /* of each call of --all-ops */

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

static int memory_ops(cudaStream_t stream)
{
	void *p;

	TRY(cudaMallocManaged(&p, OPS_BYTES, 1));
	TRY(cudaFree(p));
	TRY(cudaMallocAsync(&p, OPS_BYTES, stream));
	TRY(cudaFreeAsync(p, stream));
	TRY(cudaHostAlloc(&p, OPS_BYTES, 0));
	TRY(cudaFreeHost(p));
	TRY(cudaMallocHost(&p, OPS_BYTES));
	return cudaFreeHost(p);
}

static int copy_ops(void *a, void *b, char *host, cudaStream_t stream)
{
	size_t half = OPS_BYTES / 2;

	for (int kind = cudaMemcpyHostToDevice; kind <= cudaMemcpyDefault; kind++) {
		void *dst = kind == cudaMemcpyDeviceToHost ? (void *)host : a;
		void *src = kind == cudaMemcpyHostToDevice ? (void *)host : b;

		TRY(cudaMemcpy(dst, src, OPS_BYTES, (enum cudaMemcpyKind)kind));
		TRY(cudaMemcpyAsync(dst, src, OPS_BYTES, (enum cudaMemcpyKind)kind, stream));
	}
	TRY(cudaMemcpy2D(a, half, host, half, half / 2, 2, cudaMemcpyHostToDevice));
	TRY(cudaMemcpy2DAsync(a, half, b, half, half / 2, 2, cudaMemcpyDeviceToDevice, stream));
	TRY(cudaMemcpyPeer(a, 0, b, 0, OPS_BYTES));
	TRY(cudaMemcpyPeerAsync(a, 0, b, 0, OPS_BYTES, stream));
	TRY(cudaMemset(a, 1, OPS_BYTES));
	return cudaMemsetAsync(b, 2, OPS_BYTES, stream);
}

static int graph_ops(struct train_worker *w, cudaStream_t stream)
{
	cudaGraphInstantiateParams params = {0};
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t a, b, c;
	cudaGraph_t graph;

	TRY(cudaStreamBeginCapture(stream, 0));
	TRY(launch_one(w, stream));
	TRY(cudaStreamEndCapture(stream, &graph));
	TRY(cudaGraphInstantiate(&a, graph, 0));
	TRY(cudaGraphInstantiateWithFlags(&b, graph, 0));
	TRY(cudaGraphInstantiateWithParams(&c, graph, &params));
	TRY(cudaGraphExecUpdate(c, graph, &info));
	TRY(cudaGraphLaunch(a, stream));
	TRY(cudaGraphDestroy(graph));
	TRY(cudaGraphExecDestroy(a));
	TRY(cudaGraphExecDestroy(b));
	return cudaGraphExecDestroy(c);
}

static int sync_ops(struct train_worker *w, cudaStream_t stream)
{
	cudaEvent_t event;

	TRY(cudaEventCreate(&event));
	TRY(cudaEventRecord(event, stream));
	TRY(cudaStreamWaitEvent(w->streams[0], event, 0));
	TRY(cudaEventSynchronize(event));
	TRY(cudaEventDestroy(event));
	return cudaDeviceSynchronize();
}

/* cudaGetLastError() may well tell of an error: --error-every makes some. The name of a device is
 * asked of the driver, because no function of the runtime here does. */
static int device_ops(void)
{
	char name[64];
	int n;

	TRY(cudaGetDeviceCount(&n));
	TRY(cudaSetDevice(0));
	TRY(cudaGetDevice(&n));
	TRY(cuDeviceGetName(name, sizeof(name), 0));
	cudaGetErrorString(cudaGetLastError());
	return 0;
}

int train_all_ops(struct train_worker *w)
{
	cudaLaunchConfig_t config = {.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}};
	char host[OPS_BYTES] = {0};
	cudaStream_t stream;
	void *a, *b;

	TRY(device_ops());
	TRY(cudaStreamCreate(&stream));
	TRY(cudaMalloc(&a, OPS_BYTES));
	TRY(cudaMalloc(&b, OPS_BYTES));
	config.stream = stream;
	TRY(cudaLaunchKernel(&w->kernel, config.gridDim, config.blockDim, NULL, 0, stream));
	TRY(cudaLaunchKernelExC(&config, &w->kernel, NULL));
	TRY(cudaLaunchCooperativeKernel(
		&w->kernel, config.gridDim, config.blockDim, NULL, 0, stream));
	TRY(memory_ops(stream));
	TRY(copy_ops(a, b, host, stream));
	TRY(graph_ops(w, stream));
	TRY(sync_ops(w, stream));
	TRY(cudaFree(b));
	TRY(cudaFree(a));
	return cudaStreamDestroy(stream);
}

int train_step(struct train_worker *w)
{
	const struct train_settings *s = w->settings;
	uint64_t number = w->steps + 1;

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
