/* SPDX-License-Identifier: Apache-2.0 */
/* What a server can do once it has given up its rights. */
#include "confine_fixture.h"

#include "serve/serve.h"

static void enter(void)
{
	struct serve_confine c = {.db = db_path};

	serve_confine(&c);
}

static void test_server(void **state)
{
	confine_try_all(enter, offsetof(struct deed, server));
}

/* A file that is not there yet, in a folder that is not there either. */
static void enter_early(void)
{
	struct serve_confine c = {.db = "/nonexistent/folder/x.db"};

	serve_confine(&c);
}

static void test_no_recording_yet(void **state)
{
	assert_int_equal(try_deed(enter_early, read_a_file), 0);
	if (has_landlock)
		assert_int_equal(try_deed(enter_early, make_a_recording), EACCES);
	else
		printf("# skip: the kernel has no landlock\n");
}

/* What it knew of the kernel before is what get_check tells afterwards. */
static int compare_checks(void)
{
	static struct check_report before, after;
	struct serve_confine c = {.db = db_path};
	struct check_probes probes;

	check_probe(&probes);
	check_run("", &probes, &before);
	serve_confine(&c);
	check_run("", &c.probes, &after);
	for (size_t i = 0; i < before.count; i++)
		if (strcmp(before.rows[i].name, "CUDA processes") &&
			before.rows[i].state != after.rows[i].state)
			return (int)i + 1;
	return 0;
}

static void test_what_was_known(void **state)
{
	assert_int_equal(try_deed(stay, compare_checks), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(confine_test_control),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_no_recording_yet),
		cmocka_unit_test(test_what_was_known),
	};

	return cmocka_run_group_tests(tests, confine_setup, confine_teardown);
}
