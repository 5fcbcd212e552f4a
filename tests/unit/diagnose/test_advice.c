/* SPDX-License-Identifier: Apache-2.0 */
/* test_advice.c - every row of advice fits its field and names no framework but its own; what does not fit the evidence
 * is not said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include "base/macros.h"
#include "diagnose/sentences/advice.h"

static const struct {
	unsigned needs;
	const char *word;
} words[] = {
	{HAS_TORCH, "torch"},
	{HAS_TORCH, "DataLoader"},
	{HAS_TORCH, "num_workers"},
	{HAS_TORCH, "pin_memory"},
	{HAS_TORCH, "non_blocking"},
	{HAS_TORCH, "prefetch_factor"},
	{HAS_TORCH, "autocast"},
	{HAS_TORCH, ".item()"},
	{HAS_TORCH, ".cpu()"},
	{HAS_TORCH, "tensor"},
	{HAS_LIGHTNING, "Trainer("},
	{HAS_LIGHTNING, "ModelCheckpoint"},
	{HAS_JAX, "jax"},
	{HAS_JAX, "XLA_"},
	{HAS_JAX, "orbax"},
	{HAS_JAX, "block_until_ready"},
	{HAS_CUPY, "cupy"},
	{HAS_TRITON, "triton"},
	{HAS_TENSORFLOW, "tf."},
	{HAS_TENSORFLOW, "tensorflow"},
};

static unsigned needs_all(unsigned facts)
{
	return facts & HAS_LIGHTNING ? facts | HAS_TORCH : facts;
}

static void each_row(void **state)
{
	int count = 0;

	for (const struct advice_row *r = advice_rows; r->text; r++, count++) {
		assert_true(strlen(r->text) >= 20);
		assert_true(strlen(r->text) < 180); /* and 20 for names */
		assert_true(r->text[strlen(r->text) - 1] != '.');
		assert_int_equal(r->needs & r->lacks, 0);
		for (size_t k = 0; k < ARRAY_SIZE(words); k++)
			if (strcasestr(r->text, words[k].word) && !strstr(r->text, "tf.data") &&
				!(needs_all(r->needs) & words[k].needs))
				fail_msg(
					"\"%s\" without its framework: %s", words[k].word, r->text);
		if (strstr(r->text, "{pid}"))
			assert_true(r->needs & HAS_PID);
		if (strcasestr(r->text, "loader"))
			assert_true(r->needs & (HAS_LOADER | STARTS_PROCESSES) ||
				    r->kind == DELAY_BY_LOADER);
	}
	assert_true(count > 50);
}

static struct incident tell(enum delay_kind kind, enum resource resource, unsigned facts)
{
	struct incident inc = {.fixes = {"of the catalogue"}, .fix_count = 1};
	struct advice_case c = {.kind = kind,
		.resource = resource,
		.facts = facts,
		.who = "xz (pid 7)",
		.name = "xz",
		.pid = 7};

	advice_put(&c, &inc);
	assert_in_range(inc.fix_count, 1, ADVICE_MAX);
	return inc;
}

static bool says(const struct incident *inc, const char *word)
{
	for (int i = 0; i < inc->fix_count; i++)
		if (strcasestr(inc->fixes[i], word))
			return true;
	return false;
}

/* Whatever the delay, there is something to say that fits the framework. */
static void each_kind_has_advice(void **state)
{
	static const unsigned frameworks[] = {0, HAS_TORCH, HAS_TORCH | HAS_LIGHTNING, HAS_JAX,
		HAS_CUPY, HAS_TRITON, HAS_TENSORFLOW};

	for (int k = 0; k < DELAY_KINDS; k++)
		for (size_t f = 0; f < ARRAY_SIZE(frameworks); f++) {
			struct incident inc =
				tell((enum delay_kind)k, RESOURCE_NONE, frameworks[f]);

			if (k != DELAY_BY_GPU && k != DELAY_BY_LOADER && k != DELAY_BY_STOPPED)
				assert_string_not_equal(inc.fixes[0], "of the catalogue");
			if (!(frameworks[f] & HAS_TORCH))
				assert_false(says(&inc, "torch."));
		}
}

static void a_framework_gets_its_own(void **state)
{
	struct incident inc = tell(DELAY_BY_COPY, RESOURCE_NONE, HAS_CUPY | TO_GPU);

	assert_true(says(&inc, "cupyx") && !says(&inc, "non_blocking"));
	inc = tell(DELAY_BY_COPY, RESOURCE_NONE, HAS_TORCH | FROM_GPU);
	assert_true(says(&inc, ".cpu()") && !says(&inc, "pin_memory"));
	inc = tell(DELAY_BY_COPY, RESOURCE_NONE, HAS_TORCH | TO_GPU);
	assert_true(says(&inc, "non_blocking") && !says(&inc, "DataLoader"));
	inc = tell(DELAY_BY_COMPILE, RESOURCE_COMPILER, HAS_JAX);
	assert_true(says(&inc, "JAX_LOG_COMPILES") && !says(&inc, "torch"));
	inc = tell(DELAY_BY_CHECKPOINT, RESOURCE_NONE, HAS_TORCH | HAS_LIGHTNING);
	assert_true(says(&inc, "AsyncCheckpointIO"));
}

static void a_stopped_worker_needs_no_more_workers(void **state)
{
	struct incident inc =
		tell(DELAY_BY_LOADER, RESOURCE_NONE, HAS_TORCH | IS_STOPPED | HAS_PID);

	assert_true(says(&inc, "kill -CONT 7"));
	assert_false(says(&inc, "workers"));
	inc = tell(DELAY_BY_LOADER, RESOURCE_NONE, HAS_TORCH | HAS_LOADER | BY_HOST);
	assert_true(says(&inc, "num_workers"));
}

static void who_has_the_cpu_decides(void **state)
{
	struct incident inc = tell(DELAY_BY_CPU, RESOURCE_CPU_PROGRAM, HAS_TORCH | HAS_PID);

	assert_true(says(&inc, "renice 19 -p 7") && !says(&inc, "OMP_NUM_THREADS"));
	inc = tell(DELAY_BY_CPU, RESOURCE_CPU_PROGRAM, HAS_PID | IS_OF_KERNEL);
	assert_true(says(&inc, "affinity") && !says(&inc, "renice"));
	inc = tell(DELAY_BY_CPU, RESOURCE_CPU_OWN, HAS_TORCH | IS_OWN | HAS_PID);
	assert_true(says(&inc, "OMP_NUM_THREADS") && !says(&inc, "renice"));
	inc = tell(DELAY_BY_CPU, RESOURCE_CPU_QUOTA, HAS_TORCH | HAS_PID);
	assert_true(says(&inc, "/proc/7/cgroup") && says(&inc, "cpu.cfs_quota_us"));
	assert_false(says(&inc, "container") || says(&inc, "docker"));
	inc = tell(DELAY_BY_CPU, RESOURCE_CPU_QUOTA, HAS_TORCH | IN_CONTAINER);
	assert_true(says(&inc, "container") && says(&inc, "cpu.max"));
	inc = tell(DELAY_BY_CPU, RESOURCE_CPU_PROGRAM, IS_OF_TRACER | HAS_PID);
	assert_true(says(&inc, "overhead-budget") && !says(&inc, "Stop"));
	inc = tell(DELAY_BY_LOADER, RESOURCE_CPU_PROGRAM, HAS_TORCH | HAS_LOADER | HAS_PID);
	assert_true(says(&inc, "renice 19 -p 7"));
}

static void no_loader_no_advice_about_it(void **state)
{
	struct incident inc = tell(DELAY_BY_HOST, RESOURCE_NONE, HAS_TORCH);

	assert_false(says(&inc, "loader"));
	inc = tell(DELAY_BY_HOST, RESOURCE_NONE, HAS_TORCH | HAS_LOADER);
	assert_true(says(&inc, "loader"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row),
		cmocka_unit_test(each_kind_has_advice),
		cmocka_unit_test(a_framework_gets_its_own),
		cmocka_unit_test(a_stopped_worker_needs_no_more_workers),
		cmocka_unit_test(who_has_the_cpu_decides),
		cmocka_unit_test(no_loader_no_advice_about_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
