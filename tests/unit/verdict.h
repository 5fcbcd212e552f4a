/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - for tests of detectors: a recording's incidents by problem, and the checks that hold
 * for every incident whatever its detector. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "identity.h"
#include "diagnose/compose/diagnose.h"
#include "model/problem.h"
#include "scene.h"

struct verdicts {
	struct incident *list;
	size_t count;
};

static inline void verdicts_done(struct verdicts *v)
{
	free(v->list);
}

static inline _unused_ struct verdicts verdicts_of(const struct recording *rec)
{
	struct verdicts v = {0};

	assert_int_equal(diagnose_run(rec, &v.list, &v.count), 0);
	for (size_t i = 0; i < v.count; i++) {
		const struct incident *inc = &v.list[i];

		if (getenv("INGERO_SHOW")) /* for whoever asks why a test fails */
			print_message("%s %s: %s\n", severity_name(inc->severity),
				problem_row(inc->problem)->id, inc->summary);
		assert_true(inc->explained >= 0 && inc->explained <= 1);
		assert_true(inc->confidence > 0 && inc->confidence <= 1);
		assert_true(inc->severity <= problem_row(inc->problem)->worst);
		assert_true(inc->id[0] && inc->summary[0] && inc->root_cause[0]);
		assert_true(inc->explanation[0] && inc->evidence_sql[0]);
		assert_true(inc->step_count > 0 && inc->fix_count > 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(v.list[k].id, inc->id);
	}
	identity_check(rec, v.list, v.count);
	return v;
}

/* The only incident of @problem; NULL if there is none. */
static inline _unused_ const struct incident *verdict(
	const struct verdicts *v, enum problem problem)
{
	const struct incident *found = NULL;

	for (size_t i = 0; i < v->count; i++) {
		if (v->list[i].problem != problem)
			continue;
		assert_null(found);
		found = &v->list[i];
	}
	return found;
}

static inline _unused_ void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* Hostile rows: every detector sees them, none may crash, loop or report. */
static inline _unused_ void scene_hostile(struct scene *s, uint8_t source, uint16_t op)
{
	static const int64_t times[] = {INT64_MIN, -1, 0, INT64_MAX, SCENE_T0_NS};
	static const uint64_t huge[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63};

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		for (size_t k = 0; k < ARRAY_SIZE(huge); k++) {
			struct event *e = scene_add(s, source, op, UINT32_MAX, 0, 0, 0);

			e->start.ns = times[i];
			e->dur_ns = huge[k];
			e->arg0 = huge[3 - k];
			e->arg1 = huge[k];
			e->ret = INT32_MIN;
			memset(e->comm, 0xff, COMM_LEN - 1);
		}
}

#define SCENE    _cleanup_(scene_done) struct scene s = {.seed = 1}
#define VERDICTS _cleanup_(verdicts_done) struct verdicts
#define MIB      (UINT64_C(1) << 20)
#define GIB      (UINT64_C(1) << 30)
