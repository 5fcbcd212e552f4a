/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_gpu.c - a locked clock, a power cap, heat and another process are told apart, each by its own evidence. */
#include "chain_fixture.h"

/* A reading each half second: before, 1980 MHz; while steps are slow, @mhz. */
static void readings(struct chain_scene *s, int64_t before_mhz, int64_t mhz)
{
	for (int i = 0; i < 20; i++) {
		struct gpu_sample *g = &s->gpus[s->rec.gpu_count++];

		gpu_sample_init(g);
		g->time.ns = CHAIN_T0 + i * (int64_t)(NS_PER_S / 2) + (int64_t)NS_PER_MS;
		g->index = 0;
		g->util_gpu_pct = 95;
		g->sm_clock_mhz = i < 10 ? before_mhz : mhz;
		g->sm_clock_max_mhz = 1980;
		g->power_mw = 150000;
		g->power_limit_mw = g->power_default_mw = 700000;
		g->temperature_c = 45;
		g->throttle_reasons = 0;
		g->processes = 1;
	}
	s->delay.ordinary_ns = 40 * NS_PER_MS;
	s->delay.slow_ns = 90 * NS_PER_MS;
}

static void test_a_locked_clock(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);

	readings(s, 1980, 900);
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_CLOCK);
	assert_string_equal(s->delay.end.detail, "900 instead of 1980 MHz");
	assert_true(s->delay.end.share > 0.9);
	for (int i = 10; i < 20; i++)
		s->gpus[i].throttle_reasons = 2;
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_CLOCK);
	free(s);
}

/* One of three is held back. */
static void test_one_of_several(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);

	for (int i = 0; i < 3; i++) {
		size_t first = s->rec.gpu_count;

		readings(s, 1980, i == 1 ? 900 : 1980);
		for (size_t k = first; k < s->rec.gpu_count; k++)
			s->gpus[k].index = i;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_CLOCK);
	assert_string_equal(s->delay.end.detail, "900 instead of 1980 MHz");
	free(s);
}

static void test_a_power_cap(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);

	readings(s, 1980, 900);
	for (int i = 10; i < 20; i++) {
		s->gpus[i].power_limit_mw = 200000;
		s->gpus[i].power_mw = 199000;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_POWER);
	assert_string_equal(
		s->delay.end.detail, "900 instead of 1980 MHz, power limit 200 instead of 700 W");
	free(s);
}

static void test_heat(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);

	readings(s, 1980, 900);
	for (int i = 10; i < 20; i++) {
		s->gpus[i].throttle_reasons = 64;
		s->gpus[i].temperature_c = 91;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_HEAT);
	assert_string_equal(s->delay.end.detail, "900 instead of 1980 MHz, 91 °C");
	free(s);
}

/* From the first step on, against the highest clock that the GPU has. */
static void test_low_from_the_first_step(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, false);

	readings(s, 345, 345);
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_CLOCK);
	assert_string_equal(s->delay.end.detail, "345 instead of 1980 MHz");
	free(s);
}

/* Heavy work at the limit that the GPU was made for lowers the clock as it should; a lowered limit does not. */
static void test_at_its_own_power_limit(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, false);

	readings(s, 1400, 1400);
	for (int i = 0; i < 20; i++) {
		s->gpus[i].power_mw = 698000;
		s->gpus[i].throttle_reasons = 4;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	for (int i = 0; i < 20; i++)
		s->gpus[i].power_limit_mw = 300000;
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_POWER);
	for (int i = 0; i < 20; i++)
		s->gpus[i].power_default_mw = -1;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	s->gpus[0].power_limit_mw = 700000; /* it had that, at another time */
	s->gpus[0].util_gpu_pct = 0;
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_POWER);
	assert_string_equal(
		s->delay.end.detail, "1400 instead of 1980 MHz, power limit 300 instead of 700 W");
	free(s);
}

/* Kernels of a job: matrix products of @rest, attention of @attention. */
static void kernels(
	struct chain_scene *s, struct kernel_use of[2], const char *rest, const char *attention)
{
	of[0] = (struct kernel_use){.pid = CHAIN_JOB, .function = 1, .launches = 500, .name = rest};
	of[1] = (struct kernel_use){
		.pid = CHAIN_JOB, .function = 2, .launches = 100, .name = attention};
	s->rec.kernels = of;
	s->rec.kernel_count = 2;
}

/* Attention that is wider than the rest is nobody's wish, and has its place; where all is as wide, that is a choice, and
 * where nothing is, there is nothing to say. */
static void test_attention_in_wide_numbers(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, false);
	struct kernel_use of[2];

	readings(s, 1980, 1980);
	s->events[s->rec.event_count++] = (struct event){.source = SOURCE_CUDA,
		.op = CUDA_LAUNCH,
		.pid = CHAIN_JOB,
		.start.ns = chain_at(1),
		.arg0 = 2,
		.stack_hash = 5};
	kernels(s, of, "nvjet_sm90_tst_128x192_64x5_2x1_v_bz_coopB_NTN",
		"fmha_cutlassF_f32_aligned_64x64_rf_sm80()");
	assert_int_equal(chain_end(s)->resource, RESOURCE_ATTENTION);
	assert_int_equal(s->delay.end.stack_hash, 5);
	kernels(s, of, "cutlass_80_simt_sgemm_128x256_8x4_nt_align1",
		"fmha_cutlassF_f32_aligned_64x64_rf_sm80()");
	assert_int_equal(chain_end(s)->resource, RESOURCE_PRECISION);
	kernels(s, of, "nvjet_sm90_tst_128x192_64x5_2x1_v_bz_coopB_NTN",
		"fmha_cutlassF_bf16_aligned_64x64_rf_sm80()");
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* An ordinary clock, a GPU with little to do, and few readings say nothing. */
static void test_no_evidence(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, false);

	readings(s, 1900, 1900);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	for (int i = 0; i < 20; i++) {
		s->gpus[i].sm_clock_mhz = 345;
		s->gpus[i].util_gpu_pct = 3;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	for (int i = 0; i < 2; i++)
		s->gpus[i].util_gpu_pct = 90;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	for (int i = 0; i < 20; i++) { /* low for want of work, as the GPU says */
		s->gpus[i].util_gpu_pct = 90;
		s->gpus[i].throttle_reasons = 1;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	for (int i = 0; i < 20;
		i++) { /* low in a part of the steps, which are as long as the others */
		s->gpus[i].throttle_reasons = 0;
		s->gpus[i].sm_clock_mhz = i < 10 ? 1980 : 345;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

static void neighbour(struct chain_scene *s, uint32_t pid, int from)
{
	for (int i = from; i < CHAIN_STEPS; i++) {
		struct ledger_row *r = &s->ledger[s->rec.ledger_count++];

		*r = (struct ledger_row){.start.ns = CHAIN_T0 + i * CHAIN_STEP,
			.dur_ns = (uint64_t)CHAIN_STEP,
			.pid = pid,
			.tid = pid,
			.comm = "python3"};
		r->ns[LEDGER_GPU_WAIT] = 80 * NS_PER_MS;
	}
}

static struct event *launch_on(struct chain_scene *s, uint32_t pid, int32_t device)
{
	struct event *e = chain_event(s, CHAIN_T0, SOURCE_CUDA, CUDA_LAUNCH, pid);

	e->device = device;
	return e;
}

static void test_another_process(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);
	struct event *e;

	chain_home(s, CHAIN_JOB, "python3", "train.py");
	chain_home(s, 800, "python3", "serve.py");
	neighbour(s, 800, CHAIN_SLOW);
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PERHAPS);
	assert_false(s->delay.end.is_doubtful); /* the steps are slow since it is there */
	launch_on(s, CHAIN_JOB, 2);
	e = launch_on(s, 800, 1);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE); /* it has another GPU */
	e->device = 2;
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PROCESS);
	assert_string_equal(s->delay.end.who, "serve.py");
	assert_int_equal(s->delay.end.pid, 800);
	assert_string_equal(s->delay.end.detail, "in calls 80 % of the time");
	free(s);
}

/* One that is not followed is known by the GPU's own count, also of times in which nothing ran on it. */
static void test_a_stranger(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);

	readings(s, 1980, 1800);
	for (int i = 0; i < 20; i++) {
		s->gpus[i].util_gpu_pct = i < 9 ? 0 : 95;
		s->gpus[i].processes = i < 9 ? 1 : 2;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PROCESS);
	assert_string_equal(s->delay.end.who, "");
	chain_home(s, 800, "python3", "sweep.py");
	for (int i = 0; i < 20; i++) {
		s->gpus[i].process_1 = CHAIN_JOB;
		s->gpus[i].process_2 = 700; /* all along */
		s->gpus[i].process_3 = i < 9 ? -1 : 800;
	}
	assert_string_equal(chain_end(s)->who, "sweep.py");
	assert_int_equal(s->delay.end.pid, 800);
	snprintf(s->homes[0].comm, sizeof(s->homes[0].comm),
		"nvidia-cuda-mps"); /* the kernel has 15 letters */
	assert_int_not_equal(chain_end(s)->pid, 800);
	free(s);
}

/* It was there before, and began to work: the clock that falls a little by it is not the reason, nor is it otherwise. */
static void test_a_stranger_that_wakes(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);

	readings(s, 1980, 1800);
	for (int i = 0; i < 20; i++)
		s->gpus[i].processes = 2;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE); /* it idles */
	for (int i = 10; i < 20; i++)
		s->gpus[i].power_mw = 300000;
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PROCESS);
	s->account.is_drift = true; /* nobody wakes little by little */
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	s->account.is_drift = false;
	for (int i = 0; i < 20; i++)
		s->gpus[i].processes = 1;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* A GPU that the job alone keeps full cannot become busier by another process. */
static void test_a_stranger_on_a_full_gpu(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);

	readings(s, 1980, 1800);
	for (int i = 0; i < 20; i++) {
		s->gpus[i].processes = i < 9 ? 1 : 2;
		s->gpus[i].power_mw = 690000;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PROCESS);
	for (int i = 0; i < 20; i++)
		s->gpus[i].processes = 2; /* it was there before */
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PROCESS);
	for (int i = 0; i < 20; i++)
		s->gpus[i].processes = 1;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

static void test_another_process_all_along(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, false);

	chain_home(s, CHAIN_JOB, "python3", "train.py");
	chain_home(s, 800, "python3", "serve.py");
	neighbour(s, 800, 0);
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PERHAPS);
	assert_true(s->delay.end.is_doubtful);
	launch_on(s, CHAIN_JOB, 0);
	launch_on(s, 800, 0);
	assert_int_equal(chain_end(s)->resource,
		RESOURCE_GPU_PERHAPS); /* the number need not mean the same */
	assert_false(s->delay.end.is_doubtful);
	assert_string_equal(s->delay.end.who, "serve.py");
	readings(s, 1980, 1980); /* which say that it is alone on its GPU */
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	for (int i = 0; i < 20; i++)
		s->gpus[i].processes = 2;
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PROCESS);
	free(s);
}

static void test_ranks_are_no_neighbours(void **state)
{
	static const struct collective_row rows[] = {
		{.pid = CHAIN_JOB, .c = {.comm_hash = 77, .nranks = 2}},
		{.pid = 800, .c = {.comm_hash = 77, .nranks = 2}}};
	struct chain_scene *s = chain_scene_new(DELAY_BY_GPU, true);

	chain_home(s, CHAIN_JOB, "python3", "train.py")->rank = 0;
	chain_home(s, 800, "python3", "train.py")->rank = 1;
	neighbour(s, 800, CHAIN_SLOW);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	s->homes[1].rank = -1; /* a second run of it */
	assert_int_equal(chain_end(s)->resource, RESOURCE_GPU_PERHAPS);
	s->rec.collectives = rows; /* unless they take part in the same collectives */
	s->rec.collective_count = ARRAY_SIZE(rows);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_locked_clock),
		cmocka_unit_test(test_one_of_several),
		cmocka_unit_test(test_a_power_cap),
		cmocka_unit_test(test_heat),
		cmocka_unit_test(test_low_from_the_first_step),
		cmocka_unit_test(test_at_its_own_power_limit),
		cmocka_unit_test(test_attention_in_wide_numbers),
		cmocka_unit_test(test_no_evidence),
		cmocka_unit_test(test_another_process),
		cmocka_unit_test(test_a_stranger),
		cmocka_unit_test(test_a_stranger_that_wakes),
		cmocka_unit_test(test_a_stranger_on_a_full_gpu),
		cmocka_unit_test(test_another_process_all_along),
		cmocka_unit_test(test_ranks_are_no_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
