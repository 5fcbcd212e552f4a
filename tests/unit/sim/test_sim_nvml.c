/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in NVML: its answers follow the state file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nvml_sim.h"
#include "nvml_state.h"
#include "share.h"
#include "tally.h"
#include "tree.h"

static char root[TREE_MAX];

static void state_write(const char *text)
{
	char from[TREE_MAX + 16], to[TREE_MAX + 16];

	tree_write(root, "/next", text);
	snprintf(from, sizeof(from), "%s/next", root);
	snprintf(to, sizeof(to), "%s/state", root);
	assert_int_equal(rename(from, to), 0);
	setenv("SIM_NVML_STATE", to, 1);
}

static int setup(void **state)
{
	tree_init(root);
	unsetenv("SIM_NVML_STATE");
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

static void test_values_follow_the_file(void **state)
{
	nvmlDevice_t device;
	nvmlMemory_t memory;
	unsigned int v, count;
	char name[32];

	assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
	assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
	assert_int_equal(count, 1);
	assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &v), NVML_SUCCESS);
	assert_int_equal(v, 30);
	state_write("gpu0.temperature 83\ngpu0.name A name\ngpu0.mem_used 7\ngpu0.power none\n");
	assert_int_equal(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &v), NVML_SUCCESS);
	assert_int_equal(v, 83);
	state_write("gpu0.temperature 0x54\ngpu0.name A name\ngpu0.mem_used 7\ngpu0.power none\n");
	assert_int_equal(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &v), NVML_SUCCESS);
	assert_int_equal(v, 84);
	assert_int_equal(nvmlDeviceGetName(device, name, sizeof(name)), NVML_SUCCESS);
	assert_string_equal(name, "A name");
	assert_int_equal(nvmlDeviceGetName(device, name, 3), NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	assert_int_equal(memory.used + memory.free, memory.total);
	assert_int_equal(nvmlDeviceGetPowerUsage(device, &v), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(
		nvmlDeviceGetPowerUsage((nvmlDevice_t)&v, &v), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
	assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

static void test_errors_on_request(void **state)
{
	nvmlDevice_t a, b;
	unsigned int v;

	state_write("gpus 2\ngpu1.error 15\n");
	assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &a), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &b), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetPowerUsage(a, &v), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetPowerUsage(b, &v), NVML_ERROR_GPU_IS_LOST);
	assert_string_equal(nvmlErrorString(15), "GPU is lost");
	state_write("gpus 2\nerror 999\n");
	assert_int_equal(nvmlDeviceGetPowerUsage(a, &v), NVML_ERROR_UNKNOWN);
	state_write("gpus 1\n");
	assert_int_equal(nvmlDeviceGetPowerUsage(b, &v), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
}

static void test_an_event_for_each_count(void **state)
{
	nvmlEventData_t data;
	nvmlEventSet_t set;
	nvmlDevice_t device;

	assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
	assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
	assert_int_equal(
		nvmlDeviceRegisterEvents(device, nvmlEventTypeXidCriticalError, set), NVML_SUCCESS);
	assert_int_equal(nvmlEventSetWait_v2(set, &data, 0), NVML_ERROR_TIMEOUT);
	state_write("gpu0.xid 79\ngpu0.xid_count 2\n");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nvmlEventSetWait_v2(set, &data, 0), NVML_SUCCESS);
		assert_ptr_equal(data.device, device);
		assert_int_equal(data.eventType, nvmlEventTypeXidCriticalError);
		assert_int_equal(data.eventData, 79);
	}
	assert_int_equal(nvmlEventSetWait_v2(set, &data, 0), NVML_ERROR_TIMEOUT);
	assert_int_equal(nvmlEventSetFree(set), NVML_SUCCESS);
	assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
}

static void test_a_crash_on_request(void **state)
{
	int status;
	pid_t pid;

	state_write("crash 1\n");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(nvmlInit_v2());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_a_key_is_a_whole_word_at_a_line_start(void **state)
{
	char text[16];

	state_write("xgpus 9\ngpus_more 8\n gpus 7\ngpu1.power 5\nlast cut here please");
	nvml_state_refresh();
	assert_int_equal(nvml_state_number(-1, "gpus", 3), 3);
	assert_int_equal(nvml_state_number(1, "power", 0), 5);
	assert_int_equal(nvml_state_number(11, "power", 2), 2);
	nvml_state_text(-1, "last", "", text, 9);
	assert_string_equal(text, "cut here");
	assert_int_equal(nvml_state_number(-1, "last", 4), 4); /* no number */
}

/* First: where they share is looked up once in a process. */
static void test_a_shared_gpu_tells_what_it_does(void **state)
{
	const struct timespec period = {.tv_nsec = 150000000};
	nvmlProcessInfo_t infos[2];
	nvmlUtilization_t use;
	nvmlDevice_t device;
	unsigned int count = 2;
	char path[TREE_MAX + 16];

	snprintf(path, sizeof(path), "%s/gpu", root);
	setenv("SIM_GPU_SHARE", path, 1);
	assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
	assert_int_equal(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
	nanosleep(&period, NULL);
	assert_int_equal(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
	assert_int_equal(use.gpu, 0);
	share_runs(tally_now_ns(), tally_now_ns() + 3600000000000);
	nanosleep(&period, NULL);
	assert_int_equal(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
	assert_true(use.gpu > 0); /* it began within the period */
	nanosleep(&period, NULL);
	assert_int_equal(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
	assert_in_range(use.gpu, 99, 100);
	assert_int_equal(
		nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos), NVML_SUCCESS);
	assert_int_equal(count, 1);
	assert_int_equal(infos[0].pid, getpid());
	state_write("gpu0.util_gpu 7\n");
	assert_int_equal(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
	assert_int_equal(use.gpu, 7);
	assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
}

#define NVML_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NVML_TEST(test_a_shared_gpu_tells_what_it_does),
		NVML_TEST(test_values_follow_the_file),
		NVML_TEST(test_errors_on_request),
		NVML_TEST(test_an_event_for_each_count),
		NVML_TEST(test_a_crash_on_request),
		NVML_TEST(test_a_key_is_a_whole_word_at_a_line_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
