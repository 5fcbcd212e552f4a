/* SPDX-License-Identifier: Apache-2.0 */
/* test_yaml_tree.c - maps, lists and texts with their lines, and what is refused with one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/buf.h"
#include "yaml/yaml_tree.h"

static struct yaml_tree *read_text(const char *text, struct errinfo *e)
{
	struct yaml_tree *t = NULL;

	if (yaml_tree_read("f.yaml", text, strlen(text), &t, e) < 0)
		fail_msg("%s", e->text);
	return t;
}

static void test_tree(void **state)
{
	struct errinfo e = {0};
	struct yaml_tree *t = read_text("a: 1\n"
					"list:\n"
					"  - x: one\n"
					"    y: [p, 'null', \"\"]\n"
					"  - plain\n"
					"empty:\n"
					"tilde: ~\n",
		&e);
	const struct yaml_value *root = yaml_tree_root(t), *list, *y;

	assert_int_equal(root->kind, YAML_MAP);
	assert_int_equal(root->count, 4);
	assert_string_equal(yaml_member(root, "a")->text, "1");
	list = yaml_member(root, "list");
	assert_true(list->kind == YAML_LIST && list->line == 2 && list->count == 2);
	assert_string_equal(yaml_member(list->first, "x")->text, "one");
	y = yaml_member(list->first, "y");
	assert_true(y->line == 4 && y->count == 3);
	assert_string_equal(y->first->next->text, "null");
	assert_string_equal(y->first->next->next->text, "");
	assert_string_equal(list->first->next->text, "plain");
	assert_int_equal(list->first->next->line, 5);
	assert_int_equal(yaml_member(root, "empty")->kind, YAML_NOTHING);
	assert_int_equal(yaml_member(root, "tilde")->kind, YAML_NOTHING);
	assert_null(yaml_member(root, "none"));
	assert_null(yaml_member(list, "x"));
	yaml_tree_free(t);
	t = read_text("# nothing\n", &e);
	assert_int_equal(yaml_tree_root(t)->kind, YAML_NOTHING);
	yaml_tree_free(t);
}

static void refuses(const char *text, const char *words)
{
	struct yaml_tree *t = NULL;
	struct errinfo e = {0};

	assert_int_equal(yaml_tree_read("f.yaml", text, strlen(text), &t, &e), -EINVAL);
	assert_null(t);
	assert_int_equal(e.exit_code, EXIT_CONFIG);
	if (!strstr(e.text, words))
		fail_msg("'%s' lacks '%s'", e.text, words);
}

static void test_refusals(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	refuses("a: 1\nb: 2\na: 3\n", "f.yaml: line 3: duplicate key 'a', first on line 1");
	refuses("a: {x: 1, y: 2, x: 3}\na: 1\n", "line 1: duplicate key 'x', first on line 1");
	refuses("z: 1\na: 1\na: 2\nz: 3\n", "line 3: duplicate key 'a', first on line 2");
	refuses("a: &x 1\n", "line 1: anchors");
	refuses("a: 1\nb: *a\n", "line 2: anchors");
	refuses("a: !!str 1\n", "line 1: anchors");
	refuses("a: [1\n", "not valid YAML");
	refuses("\ta: 1\n", "line 1: not valid YAML");
	refuses("a: 1\n---\nb: 2\n", "only one");
	refuses("? [a]\n: b\n", "a key must be a text");
	for (int i = 0; i < YAML_DEPTH_MAX + 1; i++)
		buf_putc(&b, '[');
	for (int i = 0; i < YAML_DEPTH_MAX + 1; i++)
		buf_putc(&b, ']');
	refuses(buf_str(&b), "nested too deeply");
	buf_clear(&b);
	buf_putc(&b, '[');
	for (int i = 0; i < YAML_VALUES_MAX; i++)
		buf_puts(&b, "1,");
	buf_puts(&b, "]");
	refuses(buf_str(&b), "too many values");
}

static void test_kinds(void **state)
{
	struct errinfo e = {0};
	struct yaml_tree *t = read_text("yes: on\nno: nein\nn: 2.5\nd: 1m30s\ns: 2k\nl: []\n", &e);
	const struct yaml_value *r = yaml_tree_root(t);
	uint64_t u = 0;
	const char *text = NULL;
	bool flag = false;
	double n = 0;

	assert_int_equal(yaml_bool(yaml_member(r, "yes"), &flag), 0);
	assert_true(flag);
	assert_int_equal(yaml_bool(yaml_member(r, "no"), &flag), -EINVAL);
	assert_string_equal(e.text, "f.yaml: line 2: no must be true or false");
	assert_int_equal(yaml_number(yaml_member(r, "n"), 0, 3, &n), 0);
	assert_true(n == 2.5);
	assert_int_equal(yaml_number(yaml_member(r, "n"), 0, 2, &n), -EINVAL);
	assert_int_equal(yaml_number(yaml_member(r, "no"), 0, 2, &n), -EINVAL);
	assert_int_equal(yaml_duration(yaml_member(r, "d"), &u), 0);
	assert_true(u == 90000000000ULL);
	assert_int_equal(yaml_duration(yaml_member(r, "n"), &u), -EINVAL);
	assert_int_equal(yaml_size(yaml_member(r, "s"), &u), 0);
	assert_int_equal(u, 2048);
	assert_int_equal(yaml_size(yaml_member(r, "l"), &u), -EINVAL);
	assert_int_equal(yaml_text(yaml_member(r, "l"), &text), -EINVAL);
	assert_string_equal(e.text, "f.yaml: line 6: l must be a single value");
	yaml_tree_free(t);
}

/* CPU time, which others cannot take: comparing each key with all before it took 8 s. */
static void test_many_keys(void **state)
{
	_cleanup_(yaml_tree_freep) struct yaml_tree *t = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	clock_t began = clock();

	for (int i = 0; i < 40000; i++)
		buf_printf(&b, "key-%05d: 1\n", i);
	assert_int_equal(yaml_tree_read("f.yaml", buf_str(&b), b.len, &t, NULL), 0);
	assert_int_equal(yaml_tree_root(t)->count, 40000);
	buf_puts(&b, "key-00007: 2\n");
	refuses(buf_str(&b), "line 40001: duplicate key 'key-00007', first on line 8");
	assert_true((clock() - began) / CLOCKS_PER_SEC < 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
