/* SPDX-License-Identifier: Apache-2.0 */
/* test_copy.c - every operation that copies has a direction, and nothing else has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/probe/function.h"
#include "model/event.h"
#include "wire/names.h"

static void test_by_name(void **state)
{
	for (const struct wire_op_row *r = wire_ops; r->name; r++) {
		bool is_copy = strstr(r->name, "Memcpy") != NULL;

		if ((copy_direction(r->source, r->op) >= 0) != is_copy)
			fail_msg("%s", r->name);
		if (strstr(r->name, "HtoD"))
			assert_int_equal(copy_direction(r->source, r->op), COPY_H2D);
		if (strstr(r->name, "DtoH"))
			assert_int_equal(copy_direction(r->source, r->op), COPY_D2H);
	}
	assert_string_equal(copy_direction_names[COPY_DEFAULT], "default");
}

/* The kernel half keeps kinds apart for exactly the calls that are taken for such. */
static void test_kinds_are_where_the_probes_see_them(void **state)
{
	const struct probe_library *const libraries[] = {&probe_cuda_rt, &probe_cuda_drv};
	unsigned kinds = 0;

	for (size_t i = 0; i < 2; i++)
		for (const struct probe_function *f = libraries[i]->functions; f->symbols[0]; f++) {
			if (f->cookie.flags & COOKIE_DEVICE)
				continue;
			assert_int_equal(!!(f->cookie.flags & COOKIE_KIND),
				copy_has_kind(f->cookie.source, f->cookie.op));
			kinds += !!(f->cookie.flags & COOKIE_KIND);
		}
	assert_int_equal(kinds, 12); /* symbols and arrays, too */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_name),
		cmocka_unit_test(test_kinds_are_where_the_probes_see_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
