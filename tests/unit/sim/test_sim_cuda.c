// SPDX-License-Identifier: Apache-2.0
/* The stand-in libraries through their exported functions: errors, memory, copies, order, time and
 * tallies. Times are bounded from below (arithmetic: exact) and loosely from above (the host). */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "cuda_sim.h"

#define TMPFS_MAGIC 0x01021994
#define MS          1000000ULL

static const dim3 one = {1, 1, 1};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int launch(uint64_t dur_ns, cudaStream_t s)
{
	struct sim_kernel k = {SIM_KERNEL_MAGIC, dur_ns};

	return cudaLaunchKernel(&k, one, one, NULL, 0, s);
}

static void test_errors(void **state)
{
	char host[16] = {0};
	void *p, *q;
	int n;

	assert_int_equal(cudaMalloc(NULL, 100), 1);
	assert_int_equal(cudaMalloc(&p, 0), 1);
	assert_int_equal(cudaMalloc(&p, 1ULL << 40), 2);
	assert_int_equal(cudaGetLastError(), 2);
	assert_int_equal(cudaGetLastError(), 0);
	assert_int_equal(cudaFree(host), 1);
	assert_int_equal(cudaFree(NULL), 0);
	assert_int_equal(cudaMalloc(&p, 16), 0);
	assert_int_equal(cudaFree((char *)p + 1), 1);
	assert_int_equal(cudaMemcpy(p, host, 17, cudaMemcpyHostToDevice), 1);
	assert_int_equal(cudaMemcpy(host, host, 16, cudaMemcpyHostToDevice), 1);
	assert_int_equal(cudaMemcpy(p, NULL, 16, cudaMemcpyHostToDevice), 1);
	assert_int_equal(cudaMemcpy(p, host, 16, (enum cudaMemcpyKind)9), 21);
	assert_int_equal(cudaMemcpy(p, host, 16, cudaMemcpyHostToDevice), 0);
	assert_int_equal(cudaMemset(host, 0, 16), 1);
	assert_int_equal(cudaMemcpy2D(p, 4, host, 4, 8, 2, cudaMemcpyHostToDevice), 1);
	assert_int_equal(cudaFree(p), 0);
	assert_int_equal(cudaFree(p), 1);
	assert_int_equal(cudaMallocAsync(&q, 16, NULL), 0);
	assert_int_equal(cudaFreeAsync(q, NULL), 0);
	assert_int_equal(cudaFreeAsync(q, NULL), 1);
	assert_int_equal(cudaSetDevice(1), 101);
	assert_int_equal(cudaGetDeviceCount(&n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(cudaGetDeviceCount(NULL), 1);
	assert_string_equal(cudaGetErrorString(2), "out of memory");
}

static void test_bad_handles_and_functions(void **state)
{
	int x = 0;

	assert_int_equal(launch(0, (cudaStream_t)&x), 400);
	assert_int_equal(cudaStreamSynchronize((cudaStream_t)0x1234), 400);
	assert_int_equal(cudaStreamDestroy(NULL), 400);
	assert_int_equal(cudaEventSynchronize((cudaEvent_t)&x), 400);
	assert_int_equal(cudaEventRecord(NULL, NULL), 400);
	assert_int_equal(cudaLaunchKernel(NULL, one, one, NULL, 0, NULL), 1);
	assert_int_equal(cudaLaunchKernel(&x, (dim3){0, 1, 1}, one, NULL, 0, NULL), 1);
	assert_int_equal(cudaLaunchKernelExC(NULL, &x, NULL), 1);
	assert_int_equal(cudaLaunchKernel((void *)0x1238, one, one, NULL, 0, NULL), 0);
	assert_int_equal(cudaLaunchKernel((void *)0x1239, one, one, NULL, 0, NULL), 0);
	assert_int_equal(cudaDeviceSynchronize(), 0);
}

static void test_copies_move_bytes(void **state)
{
	char in[4096], out[4096] = {0}, *pinned;
	cudaStream_t s;
	void *a, *b;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (char)(i * 7);
	assert_int_equal(cudaStreamCreate(&s), 0);
	assert_int_equal(cudaMalloc(&a, sizeof(in)), 0);
	assert_int_equal(cudaMalloc(&b, sizeof(in)), 0);
	assert_int_equal(cudaHostAlloc((void **)&pinned, sizeof(in), 0), 0);
	assert_int_equal(cudaMemcpy(a, in, sizeof(in), cudaMemcpyHostToDevice), 0);
	assert_int_equal(cudaMemcpyAsync(b, a, sizeof(in), cudaMemcpyDeviceToDevice, s), 0);
	assert_int_equal(cudaMemcpyAsync(pinned, b, sizeof(in), cudaMemcpyDeviceToHost, s), 0);
	assert_int_equal(cudaStreamSynchronize(s), 0);
	assert_memory_equal(pinned, in, sizeof(in));
	assert_int_equal(cudaMemset(b, 0x55, 100), 0);
	assert_int_equal(cudaMemcpy(out, b, sizeof(out), cudaMemcpyDefault), 0);
	assert_int_equal(out[99], 0x55);
	assert_int_equal(out[100], in[100]);
	assert_int_equal(cudaMemcpy2D(out, 64, a, 128, 64, 8, cudaMemcpyDeviceToHost), 0);
	assert_memory_equal(out + 64, in + 128, 64);
	assert_int_equal(cudaFreeHost(pinned), 0);
	assert_int_equal(cudaFree(a), 0);
	assert_int_equal(cudaFree(b), 0);
	assert_int_equal(cudaStreamDestroy(s), 0);
	assert_int_equal(cudaStreamSynchronize(s), 400);
}

static void test_memory_runs_out_and_returns(void **state)
{
	size_t piece = 256ULL << 20; /* a quarter of SIM_DEVICE_MEM below */
	void *p[5];

	for (int i = 0; i < 4; i++)
		assert_int_equal(cudaMalloc(&p[i], piece), 0);
	assert_int_equal(cudaMalloc(&p[4], piece), 2);
	assert_int_equal(cudaFree(p[2]), 0);
	assert_int_equal(cudaMalloc(&p[4], piece), 0);
	assert_int_equal(cudaFreeAsync(p[4], NULL), 0);
	assert_int_equal(cudaMallocAsync(&p[2], piece, NULL), 0); /* what the stream freed */
	for (int i = 0; i < 4; i++)
		assert_int_equal(cudaFree(p[i]), 0);
}

static void test_kernels_of_a_stream_add_up(void **state)
{
	uint64_t start = now_ns(), spent;

	for (int i = 0; i < 20; i++)
		assert_int_equal(launch(MS, NULL), 0);
	assert_true(now_ns() - start < 20 * MS); /* launching does not wait */
	assert_int_equal(cudaStreamSynchronize(NULL), 0);
	spent = now_ns() - start;
	assert_true(spent >= 20 * MS);
	assert_true(spent < 500 * MS);
}

/* The best of a few tries is taken as the host's delay is no property of the device. */
static void test_streams_run_together(void **state)
{
	uint64_t best = UINT64_MAX;
	cudaStream_t s[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(cudaStreamCreate(&s[i]), 0);
	for (int attempt = 0; attempt < 10; attempt++) {
		uint64_t start = now_ns(), spent;

		for (int i = 0; i < 4; i++)
			assert_int_equal(launch(10 * MS, s[i]), 0);
		assert_int_equal(cudaDeviceSynchronize(), 0);
		spent = now_ns() - start;
		assert_true(spent >= 10 * MS);
		if (spent < best)
			best = spent;
	}
	assert_true(best < 20 * MS); /* one after the other it would be 40 */
	for (int i = 0; i < 4; i++)
		assert_int_equal(cudaStreamDestroy(s[i]), 0);
}

static void test_event_orders_streams(void **state)
{
	cudaStream_t a, b;
	cudaEvent_t e;
	uint64_t start;

	assert_int_equal(cudaStreamCreate(&a), 0);
	assert_int_equal(cudaStreamCreate(&b), 0);
	assert_int_equal(cudaEventCreate(&e), 0);
	assert_int_equal(cudaEventSynchronize(e), 0); /* never recorded: nothing to wait for */
	start = now_ns();
	assert_int_equal(launch(10 * MS, a), 0);
	assert_int_equal(cudaEventRecord(e, a), 0);
	assert_int_equal(cudaStreamWaitEvent(b, e, 0), 0);
	assert_int_equal(launch(5 * MS, b), 0);
	assert_int_equal(cudaEventSynchronize(e), 0);
	assert_true(now_ns() - start >= 10 * MS);
	assert_int_equal(cudaStreamSynchronize(b), 0);
	assert_true(now_ns() - start >= 15 * MS);
	assert_int_equal(cudaEventDestroy(e), 0);
	assert_int_equal(cudaStreamDestroy(a), 0);
	assert_int_equal(cudaStreamDestroy(b), 0);
}

static void test_copy_waits_and_takes_its_time(void **state)
{
	size_t size = 20 << 20; /* 1 ms at 20 GB/s, rounded down */
	char *host = calloc(1, size);
	uint64_t start;
	void *p;

	assert_non_null(host);
	assert_int_equal(cudaMalloc(&p, size), 0);
	start = now_ns();
	assert_int_equal(launch(5 * MS, NULL), 0);
	assert_int_equal(cudaMemcpy(p, host, size, cudaMemcpyHostToDevice), 0);
	assert_true(now_ns() - start >= 6 * MS);
	assert_int_equal(cudaFree(p), 0);
	free(host);
}

/* SIM_QUEUE_DEPTH is 64 below: the 65th of 1 ms waits for the first to end. */
static void test_full_queue_blocks_the_launch(void **state)
{
	uint64_t start = now_ns();

	for (int i = 0; i < 67; i++)
		assert_int_equal(launch(MS, NULL), 0);
	assert_true(now_ns() - start >= 3 * MS);
	assert_int_equal(cudaDeviceSynchronize(), 0);
	assert_true(now_ns() - start >= 67 * MS);
}

static uint64_t tally_read(const char *suffix, const char *symbol, int column)
{
	char path[256], name[64];
	unsigned long long v[7];
	FILE *f;

	assert_int_equal(sim_tally_write(), 0);
	snprintf(path, sizeof(path), "%s.%s", getenv("SIM_TALLY"), suffix);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fscanf(f, "%63s %llu %llu %llu %llu %llu %llu %llu%*[^\n]", name, &v[0], &v[1],
		       &v[2], &v[3], &v[4], &v[5], &v[6]) != EOF) {
		if (name[0] == '#' && fscanf(f, "%*[^\n]") == EOF)
			break;
		if (strcmp(name, symbol) == 0) {
			fclose(f);
			return v[column];
		}
	}
	fclose(f);
	fail_msg("no %s in %s", symbol, path);
	return 0;
}

#define THREADS 5
#define CALLS   20011

static void *calls_make(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		if (launch(0, NULL) != 0)
			return "failed";
	return NULL;
}

static void test_tally_is_exact(void **state)
{
	uint64_t outer = tally_read("cudart", "cudaLaunchKernel", 0);
	uint64_t inner = tally_read("cuda", "cuLaunchKernel", 0);
	uint64_t nested = tally_read("cuda", "cuLaunchKernel", 5);
	uint64_t errors = tally_read("cudart", "cudaFree", 1);
	uint64_t bytes = tally_read("cudart", "cudaMalloc", 2);
	pthread_t t[THREADS];
	void *p, *failed;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, calls_make, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &failed);
		assert_null(failed);
	}
	for (int i = 0; i < 7; i++)
		assert_int_equal(
			cuLaunchKernel((CUfunction)&one, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
	for (int i = 0; i < 13; i++) {
		assert_int_equal(cudaMalloc(&p, 1009), 0);
		assert_int_equal(cudaFree(p), 0);
		assert_int_equal(cudaFree(p), 1);
	}
	assert_int_equal(tally_read("cudart", "cudaLaunchKernel", 0), outer + THREADS * CALLS);
	assert_int_equal(tally_read("cuda", "cuLaunchKernel", 0), inner + THREADS * CALLS + 7);
	assert_int_equal(tally_read("cuda", "cuLaunchKernel", 5), nested + THREADS * CALLS);
	assert_int_equal(tally_read("cudart", "cudaFree", 1), errors + 13);
	assert_int_equal(tally_read("cudart", "cudaMalloc", 2), bytes + 13 * 1009);
	assert_int_equal(tally_read("cudart", "cudaLaunchKernel", 6), 0);
}

static void test_boxes_and_batches(void **state)
{
	enum { W = 16, H = 3, D = 2, ROWS = 5 };
	char in[D * ROWS * W], out[D * H * W];
	struct cudaMemcpy3DParms box = {
		.srcPtr = {in, W, W, ROWS},
		.extent = {W / 2, H, D},
		.kind = cudaMemcpyHostToDevice,
	};
	size_t sizes[2] = {3, 5}, failed = 99;
	void *device, *dsts[2], *srcs[2] = {in, in + 3};

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (char)i;
	assert_int_equal(cudaMalloc(&device, sizeof(out)), 0);
	assert_int_equal(cudaMemset2D(device, W, 7, W, D * H), 0);
	box.dstPtr = (struct cudaPitchedPtr){device, W, W, H};
	assert_int_equal(cudaMemcpy3D(&box), 0);
	assert_int_equal(cudaMemcpy(out, device, sizeof(out), cudaMemcpyDeviceToHost), 0);
	assert_memory_equal(out + W, in + W, W / 2);            /* second row */
	assert_memory_equal(out + H * W, in + ROWS * W, W / 2); /* second slice */
	assert_int_equal(out[W / 2], 7);                        /* beside the box */
	box.extent.depth = 3;
	assert_int_equal(cudaMemcpy3D(&box), 1);
	assert_int_equal(cudaMemcpy3D(NULL), 1);
	dsts[0] = device;
	dsts[1] = (char *)device + 3;
	assert_int_equal(
		cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, NULL, NULL, 0, &failed, NULL), 0);
	assert_int_equal(cudaMemcpy(out, device, 8, cudaMemcpyDeviceToHost), 0);
	assert_memory_equal(out, in, 8);
	sizes[1] = sizeof(out);
	assert_int_equal(
		cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, NULL, NULL, 0, &failed, NULL), 1);
	assert_int_equal(failed, 1);
	assert_int_equal(cudaFree(device), 0);
}

static void set(void *flag)
{
	*(int *)flag = 1;
}

static void test_queries_and_host_functions(void **state)
{
	cudaEvent_t event;
	cudaStream_t s;
	int flag = 0;

	assert_int_equal(cudaStreamCreate(&s), 0);
	assert_int_equal(cudaEventCreate(&event), 0);
	assert_int_equal(cudaEventQuery(event), 0);
	assert_int_equal(cudaStreamQuery(s), 0);
	assert_int_equal(launch(300 * MS, s), 0);
	assert_int_equal(cudaEventRecord(event, s), 0);
	assert_int_equal(cudaLaunchHostFunc(s, set, &flag), 0);
	assert_int_equal(cudaStreamQuery(s), 600);
	assert_int_equal(cudaEventQuery(event), 600);
	assert_int_equal(flag, 0);
	assert_int_equal(cudaStreamSynchronize(s), 0);
	assert_int_equal(flag, 1);
	assert_int_equal(cudaStreamQuery(s), 0);
	assert_int_equal(cudaEventQuery(event), 0);
	assert_int_equal(cudaLaunchHostFunc(s, NULL, NULL), 1);
	assert_int_equal(cudaEventDestroy(event), 0);
	assert_int_equal(cudaStreamDestroy(s), 0);
}

static void test_made_and_mapped_memory(void **state)
{
	CUmemAllocationProp prop = {.type = 1};
	CUmemGenericAllocationHandle a, b;
	size_t size = 600ULL << 20, pitch; /* of 1 GiB: one fits, two do not */
	CUdeviceptr at;
	void *p;

	assert_int_equal(cuMemCreate(&a, 1000, &prop, 0), 1); /* not whole pieces of 2 MiB */
	assert_int_equal(cuMemCreate(&a, size, &prop, 0), 0);
	assert_int_equal(cuMemCreate(&b, size, &prop, 0), 2);
	assert_int_equal(cuMemAddressReserve(&at, size, 0, 0, 0), 0);
	assert_int_equal(cuMemMap(at, size, 0, a, 0), 0);
	assert_int_equal(cuMemMap(at, size + 1, 0, a, 0), 1);
	assert_int_equal(cuMemsetD8_v2(at, 1, 4096), 0);
	assert_int_equal(cuMemUnmap(at, size), 0);
	assert_int_equal(cuMemAddressFree(at, size), 0);
	assert_int_equal(cuMemUnmap(at, size), 1);
	assert_int_equal(cuMemRelease(a), 0);
	assert_int_equal(cuMemRelease(a), 1);
	assert_int_equal(cudaMallocPitch(&p, &pitch, 513, 3), 0);
	assert_int_equal(pitch, 1024);
	assert_int_equal(cudaFree(p), 0);
}

static jmp_buf escape;

static void leave(const void *func)
{
	longjmp(escape, 1);
}

static void test_left_call_is_unreturned(void **state)
{
	uint64_t calls = tally_read("cudart", "cudaLaunchKernel", 0);
	uint64_t inner = tally_read("cuda", "cuLaunchKernel", 0);

	sim_callback_set(leave);
	for (volatile int i = 0; i < 11; i++) {
		if (setjmp(escape) == 0) {
			launch(0, NULL);
			fail_msg("the call returned");
		}
	}
	sim_callback_set(NULL);
	assert_int_equal(launch(0, NULL), 0);
	assert_int_equal(tally_read("cudart", "cudaLaunchKernel", 0), calls + 12);
	assert_int_equal(tally_read("cudart", "cudaLaunchKernel", 6), 11);
	assert_int_equal(tally_read("cuda", "cuLaunchKernel", 0), inner + 1);
}

static void test_context_does_not_survive_fork(void **state)
{
	int status;
	void *p;
	pid_t pid = fork();

	if (pid == 0)
		_exit(cudaMalloc(&p, 100) == 3 && launch(0, NULL) == 3 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static long faults_of_copy(void *dst, const void *src, size_t size)
{
	struct rusage a, b;

	getrusage(RUSAGE_THREAD, &a);
	assert_int_equal(cudaMemcpy(dst, src, size, cudaMemcpyHostToDevice), 0);
	getrusage(RUSAGE_THREAD, &b);
	return b.ru_majflt - a.ru_majflt;
}

static void test_cold_file_faults_in_the_call(void **state)
{
	size_t size = 4 << 20;
	char path[] = "/var/tmp/test_sim_cuda.XXXXXX", *block = calloc(1, size);
	struct statfs fs;
	char *map;
	void *p;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	if (fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC) {
		print_message("SKIPPED: /var/tmp is a tmpfs, which has no cold pages\n");
		close(fd);
		free(block);
		skip();
	}
	assert_int_equal(write(fd, block, size), size);
	assert_int_equal(fdatasync(fd), 0);
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(cudaMalloc(&p, size), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	assert_true(faults_of_copy(p, map, size) > 0);
	assert_int_equal(faults_of_copy(p, map, size), 0); /* warm now */
	assert_int_equal(cudaFree(p), 0);
	munmap(map, size);
	close(fd);
	free(block);
}

/* The libraries read their settings when they are loaded, so they must be there before main. */
static void settings_make(char **argv)
{
	char path[64];

	if (getenv("SIM_TALLY"))
		return;
	snprintf(path, sizeof(path), "/tmp/test_sim_cuda.%d", getpid());
	setenv("SIM_TALLY", path, 1);
	setenv("SIM_INIT_NS", "0", 1);
	setenv("SIM_KERNEL_NS", "0", 1);
	setenv("SIM_DEVICE_MEM", "1073741824", 1);
	setenv("SIM_QUEUE_DEPTH", "64", 1);
	execv("/proc/self/exe", argv);
	abort();
}

static int tallies_remove(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s.cudart", getenv("SIM_TALLY"));
	unlink(path);
	snprintf(path, sizeof(path), "%s.cuda", getenv("SIM_TALLY"));
	unlink(path);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_bad_handles_and_functions),
		cmocka_unit_test(test_copies_move_bytes),
		cmocka_unit_test(test_memory_runs_out_and_returns),
		cmocka_unit_test(test_kernels_of_a_stream_add_up),
		cmocka_unit_test(test_streams_run_together),
		cmocka_unit_test(test_event_orders_streams),
		cmocka_unit_test(test_copy_waits_and_takes_its_time),
		cmocka_unit_test(test_full_queue_blocks_the_launch),
		cmocka_unit_test(test_boxes_and_batches),
		cmocka_unit_test(test_queries_and_host_functions),
		cmocka_unit_test(test_made_and_mapped_memory),
		cmocka_unit_test(test_tally_is_exact),
		cmocka_unit_test(test_left_call_is_unreturned),
		cmocka_unit_test(test_context_does_not_survive_fork),
		cmocka_unit_test(test_cold_file_faults_in_the_call),
	};
	int failed;

	settings_make(argv);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tallies_remove(NULL);
	_exit(failed); /* the tallies need not be written once more */
}
