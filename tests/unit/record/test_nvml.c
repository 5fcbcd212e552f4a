/* SPDX-License-Identifier: Apache-2.0 */
/* The binding is tried on the stand-in library, and on one that lacks nearly everything. */
#include "store_fixture.h"

#include "record/gpu/nvml.h"

static void state_write(struct scratch *s, const char *text)
{
	char next[128];

	snprintf(next, sizeof(next), "%s/next", s->folder);
	scratch_write(next, text, strlen(text));
	snprintf(s->path, sizeof(s->path), "%s/state", s->folder);
	assert_int_equal(rename(next, s->path), 0);
	setenv("SIM_NVML_STATE", s->path, 1);
}

static struct nvml_library *open_stand_in(void)
{
	struct nvml_library *n = NULL;
	struct errinfo err = {0};

	if (nvml_open(SIM_NVML, &n, &err) < 0)
		fail_msg("%s", err.text);
	return n;
}

static void test_all_values(void **state)
{
	struct nvml_library *n;
	struct gpu_sample g;
	char text[64];

	state_write(*state,
		"gpus 2\ndriver 570.1\ncuda 12080\ngpu1.name Sim\ngpu1.uuid GPU-1\n"
		"gpu1.util_gpu 97\ngpu1.util_mem 41\ngpu1.sm_clock 1755\ngpu1.mem_clock 2619\n"
		"gpu1.power 612345\ngpu1.power_limit 700000\ngpu1.temperature 83\n"
		"gpu1.throttle 68\ngpu1.mem_used 42949672960\ngpu1.mem_total 150754820096\n"
		"gpu1.ecc_corrected 5\ngpu1.ecc_uncorrected 2\ngpu1.pcie_tx 1001\n"
		"gpu1.pcie_rx 2003\ngpu1.pcie_gen 4\ngpu1.pcie_width 8\ngpu1.processes 3\n");
	n = open_stand_in();
	assert_int_equal(nvml_count(n), 2);
	nvml_driver(n, text, sizeof(text));
	assert_string_equal(text, "570.1");
	nvml_cuda(n, text, sizeof(text));
	assert_string_equal(text, "12.8");
	nvml_read(n, 1, &g);
	assert_int_equal(g.index, 1);
	assert_string_equal(g.name, "Sim");
	assert_string_equal(g.uuid, "GPU-1");
	assert_string_equal(g.pci, "00000000:02:00.0");
	assert_int_equal(g.util_gpu_pct, 97);
	assert_int_equal(g.util_mem_pct, 41);
	assert_int_equal(g.sm_clock_mhz, 1755);
	assert_int_equal(g.mem_clock_mhz, 2619);
	assert_int_equal(g.power_mw, 612345);
	assert_int_equal(g.power_limit_mw, 700000);
	assert_int_equal(g.power_default_mw, 700000);
	assert_int_equal(g.sm_clock_max_mhz, 1980);
	assert_int_equal(g.temperature_c, 83);
	assert_int_equal(g.throttle_reasons, 68);
	assert_int_equal(g.mem_used_bytes, 42949672960);
	assert_int_equal(g.mem_free_bytes, 150754820096 - 42949672960);
	assert_int_equal(g.mem_total_bytes, 150754820096);
	assert_int_equal(g.ecc_corrected, 5);
	assert_int_equal(g.ecc_uncorrected, 2);
	assert_int_equal(g.pcie_tx_kb_s, 1001);
	assert_int_equal(g.pcie_rx_kb_s, 2003);
	assert_int_equal(g.pcie_gen, 4);
	assert_int_equal(g.pcie_width, 8);
	assert_int_equal(g.processes, 3);
	assert_int_equal(g.process_1, 1000);
	assert_int_equal(g.process_3, 1002);
	assert_int_equal(g.process_4, GPU_UNKNOWN);
	assert_int_equal(g.last_xid, GPU_UNKNOWN);
	assert_int_equal(g.nvml_error, 0);
	nvml_close(n);
}

static void test_what_is_not_told_and_what_fails(void **state)
{
	struct nvml_library *n;
	struct gpu_sample g;

	state_write(*state, "gpus 2\ngpu0.power none\n");
	n = open_stand_in();
	nvml_read(n, 0, &g);
	assert_int_equal(g.power_mw, GPU_UNKNOWN);
	assert_int_equal(g.nvml_error, 0); /* not supported is no error */
	assert_int_equal(g.temperature_c, 30);
	state_write(*state, "gpus 2\ngpu0.error 15\n");
	nvml_read(n, 0, &g);
	assert_int_equal(g.temperature_c, GPU_UNKNOWN);
	assert_int_equal(g.nvml_error, 15);
	assert_string_equal(nvml_error_text(n, g.nvml_error), "GPU is lost");
	nvml_read(n, 1, &g); /* the other one goes on */
	assert_int_equal(g.temperature_c, 30);
	assert_int_equal(g.nvml_error, 0);
	nvml_close(n);
}

static void test_errors_of_the_hardware_are_noted_once(void **state)
{
	struct nvml_library *n;
	struct gpu_sample g;

	state_write(*state, "gpus 2\ngpu1.xid 31\ngpu1.xid_count 4\n"); /* before our time */
	n = open_stand_in();
	nvml_take_errors(n, (wall_time){100});
	nvml_read(n, 1, &g);
	assert_int_equal(g.last_xid, GPU_UNKNOWN);
	state_write(*state, "gpus 2\ngpu1.xid 79\ngpu1.xid_count 5\n");
	nvml_take_errors(n, (wall_time){200});
	nvml_take_errors(n, (wall_time){300});
	nvml_read(n, 1, &g);
	assert_int_equal(g.last_xid, 79);
	assert_int_equal(g.last_xid_ns, 200);
	nvml_read(n, 0, &g);
	assert_int_equal(g.last_xid, GPU_UNKNOWN);
	nvml_close(n);
}

static void test_a_bare_library_tells_what_it_can(void **state)
{
	struct nvml_library *n = NULL;
	struct errinfo err = {0};
	struct gpu_sample g;
	char text[16];

	if (nvml_open(BARE_NVML, &n, &err) < 0)
		fail_msg("%s", err.text);
	nvml_driver(n, text, sizeof(text));
	assert_string_equal(text, "");
	nvml_take_errors(n, (wall_time){1});
	nvml_read(n, 0, &g);
	assert_int_equal(g.temperature_c, 44);
	assert_int_equal(g.power_mw, GPU_UNKNOWN);
	assert_int_equal(g.nvml_error, 0);
	nvml_read(n, 1, &g);
	assert_int_equal(g.temperature_c, GPU_UNKNOWN);
	assert_int_equal(g.nvml_error, 15);
	nvml_close(n);
}

static void test_absent_is_told_from_broken(void **state)
{
	struct nvml_library *n = NULL;
	struct errinfo err = {0};

	assert_int_equal(nvml_open("/nonexistent/libnvidia-ml.so.1", &n, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent"));
	state_write(*state, "error 9\n");
	assert_int_equal(nvml_open(SIM_NVML, &n, &err), -ENODEV);
	assert_string_equal(err.text, "NVML: Driver Not Loaded");
	state_write(*state, "gpus 0\n");
	assert_int_equal(nvml_open(SIM_NVML, &n, &err), -ENODEV);
	state_write(*state, "error 18\n");
	assert_int_equal(nvml_open(SIM_NVML, &n, &err), -EIO);
	assert_non_null(strstr(err.text, "version mismatch"));
	assert_null(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_values),
		TEST(test_what_is_not_told_and_what_fails),
		TEST(test_errors_of_the_hardware_are_noted_once),
		TEST(test_a_bare_library_tells_what_it_can),
		TEST(test_absent_is_told_from_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
