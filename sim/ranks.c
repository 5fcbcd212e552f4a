// SPDX-License-Identifier: Apache-2.0
/* ranks.c - what one rank of sim-nccl does: make its communicator, then in each step compute, maybe
 * come late, call the collectives, wait for the stream. A thread of its own watches for signals and
 * aborts the communicators, because a rank that waits for one that never comes sits in a call. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "workload.h"

#define KEPT_STEPS       (1u << 20)
#define LOOK_NS          20000000
#define DELAY_FILE_BYTES (32u << 20)

#define TRY(call)                                                                                  \
	do {                                                                                       \
		int try_r_ = (call);                                                               \
		if (try_r_ != 0)                                                                   \
			return try_r_;                                                             \
	} while (0)

/* An error of CUDA as one that is told apart. */
static int cuda(int r)
{
	return r ? 100 + r : 0;
}

static int op_allreduce(struct rank *r, ncclComm_t c, uint64_t n)
{
	if (r->settings->config)
		return ncclAllReduceConfig(
			r->send, r->receive, n, ncclFloat32, ncclSum, c, r->stream, NULL);
	return ncclAllReduce(r->send, r->receive, n, ncclFloat32, ncclSum, c, r->stream);
}

static int op_allgather(struct rank *r, ncclComm_t c, uint64_t n)
{
	if (r->settings->config)
		return ncclAllGatherConfig(r->send, r->receive, n, ncclFloat32, c, r->stream, NULL);
	return ncclAllGather(r->send, r->receive, n, ncclFloat32, c, r->stream);
}

static int op_reducescatter(struct rank *r, ncclComm_t c, uint64_t n)
{
	if (r->settings->config)
		return ncclReduceScatterConfig(
			r->send, r->receive, n, ncclFloat32, ncclSum, c, r->stream, NULL);
	return ncclReduceScatter(r->send, r->receive, n, ncclFloat32, ncclSum, c, r->stream);
}

static int op_broadcast(struct rank *r, ncclComm_t c, uint64_t n)
{
	if (r->settings->config)
		return ncclBroadcastConfig(
			r->send, r->receive, n, ncclFloat16, 0, c, r->stream, NULL);
	return ncclBroadcast(r->send, r->receive, n, ncclFloat16, 0, c, r->stream);
}

static int op_bcast(struct rank *r, ncclComm_t c, uint64_t n)
{
	return ncclBcast(r->send, n, ncclFloat16, 0, c, r->stream);
}

static int op_reduce(struct rank *r, ncclComm_t c, uint64_t n)
{
	if (r->settings->config)
		return ncclReduceConfig(
			r->send, r->receive, n, ncclFloat64, ncclSum, 0, c, r->stream, NULL);
	return ncclReduce(r->send, r->receive, n, ncclFloat64, ncclSum, 0, c, r->stream);
}

static int op_alltoall(struct rank *r, ncclComm_t c, uint64_t n)
{
	if (r->settings->config)
		return ncclAlltoAllConfig(r->send, r->receive, n, ncclInt8, c, r->stream, NULL);
	return ncclAlltoAll(r->send, r->receive, n, ncclInt8, c, r->stream);
}

static int op_gather(struct rank *r, ncclComm_t c, uint64_t n)
{
	if (r->settings->config)
		return ncclGatherConfig(r->send, r->receive, n, ncclFloat32, 0, c, r->stream, NULL);
	return ncclGather(r->send, r->receive, n, ncclFloat32, 0, c, r->stream);
}

static int op_scatter(struct rank *r, ncclComm_t c, uint64_t n)
{
	if (r->settings->config)
		return ncclScatterConfig(
			r->send, r->receive, n, ncclFloat32, 0, c, r->stream, NULL);
	return ncclScatter(r->send, r->receive, n, ncclFloat32, 0, c, r->stream);
}

/* Each rank sends to the next and receives from the one before, in a group. */
static int op_ring(struct rank *r, ncclComm_t c, uint64_t n)
{
	int rank, nranks;

	TRY(ncclCommUserRank(c, &rank));
	TRY(ncclCommCount(c, &nranks));
	TRY(ncclGroupStart());
	TRY(ncclSend(r->send, n, ncclFloat32, (rank + 1) % nranks, c, r->stream));
	TRY(ncclRecv(r->receive, n, ncclFloat32, (rank + nranks - 1) % nranks, c, r->stream));
	return ncclGroupEnd();
}

static int op_signal(struct rank *r, ncclComm_t c, uint64_t n)
{
	ncclWaitSignalDesc_t from = {.opCnt = 2};
	int rank, nranks, next;

	TRY(ncclCommUserRank(c, &rank));
	TRY(ncclCommCount(c, &nranks));
	next = (rank + 1) % nranks;
	from.peer = (rank + nranks - 1) % nranks;
	TRY(ncclPutSignal(r->send, n, ncclFloat32, next, NULL, 0, 3, 5, 7, c, r->stream));
	TRY(ncclSignal(next, 3, 5, 7, c, r->stream));
	return ncclWaitSignal(1, &from, c, r->stream);
}

static int op_suspend(struct rank *r, ncclComm_t c, uint64_t n)
{
	TRY(ncclCommSuspend(c, 0));
	return ncclCommResume(c);
}

static const struct op {
	const char *name;
	int (*run)(struct rank *r, ncclComm_t c, uint64_t n);
} ops[] = {
	{"allreduce", op_allreduce},
	{"allgather", op_allgather},
	{"reducescatter", op_reducescatter},
	{"broadcast", op_broadcast},
	{"bcast", op_bcast},
	{"reduce", op_reduce},
	{"alltoall", op_alltoall},
	{"gather", op_gather},
	{"scatter", op_scatter},
	{"sendrecv", op_ring},
	{"signal", op_signal},
	{"suspend", op_suspend},
};

int rank_op_of(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strlen(ops[i].name) == length && strncmp(ops[i].name, name, length) == 0)
			return (int)i;
	return -1;
}

void rank_ops_print(void)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		printf("  %s\n", ops[i].name);
}

static int comm_await(ncclComm_t c)
{
	ncclResult_t state = ncclInProgress;

	while (state == ncclInProgress && !workload_stopped) {
		TRY(ncclCommGetAsyncError(c, &state));
		if (state == ncclInProgress)
			workload_sleep_until(workload_now_ns() + 1000000);
	}
	return state;
}

/* All ranks but the last are there first; it is told the id by the first. */
static int comm_grow(struct rank *r)
{
	struct rank_grown *g = r->settings->grown;
	bool joins = r->number == r->nranks - 1;
	ncclComm_t world = NULL;

	if (!joins)
		TRY(ncclCommInitRank(&world, r->nranks - 1, *r->id, r->number));
	if (r->number == 0) {
		TRY(ncclCommGetUniqueId(world, &g->id));
		g->is_there = true;
	}
	while (joins && !g->is_there && !workload_stopped)
		workload_sleep_until(workload_now_ns() + 1000000);
	TRY(ncclCommGrow(world, r->nranks, joins || r->number == 0 ? &g->id : NULL,
		joins ? r->number : -1, &r->comm, NULL));
	if (joins)
		return 0;
	TRY(ncclCommRevoke(world, 0));
	return ncclCommDestroy(world);
}

static int comm_make(struct rank *r)
{
	ncclConfig_t config = {
		.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .version = 23102};
	const char *init = r->settings->init;
	ncclUniqueId id = *r->id;
	ncclComm_t world;
	int result;

	config.blocking = !r->settings->nonblocking;
	if (strcmp(init, "config") == 0) {
		result = ncclCommInitRankConfig(&r->comm, r->nranks, id, r->number, &config);
		return result == ncclInProgress ? comm_await(r->comm) : result;
	}
	if (strcmp(init, "scalable") == 0)
		return ncclCommInitRankScalable(&r->comm, r->nranks, r->number, 1, &id, NULL);
	if (strcmp(init, "grow") == 0)
		return comm_grow(r);
	if (strcmp(init, "split") != 0)
		return ncclCommInitRank(&r->comm, r->nranks, id, r->number);
	TRY(ncclCommInitRank(&world, r->nranks, id, r->number));
	TRY(ncclCommSplit(world, 0, r->number, &r->comm, NULL));
	return ncclCommDestroy(world);
}

static int prepare(struct rank *r)
{
	uint64_t bytes = r->settings->count * 8;

	r->kernel = (struct sim_kernel){SIM_KERNEL_MAGIC, r->settings->kernel_us * 1000};
	r->sync_ns = calloc(KEPT_STEPS, sizeof(*r->sync_ns));
	if (!r->sync_ns)
		return ncclSystemError;
	TRY(cuda(cudaStreamCreate(&r->stream)));
	TRY(cuda(cudaMalloc(&r->send, bytes)));
	TRY(cuda(cudaMalloc(&r->receive, bytes)));
	if (!r->comm)
		TRY(comm_make(r));
	if (r->settings->split)
		TRY(ncclCommSplit(r->comm, r->number % 2, r->number, &r->part, NULL));
	return 0;
}

static bool is_the_one(const struct rank *r, uint64_t rank, uint64_t step)
{
	return rank == (uint64_t)r->number && step == r->steps;
}

/* Late because of the disk, past the page cache: as long as that takes. */
static void write_file(const char *path)
{
	static _Alignas(4096) char zeros[DELAY_FILE_BYTES]; /* not const: no bytes of the program */
	int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	if (pwrite(fd, zeros, sizeof(zeros), 0) == (ssize_t)sizeof(zeros))
		fsync(fd);
	close(fd);
}

static void come_late(const struct rank *r)
{
	const struct rank_settings *s = r->settings;
	uint64_t who =
		s->delay_rotate ? r->steps / s->delay_every % (uint64_t)r->nranks : s->delay_rank;

	if ((s->delay_us || s->delay_file) && who == (uint64_t)r->number &&
		r->steps >= s->delay_from && (r->steps + 1) % s->delay_every == 0) {
		if (s->delay_file)
			write_file(s->delay_file);
		else
			workload_sleep_until(workload_now_ns() + s->delay_us * 1000);
	}
	if (is_the_one(r, s->hang_rank, s->hang_step))
		while (!workload_stopped)
			workload_sleep_until(workload_now_ns() + LOOK_NS);
}

static int collectives_call(struct rank *r)
{
	const struct rank_settings *s = r->settings;

	for (int i = 0; i < s->op_count; i++) {
		int op = s->ops[i];

		if (i == 0 && is_the_one(r, s->mismatch_rank, s->mismatch_step))
			op = (op + 1) % 3; /* another of the first three */
		TRY(ops[op].run(r, r->comm, s->count));
		if (r->part)
			TRY(ops[s->ops[i]].run(r, r->part, s->count));
	}
	return 0;
}

/* @ranks: those that this thread drives, in one group if they are several. */
static int step(struct rank *ranks, int count)
{
	dim3 one = {1, 1, 1};
	bool group = count > 1 || ranks->settings->group;

	for (int i = 0; i < count; i++)
		TRY(cuda(cudaLaunchKernel(&ranks[i].kernel, one, one, NULL, 0, ranks[i].stream)));
	for (int i = 0; i < count; i++)
		come_late(&ranks[i]);
	if (workload_stopped)
		return 0;
	if (group)
		TRY(ncclGroupStart());
	for (int i = 0; i < count; i++)
		TRY(collectives_call(&ranks[i]));
	if (group)
		TRY(ncclGroupEnd());
	for (int i = 0; i < count; i++) {
		struct rank *r = &ranks[i];
		uint64_t start = workload_now_ns();

		TRY(cuda(cudaStreamSynchronize(r->stream)));
		if (r->steps < KEPT_STEPS)
			r->sync_ns[r->steps] = workload_now_ns() - start;
		r->steps++;
	}
	return 0;
}

struct watch {
	pthread_t thread;
	struct rank *ranks;
	int count;
	_Atomic bool over;
	bool aborted;
};

/* After a signal the steps get a moment to end by themselves. */
static void *watch_run(void *arg)
{
	struct watch *w = arg;

	for (int late = 0; !w->over && late < 10; late += workload_stopped)
		nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
	if (w->over)
		return NULL;
	w->aborted = true;
	for (int i = 0; i < w->count; i++) {
		ncclCommAbort(w->ranks[i].comm);
		ncclCommAbort(w->ranks[i].part);
	}
	return NULL;
}

static void done(struct rank *r, bool aborted)
{
	if (!aborted && r->part)
		ncclCommDestroy(r->part);
	if (!aborted && r->comm) {
		ncclCommFinalize(r->comm);
		ncclCommDestroy(r->comm);
	}
	cudaFree(r->send);
	cudaFree(r->receive);
	if (r->stream)
		cudaStreamDestroy(r->stream);
}

static int all_prepare(struct rank *ranks, int count)
{
	ncclComm_t comms[RANKS_MAX];

	if (count > 1) {
		TRY(ncclCommInitAll(comms, count, NULL));
		for (int i = 0; i < count; i++)
			ranks[i].comm = comms[i];
	}
	for (int i = 0; i < count; i++)
		TRY(prepare(&ranks[i]));
	return 0;
}

void rank_run(struct rank *r)
{
	const struct rank_settings *s = r->settings;
	int count = strcmp(s->init, "all") == 0 ? r->nranks : 1;
	uint64_t end_ns =
		s->duration_s ? workload_now_ns() + s->duration_s * 1000000000 : UINT64_MAX;
	struct watch watch = {.ranks = r, .count = count};

	r->failed = all_prepare(r, count);
	if (!r->failed && pthread_create(&watch.thread, NULL, watch_run, &watch) != 0)
		r->failed = ncclSystemError;
	if (r->failed)
		return;
	while (!r->failed && r->steps < s->steps && !workload_stopped && workload_now_ns() < end_ns)
		r->failed = step(r, count);
	watch.over = true;
	pthread_join(watch.thread, NULL);
	for (int i = 0; i < count; i++)
		done(&r[i], watch.aborted);
}
