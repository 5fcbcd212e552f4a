/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while the command line and the configuration file are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "command/config_file.h"
#include "command/option.h"
#include "fault.h"

static int use_config(void *arg)
{
	static const char text[] =
		"agent:\n  node: gpu1\nfleet:\n  nodes: [a:1, b:2, c:3]\n"
		"  timeout: 5s\n  ca_cert: ca.pem\ndashboard:\n  names:\n    - x\n";
	struct config *c = NULL;
	struct errinfo e = {0};
	int r = config_file_read("/etc/ingero/ingero.yaml", text, strlen(text), &c, &e);

	if (r < 0) {
		assert_null(c);
		assert_non_null(strstr(e.text, "memory")); /* and not: your file is wrong */
		return r;
	}
	assert_string_equal(c->node, "gpu1");
	assert_int_equal(c->fleet_nodes.count, 3);
	assert_string_equal(c->fleet_ca_cert, "/etc/ingero/ca.pem");
	config_free(c);
	return 0;
}

static void the_configuration(void **state)
{
	assert_true(fault_torture(use_config, NULL) > 20);
}

struct settings {
	struct option_pids pids;
	struct option_strings names;
	uint64_t after_ns;
	bool json;
};

static int use_options(void *arg)
{
	static const struct option_row rows[] = {
		{"pid", 'p', OPTION_PIDS, offsetof(struct settings, pids), "N", "", 0, 0, false},
		{"name", 0, OPTION_STRINGS, offsetof(struct settings, names), "X", "", 0, 0, false},
		{"after", 0, OPTION_DURATION, offsetof(struct settings, after_ns), "T", "", 0, 0,
			false},
		{"json", 0, OPTION_FLAG, offsetof(struct settings, json), NULL, "", 0, 0, false},
		{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
	};
	static const struct command c = {
		.name = "x", .options = rows, .settings_size = sizeof(struct settings)};
	char *argv[] = {
		"x", "--pid", "1,2,3", "--name=a", "--name", "b", "--after", "5s", "--json"};
	struct settings s = {.json = false};
	struct errinfo e = {0};
	int first, r = option_parse(&c, (int)(sizeof(argv) / sizeof(*argv)), argv, &s, &first, &e);

	if (r == 0)
		assert_true(s.pids.count == 3 && s.names.count == 2 && s.json);
	return r;
}

static void the_command_line(void **state)
{
	fault_torture(use_options, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_configuration),
		cmocka_unit_test(the_command_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
