/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "record/capture/host.h"
#include "tree.h"

static char root[TREE_MAX];
static struct host_reader host;

static int setup(void **state)
{
	tree_init(root);
	host_reader_init(&host, root);
	tree_write(root, "/proc/stat",
		"cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 50 0 50 400 0 0 0 0 0 0\n"
		"cpu3 50 0 50 400 0 0 0 0 0 0\nintr 1 2 3\ncpu9 1 1 1 1\n");
	tree_write(root, "/proc/meminfo",
		"MemTotal: 8192000 kB\nMemFree: 1 kB\nMemAvailable: 2048000 kB\n"
		"SwapTotal: 4096000 kB\nSwapFree: 3072000 kB\n");
	tree_write(root, "/proc/loadavg", "1.50 0.75 0.10 1/100 1234\n");
	tree_write(root, "/proc/vmstat", "nr_free_pages 1\npgfault 99\npgmajfault 1000\n");
	tree_write(root, "/proc/pressure/cpu",
		"some avg10=12.50 avg60=1.00 avg300=0.10 total=1\nfull avg10=9.00 total=2\n");
	tree_write(root, "/proc/pressure/memory", "some avg10=0.00 avg60=0.00 total=0\n");
	tree_write(root, "/proc/pressure/io", "some avg10=3.25 avg60=0.00 total=0\n");
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

#define ABOUT(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void test_first_reading(void **state)
{
	struct host_sample s;

	assert_int_equal(host_read(&host, (wall_time){1000000000}, &s), 0);
	assert_int_equal(s.time.ns, 1000000000);
	assert_int_equal(s.mem_total_mb, 8000);
	assert_int_equal(s.mem_avail_mb, 2000);
	ABOUT(s.mem_pct, 75.0);
	assert_int_equal(s.swap_mb, 1000);
	assert_int_equal(s.swap_total_mb, 4000);
	ABOUT(s.load1, 1.5);
	ABOUT(s.load5, 0.75);
	ABOUT(s.psi_cpu_pct, 12.5);
	ABOUT(s.psi_memory_pct, 0.0);
	ABOUT(s.psi_io_pct, 3.25);
	ABOUT(s.cpu_pct, 0.0); /* nothing to compare with yet */
	assert_true(s.major_faults_per_s < 0);
	assert_true(s.steal_pct < 0 && s.iowait_pct < 0);
	assert_true(s.busiest_cpu_pct < 0);
	assert_int_equal(s.busiest_cpu, -1);
}

static void test_shares_and_rates_are_since_the_last_reading(void **state)
{
	struct host_sample s;

	assert_int_equal(host_read(&host, (wall_time){1000000000}, &s), 0);
	tree_write(root, "/proc/stat",
		"cpu  190 0 100 890 20 0 0 0 0 0\ncpu0 60 0 50 480 10 0 0 0 0 0\n"
		"cpu3 130 0 50 410 10 0 0 0 0 0\nintr 1 2 3\n");
	tree_write(root, "/proc/vmstat", "pgmajfault 1030\n");
	assert_int_equal(host_read(&host, (wall_time){3000000000}, &s), 0);
	ABOUT(s.cpu_pct, 45.0); /* 90 of 200 ticks; iowait is idle */
	ABOUT(s.iowait_pct, 10.0);
	ABOUT(s.steal_pct, 0.0);
	assert_int_equal(s.busiest_cpu, 3);
	ABOUT(s.busiest_cpu_pct, 80.0);
	ABOUT(s.major_faults_per_s, 15.0);
	/* Counters that run backwards (a CPU that went away and came back) make no nonsense. */
	tree_write(root, "/proc/stat", "cpu  180 0 100 900 20 0 0 0 0 0\ncpu3 1 0 1 1 1 0 0 0\n");
	tree_write(root, "/proc/vmstat", "pgmajfault 5\n");
	assert_int_equal(host_read(&host, (wall_time){4000000000}, &s), 0);
	ABOUT(s.cpu_pct, 0.0);
	assert_true(s.busiest_cpu_pct < 0);
	assert_true(s.major_faults_per_s < 0);
}

/* What the hypervisor gave to others is told, and is not idle. */
static void test_steal(void **state)
{
	struct host_sample s;

	assert_int_equal(host_read(&host, (wall_time){1}, &s), 0);
	tree_write(root, "/proc/stat", "cpu  110 0 100 860 0 0 0 30 0 0\n");
	assert_int_equal(host_read(&host, (wall_time){2}, &s), 0);
	ABOUT(s.steal_pct, 30.0);
	ABOUT(s.iowait_pct, 0.0);
	ABOUT(s.cpu_pct, 40.0);
}

static void test_a_kernel_without_pressure(void **state)
{
	struct host_sample s;
	char path[TREE_MAX + 32];

	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/proc/pressure/%s", root,
			(const char *[]){"cpu", "memory", "io"}[i]);
		assert_int_equal(unlink(path), 0);
	}
	tree_write(root, "/proc/vmstat", "nothing here\n");
	assert_int_equal(host_read(&host, (wall_time){1}, &s), 0);
	assert_true(s.psi_cpu_pct < 0 && s.psi_memory_pct < 0 && s.psi_io_pct < 0);
	assert_true(s.major_faults_per_s < 0);
}

static void test_a_cpu_past_the_ceiling_is_in_the_sum_alone(void **state)
{
	struct host_sample s;

	assert_int_equal(host_read(&host, (wall_time){1}, &s), 0);
	tree_write(root, "/proc/stat",
		"cpu  200 0 100 800 0\ncpu4096 9 9 9 9\ncpu99999999999 1 1 1 1\n");
	assert_int_equal(host_read(&host, (wall_time){2}, &s), 0);
	ABOUT(s.cpu_pct, 100.0);
	assert_int_equal(s.busiest_cpu, -1);
}

static void test_nonsense_is_refused(void **state)
{
	struct host_sample s = {.cpu_pct = 7};

	tree_write(root, "/proc/stat", "cpu  x\n");
	assert_int_equal(host_read(&host, (wall_time){1}, &s), -EBADMSG);
	tree_write(root, "/proc/stat", "");
	assert_int_equal(host_read(&host, (wall_time){1}, &s), -EBADMSG);
	assert_true(s.cpu_pct == 7);
}

#define HOST_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOST_TEST(test_first_reading),
		HOST_TEST(test_shares_and_rates_are_since_the_last_reading),
		HOST_TEST(test_steal),
		HOST_TEST(test_a_kernel_without_pressure),
		HOST_TEST(test_a_cpu_past_the_ceiling_is_in_the_sum_alone),
		HOST_TEST(test_nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
