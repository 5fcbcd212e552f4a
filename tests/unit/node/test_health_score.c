/* SPDX-License-Identifier: Apache-2.0 */
/* test_health_score.c - the formula against vectors computed in decimal arithmetic elsewhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/health/health_baseline.h"
#include "base/macros.h"

/* The first three are the published fixed points. */
static const struct {
	double in[HEALTH_SIGNAL_COUNT], out;
} vectors[] = {
	{{1, .9, .9, .9}, 0.940},
	{{1, .05, .5, .9}, 0.32375},
	{{1, .6, .1, .9}, 0.3525},
	{{1, 1, 1, 1}, 1.00},
	{{0, 0, 0, 0}, 0.000},
	{{.35, .35, .35, .35}, 0.3500},
	{{.25, .25, .25, .25}, 0.12500},
	{{.3, 1, 1, 1}, 0.54000},
	{{1, .3, 1, 1}, 0.61875},
	{{1, 1, .26, 1}, 0.468600},
	{{1, 1, 1, .349}, 0.89783825},
	{{2, -1, .5, .5}, 0.2875},
	{{1.5, 1, 1, 1}, 1.00},
	{{0.259, 0.685, 0.684, 0.849}, 0.29375500},
	{{0.186, 0.231, 0.147, 0.225}, 0.097650},
	{{0.734, 0.13, 0.531, 0.214}, 0.232200},
	{{0.295, 0.432, 0.838, 0.608}, 0.35148000},
	{{0.014, 0.276, 0.147, 0.871}, 0.117325},
	{{0.81, 0.806, 0.826, 0.745}, 0.80245},
	{{0.949, 0.794, 0.257, 0.85}, 0.40499500},
	{{0.487, 0.755, 0.564, 0.43}, 0.56085},
	{{0.364, 0.43, 0.314, 0.117}, 0.166725},
	{{0.82, 0.798, 0.986, 0.691}, 0.82835},
};

static void test_vectors(void **state)
{
	assert_true(ARRAY_SIZE(vectors) == 23);
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		double got = health_score(&health_score_defaults, vectors[i].in, NULL);

		if (!(fabs(got - vectors[i].out) <= 1e-12))
			fail_msg("vector %zu: %.17g, not %.17g", i, got, vectors[i].out);
	}
}

static void test_no_numbers_count_as_nothing(void **state)
{
	const double in[] = {NAN, INFINITY, -INFINITY, 1};
	const double same[] = {0, 0, 0, 1};
	struct health_anomalies a;
	double got = health_score(&health_score_defaults, in, &a);

	assert_true(got == health_score(&health_score_defaults, same, NULL));
	assert_int_equal(a.nan, 1 << HEALTH_THROUGHPUT);
	assert_int_equal(a.infinite, 1 << HEALTH_COMPUTE | 1 << HEALTH_MEMORY);
	health_score(&health_score_defaults, same, &a);
	assert_int_equal(a.nan | a.infinite, 0);
}

/* Where the two limits coincide, the value is below the zone. */
static void test_limits_that_coincide(void **state)
{
	struct health_score_settings s = health_score_defaults;
	const double in[] = {0.3, 0.3, 0.3, 0.3};

	s.penalty_floor = s.degradation_zone = 0.3;
	assert_true(fabs(health_score(&s, in, NULL) - 0.15) <= 1e-12);
}

static void test_settings_are_checked(void **state)
{
	struct health_score_settings s = health_score_defaults;
	struct errinfo e = {0};

	assert_int_equal(health_score_check(&s, &e), 0);
	s.weight[HEALTH_CPU] += 1e-3;
	assert_true(health_score_check(&s, &e) < 0 && strstr(e.text, "add up to 1"));
	s = health_score_defaults;
	s.weight[HEALTH_CPU] = 0;
	s.weight[HEALTH_MEMORY] = 0.35;
	assert_true(health_score_check(&s, &e) < 0 && strstr(e.text, "cpu"));
	s = health_score_defaults;
	s.penalty_floor = s.degradation_zone;
	assert_true(health_score_check(&s, &e) < 0);
	s.penalty_floor = NAN;
	assert_true(health_score_check(&s, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_no_numbers_count_as_nothing),
		cmocka_unit_test(test_limits_that_coincide),
		cmocka_unit_test(test_settings_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
