/* SPDX-License-Identifier: Apache-2.0 */
/* test_node_option.c - --node: the nodes of a recording, one of them, or a sentence. */
#include "store_fixture.h"

#include "cli/recording_option.h"

static void test_nodes(void **state)
{
	struct scratch *s = *state;
	struct session session = {.started.ns = 5};
	struct nodedb *db = scratch_open(s->path);
	struct nodedb_node *nodes = NULL;
	struct errinfo err = {0};
	size_t count = 9;

	scratch_close(db);
	assert_int_equal(node_option_list(s->path, NULL, &nodes, &count, &err), 0);
	assert_int_equal(count, 0);
	free(nodes);
	nodes = NULL;
	assert_int_equal(node_option_list(s->path, "x", &nodes, &count, &err), -EINVAL);
	assert_non_null(strstr(err.text, "has no node names"));
	db = scratch_open(s->path);
	assert_int_equal(nodedb_session_begin(db, &session, &err), 0);
	scratch_close(db);
	scratch_sql(s->path, "INSERT INTO sessions (started_at, node) VALUES (6, 'n\033_2')");
	assert_int_equal(node_option_list(s->path, NULL, &nodes, &count, &err), 0);
	assert_int_equal(count, 2);
	assert_string_equal(nodes[0].name, "n1");
	free(nodes);
	nodes = NULL;
	assert_int_equal(node_option_list(s->path, "n\033_2", &nodes, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_string_equal(nodes[0].name, "n\033_2");
	free(nodes);
	nodes = NULL;
	assert_int_equal(node_option_list(s->path, "n3", &nodes, &count, &err), -EINVAL);
	assert_non_null(strstr(err.text, "n1, n\\x1b_2"));
	assert_null(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
