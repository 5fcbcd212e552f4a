/* SPDX-License-Identifier: Apache-2.0 */
/* What each thread of the tracer can do once it has given up its rights. */
#include "confine_fixture.h"

#include "record/trace/tracer_private.h"

static struct tracer_settings settings = {.confine = true, .db_path = db_path};

static void enter_main(void)
{
	tracer_confine_main(&settings, PROBE_SESSION);
}

static void enter_store(void)
{
	tracer_confine_store(&settings);
}

static void enter_engine(void)
{
	tracer_confine_explainer(&settings);
}

static void test_main_thread(void **state)
{
	confine_try_all(enter_main, offsetof(struct deed, main));
}

static void test_store_thread(void **state)
{
	confine_try_all(enter_store, offsetof(struct deed, store));
}

static void test_engine_thread(void **state)
{
	confine_try_all(enter_engine, offsetof(struct deed, engine));
}

static void test_metrics_thread(void **state)
{
	confine_try_all(tracer_confine_metrics, offsetof(struct deed, metrics));
}

/* A run that did not ask for it keeps its rights. */
static void test_only_on_demand(void **state)
{
	settings.confine = false;
	assert_int_equal(try_deed(enter_main, execute), 0);
	assert_int_equal(try_deed(enter_store, execute), 0);
	assert_int_equal(try_deed(enter_engine, execute), 0);
	settings.confine = true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(confine_test_control),
		cmocka_unit_test(test_main_thread),
		cmocka_unit_test(test_store_thread),
		cmocka_unit_test(test_engine_thread),
		cmocka_unit_test(test_metrics_thread),
		cmocka_unit_test(test_only_on_demand),
	};

	return cmocka_run_group_tests(tests, confine_setup, confine_teardown);
}
