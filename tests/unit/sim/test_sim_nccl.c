// SPDX-License-Identifier: Apache-2.0
/* The stand-in libnccl through its exported functions: ranks that are processes or threads really
 * meet, the last one makes the others wait in their stream's wait and not in the call, accessors
 * read the communicator, numbers and mismatches are in the log, counts are exact. Times are bounded
 * from below (arithmetic: exact) and loosely from above (the host). */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "nccl_sim.h"
#include "tally_reading.h"

#define MS 1000000ULL

static const dim3 one = {1, 1, 1};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int kernel(uint64_t dur_ns, cudaStream_t s)
{
	struct sim_kernel k = {SIM_KERNEL_MAGIC, dur_ns};

	return cudaLaunchKernel(&k, one, one, NULL, 0, s);
}

static int reduce(ncclComm_t c, size_t count, cudaStream_t s)
{
	return ncclAllReduce(NULL, NULL, count, ncclFloat32, ncclSum, c, s);
}

/* Two ranks of one process on streams of their own. */
static ncclComm_t pair[2];
static cudaStream_t streams[2];

static int pair_make(void **state)
{
	for (int i = 0; i < 2; i++)
		if (cudaStreamCreate(&streams[i]) != 0)
			return -1;
	return ncclCommInitAll(pair, 2, NULL);
}

static int pair_end(void **state)
{
	for (int i = 0; i < 2; i++) {
		if (ncclCommDestroy(pair[i]) != 0 || cudaStreamDestroy(streams[i]) != 0)
			return -1;
	}
	return 0;
}

static void test_wait_is_in_the_synchronisation(void **state)
{
	uint64_t start = now_ns(), called;

	assert_int_equal(kernel(80 * MS, streams[1]), 0); /* rank 1 comes to it 80 ms later */
	assert_int_equal(reduce(pair[0], 1, streams[0]), 0);
	assert_int_equal(reduce(pair[1], 1, streams[1]), 0);
	called = now_ns();
	assert_int_equal(cudaStreamSynchronize(streams[0]), 0);
	assert_true(now_ns() - start >= 80 * MS && now_ns() - start < 2000 * MS);
	assert_true(called - start < 40 * MS);
	assert_int_equal(cudaStreamSynchronize(streams[1]), 0);
}

static void test_work_behind_waits_too(void **state)
{
	cudaEvent_t event;
	cudaStream_t other;
	uint64_t start = now_ns();

	assert_int_equal(cudaStreamCreate(&other), 0);
	assert_int_equal(cudaEventCreate(&event), 0);
	assert_int_equal(reduce(pair[0], 1, streams[0]), 0);
	assert_int_equal(kernel(10 * MS, streams[0]), 0);
	assert_int_equal(cudaEventRecord(event, streams[0]), 0);
	assert_int_equal(cudaStreamWaitEvent(other, event, 0), 0);
	assert_int_equal(kernel(10 * MS, other), 0);
	assert_int_equal(kernel(30 * MS, streams[1]), 0);
	assert_int_equal(reduce(pair[1], 1, streams[1]), 0);
	assert_int_equal(cudaStreamSynchronize(other), 0);
	assert_true(now_ns() - start >= 50 * MS);   /* 30 + 10 + 10 */
	assert_int_equal(kernel(10 * MS, NULL), 0); /* the default stream comes after all of it */
	assert_int_equal(cudaStreamSynchronize(NULL), 0);
	assert_true(now_ns() - start >= 60 * MS);
	assert_int_equal(cudaEventDestroy(event), 0);
	assert_int_equal(cudaStreamDestroy(other), 0);
}

/* SIM_NCCL_BYTES_PER_S is 1e9 below: 40 MB take 40 ms, on both ranks. */
static void test_bytes_take_time(void **state)
{
	uint64_t start = now_ns();

	for (int i = 0; i < 2; i++)
		assert_int_equal(reduce(pair[i], 10000000, streams[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(cudaStreamSynchronize(streams[i]), 0);
	assert_true(now_ns() - start >= 40 * MS);
}

static void test_accessors(void **state)
{
	int n = -1;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(ncclCommUserRank(pair[i], &n), 0);
		assert_int_equal(n, i);
		assert_int_equal(ncclCommCount(pair[i], &n), 0);
		assert_int_equal(n, 2);
		assert_int_equal(ncclCommCuDevice(pair[i], &n), 0);
		assert_int_equal(n, i);
	}
	assert_int_equal(ncclCommUserRank(NULL, &n), ncclInvalidArgument);
	assert_int_equal(ncclCommCount(pair[0], NULL), ncclInvalidArgument);
	assert_int_equal(ncclGetVersion(&n), 0);
	assert_int_equal(n, 23102);
	assert_string_equal(ncclGetErrorString(ncclInProgress), "NCCL operation in progress");
}

static void test_errors(void **state)
{
	ncclConfig_t config = {.magic = 1};
	ncclUniqueId id;
	ncclComm_t c;
	int x = 0;

	assert_int_equal(ncclGetUniqueId(NULL), ncclInvalidArgument);
	assert_int_equal(ncclGetUniqueId(&id), 0);
	assert_int_equal(ncclCommInitRank(&c, 0, id, 0), ncclInvalidArgument);
	assert_int_equal(ncclCommInitRank(&c, 2, id, 2), ncclInvalidArgument);
	assert_int_equal(ncclCommInitRankConfig(&c, 1, id, 0, &config), ncclInvalidArgument);
	assert_int_equal(reduce(NULL, 1, streams[0]), ncclInvalidArgument);
	assert_int_equal(
		ncclAllReduce(NULL, NULL, 1, 99, 0, pair[0], streams[0]), ncclInvalidArgument);
	assert_int_equal(ncclBroadcast(NULL, NULL, 1, ncclInt8, 2, pair[0], streams[0]),
		ncclInvalidArgument);
	assert_int_equal(ncclSend(NULL, 1, ncclInt8, -1, pair[0], streams[0]), ncclInvalidArgument);
	assert_int_equal(reduce(pair[0], 1, (cudaStream_t)&x), ncclUnhandledCudaError);
	assert_int_equal(ncclGroupEnd(), ncclInvalidUsage);
	assert_int_equal(ncclCommDestroy(NULL), 0);
}

static void test_group_of_sends_and_receives(void **state)
{
	uint64_t start = now_ns();

	assert_int_equal(kernel(40 * MS, streams[1]), 0);
	assert_int_equal(ncclGroupStart(), 0);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 5; k++)
			assert_int_equal(
				ncclSend(NULL, 8, ncclInt8, 1 - i, pair[i], streams[i]), 0);
		for (int k = 0; k < 5; k++)
			assert_int_equal(
				ncclRecv(NULL, 8, ncclInt8, 1 - i, pair[i], streams[i]), 0);
	}
	assert_int_equal(ncclGroupEnd(), 0);
	assert_int_equal(cudaStreamSynchronize(streams[0]), 0);
	assert_true(now_ns() - start >= 40 * MS);
	assert_int_equal(cudaStreamSynchronize(streams[1]), 0);
	assert_int_equal(ncclGroupStart(), 0);
	for (int k = 0; k < 17; k++)
		assert_int_equal(ncclSend(NULL, 8, ncclInt8, 1, pair[0], streams[0]), 0);
	assert_int_equal(ncclGroupEnd(), ncclInvalidUsage); /* at most 16 with one peer */
}

static void test_abort_ends_a_hang(void **state)
{
	ncclComm_t comms[2];
	uint64_t start;

	assert_int_equal(ncclCommInitAll(comms, 2, NULL), 0);
	assert_int_equal(reduce(comms[0], 1, streams[0]), 0); /* rank 1 never calls */
	assert_int_equal(kernel(0, streams[0]), 0);
	start = now_ns();
	assert_int_equal(ncclCommAbort(comms[0]), 0);
	assert_int_equal(cudaStreamSynchronize(streams[0]), 0);
	assert_true(now_ns() - start < 2000 * MS);
	assert_int_equal(ncclCommAbort(comms[1]), 0);
}

static void test_nonblocking_is_in_progress_then_ready(void **state)
{
	ncclConfig_t config = {.magic = NCCL_CONFIG_MAGIC, .blocking = 0};
	ncclResult_t result = ncclInProgress;
	ncclComm_t c[2];
	ncclUniqueId id;

	assert_int_equal(ncclGetUniqueId(&id), 0);
	assert_int_equal(ncclCommInitRankConfig(&c[0], 2, id, 0, &config), ncclInProgress);
	assert_int_equal(ncclCommGetAsyncError(c[0], &result), 0);
	assert_int_equal(result, ncclInProgress);
	assert_int_equal(ncclCommInitRankScalable(&c[1], 2, 1, 1, &id, NULL), 0);
	while (result == ncclInProgress)
		assert_int_equal(ncclCommGetAsyncError(c[0], &result), 0);
	assert_int_equal(result, ncclSuccess);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ncclCommDestroy(c[i]), 0);
}

static void *split_run(void *arg)
{
	int rank = (int)(uintptr_t)arg, excluded = 0, got[2];
	ncclComm_t part, rest;
	static ncclUniqueId id = {"split"};
	ncclComm_t world;

	if (ncclCommInitRank(&world, 5, id, rank) != 0)
		return "init";
	if (ncclCommSplit(world, rank == 4 ? NCCL_SPLIT_NOCOLOR : rank % 2, -rank, &part, NULL))
		return "split";
	if ((rank == 4) != (part == NULL))
		return "color";
	if (part && (ncclCommUserRank(part, &got[0]) || ncclCommCount(part, &got[1]) ||
			    got[0] != (rank < 2 ? 1 : 0) || got[1] != 2))
		return "rank by key";
	if (rank != 0) {
		if (ncclCommShrink(world, &excluded, 1, &rest, NULL, 0))
			return "shrink";
		if (ncclCommUserRank(rest, &got[0]) || got[0] != rank - 1)
			return "rank after shrink";
		ncclCommDestroy(rest);
	}
	ncclCommDestroy(part);
	return ncclCommDestroy(world) ? "destroy" : NULL;
}

static void test_split_and_shrink(void **state)
{
	pthread_t threads[5];
	void *failed;

	for (uintptr_t i = 0; i < 5; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, split_run, (void *)i), 0);
	for (int i = 0; i < 5; i++) {
		pthread_join(threads[i], &failed);
		if (failed)
			fail_msg("rank %d: %s", i, (char *)failed);
	}
}

/* Lines of the log of all processes that begin with @word and have this rank and op; the sum of
 * their waits. */
static uint64_t log_count(const char *word, int rank, const char *op, uint64_t *ret_wait_ns)
{
	char path[128], line[512], w[16], name[32];
	unsigned long long hash, seq, count, bytes, at, wait;
	int r, nranks, type, redop, root, peer;
	uint64_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s.nccl", getenv("SIM_TALLY"));
	f = fopen(path, "r");
	assert_non_null(f);
	*ret_wait_ns = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%15s %llx %llu %31s %d %d %llu %d %d %d %d %llu %llu %llu", w,
			    &hash, &seq, name, &r, &nranks, &count, &type, &redop, &root, &peer,
			    &bytes, &at, &wait) != 14)
			continue;
		if (strcmp(w, word) == 0 && r == rank && strcmp(name, op) == 0 && nranks == 3) {
			n++;
			*ret_wait_ns += wait;
		}
	}
	fclose(f);
	return n;
}

#define STEPS 31

static int process_run(int rank, ncclUniqueId id, uint64_t *sync_ns)
{
	cudaStream_t s;
	ncclComm_t c;

	if (cudaStreamCreate(&s) || ncclCommInitRank(&c, 3, id, rank))
		return 1;
	for (int i = 0; i < STEPS; i++) {
		uint64_t start;

		if (rank == 1 && kernel(5 * MS, s))
			return 2;
		start = now_ns();
		if (ncclAllGather(NULL, NULL, 100, ncclFloat64, c, s) || cudaStreamSynchronize(s))
			return 3;
		*sync_ns += now_ns() - start;
	}
	return ncclCommDestroy(c) || sim_nccl_tally_write() ? 4 : 0;
}

/* Three processes, rank 1 slower by 5 ms at each of 31 steps: the others' waits add up to that,
 * less what they are late themselves on a busy machine. Forked before this process's first CUDA
 * call, so this test comes first. */
static void test_processes_meet(void **state)
{
	ncclUniqueId id;
	uint64_t wait_ns, least = STEPS * 5 * MS;
	int status;

	assert_int_equal(ncclGetUniqueId(&id), 0);
	for (int rank = 0; rank < 3; rank++) {
		if (fork() == 0) {
			uint64_t sync_ns = 0;
			int r = process_run(rank, id, &sync_ns);

			_exit(r ? r : sync_ns < least / 2);
		}
	}
	for (int i = 0; i < 3; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(log_count("coll", 0, "AllGather", &wait_ns), STEPS);
	assert_true(wait_ns > least / 2);
	assert_int_equal(log_count("coll", 2, "AllGather", &wait_ns), STEPS);
	assert_int_equal(log_count("coll", 1, "AllGather", &wait_ns), STEPS);
	assert_int_equal(log_count("pending", 1, "AllGather", &wait_ns), 0);
}

static void test_mismatch_is_reported(void **state)
{
	char path[128], line[512];
	int found = 0;
	FILE *f;

	assert_int_equal(reduce(pair[0], 7, streams[0]), 0);
	assert_int_equal(ncclAllGather(NULL, NULL, 7, ncclFloat32, pair[1], streams[1]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(cudaStreamSynchronize(streams[i]), 0);
	snprintf(path, sizeof(path), "%s.nccl", getenv("SIM_TALLY"));
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found += strstr(line, "mismatch") && strstr(line, "AllReduce 0 7 AllGather 1 7");
	fclose(f);
	assert_int_equal(found, 1);
}

static uint64_t calls_of(const char *suffix, const char *symbol, int column)
{
	assert_int_equal(sim_nccl_tally_write(), 0);
	return tally_read(suffix, symbol, column);
}

static void test_tally_is_exact(void **state)
{
	uint64_t calls = calls_of("libnccl", "ncclAllReduce", 0);
	uint64_t bytes = calls_of("libnccl", "ncclAllReduce", 2);
	uint64_t errors = calls_of("libnccl", "ncclAllReduce", 1);
	uint64_t launches = calls_of("cuda", "cuLaunchKernelEx", 0);

	for (int i = 0; i < 211; i++)
		for (int rank = 0; rank < 2; rank++)
			assert_int_equal(reduce(pair[rank], 3, streams[rank]), 0);
	for (int i = 0; i < 13; i++)
		assert_int_equal(reduce(NULL, 3, NULL), ncclInvalidArgument);
	assert_int_equal(cudaDeviceSynchronize(), 0);
	assert_int_equal(calls_of("libnccl", "ncclAllReduce", 0), calls + 2 * 211 + 13);
	assert_int_equal(calls_of("libnccl", "ncclAllReduce", 1), errors + 13);
	assert_int_equal(calls_of("libnccl", "ncclAllReduce", 2), bytes + (2 * 211 + 13) * 12);
	assert_int_equal(calls_of("cuda", "cuLaunchKernelEx", 0), launches + 2 * 211);
}

static void test_nothing_is_left_behind(void **state)
{
	DIR *d = opendir(getenv("SIM_NCCL_DIR"));
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		assert_null(strstr(e->d_name, "sim-nccl-"));
	closedir(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_is_in_the_synchronisation),
		cmocka_unit_test(test_work_behind_waits_too),
		cmocka_unit_test(test_bytes_take_time),
		cmocka_unit_test(test_accessors),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_group_of_sends_and_receives),
		cmocka_unit_test(test_abort_ends_a_hang),
		cmocka_unit_test(test_nonblocking_is_in_progress_then_ready),
		cmocka_unit_test(test_split_and_shrink),
		cmocka_unit_test(test_mismatch_is_reported),
		cmocka_unit_test(test_tally_is_exact),
		cmocka_unit_test(test_nothing_is_left_behind),
	};
	const struct CMUnitTest first[] = {cmocka_unit_test(test_processes_meet)};
	char folder[] = "/tmp/test_sim_nccl.XXXXXX";
	int failed;

	if (!getenv("SIM_TALLY")) {
		assert_non_null(mkdtemp(folder));
		setenv("SIM_NCCL_DIR", folder, 1);
		setenv("SIM_NCCL_BYTES_PER_S", "1e9", 1);
	}
	tally_settings_make("test_sim_nccl", argv);
	failed = cmocka_run_group_tests(first, NULL, NULL);
	failed += cmocka_run_group_tests(tests, pair_make, pair_end);
	tally_files_remove();
	rmdir(getenv("SIM_NCCL_DIR"));
	_exit(failed); /* the tallies need not be written once more */
}
