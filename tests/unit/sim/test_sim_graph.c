// SPDX-License-Identifier: Apache-2.0
/* CUDA graphs of the stand-in, through the exported functions: what is recorded does not run, a
 * launch lasts as long as all its parts and has their effects, handles are checked, counts are
 * exact. Times are bounded from below (arithmetic: exact). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "cuda_sim.h"
#include "tally_reading.h"

#define MS 1000000ULL

static const dim3 one = {1, 1, 1};
static cudaStream_t s;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int launch(uint64_t dur_ns)
{
	struct sim_kernel k = {SIM_KERNEL_MAGIC, dur_ns};

	return cudaLaunchKernel(&k, one, one, NULL, 0, s);
}

/* A graph of @count kernels. */
static cudaGraph_t graph_make(int count, uint64_t dur_ns)
{
	cudaGraph_t graph;

	assert_int_equal(cudaStreamBeginCapture(s, 0), 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(launch(dur_ns), 0);
	assert_int_equal(cudaStreamEndCapture(s, &graph), 0);
	return graph;
}

static uint64_t launch_and_wait(cudaGraphExec_t exec, int times)
{
	uint64_t start = now_ns();

	for (int i = 0; i < times; i++)
		assert_int_equal(cudaGraphLaunch(exec, s), 0);
	assert_int_equal(cudaStreamSynchronize(s), 0);
	return now_ns() - start;
}

static void test_capture_records_and_launch_replays(void **state)
{
	uint64_t start = now_ns(), spent;
	cudaGraph_t graph = graph_make(7, 3000 * MS);
	cudaGraphExec_t exec;

	assert_int_equal(cudaStreamSynchronize(s), 0);
	assert_true(now_ns() - start < 3000 * MS); /* 21 s were recorded, none ran */
	assert_int_equal(cudaGraphDestroy(graph), 0);
	graph = graph_make(7, 1 * MS);
	assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0); /* the instance stays */
	spent = launch_and_wait(exec, 3);
	assert_true(spent >= 21 * MS && spent < 2000 * MS);
	assert_int_equal(cudaGraphLaunch(exec, s), 0);
	assert_int_equal(cudaGraphExecDestroy(exec), 0); /* while a launch is under way */
	assert_int_equal(cudaStreamSynchronize(s), 0);
	assert_int_equal(cudaGraphLaunch(exec, s), 1);
}

static void test_copies_happen_at_each_launch(void **state)
{
	char in[64], out[64] = {0};
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	void *device;

	memset(in, 1, sizeof(in));
	assert_int_equal(cudaMalloc(&device, sizeof(in)), 0);
	assert_int_equal(cudaStreamBeginCapture(s, 2), 0);
	assert_int_equal(cudaMemcpyAsync(device, in, 64, cudaMemcpyHostToDevice, s), 0);
	assert_int_equal(cudaMemcpyAsync(out, device, 64, cudaMemcpyDeviceToHost, s), 0);
	assert_int_equal(cudaMemsetAsync(device, 9, 32, s), 0);
	assert_int_equal(cudaStreamEndCapture(s, &graph), 0);
	assert_int_equal(out[0], 0);
	assert_int_equal(cudaGraphInstantiateWithFlags(&exec, graph, 0), 0);
	for (char value = 3; value < 6; value++) {
		memset(in, value, sizeof(in));
		launch_and_wait(exec, 1);
		assert_memory_equal(out, in, sizeof(in));
	}
	assert_int_equal(cudaMemcpy(out, device, 64, cudaMemcpyDeviceToHost), 0);
	assert_int_equal(out[31], 9);
	assert_int_equal(out[32], 5);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaFree(device), 0);
}

static void test_update_takes_the_same_shape_only(void **state)
{
	cudaGraph_t slow = graph_make(5, 4 * MS), fast = graph_make(5, 0), short_one;
	cudaGraphExecUpdateResultInfo info = {.result = -1};
	cudaGraphExec_t exec;

	short_one = graph_make(4, 0);
	assert_int_equal(cudaGraphInstantiate(&exec, fast, 0), 0);
	assert_int_equal(cudaGraphExecUpdate(exec, short_one, &info), 910);
	assert_int_equal(info.result, 2);
	assert_int_equal(cudaGraphExecUpdate(exec, slow, &info), 0);
	assert_int_equal(info.result, 0);
	assert_true(launch_and_wait(exec, 1) >= 20 * MS);
	assert_int_equal(cudaGraphExecUpdate(exec, slow, NULL), 1);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(cudaGraphDestroy(slow), 0);
	assert_int_equal(cudaGraphDestroy(fast), 0);
	assert_int_equal(cudaGraphDestroy(short_one), 0);
}

static void test_errors(void **state)
{
	cudaGraphInstantiateParams params = {.result_out = -1};
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int x = 0;
	void *p;

	assert_int_equal(cudaStreamBeginCapture(NULL, 0), 900);
	assert_int_equal(cudaStreamBeginCapture(s, 3), 1);
	assert_int_equal(cudaStreamEndCapture(s, &graph), 401);
	assert_int_equal(cudaStreamBeginCapture(s, 0), 0);
	assert_int_equal(cudaStreamBeginCapture(s, 0), 401);
	assert_int_equal(cudaMallocAsync(&p, 16, s), 900);
	assert_int_equal(cudaStreamEndCapture(s, &graph), 901); /* spoilt by the allocation */
	assert_int_equal(cudaStreamBeginCapture(s, 0), 0);
	assert_int_equal(cudaStreamSynchronize(s), 900);
	assert_int_equal(cudaStreamEndCapture(s, &graph), 901);
	assert_int_equal(cudaGraphInstantiate(&exec, (cudaGraph_t)&x, 0), 1);
	assert_int_equal(cudaGraphDestroy((cudaGraph_t)&x), 1);
	assert_int_equal(cudaGraphExecDestroy((cudaGraphExec_t)&x), 1);
	assert_int_equal(cudaGraphLaunch(NULL, s), 1);
	graph = graph_make(1, 0);
	assert_int_equal(cudaGraphInstantiate(NULL, graph, 0), 1);
	assert_int_equal(cudaGraphInstantiateWithParams(&exec, graph, NULL), 1);
	assert_int_equal(cudaGraphInstantiateWithParams(&exec, graph, &params), 0);
	assert_int_equal(params.result_out, 0);
	assert_int_equal(cudaGraphLaunch(exec, (cudaStream_t)&x), 400);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(cudaGraphExecDestroy(exec), 1);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaStreamSynchronize(s), 0);
}

static void test_graph_in_a_graph(void **state)
{
	cudaGraph_t inner = graph_make(2, 2 * MS), outer;
	cudaGraphExec_t inner_exec, outer_exec;

	assert_int_equal(cudaGraphInstantiate(&inner_exec, inner, 0), 0);
	assert_int_equal(cudaStreamBeginCapture(s, 0), 0);
	assert_int_equal(cudaGraphLaunch(inner_exec, s), 0);
	assert_int_equal(cudaGraphLaunch(inner_exec, s), 0);
	assert_int_equal(cudaStreamEndCapture(s, &outer), 0);
	assert_int_equal(cudaGraphInstantiate(&outer_exec, outer, 0), 0);
	assert_true(launch_and_wait(outer_exec, 1) >= 8 * MS);
	assert_int_equal(cudaGraphDestroy(inner), 0);
	assert_int_equal(cudaGraphDestroy(outer), 0);
	assert_int_equal(cudaGraphExecDestroy(inner_exec), 0);
	assert_int_equal(cudaGraphExecDestroy(outer_exec), 0);
}

static void test_tally_is_exact(void **state)
{
	uint64_t kernels = tally_read("cuda", "cuLaunchKernel", 0);
	uint64_t launches = tally_read("cudart", "cudaGraphLaunch", 0);
	uint64_t nested = tally_read("cuda", "cuGraphLaunch", 5);
	uint64_t captures = tally_read("cuda", "cuStreamBeginCapture_v2", 0);
	cudaGraph_t graph = graph_make(17, 0);
	cudaGraphExec_t exec;

	assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), 0);
	launch_and_wait(exec, 1009);
	assert_int_equal(tally_read("cuda", "cuLaunchKernel", 0), kernels + 17);
	assert_int_equal(tally_read("cudart", "cudaGraphLaunch", 0), launches + 1009);
	assert_int_equal(tally_read("cuda", "cuGraphLaunch", 5), nested + 1009);
	assert_int_equal(tally_read("cuda", "cuStreamBeginCapture_v2", 0), captures + 1);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0);
}

static int stream_make(void **state)
{
	return cudaStreamCreate(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capture_records_and_launch_replays),
		cmocka_unit_test(test_copies_happen_at_each_launch),
		cmocka_unit_test(test_update_takes_the_same_shape_only),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_graph_in_a_graph),
		cmocka_unit_test(test_tally_is_exact),
	};
	int failed;

	tally_settings_make("test_sim_graph", argv);
	failed = cmocka_run_group_tests(tests, stream_make, NULL);
	tally_files_remove();
	_exit(failed); /* the tallies need not be written once more */
}
