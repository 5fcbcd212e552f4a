/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_hardware.c - signs of a failing GPU in its readings. */
#include "verdict.h"

#define READINGS 10

static void readings(struct gpu_sample g[READINGS])
{
	for (int i = 0; i < READINGS; i++) {
		gpu_sample_init(&g[i]);
		g[i].time.ns = SCENE_T0_NS + i * (int64_t)NS_PER_S;
		g[i].index = 3;
		g[i].ecc_corrected = 4711;
		g[i].ecc_uncorrected = 2;
		g[i].pcie_gen = 5;
		g[i].pcie_width = 16;
		g[i].util_gpu_pct = 90;
	}
}

static struct verdicts judge(const struct gpu_sample g[READINGS])
{
	struct recording rec = {.gpus = g, .gpu_count = READINGS};

	return verdicts_of(&rec);
}

static void test_old_errors_are_history(void **state)
{
	struct gpu_sample g[READINGS];

	readings(g);
	VERDICTS v = judge(g);
	assert_int_equal(v.count, 0);
}

static void test_corrected_errors_that_grow(void **state)
{
	struct gpu_sample g[READINGS];

	readings(g);
	g[9].ecc_corrected++;
	VERDICTS few = judge(g);
	assert_int_equal(verdict(&few, PROBLEM_HARDWARE_DRIFT)->severity, SEVERITY_LOW);
	for (int i = 0; i < READINGS; i++)
		g[i].ecc_corrected = 4711 + 3 * i;
	VERDICTS v = judge(g);
	assert_int_equal(verdict(&v, PROBLEM_HARDWARE_DRIFT)->severity, SEVERITY_MEDIUM);
	assert_int_equal(verdict(&v, PROBLEM_HARDWARE_DRIFT)->count, 27);
	assert_has(verdict(&v, PROBLEM_HARDWARE_DRIFT)->summary, "GPU 3");
	assert_null(verdict(&v, PROBLEM_CORRUPTION));
}

/* The driver was loaded anew: its counters begin at 0, and nothing has grown. */
static void test_counter_that_falls(void **state)
{
	struct gpu_sample g[READINGS];

	readings(g);
	for (int i = 5; i < READINGS; i++)
		g[i].ecc_corrected = 0;
	g[7].ecc_corrected = GPU_UNKNOWN;
	VERDICTS v = judge(g);
	assert_int_equal(v.count, 0);
}

static void test_uncorrected(void **state)
{
	struct gpu_sample g[READINGS];

	readings(g);
	g[9].ecc_uncorrected = 3;
	VERDICTS v = judge(g);
	assert_int_equal(verdict(&v, PROBLEM_CORRUPTION)->severity, SEVERITY_HIGH);
	assert_has(verdict(&v, PROBLEM_CORRUPTION)->explanation, "The host cannot see");
	assert_null(verdict(&v, PROBLEM_HARDWARE_DRIFT));
}

static void test_xid(void **state)
{
	struct gpu_sample g[READINGS];

	readings(g);
	for (int i = 4; i < READINGS; i++) {
		g[i].last_xid = i < 8 ? 79 : 31; /* 79 twice, then 31 */
		g[i].last_xid_ns = g[i < 6 ? 4 : i < 8 ? 6 : 8].time.ns;
	}
	VERDICTS v = judge(g);
	assert_int_equal(v.count, 2);
	assert_int_equal(verdict(&v, PROBLEM_HARDWARE_DRIFT)->count, 2);
	assert_has(verdict(&v, PROBLEM_HARDWARE_DRIFT)->summary, "fell off the bus");
	assert_int_equal(verdict(&v, PROBLEM_HARDWARE_DRIFT)->severity, SEVERITY_HIGH);
	assert_int_equal(verdict(&v, PROBLEM_DEVICE_ASSERT)->severity, SEVERITY_MEDIUM);
}

static void test_unknown_xid_is_a_note(void **state)
{
	struct gpu_sample g[READINGS];

	readings(g);
	g[9].last_xid = 12345;
	VERDICTS v = judge(g);
	assert_int_equal(verdict(&v, PROBLEM_HARDWARE_DRIFT)->severity, SEVERITY_LOW);
}

static void test_link(void **state)
{
	struct gpu_sample g[READINGS];

	readings(g);
	g[5].pcie_width = 8; /* one reading alone is no retrained link */
	for (int i = 3; i < READINGS; i++) {
		g[i].pcie_gen = 1; /* an idle link saves power */
		g[i].util_gpu_pct = 0;
	}
	VERDICTS calm = judge(g);
	assert_int_equal(calm.count, 0);
	for (int i = 3; i < READINGS; i++)
		g[i].util_gpu_pct = 90;
	VERDICTS slower = judge(g);
	assert_has(verdict(&slower, PROBLEM_HARDWARE_DRIFT)->summary, "generation 1 instead of 5");
	readings(g);
	g[8].pcie_width = g[9].pcie_width = 8;
	VERDICTS narrower = judge(g);
	assert_has(verdict(&narrower, PROBLEM_HARDWARE_DRIFT)->summary, "lanes 8 instead of 16");
}

static void test_hostile(void **state)
{
	struct gpu_sample g[READINGS];

	readings(g);
	for (int i = 0; i < READINGS; i++) {
		g[i].ecc_corrected = i % 2 ? INT64_MAX : 0;
		g[i].pcie_width = INT64_MIN;
		g[i].time.ns = i % 3 ? g[i].time.ns : INT64_MAX;
		memset(g[i].name, 0xff, sizeof(g[i].name) - 1);
	}
	VERDICTS v = judge(g);
	assert_null(verdict(&v, PROBLEM_CORRUPTION));
	assert_null(verdict(&v, PROBLEM_HARDWARE_DRIFT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old_errors_are_history),
		cmocka_unit_test(test_corrected_errors_that_grow),
		cmocka_unit_test(test_counter_that_falls),
		cmocka_unit_test(test_uncorrected),
		cmocka_unit_test(test_xid),
		cmocka_unit_test(test_unknown_xid_is_a_note),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
